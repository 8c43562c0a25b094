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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn clones_share_the_first_reason() {
        let (cancel, other) = (Cancel::new(), Cancel::new());
        let clone = cancel.clone();
        assert_eq!((cancel.is_cancelled(), cancel.reason()), (false, None));
        clone.cancel("the user stopped it");
        cancel.cancel("the host is stopping");
        cancel.cancelled().await;
        assert_eq!(cancel.reason(), Some("the user stopped it"));
        assert!(!other.is_cancelled());
    }
}
