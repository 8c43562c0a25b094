//! New output, line by line, for whoever waits for a pattern in it.
//!
//! Guarantees: what was typed is not found where it is echoed, however the echo is cut and however
//! often a line editor shows it; a line is looked at as far as it is known, so a pattern may be found
//! in an unfinished one; what is kept is one line of bounded length.

use std::collections::VecDeque;

use regex::{Regex, RegexBuilder};
use terminal::TerminalError;

/// Memory that a compiled pattern may take.
const PATTERN_BYTES: usize = 1 << 20;
/// Bytes of an unfinished line that are kept.
const LINE_BYTES: usize = 64 << 10;
/// Echoes that are waited for at most.
const ECHOES: usize = 256;
/// How prompts end, blanks left out.
const PROMPT_ENDS: [char; 7] = ['>', '$', '#', '%', '?', ':', '❯'];

/// Compiles a pattern that is waited for.
pub(crate) fn compile(pattern: &str) -> Result<Regex, TerminalError> {
    RegexBuilder::new(pattern)
        .size_limit(PATTERN_BYTES)
        .dfa_size_limit(PATTERN_BYTES)
        .build()
        .map_err(|error| {
            TerminalError::InvalidArgs(format!(
                "the pattern {pattern:?} cannot be waited for: {error}; to wait for it literally, \
                 put a backslash before each of its special characters"
            ))
        })
}

/// Looks for a pattern in what is fed to it.
pub(crate) struct Matcher {
    regex: Regex,
    /// What is known of the line that is not finished.
    line: String,
    /// Typed lines whose echo has not been seen.
    awaited: VecDeque<String>,
    /// Those whose echo has been seen: it may be shown again.
    echoed: VecDeque<String>,
}

impl Matcher {
    pub(crate) fn new(regex: Regex) -> Self {
        Self { regex, line: String::new(), awaited: VecDeque::new(), echoed: VecDeque::new() }
    }

    /// A text was typed that will be echoed.
    pub(crate) fn typed(&mut self, text: &str) {
        for line in text.split(['\n', '\r']) {
            // How a control character is echoed differs.
            let line = line.split(char::is_control).next().unwrap_or_default().trim_end();
            if !line.is_empty() && self.awaited.len() < ECHOES {
                self.awaited.push_back(line.to_owned());
            }
        }
    }

    /// Takes text that follows all text so far; the line, as far as it counts, in which the pattern
    /// is found first.
    pub(crate) fn feed(&mut self, text: &str) -> Option<String> {
        let mut pieces = text.split('\n');
        self.line.push_str(pieces.next().unwrap_or_default());
        for next in pieces {
            let line = std::mem::replace(&mut self.line, next.to_owned());
            if let Some(found) = self.find(&self.without_echo(&line)) {
                return Some(found);
            }
            self.note_echo(&line);
        }
        let excess = self.line.len().saturating_sub(LINE_BYTES);
        self.line.drain(..self.line.ceil_char_boundary(excess));
        self.find(&self.without_coming_echo(&self.without_echo(&self.line)))
    }

    fn find(&self, line: &str) -> Option<String> {
        self.regex.is_match(line).then(|| line.to_owned())
    }

    /// The part of a line that was not typed.
    fn without_echo(&self, line: &str) -> String {
        if let Some(typed) = self.awaited.front()
            && let Some(at) = line.find(typed.as_str())
        {
            return line[at + typed.len()..].to_owned();
        }
        let again = |typed: &&String| {
            let before = line.trim_end().strip_suffix(typed.as_str());
            before.is_some_and(|it| it.trim_end().ends_with(PROMPT_ENDS))
        };
        if self.echoed.iter().any(|it| again(&it)) { String::new() } else { line.to_owned() }
    }

    /// A line without the end that may be the beginning of an echo.
    fn without_coming_echo(&self, line: &str) -> String {
        let shown_again = self.echoed.iter().filter(|typed| {
            let from = line.len().saturating_sub(typed.len());
            let begins = line.char_indices().map(|(at, _)| at).filter(|at| *at >= from);
            begins.into_iter().any(|at| {
                typed.starts_with(&line[at..]) && line[..at].trim_end().ends_with(PROMPT_ENDS)
            })
        });
        let coming = self.awaited.front().into_iter().chain(shown_again);
        let cut = coming.filter_map(|typed| {
            let mut begins = line.char_indices().map(|(at, _)| at);
            begins.find(|at| line.len() - at <= typed.len() && typed.starts_with(&line[*at..]))
        });
        line[..cut.min().unwrap_or(line.len())].to_owned()
    }

    /// A line is finished: an echo in it is over.
    fn note_echo(&mut self, line: &str) {
        if let Some(typed) = self.awaited.front()
            && line.contains(typed.as_str())
            && let Some(typed) = self.awaited.pop_front()
        {
            if self.echoed.len() == ECHOES {
                self.echoed.pop_front();
            }
            self.echoed.push_back(typed);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matcher(pattern: &str, typed: &str) -> Matcher {
        let mut matcher = Matcher::new(compile(pattern).unwrap());
        matcher.typed(typed);
        matcher
    }

    #[test]
    fn the_echo_is_no_output() {
        for (typed, pattern, shown, expected) in [
            ("echo READY\r", "READY", "echo READY\nREADY\ndsh> ", Some("READY")),
            ("echo READY\r", "READY", "dsh> echo READY\ndsh> ", None),
            ("echo READY\r", "READY", "echo READY\ndsh> echo READY\nso READY", Some("so READY")),
            ("sleep 1; echo done\r", "done", "sleep 1; echo done\n", None),
            // Without a line between them.
            ("READY\r", "READY", "READY\nREADY\n", Some("READY")),
            ("READY\r", "^READY$", "READYREADY\n", Some("READY")),
            // One typed line after the other.
            ("a=1\necho b\r", "[ab]", "dsh> a=1\ndsh> echo b\nc\n", None),
            ("a=1\necho b\r", "[ab]", "dsh> a=1\ndsh> echo b\nb\n", Some("b")),
            ("", "READY", "READY\n", Some("READY")),
            ("x", "dsh> $", "x\ndsh> ", Some("dsh> ")),
            ("a\tREADY\r", "READY", "a\u{9}\n", None),
        ] {
            let found = matcher(pattern, typed).feed(shown);
            assert_eq!(found.as_deref(), expected, "{typed:?} {pattern} {shown:?}");
        }
    }

    #[test]
    fn a_line_that_is_still_typed_is_no_output() {
        let mut matcher = matcher("READ", "echo READY; sleep 9\r");
        for piece in ["dsh> ec", "ho READ", "Y", "; sleep 9", "\n"] {
            assert_eq!(matcher.feed(piece), None, "{piece:?}");
        }
        assert_eq!(matcher.feed("REA"), None);
        assert_eq!(matcher.feed("DY").as_deref(), Some("READY"), "an unfinished line counts");
    }

    #[test]
    fn a_long_line_is_kept_in_part() {
        let mut matcher = matcher("end", "");
        for _ in 0..40 {
            assert_eq!(matcher.feed(&"é".repeat(4_000)), None);
        }
        assert!(matcher.line.len() <= LINE_BYTES);
        assert!(matcher.feed("end").is_some());
    }

    #[test]
    fn a_pattern_that_is_none_is_refused_with_the_reason() {
        let error = compile("a(").unwrap_err();
        assert_eq!(error.code(), "INVALID_ARGS");
        assert!(error.to_string().contains("unclosed group"), "{error}");
        assert_eq!(compile(r"\pL{1000}{1000}").unwrap_err().code(), "INVALID_ARGS");
    }

    proptest! {
        /// However the output is cut, what is found is found, and the echo never is.
        #[test]
        fn cuts_do_not_matter(
            lines in proptest::collection::vec("(dsh> )?[ab ]{0,6}", 0..6),
            typed in "[ab]{1,5}",
            cuts in proptest::collection::vec(0_usize..40, 0..6),
        ) {
            let shown = format!("dsh> {typed}\n{}\n", lines.join("\n"));
            let whole = matcher("a.*b$", &typed).feed(&shown).is_some();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|it| it % shown.len()).collect();
            cuts.extend([0, shown.len()]);
            cuts.sort_unstable();
            let mut pieces = matcher("a.*b$", &typed);
            let found = cuts.windows(2).any(|it| pieces.feed(&shown[it[0]..it[1]]).is_some());
            // An unfinished line may match that does not match when it is finished.
            prop_assert!(found || !whole, "{shown:?}");
            let mut echo = matcher(".", &typed);
            let only = format!("dsh> {typed}");
            for at in 5..only.len() {
                let mut echo = matcher("[ab]", &typed);
                prop_assert_eq!(echo.feed(&only[..at]), None);
                prop_assert_eq!(echo.feed(&only[at..]), None);
                prop_assert_eq!(echo.feed("\n"), None);
            }
            prop_assert!(echo.feed("dsh> ").is_some());
        }
    }
}
