//! Model text: how a result is put into words and lines, and how it is cut to its bound.
//!
//! Guarantees:
//! - no text is longer than its bound, and none is cut inside a character;
//! - a text that was cut ends with [`TRUNCATED`] on a line of its own;
//! - a body gives way first, its oldest part first; then the state, limit, exit and wait lines, in
//!   this order; what still does not fit is cut at the end of the part that stays.
//!
//! Pure: no clock, no session, no configuration.

use std::{borrow::Cow, fmt::Write as _};

use terminal::{
    Busy, Evidence, Foreground, InputReceipt, LastCommand, Missing, ReadPage, SendOutcome,
    SendState, SessionStatus, StateKind, WaitReason,
};
use tools::text::marked;
pub use tools::text::{Keep, TRUNCATED, bound, escape, head, tail};

use crate::value::{ListedSession, OpenValue, SendValue};

/// Longest title of a call or a result in bytes, the ellipsis included.
const TITLE_BYTES: usize = 200;

/// When a line gives way to the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Yields {
    /// First of all lines.
    State,
    /// After the state.
    Limit,
    /// After the limit.
    Exit,
    /// Last of all lines.
    Wait,
    /// Not at all.
    Never,
}

/// A text before it is cut.
struct Draft<'a> {
    /// A line above the body that stays.
    head: Option<Cow<'a, str>>,
    /// What a program printed.
    body: &'a str,
    /// Stands for an empty body.
    placeholder: &'static str,
    /// Lines below the body.
    lines: Vec<(Yields, String)>,
    /// Something is missing already.
    truncated: bool,
}

/// `terminal_open`.
pub fn open(value: &OpenValue, cap: usize) -> String {
    let mut head = format!("started terminal session {}", named(&value.session));
    write!(head, " [type: {}]", escape(&value.session.kind)).ok();
    let draft = Draft {
        head: Some(head.into()),
        body: &value.motd,
        placeholder: "(no startup output)",
        lines: Vec::new(),
        truncated: false,
    };
    draft.fit(cap)
}

/// `terminal_send`.
pub fn send(value: &SendValue, cap: usize) -> String {
    let (body, lines, truncated) = match value {
        SendValue::Background { job_id } => {
            return bound(Keep::Head, &format!("started background job {job_id}"), cap);
        }
        SendValue::Foreground {
            viewport,
            wait_reason,
            session_status,
            truncated,
            last_command,
            state,
            input,
            repaired,
            left,
            limit,
        } => {
            let mut lines = Vec::new();
            if let Some(command) = last_command {
                lines.push((Yields::Exit, exit_line(command)));
            }
            if let Some(line) = state.as_ref().and_then(|it| state_line(it, *wait_reason)) {
                lines.push((Yields::State, line));
            }
            if let Some(limit) = limit {
                lines.push((Yields::Limit, limit_line(limit)));
            }
            lines.push((Yields::Wait, format!("[wait: {}]", wait_reason.as_str())));
            lines.push((Yields::Never, format!("[session: {}]", status(session_status))));
            let notes = untyped(input.as_ref()).into_iter().chain(repairs(repaired));
            let notes = notes.chain(leftovers(left));
            let body = notes
                .fold(Cow::Borrowed(viewport.as_str()), |body, note| joined(&body, &note).into());
            (body, lines, *truncated)
        }
    };
    let head = match value {
        SendValue::Foreground { state: Some(state), .. } if state.alternate_screen => {
            Some(full_screen(state).into())
        }
        _ => None,
    };
    let draft = Draft { head, body: &body, placeholder: "(no new output)", lines, truncated };
    draft.fit(cap)
}

/// Stands above the rows of a full-screen program, which are no output of the send.
fn full_screen(state: &SendState) -> String {
    let program = state.foreground.as_ref().map(|it| escape(&it.command));
    let program = program.map(|it| format!(" ({it})")).unwrap_or_default();
    format!("[full screen{program}: what follows is its screen, not output]")
}

/// What was put right of the terminal, as a sentence; none if nothing was.
pub fn repairs(done: &[String]) -> Option<String> {
    let done: Vec<_> = done.iter().map(|it| escape(it)).collect();
    (!done.is_empty()).then(|| format!("(The terminal was repaired: {}.)", done.join(", ")))
}

/// What was not typed, as a sentence; none if all was, or still may be.
fn untyped(input: Option<&InputReceipt>) -> Option<String> {
    let lines = input.map(|it| it.untyped).filter(|it| *it > 0)?;
    let (were, they) = if lines == 1 { ("line was", "it is") } else { ("lines were", "they are") };
    Some(format!(
        "({lines} {were} not typed, since a program had taken the whole screen by then; {they} dropped.)"
    ))
}

/// What the end of a session has left, as a sentence; none if nothing was.
pub fn leftovers(left: &[Foreground]) -> Option<String> {
    const NAMED: usize = 5;
    let named =
        left.iter().take(NAMED).map(|it| format!("{} (pid {})", escape(&it.command), it.pid));
    let mut all = named.collect::<Vec<_>>().join(", ");
    if left.len() > NAMED {
        write!(all, " and {} more", left.len() - NAMED).ok();
    }
    let them = if left.len() == 1 { "it" } else { "them" };
    (!left.is_empty()).then(|| format!("(Still running: {all}. terminal_close ends {them}.)"))
}

/// A text, and a note on a line of its own below it.
fn joined(text: &str, note: &str) -> String {
    let text = text.trim_end_matches('\n');
    if text.is_empty() { note.to_owned() } else { format!("{text}\n{note}") }
}

/// What is missing from the front of a send's output, and where it can be read.
pub fn missing(it: Missing) -> String {
    let Missing { lines, bytes, readable, offset } = it;
    if lines == 0 {
        return format!("[{bytes} bytes of this line come before this and are not shown]");
    }
    let (were, they) = if lines == 1 { ("line comes", "it") } else { ("lines come", "them") };
    let way = if readable == 0 {
        "and can no longer be read".to_owned()
    } else if readable < lines {
        format!("; terminal_read with offset {offset} has the newest {readable} of them")
    } else {
        format!("; terminal_read with offset {offset} has {they}")
    };
    let space = if readable == 0 { " " } else { "" };
    format!("[{lines} {were} before this, {bytes} bytes, not shown{space}{way}]")
}

/// `terminal_read`.
pub fn read(page: &ReadPage, cap: usize) -> String {
    let range = format!("[lines: {}-{} of {}]", page.line_begin, page.line_end, page.total_lines);
    let draft = Draft {
        head: None,
        body: &page.text,
        placeholder: "(no retained output)",
        lines: vec![(Yields::Never, range)],
        truncated: page.truncated,
    };
    draft.fit(cap)
}

/// `terminal_list`. Under the bound it loses its last lines.
pub fn list(sessions: &[ListedSession], cap: usize) -> String {
    if sessions.is_empty() {
        return "(no terminal sessions)".to_owned();
    }
    let lines: Vec<String> = sessions.iter().map(list_line).collect();
    let all = lines.join("\n");
    if all.len() <= cap {
        return all;
    }
    let room = cap.saturating_sub(TRUNCATED.len() + 1);
    let mut kept = String::new();
    for line in lines {
        let separator = usize::from(!kept.is_empty());
        if kept.len() + separator + line.len() > room {
            if kept.is_empty() {
                kept.push_str(head(&line, room));
            }
            break;
        }
        kept.extend((separator == 1).then_some('\n'));
        kept.push_str(&line);
    }
    marked(&kept, cap)
}

fn list_line(session: &ListedSession) -> String {
    let mut line = named(session);
    write!(line, " [{}] {}", escape(&session.kind), status(&session.status)).ok();
    if let Some(pid) = session.pid {
        write!(line, " pid={pid}").ok();
    }
    line
}

/// `pty-1 (main)`, or without a name `pty-1`.
fn named(session: &ListedSession) -> String {
    match &session.name {
        Some(name) => format!("{} ({})", session.session_id, escape(name)),
        None => session.session_id.clone(),
    }
}

/// `running`, or `exited code=0 signal=null`.
pub fn status(status: &SessionStatus) -> String {
    match status {
        SessionStatus::Running => "running".to_owned(),
        SessionStatus::Exited { exit_code, signal } => format!(
            "exited code={} signal={}",
            exit_code.map_or_else(|| "null".to_owned(), |code| code.to_string()),
            signal.as_deref().unwrap_or("null")
        ),
    }
}

/// How a command ended.
pub fn exit_line(command: &LastCommand) -> String {
    command.exit_code.map_or_else(|| "[exit: unknown]".to_owned(), |code| format!("[exit: {code}]"))
}

/// The limit at which the session was ended.
pub fn limit_line(limit: &str) -> String {
    format!("[limit: {}]", escape(limit))
}

/// What a reading of a background send tells after its end, besides the reason: what was repaired,
/// the status of its command, what the terminal is doing, and the limit that ended its session.
pub(crate) fn told(outcome: &SendOutcome) -> Vec<String> {
    let untyped = untyped(outcome.input.as_ref());
    let repaired = repairs(&outcome.repaired);
    let exit = outcome.last_command.as_ref().map(exit_line);
    let state = outcome.state.as_ref().and_then(|it| state_line(it, outcome.wait_reason));
    let limit = outcome.limit.as_deref().map(limit_line);
    let notes = untyped.into_iter().chain(repaired).chain(leftovers(&outcome.left));
    notes.chain(exit).chain(state).chain(limit).collect()
}

/// Who goes on after an interrupt, and what would be stronger.
pub(crate) fn stopping(foreground: Option<&Foreground>, shell: Option<u32>) -> String {
    let Some(Foreground { pid, command }) = foreground else {
        return "[stopping: the program still runs; terminal_signal SIGTERM or SIGKILL is stronger]"
            .to_owned();
    };
    let command = escape(command);
    if shell.is_some_and(|shell| shell.cast_signed() == *pid) {
        return format!(
            "[stopping: the shell itself, {command} (pid {pid}), still runs; terminal_close ends it]"
        );
    }
    format!(
        "[stopping: {command} (pid {pid}) still runs; terminal_signal SIGTERM or SIGKILL is stronger]"
    )
}

/// What the terminal is doing; nothing where the session or wait line says it all.
pub fn state_line(state: &SendState, reason: WaitReason) -> Option<String> {
    let command = state.foreground.as_ref().map(|it| escape(&it.command));
    let named = |what: &str| match &command {
        Some(command) => format!("{what} ({command})"),
        None => what.to_owned(),
    };
    let waits = matches!(state.kind, StateKind::Line | StateKind::LineEditor | StateKind::Raw);
    let what = match state.kind {
        StateKind::Prompt | StateKind::Exited => return None,
        _ if state.busy == Some(Busy::Stopped) => named("stopped"),
        StateKind::Password => "waiting for input, echo off".to_owned(),
        _ if waits && !state.echo => "waiting for input, echo off".to_owned(),
        StateKind::Continuation => "unfinished input, the shell waits for more".to_owned(),
        StateKind::Tui => named("full screen"),
        _ if state.alternate_screen => named("full screen"),
        StateKind::Line | StateKind::LineEditor | StateKind::Raw => named("waiting for input"),
        StateKind::Running => match (&command, state.busy) {
            (Some(command), Some(busy)) => format!("still running ({command}, {})", busy.as_str()),
            (None, Some(busy)) => format!("still running ({})", busy.as_str()),
            (_, None) => named("still running"),
        },
        StateKind::Relay => {
            format!("inside {}, not visible", command.as_deref().unwrap_or("another terminal"))
        }
    };
    let likely = if reason == WaitReason::StdinRead && state.evidence != Evidence::Exact {
        ", likely"
    } else {
        ""
    };
    Some(format!("[state: {what}{likely}]"))
}

impl Draft<'_> {
    fn fit(mut self, cap: usize) -> String {
        let empty = self.body.is_empty();
        let body = if empty { self.placeholder } else { self.body };
        let whole = self.compose(Some(body));
        if whole.len() <= cap {
            return whole;
        }
        if empty {
            // The placeholder is no output: without it nothing is missing.
            let bare = self.compose(None);
            if bare.len() <= cap {
                return bare;
            }
        }
        self.truncated = true;
        if !empty {
            let around = self.compose(None).len();
            let room = cap.saturating_sub(around + 1);
            let kept = tail(body.trim_end_matches('\n'), room);
            if !kept.is_empty() {
                return self.compose(Some(kept));
            }
        }
        while self.compose(None).len() > cap {
            let Some(next) = self.lines.iter().map(|it| it.0).min() else { break };
            if next == Yields::Never {
                break;
            }
            self.lines.retain(|it| it.0 != next);
        }
        let bare = self.compose(None);
        if bare.len() <= cap {
            return bare;
        }
        self.truncated = false;
        marked(&self.compose(None), cap)
    }

    fn compose(&self, body: Option<&str>) -> String {
        let marker = self.truncated.then_some(TRUNCATED);
        let followed = !self.lines.is_empty() || marker.is_some();
        let body = body.map(|it| if followed { it.trim_end_matches('\n') } else { it });
        let parts: Vec<&str> = self
            .head
            .as_deref()
            .into_iter()
            .chain(body)
            .chain(self.lines.iter().map(|it| it.1.as_str()))
            .chain(marker)
            .collect();
        parts.join("\n")
    }
}

/// What was typed, as the title of a card: one line, control characters escaped, cut.
pub fn title(typed: &str) -> String {
    if typed.is_empty() { "(send input)".to_owned() } else { one_line(typed) }
}

/// A text as one line of at most 200 bytes: control characters escaped, cut.
pub fn one_line(text: &str) -> String {
    // Escaping never shortens, so what lies beyond the bound cannot show up in the line.
    let cut = head(text, TITLE_BYTES + 1);
    let escaped = escape(cut);
    if escaped.len() <= TITLE_BYTES {
        return escaped.into_owned();
    }
    format!("{}…", head(&escaped, TITLE_BYTES - '…'.len_utf8()))
}

/// The title of what was typed while the terminal would not have shown it.
pub fn unseen_title(bytes: u64) -> String {
    format!("({bytes} bytes, echo off)")
}
