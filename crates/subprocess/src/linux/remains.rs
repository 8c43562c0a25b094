//! What is left of a host that is gone: finding it and ending it, from another process.
//!
//! - Whoever carries a mark of that host was started in one of its sessions, and so was everything
//!   below it. Nothing else is touched, least of all what another host has started.
//! - A look that finds nobody is believed if nobody was born during it. Where somebody always is, a
//!   few of them are, with strikes between them that met nobody among the newest.
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
/// Those that must where somebody was born meanwhile.
const DOUBTED_LOOKS: usize = 4;
/// Looks at the newest processes alone, as long as one belongs to the host, after each whole look.
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
    let (mut empty, mut doubted) = (0, 0);
    loop {
        let before = proc.youngest();
        let found = find(proc, host);
        let is_whole = proc.youngest() == before;
        let passed = begin.elapsed();
        // The usual case is that the host has ended its sessions: then nobody is here to be asked.
        let nobody = asked.is_empty() && found.is_empty();
        let may_strike = nobody || passed >= GRACE;
        empty = if found.is_empty() { empty + 1 } else { 0 };
        doubted = if found.is_empty() && !is_whole && may_strike { doubted + 1 } else { 0 };
        let believed = empty >= EMPTY_LOOKS && (is_whole || doubted >= DOUBTED_LOOKS);
        if believed || passed >= BOUND {
            return found;
        }
        if may_strike && strike_newest(proc, host) {
            doubted = 0;
        }
        if nobody {
            continue;
        }
        let ends: Vec<_> = found.iter().take(MAX_WATCHED).filter_map(|it| open(proc, it)).collect();
        if passed >= GRACE {
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

/// Kills those whom a whole look would come too late for; whether there is still somebody.
fn strike_newest(proc: &Proc, host: HostMark) -> bool {
    (0..STRIKES).all(|_| strike(proc, proc.newest(), |pid| host.is_on(proc, pid)))
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

#[cfg(test)]
mod tests {
    use std::{
        fs,
        process::Command,
        sync::atomic::{AtomicBool, Ordering},
        thread,
    };

    use super::*;
    use crate::linux::mark::VARIABLE;

    /// Each of its processes lives for a moment, in a session of its own, and starts the next. Nobody but
    /// its mark tells whose it is: its host is gone, and had no control group. Others are born meanwhile.
    #[test]
    fn one_that_goes_on_as_ever_new_processes_is_met() {
        let proc = Proc::open().unwrap();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    assert!(Command::new("true").status().unwrap().success());
                }
            });
            let met = std::panic::catch_unwind(|| {
                for (round, pause) in (1_u32..).zip(["0.002", "0", "0"]) {
                    is_met(&proc, round, pause);
                }
            });
            over.store(true, Ordering::Relaxed);
            met.unwrap();
        });
    }

    fn is_met(proc: &Proc, round: u32, pause: &str) {
        let own = std::process::id();
        let mark = format!("{:08x}", 1 << 30 | own << 2 | round);
        let folder = tempfile::tempdir().unwrap();
        let script = format!(
            "import os,time\nopen('begun','w')\nwhile not time.sleep({pause}):\n \
             if os.fork(): os._exit(0)\n os.setsid()\n"
        );
        let argument = format!("comet-{mark}");
        let started = Command::new("python3")
            .args(["-c", &script, &argument])
            .env(VARIABLE, format!("{mark}00000007"))
            .current_dir(folder.path())
            .status();
        assert!(started.unwrap().success());
        assert!(folder.path().join("begun").exists());
        assert_eq!(end(proc, HostMark::parse(&mark).unwrap()), []);
        for _ in 0..20 {
            let flies = proc.newest().into_iter().any(|pid| {
                let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                String::from_utf8_lossy(&line).contains(&argument)
            });
            assert!(!flies, "a pause of {pause} s");
        }
    }
}
