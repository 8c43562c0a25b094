//! A foreground of one process with one thread, looked at in full at a glance.
//!
//! Once a full scan has found nobody else in the group, only a new child could join it: of the process
//! itself, or of those between it and the session's leader. As long as none of them has a child that
//! it did not have then, and the host has no new orphan, whoever looks at the process looks at
//! everybody. All files stay open.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::process::getpid;

use super::{
    gate::cpu_ns,
    scan::{Found, waits_for_master, waits_on_terminal},
};
use crate::{
    evidence::{ProcessFacts, ThreadFacts, Wait},
    linux::{
        decode,
        descriptor::View,
        procfs::{Proc, Stat, parse_numbers, reread},
        pty::TerminalIdentity,
    },
};

/// Longer ways up to the session's leader are not kept watch of.
const MOST_ANCESTORS: usize = 8;

/// The process that was alone in the foreground.
pub(super) struct Alone {
    pid: i32,
    /// Clock ticks from boot to its start.
    start: u64,
    stat: OwnedFd,
    syscall: OwnedFd,
    schedstat: OwnedFd,
    /// The folder of its descriptors.
    descriptors: OwnedFd,
    /// Those to whom a child of the group would be born or given.
    parents: Vec<Children>,
}

/// The children of one thread.
struct Children {
    file: OwnedFd,
    text: Vec<u8>,
}

impl Alone {
    /// None unless a full scan of `group` found one process with one thread, a descendant of `leader`
    /// or itself, and nobody else who matters.
    pub(super) fn of(proc: &Proc, leader: i32, group: i32, found: &Found) -> Option<Self> {
        let [process] = found.processes.as_slice() else { return None };
        let others = found.outside.len() + found.awaited.len() + found.inner.len();
        if others > 0 || process.thread_count != 1 {
            return None;
        }
        let pid = process.pid;
        let file = |name: &str| proc.file(format_args!("{pid}/{name}")).ok();
        let own = getpid().as_raw_nonzero().get();
        let mut parents = vec![Children::of(proc, own)?];
        let mut ancestor = pid;
        let start = loop {
            let stat = proc.stat(ancestor).filter(|it| it.threads == 1)?;
            parents.push(Children::of(proc, ancestor)?);
            if ancestor == leader {
                break proc.stat(pid)?;
            }
            if parents.len() > MOST_ANCESTORS {
                return None;
            }
            ancestor = stat.parent;
        };
        let alone = Self {
            pid,
            start: start.start,
            stat: file("stat")?,
            syscall: file("syscall")?,
            schedstat: file("schedstat")?,
            descriptors: file("fd")?,
            parents,
        };
        // Born after the scan and before the lists were read, a child would have been missed.
        let mut children = alone.parents.iter().flat_map(|it| parse_numbers(&it.text));
        let alone_in_it = children
            .all(|child| child == pid || proc.stat(child).is_none_or(|stat| stat.group != group));
        (alone_in_it && start.group == group).then_some(alone)
    }

    /// Whether it is still that process, and nobody was born who could have joined it.
    pub(super) fn stands(&self, found: &Found) -> bool {
        let [process] = found.processes.as_slice() else { return false };
        process.pid == self.pid && self.parents.iter().all(Children::are_the_same)
    }

    /// The process, if it is still alone in `group` and waits on the terminal, or is seen to run.
    pub(super) fn look(
        &self,
        proc: &Proc,
        terminal: TerminalIdentity,
        group: i32,
    ) -> Option<ProcessFacts> {
        let mut buffer = [0; 1024];
        let stat = Stat::parse(reread(self.stat.as_fd(), &mut buffer).ok()?)?;
        let same = (stat.start, stat.group, stat.threads) == (self.start, group, 1);
        if !same || !matches!(stat.state, b'S' | b'R') {
            return None;
        }
        let used = cpu_ns(reread(self.schedstat.as_fd(), &mut buffer).ok()?);
        let wait = if stat.state == b'R' {
            Wait::Running
        } else {
            let text = reread(self.syscall.as_fd(), &mut buffer).ok()?;
            let view = View {
                proc,
                terminal,
                pid: self.pid,
                tid: self.pid,
                tty: stat.tty,
                folder: Some(self.descriptors.as_fd()),
            };
            Some(decode::wait_of(&view, text)).filter(waits_on_terminal)?
        };
        if !self.parents.iter().all(Children::are_the_same) {
            return None;
        }
        let process = ProcessFacts {
            pid: self.pid,
            parent: stat.parent,
            command: stat.command,
            thread_count: 1,
            cpu_ns: used,
            threads: vec![ThreadFacts { tid: self.pid, wait }],
        };
        (!waits_for_master(&process)).then_some(process)
    }
}

impl Children {
    /// Of a process's main thread.
    fn of(proc: &Proc, pid: i32) -> Option<Self> {
        let file = proc.file(format_args!("{pid}/task/{pid}/children")).ok()?;
        let mut buffer = [0; 1024];
        let text = reread(file.as_fd(), &mut buffer).ok().filter(|it| it.len() < 1024)?.to_vec();
        Some(Self { file, text })
    }

    fn are_the_same(&self) -> bool {
        let mut buffer = [0; 1024];
        reread(self.file.as_fd(), &mut buffer).is_ok_and(|text| text == self.text)
    }
}
