//! The live runs, as their logs are written.
//!
//! Guarantee: what a reader has not taken is not kept for it: it gets the newest state of what changed
//! since it last asked.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use agents::AgentInstance;
use dsh_core::lock;
use serde_json::Value;
use tokio::sync::watch;
use tools::ToolRegistry;

use crate::cards::{Dated, Run};

/// The runs of the agents that live.
pub(crate) struct Logs {
    tools: Arc<ToolRegistry>,
    runs: Mutex<BTreeMap<AgentInstance, Live>>,
    /// The number of the newest change.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Live {
    run: Run,
    /// When each card changed last, by call.
    changed: BTreeMap<String, u64>,
}

impl Logs {
    pub(crate) fn new(tools: Arc<ToolRegistry>) -> Self {
        Self { tools, runs: Mutex::default(), changes: watch::Sender::default() }
    }

    /// Takes a line that was written. Called under the lock of the agent's log, so lines are in order.
    pub(crate) fn line(&self, agent: AgentInstance, line: &str) {
        let Ok(line) = serde_json::from_str::<Value>(line) else { return };
        let mut runs = lock(&self.runs);
        if line["type"] == "agent/end" {
            runs.remove(&agent);
        } else {
            let Live { run, changed } = runs.entry(agent).or_default();
            let Some(card) = run.line(&line, &self.tools) else { return };
            let call = card.card.call_id.clone();
            changed.insert(call, *self.changes.borrow() + 1);
            if changed.len() > 2 * crate::cards::MOST {
                let kept: Vec<&str> = run.cards().map(|it| it.card.call_id.as_str()).collect();
                changed.retain(|call, _| kept.contains(&call.as_str()));
            }
        }
        // Still under the lock, so that numbers come in order.
        self.changes.send_modify(|count| *count += 1);
    }

    /// Tells of changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// All cards of a run, and the number up to which they are told.
    pub(crate) fn all(&self, agent: AgentInstance) -> (Vec<Dated>, u64) {
        self.since(agent, 0)
    }

    /// The cards of a run that changed after `number`, and the number up to which they are told.
    pub(crate) fn since(&self, agent: AgentInstance, number: u64) -> (Vec<Dated>, u64) {
        let runs = lock(&self.runs);
        let told = *self.changes.borrow();
        let Some(Live { run, changed }) = runs.get(&agent) else { return (Vec::new(), told) };
        let new = |it: &&Dated| changed.get(&it.card.call_id).is_some_and(|at| *at > number);
        (run.cards().filter(new).cloned().collect(), told)
    }

    /// Looks at a run.
    pub(crate) fn with<T>(&self, agent: AgentInstance, look: impl FnOnce(&mut Run) -> T) -> T {
        let mut runs: MutexGuard<'_, _> = lock(&self.runs);
        match runs.get_mut(&agent) {
            Some(live) => look(&mut live.run),
            None => look(&mut Run::default()),
        }
    }
}
