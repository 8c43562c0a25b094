//! The lines of a card: a call and its result.

use serde_json::Value;
use tools::{CallIntent, ResultIntent, ToolResult};

use super::visible;

/// Most lines of a result. Of more, those in the middle are left out.
const MOST_LINES: usize = 40;
/// Of them, those from the beginning; the end tells how it went.
const FIRST_LINES: usize = 10;
/// Most characters of a line.
const MOST_CHARS: usize = 400;

/// A line of a result, and what it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// What was shown.
    Body(String),
    /// What is said about it.
    Fact(String),
    /// An error.
    Error(String),
}

/// `terminal_send · Terminal pty-1 · ls`, or the name and its arguments.
pub(super) fn heading(name: &str, arguments: &Value, intent: Option<&CallIntent>) -> String {
    let line = match intent {
        Some(CallIntent::Terminal { title, description }) => {
            format!("{name} · {description} · {title}")
        }
        _ => format!("{name}{}", listed(arguments)),
    };
    one_line(&line)
}

/// The lines of a result.
pub(super) fn body(result: &ToolResult, intent: Option<&ResultIntent>) -> Vec<Line> {
    let text = match intent {
        Some(ResultIntent::Terminal { output, .. }) => output.clone(),
        _ => result.text(),
    };
    let all: Vec<&str> = text.lines().collect();
    let hidden = if all.len() > MOST_LINES { all.len() - MOST_LINES } else { 0 };
    let shown = |line: &&str| {
        let line = one_line(line);
        let fact = line.starts_with('[') && line.ends_with(']');
        match (result.is_error(), fact) {
            (true, _) => Line::Error(line),
            (false, true) => Line::Fact(line),
            (false, false) => Line::Body(line),
        }
    };
    if hidden == 0 {
        return all.iter().map(shown).collect();
    }
    let (head, rest) = all.split_at(FIRST_LINES);
    let left_out = Line::Fact(format!("… {hidden} more lines …"));
    let tail = rest.iter().skip(hidden);
    head.iter().map(shown).chain([left_out]).chain(tail.map(shown)).collect()
}

/// One line without anything that a terminal would act on.
fn one_line(text: &str) -> String {
    let mut line: String = text.chars().take(MOST_CHARS).map(visible).collect();
    if text.chars().nth(MOST_CHARS).is_some() {
        line.push('…');
    }
    line
}

/// ` key=value` for each argument. Of a text of several lines only the first is shown: in a text that
/// is typed, it may ask for the others unseen.
fn listed(arguments: &Value) -> String {
    let Some(arguments) = arguments.as_object() else { return String::new() };
    arguments
        .iter()
        .map(|(name, value)| match value.as_str() {
            Some(text) if text.trim_end_matches('\n').contains('\n') => {
                let first = text.lines().next().unwrap_or_default();
                format!(" {name}={}… ({} more bytes)", Value::from(first), text.len() - first.len())
            }
            Some(text) if !text.contains(|c: char| c.is_whitespace() || c.is_control()) => {
                format!(" {name}={text}")
            }
            _ => format!(" {name}={value}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tools::{ContentBlock, ErrorCode, ToolKind};

    use super::*;

    #[test]
    fn a_call_is_one_line() {
        let terminal = |title: &str| CallIntent::Terminal {
            title: title.to_owned(),
            description: "Terminal pty-1".to_owned(),
        };
        for (arguments, intent, line) in [
            (json!({}), Some(terminal("ls")), "t · Terminal pty-1 · ls"),
            (json!({}), Some(terminal("a\u{1b}[2Jb")), "t · Terminal pty-1 · a\u{fffd}[2Jb"),
            (
                json!({ "a": "b", "c": "d e", "n": 4 }),
                Some(CallIntent::Generic { kind: ToolKind::Read }),
                "t a=b c=\"d e\" n=4",
            ),
            (json!({ "a": "read -s x\nhush\n" }), None, "t a=\"read -s x\"… (6 more bytes)"),
            (Value::Null, None, "t"),
        ] {
            assert_eq!(heading("t", &arguments, intent.as_ref()), line);
        }
        let long = heading("t", &json!({ "a": "x".repeat(1000) }), None);
        assert_eq!(long.chars().count(), MOST_CHARS + 1);
    }

    fn result(text: &str) -> ToolResult {
        let content = vec![ContentBlock::text(text)];
        ToolResult { content, value: None, error: None }
    }

    #[test]
    fn a_result_is_told_apart_from_what_is_said_about_it() {
        let shown = body(&result("x\u{1b}[2Jy\n[exit: 0]"), None);
        let expected = [Line::Body("x\u{fffd}[2Jy".into()), Line::Fact("[exit: 0]".into())];
        assert_eq!(shown, expected);
        let code = ErrorCode { name: "E".into(), code: "E".into() };
        let failed = body(&ToolResult::failure("no\n[such]", code), None);
        assert_eq!(failed, [Line::Error("Error: no".into()), Line::Error("[such]".into())]);
    }

    #[test]
    fn of_a_long_result_the_middle_is_left_out() {
        let text: Vec<String> = (0..100).map(|it| it.to_string()).collect();
        let shown = body(&result(&text.join("\n")), None);
        assert_eq!(shown.len(), MOST_LINES + 1);
        assert_eq!(
            shown[9..12],
            [
                Line::Body("9".into()),
                Line::Fact("… 60 more lines …".into()),
                Line::Body("70".into()),
            ]
        );
        assert_eq!(body(&result(&text[..40].join("\n")), None).len(), 40);
    }
}
