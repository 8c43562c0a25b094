//! What the kernel tells about a terminal and the processes in its foreground.
//!
//! Facts only, each with its own "not known": a provider without `/proc`, without permission, or
//! on another system leaves fields empty, and nothing above may read an empty field as a no.

/// One look at the terminal, taken in the order that makes the fences sound: input fence first,
/// then foreground, readers and modes, then the threads, then modes again, then the output fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Bytes handed to [`write`](crate::TerminalProcess::write) that the terminal has not taken.
    pub unwritten: usize,
    /// Input fence: the terminal holds input that a program could read. In canonical mode an
    /// unfinished line is not readable and does not count.
    pub unread_input: Option<bool>,
    /// Foreground process group of the terminal.
    pub foreground: Option<i32>,
    /// Some thread is blocked inside `read(2)` on this terminal (zero-byte read). `None` for a
    /// fast look, and where the primitive failed its self-test.
    pub blocked_reader: Option<bool>,
    /// Terminal modes, read after the threads.
    pub modes: Option<Modes>,
    /// How far the processes were looked at.
    pub scan: Scan,
    /// The processes that were looked at: with [`Scan::Full`] every process of the foreground
    /// group, with their threads; with [`Scan::Fast`] the one that waits on the terminal, if it was
    /// found.
    pub processes: Vec<ProcessFacts>,
    /// Processes outside the group, of other sessions, that hold the terminal and were seen to wait
    /// for it since the group came to the foreground. Looked for when somebody is blocked in a read
    /// and nobody of the group is it, and when the modes are a program's own and nobody of the group
    /// waits.
    pub outside: Vec<ProcessFacts>,
    /// Processes outside the group on which a member waits: its descendants in other sessions, where
    /// it waits for a child, and the session's writers of the pipe it reads.
    pub awaited: Vec<ProcessFacts>,
    /// Terminals behind this one, where a process that was looked at waits for their masters.
    pub inner: Vec<InnerTerminal>,
    /// Output fence: the terminal holds output that was not read yet.
    pub unread_output: bool,
}

/// A terminal whose master a process holds that waits on an outer one: `script`, a multiplexer. Looked
/// at after the outer one's readers and before its output fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InnerTerminal {
    /// The process that holds the master.
    pub relay: i32,
    /// Input fence of this terminal.
    pub unread_input: Option<bool>,
    /// Some thread is blocked in a read of it, as far as that can be told.
    pub blocked_reader: Option<bool>,
    /// Its modes; none where it cannot be opened.
    pub modes: Option<Modes>,
    /// All of its foreground group; empty where that could not be found.
    pub processes: Vec<ProcessFacts>,
    /// Terminals behind this one.
    pub inner: Vec<InnerTerminal>,
    /// Output fence of this terminal: it holds output that the relay has not read. None without the
    /// right to ask.
    pub unread_output: Option<bool>,
}

/// How far a probe shall look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// At those who are likely to wait on the terminal: tens of microseconds.
    Fast,
    /// At everybody in the foreground.
    Full,
}

/// How far a probe looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// At most the thread that waited last time and the group's leader were looked at; nobody,
    /// where input is still unread.
    Fast,
    /// All threads of all processes of the foreground group were looked at.
    Full,
    /// Nothing of the foreground group has run since the last full scan, which stands: its
    /// processes are given again.
    Unchanged,
    /// Processes cannot be seen at all here.
    Blind,
}

/// Modes of the terminal line.
#[expect(clippy::struct_excessive_bools, reason = "the kernel's, each by itself")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    /// `ICANON`: input is taken by lines.
    pub canonical: bool,
    /// `ECHO`: the terminal shows what is typed.
    pub echo: bool,
    /// `ISIG`: control characters make signals.
    pub signals: bool,
    /// What becomes of Enter.
    pub enter: Enter,
    /// A newline that is typed is one (no `INLCR`).
    pub newline: bool,
    /// A read that finds nothing ends after so many milliseconds (`VMIN` 0 and `VTIME`); none when
    /// it waits without end, or not at all.
    pub read_timeout_ms: Option<u64>,
}

/// What a terminal line makes of a carriage return, which Enter sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enter {
    /// It ends the line (`ICRNL`).
    EndsLine,
    /// It is a character like others.
    Character,
    /// It is dropped (`IGNCR`).
    Dropped,
}

/// What shells and their programs rely on of a terminal line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineSetting {
    /// Input is taken by lines, which can be edited (`ICANON`, `IEXTEN`).
    Lines,
    /// What is typed is shown (`ECHO`).
    Echo,
    /// Control characters make signals (`ISIG`).
    Signals,
    /// Enter ends a line (`ICRNL`, and neither `INLCR` nor `IGNCR`).
    Enter,
    /// A newline of the output begins a line (`OPOST`, `ONLCR`).
    Output,
}

/// One process of the foreground group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Process id.
    pub pid: i32,
    /// Its parent.
    pub parent: i32,
    /// Command name as the kernel keeps it (at most 15 bytes).
    pub command: String,
    /// How many threads it has, whether or not they are in `threads`.
    pub thread_count: u32,
    /// CPU time used by all its threads, in nanoseconds; none where it cannot be read.
    pub cpu_ns: Option<u64>,
    /// The threads that were looked at.
    pub threads: Vec<ThreadFacts>,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadFacts {
    /// Thread id; the main thread's equals the process id.
    pub tid: i32,
    /// What it is doing.
    pub wait: Wait,
}

/// What a thread is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// On a processor, or ready to be.
    Running,
    /// In an uninterruptible wait (disk).
    Uninterruptible,
    /// Stopped by job control or a tracer.
    Stopped,
    /// Dead, not yet collected.
    Zombie,
    /// Blocked in a read of this terminal.
    TerminalRead {
        /// The descriptor, in the process's own numbering.
        fd: i32,
    },
    /// Blocked until one of several descriptors is readable, this terminal among them.
    Multiplexed {
        /// By which call.
        call: Multiplexer,
        /// The terminal's descriptor.
        fd: i32,
        /// What else it waits for.
        others: Vec<Descriptor>,
        /// Bound of the wait in milliseconds; none for none.
        timeout_ms: Option<u64>,
    },
    /// Blocked in a read of something else, or until one of several other things is readable. Who
    /// opens a FIFO waits for it, too: for its other end.
    OtherInput {
        /// What it waits for.
        on: Vec<Descriptor>,
        /// Bound of the wait in milliseconds; none for none.
        timeout_ms: Option<u64>,
    },
    /// A timed wait on no descriptor.
    Sleeping,
    /// Waits for a child process.
    Child,
    /// Waits for a signal, and for nothing else, without end.
    Signal,
    /// Waits until another process releases a lock on a file.
    Lock,
    /// Blocked in a write (to a full pipe, to a stopped terminal).
    Writing(Descriptor),
    /// Another blocking call, by name.
    Other(&'static str),
    /// What it does may not be looked at.
    Opaque,
}

/// Calls that wait for several descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the system calls'")]
pub enum Multiplexer {
    Poll,
    Select,
    Epoll,
    IoUring,
}

/// What a descriptor of a looked-at process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Descriptor {
    /// The session's terminal.
    Terminal,
    /// Another terminal.
    OtherTerminal,
    /// A pipe or FIFO to somebody else.
    Pipe,
    /// A pipe both ends of which the process holds: its own wake-up.
    OwnPipe,
    /// A socket.
    Socket,
    /// An `eventfd`.
    EventFd,
    /// A `timerfd`.
    TimerFd,
    /// A `signalfd`.
    SignalFd,
    /// An inotify instance.
    Inotify,
    /// The master side of a pseudo-terminal: the process relays an inner terminal.
    PtyMaster,
    /// A file or device.
    File,
    /// Anything else.
    Other,
    /// It may not be looked at.
    Hidden,
}
