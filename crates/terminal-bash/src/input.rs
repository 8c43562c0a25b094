//! What is typed: the bytes of a send, and what the line discipline would do to them.

use terminal::TerminalError;

/// Most bytes of one line that a terminal in canonical mode keeps; the rest of a longer line is
/// dropped without a word (`N_TTY_BUF_SIZE` less one for the newline).
const LINE_LIMIT: usize = 4_095;

/// The bytes to write: the text, then Enter, a carriage return.
///
/// At the shell's own prompt a text of several lines ends as its lines do, in a line feed. What
/// stands behind the first line is typed ahead, and may be meant for a command that reads lines:
/// the terminal translates a carriage return as it arrives, which is before the shell's editor
/// has switched the translation on again. The editor itself takes both.
pub(crate) fn bytes(text: &str, submit: bool, at_shell_prompt: bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() + 1);
    bytes.extend_from_slice(text.as_bytes());
    if submit {
        let typed_ahead = at_shell_prompt && text.contains('\n');
        bytes.push(if typed_ahead { b'\n' } else { b'\r' });
    }
    bytes
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

/// The refusal of a text with a line that a canonical reader would get cut.
pub(crate) fn too_long_for_a_line(text: &str) -> Option<TerminalError> {
    let longest = text.split(['\n', '\r']).map(str::len).max().unwrap_or(0);
    (longest > LINE_LIMIT)
        .then_some(TerminalError::LineTooLong { bytes: longest as u64, limit: LINE_LIMIT as u64 })
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
    fn enter_is_a_carriage_return() {
        assert_eq!(bytes("ls", true, true), b"ls\r");
        assert_eq!(bytes("", true, true), b"\r");
        assert_eq!(bytes("\u{3}", false, true), b"\x03");
        assert_eq!(bytes("cat\na", true, true), b"cat\na\n");
        assert_eq!(bytes("cat\na", true, false), b"cat\na\r");
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
    fn a_line_that_would_be_cut_is_refused() {
        assert_eq!(too_long_for_a_line(&"x".repeat(4_095)), None);
        assert_eq!(too_long_for_a_line(&format!("{0}\n{0}", "x".repeat(4_000))), None);
        assert_eq!(
            too_long_for_a_line(&format!("a\n{}", "x".repeat(4_096))),
            Some(TerminalError::LineTooLong { bytes: 4_096, limit: 4_095 })
        );
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
