//! Pressing keys: which of them go together, and what of them the program gets.

use std::{collections::VecDeque, time::Duration};

use terminal::{Key, KeyPress, KeysRequest, NamedKey, ScreenModes, SendRequest, TerminalError};

use super::{Task, send::Live, typing::ApartEnter};
use crate::{
    input::{self, LineEnds},
    readiness::InputFacts,
    settler::Settler,
    typing::Stroke,
};

/// Programs that tell the Escape key from the beginning of a sequence by the time behind it wait
/// for less than this.
const ESCAPE_GAP: Duration = Duration::from_millis(120);

/// Whether the next key waits until this one was acted upon.
fn ends_stroke(press: &KeyPress) -> bool {
    match &press.key {
        Key::Named(NamedKey::Enter | NamedKey::Escape) | Key::Mouse { .. } => true,
        Key::Character('c' | 'd' | 'z' | '\\' | 'C' | 'D' | 'Z' | '[') => press.modifiers.control,
        _ => false,
    }
}

/// Whether it is the Escape key, which begins every sequence.
fn is_escape(press: &KeyPress) -> bool {
    match &press.key {
        Key::Named(NamedKey::Escape) => true,
        Key::Character('[') => press.modifiers.control,
        _ => false,
    }
}

impl Task {
    /// Presses keys as a send types a text.
    pub(super) async fn press(&mut self, request: KeysRequest, settler: Settler) {
        let KeysRequest { keys, cancel } = request;
        let text = keys.iter().filter_map(|press| match &press.key {
            Key::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let text = text.collect::<Vec<_>>().join("\n");
        let nothing = SendRequest { text: String::new(), submit: false, background: false, cancel };
        // A text's lines that a full-screen program cannot get are told of by the send that drops them.
        let blind = self.screen.alternate() && !self.left_full_screen;
        let kept = if blind { std::mem::take(&mut self.left) } else { VecDeque::new() };
        self.begin_send(&nothing, settler).await;
        self.left.extend(kept);
        let Some(live) = &mut self.live else { return };
        live.text = text;
        live.keys = keys.into();
        if self.handover.is_none() {
            self.type_line();
        }
    }

    /// Presses the next keys of the live exchange, up to one that has to be acted upon first. True
    /// if there was one.
    pub(super) fn press_keys(&mut self) -> bool {
        let now = self.now();
        let (modes, key_modes) = (self.process.modes(), self.screen.modes());
        let (before, ends) = (self.before(modes), LineEnds::of(modes));
        let Some(live) = &mut self.live else { return false };
        let Pressed { bytes, text, escape } = match live.next_keys(key_modes) {
            Ok(pressed) if pressed.bytes.is_empty() => return false,
            Ok(pressed) => pressed,
            Err((press, error)) => {
                self.refuse_key(&press, error);
                return true;
            }
        };
        live.typed += bytes.len();
        if !text.is_empty() {
            live.note_echo(modes);
        }
        let unfinished = input::is_unfinished(&bytes, ends);
        live.exchange.typed(now, InputFacts { unfinished });
        live.before = before;
        live.apart_enter = (escape && !live.keys.is_empty()).then(|| ApartEnter::after(ESCAPE_GAP));
        live.stroke = Stroke { bytes: bytes.clone(), text: bytes.clone(), enter_follows: false };
        self.longest_unread = self.longest_unread.max(bytes.len());
        let canonical = modes.is_some_and(|it| it.canonical);
        self.note_line(modes, &bytes);
        let interrupt = bytes.contains('\u{3}');
        self.marks.stroke(interrupt);
        if self.marks.prompt().is_some() && !canonical {
            self.marks.typed(!unfinished, interrupt);
        }
        if modes.is_some_and(|it| it.echo || !it.canonical) {
            self.watches.typed(&text);
        }
        self.answers.typed();
        self.record_input(&bytes);
        self.process.write(bytes.as_bytes());
        true
    }

    /// Refuses a key that cannot be pressed, and what follows it.
    fn refuse_key(&mut self, press: &KeyPress, error: TerminalError) {
        let Some(mut live) = self.live.take() else { return };
        let Some(settler) = live.settler.take() else { return };
        let what = match live.typed {
            0 => "no key was pressed",
            _ => "the keys up to the last Enter, Escape, interrupt or click before it were pressed",
        };
        settler.refuse(match error {
            TerminalError::InvalidArgs(message) => {
                TerminalError::InvalidArgs(format!("{press}: {message}; {what}"))
            }
            other => other,
        });
    }
}

/// Keys that are pressed in one go.
struct Pressed {
    /// What the program gets.
    bytes: String,
    /// The texts among them.
    text: String,
    /// The last one is Escape.
    escape: bool,
}

impl Live {
    /// Takes the keys that are pressed next; the one that cannot be, and why.
    fn next_keys(&mut self, modes: ScreenModes) -> Result<Pressed, (KeyPress, TerminalError)> {
        let mut pressed = Pressed { bytes: String::new(), text: String::new(), escape: false };
        while let Some(press) = self.keys.pop_front() {
            match press.encode(modes) {
                Ok(bytes) => pressed.bytes.push_str(&bytes),
                Err(error) => return Err((press, error)),
            }
            if let Key::Text(text) = &press.key {
                pressed.text.push_str(text);
            }
            if ends_stroke(&press) {
                pressed.escape = is_escape(&press);
                break;
            }
        }
        Ok(pressed)
    }
}
