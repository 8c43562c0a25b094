//! Everything that can go wrong with a job, each with a stable code.

/// A refused or failed operation. The text says what was wrong and what to do next.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields are named after the placeholders in the message")]
pub enum JobError {
    #[error(
        "no job controller is attached for this agent, so it could neither read nor stop a background job: do the work in the foreground; nothing was started"
    )]
    NoController,
    #[error("agent `{owner}` is not live, so it can own no background job")]
    OwnerNotLive { owner: String },
    #[error("the jobs service is shutting down")]
    ServiceDisposing,
    #[error(
        "{limit} background jobs run already, as many as one agent may have: wait for one, or end one with job_kill; nothing was started"
    )]
    TooManyJobs { limit: u64 },
    #[error("unknown job {}: job_list shows the jobs there are", id.escape_debug())]
    UnknownJob { id: String },
    #[error("{0}")]
    InvalidArgs(String),
    /// What the producer's own start failed with.
    #[error(transparent)]
    NotStarted(anyhow::Error),
    #[error(
        "job {id} could not be cancelled ({cause}): it counts as failed, and its work may be orphaned"
    )]
    CancelFailed { id: String, cause: String },
    #[error("{reason}")]
    Cancelled { reason: String },
}

impl JobError {
    /// Stable code for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoController => "NO_JOBS",
            Self::OwnerNotLive { .. } => "OWNER_NOT_LIVE",
            Self::ServiceDisposing => "SERVICE_DISPOSING",
            Self::TooManyJobs { .. } => "TOO_MANY_JOBS",
            Self::UnknownJob { .. } => "UNKNOWN_JOB",
            Self::InvalidArgs(_) => "INVALID_ARGS",
            Self::NotStarted(_) => "NOT_STARTED",
            Self::CancelFailed { .. } => "CANCEL_FAILED",
            Self::Cancelled { .. } => "CANCELLED",
        }
    }
}
