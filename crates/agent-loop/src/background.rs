//! What still runs in the background on an agent's behalf, and may bring it a notice.
//!
//! Guarantee: a job is pending until everybody who wants to hear of its end has heard, so that when
//! nothing is pending any more, each notice of an end is in the inbox.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use agents::Agent;
use dsh_core::lock;
use jobs::{JobId, JobRegistry, JobSnapshot};
use tokio::sync::watch;

/// The jobs of one agent.
pub(crate) struct Background {
    jobs: Arc<dyn JobRegistry>,
    agent: Arc<Agent>,
    heard: Arc<Heard>,
}

/// The ends that were announced.
#[derive(Default)]
struct Heard {
    ids: Mutex<BTreeSet<JobId>>,
    count: watch::Sender<u64>,
}

impl Background {
    /// Listens from now on, behind the listeners there are, for as long as the agent lives. None
    /// if it is ending.
    pub(crate) fn of(agent: &Arc<Agent>, jobs: Arc<dyn JobRegistry>) -> Option<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let heard = Arc::<Heard>::default();
        let (owner, ends) = (agent.instance(), Arc::clone(&heard));
        let listener = move |done: &jobs::JobDone| {
            if done.owner.as_ref().is_some_and(|it| it.instance() == owner) {
                lock(&ends.ids).insert(done.job.id.clone());
                ends.count.send_modify(|it| *it += 1);
            }
        };
        let name = format!("agent-loop {}", NEXT.fetch_add(1, Ordering::Relaxed));
        jobs.on_job_done(agent.scope(), &name, Arc::new(listener)).ok()?;
        // What had ended before was announced before.
        let this = Self { jobs, agent: Arc::clone(agent), heard };
        let before = this.owned().into_iter().filter(|it| !it.status.is_live());
        lock(&this.heard.ids).extend(before.map(|it| it.id));
        Some(this)
    }

    /// The agent's own jobs: of the ends of others it does not hear.
    fn owned(&self) -> Vec<JobSnapshot> {
        let mut jobs = self.jobs.list(Some(&self.agent));
        jobs.retain(|it| it.owned);
        jobs
    }

    /// Those that are still at work.
    pub(crate) fn live(&self) -> BTreeSet<JobId> {
        self.owned().into_iter().filter(|it| it.status.is_live()).map(|it| it.id).collect()
    }

    /// Whether a job still runs, or its end is not known to everybody.
    pub(crate) fn is_pending(&self) -> bool {
        let jobs = self.owned();
        let mut heard = lock(&self.heard.ids);
        // Those that the registry has forgotten do not come back.
        heard.retain(|id| jobs.iter().any(|it| it.id == *id));
        jobs.iter().any(|it| it.status.is_live() || !heard.contains(&it.id))
    }

    /// Resolves when nothing is pending.
    pub(crate) async fn quiet(&self) {
        let mut count = self.heard.count.subscribe();
        while self.is_pending() {
            // The sender lives in `self`, so waiting cannot fail.
            count.changed().await.ok();
        }
    }
}
