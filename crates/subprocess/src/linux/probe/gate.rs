//! The gate: the last full scan, and what must be unchanged for it to stand.
//!
//! The kernel counts how often each thread was put on a processor. As long as no thread of the scan
//! has run, and none that could put a new process into it, another scan would find the same.

use std::os::fd::{AsFd as _, OwnedFd};

use super::scan::Found;
use crate::{
    evidence::Modes,
    linux::procfs::{Proc, reread},
};

/// More threads than this are not kept watch of.
const MAX_GATED: usize = 128;

/// What the terminal itself showed when the scan began: whoever changes it may be outside the scan.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) foreground: i32,
    pub(super) blocked_reader: Option<bool>,
    pub(super) modes: Option<Modes>,
}

/// A full scan that may stand.
pub(super) struct Gate {
    pub(super) terminal: Seen,
    pub(super) counters: Vec<Counter>,
    /// A second scan found the same.
    pub(super) confirmed: bool,
    pub(super) found: Found,
}

impl Gate {
    pub(super) fn stands(&self, terminal: Seen) -> bool {
        self.terminal == terminal && self.rests()
    }

    /// Nobody of it has run.
    pub(super) fn rests(&self) -> bool {
        let mut buffer = [0; 128];
        self.counters
            .iter()
            .all(|it| reread(it.file.as_fd(), &mut buffer).is_ok_and(|text| text == it.text))
    }
}

/// `schedstat` of a thread: time on a processor, time waiting for one, times it was put on one.
pub(super) struct Counter {
    file: OwnedFd,
    text: Vec<u8>,
}

impl Counter {
    /// The counter of a thread; none where the kernel does not count.
    pub(super) fn of(proc: &Proc, pid: i32, tid: i32) -> Option<Self> {
        let file = proc.file(format_args!("{pid}/task/{tid}/schedstat")).ok()?;
        let mut buffer = [0; 128];
        let text = reread(file.as_fd(), &mut buffer).ok()?;
        let counts = !text.trim_ascii().ends_with(b" 0");
        counts.then(|| Self { text: text.to_vec(), file })
    }

    pub(super) fn cpu_ns(&self) -> Option<u64> {
        cpu_ns(&self.text)
    }
}

/// The time on a processor that a `schedstat` tells.
pub(super) fn cpu_ns(schedstat: &[u8]) -> Option<u64> {
    std::str::from_utf8(schedstat).ok()?.split_ascii_whitespace().next()?.parse().ok()
}

/// The counters of one scan; none as soon as they cannot vouch for it.
pub(super) struct Counters(Option<Vec<Counter>>);

impl Counters {
    pub(super) fn new() -> Self {
        Self(Some(Vec::new()))
    }

    /// Adds a counter; one that is missing, or one too many, spoils them all.
    pub(super) fn keep(&mut self, counter: Option<Counter>) {
        let kept = self.0.take().zip(counter).filter(|(kept, _)| kept.len() < MAX_GATED);
        self.0 = kept.map(|(mut kept, counter)| {
            kept.push(counter);
            kept
        });
    }

    /// Something may change without any of these threads.
    pub(super) fn spoil(&mut self) {
        self.0 = None;
    }

    pub(super) fn into_inner(self) -> Option<Vec<Counter>> {
        self.0
    }
}
