//! Bytes → text runs, controls and sequences, whatever the cuts between reads.
//!
//! Plain text, UTF-8 and string sequences are taken apart here, since they carry nearly all bytes
//! and must be fast and bounded; control sequences go to [`vte`].
//!
//! Guarantees: the state between two calls is a few hundred bytes and at most 2 KiB of an `OSC`
//! payload; malformed UTF-8 becomes U+FFFD, one for each maximal malformed piece; no byte of a
//! string sequence becomes text.

use super::control::Performer;
use super::{ScreenEvent, ScreenState};

/// Longest `OSC` payload that is looked at.
const MAX_OSC: usize = 2048;

/// Longest unfinished sequence that is known.
const LONGEST: usize = 256;

/// Fewer bytes are not worth looking for lines that bypass the window.
const BLOCK: usize = 256;

const ESC: u8 = 0x1b;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    /// After `ESC`.
    Escape,
    /// In a control sequence, which vte has seen from its introducer on.
    Csi,
    /// After `ESC` and an intermediate, which vte has seen.
    EscapeIntermediate,
    /// In `OSC`, or in `DCS`, `SOS`, `PM`, `APC`.
    String { osc: bool },
    /// After `ESC` in a string.
    StringEscape { osc: bool },
}

/// The decoder's state between two reads.
#[derive(Default)]
pub(super) struct Decoder {
    state: State,
    sequences: vte::Parser,
    /// The beginning of a character whose end has not arrived.
    partial: Vec<u8>,
    /// What of the current sequence came in earlier reads, behind its `ESC`.
    begun: Vec<u8>,
    /// Payload of the current `OSC`; longer ones are cut and marked.
    payload: Vec<u8>,
    overlong: bool,
    /// Last byte of the current string.
    previous: u8,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Decoder {
    /// What would bring a fresh decoder to the same state: the character or sequence that is not
    /// finished, in short. Controls in it were done already.
    pub(super) fn unfinished(&self) -> Vec<u8> {
        let mut bytes = match self.state {
            State::Ground => return self.partial.clone(),
            State::Escape => return vec![ESC],
            State::Csi | State::EscapeIntermediate => {
                return [&[ESC], self.begun.as_slice()].concat();
            }
            State::String { osc } | State::StringEscape { osc } => {
                vec![ESC, if osc { b']' } else { b'P' }]
            }
        };
        match self.state {
            State::StringEscape { .. } => bytes.push(ESC),
            _ => bytes.push(self.previous),
        }
        bytes
    }

    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        screen: &mut ScreenState,
        events: &mut Vec<ScreenEvent>,
    ) {
        let mut rest = bytes;
        if !self.partial.is_empty() {
            rest = &rest[self.complete_character(rest, screen)..];
        }
        while !rest.is_empty() {
            let used = match self.state {
                State::Ground => self.ground(rest, screen),
                State::Escape => self.escape(rest[0], screen, events),
                State::Csi => self.sequence(rest, 0x40, screen, events),
                State::EscapeIntermediate => self.sequence(rest, 0x30, screen, events),
                State::String { osc } => self.string(rest, osc, screen, events),
                State::StringEscape { osc } => {
                    if rest[0] == b'\\' {
                        self.end_string(osc, false, screen, events);
                        1
                    } else {
                        // Not a terminator: the string is void and the escape stands for itself.
                        self.state = State::Escape;
                        0
                    }
                }
            };
            rest = &rest[used..];
        }
    }

    /// Text and controls up to the next change of state.
    fn ground(&mut self, bytes: &[u8], screen: &mut ScreenState) -> usize {
        let mut at = 0;
        // Up to here there are too few plain lines to take them together.
        let mut singly = 0;
        while at < bytes.len() {
            if at >= singly && bytes[at..].len() >= BLOCK && screen.passes_lines() {
                let block = &bytes[at..at + lines_run(&bytes[at..])];
                singly = at + block.len().max(BLOCK);
                at += screen.pass_lines(block);
            }
            let (len, ascii) = text_run(&bytes[at..]);
            if len > 0 {
                let run = &bytes[at..at + len];
                if ascii {
                    screen.print_ascii(run);
                    at += len;
                } else {
                    at += self.unicode(run, at + len == bytes.len(), screen);
                    if self.state != State::Ground {
                        return at;
                    }
                    continue;
                }
            }
            let Some(&control) = bytes.get(at) else { break };
            if control == ESC {
                let len = if screen.draws_cells() { 0 } else { colours(&bytes[at..], screen) };
                if len == 0 {
                    self.state = State::Escape;
                    return at + 1;
                }
                at += len;
                continue;
            }
            at += 1;
            screen.control(control);
        }
        at
    }

    /// A run without C0 controls; `last`: nothing of this read follows it. Returns the bytes used.
    fn unicode(&mut self, run: &[u8], last: bool, screen: &mut ScreenState) -> usize {
        let mut at = 0;
        while at < run.len() {
            match std::str::from_utf8(&run[at..]) {
                Ok(text) => return at + self.text(text, screen),
                Err(error) => {
                    let end = at + error.valid_up_to();
                    if let Ok(text) = std::str::from_utf8(&run[at..end]) {
                        at += self.text(text, screen);
                        if self.state != State::Ground {
                            return at;
                        }
                    }
                    match error.error_len() {
                        None if last => {
                            self.partial.extend_from_slice(&run[at..]);
                            return run.len();
                        }
                        len => {
                            screen.print_char(char::REPLACEMENT_CHARACTER);
                            at += len.unwrap_or(run.len() - at);
                        }
                    }
                }
            }
        }
        at
    }

    /// Valid text without C0 controls. Returns the bytes used: all, unless a C1 control changed the
    /// state.
    fn text(&mut self, text: &str, screen: &mut ScreenState) -> usize {
        let mut rest = text;
        while !rest.is_empty() && self.state == State::Ground {
            rest = &rest[screen.print_text(rest)..];
            let mut chars = rest.chars();
            if let Some(c) = chars.next() {
                rest = chars.as_str();
                self.character(c, screen);
            }
        }
        text.len() - rest.len()
    }

    /// A character that may be a C1 control.
    fn character(&mut self, c: char, screen: &mut ScreenState) {
        match c {
            '\u{84}' | '\u{85}' | '\u{8d}' => screen.escape(c as u8 - 0x40),
            '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}' => self.begin_string(false),
            '\u{9d}' => self.begin_string(true),
            '\u{9b}' => self.begin_sequence(),
            '\u{80}'..='\u{9f}' => {}
            _ => screen.print_char(c),
        }
    }

    /// Completes the character that the last read cut; returns the bytes used.
    fn complete_character(&mut self, bytes: &[u8], screen: &mut ScreenState) -> usize {
        let before = self.partial.len();
        let mut buffer = [0; 4];
        let len = bytes.len().min(4 - before);
        buffer[..before].copy_from_slice(&self.partial);
        buffer[before..before + len].copy_from_slice(&bytes[..len]);
        let joined = &buffer[..before + len];
        // Only the first character counts: what follows it is still in `bytes`.
        let (valid, malformed) = match std::str::from_utf8(joined) {
            Ok(_) => (joined.len(), None),
            Err(error) => (error.valid_up_to(), error.error_len()),
        };
        let first = std::str::from_utf8(&joined[..valid]).ok().and_then(|text| text.chars().next());
        let used = match (first, malformed) {
            (Some(c), _) => {
                self.character(c, screen);
                c.len_utf8()
            }
            (None, Some(len)) => {
                screen.print_char(char::REPLACEMENT_CHARACTER);
                len
            }
            (None, None) => {
                self.partial.extend_from_slice(&bytes[..len]);
                return len;
            }
        };
        self.partial.clear();
        used - before
    }

    /// One byte after `ESC`.
    fn escape(
        &mut self,
        byte: u8,
        screen: &mut ScreenState,
        events: &mut Vec<ScreenEvent>,
    ) -> usize {
        match byte {
            ESC | 0x7f => {}
            CAN | SUB => self.state = State::Ground,
            0x00..=0x1f => screen.control(byte),
            0x20..=0x2f => {
                self.sequences.advance(&mut Performer { screen, events }, &[ESC, byte]);
                self.state = State::EscapeIntermediate;
                self.begun.clear();
                self.begun.push(byte);
            }
            b'[' => self.begin_sequence(),
            b']' => self.begin_string(true),
            b'P' | b'X' | b'^' | b'_' => self.begin_string(false),
            0x30..=0x7e => {
                self.state = State::Ground;
                match byte {
                    b'c' => screen.reset(events),
                    b'Z' => screen.query(super::Query::PrimaryAttributes, events),
                    _ => screen.escape(byte),
                }
            }
            0x80.. => {
                self.state = State::Ground;
                return 0;
            }
        }
        1
    }

    fn begin_sequence(&mut self) {
        // The introducer alone dispatches nothing.
        self.sequences.advance(&mut Ignore, b"\x1b[");
        self.begun.clear();
        self.begun.push(b'[');
        self.state = State::Csi;
    }

    /// Bytes of a sequence whose final byte is at least `finals`.
    fn sequence(
        &mut self,
        bytes: &[u8],
        finals: u8,
        screen: &mut ScreenState,
        events: &mut Vec<ScreenEvent>,
    ) -> usize {
        let end = bytes
            .iter()
            .position(|byte| matches!(*byte, ESC | CAN | SUB) || (finals..=0x7e).contains(byte));
        let used = match end {
            None => {
                let room = LONGEST.saturating_sub(self.begun.len()).min(bytes.len());
                self.begun.extend_from_slice(&bytes[..room]);
                bytes.len()
            }
            Some(at) if bytes[at] == ESC => {
                self.state = State::Escape;
                self.sequences.advance(&mut Performer { screen, events }, &bytes[..at]);
                return at + 1;
            }
            Some(at) => {
                self.state = State::Ground;
                at + 1
            }
        };
        self.sequences.advance(&mut Performer { screen, events }, &bytes[..used]);
        used
    }

    fn begin_string(&mut self, osc: bool) {
        self.payload.clear();
        self.overlong = false;
        self.previous = 0;
        self.state = State::String { osc };
    }

    fn string(
        &mut self,
        bytes: &[u8],
        osc: bool,
        screen: &mut ScreenState,
        events: &mut Vec<ScreenEvent>,
    ) -> usize {
        for (at, &byte) in bytes.iter().enumerate() {
            match byte {
                ESC => {
                    self.state = State::StringEscape { osc };
                    return at + 1;
                }
                CAN | SUB => {
                    self.state = State::Ground;
                    return at + 1;
                }
                0x07 => {
                    self.end_string(osc, true, screen, events);
                    return at + 1;
                }
                // `ST` as one C1 control, which is two bytes in UTF-8.
                0x9c if self.previous == 0xc2 => {
                    self.payload.pop();
                    self.end_string(osc, false, screen, events);
                    return at + 1;
                }
                0x00..=0x1f => {}
                _ if !osc => {}
                _ if self.payload.len() < MAX_OSC => self.payload.push(byte),
                _ => self.overlong = true,
            }
            self.previous = byte;
        }
        bytes.len()
    }

    fn end_string(
        &mut self,
        osc: bool,
        bell: bool,
        screen: &mut ScreenState,
        events: &mut Vec<ScreenEvent>,
    ) {
        self.state = State::Ground;
        if osc && !self.overlong {
            screen.operating_system_command(&self.payload, bell, events);
        }
    }
}

/// A receiver for bytes that can't dispatch.
struct Ignore;

impl vte::Perform for Ignore {}

/// Length of the run without C0 controls and DEL, and whether it is all ASCII.
fn text_run(bytes: &[u8]) -> (usize, bool) {
    let mut high = 0;
    let mut len = 0;
    // Without early exit inside, so that a block is compared at once.
    for block in bytes.chunks_exact(16) {
        let (mut control, mut bits) = (0, 0);
        for &byte in block {
            control |= u8::from(is_control(byte));
            bits |= byte;
        }
        if control != 0 {
            break;
        }
        high |= bits;
        len += 16;
    }
    for &byte in &bytes[len..] {
        if is_control(byte) {
            break;
        }
        high |= byte;
        len += 1;
    }
    (len, high < 0x80)
}

/// Length of the run of text, CR and LF, without C1 controls.
fn lines_run(bytes: &[u8]) -> usize {
    #[expect(clippy::needless_bitwise_bool, reason = "no branches: a block is compared at once")]
    let other = |byte: u8| ((byte < 0x20) & (byte != b'\r') & (byte != b'\n')) | (byte == 0x7f);
    let mut len = 0;
    for block in bytes.chunks_exact(16) {
        let mut found = 0;
        for &byte in block {
            found |= u8::from(other(byte));
        }
        if found != 0 {
            break;
        }
        len += 16;
    }
    len += bytes[len..].iter().take_while(|byte| !other(**byte)).count();
    // A C1 control is two bytes in UTF-8; of one at the end the second is not known.
    let c1 = |at: &usize| bytes[..len].get(at + 1).is_none_or(|next| (0x80..0xa0).contains(next));
    memchr::memchr_iter(0xc2, &bytes[..len]).find(c1).unwrap_or(len)
}

fn is_control(byte: u8) -> bool {
    byte < 0x20 || byte == 0x7f
}

/// Sets the colours at the beginning of `bytes`, which often are several; length of all of them.
fn colours(bytes: &[u8], screen: &mut ScreenState) -> usize {
    let mut at = 0;
    while bytes.get(at) == Some(&ESC)
        && let Some(len) = colour(&bytes[at + 1..])
    {
        screen.set_pen(&bytes[at + 2..at + len]);
        at += 1 + len;
    }
    at
}

/// Length of a whole colour sequence (`[…m`) at the beginning of `bytes`: by far the commonest, and
/// without effect on the main text.
fn colour(bytes: &[u8]) -> Option<usize> {
    let parameters = bytes.strip_prefix(b"[")?;
    let end =
        parameters.iter().take(64).position(|byte| !matches!(byte, b'0'..=b'9' | b';' | b':'))?;
    (parameters[end] == b'm').then_some(end + 2)
}
