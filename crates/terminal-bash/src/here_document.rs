//! Where a here-document of a shell begins and ends in a text.
//!
//! It is only ever claimed for a text that holds the whole of it. An operator that is quoted, in a
//! comment or in arithmetic begins none, and a first line that does not end its quotes is left
//! alone.

use std::collections::VecDeque;

/// The word that ends a here-document, and whether tabs before it count.
#[derive(Debug, PartialEq, Eq)]
struct Delimiter {
    word: String,
    strips_tabs: bool,
}

/// How many lines at the front are one command line and the here-documents that it begins; none
/// where there is none, or where its end is missing.
pub(crate) fn lines(text: &VecDeque<String>) -> Option<usize> {
    let mut lines = text.iter().map(|line| line.trim_end_matches(['\n', '\r']));
    let delimiters = delimiters(lines.next()?)?;
    let mut count = 1;
    for Delimiter { word, strips_tabs } in &delimiters {
        loop {
            let line = lines.next()?;
            count += 1;
            let line = if *strips_tabs { line.trim_start_matches('\t') } else { line };
            if line == word {
                break;
            }
        }
    }
    (!delimiters.is_empty()).then_some(count)
}

/// The delimiters of a command line; none where a quote, an arithmetic expression or the line
/// itself goes on behind it.
fn delimiters(line: &str) -> Option<Vec<Delimiter>> {
    let mut found = Vec::new();
    let mut arithmetic = 0_usize;
    let mut before = ' ';
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let (skipped, last) = match c {
            '\\' => (1 + rest[1..].chars().next()?.len_utf8(), 'x'),
            '\'' => (1 + rest[1..].find('\'')? + 1, 'x'),
            '"' => (double_quoted(rest)?, 'x'),
            '#' if before.is_whitespace() || ";&|(".contains(before) => (rest.len(), '#'),
            _ if rest.starts_with("((") => {
                arithmetic += 1;
                (2, '(')
            }
            _ if arithmetic > 0 && rest.starts_with("))") => {
                arithmetic -= 1;
                (2, ')')
            }
            _ if rest.starts_with("<<<") => (3, '<'),
            _ if arithmetic == 0 && rest.starts_with("<<") => {
                let strips_tabs = rest.starts_with("<<-");
                let operator = if strips_tabs { 3 } else { 2 };
                let blanks = rest[operator..].len() - rest[operator..].trim_start().len();
                let (word, length) = word(&rest[operator + blanks..])?;
                found.push(Delimiter { word, strips_tabs });
                (operator + blanks + length, 'x')
            }
            _ => (c.len_utf8(), c),
        };
        rest = &rest[skipped..];
        before = last;
    }
    (arithmetic == 0).then_some(found)
}

/// Bytes of the double-quoted string at the front, both quotes included; none if it does not end.
fn double_quoted(text: &str) -> Option<usize> {
    let mut escaped = false;
    let end = text[1..].find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map(|end| end + 2)
}

/// The word at the front without its quotes, and its length with them.
fn word(text: &str) -> Option<(String, usize)> {
    let mut word = String::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        match c {
            '\'' => {
                let length = text[at + 1..].find('\'')?;
                word.push_str(&text[at + 1..at + 1 + length]);
                at += length + 2;
            }
            '"' => {
                let length = double_quoted(&text[at..])?;
                word.push_str(&text[at + 1..at + length - 1]);
                at += length;
            }
            '\\' => {
                let quoted = text[at + 1..].chars().next()?;
                word.push(quoted);
                at += 1 + quoted.len_utf8();
            }
            // A parameter or a substitution ends it where the shell says, not where it can be seen.
            '$' | '`' => return None,
            _ if c.is_whitespace() || ";&|<>()".contains(c) => break,
            _ => {
                word.push(c);
                at += c.len_utf8();
            }
        }
    }
    (at > 0).then_some((word, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> Option<usize> {
        lines(&text.split_inclusive('\n').map(str::to_owned).collect())
    }

    #[test]
    fn whole_here_documents() {
        for (text, expected) in [
            ("cat <<E\na\nE\necho", Some(3)),
            ("cat <<E\nE", Some(2)),
            ("cat > f << 'E O' && echo\na\nE O\n", Some(3)),
            ("cat <<-\"E\"\n\ta\n\t\tE\n", Some(3)),
            ("cat <<A <<B\na\nA\nb\nB\n", Some(5)),
            ("cat <<\\E; echo '<<F'\nE\nF\n", Some(2)),
            ("(cat <<E)\na\r\nE\r\nx", Some(3)),
            ("cat <<E # <<F\nE\nF\n", Some(2)),
            ("cat <<é\né\n", Some(2)),
            ("echo a#b <<E\nE\n", Some(2)),
            ("echo $((1 << 2)) <<E\nE\n2\n", Some(2)),
        ] {
            assert_eq!(count(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_only_looks_like_one() {
        for text in [
            "echo",
            "",
            "cat <<E\nnot the E\n E\n",
            "cat <<E",
            "cat <<<E\nE\n",
            "echo '<<E'\nE\n",
            "echo \"<<E\"\nE\n",
            "echo \"\\\"<<E\"\nE\n",
            "echo \\<<E\n",
            "echo \"<<E\nE\n",
            "echo '<<E\nE\n",
            "# <<E\nE\n",
            "echo $((1<<E))\nE\n",
            "(( x = 1 <<E\nE\n",
            "cat <<$E\nE\n",
            "cat <<E \\\nE\n",
            "cat << \nE\n",
        ] {
            assert_eq!(count(text), None, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics_and_no_count_is_beyond_it(text in "[a<\\-E \"'\\\\$()#\n\té]{0,40}") {
            let lines: VecDeque<String> = text.split_inclusive('\n').map(str::to_owned).collect();
            if let Some(count) = super::lines(&lines) {
                proptest::prop_assert!(count >= 2 && count <= lines.len());
            }
        }
    }
}
