//! What a job is to the outside: identity, status, snapshot. Property names are the wire's.

use std::{fmt, sync::Arc};

use agents::{Agent, Told};
use serde::{Deserialize, Serialize};

/// What kind of work a job is: a constant of its producer's crate, the first half of its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKind(&'static str);

impl JobKind {
    /// The kind of this name, such as `pty-send`.
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for JobKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Id of a job, `<kind>-N`, counted for each kind. Minted by the registry, never used again.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(String);

impl JobId {
    pub(crate) fn new(kind: JobKind, number: u64) -> Self {
        Self(format!("{kind}-{number}"))
    }

    /// The id as the model writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How far a job is: `running → stopping → completed | killed | failed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobStatus {
    /// At work.
    Running,
    /// Its end was asked for, and it is still at work.
    Stopping,
    /// Ended by itself.
    Completed,
    /// Ended because that was asked for.
    Killed,
    /// Ended by an error.
    Failed,
}

impl JobStatus {
    /// The wire's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Completed => "completed",
            Self::Killed => "killed",
            Self::Failed => "failed",
        }
    }

    /// Whether it is still at work.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Running | Self::Stopping)
    }
}

/// A job at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobSnapshot {
    /// Its id.
    pub id: JobId,
    /// Name of its [`JobKind`].
    pub kind: String,
    /// What it does, in one line.
    pub label: String,
    /// How far it is.
    pub status: JobStatus,
    /// How it ended, in its producer's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// When it began, in milliseconds since the epoch.
    pub started_at: u64,
    /// When it ended, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<u64>,
    /// Whether it has an owner. A job of nobody is seen by everybody.
    #[serde(skip)]
    pub owned: bool,
    /// Most bytes of one text about it; none where its producer sets no bound.
    #[serde(skip)]
    pub output_limit_bytes: Option<usize>,
}

/// A job that has ended.
#[derive(Clone, Debug)]
pub struct JobDone {
    /// The job.
    pub job: JobSnapshot,
    /// Exactly the agent that owns it.
    pub owner: Option<Arc<Agent>>,
    /// Set once somebody has read the end, waited for it or asked for it: then nobody has to be
    /// notified of it any more.
    pub told: Told,
}
