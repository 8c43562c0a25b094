//! One look at a terminal and its foreground, cheap enough to be taken hundreds of times a second.
//!
//! - The order of the looks is that of [`Evidence`]'s fields and is what makes them sound.
//! - The *fast path* looks at the thread that waited last time, then at the group leader's main
//!   thread, through files kept open.
//! - The *gate* answers with the last full scan as long as no thread of it has run since: the
//!   kernel counts how often each was put on a processor. It is trusted after a second scan found
//!   the same, and never built on a scan that saw a thread running. Those outside the group who
//!   could put a new child into it are kept watch of as well.

use std::{
    collections::HashSet,
    os::fd::{AsFd as _, OwnedFd},
    sync::OnceLock,
    time::Duration,
};

use rustix::process::getpid;

use super::{
    decode,
    descriptor::View,
    procfs::{Proc, Stat, reread},
    pty::{Pty, TerminalIdentity},
    tree,
};
use crate::evidence::{Depth, Evidence, ProcessFacts, Scan, ThreadFacts, Wait};

/// More threads than this are not kept watch of.
const MAX_GATED: usize = 128;
/// Threads whose files are kept open.
const MAX_WATCHED: usize = 4;

/// Looks at one terminal.
pub(crate) struct Prober {
    leader: i32,
    terminal: TerminalIdentity,
    /// Whether the zero-byte read passed its self-test.
    reader_test: bool,
    /// The thread that waited on the terminal last time.
    waiter: Option<(i32, i32)>,
    watched: Vec<Watched>,
    gate: Option<Gate>,
}

/// A thread whose files are kept open.
struct Watched {
    pid: i32,
    tid: i32,
    stat: OwnedFd,
    syscall: OwnedFd,
}

/// What must be unchanged for the last full scan to stand.
struct Gate {
    foreground: i32,
    blocked_reader: Option<bool>,
    counters: Vec<Counter>,
    confirmed: bool,
    processes: Vec<ProcessFacts>,
}

/// `schedstat` of a thread: time on a processor, time waiting for one, times it was put on one.
struct Counter {
    file: OwnedFd,
    text: Vec<u8>,
}

impl Prober {
    pub(crate) fn new(leader: i32, terminal: TerminalIdentity, reader_test: bool) -> Self {
        Self { leader, terminal, reader_test, waiter: None, watched: Vec::new(), gate: None }
    }

    /// Takes a look. Without `proc` only the terminal itself is looked at.
    pub(crate) fn probe(
        &mut self,
        pty: &Pty,
        proc: Option<&Proc>,
        unwritten: usize,
        depth: Depth,
    ) -> Evidence {
        let unread_input = pty.unread_input();
        let foreground = pty.foreground();
        // Held back from fast looks: taken many times in a row it would get in a reader's way.
        let test = self.reader_test && depth == Depth::Full;
        let blocked_reader = if test { pty.blocked_reader() } else { None };
        let taken = unwritten == 0 && unread_input != Some(true);
        let (scan, processes) = match (proc, foreground) {
            (Some(_), _) if depth == Depth::Fast && !taken => (Scan::Fast, Vec::new()),
            (Some(proc), Some(group)) if depth == Depth::Fast => {
                (Scan::Fast, self.fast(proc, group).into_iter().collect())
            }
            (Some(proc), Some(group)) => self.full(proc, group, blocked_reader),
            (Some(_), None) => (Scan::Full, Vec::new()),
            (None, _) => (Scan::Blind, Vec::new()),
        };
        Evidence {
            unwritten,
            unread_input,
            foreground,
            blocked_reader,
            modes: pty.modes(),
            scan,
            processes,
            unread_output: pty.unread_output(),
        }
    }

    fn full(
        &mut self,
        proc: &Proc,
        group: i32,
        blocked_reader: Option<bool>,
    ) -> (Scan, Vec<ProcessFacts>) {
        let old = self.gate.take().filter(|it| it.stands(group, blocked_reader));
        if let Some(gate) = old.as_ref().filter(|it| it.confirmed) {
            let processes = gate.processes.clone();
            self.gate = old;
            return (Scan::Unchanged, processes);
        }
        let (processes, counters) = self.scan(proc, group);
        if processes.is_empty() {
            return (Scan::Blind, processes);
        }
        self.waiter = waiter(&processes);
        self.gate = counters.map(|counters| {
            // The old counters were read before this scan: if they still stand, nothing ran during it.
            let old = old.filter(|it| it.stands(group, blocked_reader));
            let confirmed = old.is_some_and(|it| it.counters.len() == counters.len());
            Gate {
                foreground: group,
                blocked_reader,
                counters,
                confirmed,
                processes: processes.clone(),
            }
        });
        (Scan::Full, processes)
    }

    /// The process that waited last time, or the group's leader, if it waits on the terminal.
    fn fast(&mut self, proc: &Proc, group: i32) -> Option<ProcessFacts> {
        let last = self.waiter.filter(|&it| it != (group, group));
        last.into_iter().chain([(group, group)]).find_map(|(pid, tid)| {
            let found = self.fast_thread(proc, group, pid, tid)?;
            self.waiter = Some((pid, tid));
            Some(found)
        })
    }

    fn fast_thread(&mut self, proc: &Proc, group: i32, pid: i32, tid: i32) -> Option<ProcessFacts> {
        let index = self.watch(proc, pid, tid)?;
        let watched = &self.watched[index];
        let mut buffer = [0; 1024];
        let stat = reread(watched.stat.as_fd(), &mut buffer).ok().and_then(Stat::parse);
        let Some(stat) = stat else {
            self.watched.swap_remove(index);
            return None;
        };
        if stat.group != group || stat.state != b'S' {
            return None;
        }
        let text = reread(watched.syscall.as_fd(), &mut buffer).ok()?;
        let view = View { proc, terminal: self.terminal, pid, tid, tty: stat.tty };
        let wait = decode::wait_of(&view, text);
        if !waits_on_terminal(&wait) {
            return None;
        }
        // A thread's own name is not its process's.
        let command = if pid == tid { stat.command } else { proc.stat(pid)?.command };
        Some(ProcessFacts {
            pid,
            parent: stat.parent,
            command,
            thread_count: stat.threads,
            cpu_ns: None,
            threads: vec![ThreadFacts { tid, wait }],
        })
    }

    /// Index of the kept files of a thread, which are opened at need.
    fn watch(&mut self, proc: &Proc, pid: i32, tid: i32) -> Option<usize> {
        if let Some(index) = self.watched.iter().position(|it| (it.pid, it.tid) == (pid, tid)) {
            return Some(index);
        }
        let stat = proc.file(format_args!("{pid}/task/{tid}/stat")).ok()?;
        let syscall = proc.file(format_args!("{pid}/task/{tid}/syscall")).ok()?;
        if self.watched.len() >= MAX_WATCHED {
            self.watched.remove(0);
        }
        self.watched.push(Watched { pid, tid, stat, syscall });
        Some(self.watched.len() - 1)
    }

    /// Looks at all threads of the group. The counters are none where they cannot vouch for it.
    fn scan(&self, proc: &Proc, group: i32) -> (Vec<ProcessFacts>, Option<Vec<Counter>>) {
        let mut counters = Some(Vec::new());
        let mut processes = Vec::new();
        let members = self.members(proc, group);
        for (pid, tid) in self.outside_parents(proc, &members) {
            // Read before the state, as below.
            let counter = counter(proc, pid, tid);
            let state = proc.thread_stat(pid, tid).map(|it| it.state);
            keep(&mut counters, counter.filter(|_| !matches!(state, Some(b'R' | b'D'))));
        }
        for stat in members {
            let tids = if stat.threads > 1 { proc.threads(stat.pid) } else { vec![stat.pid] };
            let mut cpu_ns = Some(0);
            let mut threads = Vec::new();
            for tid in tids {
                // Before the look at the thread: what runs after this shows in the counter.
                let counter = counter(proc, stat.pid, tid);
                cpu_ns = cpu_ns.zip(counter.as_ref().and_then(Counter::cpu_ns)).map(|(a, b)| a + b);
                let Some(wait) = self.thread(proc, &stat, tid) else { continue };
                let still = !matches!(wait, Wait::Running | Wait::Uninterruptible);
                keep(&mut counters, counter.filter(|_| still));
                threads.push(ThreadFacts { tid, wait });
            }
            processes.push(ProcessFacts {
                pid: stat.pid,
                parent: stat.parent,
                command: stat.command,
                thread_count: stat.threads,
                cpu_ns,
                threads,
            });
        }
        (processes, counters)
    }

    fn thread(&self, proc: &Proc, process: &Stat, tid: i32) -> Option<Wait> {
        let state = match process.threads {
            1 if tid == process.pid => process.state,
            _ => proc.thread_stat(process.pid, tid)?.state,
        };
        Some(match state {
            b'R' => Wait::Running,
            b'D' => Wait::Uninterruptible,
            b'T' | b't' => Wait::Stopped,
            b'Z' | b'X' => Wait::Zombie,
            _ => {
                let (pid, tty) = (process.pid, process.tty);
                let view = View { proc, terminal: self.terminal, pid, tid, tty };
                let mut buffer = [0; 256];
                match proc.read(format_args!("{pid}/task/{tid}/syscall"), &mut buffer) {
                    Ok(text) => decode::wait_of(&view, text),
                    Err(error) => decode::unreadable(&error),
                }
            }
        })
    }

    /// Threads outside the group that may change it under us, by a new child that joins it: those of
    /// the leader, and of everybody between it and a member.
    fn outside_parents(&self, proc: &Proc, members: &[Stat]) -> Vec<(i32, i32)> {
        let mut inside: HashSet<i32> = members.iter().map(|it| it.pid).collect();
        // Orphans are the host's children, and it starts none for them.
        inside.insert(getpid().as_raw_nonzero().get());
        let mut threads = Vec::new();
        let mut add = |pid| {
            let new = pid > 1 && inside.insert(pid);
            if new {
                threads.extend(proc.threads(pid).into_iter().map(|tid| (pid, tid)));
            }
            new
        };
        add(self.leader);
        for member in members {
            let mut pid = member.parent;
            while add(pid) {
                pid = proc.stat(pid).map_or(0, |it| it.parent);
            }
        }
        threads
    }

    /// Processes of the group: below the leader and among the session's orphans, else anywhere.
    fn members(&self, proc: &Proc, group: i32) -> Vec<Stat> {
        let orphans = tree::orphans(proc, false)
            .into_iter()
            .filter(|it| it.session == self.leader || it.tty == self.terminal.tty)
            .map(|it| it.pid);
        let mut members: Vec<_> = tree::walk(proc, std::iter::once(self.leader).chain(orphans))
            .into_iter()
            .map(|(stat, _)| stat)
            .filter(|it| it.group == group)
            .collect();
        if members.is_empty() {
            let all = proc.processes().into_iter().filter_map(|pid| proc.stat(pid));
            members.extend(all.filter(|it| it.group == group));
        }
        members
    }
}

impl Gate {
    fn stands(&self, foreground: i32, blocked_reader: Option<bool>) -> bool {
        let mut buffer = [0; 128];
        (self.foreground, self.blocked_reader) == (foreground, blocked_reader)
            && self
                .counters
                .iter()
                .all(|it| reread(it.file.as_fd(), &mut buffer).is_ok_and(|text| text == it.text))
    }
}

impl Counter {
    fn cpu_ns(&self) -> Option<u64> {
        std::str::from_utf8(&self.text).ok()?.split_ascii_whitespace().next()?.parse().ok()
    }
}

/// The counter of a thread; none where the kernel does not count.
fn counter(proc: &Proc, pid: i32, tid: i32) -> Option<Counter> {
    let file = proc.file(format_args!("{pid}/task/{tid}/schedstat")).ok()?;
    let mut buffer = [0; 128];
    let text = reread(file.as_fd(), &mut buffer).ok()?;
    let counts = !text.trim_ascii().ends_with(b" 0");
    counts.then(|| Counter { text: text.to_vec(), file })
}

/// Adds a counter; one that is missing, or one too many, spoils them all.
fn keep(counters: &mut Option<Vec<Counter>>, counter: Option<Counter>) {
    let kept = counters.take().zip(counter).filter(|(kept, _)| kept.len() < MAX_GATED);
    *counters = kept.map(|(mut kept, counter)| {
        kept.push(counter);
        kept
    });
}

fn waits_on_terminal(wait: &Wait) -> bool {
    matches!(wait, Wait::TerminalRead { .. } | Wait::Multiplexed { .. })
}

fn waiter(processes: &[ProcessFacts]) -> Option<(i32, i32)> {
    processes.iter().find_map(|process| {
        let thread = process.threads.iter().find(|it| waits_on_terminal(&it.wait))?;
        Some((process.pid, thread.tid))
    })
}

/// Whether the zero-byte read tells a blocked reader here, tried once on a scratch terminal.
///
/// Blocks for well under a millisecond where it works and for a tenth of a second where it does
/// not. Needs a tokio runtime.
pub(crate) fn reader_test_works() -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    *WORKS.get_or_init(|| {
        let works = try_reader_test().unwrap_or(false);
        if !works {
            tracing::warn!("a blocked reader of a terminal cannot be told here");
        }
        works
    })
}

fn try_reader_test() -> Option<bool> {
    let one = std::num::NonZeroU16::MIN;
    let pty = Pty::open(crate::host::TerminalSize { rows: one, cols: one }).ok()?;
    let slave = pty.slave_for_child().ok()?;
    if pty.blocked_reader() != Some(false) {
        return Some(false);
    }
    let reader = std::thread::Builder::new()
        .name("reader-test".to_owned())
        .spawn(move || rustix::io::read(&slave, &mut [0u8; 8]).is_ok())
        .ok()?;
    // No event says "that thread is blocked now".
    let seen = (0..100).any(|attempt| {
        std::thread::sleep(Duration::from_micros(if attempt < 10 { 20 } else { 1000 }));
        pty.blocked_reader() == Some(true)
    });
    rustix::io::write(pty.master().get_ref(), b"\n").ok()?;
    let ended = reader.join().unwrap_or(false);
    Some(seen && ended && pty.blocked_reader() == Some(false))
}
