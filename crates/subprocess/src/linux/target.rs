//! One process that is to end: signals to exactly it, and its end.
//!
//! - Signals go through pidfds, or to numbers whose start time was just compared: never to a
//!   process that took the number of a dead one.
//! - While an end is waited for, output is read, so that a program that writes its last words to
//!   a full terminal can end.

use std::{
    future::poll_fn,
    os::fd::OwnedFd,
    pin::pin,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal},
};
use tokio::io::{Interest, unix::AsyncFd};

use super::{
    arrivals::Arrivals,
    process::{Drained, drain},
    procfs::{Proc, Stat},
    sys,
};
use crate::host::Survivor;

/// Output kept of a session that is being ended; what exceeds it is read and dropped.
const OUTPUT_KEPT: usize = 4 * 1024 * 1024;
/// Between two looks for an end that is no event.
pub(crate) const RECHECK: Duration = Duration::from_millis(5);

/// What names a process for good: its number and its start time.
pub(crate) type Identity = (i32, u64);

/// A living process that is to end.
pub(crate) struct Target {
    pub(crate) stat: Stat,
    /// None where no more could be opened.
    pidfd: Option<AsyncFd<OwnedFd>>,
    /// Why the last signal was not sent.
    pub(crate) refused: Option<Errno>,
}

impl Target {
    /// Opens the process's pidfd if `watched`. Needs a tokio runtime.
    pub(crate) fn new(proc: &Proc, stat: Stat, watched: bool) -> Self {
        let pidfd = watched.then(|| open(proc, &stat)).flatten();
        let pidfd = pidfd.and_then(|it| sys::watch(it, Interest::READABLE).ok());
        Self { stat, pidfd, refused: None }
    }

    pub(crate) fn identity(&self) -> Identity {
        (self.stat.pid, self.stat.start)
    }

    /// Signals it and remembers a refusal; one that is gone counts as signalled.
    pub(crate) fn signal(&mut self, proc: &Proc, signal: Signal) {
        let sent = match &self.pidfd {
            Some(pidfd) => pidfd_send_signal(pidfd.get_ref(), signal),
            None => signal_number(proc, &self.stat, signal),
        };
        self.refused = sent.err().filter(|&it| it != Errno::SRCH);
        if let Some(error) = self.refused {
            tracing::debug!(pid = self.stat.pid, ?signal, %error, "not signalled");
        }
    }

    /// Waits until it is gone.
    async fn ended(&self, proc: &Proc) {
        if let Some(pidfd) = &self.pidfd {
            // An error could not be waited out either.
            let _readable = pidfd.readable().await;
            return;
        }
        while proc
            .stat(self.stat.pid)
            .is_some_and(|it| it.start == self.stat.start && !it.is_dead())
        {
            tokio::time::sleep(RECHECK).await;
        }
    }

    /// How it is named in an error.
    pub(crate) fn survivor(&self) -> Survivor {
        let reason = match self.refused {
            Some(Errno::PERM) => "not permitted to signal it (it runs as another user)".to_owned(),
            Some(error) => std::io::Error::from(error).to_string(),
            None if self.stat.state == b'D' => {
                "in an uninterruptible wait, does not end after SIGKILL".to_owned()
            }
            None => "still there after SIGKILL".to_owned(),
        };
        Survivor { pid: self.stat.pid, command: self.stat.command.clone(), reason }
    }
}

/// Kills exactly this process; one that is gone counts as killed.
pub(crate) fn kill_exactly(proc: &Proc, stat: &Stat) -> Result<(), Errno> {
    signal_exactly(proc, stat, Signal::KILL)
}

/// Signals exactly this process; one that is gone counts as signalled.
pub(crate) fn signal_exactly(proc: &Proc, stat: &Stat, signal: Signal) -> Result<(), Errno> {
    let sent = match open(proc, stat) {
        Some(pidfd) => pidfd_send_signal(pidfd, signal),
        None => signal_number(proc, stat, signal),
    };
    sent.or_else(|error| if error == Errno::SRCH { Ok(()) } else { Err(error) })
}

/// A pidfd of exactly this process; none when it is gone or no descriptor is left.
pub(crate) fn open(proc: &Proc, stat: &Stat) -> Option<OwnedFd> {
    let pidfd = pidfd_open(Pid::from_raw(stat.pid)?, PidfdFlags::NONBLOCK).ok()?;
    (proc.stat(stat.pid)?.start == stat.start).then_some(pidfd)
}

/// Signals a process without a pidfd, if its number is still its own.
fn signal_number(proc: &Proc, stat: &Stat, signal: Signal) -> Result<(), Errno> {
    match Pid::from_raw(stat.pid) {
        Some(pid) if proc.stat(stat.pid).is_some_and(|it| it.start == stat.start) => {
            kill_process(pid, signal)
        }
        _ => Ok(()),
    }
}

/// Waits until all `targets` are gone; false if the deadline passed before.
pub(crate) async fn wait(
    proc: &Proc,
    targets: &[Target],
    deadline: Instant,
    kept: &mut Kept<'_>,
) -> bool {
    for target in targets {
        if !wait_for(target.ended(proc), deadline, kept).await {
            return false;
        }
    }
    true
}

/// Waits for one end, reading output meanwhile; false if the deadline passed before.
pub(crate) async fn wait_for(
    end: impl Future<Output = ()>,
    deadline: Instant,
    kept: &mut Kept<'_>,
) -> bool {
    let mut end = pin!(end);
    let mut open = true;
    loop {
        tokio::select! {
            () = &mut end => return true,
            () = tokio::time::sleep_until(deadline.into()) => return false,
            () = poll_fn(|cx| kept.master.poll(cx)), if open => open = kept.read(),
        }
    }
}

/// Output read while a session is ended, up to a bound.
pub(crate) struct Kept<'a> {
    master: &'a Arrivals,
    output: &'a mut Vec<u8>,
    /// Length before.
    from: usize,
}

impl<'a> Kept<'a> {
    /// Reads from `master`, appends to `output`.
    pub(crate) fn new(master: &'a Arrivals, output: &'a mut Vec<u8>) -> Self {
        let from = output.len();
        Self { master, output, from }
    }

    /// Reads what is there; false when nothing will come any more.
    pub(crate) fn read(&mut self) -> bool {
        let drained = drain(self.master.get_ref(), self.output, OUTPUT_KEPT);
        self.output.truncate(self.from + OUTPUT_KEPT);
        !matches!(drained, Drained::Hangup)
    }
}
