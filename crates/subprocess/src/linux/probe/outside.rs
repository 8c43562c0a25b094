//! Who waits for the terminal without being in its foreground group: a program that `su` or `setsid`
//! gave a session of its own, a multiplexer's server, a dialog of another daemon.
//!
//! Looking for them means looking at everybody's descriptors, so it is done only when something is
//! unexplained for a moment, and rarely.

use std::time::{Duration, Instant};

use super::{
    gate::Seen,
    scan::{Found, waits_on_terminal},
};
use crate::{
    evidence::Wait,
    linux::{
        decode,
        descriptor::View,
        procfs::{Proc, Stat},
        pty::TerminalIdentity,
    },
};

/// A blocked read has to be unexplained for so long.
const READ_UNEXPLAINED: Duration = Duration::from_millis(5);
/// A program's own modes have to be.
const MODES_UNEXPLAINED: Duration = Duration::from_millis(60);
/// Between two searches.
const PAUSE: Duration = Duration::from_secs(1);

/// Those who were found.
#[derive(Default)]
pub(super) struct Outside {
    /// Since this group is in front.
    group: i32,
    found: Vec<i32>,
    unexplained: Option<Instant>,
    searched: Option<Instant>,
}

impl Outside {
    /// Those who were found while `group` is in front.
    pub(super) fn of(&mut self, group: i32) -> &[i32] {
        if self.group != group {
            *self = Self { group, searched: self.searched, ..Self::default() };
        }
        &self.found
    }

    /// A search is due: the next full look may not rest on the last.
    pub(super) fn is_due(&self) -> bool {
        let rested = self.searched.is_none_or(|it| it.elapsed() >= PAUSE);
        // Found once, they are not looked for again.
        self.unexplained.is_some() && self.found.is_empty() && rested
    }

    /// Takes in what a look saw; true once it is time to search.
    pub(super) fn wanted(&mut self, found: &Found, terminal: Seen) -> bool {
        let waits = |like: fn(&Wait) -> bool| {
            let threads = found.processes.iter().chain(&found.outside).flat_map(|it| &it.threads);
            threads.map(|it| &it.wait).any(like)
        };
        let read = terminal.blocked_reader == Some(true)
            && !waits(|it| matches!(it, Wait::TerminalRead { .. }));
        let own_modes = terminal.modes.is_some_and(|it| !it.canonical || !it.echo);
        let after = match (read, own_modes && !waits(waits_on_terminal)) {
            (true, _) => READ_UNEXPLAINED,
            (_, true) => MODES_UNEXPLAINED,
            _ => {
                self.unexplained = None;
                return false;
            }
        };
        let since = *self.unexplained.get_or_insert_with(Instant::now);
        self.is_due() && since.elapsed() >= after
    }

    /// Looks for them among all processes of other sessions than `leader`'s. True if there are any.
    pub(super) fn search(&mut self, proc: &Proc, terminal: TerminalIdentity, leader: i32) -> bool {
        self.searched = Some(Instant::now());
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        let others = proc.processes().into_iter().filter(|&it| it != own);
        self.found = others
            .filter_map(|pid| proc.stat(pid))
            // Children of 2 are the kernel's own.
            .filter(|it| it.session != leader && it.session != 0 && it.parent != 2)
            .filter(|it| holds(proc, terminal, it) && waits(proc, terminal, it))
            .map(|it| it.pid)
            .collect();
        !self.found.is_empty()
    }
}

fn holds(proc: &Proc, terminal: TerminalIdentity, process: &Stat) -> bool {
    let (pid, tty) = (process.pid, process.tty);
    let view = View { proc, terminal, pid, tid: pid, tty, folder: None };
    proc.descriptors(pid, pid).into_iter().any(|fd| view.is_terminal(fd))
}

fn waits(proc: &Proc, terminal: TerminalIdentity, process: &Stat) -> bool {
    let (pid, tty) = (process.pid, process.tty);
    proc.threads(pid).into_iter().any(|tid| {
        let view = View { proc, terminal, tid, pid, tty, folder: None };
        let mut buffer = [0; 256];
        proc.read(format_args!("{pid}/task/{tid}/syscall"), &mut buffer)
            .is_ok_and(|text| waits_on_terminal(&decode::wait_of(&view, text)))
    })
}
