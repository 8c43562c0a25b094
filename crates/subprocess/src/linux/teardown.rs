//! Ending everything a session ever started.
//!
//! - A process belongs to a session by any one of: being below its leader, its session, its
//!   controlling terminal, its [`Mark`](super::mark::Mark). The host is the reaper of orphans, so
//!   whatever left the tree of the leader is still in the tree of the host.
//! - Signals go through pidfds, or to numbers whose start time was just compared: never to a
//!   process that took the number of a dead one.
//! - Nothing is waited for but the ends themselves, within the grace; while waiting, output is read,
//!   so that a program that writes its last words to a full terminal can end.
//! - Success means: a last look at the whole process table found nothing.

use std::{
    collections::{HashMap, HashSet},
    os::fd::OwnedFd,
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, getpid, getsid, kill_process, kill_process_group, pidfd_open,
        pidfd_send_signal,
    },
};
use tokio::io::{Interest, unix::AsyncFd};

use super::{
    mark::Mark,
    process::{Drained, LocalProcess, drain},
    procfs::{Proc, Stat},
    reaper,
    spawn::{self, Leader},
    sys, tree,
};
use crate::host::{Survivor, TerminateError};

/// How long a process may take to vanish after KILL.
const KILL_BOUND: Duration = Duration::from_secs(2);
/// A shell can lose a signal that comes just before it starts to wait for input (bash does, when it
/// gets there from a command). It is told again after this pause, and then after longer ones.
const ASK_AGAIN: Duration = Duration::from_millis(25);
/// Output kept of a session that is being ended; what exceeds it is read and dropped.
const OUTPUT_KEPT: usize = 4 * 1024 * 1024;
/// Ends watched at once; more processes than this take several rounds.
const MAX_WATCHED: usize = 256;

/// The signs by which a process belongs to a session.
#[derive(Clone, Copy)]
struct Signs {
    leader: i32,
    tty: i32,
    mark: Mark,
}

/// What is needed of the process while it is ended.
#[derive(Clone, Copy)]
struct Ends<'a> {
    leader: &'a Leader,
    master: &'a AsyncFd<OwnedFd>,
}

/// A living process that is to end.
struct Target {
    stat: Stat,
    /// None for the leader, whose own is used, and where no more could be opened.
    pidfd: Option<AsyncFd<OwnedFd>>,
    /// Why it could not be signalled.
    refused: Option<Errno>,
}

/// See [`TerminalProcess::terminate`](crate::TerminalProcess::terminate).
pub(crate) async fn terminate(
    process: &mut LocalProcess,
    grace: Duration,
    output: &mut Vec<u8>,
) -> Result<(), TerminateError> {
    if process.leader.is_collected() {
        return Ok(());
    }
    let signs = Signs::of(process);
    let mut kept = Kept { output, from: 0 };
    kept.from = kept.output.len();
    let Some(proc) = process.proc.clone().or_else(|| Proc::open().map(Arc::new)) else {
        return terminate_blind(process, grace, &mut kept).await;
    };

    let ends = Ends { leader: &process.leader, master: process.pty.master() };
    let mut closing = Closing { ends, proc, signs, seen: HashSet::new() };
    closing.ask_all(Instant::now() + grace, &mut kept).await;
    let survivors = closing.kill_all(&mut kept).await;
    closing.collect_orphans().await;
    kept.read(ends);
    process.note_exit();
    if survivors.is_empty() {
        process.leader.collect();
        return Ok(());
    }
    Err(TerminateError { survivors })
}

/// One attempt to end a session.
struct Closing<'a> {
    ends: Ends<'a>,
    proc: Arc<Proc>,
    signs: Signs,
    /// Every process that was found, by number and start time.
    seen: HashSet<(i32, u64)>,
}

impl Closing<'_> {
    /// Asks every process to end, and those that appear when the first are gone, until the
    /// deadline.
    async fn ask_all(&mut self, deadline: Instant, kept: &mut Kept<'_>) {
        let mut targets = self.look(find_in_tree).await;
        loop {
            for target in &targets {
                if self.seen.insert((target.stat.pid, target.stat.start)) {
                    ask(self.ends, target);
                }
            }
            // No new look before these are gone: what they start now is part of their own ending.
            let mut pause = ASK_AGAIN;
            while !wait(self.ends, &targets, deadline.min(Instant::now() + pause), kept).await
                && Instant::now() < deadline
            {
                hang_up(self.ends);
                pause *= 4;
            }
            if targets.is_empty() || Instant::now() >= deadline {
                return;
            }
            targets = self.look(find_everywhere).await;
        }
    }

    /// Kills what is left until nothing is, or nothing more can be done; what survives.
    async fn kill_all(&mut self, kept: &mut Kept<'_>) -> Vec<Survivor> {
        let deadline = Instant::now() + KILL_BOUND;
        loop {
            let mut targets = self.look(find_everywhere).await;
            for target in &mut targets {
                self.seen.insert((target.stat.pid, target.stat.start));
                target.refused = send(self.ends, target, Signal::KILL).err();
            }
            let (refused, killed): (Vec<_>, Vec<_>) =
                targets.into_iter().partition(|it| it.refused.is_some());
            if killed.is_empty() || Instant::now() >= deadline {
                return refused.iter().chain(&killed).map(survivor).collect();
            }
            wait(self.ends, &killed, deadline, kept).await;
        }
    }

    /// Looks for the session's processes on a thread that may block, and opens their pidfds.
    async fn look(&self, find: fn(&Proc, Signs) -> Vec<Stat>) -> Vec<Target> {
        let (proc, signs) = (Arc::clone(&self.proc), self.signs);
        match tokio::task::spawn_blocking(move || look(&proc, signs, find)).await {
            Ok(targets) => targets,
            // The runtime is going down: then this thread may block as well.
            Err(_) => look(&self.proc, signs, find),
        }
    }

    /// Collects what was given to the host and is dead by now.
    async fn collect_orphans(self) {
        let Self { proc, seen, signs, .. } = self;
        let collected = tokio::task::spawn_blocking(move || {
            reaper::sweep();
            // One that changed the limit it was marked by is known all the same.
            for (pid, start) in seen {
                let same = |it: Stat| it.is_dead() && it.start == start;
                if pid != signs.leader && proc.stat(pid).is_some_and(same) {
                    reaper::collect(pid);
                }
            }
        });
        if let Err(error) = collected.await {
            tracing::debug!(%error, "orphans were not collected");
        }
    }
}

/// Without a process table: the leader and what is in the foreground.
async fn terminate_blind(
    process: &mut LocalProcess,
    grace: Duration,
    kept: &mut Kept<'_>,
) -> Result<(), TerminateError> {
    let mut last = Ok(());
    for (signals, bound) in
        [(&[Signal::TERM, Signal::HUP][..], grace), (&[Signal::KILL][..], KILL_BOUND)]
    {
        for &signal in signals {
            if let Some(group) = process.pty.foreground().and_then(Pid::from_raw)
                && let Err(error) = kill_process_group(group, signal)
            {
                tracing::debug!(%error, "the foreground group was not signalled");
            }
            last = process.leader.signal(signal);
        }
        let deadline = Instant::now() + bound;
        let ends = Ends { leader: &process.leader, master: process.pty.master() };
        wait_for(ends, &ends.leader.pidfd, deadline, kept).await;
        process.note_exit();
        process.leader.collect();
        if process.leader.is_collected() {
            return Ok(());
        }
    }
    let reason =
        last.err().map_or_else(|| "still there after SIGKILL".to_owned(), |it| it.to_string());
    let command = "the session's leader".to_owned();
    Err(TerminateError { survivors: vec![Survivor { pid: process.leader.pid, command, reason }] })
}

/// Kills what belongs to the session, without waiting for anything.
pub(crate) fn kill_at_once(process: &LocalProcess) {
    if let Some(proc) = Proc::open() {
        for stat in find_in_tree(&proc, Signs::of(process)) {
            if stat.pid != process.leader.pid
                && let Some(pidfd) = open(&proc, &stat)
                && let Err(error) = pidfd_send_signal(pidfd, Signal::KILL)
            {
                tracing::debug!(pid = stat.pid, %error, "not killed");
            }
        }
    }
    if let Err(error) = process.leader.signal(Signal::KILL) {
        tracing::debug!(pid = process.leader.pid, %error, "leader not killed");
    }
}

/// Output read while a session is ended, up to [`OUTPUT_KEPT`].
struct Kept<'a> {
    output: &'a mut Vec<u8>,
    /// Length before.
    from: usize,
}

impl Kept<'_> {
    /// Reads what is there; false when nothing will come any more.
    fn read(&mut self, ends: Ends<'_>) -> bool {
        let drained = drain(ends.master.get_ref(), self.output, OUTPUT_KEPT);
        self.output.truncate(self.from + OUTPUT_KEPT);
        !matches!(drained, Drained::Hangup)
    }
}

impl Signs {
    fn of(process: &LocalProcess) -> Self {
        let (leader, mark) = (process.leader.pid, process.leader.mark);
        Self { leader, tty: process.pty.identity().tty, mark }
    }
}

/// Finds the session's processes and opens their pidfds. Needs a tokio runtime.
fn look(proc: &Proc, signs: Signs, find: fn(&Proc, Signs) -> Vec<Stat>) -> Vec<Target> {
    let targets = find(proc, signs).into_iter().enumerate().map(|(index, stat)| {
        let wanted = stat.pid != signs.leader && index < MAX_WATCHED;
        let pidfd = wanted.then(|| open(proc, &stat)).flatten();
        let pidfd = pidfd.and_then(|it| sys::watch(it, Interest::READABLE).ok());
        Target { stat, pidfd, refused: None }
    });
    targets.collect()
}

/// A pidfd of exactly this process; none when it is gone or no descriptor is left.
fn open(proc: &Proc, stat: &Stat) -> Option<OwnedFd> {
    let pidfd = pidfd_open(Pid::from_raw(stat.pid)?, PidfdFlags::NONBLOCK).ok()?;
    (proc.stat(stat.pid)?.start == stat.start).then_some(pidfd)
}

/// The session's living processes in the host's tree, children first, the leader last.
fn find_in_tree(proc: &Proc, signs: Signs) -> Vec<Stat> {
    let orphans = tree::orphans(proc, true).into_iter().map(|it| it.pid);
    let roots: Vec<_> = std::iter::once(signs.leader).chain(orphans).collect();
    let found: Vec<_> = tree::walk(proc, roots).into_iter().map(|(stat, _)| stat).collect();
    select(proc, signs, &found)
}

/// The same from the whole process table, whatever the tree looks like.
fn find_everywhere(proc: &Proc, signs: Signs) -> Vec<Stat> {
    let all: Vec<_> = proc.processes().into_iter().filter_map(|pid| proc.stat(pid)).collect();
    select(proc, signs, &all)
}

fn select(proc: &Proc, signs: Signs, all: &[Stat]) -> Vec<Stat> {
    let own = getpid().as_raw_nonzero().get();
    let own_session = getsid(None).map_or(0, |it| it.as_raw_nonzero().get());
    let parents: HashMap<i32, i32> = all.iter().map(|it| (it.pid, it.parent)).collect();
    let ancestors = |pid: i32| {
        let mut length = 0;
        std::iter::successors(parents.get(&pid).copied(), |it| parents.get(it).copied()).take_while(
            move |&it| {
                length += 1;
                it != 0 && length < 10_000
            },
        )
    };
    let reaper = spawn::is_subreaper();
    let has_sign = |stat: &Stat| {
        let adopted = stat.parent == own || (!reaper && stat.parent == 1);
        stat.pid == signs.leader
            || stat.session == signs.leader
            // Terminals of other containers have the same numbers: only below the host.
            || (stat.tty == signs.tty && (stat.parent == own || ancestors(stat.pid).any(|it| it == own)))
            || (adopted
                && stat.session != own_session
                && !reaper::is_leader(stat.pid)
                && signs.mark.is_on(proc, stat.pid))
    };
    let signed: HashSet<i32> =
        all.iter().filter(|it| it.pid != own && has_sign(it)).map(|it| it.pid).collect();
    let belongs = |pid: i32| {
        signed.contains(&pid)
            || ancestors(pid).take_while(|&it| it != own).any(|it| signed.contains(&it))
    };
    let mut found: Vec<_> = all
        .iter()
        .filter(|it| it.pid != own && !it.is_dead() && belongs(it.pid))
        .map(|it| (ancestors(it.pid).count(), it.clone()))
        .collect();
    found.sort_by_key(|(depth, it)| (it.pid == signs.leader, std::cmp::Reverse(*depth)));
    found.into_iter().map(|(_, stat)| stat).collect()
}

/// Asks a process to end: TERM, and CONT for one that is stopped and would not hear it. For the
/// leader HUP comes before: interactive shells ignore TERM.
fn ask(ends: Ends<'_>, target: &Target) {
    if target.stat.pid == ends.leader.pid {
        hang_up(ends);
    }
    let stopped = target.stat.state == b'T';
    for signal in [Some(Signal::TERM), stopped.then_some(Signal::CONT)].into_iter().flatten() {
        if let Err(error) = send(ends, target, signal) {
            tracing::debug!(pid = target.stat.pid, %error, "not asked to end");
        }
    }
}

fn hang_up(ends: Ends<'_>) {
    if let Err(error) = ends.leader.signal(Signal::HUP) {
        tracing::debug!(pid = ends.leader.pid, %error, "not told to hang up");
    }
}

/// Signals a target; one that is gone counts as signalled.
fn send(ends: Ends<'_>, target: &Target, signal: Signal) -> Result<(), Errno> {
    let sent = if target.stat.pid == ends.leader.pid {
        pidfd_send_signal(ends.leader.pidfd.get_ref(), signal)
    } else if let Some(pidfd) = &target.pidfd {
        pidfd_send_signal(pidfd.get_ref(), signal)
    } else {
        signal_number(&target.stat, signal)
    };
    match sent {
        Err(Errno::SRCH) => Ok(()),
        other => other,
    }
}

/// Signals a process without a pidfd, if its number is still its own.
fn signal_number(stat: &Stat, signal: Signal) -> Result<(), Errno> {
    let now = Proc::open().and_then(|it| it.stat(stat.pid));
    match Pid::from_raw(stat.pid) {
        Some(pid) if now.is_some_and(|it| it.start == stat.start) => kill_process(pid, signal),
        _ => Ok(()),
    }
}

/// Waits until all `targets` are gone; false if the deadline passed before.
async fn wait(ends: Ends<'_>, targets: &[Target], deadline: Instant, kept: &mut Kept<'_>) -> bool {
    let mut unwatched = false;
    for target in targets {
        let gone = if target.stat.pid == ends.leader.pid {
            wait_for(ends, &ends.leader.pidfd, deadline, kept).await
        } else if let Some(pidfd) = &target.pidfd {
            wait_for(ends, pidfd, deadline, kept).await
        } else {
            unwatched = true;
            true
        };
        if !gone {
            return false;
        }
    }
    if unwatched {
        // Without a pidfd its end is no event; the next look at the process table tells.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    true
}

/// Waits for one end, reading output meanwhile; false if the deadline passed before.
async fn wait_for(
    ends: Ends<'_>,
    pidfd: &AsyncFd<OwnedFd>,
    deadline: Instant,
    kept: &mut Kept<'_>,
) -> bool {
    let mut open = true;
    loop {
        tokio::select! {
            // An error could not be waited out either.
            _ = pidfd.readable() => return true,
            () = tokio::time::sleep_until(deadline.into()) => return false,
            Ok(mut readable) = ends.master.readable(), if open => {
                readable.clear_ready();
                open = kept.read(ends);
            }
        }
    }
}

fn survivor(target: &Target) -> Survivor {
    let reason = match target.refused {
        Some(Errno::PERM) => "not permitted to signal it (it runs as another user)".to_owned(),
        Some(error) => std::io::Error::from(error).to_string(),
        None if target.stat.state == b'D' => {
            "in an uninterruptible wait, does not end after SIGKILL".to_owned()
        }
        None => "still there after SIGKILL".to_owned(),
    };
    Survivor { pid: target.stat.pid, command: target.stat.command.clone(), reason }
}
