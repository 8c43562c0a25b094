//! A control group (version 2) of the host's own, below the one it was started in, and in that a group
//! for each session.
//!
//! - Everything that a session starts is born into its group and stays there, whatever it sheds; only
//!   who may write the groups can move itself out. The kernel kills all of it at once. The supervisor
//!   stays outside of all.
//! - Nobody is ever moved into the group of a session, which takes milliseconds: its leader is born
//!   there.
//! - A group of a session is removed with its session, one of a host by its supervisor.

use std::{
    collections::HashSet,
    fs, io,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::fs::MetadataExt as _,
    },
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use dsh_core::lock;

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::statfs,
};

use super::target::Identity;

/// How long those who were killed may take to vanish.
pub(super) const BOUND: Duration = Duration::from_secs(2);
/// Between two looks, if no event comes.
pub(super) const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// In the group of a host: the host itself.
const HOST: &str = "host";
/// In the group of a host: those of its sessions.
pub(super) const SESSIONS: &str = "sessions";

/// The group of this process, or why there is none; unset where none was asked for.
static OWN: OnceLock<Result<Group, String>> = OnceLock::new();

/// A group of some host, or of its sessions.
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
        let here = folder_of(&mounts, &memberships, None)
            .ok_or_else(|| io::Error::other("no control groups of version 2 are mounted"))?;
        let group = Self(here.join(name(host)));
        let made = fs::create_dir(&group.0)
            .and_then(|()| fs::create_dir(group.0.join(HOST)))
            .and_then(|()| fs::create_dir(group.0.join(SESSIONS)));
        made.map_err(|error| {
            group.remove();
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

    /// The group in this folder.
    pub(super) fn at(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// Whoever writes `0` here moves in.
    pub(super) fn entrance(&self) -> io::Result<OwnedFd> {
        let file = fs::OpenOptions::new().write(true).open(self.0.join("cgroup.procs"))?;
        Ok(file.into())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Moves this process in, as the host.
    pub(super) fn enter(&self) -> io::Result<()> {
        fs::write(self.0.join(HOST).join("cgroup.procs"), "0")
    }

    /// Who is in it and in the groups below it, as far as this process can see them; also some who
    /// are dead.
    pub(super) fn members(&self) -> HashSet<i32> {
        let mut members = HashSet::new();
        collect_members(&self.0, &mut members);
        members
    }

    /// CPU time of all who are or were in it.
    pub(super) fn cpu(&self) -> Option<Duration> {
        cpu(&fs::read_to_string(self.0.join("cpu.stat")).ok()?)
    }

    /// Kills everybody in it, also those who are just being born.
    pub(super) fn kill(&self) {
        if let Err(error) = fs::write(self.0.join("cgroup.kill"), "1")
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::debug!(%error, "a group was not killed");
        }
    }

    /// Kills everybody in it, waits until it is empty, and removes it; false if it stays.
    pub(super) fn end(&self) -> bool {
        let until = Instant::now() + BOUND;
        loop {
            self.kill();
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
        remove(&self.0)
    }
}

/// Whether a folder is one of the kernel's control groups: anything may be in another that looks like it.
pub(super) fn is_kernels(folder: &Path) -> bool {
    const VERSION_1: u64 = 0x0027_e0eb;
    const VERSION_2: u64 = 0x6367_7270;
    let kind = statfs(folder).ok().and_then(|it| u64::try_from(it.f_type).ok());
    kind.is_some_and(|it| [VERSION_1, VERSION_2].contains(&it))
}

/// The group of one session, which is removed when nobody has it any more.
#[derive(Clone, Debug)]
pub(crate) struct SessionGroup(Arc<Removed>);

/// A group that is removed when it is dropped.
#[derive(Debug)]
struct Removed(Group);

/// Groups that were not empty yet when they were to be removed.
static LEFT: Mutex<Vec<Group>> = Mutex::new(Vec::new());

impl SessionGroup {
    /// A new one, and its folder; none where the host has no group of its own.
    pub(super) fn make() -> Option<(Self, OwnedFd)> {
        let sessions = of_sessions()?;
        let made = Self::make_at(sessions.0.join(next_number().to_string()))
            .and_then(|made| Ok((made.clone(), fs::File::open(made.group().path())?.into())));
        if let Err(error) = &made {
            tracing::debug!(%error, "a session has no group");
        }
        made.ok()
    }

    /// A new one in this folder.
    pub(super) fn make_at(folder: PathBuf) -> io::Result<Self> {
        lock(&LEFT).retain(|it| !it.remove());
        fs::create_dir(&folder)?;
        Ok(Self(Arc::new(Removed(Group(folder)))))
    }

    pub(super) fn group(&self) -> &Group {
        &self.0.0
    }
}

impl Drop for Removed {
    fn drop(&mut self) {
        if !self.0.remove() {
            lock(&LEFT).push(self.0.clone());
        }
    }
}

/// For the name of a group of this process.
pub(super) fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// That of all sessions of this process; none where it has no group of its own.
pub(super) fn of_sessions() -> Option<Group> {
    let own = own()?.ok()?;
    Some(Group(own.0.join(SESSIONS)))
}

fn collect_members(folder: &Path, members: &mut HashSet<i32>) {
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    members.extend(text.lines().filter_map(|it| it.parse::<i32>().ok()));
    for below in groups_below(folder) {
        collect_members(&below, members);
    }
}

fn cpu(stat: &str) -> Option<Duration> {
    let used = stat.lines().find_map(|it| it.strip_prefix("usage_usec "))?;
    used.trim().parse().ok().map(Duration::from_micros)
}

fn remove(folder: &Path) -> bool {
    // One that is not empty keeps its parent.
    for below in groups_below(folder) {
        remove(&below);
    }
    match fs::remove_dir(folder) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// The groups right below one. Most have none, which their number of links says for less.
fn groups_below(folder: &Path) -> Vec<PathBuf> {
    if fs::metadata(folder).is_ok_and(|it| it.nlink() == 2) {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|it| it.file_type().is_ok_and(|it| it.is_dir()));
    folders.map(|it| it.path()).collect()
}

/// The name of the group of a host.
pub(super) fn name((pid, start): Identity) -> String {
    format!("dsh-{pid}-{start}")
}

/// The folder of the group that a process with these mounts and memberships is in: that of version 2, or
/// of the hierarchy of version 1 with a controller.
pub(super) fn folder_of(
    mountinfo: &str,
    cgroup: &str,
    controller: Option<&str>,
) -> Option<PathBuf> {
    let named = |names: &str| controller.is_some_and(|it| names.split(',').any(|name| name == it));
    // Number of the hierarchy, its controllers, the group.
    let memberships = cgroup.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let (_, own) =
        memberships.clone().find(|it| it.0.is_empty() && controller.is_none() || named(it.0))?;
    mountinfo.lines().find_map(|line| {
        // Number, parent, device, root, mount point, options, tags, `-`, type, source, options.
        let (front, back) = line.split_once(" - ")?;
        let mut back = back.split(' ');
        let its = match back.next()? {
            "cgroup2" => controller.is_none(),
            "cgroup" => named(back.nth(1)?),
            _ => false,
        };
        if !its {
            return None;
        }
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
            assert_eq!(folder_of(mounts, own, None), folder.map(PathBuf::from), "{own:?}");
        }
    }

    #[test]
    fn a_hierarchy_of_version_1_is_known_by_its_controller() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
                      31 23 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      32 23 0:28 /pod /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      33 23 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n";
        let own = "4:name=systemd:/\n3:memory:/pod/a\n2:cpu,cpuacct:/b\n1:pids:/c\n0::/d\n";
        for (controller, folder) in [
            (None, Some("/sys/fs/cgroup/unified/d")),
            (Some("memory"), Some("/sys/fs/cgroup/memory/a")),
            (Some("cpuacct"), Some("/sys/fs/cgroup/cpu,cpuacct/b")),
            // Not mounted.
            (Some("pids"), None),
            // Not there.
            (Some("hugetlb"), None),
        ] {
            assert_eq!(folder_of(mounts, own, controller), folder.map(PathBuf::from));
        }
        assert_eq!(folder_of(mounts, "3:memory:/other\n", Some("memory")), None);
    }

    #[test]
    fn members_are_those_of_all_groups_below() {
        let folder = tempfile::tempdir().unwrap();
        let group = Group(folder.path().to_owned());
        fs::create_dir_all(group.0.join("a/b")).unwrap();
        fs::write(group.0.join("cgroup.procs"), "7\n0\n").unwrap();
        fs::write(group.0.join("a/b/cgroup.procs"), "9\n").unwrap();
        assert_eq!(group.members(), HashSet::from([7, 0, 9]));
        assert_eq!(group.cpu(), None);
        fs::write(group.0.join("cpu.stat"), "usage_usec 1500000\nuser_usec 1\n").unwrap();
        assert_eq!(group.cpu(), Some(Duration::from_millis(1500)));
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
