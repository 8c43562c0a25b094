//! Killing without waiting: for a session that is dropped, and for a host that leaves at once.
//!
//! Whoever starts others is killed before them. A process that is to die can start nothing more, so
//! a few looks find everybody, and nobody's end has to be waited for. One that goes on as ever new
//! processes, each of which lives only long enough to start the next, is met by a [`strike`].

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process_group, pidfd_open, pidfd_send_signal,
};

use super::{
    cgroup::Group,
    mark::HostMark,
    members::Whose,
    procfs::{Proc, Stat},
    reaper,
    spawn::Leader,
    target::kill_exactly,
};

/// Looks for what a dropped session left.
const LOOKS: usize = 3;
/// How long the host looks for processes that are still there or still being started.
const BOUND: Duration = Duration::from_millis(50);
/// Between two looks of the host.
const PAUSE: Duration = Duration::from_millis(1);

/// Kills what belongs to a session.
pub(crate) fn kill_session(leader: &Leader) {
    if let Some(proc) = Proc::open() {
        let whose = Whose::session(leader);
        whose.group().map(Group::kill);
        let mark = leader.signs.mark;
        for _ in 0..LOOKS {
            let struck = strike(&proc, proc.newest(), |pid| mark.is_on(&proc, pid));
            if !kill_all(&proc, whose.find_in_tree(&proc)) && !struck {
                break;
            }
        }
    }
    if let Err(error) = leader.signal(Signal::KILL) {
        tracing::debug!(pid = leader.signs.leader, %error, "leader not killed");
    }
}

/// Kills every process of every session of this host process, and lets no other start.
///
/// For a host that is about to leave without an orderly end. Blocks for a few looks at the process
/// table, some milliseconds, and waits for nothing else; needs no runtime. What may not be killed
/// is left. Sessions that are terminated or dropped afterwards find their processes gone.
pub fn kill_all_at_once() {
    reaper::refuse_starts();
    let Some(proc) = Proc::open() else {
        for signs in reaper::sessions() {
            // The kernel gives an uncollected leader's number to nobody else.
            if let Some(leader) = Pid::from_raw(signs.leader)
                && let Err(error) = kill_process_group(leader, Signal::KILL)
            {
                tracing::debug!(pid = signs.leader, %error, "leader not killed");
            }
        }
        return;
    };
    let deadline = Instant::now() + BOUND;
    loop {
        let starting = reaper::is_starting();
        let struck = HostMark::drawn().is_some_and(|host| {
            let mut orphans = proc.children(getpid().as_raw_nonzero().get());
            orphans.extend(proc.newest());
            orphans.retain(|&it| !reaper::is_leader(it));
            strike(&proc, orphans, |pid| host.is_on(&proc, pid))
        });
        let whose = Whose::host();
        whose.group().map(Group::kill);
        let found = kill_all(&proc, whose.find_everywhere(&proc));
        if !(struck || found || starting) || Instant::now() >= deadline {
            return;
        }
        thread::sleep(PAUSE);
    }
}

/// Kills those of `pids` that live and of whom `carries` is true, newest first, each the moment that
/// it is found; whether there was anybody.
pub(super) fn strike(proc: &Proc, mut pids: Vec<i32>, carries: impl Fn(i32) -> bool) -> bool {
    pids.sort_unstable_by_key(|&pid| std::cmp::Reverse(pid));
    pids.dedup();
    let mut met = false;
    for pid in pids {
        let pidfd = Pid::from_raw(pid).and_then(|it| pidfd_open(it, PidfdFlags::empty()).ok());
        // Whoever takes the number from here on is not behind the descriptor.
        if let Some(pidfd) = pidfd
            && carries(pid)
            && proc.stat(pid).is_some_and(|it| !it.is_dead())
        {
            met |= pidfd_send_signal(pidfd, Signal::KILL).is_ok();
        }
    }
    met
}

/// Kills the processes, which are sorted children first; whether there were any that may be killed.
fn kill_all(proc: &Proc, found: Vec<Stat>) -> bool {
    let mut any = false;
    for stat in found.into_iter().rev() {
        match kill_exactly(proc, &stat) {
            Ok(()) => any = true,
            Err(error) => tracing::debug!(pid = stat.pid, %error, "not killed"),
        }
    }
    any
}
