//! `ctx.sessionLog`: the durable event log of an agent.

use agents::Agent;
use dsh_core::Service;
use serde_json::Value;

/// Service key of the session log.
pub struct SessionLog;

impl Service for SessionLog {
    type Api = dyn EventLog;
    const NAME: &'static str = "sessionLog";
}

/// Appends what the model saw and did.
pub trait EventLog: Send + Sync {
    /// Appends one event to the agent's log. Returns when it is on its way to the disk: a crash of
    /// the host after the return loses nothing.
    fn append(&self, agent: &Agent, event: Event) -> Result<(), LogError>;
}

/// One event. The log adds `seq` and `time`.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Such as `tool/call`.
    pub kind: &'static str,
    /// Its payload, a JSON object.
    pub data: Value,
}

/// The log could not be written.
#[derive(Debug, thiserror::Error)]
#[error("session log {path}: {source}")]
pub struct LogError {
    /// The file or folder.
    pub path: std::path::PathBuf,
    /// Why.
    #[source]
    pub source: std::io::Error,
}
