//! What this process holds of the machine, and whether a test left more than it found.
//!
//! A [`Snapshot`] has the descendants of this process (zombies included), its open descriptors,
//! and the pseudo-terminals whose masters it or its descendants hold.
//!
//! The whole process is compared. Where tests run as threads of one process (plain `cargo test`),
//! a test that compares runs [`alone`], and so must the others of its binary that start processes
//! or open descriptors. A process that left our tree (a daemon) is no descendant any more: find it
//! by its environment, with [`processes_with_env`].

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::wait::guarded;

/// Descriptors and children that a finished task still holds go away without an event.
const LOOK: Duration = Duration::from_millis(10);
const LOOKS: usize = 500;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs a test on a runtime of its own while no other one runs in this process, and checks that
/// nothing is left over once the runtime is gone too.
///
/// # Panics
///
/// When the test does, hangs, or leaves something.
#[track_caller]
pub fn alone(test: impl Future<Output = ()>) {
    alone_unguarded(guarded("the test", test));
}

/// The same for a test of many parts, each with a guard of its own.
///
/// # Panics
///
/// When the test does, or leaves something.
#[track_caller]
pub fn alone_unguarded(test: impl Future<Output = ()>) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // What a process keeps once it has had it, such as the way in for signals.
    run(async {
        let deaths = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::child());
        drop(deaths);
    });
    let before = Snapshot::take();
    run(test);
    assert_no_leaks(&before);
}

fn run(test: impl Future<Output = ()>) {
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(test),
        Err(error) => panic!("no runtime: {error}"),
    }
}

/// A process, named so that a reused id is another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Start time in clock ticks since boot.
    pub started: u64,
    /// Its parent.
    pub parent: i32,
    /// State letter of `/proc`, `Z` for a zombie.
    pub state: char,
    /// Command name as the kernel keeps it.
    pub command: String,
}

/// What this process holds at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Descendants.
    pub processes: Vec<Process>,
    /// Open descriptors and what they are.
    pub descriptors: BTreeMap<i32, String>,
    /// Numbers of the pseudo-terminals (`/dev/pts/N`) that we or our descendants hold.
    pub terminals: BTreeSet<u32>,
}

impl Snapshot {
    /// Looks now.
    pub fn take() -> Self {
        let processes = descendants();
        let own = std::process::id().cast_signed();
        let holders = std::iter::once(own).chain(processes.iter().map(|it| it.pid));
        let terminals = holders.flat_map(terminals_of).collect();
        Self { processes, descriptors: descriptors_of(own), terminals }
    }

    /// What `self` has that `before` had not.
    pub fn beyond(&self, before: &Self) -> Leaks {
        let known = |process: &&Process| {
            before.processes.iter().any(|it| (it.pid, it.started) == (process.pid, process.started))
        };
        let processes = self.processes.iter().filter(|it| !known(it)).cloned().collect();
        let mut descriptors = Vec::new();
        for (class, now) in classes(&self.descriptors) {
            let then = classes(&before.descriptors).remove(&class).unwrap_or_default();
            if now.len() > then.len() {
                let fresh = now.into_iter().filter(|fd| !then.contains(fd));
                descriptors.extend(fresh.map(|fd| (fd, self.descriptors[&fd].clone())));
            }
        }
        let terminals = self.terminals.difference(&before.terminals).copied().collect();
        Leaks { processes, descriptors, terminals }
    }
}

/// What was left over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leaks {
    /// Processes.
    pub processes: Vec<Process>,
    /// Descriptors, of kinds of which there are more than before.
    pub descriptors: Vec<(i32, String)>,
    /// Pseudo-terminals.
    pub terminals: Vec<u32>,
}

impl Leaks {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty() && self.descriptors.is_empty() && self.terminals.is_empty()
    }
}

impl fmt::Display for Leaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Process { pid, parent, state, command, .. } in &self.processes {
            writeln!(f, "  process {pid} ({command}), state {state}, child of {parent}")?;
        }
        for (fd, target) in &self.descriptors {
            writeln!(f, "  descriptor {fd} -> {target}")?;
        }
        self.terminals.iter().try_for_each(|index| writeln!(f, "  terminal /dev/pts/{index}"))
    }
}

/// Checks that nothing is there that was not there `before`.
///
/// What finished tasks still hold goes away a moment later without an event, so this looks again
/// for a while. A test that must know that something is gone *at* a moment takes a [`Snapshot`].
///
/// # Panics
///
/// With a list of what was left over.
#[track_caller]
pub fn assert_no_leaks(before: &Snapshot) {
    let mut leaks = Leaks::default();
    for _ in 0..LOOKS {
        leaks = Snapshot::take().beyond(before);
        if leaks.is_empty() {
            return;
        }
        std::thread::sleep(LOOK);
    }
    panic!("left over:\n{leaks}");
}

/// All processes of this machine whose environment has `name=value`, zombies excluded.
pub fn processes_with_env(name: &str, value: &str) -> Vec<Process> {
    let wanted = format!("{name}={value}");
    let has = |process: &Process| {
        let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    processes().into_iter().filter(|process| process.state != 'Z' && has(process)).collect()
}

fn descendants() -> Vec<Process> {
    let all = processes();
    let mut family = BTreeSet::from([std::process::id().cast_signed()]);
    // A parent may be younger than its child's number suggests: go on until nothing is added.
    loop {
        let size = family.len();
        family.extend(
            all.iter()
                .filter(|it| family.contains(&it.parent))
                .map(|it| it.pid)
                .collect::<Vec<_>>(),
        );
        if family.len() == size {
            break;
        }
    }
    family.remove(&std::process::id().cast_signed());
    all.into_iter().filter(|process| family.contains(&process.pid)).collect()
}

fn processes() -> Vec<Process> {
    numbers_in(Path::new("/proc")).into_iter().filter_map(process).collect()
}

fn process(pid: i32) -> Option<Process> {
    // `pid (command) state ppid …`; the command may hold anything, parentheses included.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, tail) = stat.rsplit_once(") ")?;
    let command = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = tail.split(' ').collect();
    Some(Process {
        pid,
        started: fields.get(19)?.parse().ok()?,
        parent: fields.get(1)?.parse().ok()?,
        state: fields.first()?.chars().next()?,
        command,
    })
}

fn descriptors_of(pid: i32) -> BTreeMap<i32, String> {
    let folder = format!("/proc/{pid}/fd");
    let fds = numbers_in(Path::new(&folder)).into_iter();
    let targets = fds.filter_map(|fd| {
        let target = fs::read_link(format!("{folder}/{fd}")).ok()?;
        Some((fd, target.display().to_string()))
    });
    // The one with which the folder was read is closed by now, and so has no target.
    targets.collect()
}

fn terminals_of(pid: i32) -> Vec<u32> {
    let masters = descriptors_of(pid).into_iter().filter(|(_, target)| target.ends_with("ptmx"));
    let indices = masters.filter_map(|(fd, _)| {
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
        info.lines().find_map(|line| line.strip_prefix("tty-index:"))?.trim().parse().ok()
    });
    indices.collect()
}

/// Descriptors by what they are, without the numbers of pipes and sockets.
fn classes(descriptors: &BTreeMap<i32, String>) -> BTreeMap<String, BTreeSet<i32>> {
    let mut classes = BTreeMap::<String, BTreeSet<i32>>::new();
    for (&fd, target) in descriptors {
        let class = match target.split_once(":[") {
            Some((kind @ ("pipe" | "socket"), _)) => kind.to_owned(),
            _ => target.clone(),
        };
        classes.entry(class).or_default().insert(fd);
    }
    classes
}

fn numbers_in(folder: &Path) -> Vec<i32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}
