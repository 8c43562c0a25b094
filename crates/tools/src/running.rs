//! The calls that run right now, so that whatever ends under them can cancel and await them.
//!
//! Guarantee: a call either got its [`Ticket`] before the end of its tool, its agent or the
//! registry began, and that end awaits it, or it is refused. Both are decided under one lock.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use agents::{Agent, AgentInstance};
use dsh_core::{Cancel, lock, scope::ScopeClosed};
use tokio::sync::watch;

/// What a running call depends on.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) cancel: Cancel,
    pub(crate) tool: Option<u64>,
    pub(crate) agent: Option<AgentInstance>,
}

/// The running calls.
#[derive(Default)]
pub(crate) struct RunningCalls {
    calls: Mutex<BTreeMap<u64, Running>>,
    /// Agents whose end awaits their calls.
    followed: Mutex<BTreeSet<AgentInstance>>,
    ended: watch::Sender<u64>,
}

/// One call's place; given back when dropped.
pub(crate) struct Ticket {
    calls: Arc<RunningCalls>,
    id: u64,
}

impl RunningCalls {
    /// Enters what `admit` lets in. `admit` runs under the lock.
    pub(crate) fn enter<T, E>(
        self: &Arc<Self>,
        admit: impl FnOnce() -> Result<(Running, T), E>,
    ) -> Result<(Ticket, T), E> {
        let mut calls = lock(&self.calls);
        let (running, admitted) = admit()?;
        let id = calls.last_key_value().map_or(0, |(id, _)| id + 1);
        calls.insert(id, running);
        Ok((Ticket { calls: Arc::clone(self), id }, admitted))
    }

    /// Makes the agent's end await its calls. To be called once the agent's log is open: the end of
    /// the log is then older in the agent's scope and comes after the results of these calls.
    pub(crate) fn follow(self: &Arc<Self>, agent: &Agent) -> Result<(), ScopeClosed> {
        let instance = agent.instance();
        let mut followed = lock(&self.followed);
        if followed.contains(&instance) {
            return Ok(());
        }
        let shared = Arc::clone(self);
        agent.scope().defer("running tool calls", move || {
            let shared = Arc::clone(&shared);
            async move {
                shared.end("the agent has ended", |call| call.agent == Some(instance)).await;
                lock(&shared.followed).remove(&instance);
                Ok(())
            }
        })?;
        followed.insert(instance);
        Ok(())
    }

    /// Cancels the calls that `affected` selects and resolves when none of them is left.
    pub(crate) async fn end(&self, reason: &str, affected: impl Fn(&Running) -> bool) {
        let mut ended = self.ended.subscribe();
        loop {
            let left: Vec<Running> =
                lock(&self.calls).values().filter(|call| affected(call)).cloned().collect();
            if left.is_empty() {
                return;
            }
            for call in left {
                call.cancel.cancel(reason);
            }
            // The sender lives in `self`, so waiting cannot fail.
            ended.changed().await.ok();
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        lock(&self.calls.calls).remove(&self.id);
        self.calls.ended.send_modify(|ended| *ended = ended.wrapping_add(1));
    }
}

/// Cancels when it is dropped before it was disarmed.
pub(crate) struct CancelOnDrop {
    cancel: Option<Cancel>,
    reason: &'static str,
}

impl CancelOnDrop {
    pub(crate) fn new(cancel: Cancel, reason: &'static str) -> Self {
        Self { cancel: Some(cancel), reason }
    }

    pub(crate) fn disarm(mut self) {
        self.cancel = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(cancel) = &self.cancel {
            cancel.cancel(self.reason);
        }
    }
}
