//! A control group (version 2) of the host's own, below the one it was started in.
//!
//! Everything that the host starts is born into it and cannot leave it without privilege, whatever
//! it sheds; the kernel kills all of it at once. The supervisor stays outside.

use std::{
    fs, io,
    os::fd::AsFd as _,
    path::{Path, PathBuf},
    sync::OnceLock,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::target::Identity;

/// How long those who were killed may take to vanish.
const BOUND: Duration = Duration::from_secs(2);
/// Between two looks, if no event comes.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// The group of this process, or why there is none; unset where none was asked for.
static OWN: OnceLock<Result<Group, String>> = OnceLock::new();

/// A group of some host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group(PathBuf);

/// The group of this process, or why there is none; none where it was not asked for.
pub(super) fn own() -> Option<Result<&'static Group, &'static str>> {
    OWN.get().map(|it| it.as_ref().map_err(String::as_str))
}

/// Remembers what came of asking for one.
pub(super) fn remember(own: io::Result<Group>) {
    OWN.get_or_init(|| own.map_err(|error| error.to_string()));
}

impl Group {
    /// Makes an empty group for the host `host`.
    pub(super) fn make(host: Identity) -> io::Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let memberships = fs::read_to_string("/proc/self/cgroup")?;
        let here = folder_of(&mounts, &memberships)
            .ok_or_else(|| io::Error::other("no control groups of version 2 are mounted"))?;
        let group = Self(here.join(name(host)));
        fs::create_dir(&group.0).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot make a group below {}: {error}", here.display()),
            )
        })?;
        if !group.0.join("cgroup.kill").exists() {
            group.remove();
            return Err(io::Error::other(
                "this kernel cannot kill a group at once (Linux 5.14 can)",
            ));
        }
        Ok(group)
    }

    /// The group that a record names for the host `host`; none where it cannot be its.
    pub(super) fn of_record(path: &str, host: Identity) -> Option<Self> {
        let path = Path::new(path);
        let its = path.is_absolute()
            && path.file_name().is_some_and(|it| *it == *name(host))
            && path.join("cgroup.kill").exists();
        its.then(|| Self(path.to_owned()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Moves this process in.
    pub(super) fn enter(&self) -> io::Result<()> {
        fs::write(self.0.join("cgroup.procs"), "0")
    }

    /// Kills everybody in it, waits until it is empty, and removes it; false if it stays.
    pub(super) fn end(&self) -> bool {
        let until = Instant::now() + BOUND;
        loop {
            if let Err(error) = fs::write(self.0.join("cgroup.kill"), "1")
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::debug!(%error, "a group was not killed");
            }
            if self.remove() {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            if let Ok(events) = fs::File::open(self.0.join("cgroup.events")) {
                // Its end may have come before it was opened: not for longer than a moment.
                let mut fds = [PollFd::from_borrowed_fd(events.as_fd(), PollFlags::PRI)];
                if let Err(error) = poll(&mut fds, Some(&PAUSE)) {
                    tracing::debug!(%error, "the end of a group was not waited for");
                }
            }
        }
    }

    /// Removes it, with what was made below it, if nobody is in there.
    pub(super) fn remove(&self) -> bool {
        remove_below(&self.0);
        match fs::remove_dir(&self.0) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

fn remove_below(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|it| it.is_dir()) {
            remove_below(&entry.path());
            // One that is not empty keeps its parent.
            fs::remove_dir(entry.path()).ok();
        }
    }
}

fn name((pid, start): Identity) -> String {
    format!("dsh-{pid}-{start}")
}

/// The folder of the group that a process with these mounts and memberships is in.
fn folder_of(mountinfo: &str, cgroup: &str) -> Option<PathBuf> {
    let own = cgroup.lines().find_map(|it| it.strip_prefix("0::"))?;
    mountinfo.lines().find_map(|line| {
        // Number, parent, device, root, mount point, options, tags, `-`, type.
        let (front, back) = line.split_once(" - ")?;
        back.strip_prefix("cgroup2 ")?;
        let mut front = front.split(' ').skip(3);
        let (root, point) = (front.next()?, front.next()?);
        // A group outside of what is mounted here has `..` in its name.
        let below = Path::new(own).strip_prefix(root).ok()?;
        let inside = below.components().all(|it| matches!(it, std::path::Component::Normal(_)));
        inside.then(|| Path::new(point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_below_its_mount() {
        let pure = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        let hybrid = "31 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      32 23 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup rw\n";
        let bound = "33 23 0:28 /user /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        for (mounts, own, folder) in [
            (pure, "0::/user.slice/a.scope\n", Some("/sys/fs/cgroup/user.slice/a.scope")),
            (hybrid, "8:memory:/x\n0::/\n", Some("/sys/fs/cgroup/unified/")),
            (bound, "0::/user/a\n", Some("/sys/fs/cgroup/a")),
            (bound, "0::/other\n", None),
            (pure, "0::/../other\n", None),
            (pure, "8:memory:/x\n", None),
            ("", "0::/\n", None),
        ] {
            assert_eq!(folder_of(mounts, own), folder.map(PathBuf::from), "{own:?}");
        }
    }

    #[test]
    fn a_record_names_no_folder_but_its_hosts_group() {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path().join("dsh-7-9");
        fs::create_dir(&group).unwrap();
        fs::write(group.join("cgroup.kill"), "").unwrap();
        let path = group.to_str().unwrap();
        assert_eq!(Group::of_record(path, (7, 9)), Some(Group(group.clone())));
        assert_eq!(Group::of_record(path, (7, 8)), None);
        assert_eq!(Group::of_record("dsh-7-9", (7, 9)), None);
        assert_eq!(Group::of_record("/no/such/dsh-7-9", (7, 9)), None);
    }
}
