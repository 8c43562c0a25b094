//! What there is: agents, their sessions and their jobs, as one text for everybody who watches.
//!
//! Guarantees: it is made anew when something has changed, not more than ten times a second, and once
//! for all; whoever is slow gets the newest one.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use agents::{AgentRegistry, AgentStatus};
use dsh_core::Lookup;
use jobs::{JobSnapshot, Jobs};
use serde::Serialize;
use terminal::{SessionId, SessionStatus, TerminalRegistry};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

use crate::{cards::Command, logs::Logs};

/// Between two of them.
const PACE: Duration = Duration::from_millis(100);

/// What there is, at one moment.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct World {
    /// As it is told.
    pub(crate) text: Arc<str>,
    /// The sessions, and whether a person has taken each over.
    pub(crate) taken_over: BTreeMap<String, bool>,
}

/// Follows what there is.
pub(crate) struct Observer {
    pub(crate) agents: Arc<AgentRegistry>,
    pub(crate) terminals: Arc<TerminalRegistry>,
    pub(crate) jobs: Lookup<Jobs>,
    pub(crate) logs: Arc<Logs>,
    /// Told of changes of jobs.
    pub(crate) jobs_changed: watch::Sender<u64>,
    pub(crate) world: watch::Sender<World>,
}

#[derive(Serialize)]
struct Told {
    #[serde(rename = "type")]
    kind: &'static str,
    agents: Vec<ToldAgent>,
}

#[derive(Serialize)]
struct ToldAgent {
    id: String,
    status: &'static str,
    sessions: Vec<ToldSession>,
    jobs: Vec<JobSnapshot>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToldSession {
    id: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    status: SessionStatus,
    lease: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<String>,
    last_commands: Vec<Command>,
}

impl Observer {
    /// Follows until `ended`.
    pub(crate) async fn follow(&self, ended: CancellationToken) {
        let mut agents = self.agents.changes();
        let mut terminals = self.terminals.changes();
        let mut jobs = self.jobs_changed.subscribe();
        let mut logs = self.logs.changes();
        let mut pace = interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            pace.tick().await;
            for seen in [&mut agents, &mut terminals, &mut jobs, &mut logs] {
                seen.mark_unchanged();
            }
            let world = self.look();
            self.world.send_if_modified(|last| {
                let new = *last != world;
                *last = world;
                new
            });
            // The senders live as long as their services, which this does not outlive.
            tokio::select! {
                _ = agents.changed() => {}
                _ = terminals.changed() => {}
                _ = jobs.changed() => {}
                _ = logs.changed() => {}
                () = ended.cancelled() => return,
            }
        }
    }

    fn look(&self) -> World {
        let mut taken_over = BTreeMap::new();
        let sessions = self.terminals.sessions();
        let jobs = self.jobs.get();
        let mut told = Vec::new();
        for agent in self.agents.list() {
            let instance = agent.instance();
            let own = sessions.iter().filter(|(owner, ..)| owner.instance() == instance);
            let own: Vec<_> = own.map(|(_, session, activity)| (session, *activity)).collect();
            let sessions = self.logs.with(instance, |run| {
                run.forget_but(|id| own.iter().any(|(it, _)| it.session_id.as_str() == id));
                let told = own.iter().map(|(session, activity)| {
                    let id = session.session_id.as_str();
                    taken_over.insert(id.to_owned(), activity.taken_over);
                    let typed = || run.live(id).unwrap_or("(input)").to_owned();
                    ToldSession {
                        id: session.session_id.clone(),
                        name: session.name.clone(),
                        kind: session.kind.clone(),
                        pid: session.pid,
                        status: session.status.clone(),
                        lease: activity.taken_over,
                        live: activity.sending.then(typed),
                        last_commands: run.commands(id).cloned().collect(),
                    }
                });
                told.collect()
            });
            let status = match agent.status() {
                AgentStatus::Idle => "idle",
                AgentStatus::Busy => "busy",
            };
            let jobs = jobs.iter().flat_map(|it| it.list(Some(&agent))).filter(|it| it.owned);
            told.push(ToldAgent {
                id: agent.id().to_owned(),
                status,
                sessions,
                jobs: jobs.collect(),
            });
        }
        let told = Told { kind: "world", agents: told };
        let text = serde_json::to_string(&told).unwrap_or_default();
        World { text: text.into(), taken_over }
    }
}
