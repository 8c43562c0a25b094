//! Who belongs to a session.
//!
//! - A process belongs to a session by any one of: being below its leader, its session, its
//!   controlling terminal, its [`Mark`], its control group. The host is the reaper of orphans, so
//!   whatever left the tree of the leader is still in the tree of the host.
//! - The host's own children, and what they started, belong to nobody here.
//! - The order is children first, leaders last.

use std::collections::{HashMap, HashSet};

use rustix::process::getpid;

use super::{
    cgroup::{self, Group, SessionGroup},
    mark::{HostMark, Mark},
    procfs::{Proc, Stat},
    reaper,
    spawn::{self, Leader},
    tree,
};

/// The signs by which a process belongs to a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signs {
    pub(crate) leader: i32,
    pub(crate) tty: i32,
    pub(crate) mark: Mark,
}

/// Whose processes are looked for.
#[derive(Clone, Debug)]
pub(crate) struct Whose {
    sessions: Vec<Signs>,
    /// Any mark of this host counts.
    any_mark: bool,
    /// Whoever is in there.
    group: Option<Group>,
    /// It is not removed meanwhile.
    _kept: Option<SessionGroup>,
}

impl Whose {
    /// Those of one session.
    pub(crate) fn session(leader: &Leader) -> Self {
        let kept = leader.group.clone();
        let group = kept.as_ref().map(|it| it.group().clone());
        Self { sessions: vec![leader.signs], any_mark: false, group, _kept: kept }
    }

    /// Those of every session of this host.
    pub(crate) fn host() -> Self {
        let sessions = reaper::sessions();
        Self { sessions, any_mark: true, group: cgroup::of_sessions(), _kept: None }
    }

    /// The control group of them all, where there is one.
    pub(crate) fn group(&self) -> Option<&Group> {
        self.group.as_ref()
    }

    /// The living ones in the host's tree.
    pub(crate) fn find_in_tree(&self, proc: &Proc) -> Vec<Stat> {
        let orphans = tree::orphans(proc, true).into_iter().map(|it| it.pid);
        let roots: Vec<_> = self.sessions.iter().map(|it| it.leader).chain(orphans).collect();
        let found: Vec<_> = tree::walk(proc, roots).into_iter().map(|(stat, _)| stat).collect();
        self.select(proc, &found)
    }

    /// The same from the whole process table, whatever the tree looks like.
    pub(crate) fn find_everywhere(&self, proc: &Proc) -> Vec<Stat> {
        let all: Vec<_> = proc.processes().into_iter().filter_map(|pid| proc.stat(pid)).collect();
        self.select(proc, &all)
    }

    fn leads(&self, pid: i32) -> bool {
        self.sessions.iter().any(|it| it.leader == pid)
    }

    fn marked(&self, proc: &Proc, pid: i32) -> bool {
        self.sessions.iter().any(|it| it.mark.is_on(proc, pid))
            || (self.any_mark && HostMark::drawn().is_some_and(|it| it.is_on(proc, pid)))
    }

    fn select(&self, proc: &Proc, all: &[Stat]) -> Vec<Stat> {
        let own = getpid().as_raw_nonzero().get();
        let own_session = tree::session_of_host(proc);
        let parents: HashMap<i32, i32> = all.iter().map(|it| (it.pid, it.parent)).collect();
        let ancestors = |pid: i32| {
            let mut length = 0;
            std::iter::successors(parents.get(&pid).copied(), |it| parents.get(it).copied())
                .take_while(move |&it| {
                    length += 1;
                    it != 0 && length < 10_000
                })
        };
        let reaper = spawn::is_subreaper();
        let members = self.group.as_ref().map(Group::members).unwrap_or_default();
        let has_sign = |stat: &Stat| {
            let adopted = stat.parent == own || (!reaper && stat.parent == 1);
            let on_terminal = self.sessions.iter().any(|it| it.tty == stat.tty);
            self.leads(stat.pid)
                || members.contains(&stat.pid)
                || self.leads(stat.session)
                // Terminals of other containers have the same numbers: only below the host.
                || (on_terminal && (stat.parent == own || ancestors(stat.pid).any(|it| it == own)))
                || (adopted
                    && Some(stat.session) != own_session
                    && !reaper::is_leader(stat.pid)
                    && self.marked(proc, stat.pid))
        };
        let signed: HashSet<i32> =
            all.iter().filter(|it| it.pid != own && has_sign(it)).map(|it| it.pid).collect();
        let belongs = |pid: i32| {
            signed.contains(&pid)
                || ancestors(pid).take_while(|&it| it != own).any(|it| signed.contains(&it))
        };
        let mut found: Vec<_> = all
            .iter()
            .filter(|it| it.pid != own && !it.is_dead() && belongs(it.pid))
            .map(|it| (ancestors(it.pid).count(), it.clone()))
            .collect();
        found.sort_by_key(|(depth, it)| (self.leads(it.pid), std::cmp::Reverse(*depth)));
        found.into_iter().map(|(_, stat)| stat).collect()
    }
}
