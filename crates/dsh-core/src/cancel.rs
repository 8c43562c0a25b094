//! Cancellation that carries the caller's own reason.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// A cancellation token with the reason of the first caller that used it. Clones share both.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    token: CancellationToken,
    reason: Arc<OnceLock<String>>,
}

impl Cancel {
    /// A fresh one that nobody has cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels with `reason`. Only the first reason is kept.
    pub fn cancel(&self, reason: impl Into<String>) {
        self.reason.set(reason.into()).ok();
        self.token.cancel();
    }

    /// Whether somebody cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    /// The first caller's reason, once cancelled.
    pub fn reason(&self) -> Option<&str> {
        self.token.is_cancelled().then(|| self.reason.get().map_or("cancelled", String::as_str))
    }

    /// Resolves once cancelled.
    pub fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        self.token.cancelled()
    }
}
