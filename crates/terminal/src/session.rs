//! One opened session as the registry holds it: identity, the one-send slot, the one close.
//!
//! Guarantees:
//! - at most one send is live: the slot is taken before the backend is asked, and a backend that
//!   refuses or panics gives it back;
//! - while a person has taken the session over nothing of its owner is begun that types or signals;
//! - at most one close runs, on its own task; whoever asks meanwhile joins it; after a failure the
//!   next one starts anew;
//! - a panic of the backend is an error of the operation.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
};

use agents::Agent;
use dsh_core::{lock, panic_text};
use futures_util::FutureExt as _;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::{runtime::Handle, sync::watch};

use crate::{
    backend::{
        CloseRequest, KeysRequest, ReadRequest, SearchRequest, SendOperation, SendRequest,
        SessionId, Signal, SignalReceipt, TerminalSession, WindowSize,
    },
    by_hand::{Deed, Telling},
    changes::Changes,
    error::TerminalError,
    outcome::{ReadPage, SearchPage, SessionStatus},
    registry::{Activity, SessionSnapshot},
    screen::ScreenSnapshot,
    table::{Admitted, Table},
    waiting::{WaitOutcome, WaitRequest},
    watching::{ByHand, TypedByHand, Watcher},
};

/// A session that a backend opened.
pub(crate) struct Session {
    pub(crate) number: u64,
    pub(crate) id: SessionId,
    pub(crate) name: Option<String>,
    pub(crate) kind: String,
    pub(crate) live: Arc<dyn TerminalSession>,
    pub(crate) owner: Arc<Agent>,
    hold: Mutex<Hold>,
    closing: Mutex<Option<CloseResult>>,
    /// What the owner was told of a person.
    telling: Arc<Mutex<Telling>>,
    changes: Changes,
}

/// Who may type.
struct Hold {
    slot: Slot,
    /// A person has taken the session over.
    leased: bool,
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
    /// One that was just opened.
    pub(crate) fn new(
        admitted: &Admitted,
        owner: Arc<Agent>,
        name: Option<String>,
        kind: String,
        live: Arc<dyn TerminalSession>,
    ) -> Self {
        Self {
            number: admitted.number,
            id: admitted.id.clone(),
            name,
            kind,
            live,
            owner,
            hold: Mutex::new(Hold { slot: Slot::Free, leased: false }),
            closing: Mutex::new(None),
            telling: Arc::default(),
            changes: admitted.changes.clone(),
        }
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

    pub(crate) fn activity(&self) -> Activity {
        let hold = lock(&self.hold);
        Activity { sending: hold.slot.is_taken(), taken_over: hold.leased }
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
        self.require_open()?;
        let reserved = self.reserve()?;
        let start = AssertUnwindSafe(|| begin(&*self.live));
        let started = std::panic::catch_unwind(start);
        let operation =
            started.unwrap_or_else(|panic| Err(panicked("writing to", &self.id, &*panic)))?;
        reserved.fill(Arc::clone(&operation));
        self.changes.tell();
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
        self.require_own()?;
        contain("resizing", &self.id, async { self.live.resize(size).await }).await
    }

    pub(crate) async fn wait(&self, request: WaitRequest) -> Result<WaitOutcome, TerminalError> {
        contain("waiting for", &self.id, async { self.live.wait(request).await }).await
    }

    pub(crate) async fn signal(&self, signal: Signal) -> Result<SignalReceipt, TerminalError> {
        self.require_running()?;
        self.require_own()?;
        contain("signalling", &self.id, async { self.live.signal(signal).await }).await
    }

    pub(crate) async fn watch(&self) -> Result<Box<dyn Watcher>, TerminalError> {
        contain("watching", &self.id, async { self.live.watch().await }).await
    }

    /// A person takes the session over.
    pub(crate) fn take_over(&self) -> Result<(), TerminalError> {
        self.require_open()?;
        let mut hold = lock(&self.hold);
        if std::mem::replace(&mut hold.leased, true) {
            return Err(TerminalError::LeaseHeld { id: self.id.to_string() });
        }
        drop(hold);
        self.changes.tell();
        Ok(())
    }

    /// The person who had taken it over gives it back.
    pub(crate) fn give_back(&self) {
        lock(&self.hold).leased = false;
        self.changes.tell();
    }

    /// Types for a person, and tells the owner as soon as it was typed.
    pub(crate) async fn type_by_hand(
        &self,
        text: SecretString,
        secret: bool,
    ) -> Result<(), TerminalError> {
        self.require_open()?;
        let (told, owner, id) = (text.clone(), Arc::clone(&self.owner), self.id.clone());
        let telling = Arc::clone(&self.telling);
        let typed = move |TypedByHand { hidden }| {
            let text = told.expose_secret();
            let deed = if hidden || secret {
                // Enter is no part of a secret's length.
                Deed::Hidden(text.len() - usize::from(secret))
            } else {
                Deed::Shown(text.to_owned())
            };
            lock(&telling).tell(&owner, &id, deed);
        };
        let input = ByHand { text, secret, typed: Box::new(typed) };
        contain("typing into", &self.id, async { self.live.type_by_hand(input).await }).await
    }

    /// Signals for a person, and tells the owner.
    pub(crate) async fn signal_by_hand(
        &self,
        signal: Signal,
    ) -> Result<SignalReceipt, TerminalError> {
        self.require_open()?;
        let sent = async { self.live.signal(signal).await };
        let receipt = contain("signalling", &self.id, sent).await?;
        lock(&self.telling).tell(&self.owner, &self.id, Deed::Signal(signal));
        Ok(receipt)
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
                Ok(()) => {
                    table.remove(session.number);
                    session.changes.tell();
                }
                Err(error) => {
                    tracing::warn!(session = %session.id, %error, "close failed");
                    *lock(&session.closing) = None;
                }
            }
            sender.send_replace(Some(closed));
        });
        Close { started: true, result }
    }

    fn require_open(&self) -> Result<(), TerminalError> {
        if lock(&self.closing).is_some() {
            return Err(TerminalError::SessionClosing { id: self.id.to_string() });
        }
        self.require_running()
    }

    /// Refuses the owner while a person has taken the session over.
    fn require_own(&self) -> Result<(), TerminalError> {
        if lock(&self.hold).leased {
            return Err(TerminalError::LeaseHeld { id: self.id.to_string() });
        }
        Ok(())
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
        let mut hold = lock(&self.hold);
        if hold.leased {
            return Err(TerminalError::LeaseHeld { id: self.id.to_string() });
        }
        if hold.slot.is_taken() {
            return Err(TerminalError::SendActive { id: self.id.to_string() });
        }
        hold.slot = Slot::Starting;
        Ok(Reservation { hold: &self.hold })
    }
}

impl Slot {
    fn is_taken(&self) -> bool {
        match self {
            Self::Free => false,
            Self::Starting => true,
            Self::Taken(operation) => !operation.is_settled(),
        }
    }
}

/// The slot while the backend is asked. Dropping it gives the slot back.
struct Reservation<'a> {
    hold: &'a Mutex<Hold>,
}

impl Reservation<'_> {
    fn fill(self, operation: Arc<dyn SendOperation>) {
        lock(self.hold).slot = Slot::Taken(operation);
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut hold = lock(self.hold);
        if matches!(hold.slot, Slot::Starting) {
            hold.slot = Slot::Free;
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
