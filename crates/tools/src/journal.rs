//! Where calls are logged.
//!
//! Guarantees: one call writes all its events to one log, the one there was when it began, even
//! when that service is withdrawn meanwhile; a failing log stops no call and is reported once per
//! agent.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use agents::{Agent, AgentInstance};
use dsh_core::lock;
use session_log::{Event, EventLog};

type Reported = Arc<Mutex<BTreeSet<AgentInstance>>>;

/// Finds the log of a call.
pub(crate) struct Journal {
    source: Box<dyn Fn() -> Option<Arc<dyn EventLog>> + Send + Sync>,
    /// Agents whose log is known to fail.
    reported: Reported,
}

/// The log of one call.
pub(crate) struct CallLog<'a> {
    log: Arc<dyn EventLog>,
    agent: &'a Agent,
    reported: &'a Reported,
}

impl Journal {
    pub(crate) fn new(
        source: impl Fn() -> Option<Arc<dyn EventLog>> + Send + Sync + 'static,
    ) -> Self {
        Self { source: Box::new(source), reported: Reported::default() }
    }

    /// The log for calls of this agent; none without an agent or a log service.
    pub(crate) fn open<'a>(&'a self, agent: Option<&'a Agent>) -> Option<CallLog<'a>> {
        let agent = agent?;
        Some(CallLog { log: (self.source)()?, agent, reported: &self.reported })
    }
}

impl CallLog<'_> {
    pub(crate) fn append(&self, event: Event) {
        let Err(error) = self.log.append(self.agent, event) else { return };
        if self.agent.is_ending() {
            // The log ends with its agent; a call that meets that end is refused.
            tracing::info!(agent = self.agent.id(), %error, "not logged");
            return;
        }
        if self.is_first_failure() {
            let agent = self.agent.id();
            tracing::error!(agent, %error, "the session log fails; tools go on without it");
        }
    }

    fn is_first_failure(&self) -> bool {
        let instance = self.agent.instance();
        let mut reported = lock(self.reported);
        if reported.contains(&instance) {
            return false;
        }
        let shared = Arc::clone(self.reported);
        let forget = move || {
            lock(&shared).remove(&instance);
            async { Ok(()) }
        };
        if self.agent.scope().defer("failing session log", forget).is_ok() {
            reported.insert(instance);
        }
        true
    }
}
