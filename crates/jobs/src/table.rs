//! Who owns which job: admission, lookup, retention, the end of owners.
//!
//! Guarantees:
//! - a start is seen by the end of its owner from its admission on, and that end waits until the
//!   start has either become a job or failed;
//! - ids are minted when a job is published, so a start that failed takes none;
//! - of each owner, at most [`MOST_ENDED`] jobs that have ended are kept, the one that ended last
//!   always.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use agents::{Agent, AgentInstance};
use dsh_core::lock;
use tokio_util::sync::CancellationToken;

use crate::{
    error::JobError,
    job::{JobId, JobKind},
    record::{Fresh, Job},
};

/// Most jobs of one owner that are kept after their end.
const MOST_ENDED: usize = 64;

/// The jobs there are.
#[derive(Default)]
pub(crate) struct Table(Mutex<State>);

#[derive(Default)]
struct State {
    disposing: bool,
    minted: BTreeMap<JobKind, u64>,
    owners: Vec<Owner>,
    starting: Vec<Starting>,
    /// In the order of their start.
    jobs: Vec<Arc<Job>>,
    /// Those of them that have ended, in the order of their end.
    ended: Vec<Arc<Job>>,
}

struct Owner {
    instance: AgentInstance,
    disposing: bool,
}

/// A start between its admission and its end.
struct Starting {
    owner: Option<AgentInstance>,
    over: CancellationToken,
}

/// Whose jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    All,
    Owner(AgentInstance),
}

impl Selection {
    fn holds(self, owner: Option<AgentInstance>) -> bool {
        match self {
            Self::All => true,
            Self::Owner(instance) => owner == Some(instance),
        }
    }
}

/// An admitted start. Dropping it gives its place back.
pub(crate) struct Place<'a> {
    table: &'a Table,
    over: CancellationToken,
}

impl Table {
    /// Admits a start for `owner`, who may have `most` live jobs. `adopt` ties the owner's end to
    /// this table, once; false when it has begun already.
    pub(crate) fn admit(
        &self,
        owner: Option<&Arc<Agent>>,
        most: u64,
        adopt: impl FnOnce(&Arc<Agent>) -> bool,
    ) -> Result<Place<'_>, JobError> {
        let mut state = self.state();
        if state.disposing {
            return Err(JobError::ServiceDisposing);
        }
        if let Some(owner) = owner {
            state.adopt(owner, adopt)?;
            let instance = Some(owner.instance());
            let live = state.jobs.iter().filter(|it| of(it) == instance && it.is_live()).count();
            let starting = state.starting.iter().filter(|it| it.owner == instance).count();
            if (live + starting) as u64 >= most {
                return Err(JobError::TooManyJobs { limit: most });
            }
        }
        let over = CancellationToken::new();
        let owner = owner.map(|it| it.instance());
        state.starting.push(Starting { owner, over: over.clone() });
        Ok(Place { table: self, over })
    }

    /// The job that `caller` may see under this id.
    pub(crate) fn find(&self, caller: Option<&Arc<Agent>>, id: &str) -> Result<Arc<Job>, JobError> {
        let instance = caller.map(|it| it.instance());
        let found = self.state().jobs.iter().find(|it| it.id.as_str() == id).cloned();
        let seen = found.filter(|it| of(it).is_none() || of(it) == instance);
        seen.ok_or_else(|| JobError::UnknownJob { id: id.to_owned() })
    }

    /// The jobs that `caller` may see, oldest first.
    pub(crate) fn seen_by(&self, caller: Option<&Arc<Agent>>) -> Vec<Arc<Job>> {
        let instance = caller.map(|it| it.instance());
        let state = self.state();
        state.jobs.iter().filter(|it| of(it).is_none() || of(it) == instance).cloned().collect()
    }

    /// Refuses further starts of the selection; answers the tokens of those that are under way.
    pub(crate) fn shut(&self, which: Selection) -> Vec<CancellationToken> {
        let mut state = self.state();
        match which {
            Selection::All => state.disposing = true,
            Selection::Owner(instance) => {
                for owner in state.owners.iter_mut().filter(|it| it.instance == instance) {
                    owner.disposing = true;
                }
            }
        }
        let starting = state.starting.iter().filter(|it| which.holds(it.owner));
        starting.map(|it| it.over.clone()).collect()
    }

    /// The jobs of the selection.
    pub(crate) fn jobs(&self, which: Selection) -> Vec<Arc<Job>> {
        self.state().jobs.iter().filter(|it| which.holds(of(it))).cloned().collect()
    }

    /// Takes note that a job has ended, and forgets what is too much of its owner.
    pub(crate) fn retire(&self, job: &Arc<Job>) {
        let mut state = self.state();
        if !state.jobs.iter().any(|it| it.id == job.id) {
            return;
        }
        state.ended.push(Arc::clone(job));
        let mut evicted = Vec::new();
        while let Some(job) = state.evict(of(job)) {
            evicted.push(job);
        }
        drop(state);
        drop(evicted);
    }

    /// Forgets the selection. A closed owner refuses starts by itself from now on.
    pub(crate) fn forget(&self, which: Selection) {
        let mut state = self.state();
        let (kept, gone) =
            std::mem::take(&mut state.jobs).into_iter().partition(|it| !which.holds(of(it)));
        state.jobs = kept;
        state.ended.retain(|it| !which.holds(of(it)));
        if let Selection::Owner(instance) = which {
            state.owners.retain(|it| it.instance != instance);
        }
        drop(state);
        drop::<Vec<Arc<Job>>>(gone);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

impl State {
    fn adopt(
        &mut self,
        owner: &Arc<Agent>,
        adopt: impl FnOnce(&Arc<Agent>) -> bool,
    ) -> Result<(), JobError> {
        let instance = owner.instance();
        let known = self.owners.iter().find(|it| it.instance == instance);
        let live = match known {
            Some(known) => !known.disposing,
            None => adopt(owner),
        };
        if !live {
            return Err(JobError::OwnerNotLive { owner: owner.id().to_owned() });
        }
        if known.is_none() {
            self.owners.push(Owner { instance, disposing: false });
        }
        Ok(())
    }

    /// Takes out one that is too much of this owner: what was told first, the oldest end first, and
    /// never the newest.
    fn evict(&mut self, owner: Option<AgentInstance>) -> Option<Arc<Job>> {
        let ended: Vec<&Arc<Job>> = self.ended.iter().filter(|it| of(it) == owner).collect();
        let (_, older) = ended.split_last().filter(|_| ended.len() > MOST_ENDED)?;
        let told = older.iter().find(|it| it.told.is_set());
        let evicted = Arc::clone(told.or(older.first())?);
        for jobs in [&mut self.jobs, &mut self.ended] {
            jobs.retain(|it| it.id != evicted.id);
        }
        Some(evicted)
    }
}

impl Place<'_> {
    /// Publishes the job.
    pub(crate) fn publish(self, fresh: Fresh) -> Arc<Job> {
        let mut state = self.table.state();
        let number = state.minted.entry(fresh.kind).or_default();
        *number += 1;
        let id = JobId::new(fresh.kind, *number);
        let job = Arc::new(Job::new(id, fresh));
        state.jobs.push(Arc::clone(&job));
        job
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.table.state().starting.retain(|it| it.over != self.over);
        self.over.cancel();
    }
}

fn of(job: &Arc<Job>) -> Option<AgentInstance> {
    job.owner.as_ref().map(|it| it.instance())
}
