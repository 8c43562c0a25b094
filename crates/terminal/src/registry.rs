//! Who owns which session: spawn, fences, the one-send slot, close, disposal.
//!
//! Guarantees:
//! - every operation is fenced to the exact owner: an id that is unknown and one of another agent
//!   (also of an earlier agent with the same id) give the same error;
//! - a session is listed only after its setup succeeded, and is activity of its owner from the
//!   start of the spawn to the end of its close;
//! - work that was begun is never dropped with the future that asked for it: setups and closes run
//!   on their own tasks, and the owner's and the service's disposal wait for them;
//! - a session never outlives its owner, its backend's registration, or the service.

use std::sync::Arc;

use agents::{Agent, AgentRegistry};
use dsh_core::{Cancel, Scope, ScopedMap, scope::ScopeClosed, scoped_map::ContributeError};
use tokio::{runtime::Handle, sync::watch};

use crate::{
    backend::{
        CloseRequest, KeysRequest, OpenRequest, ReadRequest, SearchRequest, SendOperation,
        SendRequest, SessionId, Signal, SignalReceipt, TerminalBackend, WindowSize,
    },
    closing::dispose,
    error::TerminalError,
    lease::Lease,
    opening::{CallerGuard, Setup},
    outcome::{ReadPage, SearchPage, SessionStatus},
    screen::ScreenSnapshot,
    session::Session,
    table::{Admission, Selection, Table},
    waiting::{WaitCondition, WaitOutcome, WaitRequest},
    watching::Watcher,
};

/// What an entry of the registry of backends is called. A plugin that registers one claims its type
/// under this name.
pub const TERMINAL_BACKEND: &str = "terminal backend";

/// The session service.
pub struct TerminalRegistry {
    agents: Arc<AgentRegistry>,
    backends: ScopedMap<Arc<dyn TerminalBackend>>,
    table: Arc<Table>,
}

/// A session to open.
#[derive(Clone, Debug, Default)]
pub struct SpawnRequest {
    /// Type of a registered backend.
    pub kind: String,
    /// Display name, unique per owner.
    pub name: Option<String>,
    /// Working directory as the caller wrote it.
    pub cwd: Option<String>,
}

/// A session that was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawned {
    /// Everything `list` would say.
    pub session: SessionSnapshot,
    /// What was shown until it was ready.
    pub motd: String,
}

/// One session as `list` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSnapshot {
    /// Opaque id.
    pub session_id: SessionId,
    /// Display name.
    pub name: Option<String>,
    /// Backend type.
    pub kind: String,
    /// Process id of the top-level process.
    pub pid: Option<u32>,
    /// Whether it runs.
    pub status: SessionStatus,
}

/// What is going on in a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// A send of its owner runs.
    pub sending: bool,
    /// A person has taken it over.
    pub taken_over: bool,
}

impl TerminalRegistry {
    /// An empty registry. The disposal of `scope` closes every session.
    pub fn new(scope: &Scope, agents: Arc<AgentRegistry>) -> Result<Self, ScopeClosed> {
        let table = Arc::<Table>::default();
        let disposed = Arc::clone(&table);
        scope.defer("terminal sessions", move || {
            let end =
                dispose(Arc::clone(&disposed), Selection::All, TerminalError::ServiceDisposing);
            async { Ok(end.await?) }
        })?;
        Ok(Self { agents, backends: ScopedMap::new(TERMINAL_BACKEND), table })
    }

    /// Registers a backend for as long as `scope` lives. When it ends, the backend's sessions are
    /// closed, before anything that `scope` got earlier is undone.
    ///
    /// Fails with `DUPLICATE_BACKEND` for a type that is taken, `INVALID_ARGS` for an empty one,
    /// `SERVICE_DISPOSING` once the service or `scope` is shutting down.
    pub fn register_backend(
        &self,
        scope: &Scope,
        backend: Arc<dyn TerminalBackend>,
    ) -> Result<(), TerminalError> {
        let kind = backend.kind().to_owned();
        if kind.trim().is_empty() {
            let message = "the type of a terminal backend must not be empty: give it a name";
            return Err(TerminalError::InvalidArgs(message.to_owned()));
        }
        if self.table.is_disposing() {
            return Err(TerminalError::ServiceDisposing);
        }
        let (table, ended) = (Arc::clone(&self.table), Arc::clone(&backend));
        let gone = TerminalError::BackendGone { kind: kind.clone() };
        // Registered before the entry, so it runs after the entry is gone and sees every session.
        let close_sessions = scope
            .defer(format!("sessions of terminal backend `{kind}`"), move || {
                let which = Selection::Backend(Arc::clone(&ended));
                let end = dispose(Arc::clone(&table), which, gone.clone());
                async { Ok(end.await?) }
            })
            .map_err(|ScopeClosed { .. }| TerminalError::ServiceDisposing)?;
        match self.backends.contribute(scope, &kind, backend) {
            Ok(_) => Ok(()),
            Err(error) => {
                close_sessions.dismiss();
                Err(match error {
                    ContributeError::Duplicate { .. } => TerminalError::DuplicateBackend { kind },
                    ContributeError::Closed(_) => TerminalError::ServiceDisposing,
                })
            }
        }
    }

    /// Types of the registered backends, in order of registration.
    pub fn list_backends(&self) -> Vec<String> {
        self.backends.names()
    }

    /// Opens a session and publishes it once its setup succeeded.
    ///
    /// A setup that loses to `cancel` (`CANCELLED`, the text is the caller's reason), to the end
    /// of the owner (`OWNER_NOT_LIVE`) or of the service (`SERVICE_DISPOSING`) is rolled back
    /// before this returns; dropping the future has the same effect. A rollback that fails stays
    /// activity of the owner and is reported by the disposal that closes it.
    ///
    /// Further errors: `NO_BACKEND`, `INVALID_ARGS` and `DUPLICATE_NAME` for the name, and the
    /// backend's own.
    pub async fn spawn(
        &self,
        owner: &Arc<Agent>,
        request: SpawnRequest,
        cancel: &Cancel,
    ) -> Result<Spawned, TerminalError> {
        let setup = self.admit(owner, request, cancel)?;
        let runtime = Handle::current();
        let number = setup.admitted.number;
        let table = Arc::clone(&self.table);
        let mut guard = CallerGuard { table, number, runtime: runtime.clone(), armed: true };
        // Joined here or, when this future is dropped, by the disposal that waits for its end.
        let session = runtime.spawn(setup.run()).await.map_err(|error| {
            TerminalError::Backend(format!("the host stopped during the setup: {error}"))
        })??;
        let spawned = Spawned { session: session.snapshot(), motd: session.live.motd() };
        guard.armed = false;
        Ok(spawned)
    }

    fn admit(
        &self,
        owner: &Arc<Agent>,
        request: SpawnRequest,
        cancel: &Cancel,
    ) -> Result<Setup, TerminalError> {
        let SpawnRequest { kind, name, cwd } = request;
        if let Some(reason) = cancel.reason() {
            return Err(TerminalError::Cancelled { reason: reason.to_owned() });
        }
        if self.table.is_disposing() {
            return Err(TerminalError::ServiceDisposing);
        }
        if !self.agents.is_live(owner) {
            return Err(TerminalError::OwnerNotLive { owner: owner.id().to_owned() });
        }
        if let Some(name) = &name {
            check_name(name)?;
        }
        let admitted = self.table.admit(&Admission {
            agent: owner,
            name: name.as_deref(),
            backend: &|| self.backend(&kind),
            adopt: &|| self.adopt(owner),
        })?;
        let request = OpenRequest {
            session_id: admitted.id.clone(),
            owner: Arc::clone(owner),
            cwd,
            cancel: admitted.cancel.clone(),
            changes: admitted.changes.clone(),
        };
        let (table, caller) = (Arc::clone(&self.table), cancel.clone());
        Ok(Setup { table, admitted, kind, name, request, caller })
    }

    fn backend(&self, kind: &str) -> Result<Arc<dyn TerminalBackend>, TerminalError> {
        self.backends.get(kind).ok_or_else(|| {
            let names = self.backends.names();
            let available = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            TerminalError::NoBackend { kind: kind.to_owned(), available }
        })
    }

    /// Ties the owner's disposal to its sessions. False when its scope is already closing.
    fn adopt(&self, owner: &Arc<Agent>) -> bool {
        let (table, id) = (Arc::clone(&self.table), owner.id().to_owned());
        let which = Selection::Owner(owner.instance());
        let adopted = owner.scope().defer("terminal sessions", move || {
            let gone = TerminalError::OwnerNotLive { owner: id.clone() };
            let end = dispose(Arc::clone(&table), which.clone(), gone);
            async { Ok(end.await?) }
        });
        adopted.is_ok()
    }

    fn find(&self, owner: &Arc<Agent>, id: &str) -> Result<Arc<Session>, TerminalError> {
        if id.is_empty() {
            let message = "the id of the terminal session is empty: give one such as `pty-1`";
            return Err(TerminalError::InvalidArgs(message.to_owned()));
        }
        self.table.find(owner, id)
    }

    /// Reserves the session's one slot and starts an exchange. Never blocks.
    ///
    /// Fails with `NO_SESSION`, `SESSION_EXITED` (exited, or being closed), `LEASE_HELD` while a
    /// person has taken the session over, `SEND_ACTIVE` until the earlier one has settled, and what the backend refuses at once.
    pub fn start_send(
        &self,
        owner: &Arc<Agent>,
        id: &str,
        request: SendRequest,
    ) -> Result<Arc<dyn SendOperation>, TerminalError> {
        self.find(owner, id)?.start_send(request)
    }

    /// Reserves the session's one slot and presses keys. As [`Self::start_send`];
    /// `INVALID_ARGS` without a key, `NOT_SUPPORTED` where the backend knows none.
    pub fn start_keys(
        &self,
        owner: &Arc<Agent>,
        id: &str,
        request: KeysRequest,
    ) -> Result<Arc<dyn SendOperation>, TerminalError> {
        let session = self.find(owner, id)?;
        if request.keys.is_empty() {
            let message = "there is no key to press: give at least one";
            return Err(TerminalError::InvalidArgs(message.to_owned()));
        }
        session.start_keys(request)
    }

    /// What is shown now, also by a session that has exited. `NOT_SUPPORTED` where the backend
    /// keeps no screen.
    pub async fn screen(
        &self,
        owner: &Arc<Agent>,
        id: &str,
    ) -> Result<ScreenSnapshot, TerminalError> {
        self.find(owner, id)?.screen().await
    }

    /// Changes the size of the window. `INVALID_ARGS` for one that no window has,
    /// `SESSION_EXITED`, `LEASE_HELD`, `NOT_SUPPORTED`.
    pub async fn resize(
        &self,
        owner: &Arc<Agent>,
        id: &str,
        size: WindowSize,
    ) -> Result<(), TerminalError> {
        let session = self.find(owner, id)?;
        let (most, fewest) = (WindowSize::MOST, WindowSize::FEWEST);
        for (what, given, fewest, most) in [
            ("rows", size.rows, fewest.rows, most.rows),
            ("columns", size.columns, fewest.columns, most.columns),
        ] {
            if !(fewest..=most).contains(&given) {
                return Err(TerminalError::InvalidArgs(format!(
                    "a terminal cannot have {given} {what}: give {fewest} to {most}"
                )));
            }
        }
        session.resize(size).await
    }

    /// Waits for any of some conditions, also beside a send that runs; types nothing. The end of
    /// the session ends it. `INVALID_ARGS` for a malformed pattern and for what can never come
    /// true, `NOT_SUPPORTED` where the backend cannot wait.
    pub async fn wait(
        &self,
        owner: &Arc<Agent>,
        id: &str,
        request: WaitRequest,
    ) -> Result<WaitOutcome, TerminalError> {
        let session = self.find(owner, id)?;
        check_wait(&request)?;
        session.wait(request).await
    }

    /// Reads a page, also of a session that has exited.
    pub async fn read(
        &self,
        owner: &Arc<Agent>,
        id: &str,
        request: ReadRequest,
    ) -> Result<ReadPage, TerminalError> {
        let session = self.find(owner, id)?;
        if request.count == 0 {
            let message = "count is 0: give the number of lines to read, at least 1";
            return Err(TerminalError::InvalidArgs(message.to_owned()));
        }
        session.read(request).await
    }

    /// Searches what was shown, newest lines first, also of a session that has exited.
    /// `INVALID_ARGS` for a malformed pattern, `NOT_SUPPORTED` where the backend cannot.
    pub async fn search(
        &self,
        owner: &Arc<Agent>,
        id: &str,
        request: SearchRequest,
    ) -> Result<SearchPage, TerminalError> {
        let session = self.find(owner, id)?;
        if request.max_matches == 0 {
            let message = "max_matches is 0: give the number of matches to return, at least 1";
            return Err(TerminalError::InvalidArgs(message.to_owned()));
        }
        session.search(request).await
    }

    /// Signals the foreground process group. `SESSION_EXITED` when the session has exited,
    /// `LEASE_HELD` while a person has taken it over.
    pub async fn signal(
        &self,
        owner: &Arc<Agent>,
        id: &str,
        signal: Signal,
    ) -> Result<SignalReceipt, TerminalError> {
        self.find(owner, id)?.signal(signal).await
    }

    /// The owner's published sessions, in order of opening, which is the order of their ids.
    /// Exited ones stay until they are closed.
    pub fn list(&self, owner: &Arc<Agent>) -> Vec<SessionSnapshot> {
        self.table.of_owner(owner).iter().map(|session| session.snapshot()).collect()
    }

    /// For the operator of the host: the published sessions of all agents, in order of opening.
    pub fn sessions(&self) -> Vec<(Arc<Agent>, SessionSnapshot, Activity)> {
        let all = self.table.open(&Selection::All);
        let told = |it: Arc<Session>| (Arc::clone(&it.owner), it.snapshot(), it.activity());
        all.into_iter().map(told).collect()
    }

    /// For the operator of the host: counts the changes of what [`Self::sessions`] tells.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.table.changes().follow()
    }

    /// For the operator of the host: watches a session of any agent, also one that has exited.
    /// `NO_SESSION`, `NOT_SUPPORTED` where the backend cannot.
    pub async fn watch(&self, id: &str) -> Result<Box<dyn Watcher>, TerminalError> {
        self.table.find_any(id)?.watch().await
    }

    /// For the operator of the host: takes over a session of any agent. While the lease is held, each
    /// new send, key press, signal and change of size by the owner fails with `LEASE_HELD`; a send
    /// that runs goes on, and everything else works. `NO_SESSION`, `SESSION_EXITED`, `LEASE_HELD` if
    /// another person has taken it over.
    pub fn take_over(&self, id: &str) -> Result<Lease, TerminalError> {
        Lease::take(self.table.find_any(id)?)
    }

    /// True from the start of a spawn to the end of the close, without a gap. A rollback that
    /// failed counts until a disposal has closed it.
    pub fn has_owner_activity(&self, owner: &Agent) -> bool {
        self.table.is_active(owner)
    }

    /// Closes a session; resolves when its processes are gone. `true` for the caller that closed,
    /// `false` for one that joined a close already running. A failure reaches all of them, and
    /// the session stays, so that the close can be retried. Dropping the future does not stop the
    /// close.
    pub async fn kill(
        &self,
        owner: &Arc<Agent>,
        id: &str,
        reason: &str,
    ) -> Result<bool, TerminalError> {
        let request = CloseRequest { reason: reason.to_owned(), grace: None };
        let close = self.find(owner, id)?.close(&self.table, request, &Handle::current());
        let started = close.started;
        close.finished().await?;
        Ok(started)
    }
}

/// What can never end is refused at once.
fn check_wait(request: &WaitRequest) -> Result<(), TerminalError> {
    let wrong = |message: String| Err(TerminalError::InvalidArgs(message));
    if request.until.is_empty() {
        return wrong("nothing to wait for: give at least one condition".to_owned());
    }
    let silence = request.until.iter().find_map(|it| match it {
        WaitCondition::Silence(silence) => Some(*silence),
        _ => None,
    });
    match silence {
        Some(silence) if silence.is_zero() => {
            wrong("a silence of 0 ms is over at once: give at least 1".to_owned())
        }
        Some(silence) if request.until.len() == 1 && silence > request.timeout => wrong(format!(
            "a silence of {} ms cannot be seen within {} ms: wait longer, or for less silence",
            silence.as_millis(),
            request.timeout.as_millis()
        )),
        _ => Ok(()),
    }
}

/// A name stands in one line of a list, so it must be visible and in one line.
fn check_name(name: &str) -> Result<(), TerminalError> {
    let wrong = if name.trim().is_empty() {
        "is empty"
    } else if name.chars().any(char::is_control) {
        "has control characters"
    } else {
        return Ok(());
    };
    Err(TerminalError::InvalidArgs(format!(
        "the name {name:?} of the terminal session {wrong}: give a visible one, or leave it out"
    )))
}
