//! `ctx.sessionLog`: the durable event log of an agent.
//!
//! Guarantees:
//! - one file per agent instance, `$DSH_HOME/sessions/<workspace>/<agent id>/session.jsonl.zstd`,
//!   created with its first event, folders 0700, files 0600. An agent with the id of an earlier
//!   one gets `session-2.jsonl.zstd` beside the first, and so on: no log is ever changed by
//!   another agent;
//! - every line is a complete zstd frame of its own, handed to the kernel before the append
//!   returns: the file can be read at any moment, and a crash of the host costs no finished event;
//! - line 1 describes the session, then come the events with `seq` from 1 without a gap; the last
//!   one is `agent/end`.

mod event;
mod file;
mod log;
mod path;
mod read;
mod runs;

pub use event::{Event, LoggedCall, LoggedResult};
pub use log::FileLog;
pub use read::{read_log, visit_log};
pub use runs::LoggedRun;

use std::{path::PathBuf, sync::Arc};

use agents::{Agent, AgentInstance, Agents};
use anyhow::Context as _;
use dsh_core::{
    Ctx, Deps, Plugin, Provided, Scope, Service, async_trait, scoped_map::ContributeError,
};

/// Service key of the session log.
pub struct SessionLog;

impl Service for SessionLog {
    type Api = dyn EventLog;
    const NAME: &'static str = "sessionLog";
}

/// Takes each written line: whose it is, and one JSON object without the newline. Must not block
/// and must not write to the log.
pub type LineTap = Arc<dyn Fn(AgentInstance, &str) + Send + Sync>;

/// Appends what the model saw and did.
pub trait EventLog: Send + Sync {
    /// Appends one event to the agent's log. Returns when it is on its way to the disk: a crash of
    /// the host after the return loses nothing.
    ///
    /// The first event opens the log and registers its end in the agent's scope. An event that
    /// could not be written leaves no trace in the file and takes no `seq`.
    fn append(&self, agent: &Agent, event: Event) -> Result<(), LogError>;

    /// The logs of agents with this id, in whatever workspace they were, as [`read_log`] reads them:
    /// those of one workspace in the order of their creation. Empty where there are none.
    fn find(&self, id: &str) -> Result<Vec<PathBuf>, LogError>;

    /// The newest logs of all agents, newest first, at most `most` of them. Reads each to its end.
    fn runs(&self, most: usize) -> Result<Vec<LoggedRun>, LogError>;

    /// The log of one of them; none where there is none of this id.
    fn find_run(&self, id: &str) -> Result<Option<PathBuf>, LogError>;

    /// Calls `tap` with every line written from now on, headers included, for as long as `scope`
    /// lives. Lines of one agent come in order.
    fn tap(&self, scope: &Scope, tap: LineTap) -> Result<(), ContributeError>;
}

/// The log could not be written or read.
#[derive(Debug, thiserror::Error)]
#[error("session log {}: {source}", path.display())]
pub struct LogError {
    /// The file or folder.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: std::io::Error,
}

/// Configuration of [`SessionLogPlugin`].
#[derive(Debug, Default, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionLogConfig {
    /// Folder of the logs instead of `DSH_HOME` (which defaults to `~/.dsh`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<PathBuf>,
}

/// Provides [`SessionLog`] as files.
pub struct SessionLogPlugin;

#[async_trait]
impl Plugin for SessionLogPlugin {
    const NAME: &'static str = "session-log";
    type Config = SessionLogConfig;
    type Inject = (Agents,);
    type Provide = SessionLog;

    async fn setup(
        _: &Ctx,
        _: Deps<Self>,
        config: SessionLogConfig,
    ) -> anyhow::Result<Provided<Self>> {
        let home = dsh_core::home::folder(config.home.as_deref())
            .context("the session log has no place (its `home` can be configured)")?;
        Ok(Arc::new(FileLog::new(home)))
    }
}

dsh_core::register_plugin!(SessionLogPlugin);
