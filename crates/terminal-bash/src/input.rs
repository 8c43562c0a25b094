//! What is typed: the bytes of a send, and what the line discipline would do to them.

use std::collections::VecDeque;

use subprocess::{Enter, Modes};

/// Most bytes of one line that a terminal in canonical mode keeps; the rest of a longer line is
/// dropped without a word (`N_TTY_BUF_SIZE` less one for the newline).
const LINE_LIMIT: usize = 4_095;

/// The lines to type, one after the other: each with the line end it was sent with, the last one
/// with Enter, a carriage return.
///
/// A line is typed when somebody waits for it. What is typed ahead while a line editor has the
/// terminal would reach the reader behind it in one piece: readers of lines would get several at
/// once, control characters would be data, and a carriage return would end no line.
pub(crate) fn lines(text: &str, submit: bool) -> VecDeque<String> {
    let mut lines: VecDeque<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    if submit {
        match lines.back_mut() {
            Some(last) if !last.ends_with('\n') => last.push('\r'),
            _ => lines.push_back("\r".to_owned()),
        }
    }
    lines
}

/// What a line that is typed ends with, beside an end of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineEnds {
    enter: Enter,
    newline: bool,
    /// The keys that make signals: they take what was typed of the line along.
    signals: bool,
}

impl LineEnds {
    /// All there are.
    pub(crate) const ALL: Self = Self { enter: Enter::EndsLine, newline: true, signals: true };

    /// Those of a terminal. Without line mode its program decides; what cannot be read is taken for
    /// the usual.
    pub(crate) fn of(modes: Option<Modes>) -> Self {
        modes.filter(|it| it.canonical).map_or(Self::ALL, |it| Self {
            enter: it.enter,
            newline: it.newline,
            signals: it.signals,
        })
    }

    fn include(self, byte: u8) -> bool {
        const END_OF_FILE: u8 = 0x04;
        match byte {
            b'\r' => self.enter == Enter::EndsLine,
            b'\n' => self.newline,
            END_OF_FILE => true,
            0x03 | 0x1a | 0x1c => self.signals,
            _ => false,
        }
    }

    /// Bytes of the line that is open behind each byte of a text that goes on one of `open` bytes.
    fn lengths(self, open: usize, text: &str) -> impl Iterator<Item = usize> {
        text.bytes().scan(open, move |length, byte| {
            *length = match byte {
                _ if self.include(byte) => 0,
                b'\r' if self.enter == Enter::Dropped => *length,
                _ => *length + 1,
            };
            Some(*length)
        })
    }
}

/// Whether the input ends in the middle of a line: neither a line end, nor a control character
/// that the line discipline acts upon by itself.
pub(crate) fn is_unfinished(text: &str, ends: LineEnds) -> bool {
    text.bytes().last().is_some_and(|last| !ends.include(last))
}

/// Bytes of the longest line of a text that a reader of lines would get cut, and what it takes.
/// The first line goes on one of which `open` bytes were typed before.
pub(crate) fn too_long(open: usize, text: &str, ends: LineEnds) -> Option<(u64, u64)> {
    let longest = ends.lengths(open, text).max().unwrap_or(0);
    (longest > LINE_LIMIT).then_some((longest as u64, LINE_LIMIT as u64))
}

/// Bytes of the unfinished line in a terminal in line mode that held `open` bytes of one before
/// `text` was typed.
pub(crate) fn open_line(open: usize, text: &str, ends: LineEnds) -> usize {
    ends.lengths(open, text).last().unwrap_or(open)
}

/// Whether the current line ends in a line of a text of several: typed, and not yet acted upon.
pub(crate) fn is_echoed(text: &str, cursor_line: &str) -> bool {
    let shown = cursor_line.trim_end();
    text.contains(['\n', '\r'])
        && text
            .split(['\n', '\r'])
            .map(str::trim)
            .any(|line| !line.is_empty() && shown.ends_with(line))
}

/// Whether all that can be seen of a text is in what the terminal showed.
pub(crate) fn is_shown(text: &str, viewport: &str) -> bool {
    text.split(char::is_control).all(|part| viewport.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_ends_and_the_last_gets_enter() {
        for (text, submit, expected) in [
            ("ls", true, &["ls\r"][..]),
            ("", true, &["\r"]),
            ("", false, &[]),
            ("\u{3}", false, &["\u{3}"]),
            ("cat\na", true, &["cat\n", "a\r"]),
            ("a\r\n\nb", false, &["a\r\n", "\n", "b"]),
            ("def f():\n  1\n", true, &["def f():\n", "  1\n", "\r"]),
        ] {
            assert_eq!(lines(text, submit), expected, "{text:?}");
        }
    }

    /// `-icrnl`, `igncr`, `inlcr`, `-isig`.
    const NO_ENTER: LineEnds = LineEnds { enter: Enter::Character, ..LineEnds::ALL };
    const DROPPED: LineEnds = LineEnds { enter: Enter::Dropped, ..LineEnds::ALL };
    const NO_NEWLINE: LineEnds = LineEnds { newline: false, ..LineEnds::ALL };
    const NO_SIGNALS: LineEnds = LineEnds { signals: false, ..LineEnds::ALL };

    #[test]
    fn unfinished_lines() {
        for (text, ends, unfinished) in [
            ("abc", LineEnds::ALL, true),
            ("abc\r", LineEnds::ALL, false),
            ("abc\n", LineEnds::ALL, false),
            ("", LineEnds::ALL, false),
            ("\u{4}", LineEnds::ALL, false),
            ("\u{3}", LineEnds::ALL, false),
            ("\u{1b}[A", LineEnds::ALL, true),
            ("abc\r", NO_ENTER, true),
            ("abc\r", DROPPED, true),
            ("abc\n", NO_ENTER, false),
            ("abc\n", NO_NEWLINE, true),
            ("\u{3}", NO_SIGNALS, true),
            ("\u{4}", NO_SIGNALS, false),
        ] {
            assert_eq!(is_unfinished(text, ends), unfinished, "{text:?} {ends:?}");
        }
    }

    #[test]
    fn a_line_that_would_be_cut_is_found() {
        let too_long = |open, text: &str| too_long(open, text, LineEnds::ALL);
        assert_eq!(too_long(0, &"x".repeat(4_095)), None);
        assert_eq!(too_long(0, &format!("{0}\n{0}", "x".repeat(4_000))), None);
        assert_eq!(too_long(0, &format!("a\n{}", "x".repeat(4_096))), Some((4_096, 4_095)));
        assert_eq!(too_long(95, &format!("{}\ny", "x".repeat(4_001))), Some((4_096, 4_095)));
        assert_eq!(too_long(4_095, &format!("\n{}", "x".repeat(4_000))), None);
    }

    #[test]
    fn a_line_that_goes_on_behind_what_ends_none_is_as_long_as_the_terminal_takes_it() {
        let halves = |end: char| format!("{0}{end}{0}", "x".repeat(4_000));
        for (end, ends, longest) in [
            ('\r', NO_ENTER, Some((8_001, 4_095))),
            ('\r', DROPPED, Some((8_000, 4_095))),
            ('\n', NO_ENTER, None),
            ('\n', NO_NEWLINE, Some((8_001, 4_095))),
            ('\u{3}', NO_SIGNALS, Some((8_001, 4_095))),
            ('\u{3}', LineEnds::ALL, None),
        ] {
            assert_eq!(too_long(0, &halves(end), ends), longest, "{end:?} {ends:?}");
        }
    }

    #[test]
    fn a_line_stays_open_until_it_ends() {
        for (open, text, ends, expected) in [
            (0, "abc", LineEnds::ALL, 3),
            (3, "de", LineEnds::ALL, 5),
            (3, "", LineEnds::ALL, 3),
            (3, "x\r", LineEnds::ALL, 0),
            (3, "x\nyz", LineEnds::ALL, 2),
            (3, "\u{4}", LineEnds::ALL, 0),
            (3, "\u{3}", LineEnds::ALL, 0),
            (3, "x\u{4}yz", LineEnds::ALL, 2),
            (0, "x\r", NO_ENTER, 2),
            (0, "x\r", DROPPED, 1),
            (2, "y\n", NO_ENTER, 0),
            (2, "y\n", NO_NEWLINE, 4),
            (2, "\u{3}", NO_SIGNALS, 3),
        ] {
            assert_eq!(open_line(open, text, ends), expected, "{open} {text:?} {ends:?}");
        }
    }

    #[test]
    fn what_was_typed_is_shown_or_a_secret() {
        assert!(is_shown("ls -l\npwd", "ls -l\ntotal 0\ndsh> pwd\n/\ndsh> "));
        assert!(is_shown("\u{1b}[A\u{3}", "[A^C\ndsh> "));
        assert!(!is_shown("738291", "PIN: \ndsh> "));
        assert!(!is_shown("sudo id\nhunter2", "sudo id\nPassword: \ndsh> "));
    }

    #[test]
    fn typed_lines_on_the_current_line() {
        assert!(is_echoed("a = 1\nprint(a)", ">>> print(a)"));
        assert!(!is_echoed("a = 1\nprint(a)", ">>> "));
        assert!(!is_echoed("print(a)", ">>> print(a)"), "one line is acted upon as a whole");
    }
}
