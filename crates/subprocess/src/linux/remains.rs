//! What is left of a host that is gone: finding it and ending it, from another process.
//!
//! - Whoever carries a mark of that host was started in one of its sessions, and so was everything
//!   below it. Nothing else is touched, least of all what another host has started.
//! - Needs no runtime, and waits for nothing but the ends.

use std::{
    collections::{HashMap, HashSet},
    os::fd::{AsFd as _, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Signal, getpid},
};

use super::{
    at_once::strike,
    mark::HostMark,
    procfs::{Proc, Stat},
    target::{Identity, kill_exactly, open, signal_exactly},
};

/// How long a program may take to end by itself: what a host gives when it ends in order.
const GRACE: Duration = Duration::from_millis(500);
/// When it is given up.
const BOUND: Duration = Duration::from_secs(5);
/// Between two looks, if nobody ends.
const PAUSE: Duration = Duration::from_millis(20);
/// Looks in a row that must find nobody: one may miss who is being born.
const EMPTY_LOOKS: usize = 2;
/// Looks of the kind that meets who is gone before a whole look is over.
const STRIKES: usize = 20;
/// Ends watched at once.
const MAX_WATCHED: usize = 256;

/// The living processes that a host's sessions started, children before their parents.
pub(super) fn find(proc: &Proc, host: HostMark) -> Vec<Stat> {
    let own = getpid().as_raw_nonzero().get();
    let all: Vec<_> = proc.processes().into_iter().filter_map(|pid| proc.stat(pid)).collect();
    let marked: HashSet<i32> =
        all.iter().map(|it| it.pid).filter(|&it| it != own && host.is_on(proc, it)).collect();
    let parents: HashMap<i32, i32> = all.iter().map(|it| (it.pid, it.parent)).collect();
    let ancestors = |pid: i32| {
        // A table that changed while it was read may have a circle.
        std::iter::successors(parents.get(&pid).copied(), |it| parents.get(it).copied())
            .take(parents.len())
            .take_while(|&it| it != own)
    };
    let belongs = |pid: i32| marked.contains(&pid) || ancestors(pid).any(|it| marked.contains(&it));
    let mut found: Vec<_> = all
        .iter()
        .filter(|it| it.pid != own && !it.is_dead() && belongs(it.pid))
        .map(|it| (ancestors(it.pid).count(), it.clone()))
        .collect();
    found.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
    found.into_iter().map(|(_, stat)| stat).collect()
}

/// Ends them: HUP and TERM, half a second, KILL, until none is found; who is left after five.
pub(super) fn end(proc: &Proc, host: HostMark) -> Vec<Stat> {
    let begin = Instant::now();
    let mut asked: HashSet<Identity> = HashSet::new();
    let mut empty = 0;
    loop {
        let found = find(proc, host);
        empty = if found.is_empty() { empty + 1 } else { 0 };
        let passed = begin.elapsed();
        if empty == EMPTY_LOOKS || passed >= BOUND {
            return found;
        }
        if asked.is_empty() && found.is_empty() {
            // The usual case: the host has ended its sessions.
            continue;
        }
        let ends: Vec<_> = found.iter().take(MAX_WATCHED).filter_map(|it| open(proc, it)).collect();
        if passed >= GRACE {
            for _ in 0..STRIKES {
                if !strike(proc, all_but_own(proc), |pid| host.is_on(proc, pid)) {
                    break;
                }
            }
            // Whoever starts others goes before them.
            for stat in found.iter().rev() {
                if let Err(error) = kill_exactly(proc, stat) {
                    tracing::debug!(pid = stat.pid, %error, "not killed");
                }
            }
        } else {
            for stat in found.iter().filter(|it| asked.insert((it.pid, it.start))) {
                ask(proc, stat);
            }
        }
        wait(&ends, Instant::now() + PAUSE);
    }
}

fn all_but_own(proc: &Proc) -> Vec<i32> {
    let own = getpid().as_raw_nonzero().get();
    proc.processes().into_iter().filter(|&it| it != own).collect()
}

/// A shell hears HUP, a program TERM, and one that is stopped neither before it goes on.
fn ask(proc: &Proc, stat: &Stat) {
    for signal in [Signal::HUP, Signal::TERM, Signal::CONT] {
        if let Err(error) = signal_exactly(proc, stat, signal) {
            tracing::debug!(pid = stat.pid, %error, "not asked to end");
        }
    }
}

/// Waits until all are gone, or for `until`; for that in any case where none can be watched.
fn wait(pidfds: &[OwnedFd], until: Instant) {
    let ready = |fds: &mut [PollFd<'_>]| {
        let left = until.saturating_duration_since(Instant::now());
        Timespec::try_from(left).is_ok_and(|left| poll(fds, Some(&left)).is_ok_and(|it| it > 0))
    };
    if pidfds.is_empty() {
        ready(&mut []);
    }
    for pidfd in pidfds {
        if !ready(&mut [PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)]) {
            return;
        }
    }
}
