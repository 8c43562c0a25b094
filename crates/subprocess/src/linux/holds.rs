//! What holds one session to its bounds, and tells when one is met.
//!
//! Control groups hold all of it together, where they can (see [`controllers`](super::controllers)). A
//! resource limit holds each process by itself, and is a backstop behind whoever watches the session:
//!
//! - on what a process may write of its memory, where no group has the memory;
//! - on its CPU time, of which no group has a sum;
//! - on the processes of its user, where that user is of this session alone.

use std::{
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{
    cgroup::SessionGroup,
    controllers::{Controller, Layer, make_below},
};
use crate::host::{Bounds, Held, Met};

/// The kernel counts threads, a bound processes. An honest program has some threads a process, and a
/// few have hundreds: whatever gets out of hand is past this at once all the same.
fn threads(processes: u64) -> u64 {
    const EACH: u64 = 16;
    const BESIDES: u64 = 256;
    processes.saturating_mul(EACH).saturating_add(BESIDES)
}

/// What a process may write is not what it has: allocators reserve, and each thread has a stack of
/// 8 MiB. One that asks for more than this would have passed the bound long before.
fn data(memory: u64) -> u64 {
    const TIMES: u64 = 4;
    const AT_LEAST: u64 = 1 << 30;
    memory.saturating_mul(TIMES).max(memory.saturating_add(AT_LEAST))
}

/// Resource limits of each process; none that is not named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OfEach {
    /// Writable memory, in bytes.
    pub(super) data: Option<u64>,
    /// CPU time, in seconds: here a process is told.
    pub(super) cpu: Option<u64>,
    /// Processes and threads of its user.
    pub(super) threads: Option<u64>,
}

impl OfEach {
    /// Sets them for this process. For a child between fork and exec: plain system calls, nothing is
    /// allocated.
    pub(super) fn set(self) {
        let limits = [
            (Resource::Data, self.data, self.data),
            // Told once by a signal that a program may handle, a second later by one that it may not.
            (Resource::Cpu, self.cpu, self.cpu.map(|it| it.saturating_add(1))),
            (Resource::Nproc, self.threads, self.threads),
        ];
        for (resource, soft, hard) in limits {
            if soft.is_some() {
                let already = getrlimit(resource).maximum.unwrap_or(u64::MAX);
                let [current, maximum] = [soft, hard].map(|it| it.map(|it| it.min(already)));
                setrlimit(resource, Rlimit { current, maximum }).ok();
            }
        }
    }
}

/// What holds a session to its bounds.
#[derive(Debug, Default)]
pub(super) struct Holds {
    bounds: Bounds,
    memory: Option<Kept>,
    pids: Option<Kept>,
    /// The session has a user namespace of its own.
    own_users: bool,
}

/// A group that is bounded.
#[derive(Debug)]
struct Kept {
    /// The session's group of version 2 is without it.
    own: bool,
    folder: PathBuf,
    /// The one that was made for it.
    made: Option<(SessionGroup, OwnedFd)>,
}

impl Holds {
    /// Prepares what holds a session to `bounds`, before it is started in `group`, if it has one. Fails
    /// only where a group is required.
    pub(super) fn make(
        bounds: &Bounds,
        group: Option<&SessionGroup>,
        own_users: bool,
    ) -> Result<Self, String> {
        let keep = |controller: Controller, most: Option<u64>| {
            let Some(most) = most else { return Ok(None) };
            match Kept::make(controller, group, most) {
                Ok(kept) => Ok(Some(kept)),
                Err(reason) if bounds.required => Err(reason),
                Err(reason) => {
                    tracing::debug!("a bound of a session is watched alone: {reason}");
                    Ok(None)
                }
            }
        };
        let memory = keep(Controller::Memory, bounds.memory_bytes)?;
        let pids = keep(Controller::Pids, bounds.processes.map(threads))?;
        Ok(Self { bounds: *bounds, memory, pids, own_users })
    }

    /// The limits that each process starts with.
    pub(super) fn of_each(&self) -> OfEach {
        let Self { bounds, memory, pids, own_users } = self;
        let whole = |cpu: Duration| cpu.as_secs().saturating_add(1);
        let alone = pids.is_none() && *own_users;
        OfEach {
            data: bounds.memory_bytes.filter(|_| memory.is_none()).map(data),
            cpu: bounds.cpu.map(whole),
            threads: bounds.processes.filter(|_| alone).map(threads),
        }
    }

    /// Where the leader moves itself in.
    pub(super) fn entrances(&self) -> impl Iterator<Item = &OwnedFd> {
        let made =
            [&self.memory, &self.pids].into_iter().flatten().filter_map(|it| it.made.as_ref());
        made.map(|(_, entrance)| entrance)
    }

    /// Whether they hold nobody who is outside of the session's group of version 2.
    pub(super) fn need_group(&self) -> bool {
        [&self.memory, &self.pids].into_iter().flatten().any(|it| it.own)
    }

    pub(super) fn held(&self) -> Held {
        Held { memory: self.memory.is_some(), processes: self.pids.is_some() }
    }

    /// The bound that is known to be met; `cpu` tells what time was used.
    pub(super) fn met(&self, cpu: impl FnOnce() -> Option<Duration>) -> Option<Met> {
        let most = self.bounds.memory_bytes.unwrap_or_default();
        if self.memory.as_ref().is_some_and(|it| memory_met(&it.folder, it.own, most)) {
            return Some(Met::Memory);
        }
        let most = self.bounds.processes.map(threads).unwrap_or_default();
        if self.pids.as_ref().is_some_and(|it| threads_met(&it.folder, most)) {
            return Some(Met::Threads(most));
        }
        let bound = self.bounds.cpu?;
        (cpu()? >= bound).then_some(Met::Cpu)
    }

    /// Nobody is left in there.
    pub(super) fn release(&mut self) {
        (self.memory, self.pids) = (None, None);
    }
}

impl Kept {
    fn make(
        controller: Controller,
        group: Option<&SessionGroup>,
        most: u64,
    ) -> Result<Self, String> {
        let layer = controller.layer()?;
        let failed = |error: std::io::Error| {
            format!("no group with the controller `{}` could be made: {error}", controller.name())
        };
        match layer {
            Layer::Own => {
                let group = group.ok_or("the session has no control group")?;
                let folder = group.group().path();
                controller.bound(folder, layer, most).map_err(failed)?;
                Ok(Self { own: true, folder: folder.to_owned(), made: None })
            }
            Layer::Below(folder) => {
                let group = make_below(folder).map_err(failed)?;
                let folder = group.group().path().to_owned();
                controller.bound(&folder, layer, most).map_err(failed)?;
                let entrance = group.group().entrance().map_err(failed)?;
                Ok(Self { own: false, folder, made: Some((group, entrance)) })
            }
        }
    }
}

/// Whether the kernel holds all processes of a session together to these bounds, whatever it is; if
/// not, why. Blocks at the first call.
pub fn bounds_hold(bounds: &Bounds) -> Result<(), String> {
    let asked = [
        (Controller::Memory, bounds.memory_bytes.is_some()),
        (Controller::Pids, bounds.processes.is_some()),
    ];
    for (controller, _) in asked.into_iter().filter(|it| it.1) {
        controller.layer()?;
    }
    Ok(())
}

/// Whether somebody was killed because the group was at its bound. Killed alone says less: the whole
/// machine, or a group above, may have had no memory.
fn memory_met(folder: &Path, version_2: bool, most: u64) -> bool {
    /// More than the kernel asks for at once with the life of a process.
    const PIECE: u64 = 64 << 10;
    let text = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
    if version_2 {
        let events = text("memory.events");
        counter(&events, "oom") > 0 && counter(&events, "oom_kill") > 0
    } else {
        // Not its count of failures, which the kernel keeps for one of two equal bounds.
        let peak: u64 = text("memory.max_usage_in_bytes").trim().parse().unwrap_or_default();
        let full = peak.saturating_add(PIECE) >= most;
        full && counter(&text("memory.oom_control"), "oom_kill") > 0
    }
}

/// Whether somebody was refused because the group had `most` threads. An older kernel counts what a
/// group above refused, too.
fn threads_met(folder: &Path, most: u64) -> bool {
    let text = |file: &str| fs::read_to_string(folder.join(file)).ok();
    let refused = counter(&text("pids.events").unwrap_or_default(), "max") > 0;
    let peak = || text("pids.peak").and_then(|it| it.trim().parse::<u64>().ok());
    refused && peak().is_none_or(|it| it >= most)
}

/// The number behind a name in a file of lines `name number`.
fn counter(text: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|it| it.split_once(' '));
    lines.find(|it| it.0 == name).and_then(|it| it.1.trim().parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_bound_is_met() {
        for (files, two, one, pids) in [
            (vec![], false, false, false),
            (vec![("memory.events", "low 0\nmax 7\noom 1\noom_kill 1\n")], true, false, false),
            (vec![("memory.events", "max 7\noom 0\noom_kill 1\n")], false, false, false),
            (vec![("memory.events", "max 7\noom 3\noom_kill 0\n")], false, false, false),
            (
                vec![
                    ("memory.max_usage_in_bytes", "9999360\n"),
                    ("memory.oom_control", "oom_kill 1\n"),
                ],
                false,
                true,
                false,
            ),
            (
                vec![
                    ("memory.max_usage_in_bytes", "9000000\n"),
                    ("memory.oom_control", "oom_kill 1\n"),
                ],
                false,
                false,
                false,
            ),
            (
                vec![
                    ("memory.max_usage_in_bytes", "9999360\n"),
                    ("memory.oom_control", "oom_kill_disable 1\nunder_oom 1\noom_kill 0\n"),
                ],
                false,
                false,
                false,
            ),
            (vec![("pids.events", "max 1\n")], false, false, true),
            (vec![("pids.events", "max 1\n"), ("pids.peak", "272\n")], false, false, true),
            (vec![("pids.events", "max 1\n"), ("pids.peak", "9\n")], false, false, false),
            (vec![("pids.events", "max 0\n"), ("pids.peak", "272\n")], false, false, false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            for (file, text) in &files {
                fs::write(folder.path().join(file), text).unwrap();
            }
            assert_eq!(memory_met(folder.path(), true, 10_000_000), two, "{files:?}");
            assert_eq!(memory_met(folder.path(), false, 10_000_000), one, "{files:?}");
            assert_eq!(threads_met(folder.path(), threads(1)), pids, "{files:?}");
        }
    }

    #[test]
    fn what_no_group_holds_is_held_in_each_process() {
        let bounds = Bounds {
            memory_bytes: Some(96 << 20),
            processes: Some(4),
            cpu: Some(Duration::from_secs(5)),
            required: false,
        };
        let kept = || Some(Kept { own: true, folder: "/x".into(), made: None });
        let holds = |memory, pids, own_users| Holds { bounds, memory, pids, own_users };
        let cpu = Some(6);
        let data = Some((96 << 20) + (1 << 30));
        for (holds, of_each) in [
            (holds(kept(), kept(), true), OfEach { cpu, ..OfEach::default() }),
            (holds(None, kept(), false), OfEach { data, cpu, threads: None }),
            (holds(None, None, false), OfEach { data, cpu, threads: None }),
            (holds(kept(), None, true), OfEach { data: None, cpu, threads: Some(320) }),
        ] {
            assert_eq!(holds.of_each(), of_each, "{holds:?}");
        }
        assert_eq!(Holds::default().of_each(), OfEach::default());
        assert_eq!(super::data(1 << 30), 4 << 30);
    }

    #[test]
    fn cpu_time_is_asked_for_where_it_has_a_bound() {
        let second = Duration::from_secs(1);
        assert_eq!(Holds::default().met(|| unreachable!()), None);
        let bounds = Bounds { cpu: Some(second), ..Bounds::default() };
        let holds = Holds { bounds, ..Holds::default() };
        assert_eq!(holds.met(|| Some(second / 2)), None);
        assert_eq!(holds.met(|| Some(second)), Some(Met::Cpu));
        assert_eq!(holds.met(|| None), None);
    }
}
