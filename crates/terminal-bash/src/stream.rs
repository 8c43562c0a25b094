//! What of a session's output whoever watches it gets: text, controls and sequences that draw.
//!
//! Guarantees:
//! - string sequences (`OSC`, `DCS`, `APC`, `PM`, `SOS`) are left out, so no title, clipboard, link or
//!   mark of the shell's gets out, and so are questions to the terminal, which the session answers;
//! - what gets out is valid UTF-8 without C1 controls, and never ends inside a character or a
//!   sequence: that waits for its end, up to a few hundred bytes;
//! - it takes the stream apart as the screen does, so that both stand at the same point.

use memchr::memchr;

/// Longest sequence that gets out.
const LONGEST: usize = 256;

const ESC: u8 = 0x1b;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    /// After `ESC` and an intermediate.
    Intermediate,
    Sequence,
    /// In a string.
    String,
    /// After `ESC` in a string.
    StringEscape,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    state: State,
    /// The beginning of a character or of a sequence.
    held: Vec<u8>,
    /// Last byte of the current string.
    previous: u8,
}

impl Filter {
    /// Takes what follows all bytes so far; `out` gets what of it gets out.
    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut impl FnMut(&[u8])) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let used = match self.state {
                State::Ground if self.held.is_empty() => self.ground(rest, out),
                State::Ground => self.character(rest[0], out),
                State::Escape => self.escape(rest[0], out),
                State::Intermediate => self.sequence(rest[0], 0x30, out),
                State::Sequence => self.sequence(rest[0], 0x40, out),
                State::String => self.string(rest),
                State::StringEscape if rest[0] == b'\\' => {
                    self.state = State::Ground;
                    1
                }
                // The string is void, and the escape stands for itself.
                State::StringEscape => {
                    self.state = State::Escape;
                    0
                }
            };
            rest = &rest[used..];
        }
    }

    /// Text and controls up to an escape.
    fn ground(&mut self, bytes: &[u8], out: &mut impl FnMut(&[u8])) -> usize {
        let end = memchr(ESC, bytes).unwrap_or(bytes.len());
        let run = &bytes[..end];
        if run.is_ascii() {
            out(run);
        } else {
            let used = self.text(run, end == bytes.len(), out);
            if self.state != State::Ground || !self.held.is_empty() {
                return used;
            }
        }
        if end == bytes.len() {
            return end;
        }
        self.state = State::Escape;
        end + 1
    }

    /// Text that may be malformed; `last`: nothing is known of what follows it. Returns the bytes
    /// used: all, unless a C1 control changed the state.
    fn text(&mut self, run: &[u8], last: bool, out: &mut impl FnMut(&[u8])) -> usize {
        let mut at = 0;
        for piece in run.utf8_chunks() {
            let valid = piece.valid();
            let mut plain = 0;
            for (index, control) in valid.char_indices().filter(|(_, it)| is_c1(*it)) {
                out(&valid.as_bytes()[plain..index]);
                plain = index + control.len_utf8();
                self.c1(control, out);
                if self.state != State::Ground {
                    return at + plain;
                }
            }
            out(&valid.as_bytes()[plain..]);
            at += valid.len();
            let malformed = piece.invalid();
            at += malformed.len();
            if last && at == run.len() && is_begun(malformed) {
                self.held.extend_from_slice(malformed);
            } else if !malformed.is_empty() {
                out(REPLACEMENT.as_bytes());
            }
        }
        at
    }

    /// One byte behind the beginning of a character.
    fn character(&mut self, byte: u8, out: &mut impl FnMut(&[u8])) -> usize {
        self.held.push(byte);
        if is_begun(&self.held) {
            return 1;
        }
        let held = std::mem::take(&mut self.held);
        match std::str::from_utf8(&held).ok().and_then(|text| text.chars().next()) {
            Some(control) if is_c1(control) => self.c1(control, out),
            Some(_) => out(&held),
            None => {
                // The byte is no part of what it cut off.
                out(REPLACEMENT.as_bytes());
                return 0;
            }
        }
        1
    }

    /// A C1 control, as the escape that means the same.
    fn c1(&mut self, control: char, out: &mut impl FnMut(&[u8])) {
        match control {
            '\u{84}' => out(b"\x1bD"),
            '\u{85}' => out(b"\x1bE"),
            '\u{8d}' => out(b"\x1bM"),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => self.begin_string(),
            '\u{9b}' => self.begin_sequence(),
            _ => {}
        }
    }

    /// One byte after `ESC`.
    fn escape(&mut self, byte: u8, out: &mut impl FnMut(&[u8])) -> usize {
        match byte {
            ESC | 0x7f => {}
            CAN | SUB => self.state = State::Ground,
            0x00..=0x1f => out(&[byte]),
            0x20..=0x2f => {
                self.state = State::Intermediate;
                self.held.extend([ESC, byte]);
            }
            b'[' => self.begin_sequence(),
            b']' | b'P' | b'X' | b'^' | b'_' => self.begin_string(),
            0x30..=0x7e => {
                self.state = State::Ground;
                // `ESC Z` asks which terminal this is.
                if byte != b'Z' {
                    out(&[ESC, byte]);
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
        self.state = State::Sequence;
        self.held.extend(*b"\x1b[");
    }

    /// One byte of a sequence whose final byte is at least `finals`.
    fn sequence(&mut self, byte: u8, finals: u8, out: &mut impl FnMut(&[u8])) -> usize {
        match byte {
            ESC => {
                self.held.clear();
                self.state = State::Escape;
            }
            CAN | SUB => {
                self.held.clear();
                self.state = State::Ground;
            }
            0x00..=0x1f => out(&[byte]),
            0x7f.. => {}
            _ => {
                if self.held.len() < LONGEST {
                    self.held.push(byte);
                }
                if byte >= finals {
                    self.state = State::Ground;
                    if draws(&self.held) {
                        out(&self.held);
                    }
                    self.held.clear();
                }
            }
        }
        1
    }

    fn begin_string(&mut self) {
        self.state = State::String;
        self.previous = 0;
    }

    fn string(&mut self, bytes: &[u8]) -> usize {
        for (at, &byte) in bytes.iter().enumerate() {
            self.state = match byte {
                ESC => State::StringEscape,
                CAN | SUB | 0x07 => State::Ground,
                // `ST` as one C1 control, which is two bytes in UTF-8.
                0x9c if self.previous == 0xc2 => State::Ground,
                _ => State::String,
            };
            if self.state != State::String {
                return at + 1;
            }
            self.previous = byte;
        }
        bytes.len()
    }
}

const REPLACEMENT: &str = "\u{fffd}";

fn is_c1(c: char) -> bool {
    ('\u{80}'..='\u{9f}').contains(&c)
}

/// Whether it is the beginning of a character and no more.
fn is_begun(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes)
        .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

/// Whether a sequence, whole unless it is too long, asks nothing and prints nothing on paper.
fn draws(sequence: &[u8]) -> bool {
    let Some((last, before)) = sequence.split_last() else { return false };
    let Some(body) = before.strip_prefix(b"\x1b[") else {
        // `ESC %` would choose another encoding.
        return !before.contains(&b'%');
    };
    let private = body.first().copied().filter(|byte| (0x3c..=0x3f).contains(byte));
    match last {
        // Identity, status, window, keyboard, parameters; the printer.
        b'c' | b'n' | b't' | b'x' | b'i' => false,
        b'u' | b'q' => private.is_none(),
        b'p' => !body.contains(&b'$'),
        b'@'..=b'~' => true,
        // It was too long.
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(pieces: &[&[u8]]) -> String {
        let (mut filter, mut out) = (Filter::default(), Vec::new());
        for piece in pieces {
            filter.feed(piece, &mut |bytes| out.extend_from_slice(bytes));
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_draws_gets_out_and_nothing_else() {
        let long = format!("a\x1b[{}mb", "1;".repeat(200));
        for (written, expected) in [
            ("plain\r\n", "plain\r\n"),
            ("é日\x1b[1;31mred\x1b[0m", "é日\x1b[1;31mred\x1b[0m"),
            ("a\x1b]0;title\x07b", "ab"),
            ("a\x1b]133;A;nonce\x1b\\b", "ab"),
            ("a\x1b]52;c;aGk=\u{9c}b", "ab"),
            ("a\x1b]8;;http://x\x07link\x1b]8;;\x07b", "alinkb"),
            ("a\u{9d}2;title\x07b\u{90}q\x1b\\c\u{9f}x\u{9c}d", "abcd"),
            ("a\x1bPdcs\x1b\\b\x1b_apc\x1b\\c\x1b^pm\x1b\\d\x1bXsos\x1b\\e", "abcde"),
            ("a\x1b]0;void\x18b", "ab"),
            ("a\x1b]0;void\x1b[1mb", "a\x1b[1mb"),
            ("\x1b\x1b]0;t\x07x", "x"),
            ("\x1b\n]0;t\x07x", "\nx"),
            ("\x1b[3\x1b]0;t\x07x", "x"),
            ("\x1b[c\x1b[>c\x1b[6n\x1b[?6n\x1b[18t\x1b[?u\x1b[>q\x1b[?2004$p\x1bZ\x1b[0i", ""),
            (
                "\x1b[u\x1b[2 q\x1b[!p\x1b[?1049h\x1b(0\x1b7",
                "\x1b[u\x1b[2 q\x1b[!p\x1b[?1049h\x1b(0\x1b7",
            ),
            ("\x1b%@\x1b%G", ""),
            ("\u{9b}31mx\u{85}\u{84}\u{8d}\u{81}", "\x1b[31mx\x1bE\x1bD\x1bM"),
            ("\x1b[1\r;2mx", "\r\x1b[1;2mx"),
            (long.as_str(), "ab"),
        ] {
            assert_eq!(filtered(&[written.as_bytes()]), expected, "{written:?}");
            for at in 0..written.len() {
                let (one, two) = written.as_bytes().split_at(at);
                assert_eq!(filtered(&[one, two]), expected, "{written:?} cut at {at}");
            }
            let bytes: Vec<&[u8]> = written.as_bytes().chunks(1).collect();
            assert_eq!(filtered(&bytes), expected, "{written:?} byte by byte");
        }
    }

    #[test]
    fn what_is_no_text_is_replaced() {
        for (written, expected) in [
            (&b"a\xffb"[..], "a\u{fffd}b"),
            (b"\xe4\xbdx", "\u{fffd}x"),
            (b"\xe4\xbd\x1b[1m", "\u{fffd}\x1b[1m"),
            (b"\xe4\xe4\xbd\xa0", "\u{fffd}你"),
            (b"\x9d0;t\x07", "\u{fffd}0;t\x07"),
        ] {
            assert_eq!(filtered(&[written]), expected);
            let bytes: Vec<&[u8]> = written.chunks(1).collect();
            assert_eq!(filtered(&bytes), expected, "{written:?} byte by byte");
        }
        assert_eq!(filtered(&[b"a\xe4\xbd"]), "a", "a begun character waits");
    }
}
