//! One connection: its agent, its running calls, its notices.
//!
//! Guarantees:
//! - the agent is created once, at the first use, when the client can be asked for its roots;
//! - after [`Connection::end`] there is no agent, and none is created any more;
//! - a notice is delivered once with a result, in order of arrival.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use agents::{Agent, AgentRegistry, AgentSpec};
use anyhow::Context as _;
use dsh_core::Cancel;
use rmcp::{
    RoleServer,
    model::{ClientCapabilities, RequestId},
    service::Peer,
};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::roots;

/// What a call hears when its client has gone.
const GONE: &str = "the client has disconnected";

pub(crate) struct Connection {
    agents: Arc<AgentRegistry>,
    workspace_root: PathBuf,
    /// The system prompt as it was when the connection began.
    pub(crate) instructions: String,
    /// Cancelled when the input has ended or the host stops: the client answers nothing more, and
    /// only results still reach it.
    pub(crate) silent: CancellationToken,
    /// Cancelled when nobody waits for results any more.
    gone: CancellationToken,
    agent: OnceCell<Arc<Agent>>,
    calls: Mutex<HashMap<RequestId, Cancel>>,
    next_call: AtomicU64,
    /// Notices that the client was told of and the model was not.
    untold: Mutex<Vec<String>>,
}

impl Connection {
    pub(crate) fn new(
        agents: Arc<AgentRegistry>,
        workspace_root: PathBuf,
        instructions: String,
        silent: CancellationToken,
        gone: CancellationToken,
    ) -> Self {
        Self {
            agents,
            workspace_root,
            instructions,
            silent,
            gone,
            agent: OnceCell::new(),
            calls: Mutex::default(),
            next_call: AtomicU64::new(1),
            untold: Mutex::default(),
        }
    }

    /// The connection's agent. `first` gets it once, right after its creation.
    pub(crate) async fn agent(
        &self,
        peer: &Peer<RoleServer>,
        capabilities: Option<ClientCapabilities>,
        first: impl FnOnce(&Arc<Agent>),
    ) -> anyhow::Result<Arc<Agent>> {
        let create = async {
            let offered = capabilities.is_some_and(|it| it.roots.is_some());
            let root = if offered { roots::first(peer, &self.silent).await } else { None };
            anyhow::ensure!(!self.gone.is_cancelled(), GONE);
            let workspace_root = root.unwrap_or_else(|| self.workspace_root.clone());
            let agent = self
                .agents
                .create(AgentSpec { id: None, workspace_root })
                .context("cannot create an agent for this connection")?;
            first(&agent);
            Ok(agent)
        };
        self.agent.get_or_try_init(|| create).await.cloned()
    }

    /// Cancels the running calls, disposes the agent, and waits for both.
    pub(crate) async fn end(&self) -> anyhow::Result<()> {
        for cancel in self.calls.lock().unwrap_or_else(PoisonError::into_inner).values() {
            cancel.cancel(GONE);
        }
        // Waits for a creation that is under way, and begins none.
        let none = || async { Err(()) };
        match self.agent.get_or_try_init(none).await {
            Ok(agent) => Ok(self.agents.dispose(agent).await?),
            Err(()) => Ok(()),
        }
    }

    /// Takes note of a call while the guard lives.
    pub(crate) fn begin(&self, id: &RequestId) -> Running<'_> {
        let cancel = Cancel::new();
        self.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id.clone(), cancel.clone());
        if self.gone.is_cancelled() {
            cancel.cancel(GONE);
        }
        let call_id = format!("call-{}", self.next_call.fetch_add(1, Ordering::Relaxed));
        Running { connection: self, id: id.clone(), call_id, cancel }
    }

    /// Cancels one call.
    pub(crate) fn cancel(&self, id: &RequestId, reason: &str) {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cancel) = calls.get(id) {
            cancel.cancel(reason);
        }
    }

    /// Takes what has arrived in the agent's inbox; the model is still to be told of it.
    pub(crate) fn collect_notices(&self) -> Vec<String> {
        let Some(agent) = self.agent.get() else { return Vec::new() };
        // Drained under the lock, so that two collectors cannot swap the order.
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<String> = agent.inbox().drain().into_iter().map(|it| it.text).collect();
        untold.extend(new.iter().cloned());
        new
    }

    /// Takes the notices for the model.
    pub(crate) fn take_untold(&self) -> Vec<String> {
        std::mem::take(&mut *self.untold.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A call under way.
pub(crate) struct Running<'a> {
    connection: &'a Connection,
    id: RequestId,
    /// Unique in the agent's log.
    pub(crate) call_id: String,
    /// Cancels the call.
    pub(crate) cancel: Cancel,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut calls = self.connection.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.remove(&self.id);
    }
}
