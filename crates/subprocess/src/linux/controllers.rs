//! Controllers of control groups: which of them can hold a session to a bound, found out once, by doing
//! it.
//!
//! - Version 2 is first: a session has a group of that version anyway, if the host has one. The groups
//!   above must hand the controller on, which the kernel refuses while processes are in them (but for the
//!   topmost one).
//! - Version 1 is next: a group below the host's own is made for a session with bounds, and for no other.
//!   Its leader moves itself in before it becomes the shell, which takes milliseconds.
//! - What neither does is left to the limits of each process, and to whoever watches.

use std::{
    fs,
    os::fd::AsFd as _,
    path::{Path, PathBuf},
    sync::OnceLock,
    time::Instant,
};

use rustix::{
    event::{Timespec, poll},
    process::getpid,
};

use super::{
    at_once::strike,
    cgroup::{self, BOUND, Group, PAUSE, SessionGroup},
    procfs::Proc,
    sys,
    target::Identity,
};

/// What is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Controller {
    Memory,
    Pids,
}

/// What holds a session to a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    /// Its group of version 2.
    Own,
    /// A group of version 1, made for it below this folder.
    Below(PathBuf),
}

impl Controller {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
        }
    }

    /// What can hold sessions to a bound of this kind, or why nothing can. Blocks at the first call.
    pub(super) fn layer(self) -> Result<&'static Layer, &'static str> {
        static MEMORY: OnceLock<Result<Layer, String>> = OnceLock::new();
        static PIDS: OnceLock<Result<Layer, String>> = OnceLock::new();
        let known = match self {
            Self::Memory => &MEMORY,
            Self::Pids => &PIDS,
        };
        known.get_or_init(|| self.choose()).as_ref().map_err(String::as_str)
    }

    fn choose(self) -> Result<Layer, String> {
        let two = own_groups().and_then(|groups| {
            hand_on(&groups, self)?;
            self.works(&Layer::Own)?;
            Ok(Layer::Own)
        });
        two.or_else(|no_two| {
            let one = self.own_folder().ok_or_else(|| "is not mounted".to_owned());
            let one = one.map(Layer::Below).and_then(|one| self.works(&one).map(|()| one));
            one.map_err(|no_one| {
                let name = self.name();
                format!("the controller `{name}` of version 2: {no_two}; of version 1: {no_one}")
            })
        })
    }

    /// The folder of this process's group of version 1.
    fn own_folder(self) -> Option<PathBuf> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let memberships = fs::read_to_string("/proc/self/cgroup").ok()?;
        cgroup::folder_of(&mounts, &memberships, Some(self.name()))
    }

    /// Tries it with a process that ends at once.
    fn works(self, layer: &Layer) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("a trial failed ({error})");
        let enough = match self {
            Self::Memory => 64 << 20,
            Self::Pids => 16,
        };
        match layer {
            Layer::Own => {
                let (group, folder) = SessionGroup::make().ok_or("no group can be made")?;
                self.bound(group.group().path(), layer, enough).map_err(failed)?;
                let born = sys::can_be_born_in(Some(folder.as_fd()), None).map_err(failed)?;
                if born { Ok(()) } else { Err("nobody is born in a group here".to_owned()) }
            }
            Layer::Below(folder) => {
                let group = make_below(folder).map_err(failed)?;
                self.bound(group.group().path(), layer, enough).map_err(failed)?;
                let entrance = group.group().entrance().map_err(failed)?;
                sys::can_be_born_in(None, Some(entrance.as_fd())).map_err(failed)?;
                Ok(())
            }
        }
    }

    /// Bounds the group in `folder`.
    pub(super) fn bound(self, folder: &Path, layer: &Layer, most: u64) -> std::io::Result<()> {
        let set = |file: &str, value: &str| {
            // Never made: a folder that lacks it is no such group.
            let mut file = fs::OpenOptions::new().write(true).open(folder.join(file))?;
            std::io::Write::write_all(&mut file, value.as_bytes())
        };
        // Not there where the system does not count swapped memory.
        let set_if_there = |file: &str, value: &str| match set(file, value) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            done => done,
        };
        let most = most.to_string();
        match (self, layer) {
            (Self::Pids, _) => set("pids.max", &most),
            (Self::Memory, Layer::Own) => {
                set("memory.max", &most)?;
                set_if_there("memory.swap.max", "0")?;
                // The session ends whole.
                set_if_there("memory.oom.group", "1")
            }
            (Self::Memory, Layer::Below(_)) => {
                set("memory.limit_in_bytes", &most)?;
                set_if_there("memory.memsw.limit_in_bytes", &most)
            }
        }
    }
}

/// The groups from the one that the host was started in to that of its sessions.
fn own_groups() -> Result<[PathBuf; 3], String> {
    let own = match cgroup::own() {
        Some(own) => own.map_err(str::to_owned)?.path(),
        None => return Err("this host has no group of its own".to_owned()),
    };
    let above = own.parent().unwrap_or(own).to_owned();
    Ok([above, own.to_owned(), own.join(cgroup::SESSIONS)])
}

/// Makes each of `groups`, topmost first, hand the controller on to those below it.
fn hand_on(groups: &[PathBuf], controller: Controller) -> Result<(), String> {
    let name = controller.name();
    for group in groups {
        let has = |file: &str| {
            let text = fs::read_to_string(group.join(file)).unwrap_or_default();
            text.split_ascii_whitespace().any(|it| it == name)
        };
        if has("cgroup.subtree_control") {
            continue;
        }
        let group_is = group.display();
        if !has("cgroup.controllers") {
            return Err(format!("{group_is} does not have it"));
        }
        let asked = fs::write(group.join("cgroup.subtree_control"), format!("+{name}"));
        asked.map_err(|error| format!("{group_is} does not hand it on ({error})"))?;
    }
    Ok(())
}

/// A new group of version 1 below `folder`, which is removed when nobody has it any more.
pub(super) fn make_below(folder: &Path) -> std::io::Result<SessionGroup> {
    let host = own_identity().ok_or(std::io::ErrorKind::NotFound)?;
    SessionGroup::make_at(folder.join(format!("{}-{}", cgroup::name(host), cgroup::next_number())))
}

/// This process.
pub(super) fn own_identity() -> Option<Identity> {
    let own = getpid().as_raw_nonzero().get();
    Some((own, Proc::open()?.stat(own)?.start))
}

/// Where this process may have groups of version 1.
pub(super) fn own_folders() -> Vec<PathBuf> {
    let both = [Controller::Memory, Controller::Pids];
    both.into_iter().filter_map(Controller::own_folder).collect()
}

/// Ends everybody in the groups of version 1 that the host `host`, which is dead, left in `folder`,
/// and removes them; false if one stays. In a folder that is none of the kernel's there are none, whatever
/// it holds.
pub(super) fn end_left(proc: &Proc, folder: &Path, host: Identity) -> bool {
    !cgroup::is_kernels(folder) || end_below(proc, folder, host)
}

fn end_below(proc: &Proc, folder: &Path, host: Identity) -> bool {
    let prefix = format!("{}-", cgroup::name(host));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let its = entries.filter(|it| it.file_name().to_string_lossy().starts_with(&prefix));
    let mut left: Vec<_> = its.map(|it| Group::at(it.path())).collect();
    let until = Instant::now() + BOUND;
    loop {
        for group in &left {
            let members = group.members().into_iter().collect();
            strike(proc, members, |pid| group.members().contains(&pid));
        }
        left.retain(|it| !it.remove());
        if left.is_empty() || Instant::now() >= until {
            return left.is_empty();
        }
        pause(&PAUSE);
    }
}

/// Nothing of version 1 tells that a group is empty.
fn pause(time: &Timespec) {
    if let Err(error) = poll(&mut [], Some(time)) {
        tracing::debug!(%error, "no pause");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of groups, as far as they are looked at: what each has, and what it hands on.
    fn groups(files: &[(&str, &str)]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let folder = tempfile::tempdir().unwrap();
        let mut path = folder.path().to_owned();
        let mut paths = Vec::new();
        for (index, (has, hands_on)) in files.iter().enumerate() {
            path.push(index.to_string());
            fs::create_dir(&path).unwrap();
            fs::write(path.join("cgroup.controllers"), has).unwrap();
            fs::write(path.join("cgroup.subtree_control"), hands_on).unwrap();
            paths.push(path.clone());
        }
        (folder, paths)
    }

    #[test]
    fn a_controller_is_handed_on_from_the_top() {
        let all = "cpu memory pids\n";
        for (files, asked) in [
            (
                vec![(all, "memory\n"), (all, "memory pids\n")],
                Ok(vec!["memory\n", "memory pids\n"]),
            ),
            (vec![(all, "pids\n"), (all, "")], Ok(vec!["+memory", "+memory"])),
            (vec![(all, "memory\n"), (all, "pids\n")], Ok(vec!["memory\n", "+memory"])),
            (vec![("cpu hugetlb\n", ""), (all, "")], Err("does not have it")),
            // One of a similar name is another one.
            (vec![("cpu memory_x\n", "memory_x\n")], Err("does not have it")),
        ] {
            let (_folder, paths) = groups(&files);
            let done = hand_on(&paths, Controller::Memory);
            match asked {
                Ok(asked) => {
                    assert_eq!(done, Ok(()));
                    let read = |it: &PathBuf| fs::read_to_string(it.join("cgroup.subtree_control"));
                    let now: Vec<_> = paths.iter().map(|it| read(it).unwrap()).collect();
                    assert_eq!(now, asked, "{files:?}");
                }
                Err(why) => assert!(done.unwrap_err().ends_with(why), "{files:?}"),
            }
        }
    }

    #[test]
    fn a_group_that_does_not_take_it_is_named() {
        let (_folder, paths) = groups(&[("memory\n", "")]);
        fs::remove_file(paths[0].join("cgroup.subtree_control")).unwrap();
        fs::create_dir(paths[0].join("cgroup.subtree_control")).unwrap();
        let why = hand_on(&paths, Controller::Memory).unwrap_err();
        assert!(why.contains("does not hand it on (Is a directory"), "{why}");
    }

    #[test]
    fn each_version_has_its_own_files() {
        let one = Layer::Below("/x".into());
        for (controller, layer, files, bounded) in [
            (Controller::Pids, &one, vec!["pids.max"], vec![("pids.max", "7")]),
            (Controller::Pids, &Layer::Own, vec!["pids.max"], vec![("pids.max", "7")]),
            (
                Controller::Memory,
                &one,
                vec!["memory.limit_in_bytes"],
                vec![("memory.limit_in_bytes", "7")],
            ),
            (
                Controller::Memory,
                &one,
                vec!["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"],
                vec![("memory.limit_in_bytes", "7"), ("memory.memsw.limit_in_bytes", "7")],
            ),
            (
                Controller::Memory,
                &Layer::Own,
                vec!["memory.max", "memory.swap.max", "memory.oom.group"],
                vec![("memory.max", "7"), ("memory.swap.max", "0"), ("memory.oom.group", "1")],
            ),
        ] {
            let folder = tempfile::tempdir().unwrap();
            for file in files {
                fs::write(folder.path().join(file), "").unwrap();
            }
            controller.bound(folder.path(), layer, 7).unwrap();
            for (file, text) in bounded {
                assert_eq!(fs::read_to_string(folder.path().join(file)).unwrap(), text, "{file}");
            }
        }
        let nothing = tempfile::tempdir().unwrap();
        assert!(Controller::Memory.bound(nothing.path(), &Layer::Own, 7).is_err());
    }

    #[test]
    fn what_a_dead_host_left_is_known_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = folder.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let left = [make("dsh-7-9-1"), make("dsh-7-9-12")];
        let others = [make("dsh-7-99-1"), make("dsh-77-9-1"), make("dsh-7-9"), make("other")];
        let proc = Proc::open().unwrap();
        assert!(end_below(&proc, folder.path(), (7, 9)));
        assert_eq!(left.map(|it| it.exists()), [false; 2]);
        assert_eq!(others.map(|it| it.exists()), [true; 4]);
        assert!(end_left(&proc, Path::new("/no/such"), (7, 9)));
    }
}
