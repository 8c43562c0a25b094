//! Word of this host for the next start: who it is, and the mark that its sessions carry.
//!
//! A host and its supervisor may be killed together. A later host of the same user then ends what
//! they left, and nothing else:
//!
//! - records lie in a folder that is the user's alone, or they are not believed;
//! - a host is dead when, in the same boot and the same PID namespace, no process has its number
//!   and its start time; what cannot be told counts as alive;
//! - what a dead host left is known by its mark, which is random and also stands in its record.
//!
//! A record goes when nothing is left of its host's sessions.

use std::{
    fs, io,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use rustix::process::{geteuid, getpid};

use super::{
    cgroup::{self, Group},
    controllers,
    mark::HostMark,
    procfs::Proc,
    remains,
    target::Identity,
};

/// Longer than any record.
const MAX_BYTES: u64 = 4096;

/// What a host says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    place: Place,
    host: Identity,
    mark: HostMark,
    /// As it is written, of a host that has one.
    group: Option<String>,
    /// The folders below which its sessions may have groups of version 1.
    bounded: Vec<String>,
}

/// Where numbers of processes mean the same.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    boot: String,
    pid_namespace: String,
}

impl Place {
    fn here(proc: &Proc) -> io::Result<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        let namespace = proc.link(format_args!("self/ns/pid"))?;
        Ok(Self { boot, pid_namespace: String::from_utf8_lossy(&namespace).into_owned() })
    }
}

impl Record {
    fn own(proc: &Proc) -> io::Result<Self> {
        let pid = getpid().as_raw_nonzero().get();
        let stat = proc.stat(pid).ok_or(io::ErrorKind::NotFound)?;
        let mark = HostMark::own().map_err(|error| io::Error::other(error.to_string()))?;
        let group = cgroup::own().and_then(Result::ok).and_then(|it| it.path().to_str());
        let group = group.map(str::to_owned);
        let bounded = controllers::own_folders().into_iter();
        let bounded = bounded.filter_map(|it| it.into_os_string().into_string().ok()).collect();
        Ok(Self { place: Place::here(proc)?, host: (pid, stat.start), mark, group, bounded })
    }

    fn text(&self) -> String {
        let Self { place, host: (pid, start), mark, group, bounded } = self;
        let (Place { boot, pid_namespace }, mark) = (place, mark.text());
        // The mark is last: without it nothing is a record.
        let group = group.iter().map(|it| format!("group={it}\n"));
        let groups: String =
            group.chain(bounded.iter().map(|it| format!("bounded={it}\n"))).collect();
        format!(
            "boot={boot}\npid-namespace={pid_namespace}\npid={pid}\nstart={start}\n{groups}mark={mark}\n"
        )
    }

    fn parse(text: &str) -> Option<Self> {
        let values = |name: &'static str| {
            text.lines().filter_map(move |line| line.strip_prefix(name)?.strip_prefix('='))
        };
        let value = |name: &'static str| values(name).next();
        let place = Place {
            boot: value("boot")?.to_owned(),
            pid_namespace: value("pid-namespace")?.to_owned(),
        };
        let host = (value("pid")?.parse().ok()?, value("start")?.parse().ok()?);
        let group = value("group").map(str::to_owned);
        let bounded = values("bounded").map(str::to_owned).collect();
        Some(Self { place, host, mark: HostMark::parse(value("mark")?)?, group, bounded })
    }

    /// Whether the host is proven dead.
    fn is_of_the_dead(&self, proc: &Proc, here: &Place) -> bool {
        let (pid, start) = self.host;
        self.place == *here && proc.stat(pid).is_none_or(|it| it.start != start || it.is_dead())
    }

    fn name(&self) -> String {
        format!("{}-{}", self.host.0, self.host.1)
    }
}

/// The record of this host, written when it is first needed.
#[derive(Debug)]
pub(super) struct Word {
    folder: PathBuf,
    written: OnceLock<Option<PathBuf>>,
}

impl Word {
    /// Of this host, to be left in `folder`.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, written: OnceLock::new() }
    }

    /// Leaves it, if that has not been tried. Sessions do not depend on it.
    pub(super) fn leave(&self) {
        self.written.get_or_init(|| {
            let written = write(&self.folder);
            if let Err(error) = &written {
                tracing::warn!("this host is not swept up after if it is killed: {error}");
            }
            written.ok()
        });
    }

    /// Removes it, unless processes of some session are left. Blocks for a look at everybody.
    pub(super) fn take_back(&self) -> io::Result<()> {
        let Some(Some(path)) = self.written.get() else { return Ok(()) };
        let (proc, mark) = (Proc::open(), HostMark::drawn());
        let left = proc.zip(mark).is_none_or(|(proc, mark)| !remains::find(&proc, mark).is_empty());
        if left { Ok(()) } else { gone(fs::remove_file(path)) }
    }
}

/// Writes this host's record into `folder`, which is made if it is missing.
fn write(folder: &Path) -> io::Result<PathBuf> {
    let proc = Proc::open().ok_or_else(|| io::Error::other("there is no process table"))?;
    let record = Record::own(&proc)?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    require_private(folder)?;
    let path = folder.join(record.name());
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(&path)?;
    file.write_all(record.text().as_bytes())?;
    Ok(path)
}

/// Ends what is left of dead hosts with a record in `folder`, and removes their records. Blocks for
/// as long as these processes need to end, a few seconds at most for each host.
pub(super) fn sweep(folder: &Path) -> io::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    let proc = Proc::open().ok_or_else(|| io::Error::other("there is no process table"))?;
    require_private(folder)?;
    let here = Place::here(&proc)?;
    let records: Vec<_> = fs::read_dir(folder)?
        .flatten()
        .filter_map(|entry| Some((entry.path(), read(&entry.path())?)))
        .collect();
    let (dead, alive): (Vec<_>, Vec<_>) =
        records.into_iter().partition(|(_, it)| it.is_of_the_dead(&proc, &here));
    for (path, record) in dead {
        if alive.iter().any(|(_, it)| it.mark == record.mark) {
            continue;
        }
        let found = remains::find(&proc, record.mark).len();
        let left = remains::end(&proc, record.mark);
        let group = record.group.as_deref().and_then(|it| Group::of_record(it, record.host));
        let group = group.filter(|it| cgroup::is_kernels(it.path()));
        let mut emptied = group.is_none_or(|it| it.end());
        for folder in record.bounded.iter().map(Path::new).filter(|it| it.is_absolute()) {
            emptied &= controllers::end_left(&proc, folder, record.host);
        }
        if found > 0 {
            tracing::warn!(
                host = record.host.0,
                found,
                left = left.len(),
                "ended what a killed host left"
            );
        }
        if left.is_empty() && emptied {
            gone(fs::remove_file(path))?;
        }
    }
    // Nothing of another boot lives.
    for (path, _) in alive.iter().filter(|(_, it)| it.place.boot != here.boot) {
        gone(fs::remove_file(path))?;
    }
    Ok(())
}

fn read(path: &Path) -> Option<Record> {
    let file = fs::OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path).ok()?;
    let mut text = String::new();
    io::Read::read_to_string(&mut io::Read::take(file, MAX_BYTES), &mut text).ok()?;
    Record::parse(&text)
}

/// Nobody else can have written here.
fn require_private(folder: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(folder)?;
    let private = metadata.is_dir()
        && metadata.uid() == geteuid().as_raw()
        && metadata.mode() & 0o777 == 0o700;
    if private {
        return Ok(());
    }
    let path = folder.display();
    Err(io::Error::other(format!("`{path}` must be a folder of this user's alone (mode 0700)")))
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    removed
        .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn own() -> (Proc, Record) {
        let proc = Proc::open().unwrap();
        let record = Record::own(&proc).unwrap();
        (proc, record)
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let (_, record) = own();
        assert_eq!(Record::parse(&record.text()), Some(record.clone()));
        for cut in [0, 10, record.text().len() - 12] {
            assert_eq!(Record::parse(&record.text()[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn only_a_proven_death_counts() {
        let (proc, alive) = own();
        let here = Place::here(&proc).unwrap();
        let (pid, start) = alive.host;
        let elsewhere = |change: fn(&mut Place)| {
            let mut place = here.clone();
            change(&mut place);
            Record { place, host: (pid, start + 1), ..alive.clone() }
        };
        assert!(!alive.is_of_the_dead(&proc, &here));
        assert!(Record { host: (pid, start + 1), ..alive.clone() }.is_of_the_dead(&proc, &here));
        assert!(Record { host: (i32::MAX, start), ..alive.clone() }.is_of_the_dead(&proc, &here));
        assert!(!elsewhere(|it| it.boot.push('x')).is_of_the_dead(&proc, &here));
        assert!(!elsewhere(|it| it.pid_namespace.push('x')).is_of_the_dead(&proc, &here));
    }

    #[test]
    fn a_folder_that_others_may_write_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let hosts = folder.path().join("hosts");
        sweep(&hosts).unwrap();
        let written = write(&hosts).unwrap();
        assert_eq!(fs::metadata(&written).unwrap().permissions().mode() & 0o777, 0o600);
        sweep(&hosts).unwrap();
        assert!(written.exists(), "this host lives");
        fs::set_permissions(&hosts, fs::Permissions::from_mode(0o770)).unwrap();
        assert!(sweep(&hosts).unwrap_err().to_string().contains("0700"));
        assert!(write(&hosts).is_err());
    }

    /// Whoever may write in the folder of records names what he likes as a group.
    #[test]
    fn a_forged_group_kills_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let hosts = folder.path().join("hosts");
        fs::DirBuilder::new().mode(0o700).create(&hosts).unwrap();
        let mut victim = std::process::Command::new("/bin/sleep").arg("1000").spawn().unwrap();
        let (_, record) = own();
        let (pid, start) = (i32::MAX, 9);
        let forged = folder.path().join(format!("dsh-{pid}-{start}"));
        for group in [forged.clone(), folder.path().join(format!("dsh-{pid}-{start}-1"))] {
            fs::create_dir(&group).unwrap();
            fs::write(group.join("cgroup.procs"), format!("{}\n", victim.id())).unwrap();
            fs::write(group.join("cgroup.kill"), "").unwrap();
        }
        let record = Record {
            host: (pid, start),
            mark: HostMark::parse("7fffffff").unwrap(),
            group: Some(forged.display().to_string()),
            bounded: vec![folder.path().display().to_string()],
            ..record
        };
        fs::write(hosts.join(record.name()), record.text()).unwrap();
        sweep(&hosts).unwrap();
        assert_eq!(victim.try_wait().unwrap(), None);
        assert_eq!(fs::read_to_string(forged.join("cgroup.kill")).unwrap(), "");
        victim.kill().unwrap();
        victim.wait().unwrap();
    }

    #[test]
    fn records_of_another_boot_go_and_those_of_another_place_stay() {
        let folder = tempfile::tempdir().unwrap();
        let hosts = folder.path().join("hosts");
        write(&hosts).unwrap();
        let (_, record) = own();
        let other = |name: &str, place: Place| {
            let path = hosts.join(name);
            fs::write(&path, Record { place, ..record.clone() }.text()).unwrap();
            path
        };
        let place = record.place.clone();
        let boot = other("1-1", Place { boot: "another".to_owned(), ..place.clone() });
        let container = other("1-2", Place { pid_namespace: "pid:[1]".to_owned(), ..place });
        let nonsense = hosts.join("note");
        fs::write(&nonsense, "nothing").unwrap();
        sweep(&hosts).unwrap();
        assert_eq!((boot.exists(), container.exists(), nonsense.exists()), (false, true, true));
    }
}
