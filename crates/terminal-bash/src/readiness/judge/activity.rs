//! What the foreground does, whether or not somebody in it waits for the terminal.

use subprocess::{Descriptor, ProcessFacts, Wait};
use terminal::{Busy, Foreground};

use super::{Waiter, foreground};

/// What the foreground does while nobody in it waits for the terminal.
pub(super) struct Activity {
    pub(super) busy: Option<Busy>,
    pub(super) visibly_busy: bool,
    pub(super) foreground: Option<Foreground>,
    pub(super) running: bool,
    pub(super) opaque: Option<Waiter>,
}

/// What one process does, from the most to the least telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Doing {
    Unknown,
    /// Waits for what others write.
    Pipe,
    /// Waits for a child.
    Child,
    Stopped,
    Opaque,
    Network,
    Sleeping,
    Running,
}

pub(super) fn activity(processes: &[ProcessFacts]) -> Activity {
    let doing: Vec<(Doing, &ProcessFacts)> =
        processes.iter().map(|process| (process_doing(process), process)).collect();
    // A process that waits for another one says what the other one says. Of several that do
    // different things, the one that is seen to work decides.
    let leading = doing.iter().max_by_key(|(doing, process)| (*doing, process.pid));
    let opaque = doing
        .iter()
        .find(|(doing, _)| *doing == Doing::Opaque)
        .map(|(_, process)| Waiter { pid: process.pid, tid: process.pid });
    let (busy, visibly_busy) = match leading.map(|(doing, _)| *doing) {
        None | Some(Doing::Unknown) => (None, false),
        Some(Doing::Pipe) => (Some(Busy::Pipe), true),
        Some(Doing::Child) => (Some(Busy::WaitingChild), true),
        Some(Doing::Stopped) => (Some(Busy::Stopped), false),
        Some(Doing::Opaque) => (Some(Busy::Opaque), false),
        Some(Doing::Network) => (Some(Busy::Network), false),
        Some(Doing::Sleeping) => (Some(Busy::Sleeping), true),
        Some(Doing::Running) => (Some(Busy::Running), true),
    };
    Activity {
        busy,
        visibly_busy,
        foreground: leading.map(|(_, process)| foreground(process)),
        running: doing.iter().any(|(doing, _)| *doing == Doing::Running),
        opaque,
    }
}

pub(super) fn process_doing(process: &ProcessFacts) -> Doing {
    process.threads.iter().map(|thread| thread_doing(&thread.wait)).max().unwrap_or(Doing::Unknown)
}

fn thread_doing(wait: &Wait) -> Doing {
    match wait {
        Wait::Running | Wait::Uninterruptible | Wait::Writing(_) => Doing::Running,
        Wait::Sleeping => Doing::Sleeping,
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
        Wait::TerminalRead { .. } | Wait::Multiplexed { .. } | Wait::Zombie | Wait::Other(_) => {
            Doing::Unknown
        }
    }
}
