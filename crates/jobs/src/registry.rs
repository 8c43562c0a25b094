//! The seam: what holders of the jobs service can do.
//!
//! Guarantees of every provider:
//! - an owned job is fenced to exactly its owner: for everybody else, a later agent of the same id
//!   included, it is as unknown as an id that never was;
//! - a job settles once, and the first settlement stands;
//! - the end of an owner cancels its jobs, waits for their ends and forgets them;
//! - what has ended is kept for a while and then forgotten, the oldest first, so that any number
//!   of jobs takes bounded memory.

use std::{sync::Arc, time::Duration};

use agents::Agent;
use dsh_core::{Cancel, Scope, async_trait, scoped_map::ContributeError};

use crate::{
    error::JobError,
    job::{JobDone, JobSnapshot},
    work::{JobOutput, JobRequest},
};

/// Hears once of every job that has ended, with whether anybody was told of that already. Where a
/// wait for the job is under way, it hears when that is over. Must not block.
pub type DoneListener = Arc<dyn Fn(&JobDone) + Send + Sync>;

/// Hears whose jobs have changed: one was started, has another status, or was forgotten. It is not
/// told of what the end of the owner takes with it. Must not block.
pub type ChangeListener = Arc<dyn Fn(Option<&Arc<Agent>>) + Send + Sync>;

/// Whether jobs of this owner can be read and stopped by it. Must not block.
pub type Controller = Arc<dyn Fn(Option<&Arc<Agent>>) -> bool + Send + Sync>;

/// The jobs service. `caller` is the agent that asks: it sees its own jobs and those of nobody.
#[async_trait]
pub trait JobRegistry: Send + Sync {
    /// Starts a job and mints its id. [`JobRequest::run`] is called at most once, as the last
    /// thing that can fail; if it does, nothing is registered. Never blocks.
    ///
    /// # Errors
    /// Before anything runs: `INVALID_ARGS` for an empty kind or label or a limit of 0,
    /// `SERVICE_DISPOSING`, `OWNER_NOT_LIVE`, `NO_JOBS` when no controller serves the owner,
    /// `TOO_MANY_JOBS`. Then [`JobError::NotStarted`] with the error of `run`.
    fn start(&self, request: JobRequest) -> Result<JobSnapshot, JobError>;

    /// The jobs that `caller` may see, oldest first.
    fn list(&self, caller: Option<&Arc<Agent>>) -> Vec<JobSnapshot>;

    /// One of them.
    ///
    /// # Errors
    /// `UNKNOWN_JOB`, also for a job of another agent.
    fn get(&self, caller: Option<&Arc<Agent>>, id: &str) -> Result<JobSnapshot, JobError>;

    /// Takes the output since the last reading; output that came with the end is the same every
    /// time. Reading a job that has ended counts as being told of its end.
    ///
    /// # Errors
    /// `UNKNOWN_JOB`; `CANCELLED` with the caller's reason when `cancel` comes before the answer: the
    /// next reading then has what this one had taken, and nobody counts as told.
    async fn read(
        &self,
        caller: Option<&Arc<Agent>>,
        id: &str,
        cancel: &Cancel,
    ) -> Result<JobReading, JobError>;

    /// Asks for the end of a job, and counts as being told of it. Never blocks: the end comes when
    /// it comes.
    ///
    /// # Errors
    /// `UNKNOWN_JOB`; `CANCEL_FAILED` when the producer could not even ask: the job has failed then.
    fn kill(&self, caller: Option<&Arc<Agent>>, id: &str, reason: &str) -> Result<Kill, JobError>;

    /// Waits for the end of a job, at most `most` long, and answers how far it is then. A job that
    /// has ended counts as told. The job itself is never cancelled by this.
    ///
    /// # Errors
    /// `UNKNOWN_JOB`; `INVALID_ARGS` when `most` is zero; `CANCELLED` with the caller's reason
    /// when `cancel` comes while the job is live.
    async fn wait(
        &self,
        caller: Option<&Arc<Agent>>,
        id: &str,
        most: Duration,
        cancel: &Cancel,
    ) -> Result<JobSnapshot, JobError>;

    /// Adds a listener under a name of its own, for as long as `scope` lives.
    fn on_job_done(
        &self,
        scope: &Scope,
        name: &str,
        listener: DoneListener,
    ) -> Result<(), ContributeError>;

    /// Adds a listener under a name of its own, for as long as `scope` lives.
    fn on_jobs_changed(
        &self,
        scope: &Scope,
        name: &str,
        listener: ChangeListener,
    ) -> Result<(), ContributeError>;

    /// Adds a controller under a name of its own, for as long as `scope` lives. Without one that
    /// serves its owner no job starts.
    fn attach_controller(
        &self,
        scope: &Scope,
        name: &str,
        controller: Controller,
    ) -> Result<(), ContributeError>;
}

/// What was read, and of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobReading {
    /// The job. If it has ended, the output is all that was left.
    pub job: JobSnapshot,
    /// What is new.
    pub output: JobOutput,
}

/// What became of a kill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kill {
    /// The job was live, and its end was asked for.
    Requested(JobSnapshot),
    /// There was nothing to end.
    AlreadyFinished(JobSnapshot),
}
