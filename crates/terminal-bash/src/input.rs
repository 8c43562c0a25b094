//! What is typed: the bytes of a send, and what the line discipline would do to them.

use std::collections::VecDeque;

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

/// Whether the input ends in the middle of a line: neither a line end, nor a control character
/// that the line discipline acts upon by itself.
pub(crate) fn is_unfinished(bytes: &[u8]) -> bool {
    const END_OF_FILE: u8 = 0x04;
    const SIGNALS: [u8; 3] = [0x03, 0x1a, 0x1c];
    bytes.last().is_some_and(|last| {
        !matches!(last, b'\r' | b'\n') && *last != END_OF_FILE && !SIGNALS.contains(last)
    })
}

/// Bytes of the longest line of a text that a reader of lines would get cut, and what it takes.
/// The first line goes on one of which `open` bytes were typed before.
pub(crate) fn too_long(open: usize, text: &str) -> Option<(u64, u64)> {
    let before = std::iter::once(open).chain(std::iter::repeat(0));
    let lengths = text.split(['\n', '\r']).zip(before).map(|(line, before)| before + line.len());
    let longest = lengths.max().unwrap_or(0);
    (longest > LINE_LIMIT).then_some((longest as u64, LINE_LIMIT as u64))
}

/// Bytes of the unfinished line in a terminal in line mode that held `open` bytes of one before
/// `text` was typed.
pub(crate) fn open_line(open: usize, text: &str) -> usize {
    if text.is_empty() {
        open
    } else if is_unfinished(text.as_bytes()) {
        match text.rfind(['\n', '\r']) {
            Some(end) => text.len() - end - 1,
            None => open + text.len(),
        }
    } else {
        0
    }
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

    #[test]
    fn unfinished_lines() {
        for (text, unfinished) in [
            ("abc", true),
            ("abc\r", false),
            ("abc\n", false),
            ("", false),
            ("\u{4}", false),
            ("\u{3}", false),
            ("\u{1b}[A", true),
        ] {
            assert_eq!(is_unfinished(text.as_bytes()), unfinished, "{text:?}");
        }
    }

    #[test]
    fn a_line_that_would_be_cut_is_found() {
        assert_eq!(too_long(0, &"x".repeat(4_095)), None);
        assert_eq!(too_long(0, &format!("{0}\n{0}", "x".repeat(4_000))), None);
        assert_eq!(too_long(0, &format!("a\n{}", "x".repeat(4_096))), Some((4_096, 4_095)));
        assert_eq!(too_long(95, &format!("{}\ny", "x".repeat(4_001))), Some((4_096, 4_095)));
        assert_eq!(too_long(4_095, &format!("\n{}", "x".repeat(4_000))), None);
    }

    #[test]
    fn a_line_stays_open_until_it_ends() {
        for (open, text, expected) in [
            (0, "abc", 3),
            (3, "de", 5),
            (3, "", 3),
            (3, "x\r", 0),
            (3, "x\nyz", 2),
            (3, "\u{4}", 0),
            (3, "\u{3}", 0),
        ] {
            assert_eq!(open_line(open, text), expected, "{open} {text:?}");
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
