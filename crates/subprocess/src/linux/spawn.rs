//! Starting the session leader.
//!
//! - The working directory is checked first, by name, so that a bad one is its own error.
//! - The environment is exactly what was asked for, plus the [`Mark`].
//! - A program that cannot be executed is an error, never a process that exits at once.
//! - The host becomes the reaper of its descendants' orphans, so that none of them leaves the tree
//!   below it.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
    sync::OnceLock,
};

use rustix::{
    fs::{Access, access},
    process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, pidfd_open, pidfd_send_signal,
        set_child_subreaper, waitid,
    },
};
use tokio::io::{Interest, unix::AsyncFd};

use super::{
    cgroup::SessionGroup,
    holds::Holds,
    isolation,
    mark::{Mark, VARIABLE},
    members::Signs,
    pty::{Pty, at},
    reaper,
    signals::name_of,
    sys::{self, Start},
};
use crate::host::{ExitStatus, SpawnError, TerminalSpec};

/// The session leader.
///
/// It is collected only by [`collect`](Self::collect): until then the kernel gives its number to
/// nobody else, neither as process nor as session.
#[derive(Debug)]
pub(crate) struct Leader {
    pub(crate) pid: i32,
    pub(crate) pidfd: AsyncFd<OwnedFd>,
    pub(crate) signs: Signs,
    /// That of the session.
    pub(crate) group: Option<SessionGroup>,
    /// What holds the session to its bounds.
    pub(super) holds: Holds,
    collected: bool,
}

/// Starts `spec` on `pty`. Blocks for a fork and an exec; needs a tokio runtime.
pub(crate) fn start(spec: &TerminalSpec, pty: &Pty) -> Result<Leader, SpawnError> {
    check_cwd(&spec.cwd)?;
    is_subreaper();
    let mark =
        Mark::new().map_err(|error| at("draw a mark")(io::Error::other(error.to_string())))?;
    let slave = pty.slave_for_child().map_err(at("open the other side for the program"))?;
    let exec = |source| SpawnError::Exec { program: spec.program.clone(), source };
    let tty = pty.identity().tty;
    let born = isolation::born(spec).map_err(exec)?;
    let marked = mark.text();
    let mut group = SessionGroup::make();
    let (own, own_users) = (group.as_ref().map(|it| &it.0), born.as_user.is_some());
    let holds = Holds::make(&spec.bounds, own, own_users)
        .map_err(|reason| at("hold it to its bounds")(io::Error::other(reason)))?;
    let marked = (VARIABLE, &*marked);
    let start = Start::new(spec, marked, mark.rttime(), born, holds.of_each()).map_err(exec)?;
    let start = || {
        let folder = group.as_ref().map(|(_, folder)| folder.as_fd());
        let entrances: Vec<_> = holds.entrances().map(|it| it.as_fd()).collect();
        let child = start.leader(slave.as_fd(), folder, &entrances)?;
        if holds.need_group() && !child.in_group {
            reaper::abandon_leader(child.pid);
            return Err(io::Error::other("it was not born into its control group"));
        }
        group = group.take().filter(|_| child.in_group);
        Ok(child.pid)
    };
    let signs = reaper::start_leader(start, |leader| Signs { leader, tty, mark }).map_err(exec)?;
    let pid = signs.leader;
    let pidfd = Pid::from_raw(pid)
        .ok_or(rustix::io::Errno::SRCH)
        .and_then(|it| pidfd_open(it, PidfdFlags::NONBLOCK))
        .map_err(io::Error::from)
        .and_then(|it| sys::watch(it, Interest::READABLE));
    match pidfd {
        Ok(pidfd) => {
            let group = group.map(|(group, _)| group);
            Ok(Leader { pid, pidfd, signs, group, holds, collected: false })
        }
        Err(source) => {
            reaper::abandon_leader(pid);
            Err(at("watch the program")(source))
        }
    }
}

fn check_cwd(path: &Path) -> Result<(), SpawnError> {
    let refuse =
        |reason: &str| Err(SpawnError::Cwd { path: path.to_owned(), reason: reason.to_owned() });
    if !path.is_absolute() {
        return refuse("it is not an absolute path");
    }
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_dir() => refuse("it is not a directory"),
        Ok(_) => match access(path, Access::EXEC_OK) {
            Ok(()) => Ok(()),
            Err(error) => refuse(&format!("it cannot be entered: {}", io::Error::from(error))),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            refuse("there is no such directory")
        }
        Err(error) => refuse(&error.to_string()),
    }
}

/// Whether orphans of descendants are given to this process; asked for at the first call.
pub(crate) fn is_subreaper() -> bool {
    static IS: OnceLock<bool> = OnceLock::new();
    *IS.get_or_init(|| {
        let asked = set_child_subreaper(Some(getpid()));
        if let Err(error) = asked {
            tracing::warn!(%error, "not the reaper of orphans: some may outlive their session");
        }
        asked.is_ok()
    })
}

impl Leader {
    /// How the leader ended; none while it lives. It stays uncollected.
    pub(crate) fn exit_status(&self) -> Option<ExitStatus> {
        self.wait(WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
    }

    /// Collects the dead leader; its number may be used again from here on.
    pub(crate) fn collect(&mut self) {
        if !self.collected && self.wait(WaitIdOptions::EXITED | WaitIdOptions::NOHANG).is_some() {
            self.collected = true;
            self.group = None;
            self.holds.release();
            reaper::forget_leader(self.pid);
        }
    }

    /// Whether [`collect`](Self::collect) succeeded.
    pub(crate) fn is_collected(&self) -> bool {
        self.collected
    }

    /// Waits until the leader is gone.
    pub(crate) async fn ended(&self) {
        // An error could not be waited out either.
        let _readable = self.pidfd.readable().await;
    }

    /// Signals the leader itself; nothing if it is gone.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        if self.collected {
            return Ok(());
        }
        match pidfd_send_signal(self.pidfd.get_ref(), signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn wait(&self, options: WaitIdOptions) -> Option<ExitStatus> {
        match waitid(WaitId::PidFd(self.pidfd.get_ref().as_fd()), options) {
            Ok(None) => None,
            Ok(Some(status)) => Some(
                status
                    .exit_status()
                    .map(ExitStatus::Code)
                    .or_else(|| status.terminating_signal().map(name_of).map(ExitStatus::Signal))
                    .unwrap_or(ExitStatus::Unknown),
            ),
            // Somebody else in this process waits for any child, or ignores SIGCHLD.
            Err(_) => Some(ExitStatus::Unknown),
        }
    }
}

impl Drop for Leader {
    /// For a leader that was never ended: at least the reaper may have it.
    fn drop(&mut self) {
        if !self.collected {
            self.collect();
            reaper::forget_leader(self.pid);
        }
    }
}
