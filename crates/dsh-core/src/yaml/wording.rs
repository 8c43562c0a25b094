//! Why a text is no YAML, in the words of its author.
//!
//! The parser speaks of the grammar ("did not find expected key"). Here its messages become what is
//! wrong in the file and what to write instead; one that is not known is passed on as it is.

use serde_saphyr::Error;

/// A part of the parser's message, and what it means for the author.
const MEANINGS: [(&str, &str); 18] = [
    ("unclosed quote", "the quote that opens here is never closed"),
    ("misplaced bracket", "this bracket closes none that is open; remove it, or quote the value"),
    (
        "did not find expected ',' or '}'",
        "expected `,` or `}` here, between or behind the entries of `{…}`",
    ),
    (
        "did not find expected ',' or ']'",
        "expected `,` or `]` here, between or behind the entries of `[…]`",
    ),
    (
        "illegal placement of ':'",
        "this `:` stands inside of `[…]` or `{…}`, which is perhaps not closed above; put a value \
         with `:` in quotes",
    ),
    (
        "mapping values are not allowed",
        "a second `key: value` in one line; begin a new line for it, or put a value with `: ` in quotes",
    ),
    (
        "simple key expected ':'",
        "expected `key: value` here: this line has no `: `, or belongs further to the right",
    ),
    (
        "expected '-' indicator",
        "expected the next `- ` here: the keys of one row stand exactly below its first one",
    ),
    (
        "did not find expected key",
        "expected `key: value` here, exactly below the keys that it belongs to",
    ),
    ("found a tab", "the value that begins here goes on behind a tab; indent with spaces"),
    ("unknown escape", "there is no such escape with `\\` in double quotes; use single quotes"),
    (
        "trailing content after",
        "the quoted value ends before this; put the whole value in quotes, or begin a new line",
    ),
    (
        "expected comment or line break",
        "behind `|` or `>` a line has to end; the text begins in the next one, indented",
    ),
    ("expected '>'", "a tag that begins with `!<` has to end with `>`; write the value without it"),
    ("handle wasn't declared", "the tag of this value is not known; write the value without it"),
    ("recursion limit", "lists or mappings within each other, deeper than any composition needs"),
    ("YAML major version", "YAML 1.2 is read; remove the `%YAML` line"),
    ("invalid encoding", "expected a text in UTF-8"),
];

pub(super) fn plain(error: &Error) -> String {
    match error {
        Error::MultipleDocuments { .. } => {
            "a second YAML document starts here; keep one list in one file".to_owned()
        }
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().map_or_else(String::new, |key| format!(" `{key}`"));
            format!("the key{key} is already there; keep one of the two")
        }
        Error::NullIntoString { .. } | Error::Unexpected { .. } => {
            "a key has to be a text here; put it in quotes".to_owned()
        }
        Error::MergeValueNotMapOrSeqOfMaps { .. } => {
            "`<<` takes the keys of a mapping, or of a list of mappings; this is neither".to_owned()
        }
        Error::InvalidScalar { .. } | Error::InvalidBinaryBase64 { .. } => {
            "the value is not of the kind that its tag says; write it without the tag".to_owned()
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "this value would contain itself; write it out".to_owned()
        }
        other => of_the_parser(&other.to_string()),
    }
}

fn of_the_parser(message: &str) -> String {
    // It ends in the location, which every message of ours starts with.
    let message = message.rsplit_once(" at line ").map_or(message, |(head, _)| head);
    if let Some(bracket) = message.strip_prefix("unclosed bracket ") {
        return format!("the {} that opens here is never closed", bracket.replace('\'', "`"));
    }
    if let Some(character) = message.strip_prefix("unexpected character: `") {
        let character = character.strip_suffix('\'').unwrap_or(character);
        let shown =
            if character == "`" { "a backquote".to_owned() } else { format!("`{character}`") };
        return format!("a value cannot begin with {shown}; put it in quotes");
    }
    if message.contains("unknown anchor") {
        return "`*` stands for a value that is marked with `&` above, and none is; put a value that \
                begins with `*` in quotes"
            .to_owned();
    }
    let known = MEANINGS.iter().find(|(part, _)| message.contains(part));
    known.map_or_else(|| format!("no YAML: {message}"), |(_, meaning)| (*meaning).to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn what_is_broken_is_said_without_the_words_of_the_grammar() {
        for (text, at, said) in [
            (
                "- name: x\n  config: { rows: 40\n",
                (2, 11),
                "the `{` that opens here is never closed",
            ),
            (
                "- name: x\n config: {}\n",
                (2, 2),
                "expected the next `- ` here: the keys of one row",
            ),
            ("- name: x\n\tid: y\n", (1, 9), "indent with spaces"),
            ("- name: \"x\n", (1, 9), "the quote that opens here is never closed"),
            ("- a: [1, 2\n- b: x\n", (2, 4), "this `:` stands inside of `[…]` or `{…}`"),
            ("- name: @x/y\n", (1, 9), "cannot begin with `@`; put it in quotes"),
            ("- name: `x`\n", (1, 9), "cannot begin with a backquote; put it in quotes"),
            ("- name: a: b\n", (1, 10), "a second `key: value` in one line"),
            ("- name: x\nfoo\n", (2, 1), "expected `key: value` here: this line has no `: `"),
            ("name: x\n- y\n", (2, 3), "exactly below the keys that it belongs to"),
            ("- name: *x\n", (1, 9), "put a value that begins with `*` in quotes"),
            ("- name: \"\\q\"\n", (1, 9), "no such escape with `\\`"),
            ("- name: }\n", (1, 9), "this bracket closes none that is open"),
            ("- { a: 4 b: 5 }\n", (1, 11), "expected `,` or `}` here"),
            ("- a: \"b\" c\n", (1, 10), "the quoted value ends before this"),
            ("- a: |x\n   b\n", (1, 6), "behind `|` or `>` a line has to end"),
            ("- a: !<tag:x y\n", (1, 6), "has to end with `>`"),
            ("- a: !b!c x\n", (1, 6), "the tag of this value is not known"),
            ("- ? [a]\n  : 1\n", (1, 5), "a key has to be a text here"),
            ("- null: 1\n", (1, 3), "a key has to be a text here"),
            ("- <<: 3\n", (1, 7), "`<<` takes the keys of a mapping"),
            ("- !!int x\n", (1, 9), "not of the kind that its tag says"),
            ("- &a [*a]\n", (1, 7), "this value would contain itself"),
            ("%YAML 9.9\n---\n- x\n", (1, 1), "remove the `%YAML` line"),
        ] {
            let broken = parse(text).unwrap_err();
            assert!(broken.message.contains(said), "{text:?}: {}", broken.message);
            assert_eq!(broken.at, Some(at), "{text:?}: {}", broken.message);
            for jargon in ["scalar", "block", "flow", "did not find", "indicator"] {
                assert!(!broken.message.contains(jargon), "{text:?}: {}", broken.message);
            }
        }
        let deep = parse(&"[".repeat(3_000)).unwrap_err();
        assert!(deep.message.contains("deeper than any composition needs"), "{}", deep.message);
    }
}
