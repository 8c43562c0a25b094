//! The supervisor: a small process that outlives the host long enough to end its sessions.
//!
//! It is a copy of the host from before its first thread, and waits for the host's end by pidfd.
//! Then it ends whatever carries a mark of this host (see [`remains`]), and itself.
//!
//! - What ends the host does not end it: it has a session of its own, hears no signal but KILL,
//!   and its name, command line and environment tell nothing of the host or of what the host does.
//! - It holds no descriptor of the host's, so that no pipe stays open for it.
//! - The host stays whom its parent has started: its exit status, signals and streams are its own.

use std::{fs, io, os::fd::OwnedFd};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{PidfdFlags, getpid, pidfd_open},
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout},
};

use super::{
    cgroup::{self, Group},
    command_line::{clear_environment, set_command_line},
    controllers,
    mark::HostMark,
    procfs::Proc,
    reaper, remains, sys,
    target::Identity,
};

/// Its name in the process table.
const NAME: &str = "session-keeper";

/// Why a host has no supervisor.
#[derive(Debug, thiserror::Error)]
#[error(
    "no supervisor for the sessions ({step}: {source}): if this host is killed, processes that left their terminal stay until its next start"
)]
pub struct SupervisorError {
    step: &'static str,
    source: io::Error,
}

/// Whom the supervisor ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The processes of sessions, which are known by their marks.
    Sessions,
    /// Everything that the host starts, if the host may have a control group of its own, which it
    /// then moves into; else those of sessions. For a host that starts nothing else: of its own children,
    /// one that makes a session for itself may be taken for an orphan and be collected when it is dead.
    Everything,
}

/// Starts the supervisor of this process: from here on, no process of any session outlives it for
/// more than a few seconds, however it ends.
///
/// Call it first in `main`: it fails once there is a second thread, also one of a runtime. A host
/// that never calls it loses nothing but that: closing sessions, ending in order,
/// [`kill_all_at_once`](crate::kill_all_at_once) and the sweep of the next start are the same.
///
/// The supervisor is a child of this process and ends soon after it. Its memory is shared with this
/// process as far as neither changes it.
pub fn start_supervisor(reach: Reach) -> Result<(), SupervisorError> {
    if reach == Reach::Everything {
        reaper::start_nothing_else();
    }
    let at = |step| move |source| SupervisorError { step, source };
    let host =
        HostMark::own().map_err(|error| at("draw a mark")(io::Error::other(error.to_string())))?;
    let pidfd = pidfd_open(getpid(), PidfdFlags::empty())
        .map_err(|error| at("watch the host")(error.into()))?;
    let group = (reach == Reach::Everything).then(make_group);
    let watched = group.as_ref().and_then(|it| it.as_ref().ok());
    let identity = controllers::own_identity();
    let started = sys::fork_for(&pidfd, |pidfd| supervise(&pidfd, (host, identity), watched));
    if let Err(error) = started {
        watched.map(Group::remove);
        return Err(at("start")(error));
    }
    // Now, so that the supervisor stays outside.
    if let Some(group) = group {
        cgroup::remember(group.and_then(|group| group.enter().map(|()| group)));
    }
    Ok(())
}

fn make_group() -> io::Result<Group> {
    if getpid().as_raw_nonzero().get() == 1 {
        // Nobody would be left to remove the group.
        return Err(io::Error::other("the host is process 1 here, whose end ends all others"));
    }
    Group::make(controllers::own_identity().ok_or(io::ErrorKind::NotFound)?)
}

/// The supervisor's life.
fn supervise(
    host: &OwnedFd,
    (mark, identity): (HostMark, Option<Identity>),
    group: Option<&Group>,
) {
    // None of it keeps the supervisor from its work.
    become_nobody().ok();
    let mut fds = [PollFd::new(host, PollFlags::IN)];
    while poll(&mut fds, None) == Err(Errno::INTR) {}
    if let Some(proc) = Proc::open() {
        remains::end(&proc, mark);
        group.map(Group::end);
        // It is in the host's own groups of version 1, below which those of sessions are.
        for folder in controllers::own_folders() {
            identity.map(|host| controllers::end_left(&proc, &folder, host));
        }
    } else {
        group.map(Group::end);
    }
}

/// Gives up what the copy has of the host: streams, working directory, name, command line,
/// environment.
fn become_nobody() -> io::Result<()> {
    let null = fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    // The lowest free number is that of a standard stream, which must not be closed.
    let null = std::mem::ManuallyDrop::new(null);
    dup2_stdin(&*null)?;
    dup2_stdout(&*null)?;
    dup2_stderr(&*null)?;
    std::env::set_current_dir("/")?;
    fs::write("/proc/self/comm", NAME)?;
    set_command_line(NAME)?;
    clear_environment()
}
