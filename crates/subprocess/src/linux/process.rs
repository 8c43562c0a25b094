//! The process behind the seam: bytes in both directions, the exit, the deadline.
//!
//! - Nothing blocks and nothing is buffered here but input the terminal does not take yet; while
//!   input is queued, output is read all the same, so the echo cannot stop both sides.
//! - The exit comes from a pidfd, the end of output from "exited and read until empty": other
//!   holders of the terminal may keep it open for ever.
//! - [`next`](TerminalProcess::next) keeps its state in the process, never in its future.

use std::{
    collections::{HashSet, VecDeque},
    io,
    os::fd::OwnedFd,
    path::PathBuf,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use dsh_core::async_trait;
use rustix::{
    buffer::spare_capacity,
    fs::inotify,
    io::{Errno, read, write},
    process::{Pid, kill_process_group},
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    },
};
use tokio::io::{Interest, unix::AsyncFd};

use super::{
    at_once,
    members::Whose,
    probe::Prober,
    procfs::Proc,
    pty::{Pty, at},
    signals,
    spawn::{self, Leader},
    sys,
    target::Identity,
    teardown, usage,
};
use crate::{
    evidence::{Depth, Evidence, LineSetting, Modes},
    host::{
        Event, ExitStatus, Held, Met, SignalError, SpawnError, TerminalProcess, TerminalSize,
        TerminalSpec, TerminateError, Usage,
    },
};

/// Output of one event, and of one turn; the terminal gives 4 KiB a read. Whoever prints without end
/// gets no more at once than others can wait for.
const OUTPUT_AT_A_TURN: usize = 32 * 1024;
/// More than a terminal holds: all that is there when somebody asks for it.
const OUTPUT_AT_ONCE: usize = 256 * 1024;
/// More than a terminal holds: what is read after the exit beyond this was written after it.
const OUTPUT_AFTER_EXIT: usize = 256 * 1024;
/// Free room in the caller's buffer before each read.
const READ_ROOM: usize = 16 * 1024;

/// One process on its terminal.
pub(crate) struct LocalProcess {
    pub(super) pty: Pty,
    pub(super) leader: Leader,
    pub(super) proc: Option<Arc<Proc>>,
    prober: Prober,
    input: VecDeque<u8>,
    /// Input that will never be taken, because the terminal was gone; nobody has asked for it to be
    /// forgotten yet.
    lost: usize,
    /// Watches for room for more, while input is queued. Not longer: a terminal has room again
    /// whenever a program reads a byte, and each time would wake us.
    room: Option<AsyncFd<OwnedFd>>,
    /// Watches reads of the terminal; none where the system has no instance left.
    reads: Option<AsyncFd<OwnedFd>>,
    /// The watch is set. It is for one read: every one costs the reader and us a wake-up, and is
    /// of use only while input waits for longer than a moment.
    reads_watched: bool,
    deadline: Deadline,
    output: Output,
    /// The last read found nothing.
    empty: bool,
    /// Bytes that were read since nothing was found, or since everybody else had their turn.
    turn: usize,
    exit: Option<ExitStatus>,
    /// Those whom the last attempt to end the session was not permitted to signal.
    pub(super) refusing: HashSet<Identity>,
}

/// How much output is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    /// The leader lives.
    Open,
    /// The terminal is gone although the leader lives.
    Lost,
    /// The leader is gone; this many bytes are still read.
    Ending(usize),
    /// All read; the end was not told yet.
    Read,
    /// The end was told.
    Ended,
}

/// The timer behind the deadline of [`TerminalProcess::next`].
struct Deadline {
    timer: AsyncFd<OwnedFd>,
    armed: Option<Instant>,
    /// This deadline was met already; met again it yields to everything else.
    met: Option<Instant>,
}

/// What a read loop ended with.
pub(super) enum Drained {
    Empty,
    Bound,
    Hangup,
}

impl LocalProcess {
    /// Opens a terminal and starts `spec` on it. Blocks for a few milliseconds at most; needs a
    /// tokio runtime. Without `proc`, processes are not looked at.
    pub(crate) fn start(
        spec: &TerminalSpec,
        proc: Option<Arc<Proc>>,
        reader_test: bool,
    ) -> Result<Self, SpawnError> {
        let pty = Pty::open(spec.size)?;
        let reads = read_watch();
        let deadline = Deadline::new().map_err(at("create a timer"))?;
        let leader = spawn::start(spec, &pty)?;
        let prober = Prober::new(leader.pid, pty.identity(), reader_test);
        Ok(Self {
            pty,
            leader,
            proc,
            prober,
            input: VecDeque::new(),
            lost: 0,
            room: None,
            reads,
            reads_watched: false,
            deadline,
            output: Output::Open,
            empty: true,
            turn: 0,
            exit: None,
            refusing: HashSet::new(),
        })
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        deadline: Option<Instant>,
        output: &mut Vec<u8>,
    ) -> Poll<Event> {
        let due = deadline.is_some_and(|it| it <= Instant::now());
        if due && self.deadline.met != deadline {
            self.deadline.met = deadline;
            return Poll::Ready(Event::Deadline);
        }
        self.poll_write(cx);
        // Endless output must not hide the exit.
        if !self.empty
            && let Poll::Ready(event) = self.poll_exit(cx)
        {
            return Poll::Ready(event);
        }
        if let Poll::Ready(event) = self.poll_output(cx, output) {
            return Poll::Ready(event);
        }
        if let Poll::Ready(event) = self.poll_exit(cx) {
            return Poll::Ready(event);
        }
        if self.poll_reads(cx).is_ready() {
            self.reads_watched = false;
            // A reader made room; the terminal does not always say so.
            self.write_queued();
            return Poll::Ready(Event::Activity);
        }
        if due {
            return Poll::Ready(Event::Deadline);
        }
        match deadline {
            Some(deadline) => self.deadline.poll(cx, deadline),
            None => Poll::Pending,
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) {
        self.write_queued();
        while !self.input.is_empty() {
            let Some(room) = self.room.take().or_else(|| self.pty.watch_room()) else {
                // No descriptor is left for it: the next event is the next try.
                return;
            };
            let readiness = match room.poll_write_ready(cx) {
                Poll::Ready(Ok(mut writable)) => {
                    self.write_queued();
                    if !self.input.is_empty() {
                        writable.clear_ready();
                    }
                    Poll::Ready(())
                }
                Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
            };
            self.room = Some(room);
            if readiness.is_pending() {
                return;
            }
        }
        self.room = None;
    }

    /// Writes what the terminal takes right now.
    fn write_queued(&mut self) {
        if self.exit.is_some() {
            // The leader's end hung the terminal up. It would still take everything, for nobody.
            return self.lose_input();
        }
        while !self.input.is_empty() {
            match write_front(self.pty.master().get_ref(), &mut self.input) {
                Ok(()) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return self.watch_reads(),
                Err(_) => return self.lose_input(),
            }
        }
    }

    /// Makes the next read of the terminal an event.
    fn watch_reads(&mut self) {
        if self.reads_watched {
            return;
        }
        if let Some(reads) = &self.reads
            && let Some(name) = self.pty.name()
        {
            let once = inotify::WatchFlags::ACCESS | inotify::WatchFlags::ONESHOT;
            self.reads_watched = inotify::add_watch(reads.get_ref(), name, once).is_ok();
        }
    }

    /// The terminal is gone, or to go: nobody will ever take this.
    fn lose_input(&mut self) {
        self.lost += self.input.len();
        self.input.clear();
    }

    fn poll_output(&mut self, cx: &mut Context<'_>, output: &mut Vec<u8>) -> Poll<Event> {
        match self.output {
            Output::Open => loop {
                if self.empty {
                    ready!(self.pty.master().poll(cx));
                }
                let before = output.len();
                let drained = drain(self.pty.master().get_ref(), output, OUTPUT_AT_A_TURN);
                // While what was read is made use of, more may come: that is found by reading.
                self.empty = output.len() == before;
                self.turn = if self.empty { 0 } else { self.turn + output.len() - before };
                if matches!(drained, Drained::Hangup) {
                    self.output = Output::Lost;
                }
                if output.len() > before {
                    return Poll::Ready(Event::Output);
                }
                if self.output == Output::Lost {
                    return Poll::Pending;
                }
            },
            Output::Ending(left) => {
                let before = output.len();
                let bound = left.min(OUTPUT_AT_A_TURN);
                let drained = drain(self.pty.master().get_ref(), output, bound);
                let got = output.len() - before;
                self.output = match drained {
                    Drained::Bound if left > got => Output::Ending(left - got),
                    _ => Output::Read,
                };
                if got > 0 { Poll::Ready(Event::Output) } else { self.poll_output(cx, output) }
            }
            Output::Read => {
                self.pty.close_slave();
                self.output = Output::Ended;
                Poll::Ready(Event::OutputEnd)
            }
            Output::Lost | Output::Ended => Poll::Pending,
        }
    }

    fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if self.exit.is_some() && self.output != Output::Open && self.output != Output::Lost {
            return Poll::Pending;
        }
        if self.exit.is_none() {
            // An error of the readiness itself cannot happen for an open pidfd.
            let _readable = ready!(self.leader.pidfd.poll_read_ready(cx));
            self.exit = self.leader.exit_status();
        }
        let Some(status) = self.exit.clone() else { return Poll::Pending };
        self.output = if self.output == Output::Lost {
            Output::Read
        } else {
            Output::Ending(OUTPUT_AFTER_EXIT)
        };
        Poll::Ready(Event::Exited(status))
    }

    fn poll_reads(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !matches!(self.output, Output::Open | Output::Lost) {
            return Poll::Pending;
        }
        let Some(reads) = &self.reads else { return Poll::Pending };
        match ready!(reads.poll_read_ready(cx)) {
            Ok(mut readable) => {
                // One read takes all there is: equal events in a row are merged.
                let mut events = [0u8; 1024];
                let read = read(reads.get_ref(), &mut events);
                readable.clear_ready();
                if read.is_ok() { Poll::Ready(()) } else { self.poll_reads(cx) }
            }
            Err(_) => Poll::Pending,
        }
    }

    /// Remembers the exit once the pidfd says so; for a caller that waited for it elsewhere.
    pub(super) fn note_exit(&mut self) {
        if self.exit.is_none() {
            self.exit = self.leader.exit_status();
        }
    }
}

/// Writes the front of `queue` once.
fn write_front(fd: &OwnedFd, queue: &mut VecDeque<u8>) -> Result<(), Errno> {
    let taken = write(fd, queue.as_slices().0)?;
    queue.drain(..taken);
    Ok(())
}

/// Appends what is there, up to about `bound` bytes.
pub(super) fn drain(fd: &OwnedFd, output: &mut Vec<u8>, bound: usize) -> Drained {
    let end = output.len() + bound;
    while output.len() < end {
        output.reserve(READ_ROOM);
        match read(fd, spare_capacity(output)) {
            Ok(0) => return Drained::Hangup,
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Drained::Empty,
            // EIO: no slave is open any more.
            Err(_) => return Drained::Hangup,
        }
    }
    Drained::Bound
}

/// For watching reads of the terminal; optional, so every failure is "no watch".
fn read_watch() -> Option<AsyncFd<OwnedFd>> {
    let watch =
        inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).ok()?;
    sys::watch(watch, Interest::READABLE).ok()
}

impl Deadline {
    fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer =
            sys::watch(timerfd_create(TimerfdClockId::Monotonic, flags)?, Interest::READABLE)?;
        Ok(Self { timer, armed: None, met: None })
    }

    /// Ready once `deadline`, which was still ahead, has passed.
    fn poll(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<Event> {
        loop {
            // For a later one it stays: output that never pauses would else set it each time.
            if self.armed.is_none_or(|armed| armed > deadline) {
                let left = deadline.saturating_duration_since(Instant::now());
                self.arm(left);
                self.armed = Some(deadline);
            }
            let Poll::Ready(Ok(mut expired)) = self.timer.poll_read_ready(cx) else {
                return Poll::Pending;
            };
            // Setting the timer again clears its count, so it is never read.
            expired.clear_ready();
            self.armed = None;
            if deadline <= Instant::now() {
                self.met = Some(deadline);
                return Poll::Ready(Event::Deadline);
            }
        }
    }

    fn arm(&self, left: Duration) {
        // Zero would disarm it.
        let left = left.max(Duration::from_nanos(1));
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Itimerspec {
            it_interval: zero,
            it_value: Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            },
        };
        if let Err(error) =
            timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &value)
        {
            tracing::error!(%error, "a deadline could not be set");
        }
    }
}

#[async_trait]
impl TerminalProcess for LocalProcess {
    fn pid(&self) -> i32 {
        self.leader.pid
    }

    async fn next(&mut self, deadline: Option<Instant>, output: &mut Vec<u8>) -> Event {
        if self.turn >= OUTPUT_AT_A_TURN {
            // There may be more already: first it is the turn of everybody else.
            self.turn = 0;
            tokio::task::yield_now().await;
        }
        let event = std::future::poll_fn(|cx| self.poll_next(cx, deadline, output)).await;
        if event == Event::Deadline {
            // A caller that repeats a past deadline must not keep the runtime from seeing output.
            // Given up here, the deadline is still past at the next call.
            tokio::task::coop::consume_budget().await;
        }
        event
    }

    fn drain(&mut self, output: &mut Vec<u8>) -> bool {
        let before = output.len();
        drain(self.pty.master().get_ref(), output, OUTPUT_AT_ONCE);
        output.len() > before
    }

    fn write(&mut self, bytes: &[u8]) {
        self.prober.stirred();
        // Time is counted anew: what is set ends too early, and would wake for nothing.
        self.deadline.armed = None;
        self.input.extend(bytes);
        self.write_queued();
    }

    fn unwritten(&self) -> usize {
        self.input.len() + self.lost
    }

    fn flush_input(&mut self) -> u64 {
        self.lose_input();
        std::mem::take(&mut self.lost) as u64 + self.pty.flush_input()
    }

    fn modes(&self) -> Option<Modes> {
        self.pty.modes()
    }

    fn changed_settings(&self) -> Vec<LineSetting> {
        self.pty.changed_settings()
    }

    fn restore_settings(&mut self) -> Vec<LineSetting> {
        self.pty.restore_settings()
    }

    async fn probe(&mut self, depth: Depth) -> Evidence {
        let evidence = self.prober.probe(&self.pty, self.proc.as_deref(), self.unwritten(), depth);
        let waits = depth == Depth::Full && evidence.unread_input == Some(true);
        if waits || !self.input.is_empty() {
            self.watch_reads();
        }
        evidence
    }

    fn rests(&mut self) -> bool {
        let unwritten = self.unwritten();
        self.prober.rests(&self.pty, unwritten)
    }

    fn exit_status(&self) -> Option<ExitStatus> {
        self.exit.clone()
    }

    fn unread_bytes(&self) -> Option<u64> {
        self.pty.unread_bytes()
    }

    fn signal_foreground(&mut self, signal: &str, spare_leader: bool) -> Result<i32, SignalError> {
        let pgid = self.pty.foreground().ok_or(SignalError::NoForegroundGroup)?;
        if spare_leader && pgid == self.leader.pid {
            return Err(SignalError::Leader);
        }
        let failed = |source| SignalError::Failed { pgid, source };
        let signal = signals::by_name(signal).ok_or_else(|| {
            let reason = format!("`{signal}` is no signal; a name such as SIGINT is wanted");
            failed(io::Error::new(io::ErrorKind::InvalidInput, reason))
        })?;
        let group = Pid::from_raw(pgid).ok_or(SignalError::NoForegroundGroup)?;
        match kill_process_group(group, signal) {
            // A group that has ended stays in front until the shell takes its place. A signal to one
            // that is not collected yet is no error either.
            Ok(()) | Err(Errno::SRCH) => Ok(pgid),
            Err(error) => Err(failed(error.into())),
        }
    }

    fn cwd(&self) -> Option<PathBuf> {
        if self.exit.is_some() {
            return None;
        }
        // Of a directory that was removed the kernel gives a name that is none.
        let cwd = std::fs::read_link(format!("/proc/{}/cwd", self.leader.pid)).ok()?;
        cwd.is_dir().then_some(cwd)
    }

    fn is_stopped(&self, group: i32) -> bool {
        let leader = self.proc.as_ref().and_then(|proc| proc.stat(group));
        leader.is_some_and(|it| it.group == group && it.state == b'T')
    }

    fn has_loaded(&self, pid: i32, name: &str) -> Option<bool> {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let mut files = maps.lines().filter_map(|line| line.rsplit('/').next());
        Some(files.any(|file| file.starts_with(name)))
    }

    async fn usage(&mut self) -> Option<Usage> {
        let proc = Arc::clone(self.proc.as_ref()?);
        let whose = Whose::session(&self.leader);
        tokio::task::spawn_blocking(move || usage::of(&proc, &whose)).await.ok()
    }

    async fn living(&mut self) -> Vec<(i32, String)> {
        if self.leader.is_collected() {
            return Vec::new();
        }
        let Some(proc) = self.proc.clone() else { return Vec::new() };
        let (whose, leader) = (Whose::session(&self.leader), self.leader.pid);
        let look = move || {
            let found = whose.find_in_tree(&proc).into_iter().filter(|it| it.pid != leader);
            found.map(|it| (it.pid, it.command)).collect()
        };
        tokio::task::spawn_blocking(look).await.unwrap_or_default()
    }

    fn held(&self) -> Held {
        self.leader.holds.held()
    }

    fn met(&self) -> Option<Met> {
        if self.leader.is_collected() {
            return None;
        }
        self.leader.holds.met(|| {
            let of_group = self.leader.group.as_ref().and_then(|it| it.group().cpu());
            of_group.or_else(|| Some(usage::cpu_of(self.proc.as_deref()?, self.leader.pid)))
        })
    }

    fn resize(&mut self, size: TerminalSize) -> io::Result<()> {
        self.pty.resize(size)
    }

    async fn terminate(
        &mut self,
        grace: Duration,
        output: &mut Vec<u8>,
    ) -> Result<(), TerminateError> {
        // What was typed ahead must not start while the session ends.
        self.lose_input();
        self.pty.flush_input();
        teardown::terminate(self, grace, output).await
    }
}

impl Drop for LocalProcess {
    fn drop(&mut self) {
        if !self.leader.is_collected() {
            at_once::kill_session(&self.leader);
        }
    }
}
