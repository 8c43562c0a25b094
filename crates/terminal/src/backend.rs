//! What a backend implements: opening a session, and one session's operations.
//!
//! Guarantees expected of every backend:
//! - [`TerminalBackend::open`] returns a session that is ready for its first send, or an error
//!   with nothing left over; it watches [`OpenRequest::cancel`] and undoes what it began. After a
//!   cancellation it may also return the session, whole or half open: it is closed, never used.
//!   Where even undoing failed, the error is [`TerminalError::CloseIncomplete`];
//! - [`TerminalSession::close`] returns `Ok` only when every process of the session is gone, may
//!   be called again after a failure, and settles a live send as `session_exit`;
//! - nothing here fences anybody: that is the registry's.

use std::{fmt, sync::Arc, time::Duration};

use agents::Agent;
use dsh_core::{Cancel, async_trait};
use serde::{Deserialize, Serialize};

use crate::{
    changes::Changes,
    error::TerminalError,
    keys::KeyPress,
    outcome::{Foreground, ReadPage, SearchPage, SendOutcome, SessionStatus},
    screen::ScreenSnapshot,
    waiting::{WaitOutcome, WaitRequest},
    watching::{ByHand, Watcher},
};

/// Opaque id of a published session, `pty-N`. Minted by the registry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub(crate) String);

impl SessionId {
    /// The id as the model writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its number, for ordering.
    pub(crate) fn number(&self) -> u64 {
        self.0.trim_start_matches("pty-").parse().unwrap_or_default()
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Opens one type of session.
///
/// A whole backend, whose sessions say everything back at once:
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use agents::{AgentRegistry, AgentSpec};
/// use dsh_core::{Cancel, Scope, async_trait, lock};
/// use terminal::*;
///
/// struct Echo;
///
/// #[async_trait]
/// impl TerminalBackend for Echo {
///     fn kind(&self) -> &str {
///         "echo"
///     }
///
///     async fn open(&self, _: OpenRequest) -> Result<Arc<dyn TerminalSession>, TerminalError> {
///         Ok(Arc::new(Session::default()))
///     }
/// }
///
/// /// The lines that were shown.
/// #[derive(Default)]
/// struct Session(Mutex<Vec<String>>);
///
/// #[async_trait]
/// impl TerminalSession for Session {
///     fn pid(&self) -> Option<u32> {
///         None
///     }
///     fn motd(&self) -> String {
///         "Say something.".to_owned()
///     }
///     fn status(&self) -> SessionStatus {
///         SessionStatus::Running
///     }
///     fn start_send(&self, send: SendRequest) -> Result<Arc<dyn SendOperation>, TerminalError> {
///         lock(&self.0).push(send.text.clone());
///         Ok(Arc::new(Settled { unread: Mutex::new(send.text.clone()), text: send.text }))
///     }
///     async fn read(&self, page: ReadRequest) -> Result<ReadPage, TerminalError> {
///         let Lines::Newest(offset) = page.lines else {
///             return Err(TerminalError::NotSupported { what: "reading by number" });
///         };
///         let lines = lock(&self.0).clone();
///         let newest_first = lines.iter().rev().skip(offset as usize).take(page.count as usize);
///         let mut shown: Vec<&str> = newest_first.map(String::as_str).collect();
///         shown.reverse();
///         Ok(ReadPage {
///             text: shown.join("\n"),
///             total_lines: lines.len() as u64,
///             line_begin: offset,
///             line_end: offset + shown.len() as u64,
///             truncated: false,
///             first_line: None,
///             lost: None,
///         })
///     }
///     async fn signal(&self, _: Signal) -> Result<SignalReceipt, TerminalError> {
///         Err(TerminalError::NoForegroundGroup)
///     }
///     async fn close(&self, _: CloseRequest) -> Result<(), TerminalError> {
///         Ok(())
///     }
/// }
///
/// /// An exchange that was over as soon as it began.
/// struct Settled {
///     text: String,
///     unread: Mutex<String>,
/// }
///
/// #[async_trait]
/// impl SendOperation for Settled {
///     async fn done(&self) -> Result<SendOutcome, TerminalError> {
///         Ok(SendOutcome {
///             viewport: self.text.clone(),
///             wait_reason: WaitReason::StdinRead,
///             session_status: SessionStatus::Running,
///             truncated: false,
///             missing: None,
///             last_command: None,
///             state: None,
///             input: None,
///             limit: None,
///             repaired: Vec::new(),
///             left: Vec::new(),
///             unpressed: 0,
///             echoed: true,
///         })
///     }
///     fn is_settled(&self) -> bool {
///         true
///     }
///     async fn read_output(&self) -> OutputDelta {
///         OutputDelta { text: std::mem::take(&mut lock(&self.unread)), truncated: false }
///     }
///     fn subscribe(&self) -> Box<dyn OutputSubscription> {
///         Box::new(Over)
///     }
///     fn cancel(&self, _: &str) -> bool {
///         false
///     }
/// }
///
/// struct Over;
///
/// #[async_trait]
/// impl OutputSubscription for Over {
///     async fn next(&mut self) -> Option<OutputDelta> {
///         None
///     }
/// }
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let scope = Scope::root("example");
/// let agents = Arc::new(AgentRegistry::new(scope.child("agents")?));
/// let terminals = TerminalRegistry::new(&scope, Arc::clone(&agents))?;
/// // A plugin does this with the service it injects and its own scope.
/// terminals.register_backend(&scope, Arc::new(Echo))?;
///
/// let owner = agents.create(AgentSpec { id: None, workspace_root: "/".into() })?;
/// let echo = SpawnRequest { kind: "echo".to_owned(), ..SpawnRequest::default() };
/// let id = terminals.spawn(&owner, echo, &Cancel::new()).await?.session.session_id;
/// let hello = SendRequest {
///     text: "hello".to_owned(),
///     submit: true,
///     background: false,
///     cancel: Cancel::new(),
/// };
/// let outcome = terminals.start_send(&owner, id.as_str(), hello)?.done().await?;
/// assert_eq!(outcome.viewport, "hello");
/// scope.dispose().await?;
/// # anyhow::Ok(())
/// # })?;
/// # anyhow::Ok(())
/// ```
#[async_trait]
pub trait TerminalBackend: Send + Sync {
    /// The stable, non-empty type that `terminal_open` names.
    fn kind(&self) -> &str;

    /// Opens a session. See the module for what is promised.
    async fn open(&self, request: OpenRequest) -> Result<Arc<dyn TerminalSession>, TerminalError>;
}

/// Everything a backend learns about a session it shall open.
#[derive(Clone)]
pub struct OpenRequest {
    /// The id under which the session will be published.
    pub session_id: SessionId,
    /// The agent that will own it. A relative or missing `cwd` is resolved against its workspace.
    pub owner: Arc<Agent>,
    /// Working directory as the caller wrote it.
    pub cwd: Option<String>,
    /// Cancelled when the caller gives up, the owner goes, or the service stops.
    pub cancel: Cancel,
    /// To be told whenever a send of the session has settled or its top-level process has ended, for
    /// whoever follows what the sessions do.
    pub changes: Changes,
}

/// A signal that may be sent to the foreground process group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are POSIX's")]
pub enum Signal {
    #[serde(rename = "SIGINT")]
    Interrupt,
    #[serde(rename = "SIGTERM")]
    Terminate,
    #[serde(rename = "SIGKILL")]
    Kill,
    #[serde(rename = "SIGTSTP")]
    Stop,
    #[serde(rename = "SIGHUP")]
    HangUp,
}

impl Signal {
    /// Every one, in the order in which they are offered.
    pub const ALL: [Self; 5] =
        [Self::Interrupt, Self::Terminate, Self::Kill, Self::Stop, Self::HangUp];

    /// POSIX name, such as `SIGINT`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::Kill => "SIGKILL",
            Self::Stop => "SIGTSTP",
            Self::HangUp => "SIGHUP",
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Longest grace when not a caller but the end of an owner or of the host closes a session.
pub const DISPOSAL_GRACE: Duration = Duration::from_millis(500);

/// How to end a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseRequest {
    /// Why, for the backend's diagnostics.
    pub reason: String,
    /// Longest time that processes may take to end by themselves; none where the backend's own
    /// configuration decides.
    pub grace: Option<Duration>,
}

impl CloseRequest {
    /// By the end of an owner or of the host, with [`DISPOSAL_GRACE`].
    pub fn at_once(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), grace: Some(DISPOSAL_GRACE) }
    }
}

/// A signal that was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalReceipt {
    /// The process group that received it.
    pub target_pgid: i32,
}

/// One exchange to start. What it types may be a secret: its debug form does not show it.
#[derive(Clone)]
pub struct SendRequest {
    /// What to type.
    pub text: String,
    /// Whether Enter follows.
    pub submit: bool,
    /// No absolute bound, and idleness does not end it while the foreground is visibly busy.
    pub background: bool,
    /// Cancelling it is the same as [`SendOperation::cancel`].
    pub cancel: Cancel,
}

impl fmt::Debug for SendRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendRequest")
            .field("bytes", &self.text.len())
            .field("submit", &self.submit)
            .field("background", &self.background)
            .finish_non_exhaustive()
    }
}

/// Keys to press: an exchange like a send's.
#[derive(Clone)]
pub struct KeysRequest {
    /// In this order. Whoever waits has taken one that ends something (Enter, Escape, an interrupt)
    /// before the next one is pressed.
    pub keys: Vec<KeyPress>,
    /// Cancelling it is the same as [`SendOperation::cancel`].
    pub cancel: Cancel,
}

impl fmt::Debug for KeysRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeysRequest").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

/// A size for the window of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct WindowSize {
    pub rows: u16,
    pub columns: u16,
}

impl WindowSize {
    /// Most rows and columns.
    pub const MOST: Self = Self { rows: 500, columns: 1000 };
    /// Fewest: the widest character has two columns.
    pub const FEWEST: Self = Self { rows: 1, columns: 2 };
}

/// A page of what was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadRequest {
    /// Which lines.
    pub lines: Lines,
    /// Most lines to return; at least 1.
    pub count: u64,
}

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// It ends with the line that has so many newer ones behind it. Under a bound it loses its
    /// oldest lines.
    Newest(u64),
    /// It begins with the line of this absolute number, counted from 0 since the session began;
    /// such a page does not move while output arrives. Under a bound it loses its newest lines.
    From(u64),
}

impl ReadRequest {
    /// `count` lines, of which the newest has `offset` newer ones behind it.
    pub const fn newest(offset: u64, count: u64) -> Self {
        Self { lines: Lines::Newest(offset), count }
    }

    /// `count` lines from absolute number `line` on.
    pub const fn from_line(line: u64, count: u64) -> Self {
        Self { lines: Lines::From(line), count }
    }
}

impl Default for ReadRequest {
    fn default() -> Self {
        Self::newest(0, 500)
    }
}

/// What to look for in what was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchRequest {
    /// A regular expression in the syntax of the crate `regex`, applied to each logical line.
    pub pattern: String,
    /// Upper and lower case are the same.
    pub ignore_case: bool,
    /// Only lines before this absolute number: where an earlier search says that it stopped.
    pub before: Option<u64>,
    /// Most matches to return; at least 1.
    pub max_matches: u64,
    /// Lines to give before and after each match; a backend may give fewer.
    pub context: u64,
}

impl SearchRequest {
    /// The newest 20 lines that match, without context.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            ignore_case: false,
            before: None,
            max_matches: 20,
            context: 0,
        }
    }
}

/// One live session.
#[async_trait]
pub trait TerminalSession: Send + Sync {
    /// Process id of the session's top-level process, where there is one on this machine.
    fn pid(&self) -> Option<u32>;

    /// What was shown until the session was ready.
    fn motd(&self) -> String;

    /// Whether the top-level process still runs. Never blocks.
    fn status(&self) -> SessionStatus;

    /// The limit at which the session was ended, in words for the model; none for any other end.
    fn limit(&self) -> Option<String> {
        None
    }

    /// Reserves the session and starts one exchange. Never blocks: what can be refused at once
    /// is refused here, everything later is the operation's outcome.
    fn start_send(&self, request: SendRequest) -> Result<Arc<dyn SendOperation>, TerminalError>;

    /// Reads a page of what was shown.
    async fn read(&self, request: ReadRequest) -> Result<ReadPage, TerminalError>;

    /// Searches what was shown, newest lines first. A backend without a search leaves this as it
    /// is: `NOT_SUPPORTED`.
    async fn search(&self, request: SearchRequest) -> Result<SearchPage, TerminalError> {
        drop(request);
        Err(TerminalError::NotSupported { what: "searching" })
    }

    /// Reserves the session and presses keys, as [`start_send`](Self::start_send) types a text. A
    /// backend that knows no keys leaves this, and what follows, as it is: `NOT_SUPPORTED`.
    fn start_keys(&self, request: KeysRequest) -> Result<Arc<dyn SendOperation>, TerminalError> {
        drop(request);
        Err(TerminalError::NotSupported { what: "pressing keys" })
    }

    /// What is shown now, also after the session has exited.
    async fn screen(&self) -> Result<ScreenSnapshot, TerminalError> {
        Err(TerminalError::NotSupported { what: "showing the screen" })
    }

    /// Changes the size of the window, which tells the foreground.
    async fn resize(&self, size: WindowSize) -> Result<(), TerminalError> {
        let _ = size;
        Err(TerminalError::NotSupported { what: "changing the size" })
    }

    /// Waits; types nothing and needs no reservation, so it works beside a send. The end of the
    /// session ends it. Dropping the future ends the wait.
    async fn wait(&self, request: WaitRequest) -> Result<WaitOutcome, TerminalError> {
        drop(request);
        Err(TerminalError::NotSupported { what: "waiting" })
    }

    /// Watches what is shown from now on, whoever types; costs the session nothing that grows with
    /// the watchers, and never delays it.
    async fn watch(&self) -> Result<Box<dyn Watcher>, TerminalError> {
        Err(TerminalError::NotSupported { what: "watching" })
    }

    /// Types for a person, also beside a send that runs: never in the middle of a line of it. What
    /// comes of it belongs to that send, or else to the next one, but a status of a command that the
    /// person gave is not told as the agent's.
    ///
    /// [`ByHand::typed`] is called as soon as it is typed, also if this future was dropped
    /// meanwhile. `SECRET_SHOWN` for a secret that the terminal would show, `INPUT_TOO_LARGE` for
    /// more than the terminal takes at the moment; nothing was typed then.
    async fn type_by_hand(&self, input: ByHand) -> Result<(), TerminalError> {
        drop(input);
        Err(TerminalError::NotSupported { what: "typing by hand" })
    }

    /// Signals the foreground process group, never a guess.
    async fn signal(&self, signal: Signal) -> Result<SignalReceipt, TerminalError>;

    /// Ends the session; resolves when all of its processes are gone.
    async fn close(&self, request: CloseRequest) -> Result<(), TerminalError>;
}

/// How much of what a send types is known to be shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Bytes of its text, from the beginning, that were shown.
    pub bytes: usize,
    /// Some of it was typed where the terminal does not show it: it may be a secret.
    pub hidden: bool,
}

/// One exchange that was started. Settles exactly once.
#[async_trait]
pub trait SendOperation: Send + Sync {
    /// Waits for the settlement. Any number of callers get the same answer; dropping the future
    /// does not cancel the exchange.
    async fn done(&self) -> Result<SendOutcome, TerminalError>;

    /// Whether it has settled. The session takes the next send from then on.
    fn is_settled(&self) -> bool;

    /// Takes what was shown since the last call (for jobs: one consumer).
    async fn read_output(&self) -> OutputDelta;

    /// Follows the output without consuming it (for progress: any number of followers).
    fn subscribe(&self) -> Box<dyn OutputSubscription>;

    /// How much of the text is known to be shown by now. Never blocks.
    fn shown(&self) -> Shown {
        Shown::default()
    }

    /// Resolves as soon as something is known of that, at the latest with the settlement.
    async fn shown_known(&self) {}

    /// Who has the terminal, while the exchange lives and where that can be told.
    async fn foreground(&self) -> Option<Foreground> {
        None
    }

    /// Asks for the end: a real SIGINT to the foreground group. False once settled.
    fn cancel(&self, reason: &str) -> bool;
}

/// Output since an earlier point. A line that was rewritten after part of it was delivered comes
/// again whole, on a line of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputDelta {
    /// What is new.
    pub text: String,
    /// Something between the earlier point and this text was dropped by retention.
    pub truncated: bool,
}

/// A follower of one exchange's output.
#[async_trait]
pub trait OutputSubscription: Send {
    /// Waits for new output; `None` once the exchange has settled and all of it was returned.
    async fn next(&mut self) -> Option<OutputDelta>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_in_no_debug_form() {
        let send = SendRequest {
            text: "hunter2".to_owned(),
            submit: true,
            background: false,
            cancel: Cancel::new(),
        };
        let keys = [KeyPress::text("hunter2"), KeyPress::character('h')];
        let keys = KeysRequest { keys: keys.to_vec(), cancel: Cancel::new() };
        let said = format!("{send:?} {keys:?} {:?}", keys.keys);
        assert_eq!(
            said,
            "SendRequest { bytes: 7, submit: true, background: false, .. } \
             KeysRequest { keys: 2, .. } \
             [KeyPress { key: Text(7 bytes), modifiers: Modifiers { control: false, alt: false, \
             shift: false } }, KeyPress { key: Character, modifiers: Modifiers { control: false, alt: \
             false, shift: false } }]"
        );
    }
}
