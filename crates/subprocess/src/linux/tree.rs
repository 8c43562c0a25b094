//! The tree of processes below this host, as far as it belongs to one session.

use std::collections::HashSet;

use rustix::process::getpid;

use super::{
    procfs::{Proc, Stat},
    reaper,
};

/// Every process below `roots`, roots included, parents before their children, each with its
/// depth. Vanished ones are left out.
pub(crate) fn walk(proc: &Proc, roots: impl IntoIterator<Item = i32>) -> Vec<(Stat, usize)> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let mut next: Vec<_> = roots.into_iter().map(|pid| (pid, 0)).collect();
    while let Some((pid, depth)) = next.pop() {
        if !seen.insert(pid) {
            continue;
        }
        let Some(stat) = proc.stat(pid) else { continue };
        let children = match stat.threads {
            1 => proc.thread_children(pid, pid),
            _ => proc.children(pid),
        };
        next.extend(children.into_iter().map(|child| (child, depth + 1)));
        found.push((stat, depth));
    }
    found
}

/// Children of the host that no part of it started: orphans of some session.
///
/// `everywhere` looks at the children of all threads of the host; otherwise only at those of the
/// main thread, to which the kernel gives orphans as long as it lives.
pub(crate) fn orphans(proc: &Proc, everywhere: bool) -> Vec<Stat> {
    let own = getpid().as_raw_nonzero().get();
    let Some(session) = session_of_host(proc) else { return Vec::new() };
    let children = if everywhere { proc.children(own) } else { proc.thread_children(own, own) };
    children
        .into_iter()
        .filter(|&pid| !reaper::is_leader(pid))
        .filter_map(|pid| proc.stat(pid))
        .filter(|it| it.session != session)
        .collect()
}

/// The session of the host itself; 0 where its leader lives outside the host's PID namespace (a
/// host that is started into a container).
pub(crate) fn session_of_host(proc: &Proc) -> Option<i32> {
    proc.stat(getpid().as_raw_nonzero().get()).map(|it| it.session)
}
