//! Keys and mouse buttons as a program on a terminal gets them: xterm's sequences, in the form that
//! the program's modes ask for.

use std::fmt;

use crate::{
    error::TerminalError,
    screen::{MouseReports, ScreenModes},
};

/// One press of a key or of a mouse button.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPress {
    /// What is pressed.
    pub key: Key,
    /// What is held meanwhile.
    pub modifiers: Modifiers,
}

/// What is pressed. Characters may be of a secret: the debug form does not show them.
#[derive(Clone, PartialEq, Eq)]
pub enum Key {
    /// Several characters, one after the other, as they are.
    Text(String),
    /// The key of a character.
    Character(char),
    /// A key with a name.
    Named(NamedKey),
    /// The mouse, at a cell of the window counted from 0.
    Mouse {
        /// What it does there.
        action: MouseAction,
        /// Row of the window.
        row: u16,
        /// Column of the window.
        column: u16,
    },
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::Character(_) => f.write_str("Character"),
            Self::Named(key) => fmt::Debug::fmt(key, f),
            Self::Mouse { action, row, column } => write!(f, "{action:?}({row}, {column})"),
        }
    }
}

/// Keys that are held while another one is pressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Modifiers {
    pub control: bool,
    pub alt: bool,
    pub shift: bool,
}

/// A key with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are on the keys")]
pub enum NamedKey {
    Enter,
    Escape,
    Tab,
    Backspace,
    Space,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    Insert,
    Delete,
    /// A function key, from 1 to 12.
    Function(u8),
}

/// What the mouse does at a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum MouseAction {
    LeftClick,
    MiddleClick,
    RightClick,
    ScrollUp,
    ScrollDown,
}

impl Modifiers {
    /// As xterm writes them: 1, and a bit for each.
    fn parameter(self) -> u8 {
        1 + u8::from(self.shift) + 2 * u8::from(self.alt) + 4 * u8::from(self.control)
    }

    fn any(self) -> bool {
        self != Self::default()
    }
}

impl From<NamedKey> for KeyPress {
    fn from(key: NamedKey) -> Self {
        Self { key: Key::Named(key), modifiers: Modifiers::default() }
    }
}

impl KeyPress {
    /// The character alone.
    pub fn character(character: char) -> Self {
        Self { key: Key::Character(character), modifiers: Modifiers::default() }
    }

    /// The text as it is.
    pub fn text(text: impl Into<String>) -> Self {
        Self { key: Key::Text(text.into()), modifiers: Modifiers::default() }
    }

    /// What a program gets that has set these modes. `INVALID_ARGS` for what no terminal can send,
    /// and for the mouse where the program did not ask for it.
    pub fn encode(&self, modes: ScreenModes) -> Result<String, TerminalError> {
        let Self { key, modifiers } = self;
        match key {
            Key::Text(text) => Ok(text.clone()),
            Key::Character(character) => encode_character(*character, *modifiers),
            Key::Named(named) => Ok(encode_named(*named, *modifiers, modes)),
            Key::Mouse { action, row, column } => {
                encode_mouse(*action, *row, *column, *modifiers, modes)
            }
        }
    }
}

impl fmt::Display for KeyPress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Modifiers { control, alt, shift } = self.modifiers;
        for (held, prefix) in [(control, "C-"), (alt, "M-"), (shift, "S-")] {
            if held {
                f.write_str(prefix)?;
            }
        }
        match &self.key {
            Key::Text(text) => write!(f, "{text:?}"),
            Key::Character(character) => write!(f, "{character}"),
            Key::Named(NamedKey::Function(number)) => write!(f, "F{number}"),
            Key::Named(named) => write!(f, "{named:?}"),
            Key::Mouse { action, row, column } => {
                write!(f, "{action:?}@{},{}", row + 1, column + 1)
            }
        }
    }
}

fn encode_character(character: char, modifiers: Modifiers) -> Result<String, TerminalError> {
    let Modifiers { control, alt, shift } = modifiers;
    let nothing = || {
        let press = KeyPress { key: Key::Character(character), modifiers };
        TerminalError::InvalidArgs(format!(
            "no terminal sends anything of its own for {press}: of the keys with C- there are the \
             letters and @ [ \\ ] ^ _ ? /, and S- goes with letters and named keys"
        ))
    };
    let character = match (shift, character) {
        (false, it) => it,
        (true, it) if it.is_alphabetic() => it.to_uppercase().next().unwrap_or(it),
        (true, _) => return Err(nothing()),
    };
    let code = match (control, character.to_ascii_uppercase()) {
        (false, _) => character,
        (true, '?') => '\x7f',
        (true, '/') => '\x1f',
        (true, ' ') => '\0',
        (true, it @ '@'..='_') => char::from((it as u8) & 0x1f),
        (true, _) => return Err(nothing()),
    };
    Ok(if alt { format!("\x1b{code}") } else { code.to_string() })
}

fn encode_named(key: NamedKey, modifiers: Modifiers, modes: ScreenModes) -> String {
    let Modifiers { control, alt, shift } = modifiers;
    let held = modifiers.parameter();
    let with_alt = |code: &str| if alt { format!("\x1b{code}") } else { code.to_owned() };
    let lettered = |letter: char, application: bool| match (modifiers.any(), application) {
        (true, _) => format!("\x1b[1;{held}{letter}"),
        (false, true) => format!("\x1bO{letter}"),
        (false, false) => format!("\x1b[{letter}"),
    };
    let numbered = |number: u8| {
        if modifiers.any() { format!("\x1b[{number};{held}~") } else { format!("\x1b[{number}~") }
    };
    match key {
        NamedKey::Enter => with_alt("\r"),
        NamedKey::Escape => with_alt("\x1b"),
        NamedKey::Tab if shift => with_alt("\x1b[Z"),
        NamedKey::Tab => with_alt("\t"),
        NamedKey::Backspace if control => with_alt("\x08"),
        NamedKey::Backspace => with_alt("\x7f"),
        NamedKey::Space if control => with_alt("\0"),
        NamedKey::Space => with_alt(" "),
        NamedKey::Up => lettered('A', modes.cursor_keys),
        NamedKey::Down => lettered('B', modes.cursor_keys),
        NamedKey::Right => lettered('C', modes.cursor_keys),
        NamedKey::Left => lettered('D', modes.cursor_keys),
        NamedKey::Home => lettered('H', modes.cursor_keys),
        NamedKey::End => lettered('F', modes.cursor_keys),
        NamedKey::Insert => numbered(2),
        NamedKey::Delete => numbered(3),
        NamedKey::PageUp => numbered(5),
        NamedKey::PageDown => numbered(6),
        NamedKey::Function(number @ 1..=4) => lettered(char::from(b'O' + number), true),
        // Two numbers are left out between them, for reasons of the keyboard of 1983.
        NamedKey::Function(number @ 5) => numbered(10 + number),
        NamedKey::Function(number @ ..=10) => numbered(11 + number),
        NamedKey::Function(number) => numbered(12 + number),
    }
}

fn encode_mouse(
    action: MouseAction,
    row: u16,
    column: u16,
    modifiers: Modifiers,
    modes: ScreenModes,
) -> Result<String, TerminalError> {
    /// The largest coordinate that one byte of ASCII tells.
    const LARGEST: u16 = 94;
    let refused = |why: String| Err(TerminalError::InvalidArgs(why));
    if modes.mouse == MouseReports::Off {
        return refused(
            "the program has not asked for the mouse: use its keys, or switch its mouse support on"
                .to_owned(),
        );
    }
    let (button, releases) = match action {
        MouseAction::LeftClick => (0, true),
        MouseAction::MiddleClick => (1, true),
        MouseAction::RightClick => (2, true),
        MouseAction::ScrollUp => (64, false),
        MouseAction::ScrollDown => (65, false),
    };
    let Modifiers { control, alt, shift } = modifiers;
    let held = 4 * u8::from(shift) + 8 * u8::from(alt) + 16 * u8::from(control);
    let releases = releases && modes.mouse == MouseReports::Buttons;
    if modes.mouse_decimal {
        let at = |end: char| format!("\x1b[<{};{};{}{end}", button + held, column + 1, row + 1);
        return Ok(if releases { at('M') + &at('m') } else { at('M') });
    }
    if row > LARGEST || column > LARGEST {
        return refused(format!(
            "the program asked for a form of mouse reports that ends at row and column {}: make the \
             terminal smaller with terminal_resize",
            LARGEST + 1
        ));
    }
    let byte = |value: u16| char::from(u8::try_from(33 + value).unwrap_or(b'~'));
    let at = |button: u8| format!("\x1b[M{}{}{}", char::from(32 + button), byte(column), byte(row));
    Ok(if releases { at(button + held) + &at(3 + held) } else { at(button + held) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Modifiers = Modifiers { control: false, alt: false, shift: false };
    const CONTROL: Modifiers = Modifiers { control: true, ..PLAIN };
    const ALT: Modifiers = Modifiers { alt: true, ..PLAIN };
    const SHIFT: Modifiers = Modifiers { shift: true, ..PLAIN };

    fn sent(key: Key, modifiers: Modifiers, modes: ScreenModes) -> Result<String, TerminalError> {
        KeyPress { key, modifiers }.encode(modes)
    }

    /// As terminfo's entry for xterm-256color has them, and xterm's documents the rest.
    #[test]
    fn keys_are_sent_as_xterm_sends_them() {
        use NamedKey::{
            Backspace, Delete, Down, End, Enter, Escape, Function, Home, PageUp, Space, Tab, Up,
        };
        let plain = ScreenModes::default();
        let application = ScreenModes { cursor_keys: true, ..plain };
        for (key, modifiers, usual, asked) in [
            (Up, PLAIN, "\x1b[A", "\x1bOA"),
            (Down, CONTROL, "\x1b[1;5B", "\x1b[1;5B"),
            (Home, PLAIN, "\x1b[H", "\x1bOH"),
            (End, SHIFT, "\x1b[1;2F", "\x1b[1;2F"),
            (PageUp, PLAIN, "\x1b[5~", "\x1b[5~"),
            (Delete, ALT, "\x1b[3;3~", "\x1b[3;3~"),
            (Function(1), PLAIN, "\x1bOP", "\x1bOP"),
            (Function(4), SHIFT, "\x1b[1;2S", "\x1b[1;2S"),
            (Function(5), PLAIN, "\x1b[15~", "\x1b[15~"),
            (Function(6), PLAIN, "\x1b[17~", "\x1b[17~"),
            (Function(10), PLAIN, "\x1b[21~", "\x1b[21~"),
            (Function(11), CONTROL, "\x1b[23;5~", "\x1b[23;5~"),
            (Function(12), PLAIN, "\x1b[24~", "\x1b[24~"),
            (Enter, PLAIN, "\r", "\r"),
            (Enter, ALT, "\x1b\r", "\x1b\r"),
            (Escape, PLAIN, "\x1b", "\x1b"),
            (Tab, SHIFT, "\x1b[Z", "\x1b[Z"),
            (Backspace, PLAIN, "\x7f", "\x7f"),
            (Space, CONTROL, "\0", "\0"),
        ] {
            let key = Key::Named(key);
            assert_eq!(sent(key.clone(), modifiers, plain).as_deref(), Ok(usual), "{key:?}");
            assert_eq!(sent(key.clone(), modifiers, application).as_deref(), Ok(asked), "{key:?}");
        }
    }

    #[test]
    fn chords_are_control_characters() {
        let both = Modifiers { control: true, ..ALT };
        for (character, modifiers, expected) in [
            ('c', CONTROL, Some("\x03")),
            ('C', CONTROL, Some("\x03")),
            ('[', CONTROL, Some("\x1b")),
            ('?', CONTROL, Some("\x7f")),
            ('/', CONTROL, Some("\x1f")),
            (' ', CONTROL, Some("\0")),
            ('x', ALT, Some("\x1bx")),
            ('a', both, Some("\x1b\x01")),
            ('é', ALT, Some("\x1bé")),
            ('q', SHIFT, Some("Q")),
            ('1', CONTROL, None),
            ('é', CONTROL, None),
            ('1', SHIFT, None),
        ] {
            let sent = sent(Key::Character(character), modifiers, ScreenModes::default());
            assert_eq!(sent.as_deref().ok(), expected, "{character} {modifiers:?}");
        }
    }

    #[test]
    fn the_mouse_is_told_in_the_form_that_was_asked_for() {
        let click = |action, row, column| Key::Mouse { action, row, column };
        let off = ScreenModes::default();
        let presses = ScreenModes { mouse: MouseReports::Presses, ..off };
        let buttons = ScreenModes { mouse: MouseReports::Buttons, ..off };
        let decimal = ScreenModes { mouse_decimal: true, ..buttons };
        let left = || click(MouseAction::LeftClick, 1, 9);
        assert_eq!(sent(left(), PLAIN, off).unwrap_err().code(), "INVALID_ARGS");
        assert_eq!(sent(left(), PLAIN, presses).as_deref(), Ok("\x1b[M *\""));
        assert_eq!(sent(left(), PLAIN, buttons).as_deref(), Ok("\x1b[M *\"\x1b[M#*\""));
        assert_eq!(sent(left(), CONTROL, decimal).as_deref(), Ok("\x1b[<16;10;2M\x1b[<16;10;2m"));
        let scroll = click(MouseAction::ScrollDown, 0, 0);
        assert_eq!(sent(scroll.clone(), PLAIN, buttons).as_deref(), Ok("\x1b[Ma!!"));
        assert_eq!(sent(scroll, PLAIN, decimal).as_deref(), Ok("\x1b[<65;1;1M"));
        let far = click(MouseAction::RightClick, 0, 95);
        assert_eq!(sent(far.clone(), PLAIN, buttons).unwrap_err().code(), "INVALID_ARGS");
        assert_eq!(sent(far, PLAIN, decimal).as_deref(), Ok("\x1b[<2;96;1M\x1b[<2;96;1m"));
    }

    #[test]
    fn a_press_is_named_as_it_is_written() {
        for (key, modifiers, name) in [
            (Key::Named(NamedKey::Function(5)), PLAIN, "F5"),
            (Key::Named(NamedKey::Tab), SHIFT, "S-Tab"),
            (Key::Character('x'), Modifiers { control: true, ..ALT }, "C-M-x"),
            (Key::Text("a\"b".to_owned()), PLAIN, r#""a\"b""#),
            (
                Key::Mouse { action: MouseAction::ScrollUp, row: 4, column: 0 },
                PLAIN,
                "ScrollUp@5,1",
            ),
        ] {
            assert_eq!(KeyPress { key, modifiers }.to_string(), name);
        }
    }
}
