//! A full scan: everybody in the foreground of a terminal, of the terminals behind it, and whom they
//! wait for.

use std::collections::HashSet;

use rustix::{fs::FileType, process::getpid};

use super::{
    gate::{Counter, Counters},
    inner,
};
use crate::{
    evidence::{Descriptor, InnerTerminal, ProcessFacts, ThreadFacts, Wait},
    linux::{
        decode,
        descriptor::View,
        procfs::{End, Proc, Stat},
        pty::TerminalIdentity,
        tree,
    },
};

/// What a full scan found.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) processes: Vec<ProcessFacts>,
    pub(super) outside: Vec<ProcessFacts>,
    pub(super) awaited: Vec<ProcessFacts>,
    pub(super) inner: Vec<InnerTerminal>,
}

/// A scan under way.
pub(super) struct Scan<'a> {
    pub(super) proc: &'a Proc,
    pub(super) leader: i32,
    /// Whether the zero-byte read passed its self-test.
    pub(super) reader_test: bool,
    pub(super) counters: Counters,
}

impl<'a> Scan<'a> {
    pub(super) fn new(proc: &'a Proc, leader: i32, reader_test: bool) -> Self {
        Self { proc, leader, reader_test, counters: Counters::new() }
    }

    /// Looks at the terminal's foreground `group`, and at those `outside` it who are known to hold
    /// the terminal.
    pub(super) fn run(&mut self, terminal: TerminalIdentity, group: i32, outside: &[i32]) -> Found {
        let tree = self.session(terminal);
        let mut members: Vec<Stat> = tree.iter().filter(|it| it.group == group).cloned().collect();
        if members.is_empty() {
            let all = self.proc.processes().into_iter().filter_map(|pid| self.proc.stat(pid));
            members.extend(all.filter(|it| it.group == group));
        }
        self.watch_parents(&members, self.leader);
        let processes = self.look_at(terminal, &members);
        let outside: Vec<Stat> = outside.iter().filter_map(|&pid| self.proc.stat(pid)).collect();
        let outside = self.look_at(terminal, &outside);
        let awaited = self.awaited(terminal, &tree, group, &processes);
        let relays = processes.iter().chain(&outside).filter(|it| waits_for_master(it));
        let relays: Vec<i32> = relays.map(|it| it.pid).collect();
        let inner = inner::terminals(self, &relays, inner::DEEPEST);
        Found { processes, outside, awaited, inner }
    }

    /// Looks at all threads of some processes.
    pub(super) fn look_at(
        &mut self,
        terminal: TerminalIdentity,
        processes: &[Stat],
    ) -> Vec<ProcessFacts> {
        processes.iter().map(|stat| self.process(terminal, stat)).collect()
    }

    fn process(&mut self, terminal: TerminalIdentity, stat: &Stat) -> ProcessFacts {
        let proc = self.proc;
        let tids = if stat.threads > 1 { proc.threads(stat.pid) } else { vec![stat.pid] };
        let mut cpu_ns = Some(0);
        let mut threads = Vec::new();
        for tid in tids {
            // Before the look at the thread: what runs after this shows in the counter.
            let counter = Counter::of(proc, stat.pid, tid);
            cpu_ns = cpu_ns.zip(counter.as_ref().and_then(Counter::cpu_ns)).map(|(a, b)| a + b);
            let Some(wait) = self.thread(terminal, stat, tid) else { continue };
            let still = !matches!(wait, Wait::Running | Wait::Uninterruptible);
            self.counters.keep(counter.filter(|_| still));
            threads.push(ThreadFacts { tid, wait });
        }
        ProcessFacts {
            pid: stat.pid,
            parent: stat.parent,
            command: stat.command.clone(),
            thread_count: stat.threads,
            cpu_ns,
            threads,
        }
    }

    fn thread(&self, terminal: TerminalIdentity, process: &Stat, tid: i32) -> Option<Wait> {
        let state = match process.threads {
            1 if tid == process.pid => process.state,
            _ => self.proc.thread_stat(process.pid, tid)?.state,
        };
        Some(match state {
            b'R' => Wait::Running,
            b'D' => Wait::Uninterruptible,
            b'T' | b't' => Wait::Stopped,
            b'Z' | b'X' => Wait::Zombie,
            _ => {
                let (pid, tty) = (process.pid, process.tty);
                let view = View { proc: self.proc, terminal, pid, tid, tty, folder: None };
                let mut buffer = [0; 256];
                match self.proc.read(format_args!("{pid}/task/{tid}/syscall"), &mut buffer) {
                    Ok(text) => decode::wait_of(&view, text),
                    Err(error) => decode::unreadable(&view, &error),
                }
            }
        })
    }

    /// Keeps watch of threads outside a group that may change it under us, by a new child that joins
    /// it: those of the session's `leader`, and of everybody between it and a member.
    pub(super) fn watch_parents(&mut self, members: &[Stat], leader: i32) {
        let mut inside: HashSet<i32> = members.iter().map(|it| it.pid).collect();
        // Orphans are the host's children, and it starts none for them.
        inside.insert(getpid().as_raw_nonzero().get());
        let mut parents = vec![leader];
        parents.extend(members.iter().map(|it| it.parent));
        for mut pid in parents {
            while pid > 1 && inside.insert(pid) {
                for tid in self.proc.threads(pid) {
                    self.watch(pid, tid);
                }
                if pid == leader {
                    break;
                }
                pid = self.proc.stat(pid).map_or(0, |it| it.parent);
            }
        }
    }

    fn watch(&mut self, pid: i32, tid: i32) {
        // The counter is read before the state, as above.
        let counter = Counter::of(self.proc, pid, tid);
        let state = self.proc.thread_stat(pid, tid).map(|it| it.state);
        self.counters.keep(counter.filter(|_| !matches!(state, Some(b'R' | b'D'))));
    }

    /// The session's processes: below the leader, and its orphans.
    fn session(&self, terminal: TerminalIdentity) -> Vec<Stat> {
        let orphans = tree::orphans(self.proc, false)
            .into_iter()
            .filter(|it| it.session == self.leader || it.tty == terminal.tty)
            .map(|it| it.pid);
        let roots = std::iter::once(self.leader).chain(orphans);
        tree::walk(self.proc, roots).into_iter().map(|(stat, _)| stat).collect()
    }

    /// Whom the members wait for outside their group.
    fn awaited(
        &mut self,
        terminal: TerminalIdentity,
        tree: &[Stat],
        group: i32,
        members: &[ProcessFacts],
    ) -> Vec<ProcessFacts> {
        let others: Vec<&Stat> = tree.iter().filter(|it| it.group != group).collect();
        if others.is_empty() || members.iter().any(|it| it.pid == self.leader) {
            return Vec::new();
        }
        let parents: Vec<i32> = waiting(members, |it| *it == Wait::Child).collect();
        let readers = waiting(
            members,
            |it| matches!(it, Wait::OtherInput { on, .. } if on.contains(&Descriptor::Pipe)),
        );
        let pipes: Vec<_> = readers.flat_map(|pid| self.pipes(pid, End::Reading)).collect();
        let awaited: Vec<Stat> = others
            .into_iter()
            .filter(|it| {
                let child = it.session != self.leader
                    && parents.iter().any(|&parent| descends(tree, it, parent));
                let writes =
                    || self.pipes(it.pid, End::Writing).iter().any(|it| pipes.contains(it));
                child || (!pipes.is_empty() && writes())
            })
            .cloned()
            .collect();
        self.look_at(terminal, &awaited)
    }

    /// Pipes and FIFOs of which a process holds such an end.
    fn pipes(&self, pid: i32, end: End) -> Vec<(u64, u64)> {
        let pipe = |fd: i32| {
            let stat = self.proc.metadata(format_args!("{pid}/fd/{fd}")).ok()?;
            let access = self.proc.access_mode(pid, pid, fd)?;
            let held = FileType::from_raw_mode(stat.st_mode).is_fifo() && end == access;
            held.then_some((stat.st_dev, stat.st_ino))
        };
        self.proc.descriptors(pid, pid).into_iter().filter_map(pipe).collect()
    }
}

/// Processes of which a thread waits like that.
fn waiting(processes: &[ProcessFacts], like: impl Fn(&Wait) -> bool) -> impl Iterator<Item = i32> {
    processes
        .iter()
        .filter(move |it| it.threads.iter().any(|thread| like(&thread.wait)))
        .map(|it| it.pid)
}

fn descends(tree: &[Stat], process: &Stat, ancestor: i32) -> bool {
    let mut parent = process.parent;
    // The tree may have changed during the walk, so the way up is not trusted to end.
    for _ in 0..tree.len() {
        if parent == ancestor {
            return true;
        }
        let Some(next) = tree.iter().find(|it| it.pid == parent) else { return false };
        parent = next.parent;
    }
    false
}

/// Whether a thread of it waits for the master of another terminal.
pub(super) fn waits_for_master(process: &ProcessFacts) -> bool {
    process.threads.iter().any(|thread| match &thread.wait {
        Wait::Multiplexed { others: on, .. } | Wait::OtherInput { on, .. } => {
            on.contains(&Descriptor::PtyMaster)
        }
        _ => false,
    })
}

/// Whether it is a wait for the session's terminal.
pub(super) fn waits_on_terminal(wait: &Wait) -> bool {
    matches!(wait, Wait::TerminalRead { .. } | Wait::Multiplexed { .. })
}
