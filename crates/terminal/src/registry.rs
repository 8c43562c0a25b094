//! Who owns which session: spawn, fences, the one-send slot, close, disposal.

use std::sync::Arc;

use agents::Agent;
use dsh_core::{Cancel, Scope};

use crate::{
    backend::{
        ReadRequest, SendOperation, SendRequest, SessionId, Signal, SignalReceipt, TerminalBackend,
    },
    error::TerminalError,
    outcome::{ReadPage, SessionStatus},
};

/// The session service.
pub struct TerminalRegistry {}

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

#[expect(clippy::unused_async, clippy::unused_self, reason = "signatures first")]
impl TerminalRegistry {
    /// Registers a backend for as long as `scope` lives.
    pub fn register_backend(
        &self,
        scope: &Scope,
        backend: Arc<dyn TerminalBackend>,
    ) -> Result<(), TerminalError> {
        let _ = (scope, backend);
        Err(TerminalError::ServiceDisposing)
    }

    /// Types of the registered backends, in order of registration.
    pub fn list_backends(&self) -> Vec<String> {
        Vec::new()
    }

    /// Opens a session and publishes it once its setup succeeded.
    pub async fn spawn(
        &self,
        owner: &Arc<Agent>,
        request: SpawnRequest,
        cancel: &Cancel,
    ) -> Result<Spawned, TerminalError> {
        let _ = (owner, request, cancel);
        Err(TerminalError::ServiceDisposing)
    }

    /// Reserves the session's one slot and starts an exchange. Never blocks.
    pub fn start_send(
        &self,
        owner: &Arc<Agent>,
        id: &str,
        request: SendRequest,
    ) -> Result<Arc<dyn SendOperation>, TerminalError> {
        let _ = (owner, id, request);
        Err(TerminalError::ServiceDisposing)
    }

    /// Reads a page.
    pub async fn read(
        &self,
        owner: &Arc<Agent>,
        id: &str,
        request: ReadRequest,
    ) -> Result<ReadPage, TerminalError> {
        let _ = (owner, id, request);
        Err(TerminalError::ServiceDisposing)
    }

    /// Signals the foreground process group.
    pub async fn signal(
        &self,
        owner: &Arc<Agent>,
        id: &str,
        signal: Signal,
    ) -> Result<SignalReceipt, TerminalError> {
        let _ = (owner, id, signal);
        Err(TerminalError::ServiceDisposing)
    }

    /// The owner's sessions, in order of opening.
    pub fn list(&self, owner: &Arc<Agent>) -> Vec<SessionSnapshot> {
        let _ = owner;
        Vec::new()
    }

    /// True from the start of a spawn to the end of the close, without a gap.
    pub fn has_owner_activity(&self, owner: &Arc<Agent>) -> bool {
        let _ = owner;
        false
    }

    /// Closes a session; resolves when its processes are gone. `true` for the caller that closed,
    /// `false` for one that joined a close already running.
    pub async fn kill(
        &self,
        owner: &Arc<Agent>,
        id: &str,
        reason: &str,
    ) -> Result<bool, TerminalError> {
        let _ = (owner, id, reason);
        Err(TerminalError::ServiceDisposing)
    }
}
