//! The seam: starting a process on a terminal of its own, and what can be done with it.

use std::{
    fmt,
    num::NonZeroU16,
    path::PathBuf,
    time::{Duration, Instant},
};
#[cfg(target_os = "linux")]
use std::{os::fd::OwnedFd, sync::Arc};

use dsh_core::async_trait;

use crate::evidence::{Depth, Evidence, LineSetting, Modes};

/// Starts processes on terminals.
#[async_trait]
pub trait TerminalHost: Send + Sync {
    /// Starts `spec.program` as session leader on a new terminal.
    ///
    /// Fails, with nothing left over, when the working directory or the program is unusable: a
    /// failed `exec` is an error here, never a process that exits at once.
    async fn spawn(&self, spec: TerminalSpec) -> Result<Box<dyn TerminalProcess>, SpawnError>;
}

/// Everything about a process to start. Nothing is inherited from the host but what is named.
#[derive(Clone, Debug)]
pub struct TerminalSpec {
    /// Absolute path of the program.
    pub program: PathBuf,
    /// Its arguments, without the program's own name.
    pub args: Vec<String>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    /// Absolute working directory; must exist.
    pub cwd: PathBuf,
    /// Size of the terminal.
    pub size: TerminalSize,
    /// What it is kept apart by.
    pub isolation: Isolation,
    /// The umask, such as `0o022`. Soft limits and priority are those of a fresh login, as far as the
    /// host may give them; no signal is ignored or blocked.
    pub umask: u16,
    /// What the program, and everything it starts, may not do.
    pub confinement: Confinement,
    /// What the program, and everything it starts, may use.
    pub bounds: Bounds,
}

/// Most of what the processes of a session may use together; nothing that is not named.
///
/// A host has the system hold them to it as far as the system can: see [`TerminalProcess::held`]. What
/// it cannot, whoever asks for a bound has to watch ([`TerminalProcess::usage`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Living processes. A system that counts threads is told a higher number, so that it stops what
    /// gets out of hand and no honest program.
    pub processes: Option<u64>,
    /// CPU time.
    pub cpu: Option<Duration>,
    /// Fail the start where the system does not hold all of them together to memory and processes.
    pub required: bool,
}

/// A bound that the processes of a session have met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// Somebody was killed for want of memory within the bound.
    Memory,
    /// A process or thread was refused: there were this many threads.
    Threads(u64),
    /// All CPU time was used.
    Cpu,
}

/// To which bounds the system holds the processes of a session together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Memory.
    pub memory: bool,
    /// Processes.
    pub processes: bool,
}

/// What keeps a session's processes apart from all others. Names are the wire's.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Nothing but the owner of each process.
    #[default]
    None,
    /// A PID namespace: the session sees and can signal only its own processes, and its leader is
    /// process 1, which no signal of the session ends.
    PidNamespace,
}

/// What holds for a program, and for everything it starts, from its first instruction on.
///
/// A host that cannot bring a confinement about fails the start.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Confinement {
    /// Nothing.
    #[default]
    None,
    /// The rules of this Landlock ruleset, and no new privileges by `exec`.
    #[cfg(target_os = "linux")]
    Landlock(Arc<OwnedFd>),
    /// These namespaces, entered one after the other, and no new privileges by `exec`. A user
    /// namespace comes before what it owns.
    #[cfg(target_os = "linux")]
    Namespaces(Arc<[OwnedFd]>),
}

/// Size of a terminal in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct TerminalSize {
    pub rows: NonZeroU16,
    pub cols: NonZeroU16,
}

/// One process on its terminal, with everything it starts. One task owns it.
///
/// Dropping it without [`terminate`](Self::terminate) kills what can be killed at once, without
/// waiting.
#[async_trait]
pub trait TerminalProcess: Send {
    /// Process id of the session leader.
    fn pid(&self) -> i32;

    /// Waits for whatever happens next, and continues queued writes meanwhile. Cancel-safe.
    ///
    /// New output is appended to `output`, at most a few hundred KiB a call. `deadline` is met
    /// with the precision of a high-resolution timer. After [`Event::Exited`] only output that
    /// was already written comes, then [`Event::OutputEnd`] once.
    async fn next(&mut self, deadline: Option<Instant>, output: &mut Vec<u8>) -> Event;

    /// Reads the output that is there now, without waiting. True if there was any.
    fn drain(&mut self, output: &mut Vec<u8>) -> bool;

    /// Queues input; it is written as far as the terminal takes it, now and in [`next`](Self::next).
    fn write(&mut self, bytes: &[u8]);

    /// Bytes of input that the terminal has not taken: queued, or lost because it was gone. Told
    /// until they are taken or [`flush_input`](Self::flush_input) forgets them.
    fn unwritten(&self) -> usize;

    /// Forgets the input that no program has read: what is [`unwritten`](Self::unwritten) and what
    /// the terminal holds. How many bytes are known to be dropped: of those in the terminal only
    /// finished lines in canonical mode, and only what the reader's side holds.
    fn flush_input(&mut self) -> u64;

    /// Modes of the terminal line now; none when they cannot be read.
    fn modes(&self) -> Option<Modes>;

    /// Settings of the line that are not as they were when the process was started. A line editor
    /// that waits has some of its own.
    fn changed_settings(&self) -> Vec<LineSetting>;

    /// Makes these settings what they were when the process was started; the ones that were not.
    /// Whoever reads the terminal meanwhile reads it under them from then on.
    fn restore_settings(&mut self) -> Vec<LineSetting>;

    /// Looks at the terminal and its foreground.
    async fn probe(&mut self, depth: Depth) -> Evidence;

    /// Whether another full probe would find the same as the last one, but for output: nobody waited
    /// for the terminal then, and nobody who was looked at has run since. A few times in a row it
    /// may be true; what else could change is then to be looked at again. Costs next to nothing.
    fn rests(&mut self) -> bool;

    /// Bytes of input that the terminal holds and no program has read (in canonical mode it counts
    /// finished lines only); none where it does not tell, or is full and there may be more behind.
    fn unread_bytes(&self) -> Option<u64>;

    /// Signals the terminal's foreground process group with a POSIX signal name such as `SIGINT`;
    /// the group it went to. With `spare_leader` never the session leader's own group.
    fn signal_foreground(&mut self, signal: &str, spare_leader: bool) -> Result<i32, SignalError>;

    /// How the session leader ended; none while it lives or nobody has noticed yet.
    fn exit_status(&self) -> Option<ExitStatus>;

    /// Whether job control has stopped the leader of process group `group`; false where that
    /// cannot be seen.
    fn is_stopped(&self, group: i32) -> bool;

    /// Whether process `pid` has a file in its memory whose name begins with `name`; none where that
    /// cannot be seen.
    fn has_loaded(&self, pid: i32, name: &str) -> Option<bool>;

    /// The session leader's working directory; none when it cannot be read.
    fn cwd(&self) -> Option<PathBuf>;

    /// What all processes that were started from here use together; none where that cannot be seen.
    async fn usage(&mut self) -> Option<Usage> {
        None
    }

    /// The living processes that were started from here, the session leader apart, as number and command
    /// name, children first; empty where they cannot be seen.
    async fn living(&mut self) -> Vec<(i32, String)> {
        Vec::new()
    }

    /// To which of its [`Bounds`] the system holds all processes of the session together.
    fn held(&self) -> Held {
        Held::default()
    }

    /// The bound that the system knows to be met; none where it does not tell. Costs next to nothing,
    /// and nothing without bounds.
    fn met(&self) -> Option<Met> {
        None
    }

    /// Changes the size of the terminal.
    fn resize(&mut self, size: TerminalSize) -> std::io::Result<()>;

    /// Ends every process that was ever started from here: the descendants by TERM, `grace`, KILL;
    /// when they are gone the leader by HUP, the rest of the grace, KILL; then whoever a last look
    /// finds, by KILL. Gone means gone by process id **and** start time.
    ///
    /// Input that was not read is dropped first. Output is drained meanwhile into `output`. Takes as
    /// long as the processes, and not much longer than `grace` if all obey KILL.
    ///
    /// May be called again after a failure. Processes that we may not signal fail the first attempt;
    /// a later one that finds only these logs them, leaves them and succeeds.
    async fn terminate(
        &mut self,
        grace: Duration,
        output: &mut Vec<u8>,
    ) -> Result<(), TerminateError>;
}

/// What the processes of a session use together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Living processes.
    pub processes: u64,
    /// Resident memory that is not shared with files or other processes.
    pub memory_bytes: u64,
    /// CPU time of the living and of the dead: of all of them, or, where the system does not count
    /// that, of those whom the living have waited for.
    pub cpu: Duration,
}

/// How much of what sessions use a machine has; none where it does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// Main memory.
    pub memory_bytes: Option<u64>,
    /// Most processes at a time.
    pub processes: Option<u64>,
    /// Most pseudo-terminals at a time.
    pub terminals: Option<u64>,
}

/// What happened to a process on its terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Output was appended.
    Output,
    /// A program read input that a full look had found unread or that waited for room, or
    /// something else made a new look worth while.
    Activity,
    /// The session leader ended.
    Exited(ExitStatus),
    /// No more output will come.
    OutputEnd,
    /// The deadline passed.
    Deadline,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// By itself, with this status.
    Code(i32),
    /// By the signal with this POSIX name, such as `SIGKILL`.
    Signal(String),
    /// Nobody could tell.
    Unknown,
}

/// A process could not be started.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields are named after the placeholders in the message")]
pub enum SpawnError {
    #[error("working directory `{path}`: {reason}")]
    Cwd { path: PathBuf, reason: String },
    #[error("cannot run `{program}`: {source}")]
    Exec { program: PathBuf, source: std::io::Error },
    #[error("cannot set up a terminal ({step}): {source}")]
    Terminal { step: &'static str, source: std::io::Error },
}

/// A signal could not be sent.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields are named after the placeholders in the message")]
pub enum SignalError {
    #[error("the terminal has no foreground process group")]
    NoForegroundGroup,
    #[error("the session leader itself is in the foreground and was to be spared")]
    Leader,
    #[error("signal to process group {pgid}: {source}")]
    Failed { pgid: i32, source: std::io::Error },
}

/// A process that could not be ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Survivor {
    pub pid: i32,
    pub command: String,
    pub reason: String,
}

impl fmt::Display for Survivor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {}): {}", self.command, self.pid, self.reason)
    }
}

/// Some processes are still there.
#[derive(Debug, thiserror::Error)]
#[error("processes survive: {}", list(.survivors))]
pub struct TerminateError {
    /// The survivors.
    pub survivors: Vec<Survivor>,
}

fn list(survivors: &[Survivor]) -> String {
    survivors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
