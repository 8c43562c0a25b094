//! One opened session as the registry holds it: identity, the one-send slot, the one close.
//!
//! Guarantees:
//! - at most one send is live: the slot is taken before the backend is asked, and a backend that
//!   refuses or panics gives it back;
//! - at most one close runs, on its own task; whoever asks meanwhile joins it; after a failure the
//!   next one starts anew;
//! - a panic of the backend is an error of the operation.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
};

use dsh_core::{lock, panic_text};
use futures_util::FutureExt as _;
use tokio::{runtime::Handle, sync::watch};

use crate::{
    backend::{
        CloseRequest, KeysRequest, ReadRequest, SearchRequest, SendOperation, SendRequest,
        SessionId, Signal, SignalReceipt, TerminalSession, WindowSize,
    },
    error::TerminalError,
    outcome::{ReadPage, SearchPage, SessionStatus},
    registry::SessionSnapshot,
    screen::ScreenSnapshot,
    table::Table,
    waiting::{WaitOutcome, WaitRequest},
};

/// A session that a backend opened.
pub(crate) struct Session {
    pub(crate) number: u64,
    pub(crate) id: SessionId,
    pub(crate) name: Option<String>,
    pub(crate) kind: String,
    pub(crate) live: Arc<dyn TerminalSession>,
    slot: Mutex<Slot>,
    closing: Mutex<Option<CloseResult>>,
}

enum Slot {
    Free,
    Starting,
    Taken(Arc<dyn SendOperation>),
}

type CloseResult = watch::Receiver<Option<Result<(), TerminalError>>>;

/// A close that runs, or has run.
pub(crate) struct Close {
    /// Whether this call started it.
    pub(crate) started: bool,
    result: CloseResult,
}

impl Close {
    /// Waits for its end.
    pub(crate) async fn finished(mut self) -> Result<(), TerminalError> {
        let result = self.result.wait_for(Option::is_some).await.map(|it| it.clone());
        // The sender lives in the closing task, which only a stopping runtime drops early.
        result.ok().flatten().unwrap_or_else(|| {
            Err(TerminalError::CloseIncomplete("the host stopped during the close".to_owned()))
        })
    }
}

impl Session {
    pub(crate) fn new(
        number: u64,
        id: SessionId,
        name: Option<String>,
        kind: String,
        live: Arc<dyn TerminalSession>,
    ) -> Self {
        let (slot, closing) = (Mutex::new(Slot::Free), Mutex::new(None));
        Self { number, id, name, kind, live, slot, closing }
    }

    pub(crate) fn snapshot(&self) -> SessionSnapshot {
        SessionSnapshot {
            session_id: self.id.clone(),
            name: self.name.clone(),
            kind: self.kind.clone(),
            pid: self.live.pid(),
            status: self.live.status(),
        }
    }

    /// Starts an exchange, unless one is live.
    pub(crate) fn start_send(
        &self,
        request: SendRequest,
    ) -> Result<Arc<dyn SendOperation>, TerminalError> {
        self.start(|live| live.start_send(request))
    }

    /// Starts an exchange that presses keys, unless one is live.
    pub(crate) fn start_keys(
        &self,
        request: KeysRequest,
    ) -> Result<Arc<dyn SendOperation>, TerminalError> {
        self.start(|live| live.start_keys(request))
    }

    fn start(
        &self,
        begin: impl FnOnce(&dyn TerminalSession) -> Result<Arc<dyn SendOperation>, TerminalError>,
    ) -> Result<Arc<dyn SendOperation>, TerminalError> {
        if lock(&self.closing).is_some() {
            return Err(TerminalError::SessionClosing { id: self.id.to_string() });
        }
        self.require_running()?;
        let reserved = self.reserve()?;
        let start = AssertUnwindSafe(|| begin(&*self.live));
        let started = std::panic::catch_unwind(start);
        let operation =
            started.unwrap_or_else(|panic| Err(panicked("writing to", &self.id, &*panic)))?;
        reserved.fill(Arc::clone(&operation));
        Ok(operation)
    }

    pub(crate) async fn read(&self, request: ReadRequest) -> Result<ReadPage, TerminalError> {
        contain("reading", &self.id, async { self.live.read(request).await }).await
    }

    pub(crate) async fn search(&self, request: SearchRequest) -> Result<SearchPage, TerminalError> {
        contain("searching", &self.id, async { self.live.search(request).await }).await
    }

    pub(crate) async fn screen(&self) -> Result<ScreenSnapshot, TerminalError> {
        contain("showing the screen of", &self.id, async { self.live.screen().await }).await
    }

    pub(crate) async fn resize(&self, size: WindowSize) -> Result<(), TerminalError> {
        self.require_running()?;
        contain("resizing", &self.id, async { self.live.resize(size).await }).await
    }

    pub(crate) async fn wait(&self, request: WaitRequest) -> Result<WaitOutcome, TerminalError> {
        contain("waiting for", &self.id, async { self.live.wait(request).await }).await
    }

    pub(crate) async fn signal(&self, signal: Signal) -> Result<SignalReceipt, TerminalError> {
        self.require_running()?;
        contain("signalling", &self.id, async { self.live.signal(signal).await }).await
    }

    /// Starts a close on `runtime`, or joins the one that runs. Once it succeeded the session is
    /// gone from `table`.
    pub(crate) fn close(
        self: &Arc<Self>,
        table: &Arc<Table>,
        request: CloseRequest,
        runtime: &Handle,
    ) -> Close {
        let mut closing = lock(&self.closing);
        if let Some(result) = &*closing {
            return Close { started: false, result: result.clone() };
        }
        let (sender, result) = watch::channel(None);
        *closing = Some(result.clone());
        drop(closing);
        let (session, table) = (Arc::clone(self), Arc::clone(table));
        runtime.spawn(async move {
            let close = async { session.live.close(request).await };
            let closed = contain("closing", &session.id, close).await;
            match &closed {
                Ok(()) => table.remove(session.number),
                Err(error) => {
                    tracing::warn!(session = %session.id, %error, "close failed");
                    *lock(&session.closing) = None;
                }
            }
            sender.send_replace(Some(closed));
        });
        Close { started: true, result }
    }

    fn require_running(&self) -> Result<(), TerminalError> {
        match self.live.status() {
            SessionStatus::Running => Ok(()),
            SessionStatus::Exited { .. } => {
                let id = self.id.to_string();
                Err(match self.live.limit() {
                    Some(limit) => TerminalError::LimitReached { id, limit },
                    None => TerminalError::SessionExited { id },
                })
            }
        }
    }

    fn reserve(&self) -> Result<Reservation<'_>, TerminalError> {
        let mut slot = lock(&self.slot);
        let taken = match &*slot {
            Slot::Free => false,
            Slot::Starting => true,
            Slot::Taken(operation) => !operation.is_settled(),
        };
        if taken {
            return Err(TerminalError::SendActive { id: self.id.to_string() });
        }
        *slot = Slot::Starting;
        Ok(Reservation { slot: &self.slot })
    }
}

/// The slot while the backend is asked. Dropping it gives the slot back.
struct Reservation<'a> {
    slot: &'a Mutex<Slot>,
}

impl Reservation<'_> {
    fn fill(self, operation: Arc<dyn SendOperation>) {
        *lock(self.slot) = Slot::Taken(operation);
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut slot = lock(self.slot);
        if matches!(*slot, Slot::Starting) {
            *slot = Slot::Free;
        }
    }
}

/// Turns a panic of the backend into an error.
pub(crate) async fn contain<T>(
    doing: &str,
    id: &SessionId,
    work: impl Future<Output = Result<T, TerminalError>>,
) -> Result<T, TerminalError> {
    let finished = AssertUnwindSafe(work).catch_unwind().await;
    finished.unwrap_or_else(|panic| Err(panicked(doing, id, &*panic)))
}

fn panicked(doing: &str, id: &SessionId, panic: &(dyn Any + Send)) -> TerminalError {
    let message = panic_text(panic);
    TerminalError::Backend(format!("the backend panicked while {doing} {id}: {message}"))
}
