//! One connection: its agent, its running calls, its notices.
//!
//! Guarantees:
//! - the agent is created once, at the first use, when the client can be asked for its roots;
//! - after [`Connection::end`] there is no agent, and none is created any more;
//! - a notice is delivered once with a result, in order of arrival, unless a tool has told the
//!   same by then, and logged when it is;
//! - a cancelled call hears the client's reason, also when that arrives before the call does.

use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use agents::{Agent, AgentRegistry, AgentSpec, Notice};
use anyhow::Context as _;
use dsh_core::{Cancel, Lookup, lock};
use rmcp::{
    RoleServer,
    model::{ClientCapabilities, RequestId},
    service::Peer,
};
use session_log::{Event, SessionLog};
use tokio::sync::OnceCell;

use crate::{roots, wire::Ends};

/// What a call hears when its client has gone.
const GONE: &str = "the client has disconnected";

/// Cancellations kept for calls that are still on their way; of more, the oldest are forgotten.
const MOST_EARLY: usize = 16;

pub(crate) struct Connection {
    agents: Arc<AgentRegistry>,
    log: Lookup<SessionLog>,
    workspace_root: PathBuf,
    /// The system prompt as it was when the connection began.
    pub(crate) instructions: String,
    pub(crate) ends: Ends,
    agent: OnceCell<Arc<Agent>>,
    calls: Mutex<Calls>,
    next_call: AtomicU64,
    /// Notices that the client was told of and the model was not.
    untold: Mutex<Vec<Notice>>,
}

/// The calls of the connection.
#[derive(Default)]
struct Calls {
    /// By number: a client may give an id a second time, against the protocol.
    running: BTreeMap<u64, (RequestId, Cancel)>,
    /// Cancellations of no running call, with their reasons.
    early: VecDeque<(RequestId, String)>,
}

impl Connection {
    pub(crate) fn new(
        agents: Arc<AgentRegistry>,
        log: Lookup<SessionLog>,
        workspace_root: PathBuf,
        instructions: String,
        ends: Ends,
    ) -> Self {
        Self {
            agents,
            log,
            workspace_root,
            instructions,
            ends,
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
            let root = if offered { roots::first(peer, &self.ends.silent).await } else { None };
            anyhow::ensure!(!self.ends.gone.is_cancelled(), GONE);
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
        for (_, cancel) in self.calls().running.values() {
            cancel.cancel(GONE);
        }
        // Waits for a creation that is under way, and begins none.
        let none = || async { Err(()) };
        match self.agent.get_or_try_init(none).await {
            Ok(agent) => Ok(self.agents.dispose(agent).await?),
            Err(()) => Ok(()),
        }
    }

    /// Takes note of a call while the guard lives. `cancelled`: it is known to be cancelled.
    pub(crate) fn begin(&self, id: &RequestId, cancelled: bool) -> Running<'_> {
        let cancel = Cancel::new();
        let number = self.next_call.fetch_add(1, Ordering::Relaxed);
        let mut calls = self.calls();
        calls.running.insert(number, (id.clone(), cancel.clone()));
        // The reason either came before or is still on its way to `cancel`.
        let early = calls.early.iter().position(|(early, _)| early == id).filter(|_| cancelled);
        if let Some((_, reason)) = early.and_then(|at| calls.early.remove(at)) {
            cancel.cancel(reason);
        }
        drop(calls);
        if self.ends.gone.is_cancelled() {
            cancel.cancel(GONE);
        }
        Running { connection: self, number, cancel }
    }

    /// Cancels one call.
    pub(crate) fn cancel(&self, id: &RequestId, reason: &str) {
        let mut calls = self.calls();
        let mut found = false;
        for (_, cancel) in calls.running.values().filter(|(running, _)| running == id) {
            cancel.cancel(reason);
            found = true;
        }
        if !found {
            calls.early.truncate(MOST_EARLY - 1);
            calls.early.push_front((id.clone(), reason.to_owned()));
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        lock(&self.calls)
    }

    /// Takes what has arrived in the agent's inbox; the model is still to be told of it.
    pub(crate) fn collect_notices(&self) -> Vec<String> {
        let Some(agent) = self.agent.get() else { return Vec::new() };
        // Drained under the lock, so that two collectors cannot swap the order.
        let mut untold = lock(&self.untold);
        let new = agent.inbox().drain();
        let texts = new.iter().map(|it| it.text.clone()).collect();
        untold.extend(new);
        texts
    }

    /// Takes the notices for the model, but not what it has learned by a tool meanwhile, and logs
    /// them as told.
    pub(crate) fn take_untold(&self) -> Vec<String> {
        let untold = std::mem::take(&mut *lock(&self.untold));
        let untold = untold.into_iter().filter(Notice::deliver).map(|it| it.text);
        let untold: Vec<String> = untold.collect();
        if let (Some(agent), Some(log)) = (self.agent.get(), self.log.get()) {
            for notice in &untold {
                if let Err(error) = log.append(agent, Event::notice(notice)) {
                    tracing::debug!(%error, "a notice was not logged");
                }
            }
        }
        untold
    }
}

/// A call under way.
pub(crate) struct Running<'a> {
    connection: &'a Connection,
    number: u64,
    /// Cancels the call.
    pub(crate) cancel: Cancel,
}

impl Running<'_> {
    /// Unique in the agent's log.
    pub(crate) fn call_id(&self) -> String {
        format!("call-{}", self.number)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.connection.calls().running.remove(&self.number);
    }
}
