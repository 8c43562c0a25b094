//! Collecting orphans that were given to the host, and nothing else.
//!
//! The host is the reaper of its descendants' orphans. A dead orphan of a session is told from a
//! child that the host itself waits for by the mark that every process of a session inherits and
//! that can still be read of the dead.
//!
//! - A leader is never collected here: it is known from before its start was seen to succeed.
//! - A child that another part of the host starts is never collected here, whatever session it
//!   made for itself: its exit status is somebody else's.

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

use super::{mark::HostMark, members::Signs, procfs::Proc};

/// Held shared while a leader is started, so that no sweep sees one that is not known yet.
static STARTING: RwLock<()> = RwLock::new(());
static LEADERS: Mutex<Option<HashMap<i32, Signs>>> = Mutex::new(None);
/// No leader may be started any more.
static REFUSING: AtomicBool = AtomicBool::new(false);

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
    let (Some(proc), Some(host)) = (Proc::open(), HostMark::drawn()) else { return };
    for pid in proc.children(getpid().as_raw_nonzero().get()) {
        let orphan = proc
            .stat(pid)
            .is_some_and(|it| it.is_dead() && !is_leader(pid) && host.is_on(&proc, pid));
        if orphan {
            collect(pid);
        }
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
