//! Disposal of many sessions at once: an owner's, a backend's, or all.
//!
//! Guarantees: setups that run are told and awaited, sessions are closed at the same time, every
//! one is attempted even when others fail, all failures are reported together, and a later run
//! attempts what is left.

use std::{fmt, sync::Arc};

use tokio::runtime::Handle;

use crate::{
    backend::{CloseRequest, SessionId},
    error::TerminalError,
    table::{Selection, Table},
};

/// A session that a disposal could not close, or whose rollback had failed before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseFailure {
    /// Its id.
    pub session_id: SessionId,
    /// What the backend said.
    pub error: TerminalError,
    /// The rollback of its setup had failed, and the disposal closed it after all.
    pub recovered: bool,
}

/// Everything that went wrong in one disposal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct DisposalFailed {
    /// In order of opening.
    pub failures: Vec<CloseFailure>,
}

impl fmt::Display for DisposalFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} terminal session(s) did not close cleanly", self.failures.len())?;
        self.failures.iter().try_for_each(|CloseFailure { session_id, error, recovered }| {
            let code = error.code();
            let note = if *recovered { " (of its rollback; closed now)" } else { "" };
            write!(f, "\n  {session_id}: [{code}] {error}{note}")
        })
    }
}

/// Ends everything of the selection; resolves when all of it has been attempted.
pub(crate) async fn dispose(
    table: Arc<Table>,
    which: Selection,
    why: TerminalError,
) -> Result<(), DisposalFailed> {
    let runtime = Handle::current();
    let setups = table.shut(&which, &why);
    let request = CloseRequest::at_once(why.to_string());
    let mut closes = Vec::new();
    for session in table.open(&which) {
        closes.push((session.id.clone(), session.close(&table, request.clone(), &runtime), None));
    }
    for ended in setups {
        ended.cancelled().await;
    }
    let mut failures = Vec::new();
    for retained in table.take_retained(&which) {
        let session_id = retained.id;
        let error = retained.failure;
        match retained.session {
            Some(session) => {
                let unreported = (!retained.reported).then_some(error);
                closes.push((
                    session_id,
                    session.close(&table, request.clone(), &runtime),
                    unreported,
                ));
            }
            None => failures.push(CloseFailure { session_id, error, recovered: false }),
        }
    }
    for (session_id, close, unreported) in closes {
        match (close.finished().await, unreported) {
            (Ok(()), None) => {}
            (Ok(()), Some(error)) => {
                failures.push(CloseFailure { session_id, error, recovered: true });
            }
            (Err(error), _) => failures.push(CloseFailure { session_id, error, recovered: false }),
        }
    }
    if failures.is_empty() {
        table.forget(&which);
        return Ok(());
    }
    failures.sort_by_key(|failure| failure.session_id.number());
    Err(DisposalFailed { failures })
}
