//! One look at a terminal and its foreground, cheap enough to be taken hundreds of times a second.
//!
//! - The order of the looks is that of [`Evidence`]'s fields and is what makes them sound.
//! - The *fast path* looks at the thread that waited last time, then at the group leader's main
//!   thread, through files kept open.
//! - A process that is *alone* in the foreground is looked at in full that way; where it runs, only at
//!   the first looks after input: somebody else could wait for the terminal meanwhile.
//! - The *gate* answers with the last full scan as long as no thread of it has run since. It is trusted
//!   after a second scan found the same, and never built on a scan that saw a thread running.
//! - While the gate stands and nobody waits for the terminal, most looks ask for no more than that: who
//!   else could read or change it is asked at every few looks.

mod alone;
mod gate;
mod inner;
mod outside;
mod scan;
mod self_test;

use std::os::fd::{AsFd as _, OwnedFd};

pub(crate) use self::self_test::reader_test_works;
use self::{
    alone::Alone,
    gate::{Gate, Seen},
    outside::Outside,
    scan::{Found, waits_on_terminal},
};
use super::{
    decode,
    descriptor::View,
    procfs::{Proc, Stat, reread},
    pty::{Pty, TerminalIdentity},
};
use crate::evidence::{Depth, Evidence, ProcessFacts, Scan, ThreadFacts, Wait};

/// So many looks in a row may rest on the gate alone.
const MOST_RESTS: u32 = 3;
/// So many looks after input may find that who is alone runs, and leave it at that.
const MOST_RUNS: u32 = 3;
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
    /// Who was alone in the foreground at the last full scan.
    alone: Option<Alone>,
    /// How often since input was written it was seen to run, and nobody else was looked for.
    ran: u32,
    outside: Outside,
    /// The last look, if nobody waited for the terminal then, and how often it was given again.
    rest: Option<(Evidence, u32)>,
}

/// A thread whose files are kept open.
struct Watched {
    pid: i32,
    tid: i32,
    stat: OwnedFd,
    syscall: OwnedFd,
}

impl Prober {
    pub(crate) fn new(leader: i32, terminal: TerminalIdentity, reader_test: bool) -> Self {
        Self {
            leader,
            terminal,
            reader_test,
            waiter: None,
            watched: Vec::new(),
            gate: None,
            alone: None,
            ran: 0,
            outside: Outside::default(),
            rest: None,
        }
    }

    /// Input was written: what the last look found is over.
    pub(crate) fn stirred(&mut self) {
        self.rest = None;
        self.ran = 0;
    }

    /// Takes a look. Without `proc` only the terminal itself is looked at.
    pub(crate) fn probe(
        &mut self,
        pty: &Pty,
        proc: Option<&Proc>,
        unwritten: usize,
        depth: Depth,
    ) -> Evidence {
        if depth == Depth::Full
            && let Some(evidence) = self.rest(pty, unwritten)
        {
            return evidence;
        }
        let unread_input = pty.unread_input();
        let foreground = pty.foreground();
        // Held back from fast looks: taken many times in a row it would get in a reader's way.
        let test = self.reader_test && depth == Depth::Full;
        let blocked_reader = if test { pty.blocked_reader() } else { None };
        let taken = unwritten == 0 && unread_input != Some(true);
        let (scan, found) = match (proc, foreground) {
            (Some(_), _) if depth == Depth::Fast && !taken => (Scan::Fast, Found::default()),
            (Some(proc), Some(group)) if depth == Depth::Fast => {
                let (scan, found) = match self.at_a_glance(proc, group) {
                    Some(all) if !runs(&all) => (Scan::Full, Some(all)),
                    _ => (Scan::Fast, self.fast(proc, group)),
                };
                (scan, Found { processes: found.into_iter().collect(), ..Found::default() })
            }
            (Some(proc), Some(foreground)) => {
                self.full(proc, Seen { foreground, blocked_reader, modes: pty.modes() })
            }
            (Some(_), None) => (Scan::Full, Found::default()),
            (None, _) => (Scan::Blind, Found::default()),
        };
        let Found { processes, outside, awaited, inner } = found;
        let evidence = Evidence {
            unwritten,
            unread_input,
            foreground,
            blocked_reader,
            modes: pty.modes(),
            scan,
            processes,
            outside,
            awaited,
            inner,
            unread_output: pty.unread_output(),
        };
        let rests = scan == Scan::Unchanged
            && taken
            && blocked_reader != Some(true)
            && self.waiter.is_none()
            && !self.outside.is_due();
        self.rest = rests.then(|| (evidence.clone(), 0));
        evidence
    }

    /// The last look again, as long as nothing of it has run.
    fn rest(&mut self, pty: &Pty, unwritten: usize) -> Option<Evidence> {
        if !self.rests(pty, unwritten) {
            return None;
        }
        let (evidence, _) = self.rest.as_mut()?;
        evidence.unread_output = pty.unread_output();
        Some(evidence.clone())
    }

    /// Whether the last look may be given again, since nothing of it has run: a few times in a row.
    pub(crate) fn rests(&mut self, pty: &Pty, unwritten: usize) -> bool {
        let Some((evidence, given)) = self.rest.as_mut() else { return false };
        *given += 1;
        let stands = *given <= MOST_RESTS
            && unwritten == 0
            && pty.foreground() == evidence.foreground
            // Whoever changes them may be outside the scan.
            && pty.modes() == evidence.modes
            && self.gate.as_ref().is_some_and(Gate::rests);
        if !stands {
            self.rest = None;
        }
        stands
    }

    fn full(&mut self, proc: &Proc, terminal: Seen) -> (Scan, Found) {
        let group = terminal.foreground;
        let old = self.gate.take().filter(|it| it.stands(terminal));
        let stands = old.as_ref().filter(|it| it.confirmed && !self.outside.is_due());
        if let Some(found) = stands.map(|it| it.found.clone()) {
            self.gate = old;
            return (Scan::Unchanged, found);
        }
        if old.is_none()
            && let Some(all) = self.at_a_glance(proc, group)
            && (!runs(&all) || self.may_only_run())
        {
            return (Scan::Full, Found { processes: vec![all], ..Found::default() });
        }
        let (mut found, mut counters) = self.scan(proc, group);
        if found.processes.is_empty() {
            return (Scan::Blind, found);
        }
        if self.outside.wanted(&found, terminal)
            && self.outside.search(proc, self.terminal, self.leader)
        {
            (found, counters) = self.scan(proc, group);
        }
        self.waiter = waiter(found.processes.iter().chain(&found.outside));
        if !self.alone.as_ref().is_some_and(|it| it.stands(&found)) {
            self.alone = Alone::of(proc, self.leader, group, &found);
        }
        self.gate = counters.map(|counters| {
            // The old counters were read before this scan: if they still stand, nothing ran during it.
            let old = old.filter(|it| it.stands(terminal));
            let confirmed = old.is_some_and(|it| it.counters.len() == counters.len());
            Gate { terminal, counters, confirmed, found: found.clone() }
        });
        (Scan::Full, found)
    }

    /// Whether that who is alone runs is answer enough: a few times after each input.
    fn may_only_run(&mut self) -> bool {
        self.ran += 1;
        self.ran <= MOST_RUNS
    }

    /// Everybody, where one process is alone in the foreground, and waits on the terminal or runs.
    fn at_a_glance(&self, proc: &Proc, group: i32) -> Option<ProcessFacts> {
        self.alone.as_ref()?.look(proc, self.terminal, group)
    }

    /// The counters are none where they cannot vouch for what was found.
    fn scan(&mut self, proc: &Proc, group: i32) -> (Found, Option<Vec<gate::Counter>>) {
        let mut scan = scan::Scan::new(proc, self.leader, self.reader_test);
        let found = scan.run(self.terminal, group, self.outside.of(group));
        (found, scan.counters.into_inner())
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
        let view = View { proc, terminal: self.terminal, pid, tid, tty: stat.tty, folder: None };
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
}

/// Whether a thread of it is on a processor, or ready to be.
fn runs(process: &ProcessFacts) -> bool {
    process.threads.iter().any(|it| it.wait == Wait::Running)
}

fn waiter<'a>(processes: impl Iterator<Item = &'a ProcessFacts>) -> Option<(i32, i32)> {
    let mut processes = processes;
    processes.find_map(|process| {
        let thread = process.threads.iter().find(|it| waits_on_terminal(&it.wait))?;
        Some((process.pid, thread.tid))
    })
}
