//! The registry in this process.
//!
//! Guarantees beyond the seam's:
//! - the work of a job is awaited on a task of its own, which the disposal of the service joins;
//! - nothing foreign (a producer's code, a listener, a controller) runs under a lock, and its
//!   panics reach nobody else.

use std::{
    fmt::Write as _,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use agents::Agent;
use dsh_core::{
    Cancel, Scope, ScopedMap, async_trait, panic_text, scope::ScopeClosed,
    scoped_map::ContributeError,
};
use futures_util::FutureExt as _;
use tokio_util::task::TaskTracker;

use crate::{
    error::JobError,
    job::{JobSnapshot, JobStatus},
    record::{Fresh, Job, Rest, Settlement},
    registry::{ChangeListener, Controller, DoneListener, JobReading, JobRegistry, Kill},
    table::{Selection, Table},
    work::{CancelCause, JobCancel, JobRequest, JobWork},
};

/// The registry in this process. Clones are the same.
#[derive(Clone)]
pub struct LocalJobs(Arc<Inner>);

struct Inner {
    most_live: u64,
    table: Table,
    done: ScopedMap<DoneListener>,
    changed: ScopedMap<ChangeListener>,
    controllers: ScopedMap<Controller>,
    /// The tasks that await the work of the jobs.
    tasks: TaskTracker,
}

/// Jobs that could not be cancelled when their owner or the service ended.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Orphaned(String);

impl LocalJobs {
    /// An empty registry, in which an owner may have `most_live` live jobs. The disposal of
    /// `scope` ends all of them.
    pub fn new(scope: &Scope, most_live: u64) -> Result<Self, ScopeClosed> {
        let jobs = Self(Arc::new(Inner {
            most_live,
            table: Table::default(),
            done: ScopedMap::new("listener for the end of jobs"),
            changed: ScopedMap::new("listener for changes of jobs"),
            controllers: ScopedMap::new("job controller"),
            tasks: TaskTracker::new(),
        }));
        let ended = jobs.clone();
        scope.defer("background jobs", move || {
            let jobs = ended.clone();
            async move {
                let ended = jobs.end(Selection::All, "the jobs service is shutting down").await;
                jobs.0.tasks.close();
                jobs.0.tasks.wait().await;
                Ok(ended?)
            }
        })?;
        Ok(jobs)
    }

    /// Ends the jobs of the selection, waits for them, and forgets them. What could not be
    /// cancelled is forgotten too, and told of once.
    async fn end(&self, which: Selection, reason: &str) -> Result<(), Orphaned> {
        for starting in self.0.table.shut(which) {
            starting.cancelled().await;
        }
        let jobs = self.0.table.jobs(which);
        let cancel = JobCancel { reason: reason.to_owned(), cause: CancelCause::End };
        let mut orphaned = String::new();
        for job in jobs.iter().filter(|it| it.is_live()) {
            // Nobody is left to be notified.
            job.told.set();
            job.stop();
            if let Err(cause) = job.cancel(&cancel) {
                let separator = if orphaned.is_empty() { "" } else { "; " };
                let id = &job.id;
                // Writing to a string cannot fail.
                write!(orphaned, "{separator}job {id} could not be cancelled ({cause}), so its work may be orphaned").ok();
                self.settled(job);
            }
        }
        for job in &jobs {
            job.ended.cancelled().await;
        }
        self.0.table.forget(which);
        if orphaned.is_empty() { Ok(()) } else { Err(Orphaned(orphaned)) }
    }

    /// Ties the owner's end to its jobs. False when it has begun.
    fn adopt(&self, owner: &Arc<Agent>) -> bool {
        let (jobs, which) = (self.clone(), Selection::Owner(owner.instance()));
        let adopted = owner.scope().defer("background jobs", move || {
            let jobs = jobs.clone();
            async move { Ok(jobs.end(which, "its agent has ended").await?) }
        });
        adopted.is_ok()
    }

    fn is_served(&self, owner: Option<&Arc<Agent>>) -> bool {
        let serves = |controller: &Controller| {
            catch_unwind(AssertUnwindSafe(|| controller(owner))).unwrap_or_else(|panic| {
                tracing::error!("a job controller panicked: {}", panic_text(&*panic));
                false
            })
        };
        self.0.controllers.values().iter().any(serves)
    }

    /// Awaits the work of a job and settles it. Ends early when somebody else has settled it.
    async fn follow(self, job: Arc<Job>, work: Arc<dyn JobWork>) {
        let ending = AssertUnwindSafe(finished(&*work)).catch_unwind();
        let settlement = tokio::select! {
            biased;
            () = job.ended.cancelled() => return,
            settlement = ending => settlement.unwrap_or_else(|panic| Settlement {
                status: JobStatus::Failed,
                detail: Some(format!("its producer panicked: {}", panic_text(&*panic))),
                rest: None,
            }),
        };
        drop(work);
        if job.settle(settlement) {
            self.settled(&job);
        }
    }

    /// What follows a settlement, whoever brought it about.
    fn settled(&self, job: &Arc<Job>) {
        self.0.table.retire(job);
        self.changed(job);
        self.announce(job);
    }

    /// Tells the listeners of the end of a job, if it is time.
    fn announce(&self, job: &Job) {
        let Some(done) = job.announcement() else { return };
        for listener in self.0.done.values() {
            contain(|| listener(&done));
        }
    }

    fn changed(&self, job: &Job) {
        for listener in self.0.changed.values() {
            contain(|| listener(job.owner.as_ref()));
        }
    }
}

fn contain(listener: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(listener)) {
        tracing::error!("a listener of jobs panicked: {}", panic_text(&*panic));
    }
}

/// The end of a piece of work, with what it has left to read.
async fn finished(work: &dyn JobWork) -> Settlement {
    let end = work.done().await;
    let mut rest = work.read().await;
    let rest = match end.output {
        Some(text) => {
            rest.text = text;
            Rest::Always(rest)
        }
        None => Rest::Once(rest),
    };
    Settlement { status: end.ending.into(), detail: end.detail, rest: Some(rest) }
}

fn check(request: &JobRequest) -> Result<Option<usize>, JobError> {
    let wrong = if request.kind.as_str().is_empty() {
        "the kind of the job is empty: it is the first half of the job's id"
    } else if request.label.trim().is_empty() {
        "the label of the job is empty: say in one line what the job does"
    } else if request.output_limit_bytes == Some(0) {
        "the output limit of the job is 0 bytes: give at least 1, or none"
    } else {
        let limit = request.output_limit_bytes;
        return Ok(limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)));
    };
    Err(JobError::InvalidArgs(wrong.to_owned()))
}

#[async_trait]
impl JobRegistry for LocalJobs {
    fn start(&self, request: JobRequest) -> Result<JobSnapshot, JobError> {
        let limit = check(&request)?;
        let JobRequest { kind, label, owner, run, .. } = request;
        if let Some(owner) = owner.as_ref().filter(|it| it.is_ending()) {
            return Err(JobError::OwnerNotLive { owner: owner.id().to_owned() });
        }
        if !self.is_served(owner.as_ref()) {
            return Err(JobError::NoController);
        }
        let adopt = |owner: &Arc<Agent>| self.adopt(owner);
        let place = self.0.table.admit(owner.as_ref(), self.0.most_live, adopt)?;
        let work = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            Err(anyhow::anyhow!("the start of the job panicked: {}", panic_text(&*panic)))
        });
        let work = work.map_err(JobError::NotStarted)?;
        let job = place.publish(Fresh { kind, label, owner, limit, work: Arc::clone(&work) });
        self.0.tasks.spawn(self.clone().follow(Arc::clone(&job), work));
        self.changed(&job);
        Ok(job.snapshot())
    }

    fn list(&self, caller: Option<&Arc<Agent>>) -> Vec<JobSnapshot> {
        self.0.table.seen_by(caller).iter().map(|job| job.snapshot()).collect()
    }

    fn get(&self, caller: Option<&Arc<Agent>>, id: &str) -> Result<JobSnapshot, JobError> {
        Ok(self.0.table.find(caller, id)?.snapshot())
    }

    async fn read(
        &self,
        caller: Option<&Arc<Agent>>,
        id: &str,
        cancel: &Cancel,
    ) -> Result<JobReading, JobError> {
        let job = self.0.table.find(caller, id)?;
        let (snapshot, output) = job.read().await;
        if let Some(reason) = cancel.reason() {
            job.give_back(output);
            return Err(JobError::Cancelled { reason: reason.to_owned() });
        }
        if !snapshot.status.is_live() {
            job.told.set();
            self.announce(&job);
        }
        Ok(JobReading { job: snapshot, output })
    }

    fn kill(&self, caller: Option<&Arc<Agent>>, id: &str, reason: &str) -> Result<Kill, JobError> {
        let job = self.0.table.find(caller, id)?;
        job.told.set();
        if !job.stop() {
            self.announce(&job);
            return Ok(Kill::AlreadyFinished(job.snapshot()));
        }
        self.changed(&job);
        let cancel = JobCancel { reason: reason.to_owned(), cause: CancelCause::Kill };
        if let Err(cause) = job.cancel(&cancel) {
            self.settled(&job);
            return Err(JobError::CancelFailed { id: id.to_owned(), cause });
        }
        Ok(Kill::Requested(job.snapshot()))
    }

    async fn wait(
        &self,
        caller: Option<&Arc<Agent>>,
        id: &str,
        most: Duration,
        cancel: &Cancel,
    ) -> Result<JobSnapshot, JobError> {
        if most.is_zero() {
            let message = "the longest wait is 0: give a positive time";
            return Err(JobError::InvalidArgs(message.to_owned()));
        }
        let job = self.0.table.find(caller, id)?;
        let mut wait = Wait::begin(self, &job);
        tokio::select! {
            biased;
            () = job.ended.cancelled() => {}
            () = cancel.cancelled() => {}
            () = tokio::time::sleep(most) => {}
        }
        let snapshot = job.snapshot();
        if let Some(reason) = cancel.reason()
            && snapshot.status.is_live()
        {
            return Err(JobError::Cancelled { reason: reason.to_owned() });
        }
        wait.told = !snapshot.status.is_live();
        Ok(snapshot)
    }

    fn on_job_done(
        &self,
        scope: &Scope,
        name: &str,
        listener: DoneListener,
    ) -> Result<(), ContributeError> {
        self.0.done.contribute(scope, name, listener).map(drop)
    }

    fn on_jobs_changed(
        &self,
        scope: &Scope,
        name: &str,
        listener: ChangeListener,
    ) -> Result<(), ContributeError> {
        self.0.changed.contribute(scope, name, listener).map(drop)
    }

    fn attach_controller(
        &self,
        scope: &Scope,
        name: &str,
        controller: Controller,
    ) -> Result<(), ContributeError> {
        self.0.controllers.contribute(scope, name, controller).map(drop)
    }
}

/// A wait under way. Its end, also by being dropped, may be what the announcement waits for.
struct Wait<'a> {
    jobs: &'a LocalJobs,
    job: &'a Arc<Job>,
    told: bool,
}

impl<'a> Wait<'a> {
    fn begin(jobs: &'a LocalJobs, job: &'a Arc<Job>) -> Self {
        job.begin_wait();
        Self { jobs, job, told: false }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.job.end_wait(self.told);
        self.jobs.announce(self.job);
    }
}
