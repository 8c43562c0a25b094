//! What is typed next, and how, for whoever waits.
//!
//! - The bytes are the text's own; besides them there are only a paste's brackets and the quotes of
//!   tabs. Of a text that is pasted or quoted every character arrives as text.
//! - A line with other control characters than tabs is keys: it is never pasted, so nothing in it
//!   can end a paste early.
//! - Nothing here is typed ahead of its reader: a paste is one piece for one reader, up to the one
//!   Enter behind it.

use std::collections::VecDeque;

use crate::here_document;

const PASTE_BEGIN: &str = "\u{1b}[200~";
const PASTE_END: &str = "\u{1b}[201~";
/// The key, as a terminal sends it.
pub(crate) const ENTER: &str = "\r";

/// How whoever waits takes what is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// By lines that the terminal makes, or nobody knows how.
    Lines,
    /// With the session's own shell, a line editor.
    Shell {
        /// It takes pastes.
        pastes: bool,
        /// What a tab is typed as that is text.
        tab: &'static str,
    },
    /// With another line editor that takes pastes.
    Editor {
        /// It edits several lines at once, and may indent them by itself.
        blocks: bool,
        /// It may take an Enter that comes with a paste for a part of that.
        apart: bool,
    },
    /// By keys; whether one came alone may tell it a key from a paste.
    Keys,
    /// By keys, and lines mean nothing to it.
    FullScreen,
}

/// What is typed in one go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stroke {
    /// What the terminal gets.
    pub(crate) bytes: String,
    /// The part of the text that this is.
    pub(crate) text: String,
    /// Its Enter is typed once the program has taken this.
    pub(crate) enter_follows: bool,
}

impl Stroke {
    /// How many bytes of the text are not in the terminal when it has not taken the last `untaken`
    /// bytes of the stroke.
    pub(crate) fn untaken_text(&self, untaken: usize) -> usize {
        let around = if self.bytes.contains(PASTE_END) { PASTE_END.len() } else { 0 };
        untaken.saturating_sub(around).min(self.text.len())
    }
}

/// Takes what is typed next from the front of `rest`, whose elements are lines with their ends.
pub(crate) fn next(rest: &mut VecDeque<String>, reader: Reader) -> Option<Stroke> {
    let mut count = match reader {
        Reader::Shell { pastes: true, .. } => here_document::lines(rest).unwrap_or(1),
        Reader::Editor { blocks: true, .. } => block(rest),
        Reader::FullScreen => rest.len(),
        _ => 1,
    };
    if reader != Reader::FullScreen && !rest.iter().take(count).all(|line| is_plain(line)) {
        count = 1;
    }
    let text: String = rest.drain(..count.min(rest.len())).collect();
    if text.is_empty() {
        return None;
    }
    let (body, end) = split_end(&text);
    let whole = |bytes: String| Stroke { bytes, text: text.clone(), enter_follows: false };
    let paste = || format!("{PASTE_BEGIN}{}{PASTE_END}", body.replace("\r\n", "\n"));
    let pasted = || whole(paste() + if end.is_empty() { "" } else { ENTER });
    let is_line = is_plain(&text) && !end.is_empty();
    Some(match reader {
        Reader::Shell { pastes: true, .. } if count > 1 => pasted(),
        Reader::Shell { tab, .. } if is_line => whole(body.replace('\t', tab) + end),
        Reader::Editor { apart, .. } if count > 1 || is_line && body.chars().nth(1).is_some() => {
            if apart && !end.is_empty() {
                rest.push_front(ENTER.to_owned());
                let text = text[..text.len() - ENTER.len()].to_owned();
                Stroke { bytes: paste(), text, enter_follows: true }
            } else {
                pasted()
            }
        }
        Reader::Editor { .. } | Reader::Keys | Reader::FullScreen
            if end == ENTER && !body.is_empty() =>
        {
            rest.push_front(ENTER.to_owned());
            Stroke { bytes: body.to_owned(), text: body.to_owned(), enter_follows: true }
        }
        _ => whole(text.clone()),
    })
}

/// How many lines at the front are one block: a line that indented ones follow, and all up to the
/// end of the text or to a blank line that no indented one follows.
fn block(rest: &VecDeque<String>) -> usize {
    let is_blank = |line: &String| line.trim().is_empty();
    let is_indented = |line: &String| line.starts_with([' ', '\t']);
    // Whether the first line that is not blank, from here on, is indented.
    let goes_on = |from: usize| {
        let mut lines = rest.iter().skip(from);
        lines.find(|line| !is_blank(line)).is_some_and(is_indented)
    };
    if rest.front().is_none_or(is_blank) || !goes_on(1) {
        return 1;
    }
    let ends_block = |at: usize| is_blank(&rest[at]) && !goes_on(at + 1);
    (1..rest.len()).find(|at| ends_block(*at)).map_or(rest.len(), |at| at + 1)
}

/// Whether it is text without keys in it: no control characters but tabs and line ends.
fn is_plain(line: &str) -> bool {
    !split_end(line).0.chars().any(|it| it.is_control() && it != '\t' && it != '\n')
}

/// A text, and the line end that it ends with.
fn split_end(text: &str) -> (&str, &str) {
    let body = text.strip_suffix("\r\n").or_else(|| text.strip_suffix(['\r', '\n']));
    let body = body.unwrap_or(text);
    (body, &text[body.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::lines;

    const SHELL: Reader = Reader::Shell { pastes: true, tab: "\u{16}\t" };
    const EDITOR: Reader = Reader::Editor { blocks: false, apart: false };
    const BLOCKS: Reader = Reader::Editor { blocks: true, apart: false };
    const APART: Reader = Reader::Editor { blocks: true, apart: true };

    /// The bytes of every stroke of a text that ends with Enter.
    fn typed(text: &str, reader: Reader) -> Vec<String> {
        let mut rest = lines(text, true);
        std::iter::from_fn(|| next(&mut rest, reader)).map(|it| it.bytes).collect()
    }

    #[test]
    fn a_line_goes_with_its_enter_where_no_program_could_take_that_for_text() {
        for (reader, expected) in [
            (Reader::Lines, &["print(1)\r"][..]),
            (SHELL, &["print(1)\r"]),
            (EDITOR, &["\u{1b}[200~print(1)\u{1b}[201~\r"]),
            (APART, &["\u{1b}[200~print(1)\u{1b}[201~", "\r"]),
            (Reader::Keys, &["print(1)", "\r"]),
            (Reader::FullScreen, &["print(1)", "\r"]),
        ] {
            assert_eq!(typed("print(1)", reader), expected, "{reader:?}");
        }
        assert_eq!(typed("", Reader::Keys), ["\r"]);
        assert_eq!(typed("y", EDITOR), ["y", "\r"], "one character is a key");
        assert_eq!(typed(":a\n:b", Reader::FullScreen), [":a\n:b", "\r"]);
        assert_eq!(typed("a\nb", Reader::Keys), ["a\n", "b", "\r"]);
    }

    #[test]
    fn keys_are_never_pasted() {
        for keys in ["\u{1b}[A", "a\u{1b}[201~b", "a\u{3}", "\u{9b}201~x", "a\rb"] {
            for reader in [EDITOR, BLOCKS, APART, SHELL] {
                let all = typed(&format!("def f:\n  {keys}\n"), reader).concat();
                assert!(all.contains(keys), "{keys:?}: {all:?}");
                let inside = all.split(PASTE_BEGIN).skip(1);
                let inside = inside.map(|it| it.split(PASTE_END).next().unwrap_or_default());
                assert!(inside.into_iter().all(|it| !it.contains(keys)), "{keys:?}: {all:?}");
            }
        }
    }

    #[test]
    fn a_tab_in_a_line_is_text_and_one_alone_is_a_key() {
        assert_eq!(typed("\techo", SHELL), ["\u{16}\techo\r"]);
        assert_eq!(typed("a\tb", EDITOR), ["\u{1b}[200~a\tb\u{1b}[201~\r"]);
        let mut rest = lines("/etc/pass\t", false);
        assert_eq!(next(&mut rest, SHELL).map(|it| it.bytes).as_deref(), Some("/etc/pass\t"));
    }

    #[test]
    fn a_block_is_a_line_with_what_is_indented_below_it() {
        for (text, expected) in [
            ("a = 1\nb = 2", &[1, 1][..]),
            ("def f():\n  1\n\nf()", &[3, 1]),
            ("x = input()\nhello\nif x:\n  1\nelse:\n  2\n", &[1, 1, 5]),
            ("def f():\n\n  1\n\n  2\n\n\nf()", &[6, 1, 1]),
            ("class A:\n\tdef f(self): pass", &[2]),
            ("", &[1]),
        ] {
            let mut rest = lines(text, true);
            let mut counts = Vec::new();
            while let Some(stroke) = next(&mut rest, BLOCKS) {
                if !stroke.enter_follows {
                    counts.push(stroke.text.lines().count().max(1));
                }
            }
            assert_eq!(counts, expected, "{text:?}");
        }
    }

    #[test]
    fn an_enter_apart_is_the_end_of_the_text_before_it() {
        let text = "def f():\r\n  1\r\n\r\nf()";
        let expected =
            ["\u{1b}[200~def f():\n  1\n\u{1b}[201~", "\r", "\u{1b}[200~f()\u{1b}[201~", "\r"];
        assert_eq!(typed(text, APART), expected);
        let mut rest = lines(text, true);
        let strokes = std::iter::from_fn(|| next(&mut rest, APART));
        let bytes: usize = strokes.map(|it| it.text.len()).sum();
        assert_eq!(bytes, text.len() + 1);
    }

    #[test]
    fn a_here_document_is_one_paste_and_what_follows_is_not_in_it() {
        let text = "cat <<E\r\n\tone\ntwo\nE\necho after";
        assert_eq!(
            typed(text, SHELL),
            ["\u{1b}[200~cat <<E\n\tone\ntwo\nE\u{1b}[201~\r", "echo after\r"]
        );
        let plain = Reader::Shell { pastes: false, tab: "\u{16}\t" };
        assert_eq!(typed(text, plain).len(), 5, "where nobody takes pastes");
    }

    #[test]
    fn what_the_terminal_did_not_take_of_a_text() {
        let mut rest = lines("print(1)", true);
        let stroke = next(&mut rest, EDITOR).unwrap_or_default();
        let untaken = |bytes| stroke.untaken_text(bytes);
        assert_eq!((untaken(0), untaken(1), untaken(7), untaken(9)), (0, 0, 1, 3));
        assert_eq!(untaken(usize::MAX), stroke.text.len());
    }
}
