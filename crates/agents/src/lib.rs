//! `ctx.agents`: the live agents. Identity is the instance, never its id string.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use dsh_core::{Scope, Service, scope::DisposeError};

/// Service key of the agents.
pub struct Agents;

impl Service for Agents {
    type Api = AgentRegistry;
    const NAME: &'static str = "agents";
}

/// One live agent: the owner of sessions and jobs.
pub struct Agent {
    id: String,
    workspace_root: PathBuf,
    scope: Scope,
}

/// What a new agent needs.
#[derive(Clone, Debug)]
pub struct AgentSpec {
    /// Its id; a random one when absent.
    pub id: Option<String>,
    /// Absolute path of the folder it works in.
    pub workspace_root: PathBuf,
}

/// An agent could not be created.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields are named after the placeholders in the message")]
pub enum AgentError {
    #[error("an agent with id `{id}` is already live")]
    DuplicateId { id: String },
    #[error("the agents service is shutting down")]
    Disposing,
}

impl Agent {
    /// Its id: its session in the log, and `DSH_SESSION_ID`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The folder it works in.
    pub fn workspace_root(&self) -> &Path {
        &self.workspace_root
    }

    /// Ends with the agent; its cleanups are awaited by [`AgentRegistry::dispose`].
    pub fn scope(&self) -> &Scope {
        &self.scope
    }
}

/// The live agents.
pub struct AgentRegistry {
    scope: Scope,
    live: Mutex<BTreeMap<String, Arc<Agent>>>,
}

#[expect(clippy::unused_async, clippy::unused_self, reason = "signatures first")]
impl AgentRegistry {
    /// Creates an agent.
    pub fn create(&self, spec: AgentSpec) -> Result<Arc<Agent>, AgentError> {
        let _ = (&self.scope, &self.live, spec);
        Err(AgentError::Disposing)
    }

    /// The live agent with this id.
    pub fn get(&self, id: &str) -> Option<Arc<Agent>> {
        let _ = id;
        None
    }

    /// Whether exactly this instance is live.
    pub fn is_live(&self, agent: &Arc<Agent>) -> bool {
        let _ = agent;
        false
    }

    /// Ends an agent; resolves when everything it owned is gone.
    pub async fn dispose(&self, agent: &Arc<Agent>) -> Result<(), Arc<DisposeError>> {
        agent.scope.dispose().await
    }
}
