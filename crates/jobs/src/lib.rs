//! `ctx.jobs`: background operations of agents.
//!
//! A *producer* starts a job and implements its [`JobWork`]; a *controller* is what lets an agent
//! see and stop its jobs; whoever holds the [`JobRegistry`] reads, waits and kills.
//!
//! Reading order: [`job`] (what a job is to the outside), [`work`] (what a producer implements),
//! [`registry`] (the seam), then the in-process provider: `record` (one job), `table` (who owns
//! which), [`local`] (the rules).

pub mod error;
pub mod job;
pub mod local;
mod plugin;
mod record;
pub mod registry;
mod table;
pub mod work;

pub use error::JobError;
pub use job::{JobDone, JobId, JobKind, JobSnapshot, JobStatus};
pub use local::LocalJobs;
pub use plugin::{Config, JobsPlugin};
pub use registry::{ChangeListener, Controller, DoneListener, JobReading, JobRegistry, Kill};
pub use work::{CancelCause, Ending, JobCancel, JobEnd, JobOutput, JobRequest, JobWork, Run};

use dsh_core::Service;

/// Service key of the jobs.
pub struct Jobs;

impl Service for Jobs {
    type Api = dyn JobRegistry;
    const NAME: &'static str = "jobs";
}
