//! What the foreground does, whether or not somebody in it waits for the terminal.

use subprocess::{Descriptor, Evidence, InnerTerminal, ProcessFacts, Wait};
use terminal::{Busy, Foreground};

use super::foreground;

/// What the foreground does while nobody in it waits for the terminal.
pub(super) struct Activity {
    pub(super) busy: Option<Busy>,
    pub(super) visibly_busy: bool,
    pub(super) foreground: Option<Foreground>,
}

/// What a thread does; of those of one process, the last in this order tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Doing {
    Gone,
    Unknown,
    /// Waits for what others write.
    Pipe,
    /// Waits for a child.
    Child,
    Stopped,
    Opaque,
    Network,
    /// Waits for a time, or for a lock.
    Sleeping,
    Running,
}

/// A process that waits for another one says what the other one says: who waits for a child or reads
/// a pipe speaks only where nobody else does. Of several that do different things, the one that is
/// seen to work decides.
pub(super) fn activity(evidence: &Evidence) -> Activity {
    let mut all: Vec<&ProcessFacts> = evidence.processes.iter().collect();
    add_inner(&mut all, &evidence.inner);
    let mut leading = speaker(&all);
    if leading.is_none_or(|(doing, _)| !speaks(doing)) {
        all.extend(&evidence.awaited);
        leading = speaker(&all);
    }
    let (busy, visibly_busy) = match leading.map(|(doing, _)| doing) {
        None | Some(Doing::Gone | Doing::Unknown) => (None, false),
        Some(Doing::Pipe) => (Some(Busy::Pipe), true),
        Some(Doing::Child) => (Some(Busy::WaitingChild), true),
        Some(Doing::Stopped) => (Some(Busy::Stopped), false),
        Some(Doing::Opaque) => (Some(Busy::Opaque), false),
        Some(Doing::Network) => (Some(Busy::Network), false),
        Some(Doing::Sleeping) => (Some(Busy::Sleeping), true),
        Some(Doing::Running) => (Some(Busy::Running), true),
    };
    let foreground = leading.map(|(_, process)| foreground(process));
    Activity { busy, visibly_busy, foreground }
}

fn speaker<'a>(all: &[&'a ProcessFacts]) -> Option<(Doing, &'a ProcessFacts)> {
    let doing = all.iter().map(|&process| (process_doing(process), process));
    doing.max_by_key(|(doing, process)| (speaks(*doing), *doing, process.pid))
}

/// Whether it tells something of its own.
fn speaks(doing: Doing) -> bool {
    !matches!(doing, Doing::Gone | Doing::Pipe | Doing::Child)
}

/// Adds who is in front of the terminals behind a relay.
pub(super) fn add_inner<'a>(all: &mut Vec<&'a ProcessFacts>, inner: &'a [InnerTerminal]) {
    for terminal in inner {
        all.extend(&terminal.processes);
        add_inner(all, &terminal.inner);
    }
}

pub(super) fn process_doing(process: &ProcessFacts) -> Doing {
    process.threads.iter().map(|thread| thread_doing(&thread.wait)).max().unwrap_or(Doing::Unknown)
}

fn thread_doing(wait: &Wait) -> Doing {
    match wait {
        Wait::Running | Wait::Uninterruptible | Wait::Writing(_) => Doing::Running,
        Wait::Sleeping | Wait::Lock => Doing::Sleeping,
        Wait::Child => Doing::Child,
        Wait::Stopped => Doing::Stopped,
        Wait::Opaque => Doing::Opaque,
        Wait::OtherInput { on, timeout_ms } => {
            let has = |it: &Descriptor| on.contains(it);
            if has(&Descriptor::Socket) {
                Doing::Network
            } else if has(&Descriptor::Pipe) {
                Doing::Pipe
            } else if timeout_ms.is_some() || has(&Descriptor::TimerFd) {
                Doing::Sleeping
            } else {
                Doing::Unknown
            }
        }
        Wait::Zombie => Doing::Gone,
        Wait::TerminalRead { .. } | Wait::Multiplexed { .. } | Wait::Signal | Wait::Other(_) => {
            Doing::Unknown
        }
    }
}
