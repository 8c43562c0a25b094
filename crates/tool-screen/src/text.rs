//! Model text of the tools. Pure: no clock, no session, no configuration.
//!
//! Guarantee: a text that exceeds its bound loses the middle part, its body, first; the lines below
//! it stay as long as there is room for them.

use std::fmt::Write as _;

use tool_terminal::text::{exit_line, limit_line, repairs, state_line, status};
use tools::text::{TRUNCATED, escape, head, marked, tail};

use crate::value::{
    FoundLine, Highlighted, KeysValue, LinesValue, ScreenValue, SearchValue, ShownRow, WaitEnded,
    WaitValue,
};

/// Bytes of a matched line that are quoted.
const MATCHED_BYTES: usize = 200;
/// Highlights that are named.
const HIGHLIGHTS: usize = 8;

/// Which end of a body matters more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Head,
    Tail,
}

/// A body, and lines below it that stay; `truncated`: something is missing already.
fn compose(body: &str, kept: Kept, lines: &[String], truncated: bool, cap: usize) -> String {
    let below = lines.join("\n");
    let whole = |body: &str, truncated: bool| {
        let marker = if truncated { TRUNCATED } else { "" };
        let parts = [body.trim_end_matches('\n'), &below, marker];
        parts.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join("\n")
    };
    let text = whole(body, truncated);
    if text.len() <= cap {
        return text;
    }
    let room = cap.saturating_sub(whole("", true).len() + 1);
    let body = match kept {
        Kept::Head => head(body, room),
        Kept::Tail => tail(body, room),
    };
    let text = whole(body, true);
    if text.len() <= cap { text } else { marked(&below, cap) }
}

/// `terminal_screen`.
pub fn screen(value: &ScreenValue, cap: usize) -> String {
    compose(&rows(value), Kept::Head, &screen_lines(value), false, cap)
}

/// The rows, each with its number.
fn rows(value: &ScreenValue) -> String {
    if value.rows.is_empty() {
        let nothing = if value.changes_only { "(no row has changed)" } else { "(empty screen)" };
        return nothing.to_owned();
    }
    let mut text = String::new();
    let mut expected = value.rows.first().map_or(1, |it| it.row);
    for ShownRow { row, text: shown } in &value.rows {
        // A gap of one row is shorter as an empty row than as a jump that has to be noticed.
        if !value.changes_only && *row == expected + 1 {
            writeln!(text, "{expected:>3}|").ok();
        }
        writeln!(text, "{row:>3}|{shown}").ok();
        expected = row.saturating_add(1);
    }
    text
}

fn screen_lines(value: &ScreenValue) -> Vec<String> {
    let buffer = if value.alternate_screen { "full screen" } else { "main screen" };
    let size = format!("{} rows, {} columns", value.size.rows, value.size.columns);
    let changes = if value.changes_only { ", only changed rows" } else { "" };
    let mut lines = vec![format!("[screen: {buffer}, {size}{changes}, hash {}]", value.hash)];
    let hidden = if value.cursor.visible { "" } else { ", hidden" };
    lines.push(format!(
        "[cursor: row {}, column {}{hidden}]",
        value.cursor.row, value.cursor.column
    ));
    if !value.title.is_empty() {
        lines.push(format!("[title: {}]", head(&escape(&value.title), MATCHED_BYTES)));
    }
    if !value.modes.is_empty() {
        lines.push(format!("[modes: {}]", value.modes.join(", ")));
    }
    lines.extend(reversed(&value.highlights));
    lines
}

/// What is shown in reverse, the first ones.
fn reversed(highlights: &[Highlighted]) -> Vec<String> {
    let named = highlights.iter().take(HIGHLIGHTS).map(|Highlighted { row, column, text }| {
        let text = head(text.trim_end(), MATCHED_BYTES);
        format!("[reverse: row {row}, column {column}: {text}]")
    });
    let more = highlights.len().checked_sub(HIGHLIGHTS).filter(|it| *it > 0);
    named.chain(more.map(|more| format!("[reverse: {more} more]"))).collect()
}

/// `terminal_keys`.
pub fn keys(value: &KeysValue, cap: usize) -> String {
    let mut lines = Vec::new();
    let body = match (&value.screen, &value.output) {
        (Some(screen), _) => {
            lines.extend(screen_lines(screen));
            rows(screen)
        }
        (None, Some(output)) if !output.is_empty() => output.clone(),
        (None, _) => "(no new output)".to_owned(),
    };
    lines.extend(reversed(&value.highlights));
    if value.unpressed > 0 {
        lines.push(format!(
            "[not pressed: the last {}, since the keys before were not seen to be taken]",
            if value.unpressed == 1 {
                "key".to_owned()
            } else {
                format!("{} keys", value.unpressed)
            }
        ));
    }
    lines.extend(repairs(&value.repaired));
    lines.extend(value.last_command.as_ref().map(exit_line));
    lines.extend(value.state.as_ref().and_then(|it| state_line(it, value.wait_reason)));
    lines.extend(value.limit.as_deref().map(limit_line));
    lines.push(format!("[wait: {}]", value.wait_reason.as_str()));
    lines.push(format!("[session: {}]", status(&value.session_status)));
    let kept = if value.screen.is_some() { Kept::Head } else { Kept::Tail };
    compose(&body, kept, &lines, value.truncated, cap)
}

/// `terminal_wait`.
pub fn wait(value: &WaitValue, cap: usize) -> String {
    let quoted = |what: &str| match &value.matched {
        Some(line) => format!("{what}: {}", escape(head(line, MATCHED_BYTES))),
        None => what.to_owned(),
    };
    let ended = match value.ended {
        WaitEnded::Output => quoted("output matched"),
        WaitEnded::Screen => quoted("screen matched"),
        WaitEnded::Prompt => "the shell is at its prompt".to_owned(),
        WaitEnded::Input => "the foreground waits for input".to_owned(),
        WaitEnded::Silence => "nothing was shown for so long".to_owned(),
        WaitEnded::Exit => "the session has ended".to_owned(),
        WaitEnded::Timeout => "nothing of it in time".to_owned(),
    };
    let mut lines = vec![format!("[waited: {ended}]")];
    lines.extend(value.last_command.as_ref().map(exit_line));
    let state = value.state.as_ref();
    lines.extend(state.and_then(|it| state_line(it, terminal::WaitReason::StdinRead)));
    lines.extend(value.limit.as_deref().map(limit_line));
    lines.push(format!("[session: {}]", status(&value.session_status)));
    let body = if value.output.is_empty() { "(no new output)" } else { &value.output };
    compose(body, Kept::Tail, &lines, value.truncated, cap)
}

/// `terminal_search`.
pub fn search(value: &SearchValue, cap: usize) -> String {
    let mut body = String::new();
    let mut before: Option<u64> = None;
    for FoundLine { line, text, matches } in &value.lines {
        if before.is_some_and(|it| it + 1 != *line) && value.lines.iter().any(|it| !it.matches) {
            body.push_str("--\n");
        }
        before = Some(*line);
        let mark = if *matches { '|' } else { '-' };
        writeln!(body, "{line:>6}{mark}{text}").ok();
    }
    if body.is_empty() {
        body.push_str("(no line matches)");
    }
    let mut lines = vec![format!("[matches: {}, in {} lines]", value.matches, value.total_lines)];
    if let Some(next) = value.next {
        lines.push(format!("[older lines may match: search before {next}]"));
    }
    if value.truncated {
        lines.push("[the oldest lines are gone and were not searched]".to_owned());
    }
    compose(&body, Kept::Tail, &lines, false, cap)
}

/// `terminal_lines`.
pub fn lines(value: &LinesValue, cap: usize) -> String {
    let mut body = String::new();
    if value.count == 0 {
        body.push_str("(no such line)");
    } else {
        for (text, number) in value.text.split('\n').zip(value.first_line..) {
            writeln!(body, "{number:>6}|{text}").ok();
        }
    }
    let end = value.first_line + value.count;
    let range = format!("[lines: {}-{end}, {} can be read]", value.first_line, value.total_lines);
    compose(&body, Kept::Head, &[range], value.truncated, cap)
}
