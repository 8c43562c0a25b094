//! Collecting orphans that were given to the host, and nothing else.
//!
//! The host is the reaper of its descendants' orphans. The kernel does not say of a child whether it was
//! born as one or given later. A dead orphan is told from a child that some part of the host waits for by
//! what can still be read of the dead:
//!
//! - it carries the mark that every process of a session inherits;
//! - it is in a session that is neither the host's nor its own: a child of the host is born into the
//!   host's, and leaves it for its own alone (a host that changes its session does so before it
//!   starts anything);
//! - it is in a session of its own, was given to the main thread, to which the kernel gives orphans, and
//!   the host has said that it [starts nothing else](start_nothing_else).
//!
//! A leader is never collected here: it is known from before its start was seen to succeed. Nor is
//! whoever is in the host's session.

use std::{
    collections::HashMap,
    io,
    sync::{
        Mutex, MutexGuard, RwLock, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
};

use dsh_core::{lock, unwind};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, waitid};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{
    mark::HostMark,
    members::Signs,
    procfs::{Proc, Stat},
    tree,
};

/// Held shared while a leader is started, so that no sweep sees one that is not known yet.
static STARTING: RwLock<()> = RwLock::new(());
static LEADERS: Mutex<Option<HashMap<i32, Signs>>> = Mutex::new(None);
/// No leader may be started any more.
static REFUSING: AtomicBool = AtomicBool::new(false);
/// The host starts no process that makes a session of its own.
static ALONE: AtomicBool = AtomicBool::new(false);

/// Starts a leader through `start`, which answers its number, and remembers it, with the signs
/// `signs` makes of the number.
pub(crate) fn start_leader(
    start: impl FnOnce() -> io::Result<i32>,
    signs: impl FnOnce(i32) -> Signs,
) -> io::Result<Signs> {
    let _starting = unwind::read(&STARTING);
    refuse_if_ending()?;
    let signs = signs(start()?);
    leaders().get_or_insert_default().insert(signs.leader, signs);
    // Whoever killed everybody meanwhile may have looked before this one was known.
    if let Err(refused) = refuse_if_ending() {
        abandon_leader(signs.leader);
        return Err(refused);
    }
    Ok(signs)
}

/// Kills, collects and forgets a leader that nobody will watch.
pub(crate) fn abandon_leader(leader: i32) {
    if let Some(id) = Pid::from_raw(leader) {
        // Nobody has collected it, so the number is its own.
        let killed = kill_process(id, Signal::KILL);
        let ended = killed.and_then(|()| waitid(WaitId::Pid(id), WaitIdOptions::EXITED));
        tracing::debug!(leader, ended = ended.is_ok(), "unwatched leader killed");
    }
    forget_leader(leader);
}

fn refuse_if_ending() -> io::Result<()> {
    if REFUSING.load(Ordering::SeqCst) {
        return Err(io::Error::other("the host is ending and starts nothing more"));
    }
    Ok(())
}

/// From here on no leader is started. One whose start is under way is killed by its starter.
pub(crate) fn refuse_starts() {
    REFUSING.store(true, Ordering::SeqCst);
}

/// The host says that whoever makes a session of its own was not started by it, leaders apart.
pub(crate) fn start_nothing_else() {
    ALONE.store(true, Ordering::SeqCst);
}

/// Whether the start of some leader is under way.
pub(crate) fn is_starting() -> bool {
    matches!(STARTING.try_write(), Err(TryLockError::WouldBlock))
}

/// The signs of every session of this host whose leader was not collected.
pub(crate) fn sessions() -> Vec<Signs> {
    leaders().iter().flat_map(HashMap::values).copied().collect()
}

/// Forgets a leader: it was collected, or the reaper may collect it.
pub(crate) fn forget_leader(pid: i32) {
    leaders().get_or_insert_default().remove(&pid);
}

/// Whether a session of this host is led by `pid`.
pub(crate) fn is_leader(pid: i32) -> bool {
    leaders().as_ref().is_some_and(|it| it.contains_key(&pid))
}

fn leaders() -> MutexGuard<'static, Option<HashMap<i32, Signs>>> {
    lock(&LEADERS)
}

/// Collects dead orphans as they come, until cancelled.
pub(crate) async fn run(stop: CancellationToken) -> anyhow::Result<()> {
    let mut deaths = signal(SignalKind::child())?;
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            _ = deaths.recv() => tokio::task::spawn_blocking(sweep).await?,
        }
    }
}

/// Collects the orphans that are dead now. Blocks for a walk over the host's children.
pub(crate) fn sweep() {
    let _no_start = unwind::write(&STARTING);
    let (Some(proc), Some(mark)) = (Proc::open(), HostMark::drawn()) else { return };
    let pid = getpid().as_raw_nonzero().get();
    let Some(session) = tree::session_of_host(&proc) else { return };
    let alone = ALONE.load(Ordering::SeqCst);
    let given = if alone { proc.thread_children(pid, pid) } else { Vec::new() };
    let host = Host { session, given };
    for pid in proc.children(pid) {
        let orphan = proc.stat(pid).is_some_and(|it| {
            it.is_dead() && !is_leader(pid) && (mark.is_on(&proc, pid) || host.was_given(&it))
        });
        if orphan {
            collect(pid);
        }
    }
}

/// What tells a child of this process from one that it was given.
struct Host {
    session: i32,
    /// Those whom it cannot have started if they have a session of their own.
    given: Vec<i32>,
}

impl Host {
    /// Whether this process cannot have started `child`, which is no leader.
    fn was_given(&self, child: &Stat) -> bool {
        child.session != self.session
            && (child.session != child.pid || self.given.contains(&child.pid))
    }
}

/// Collects one dead process if it is our child.
pub(crate) fn collect(pid: i32) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    if let Some(id) = Pid::from_raw(pid)
        && let Err(error) = waitid(WaitId::Pid(id), options)
        && error != rustix::io::Errno::CHILD
    {
        tracing::debug!(pid, %error, "an orphan was not collected");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_have_been_started_here_is_left_alone() {
        let child = |session| {
            let text = format!("7 (x) Z 1 7 {session} 0 -1 0 0 0 0 0 0 0 0 0 0 0 0 1 0 9 0");
            Stat::parse(text.as_bytes()).unwrap()
        };
        for (session, given, expected) in [
            // As it was born.
            (5, vec![], false),
            (5, vec![7], false),
            // It made one.
            (7, vec![], false),
            (7, vec![8], false),
            (7, vec![7], true),
            // It was born into another one.
            (6, vec![], true),
            (0, vec![], true),
        ] {
            let host = Host { session: 5, given };
            assert_eq!(host.was_given(&child(session)), expected, "{session} {:?}", host.given);
        }
    }
}
