//! The agents there are: creation, lookup, disposal.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
};

use dsh_core::{
    Scope, lock,
    scope::{DisposeError, ScopeClosed},
};
use tokio::sync::watch;

use crate::agent::{Agent, AgentSpec};

/// An agent could not be created.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields are named after the placeholders in the message")]
pub enum AgentError {
    #[error("an agent with id `{id}` is already live")]
    DuplicateId { id: String },
    #[error("the agent with id `{id}` is still being disposed: finish its disposal first")]
    StillDisposing { id: String },
    #[error("agent id {id:?} is empty or holds control characters")]
    InvalidId { id: String },
    #[error("workspace root `{}` is not an absolute path", path.display())]
    RelativeRoot { path: PathBuf },
    #[error("no random agent id: {0}")]
    NoRandomness(getrandom::Error),
    #[error("the agents service is shutting down")]
    Disposing,
}

impl From<ScopeClosed> for AgentError {
    fn from(_: ScopeClosed) -> Self {
        Self::Disposing
    }
}

/// The live agents, and those whose disposal has not succeeded yet.
pub struct AgentRegistry {
    scope: Scope,
    known: Mutex<Vec<Arc<Agent>>>,
    changes: watch::Sender<u64>,
}

impl AgentRegistry {
    /// An empty registry. Agents end with `scope`.
    pub fn new(scope: Scope) -> Self {
        Self { scope, known: Mutex::default(), changes: watch::Sender::default() }
    }

    /// Creates an agent.
    pub fn create(&self, spec: AgentSpec) -> Result<Arc<Agent>, AgentError> {
        let id = match spec.id {
            Some(id) if id.is_empty() || id.contains(char::is_control) => {
                return Err(AgentError::InvalidId { id });
            }
            Some(id) => id,
            None => random_id()?,
        };
        if !spec.workspace_root.is_absolute() {
            return Err(AgentError::RelativeRoot { path: spec.workspace_root });
        }
        let mut known = self.known();
        match known.iter().find(|agent| agent.id() == id) {
            Some(agent) if agent.is_ending() => return Err(AgentError::StillDisposing { id }),
            Some(_) => return Err(AgentError::DuplicateId { id }),
            None => {}
        }
        let scope = self.scope.child(format!("agent `{id}`"))?;
        let changes = self.changes.clone();
        scope.defer("list of agents", move || {
            changes.send_modify(|count| *count += 1);
            async { Ok(()) }
        })?;
        let agent = Arc::new(Agent::new(id, spec.workspace_root, scope, self.changes.clone()));
        known.push(Arc::clone(&agent));
        self.changes.send_modify(|count| *count += 1);
        Ok(agent)
    }

    /// The live agent with this id.
    pub fn get(&self, id: &str) -> Option<Arc<Agent>> {
        self.known().iter().find(|agent| agent.id() == id && !agent.is_ending()).cloned()
    }

    /// The live agents, oldest first.
    pub fn list(&self) -> Vec<Arc<Agent>> {
        self.known().iter().filter(|agent| !agent.is_ending()).cloned().collect()
    }

    /// Counts the changes from now on: an agent was created or has ended, or says that it does
    /// something else.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Whether exactly this instance is live.
    pub fn is_live(&self, agent: &Arc<Agent>) -> bool {
        !agent.is_ending() && self.known().iter().any(|known| Arc::ptr_eq(known, agent))
    }

    /// Ends an agent; resolves when everything it owned is gone, at once for one that is gone
    /// already. Concurrent calls join one disposal, dropping the future does not stop it.
    ///
    /// After a failure the agent stays known, is not live, and the call can be repeated.
    pub async fn dispose(&self, agent: &Arc<Agent>) -> Result<(), Arc<DisposeError>> {
        agent.scope().dispose().await?;
        drop(self.known());
        Ok(())
    }

    /// The table without the agents that are wholly gone. Their removal happens here and not after
    /// a disposal, because that may be asked for by anyone and finish without a waiter.
    fn known(&self) -> MutexGuard<'_, Vec<Arc<Agent>>> {
        let mut known = lock(&self.known);
        known.retain(|agent| !agent.is_ending() || !agent.scope().pending().is_empty());
        known
    }
}

fn random_id() -> Result<String, AgentError> {
    use std::fmt::Write as _;
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(AgentError::NoRandomness)?;
    Ok(bytes.iter().fold(String::with_capacity(32), |mut id, byte| {
        // Writing to a string cannot fail.
        write!(id, "{byte:02x}").ok();
        id
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::{AgentStatus, ToolFilter};

    fn spec(id: Option<&str>) -> AgentSpec {
        AgentSpec { id: id.map(str::to_owned), workspace_root: "/tmp".into() }
    }

    #[tokio::test]
    async fn identity_is_the_instance() {
        let registry = AgentRegistry::new(Scope::root("test"));
        let first = registry.create(spec(Some("a"))).unwrap();
        assert!(registry.is_live(&first));
        assert!(matches!(
            registry.create(spec(Some("a"))),
            Err(AgentError::DuplicateId { id }) if id == "a"
        ));
        registry.dispose(&first).await.unwrap();
        registry.dispose(&first).await.unwrap();
        assert!(!registry.is_live(&first));
        assert!(registry.get("a").is_none());

        let second = registry.create(spec(Some("a"))).unwrap();
        assert!(registry.is_live(&second));
        assert!(!registry.is_live(&first));
        assert_ne!(first.instance(), second.instance());
        assert!(Arc::ptr_eq(&registry.get("a").unwrap(), &second));
        registry.scope.dispose().await.unwrap();
        assert!(!registry.is_live(&second));
        assert!(matches!(registry.create(spec(None)), Err(AgentError::Disposing)));
    }

    #[tokio::test]
    async fn who_follows_the_agents_hears_of_changes() {
        let registry = AgentRegistry::new(Scope::root("test"));
        let mut changes = registry.changes();
        let agent = registry.create(spec(None)).unwrap();
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        agent.set_status(AgentStatus::Busy);
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        registry.dispose(&agent).await.unwrap();
        assert!(changes.has_changed().unwrap());
    }

    #[tokio::test]
    async fn ids_are_random_or_checked() {
        let registry = AgentRegistry::new(Scope::root("test"));
        let one = registry.create(spec(None)).unwrap();
        let two = registry.create(spec(None)).unwrap();
        assert_ne!(one.id(), two.id());
        assert_eq!(one.id().len(), 32);
        assert_eq!(registry.list().len(), 2);
        for id in ["", "a\nb", "a\0b"] {
            assert!(matches!(registry.create(spec(Some(id))), Err(AgentError::InvalidId { .. })));
        }
        let relative = AgentSpec { id: None, workspace_root: "here".into() };
        assert!(matches!(registry.create(relative), Err(AgentError::RelativeRoot { .. })));
        registry.scope.dispose().await.unwrap();
    }

    #[tokio::test]
    async fn a_failed_disposal_can_be_retried() {
        let registry = AgentRegistry::new(Scope::root("test"));
        let agent = registry.create(spec(Some("a"))).unwrap();
        let may_end = Arc::new(AtomicBool::new(false));
        let gate = Arc::clone(&may_end);
        let cleanup = move || {
            let done = gate.load(Ordering::SeqCst);
            async move {
                anyhow::ensure!(done, "still holding on");
                Ok(())
            }
        };
        agent.scope().defer("stubborn", cleanup).unwrap();
        let error = registry.dispose(&agent).await.unwrap_err();
        assert!(error.to_string().contains("still holding on"), "{error}");
        assert!(!registry.is_live(&agent));
        assert!(matches!(registry.create(spec(Some("a"))), Err(AgentError::StillDisposing { .. })));
        may_end.store(true, Ordering::SeqCst);
        registry.dispose(&agent).await.unwrap();
        registry.create(spec(Some("a"))).unwrap();
        registry.scope.dispose().await.unwrap();
    }

    #[tokio::test]
    async fn an_agent_has_a_status_and_a_tool_filter() {
        let registry = AgentRegistry::new(Scope::root("test"));
        let agent = registry.create(spec(None)).unwrap();
        let mut status = agent.watch_status();
        assert_eq!(agent.status(), AgentStatus::Idle);
        agent.set_status(AgentStatus::Busy);
        status.changed().await.unwrap();
        assert_eq!(agent.status(), AgentStatus::Busy);

        let names = || ["x".to_owned()].into();
        assert!(agent.sees_tool("x"));
        agent.set_tool_filter(Some(ToolFilter::Except(names())));
        assert!(!agent.sees_tool("x") && agent.sees_tool("y"));
        agent.set_tool_filter(Some(ToolFilter::Only(names())));
        assert!(agent.sees_tool("x") && !agent.sees_tool("y"));
        registry.scope.dispose().await.unwrap();
    }
}
