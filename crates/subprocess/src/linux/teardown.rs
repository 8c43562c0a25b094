//! Ending everything a session ever started.
//!
//! - Descendants first: TERM, the grace, KILL. The leader is asked when they are gone, because the
//!   end of a shell hangs up whoever still runs on its terminal.
//! - Interactive shells ignore TERM. One below the leader is told HUP, but like the leader only when
//!   nothing else is left.
//! - A last look at the whole process table, and KILL for whoever it finds. Success means that it
//!   found nothing, or only processes that refused our signals for the second time.
//! - A look during which somebody was born, anywhere on the machine, may have missed who was. Without a
//!   control group, which misses nobody, it is made again; on a machine that starts processes all the
//!   time the last of a few is believed, after as many strikes at whoever was given to the host.
//! - Nothing is waited for but the ends themselves, within the grace.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{Signal, getpid},
};

use super::{
    at_once::strike,
    blind,
    cgroup::Group,
    mark::Mark,
    members::Whose,
    process::LocalProcess,
    procfs::{Proc, Stat},
    reaper, spawn,
    target::{Identity, Kept, Target, wait},
};
use crate::host::TerminateError;

/// How long a process may take to vanish after KILL.
pub(super) const KILL_BOUND: Duration = Duration::from_secs(2);
/// The most of the grace that is held back from the descendants for the leader.
const LEADER_SHARE: Duration = Duration::from_millis(500);
/// No grace is longer: the clock has an end.
const LONGEST_GRACE: Duration = Duration::from_hours(365 * 24);
/// A shell can lose a signal that comes just before it starts to wait for input (bash does, when it
/// gets there from a command). It is told again after this pause, and then after longer ones.
pub(super) const ASK_AGAIN: Duration = Duration::from_millis(25);
/// How often new descendants are asked when those before are gone: if the leader itself goes on
/// starting them, only its own end ends that. So often, too, it is looked for those whom a look may
/// have missed.
const ROUNDS: usize = 8;
/// Looks at the orphans alone, as long as there are any, before each whole look.
const STRIKES: usize = 200;
/// What an interactive shell with job control ignores.
const JOB_CONTROL_SHELL: [Signal; 3] = [Signal::TERM, Signal::TSTP, Signal::TTOU];
/// Ends watched at once; those of more processes are looked for now and then.
const MAX_WATCHED: usize = 256;

/// See [`TerminalProcess::terminate`](crate::TerminalProcess::terminate).
pub(crate) async fn terminate(
    process: &mut LocalProcess,
    grace: Duration,
    output: &mut Vec<u8>,
) -> Result<(), TerminateError> {
    if process.leader.is_collected() {
        return Ok(());
    }
    let grace = Grace::from_now(grace);
    let Some(proc) = process.proc.clone().or_else(|| Proc::open().map(Arc::new)) else {
        return blind::terminate(process, grace, output).await;
    };
    let mut kept = Kept::new(process.pty.master(), output);
    let signs = process.leader.signs;
    let mut closing = Closing {
        proc,
        leader: signs.leader,
        mark: signs.mark,
        whose: Whose::session(&process.leader),
        seen: HashSet::new(),
        stuck: HashSet::new(),
    };

    if !closing.ask_descendants(grace.of_descendants, &mut kept).await {
        closing.kill(Find::Descendants, &mut kept).await;
    }
    closing.ask_leader(grace.of_leader(), &mut kept).await;
    let mut survivors = closing.kill(Find::Everybody, &mut kept).await;
    if !grace.is_over() && survivors.iter().any(|it| is_new_refusal(it, &process.refusing)) {
        // Ours are gone. The end of the shell has hung the terminal up, for which nobody has to
        // permit anything: those who refuse our signals may still end by that.
        wait(&closing.proc, &survivors, grace.end, &mut kept).await;
        survivors = closing.kill(Find::Everybody, &mut kept).await;
    }
    closing.collect_orphans().await;
    kept.read();

    process.note_exit();
    let verdict =
        Verdict::of(survivors.iter().map(|it| (it.identity(), it.refused)), &mut process.refusing);
    match verdict {
        Verdict::Ended => {}
        Verdict::Released => {
            for it in &survivors {
                tracing::warn!("left behind when its session was closed: {}", it.survivor());
            }
        }
        Verdict::Failed => {
            let survivors = survivors.iter().map(Target::survivor).collect();
            return Err(TerminateError { survivors });
        }
    }
    process.leader.collect();
    Ok(())
}

/// How the time of one attempt is shared out.
#[derive(Clone, Copy)]
pub(super) struct Grace {
    pub(super) of_descendants: Instant,
    end: Instant,
    leader_share: Duration,
}

impl Grace {
    pub(super) fn from_now(grace: Duration) -> Self {
        let grace = grace.min(LONGEST_GRACE);
        let leader_share = LEADER_SHARE.min(grace / 4);
        let now = Instant::now();
        let of_descendants = now + grace.saturating_sub(leader_share);
        Self { of_descendants, end: now + grace, leader_share }
    }

    /// What is left, and at least the leader's share.
    pub(super) fn of_leader(&self) -> Instant {
        self.end.max(Instant::now() + self.leader_share)
    }

    fn is_over(&self) -> bool {
        self.end <= Instant::now()
    }
}

/// What an attempt came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Nothing is left.
    Ended,
    /// What is left refused the attempt before, too: nothing more can be done.
    Released,
    /// Something is left.
    Failed,
}

impl Verdict {
    /// From what is left, and why it was not signalled. `refusing` holds those whom the attempt
    /// before was not permitted to signal; it is brought up to date.
    fn of(
        left: impl Iterator<Item = (Identity, Option<Errno>)>,
        refusing: &mut HashSet<Identity>,
    ) -> Self {
        let mut verdict = Self::Ended;
        let mut now = HashSet::new();
        for (identity, refused) in left {
            let known = refused == Some(Errno::PERM) && refusing.contains(&identity);
            verdict = if known && verdict != Self::Failed { Self::Released } else { Self::Failed };
            if refused == Some(Errno::PERM) {
                now.insert(identity);
            }
        }
        *refusing = now;
        verdict
    }
}

fn is_new_refusal(target: &Target, known: &HashSet<Identity>) -> bool {
    target.refused == Some(Errno::PERM) && !known.contains(&target.identity())
}

/// One attempt to end a session.
struct Closing {
    proc: Arc<Proc>,
    leader: i32,
    mark: Mark,
    whose: Whose,
    /// Every process that was found.
    seen: HashSet<Identity>,
    /// Those that did not vanish within their time after KILL. Nobody waits for them again.
    stuck: HashSet<Identity>,
}

/// Who is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Find {
    /// Where the host is the reaper of orphans, these are all descendants but those being born.
    DescendantsInTree,
    Descendants,
    Leader,
    Everybody,
}

impl Closing {
    /// Asks the descendants to end, and those that appear when the first are gone. False if the
    /// deadline passed before they were gone.
    async fn ask_descendants(&mut self, deadline: Instant, kept: &mut Kept<'_>) -> bool {
        let find = if spawn::is_subreaper() { Find::DescendantsInTree } else { Find::Descendants };
        let mut targets = self.look(find).await;
        for _ in 0..ROUNDS {
            for target in &mut targets {
                self.ask(target);
            }
            // Those who refuse are not waited for: they may end with the terminal.
            targets.retain(|it| it.refused.is_none());
            if targets.is_empty() {
                return true;
            }
            let (shells, others): (Vec<_>, Vec<_>) = targets
                .into_iter()
                .partition(|it| self.proc.ignores(it.stat.pid, &JOB_CONTROL_SHELL));
            // No new look before these are gone: what they start now is part of their own ending.
            if !wait(&self.proc, &others, deadline, kept).await
                || !self.hang_up(shells, deadline, kept).await
            {
                return false;
            }
            targets = self.look(Find::Descendants).await;
        }
        true
    }

    /// Asks the leader to end, and waits for it.
    async fn ask_leader(&mut self, deadline: Instant, kept: &mut Kept<'_>) {
        let mut leader = self.look(Find::Leader).await;
        for target in &mut leader {
            self.ask(target);
        }
        leader.retain(|it| it.refused.is_none());
        if !leader.iter().all(|it| self.proc.ignores(it.stat.pid, &[Signal::TERM])) {
            // It took TERM; it may be a program in the shell's place, which HUP would cut off.
            let left = deadline.saturating_duration_since(Instant::now());
            if wait(&self.proc, &leader, Instant::now() + left / 2, kept).await {
                return;
            }
        }
        self.hang_up(leader, deadline, kept).await;
    }

    /// Kills whoever is found until nobody is, or nothing more can be done; who survives.
    async fn kill(&mut self, find: Find, kept: &mut Kept<'_>) -> Vec<Target> {
        let deadline = Instant::now() + KILL_BOUND;
        let mut rounds = 0;
        loop {
            self.strike().await;
            let before = births(&self.proc, self.whose.group());
            let mut targets = self.look(find).await;
            let is_whole = births(&self.proc, self.whose.group()) == before;
            if find == Find::Everybody
                && !targets.is_empty()
                && let Some(group) = self.whose.group()
            {
                group.kill();
            }
            for target in &mut targets {
                self.seen.insert(target.identity());
                target.signal(&self.proc, Signal::KILL);
            }
            rounds += 1;
            let late = Instant::now() >= deadline;
            let killed = targets.iter().filter(|it| it.refused.is_none()).map(Target::identity);
            if late {
                self.stuck.extend(killed);
                return targets;
            }
            let (awaited, left): (Vec<_>, Vec<_>) = targets
                .into_iter()
                .partition(|it| it.refused.is_none() && !self.stuck.contains(&it.identity()));
            let is_empty = awaited.is_empty() && left.is_empty();
            if find == Find::Everybody && is_empty && !is_whole && rounds < ROUNDS {
                continue;
            }
            // A living leader may go on starting others for ever.
            if awaited.is_empty() || (find == Find::Descendants && rounds == ROUNDS) {
                return left;
            }
            wait(&self.proc, &awaited, deadline, kept).await;
        }
    }

    /// Kills those whom a whole look would come too late for: whoever leaves the tree by ending early
    /// is given to the host, and is among the newest as long as his parent ends.
    async fn strike(&self) {
        let (proc, mark, group) = (Arc::clone(&self.proc), self.mark, self.whose.group().cloned());
        let struck = tokio::task::spawn_blocking(move || {
            let own = getpid().as_raw_nonzero().get();
            for _ in 0..STRIKES {
                let before = births(&proc, group.as_ref());
                let mut orphans = proc.children(own);
                if group.is_none() {
                    orphans.extend(proc.newest());
                }
                orphans.retain(|&it| !reaper::is_leader(it));
                let struck = strike(&proc, orphans, |pid| mark.is_on(&proc, pid));
                // Who ended before he was met has perhaps left a child.
                if !struck && births(&proc, group.as_ref()) == before {
                    break;
                }
            }
        });
        if let Err(error) = struck.await {
            tracing::debug!(%error, "orphans were not looked for");
        }
    }

    /// Asks a process to end, once: TERM, and CONT for one that is stopped and would not hear it.
    fn ask(&mut self, target: &mut Target) {
        if !self.seen.insert(target.identity()) {
            return;
        }
        target.signal(&self.proc, Signal::TERM);
        if target.stat.state == b'T' && target.refused.is_none() {
            target.signal(&self.proc, Signal::CONT);
        }
    }

    /// Tells `targets` that their terminal is gone until they are gone themselves; false if the
    /// deadline passed before.
    async fn hang_up(
        &self,
        mut targets: Vec<Target>,
        deadline: Instant,
        kept: &mut Kept<'_>,
    ) -> bool {
        let mut pause = ASK_AGAIN;
        loop {
            for target in &mut targets {
                target.signal(&self.proc, Signal::HUP);
            }
            let next = deadline.min(Instant::now() + pause);
            if wait(&self.proc, &targets, next, kept).await {
                return true;
            }
            if next == deadline {
                return false;
            }
            pause *= 4;
        }
    }

    /// Looks for processes on a thread that may block, and opens their pidfds.
    async fn look(&self, find: Find) -> Vec<Target> {
        let (proc, whose, leader) = (Arc::clone(&self.proc), self.whose.clone(), self.leader);
        let found = tokio::task::spawn_blocking(move || look(&proc, &whose, leader, find));
        // Fails when the runtime is going down: then this thread may block as well.
        found.await.unwrap_or_else(|_| look(&self.proc, &self.whose, self.leader, find))
    }

    /// Collects what was given to the host and is dead by now.
    async fn collect_orphans(self) {
        let Self { proc, seen, leader, .. } = self;
        let collected = tokio::task::spawn_blocking(move || {
            reaper::sweep();
            // One that changed the limit it was marked by is known all the same.
            for (pid, start) in seen {
                let same = |it: Stat| it.is_dead() && it.start == start;
                if pid != leader && proc.stat(pid).is_some_and(same) {
                    reaper::collect(pid);
                }
            }
        });
        if let Err(error) = collected.await {
            tracing::debug!(%error, "orphans were not collected");
        }
    }
}

/// Differs from an earlier one if somebody was born meanwhile, whom a look may have missed. In a group
/// nobody is missed.
fn births(proc: &Proc, group: Option<&Group>) -> Option<u64> {
    if group.is_some() { None } else { proc.youngest() }
}

/// Finds processes and opens their pidfds. Needs a tokio runtime.
fn look(proc: &Proc, whose: &Whose, leader: i32, find: Find) -> Vec<Target> {
    let mut found = match find {
        Find::DescendantsInTree => whose.find_in_tree(proc),
        Find::Descendants | Find::Everybody => whose.find_everywhere(proc),
        Find::Leader => proc.stat(leader).filter(|it| !it.is_dead()).into_iter().collect(),
    };
    if matches!(find, Find::Descendants | Find::DescendantsInTree) {
        found.retain(|it| it.pid != leader);
    }
    let targets = found.into_iter().enumerate();
    targets.map(|(index, stat)| Target::new(proc, stat, index < MAX_WATCHED)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_refuses_twice_is_released() {
        let (a, b): (Identity, Identity) = ((1, 10), (2, 20));
        let again: Identity = (1, 11);
        let (no, io, sent) = (Some(Errno::PERM), Some(Errno::INVAL), None);
        for (attempts, expected) in [
            (vec![vec![]], vec![Verdict::Ended]),
            (vec![vec![(a, no)]; 3], vec![Verdict::Failed, Verdict::Released, Verdict::Released]),
            (vec![vec![(a, no)], vec![]], vec![Verdict::Failed, Verdict::Ended]),
            (vec![vec![(a, no), (b, no)], vec![(b, no)]], vec![Verdict::Failed, Verdict::Released]),
            // A new one is named first, whatever its place in the list.
            (
                vec![vec![(a, no)], vec![(a, no), (b, no)], vec![(a, no), (b, no)]],
                vec![Verdict::Failed, Verdict::Failed, Verdict::Released],
            ),
            (vec![vec![(b, no)], vec![(a, no), (b, no)]], vec![Verdict::Failed, Verdict::Failed]),
            // The number alone does not make it the same.
            (vec![vec![(a, no)], vec![(again, no)]], vec![Verdict::Failed, Verdict::Failed]),
            // Only a missing permission is for good.
            (vec![vec![(a, sent)]; 2], vec![Verdict::Failed; 2]),
            (vec![vec![(a, io)]; 2], vec![Verdict::Failed; 2]),
            (vec![vec![(a, no)], vec![(a, sent)]], vec![Verdict::Failed; 2]),
            (vec![vec![(a, no)], vec![(a, no), (b, sent)]], vec![Verdict::Failed; 2]),
        ] {
            let mut refusing = HashSet::new();
            let verdicts: Vec<_> = attempts
                .iter()
                .map(|left| Verdict::of(left.iter().copied(), &mut refusing))
                .collect();
            assert_eq!(verdicts, expected, "{attempts:?}");
        }
    }

    #[test]
    fn the_leader_has_a_share_of_every_grace() {
        for (grace, share) in [(0, 0), (100, 25), (2000, 500), (60_000, 500)] {
            let share = Duration::from_millis(share);
            let shared = Grace::from_now(Duration::from_millis(grace));
            assert_eq!(shared.leader_share, share);
            assert_eq!(shared.end - shared.of_descendants, share);
            assert!(shared.of_leader() >= shared.end);
        }
        assert!(!Grace::from_now(Duration::MAX).is_over());
    }
}
