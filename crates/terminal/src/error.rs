//! Everything that can go wrong with a session, each with a stable code.

/// A refused or failed operation. The text says what was wrong and what to do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "fields are named after the placeholders in the message")]
pub enum TerminalError {
    #[error("a terminal backend of type `{kind}` is already registered")]
    DuplicateBackend { kind: String },
    #[error("unknown terminal type `{kind}`: available types are {available}")]
    NoBackend { kind: String, available: String },
    #[error("the backend of terminal type `{kind}` is being withdrawn")]
    BackendGone { kind: String },
    #[error("a terminal session named `{name}` already exists: choose another name or close it")]
    DuplicateName { name: String },
    #[error("agent `{owner}` is not live, so it can own no terminal session")]
    OwnerNotLive { owner: String },
    #[error("the terminal service is shutting down")]
    ServiceDisposing,
    #[error("unknown terminal session {id}")]
    NoSession { id: String },
    #[error("terminal session {id} belongs to another agent")]
    ForeignSession { id: String },
    #[error("terminal session {id} is busy with another send: wait for it, or signal it")]
    SendActive { id: String },
    #[error("a person has taken over {id}: read it, or wait until it is given back")]
    LeaseHeld { id: String },
    #[error(
        "terminal session {id} shows what is typed now: the secret was not typed; wait until it asks for one"
    )]
    SecretShown { id: String },
    #[error("terminal session {id} has exited: it can be read and closed")]
    SessionExited { id: String },
    #[error(
        "terminal session {id} was ended at its limit ({limit}): it can be read and closed, and another one opened"
    )]
    LimitReached { id: String, limit: String },
    #[error(
        "this agent has {limit} terminal sessions of this type, which is the limit: close one that no longer matters with terminal_close"
    )]
    TooManySessions { limit: u64 },
    #[error("terminal session {id} is being closed: it takes no more input")]
    SessionClosing { id: String },
    #[error("{0}")]
    InvalidArgs(String),
    #[error("cannot start a shell in `{cwd}`: {reason}")]
    InvalidCwd { cwd: String, reason: String },
    #[error("{0}")]
    ShellStartFailed(String),
    #[error(
        "the text has {bytes} bytes, more than the {limit} that one send takes: write it to a file or send it in parts; nothing was typed"
    )]
    InputTooLarge { bytes: u64, limit: u64 },
    #[error(
        "a line of the text has {bytes} bytes, and the terminal is in line mode, where a line takes {limit}: send shorter lines, write the text to a file, or send it at the shell's prompt, which takes any length; nothing was typed"
    )]
    LineTooLong { bytes: u64, limit: u64 },
    #[error(
        "a line of the text has {bytes} bytes, and the program that it is for reads lines of at most {limit}: send shorter lines, or write the text to a file; the {typed} bytes before it were typed, it and what follows were not"
    )]
    LaterLineTooLong { bytes: u64, limit: u64, typed: u64 },
    #[error("no foreground process group could be resolved, so no signal was sent")]
    NoForegroundGroup,
    #[error("SIGKILL would end the session's own shell: use terminal_close to end the session")]
    ShellKillRefused,
    #[error("{0}")]
    CloseIncomplete(String),
    #[error("{reason}")]
    Cancelled { reason: String },
    #[error(
        "{what} is not supported by the backend of this terminal session: read it page by page"
    )]
    NotSupported { what: &'static str },
    #[error("{0}")]
    Backend(String),
}

impl TerminalError {
    /// Stable code for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::DuplicateBackend { .. } => "DUPLICATE_BACKEND",
            Self::NoBackend { .. } | Self::BackendGone { .. } => "NO_BACKEND",
            Self::DuplicateName { .. } => "DUPLICATE_NAME",
            Self::OwnerNotLive { .. } => "OWNER_NOT_LIVE",
            Self::ServiceDisposing => "SERVICE_DISPOSING",
            Self::NoSession { .. } => "NO_SESSION",
            Self::ForeignSession { .. } => "FOREIGN_SESSION",
            Self::SendActive { .. } => "SEND_ACTIVE",
            Self::LeaseHeld { .. } => "LEASE_HELD",
            Self::SecretShown { .. } => "SECRET_SHOWN",
            Self::SessionExited { .. }
            | Self::SessionClosing { .. }
            | Self::LimitReached { .. } => "SESSION_EXITED",
            Self::TooManySessions { .. } => "TOO_MANY_SESSIONS",
            Self::InvalidArgs(_) => "INVALID_ARGS",
            Self::InvalidCwd { .. } => "INVALID_CWD",
            Self::ShellStartFailed(_) => "SHELL_START_FAILED",
            Self::InputTooLarge { .. } => "INPUT_TOO_LARGE",
            Self::LineTooLong { .. } | Self::LaterLineTooLong { .. } => "LINE_TOO_LONG",
            Self::NoForegroundGroup => "NO_FOREGROUND_GROUP",
            Self::ShellKillRefused => "SHELL_KILL_REFUSED",
            Self::CloseIncomplete(_) => "CLOSE_INCOMPLETE",
            Self::Cancelled { .. } => "CANCELLED",
            Self::NotSupported { .. } => "NOT_SUPPORTED",
            Self::Backend(_) => "BACKEND_FAILED",
        }
    }
}
