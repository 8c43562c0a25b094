//! One setup, from admission to publication or to the end of its rollback.
//!
//! Guarantees:
//! - the setup runs on its own task and is always awaited: the caller's cancellation, its
//!   disappearance, the owner's end and the service's end only tell it;
//! - the first of these keeps its reason;
//! - what was opened in vain is closed before the caller hears of it.

use std::sync::Arc;

use dsh_core::Cancel;
use tokio::runtime::Handle;

use crate::{
    backend::{CloseRequest, OpenRequest, TerminalSession},
    error::TerminalError,
    session::{Session, contain},
    table::{Admitted, Table},
};

/// An admitted setup.
pub(crate) struct Setup {
    pub(crate) table: Arc<Table>,
    pub(crate) admitted: Admitted,
    pub(crate) kind: String,
    pub(crate) name: Option<String>,
    pub(crate) request: OpenRequest,
    /// The caller's own cancellation.
    pub(crate) caller: Cancel,
}

impl Setup {
    /// Runs it to its end. The published session, or why there is none.
    pub(crate) async fn run(self) -> Result<Arc<Session>, TerminalError> {
        let _ended = self.admitted.ended.clone().drop_guard();
        let number = self.admitted.number;
        let live = match self.open().await {
            Ok(live) => live,
            Err(error) => return Err(self.table.withdraw(number, &self.caller, error)),
        };
        let owner = Arc::clone(&self.request.owner);
        let (name, kind) = (self.name.clone(), self.kind.clone());
        let session = Arc::new(Session::new(&self.admitted, owner, name, kind, live));
        let Err(lost) = self.table.publish(&session, &self.caller) else {
            self.admitted.changes.tell();
            return Ok(session);
        };
        let close =
            session.close(&self.table, CloseRequest::at_once("rolled back"), &Handle::current());
        if let Err(failure) = close.finished().await {
            self.table.retain(&session, failure);
        }
        Err(lost)
    }

    async fn open(&self) -> Result<Arc<dyn TerminalSession>, TerminalError> {
        let open = async { self.admitted.backend.open(self.request.clone()).await };
        let open = contain("opening", &self.admitted.id, open);
        tokio::pin!(open);
        tokio::select! {
            biased;
            opened = &mut open => return opened,
            () = self.caller.cancelled() => {}
        }
        let reason = self.caller.reason().unwrap_or_default().to_owned();
        self.table.abandon(self.admitted.number, &TerminalError::Cancelled { reason });
        open.await
    }
}

/// Undoes the setup unless its result has reached the caller.
pub(crate) struct CallerGuard {
    pub(crate) table: Arc<Table>,
    pub(crate) number: u64,
    pub(crate) runtime: Handle,
    pub(crate) armed: bool,
}

impl Drop for CallerGuard {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let reason = "the caller went away before the session was open".to_owned();
        let published =
            self.table.abandon(self.number, &TerminalError::Cancelled { reason: reason.clone() });
        if let Some(session) = published {
            // The table joins it: the session stays its owner's activity until it is closed.
            session.close(&self.table, CloseRequest::at_once(reason), &self.runtime);
        }
    }
}
