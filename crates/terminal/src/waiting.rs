//! Waiting for what a session does, without typing anything: plain data.

use std::time::Duration;

use crate::outcome::{LastCommand, SendState, SessionStatus};

/// What to wait for. It never matches what was delivered before, nor the echo of what was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitRequest {
    /// Any of these ends the wait; at least one.
    pub until: Vec<WaitCondition>,
    /// Longest wait.
    pub timeout: Duration,
}

/// One thing that ends a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitCondition {
    /// A line of new output matches this regular expression, in the syntax of the crate `regex`.
    /// New is what follows the echo of the send that runs, or else what no send delivered.
    Output(String),
    /// A row of the visible screen matches this regular expression, now or later.
    Screen(String),
    /// The shell is at its prompt.
    Prompt,
    /// Whoever has the terminal waits for input, the shell's prompt included.
    Input,
    /// Nothing was shown for so long.
    Silence(Duration),
    /// The session's top-level process has ended.
    Exit,
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// The condition with this index was met.
    Met(usize),
    /// The time passed.
    Timeout,
    /// The session's top-level process has ended, and nothing else was waited for in time.
    SessionExit,
}

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitOutcome {
    /// Why.
    pub end: WaitEnd,
    /// The line or row that matched.
    pub matched: Option<String>,
    /// The new output so far; of much output the newest. It stays new for the next send.
    pub output: String,
    /// Something of that output is missing.
    pub truncated: bool,
    /// What the session is doing, where the wait ended with a look at it.
    pub state: Option<SendState>,
    /// The shell command that ended with a prompt that was waited for.
    pub last_command: Option<LastCommand>,
    /// The limit at which the session was ended.
    pub limit: Option<String>,
    /// Whether the top-level process runs.
    pub session_status: SessionStatus,
}
