//! The logs of all agents, as files.

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use agents::{Agent, AgentInstance};
use dsh_core::{Scope, ScopedMap, lock, scoped_map::ContributeError};

use crate::{
    EventLog, LineTap, LogError, event::Event, file::LogFile, path, runs, runs::LoggedRun,
};

/// Writes logs below one home folder.
pub struct FileLog(Arc<Inner>);

struct Inner {
    home: PathBuf,
    logs: Mutex<BTreeMap<AgentInstance, Slot>>,
    taps: ScopedMap<LineTap>,
    next_tap: AtomicU64,
}

/// One agent's log, behind its own lock: agents do not wait for each other's disk.
type Slot = Arc<Mutex<Log>>;

enum Log {
    /// No event could be written yet.
    Unopened,
    Open(LogFile),
    Ended,
}

impl FileLog {
    /// Logs go to `<home>/sessions`; nothing is created before the first event.
    pub fn new(home: PathBuf) -> Self {
        Self(Arc::new(Inner {
            home,
            logs: Mutex::default(),
            taps: ScopedMap::new("session log tap"),
            next_tap: AtomicU64::new(0),
        }))
    }

    /// The folder of an agent's logs, which need not exist.
    pub fn folder(&self, agent: &Agent) -> PathBuf {
        path::folder(&self.0.home, agent)
    }
}

impl EventLog for FileLog {
    fn append(&self, agent: &Agent, event: Event) -> Result<(), LogError> {
        let slot = self.0.slot(agent).ok_or_else(|| self.ended(agent))?;
        let mut log = lock(&slot);
        if matches!(*log, Log::Unopened) {
            let (file, header) = LogFile::create(&self.folder(agent), agent)?;
            *log = Log::Open(file);
            self.0.show(agent.instance(), &header);
        }
        let Log::Open(file) = &mut *log else { return Err(self.ended(agent)) };
        // Still under the lock, so that taps see lines in order.
        self.0.show(agent.instance(), &file.append(&event)?);
        Ok(())
    }

    fn find(&self, id: &str) -> Result<Vec<PathBuf>, LogError> {
        path::find(&self.0.home, id)
    }

    fn runs(&self, most: usize) -> Result<Vec<LoggedRun>, LogError> {
        runs::newest(&self.0.home, most)
    }

    fn find_run(&self, id: &str) -> Result<Option<PathBuf>, LogError> {
        runs::find(&self.0.home, id)
    }

    fn tap(&self, scope: &Scope, tap: LineTap) -> Result<(), ContributeError> {
        let number = self.0.next_tap.fetch_add(1, Ordering::Relaxed);
        self.0.taps.contribute(scope, &number.to_string(), tap)?;
        Ok(())
    }
}

impl FileLog {
    fn ended(&self, agent: &Agent) -> LogError {
        let source =
            io::Error::other(format!("agent `{}` has ended, and its log with it", agent.id()));
        LogError { path: self.folder(agent), source }
    }
}

impl Inner {
    /// The agent's log; none when the agent's end has begun without one. A new one comes with its
    /// end in the agent's scope.
    fn slot(self: &Arc<Self>, agent: &Agent) -> Option<Slot> {
        let instance = agent.instance();
        let mut logs = lock(&self.logs);
        if let Some(slot) = logs.get(&instance) {
            return Some(Arc::clone(slot));
        }
        let inner = Arc::clone(self);
        let end = move || {
            let ended = inner.end(instance);
            async move { Ok(ended?) }
        };
        agent.scope().defer("session log", end).ok()?;
        let slot = Arc::new(Mutex::new(Log::Unopened));
        logs.insert(instance, Arc::clone(&slot));
        Some(slot)
    }

    /// Writes `agent/end` and closes the log.
    fn end(&self, instance: AgentInstance) -> Result<(), LogError> {
        let Some(slot) = lock(&self.logs).get(&instance).cloned() else { return Ok(()) };
        let mut log = lock(&slot);
        if let Log::Open(file) = &mut *log {
            let line = file.append(&Event::agent_end())?;
            self.show(instance, &line);
        }
        *log = Log::Ended;
        drop(log);
        lock(&self.logs).remove(&instance);
        Ok(())
    }

    fn show(&self, instance: AgentInstance, line: &str) {
        for tap in self.taps.values() {
            tap(instance, line);
        }
    }
}
