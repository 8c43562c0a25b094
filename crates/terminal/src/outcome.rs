//! What the operations of a session return. Property names are the wire's.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Whether a session's top-level process runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum SessionStatus {
    /// It does.
    Running,
    /// It ended: exactly one of the two is known, or neither.
    Exited {
        /// Exit status, when it ended by itself.
        exit_code: Option<i32>,
        /// Signal name such as `SIGKILL`, when it was killed.
        signal: Option<String>,
    },
}

/// Why a send stopped waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// The shell is back at its prompt, or the foreground waits for terminal input, after it
    /// consumed this input; from kernel or mark evidence.
    StdinRead,
    /// Not proven: output went quiet.
    InferredIdle,
    /// The absolute bound passed.
    Timeout,
    /// The top-level process ended.
    SessionExit,
}

impl WaitReason {
    /// The wire's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StdinRead => "stdin_read",
            Self::InferredIdle => "inferred_idle",
            Self::Timeout => "timeout",
            Self::SessionExit => "session_exit",
        }
    }
}

/// The outcome of one exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendOutcome {
    /// Everything shown from the write on: echo, output, and the prompt that follows. While the
    /// alternate screen is shown, the rows of that instead.
    pub viewport: String,
    /// Why it ended.
    pub wait_reason: WaitReason,
    /// Whether the top-level process runs, independent of the reason.
    pub session_status: SessionStatus,
    /// Something of this viewport is missing.
    pub truncated: bool,
    /// How much that is, and where it can be read; none where the backend cannot tell.
    pub missing: Option<Missing>,
    /// The shell command that ended during this exchange; of several the last.
    pub last_command: Option<LastCommand>,
    /// What the session is doing now; none where the backend cannot tell.
    pub state: Option<SendState>,
    /// What became of the input.
    pub input: Option<InputReceipt>,
    /// The limit at which the session was ended, in words for the model, such as `memory 512 MiB`.
    pub limit: Option<String>,
    /// What of the terminal's state was put right, in words for the model.
    pub repaired: Vec<String>,
    /// Processes that the session has started and that outlived its top-level process, when that was its
    /// end; closing the session ends them.
    pub left: Vec<Foreground>,
    /// Keys that were not pressed, since nobody was seen to take those before them.
    pub unpressed: u64,
    /// Whether the terminal would have shown the text when it was written. What was typed while
    /// it would not is a secret.
    pub echoed: bool,
}

/// What is missing from the front of a viewport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Lines; one that is there in part is not counted.
    pub lines: u64,
    /// UTF-8 bytes.
    pub bytes: u64,
    /// How many of the lines, the newest, can be read.
    pub readable: u64,
    /// Where a read finds them at the time of the outcome: the lines from the one in which the
    /// viewport begins to the newest.
    pub offset: u64,
}

/// A shell command that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastCommand {
    /// Exit status; none when it is not known.
    pub exit_code: Option<i32>,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// The shell's working directory after it; none when it is not known.
    pub cwd: Option<PathBuf>,
}

/// What a session is doing after an exchange.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SendState {
    /// What kind of wait, or that it is none.
    pub kind: StateKind,
    /// What the kind rests on.
    pub evidence: Evidence,
    /// False where a reader in canonical mode has echo off, or at a password prompt.
    pub echo: bool,
    /// Whether the alternate screen is shown.
    pub alternate_screen: bool,
    /// The foreground, when it could be resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreground: Option<Foreground>,
    /// What the foreground does while it does not read the terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy: Option<Busy>,
    /// Whether all that was written before the verdict is in the viewport.
    pub output_complete: bool,
}

/// Kinds of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "documented where the model text is written")]
pub enum StateKind {
    Prompt,
    Continuation,
    Line,
    LineEditor,
    Password,
    Raw,
    Tui,
    Running,
    Relay,
    Exited,
}

/// How strongly a state is known. Only `Exact` is ever called proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "documented with the rules that yield them")]
pub enum Evidence {
    Exact,
    Known,
    EditorMode,
    Settled,
    Relay,
    OpaqueRead,
    PromptText,
    Silence,
}

/// What a foreground that does not read the terminal is seen to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Busy {
    Running,
    Sleeping,
    WaitingChild,
    Pipe,
    Network,
    Stopped,
    Opaque,
    UnreadInput,
}

impl Busy {
    /// The wire's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Sleeping => "sleeping",
            Self::WaitingChild => "waiting_child",
            Self::Pipe => "pipe",
            Self::Network => "network",
            Self::Stopped => "stopped",
            Self::Opaque => "opaque",
            Self::UnreadInput => "unread_input",
        }
    }
}

/// A process: in the foreground, or left when its session ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreground {
    /// Its process id.
    pub pid: i32,
    /// Its command name as the kernel keeps it.
    pub command: String,
}

/// What became of the bytes of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputReceipt {
    /// Bytes of the text, Enter included, that the terminal took.
    pub accepted: u64,
    /// Bytes of input that the terminal holds and no program has read, those of earlier sends
    /// included; none where nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<u64>,
    /// Lines of the text, and of earlier ones, that were not typed and never will be, since a program
    /// had taken the whole screen by their turn.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untyped: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A page of the scrollback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadPage {
    /// The lines, oldest first.
    pub text: String,
    /// Every line that can still be read.
    pub total_lines: u64,
    /// First line of the page counted from the newest, inclusive.
    pub line_begin: u64,
    /// Last line of the page counted from the newest, exclusive.
    pub line_end: u64,
    /// Something of this page is missing.
    pub truncated: bool,
    /// Absolute number of the page's oldest line since the session began, when it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_line: Option<u64>,
    /// Why older lines than the bounds demand are gone, when something failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchPage {
    /// The lines that match, newest first.
    pub matches: Vec<SearchMatch>,
    /// A search `before` this absolute number goes on where this one stopped; none when all lines
    /// that can be read were looked at.
    pub next: Option<u64>,
    /// Every line that can still be read.
    pub total_lines: u64,
    /// Lines that were dropped, and so not looked at, are older than all of these.
    pub truncated: bool,
}

/// A line that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchMatch {
    /// Its absolute number since the session began.
    pub line: u64,
    /// Its text; of a very long line what is around the match.
    pub text: String,
    /// The lines before it, oldest first.
    pub before: Vec<String>,
    /// The lines after it, oldest first.
    pub after: Vec<String>,
}
