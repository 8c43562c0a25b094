//! Notices for an agent: what happened elsewhere and belongs into its next step.
//!
//! Guarantees: order of arrival, each notice is drained once, a waiter never misses one.

use std::sync::Mutex;

use dsh_core::lock;
use tokio::sync::watch;

/// One notice.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notice {
    /// What the model reads.
    pub text: String,
}

impl Notice {
    /// A notice with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }
}

/// The notices an agent has not read yet.
pub struct Inbox {
    notices: Mutex<Vec<Notice>>,
    count: watch::Sender<usize>,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self { notices: Mutex::default(), count: watch::Sender::new(0) }
    }

    /// Appends a notice and wakes whoever waits.
    pub fn push(&self, notice: Notice) {
        self.change(|notices| notices.push(notice));
    }

    /// Takes all notices, oldest first.
    pub fn drain(&self) -> Vec<Notice> {
        self.change(std::mem::take)
    }

    /// Resolves when there is at least one notice. It does not take it: another waiter may.
    pub async fn arrived(&self) {
        let mut count = self.count.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        count.wait_for(|count| *count > 0).await.ok();
    }

    /// The number of waiting notices, and its changes.
    pub fn watch(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    fn change<T>(&self, edit: impl FnOnce(&mut Vec<Notice>) -> T) -> T {
        let mut notices = lock(&self.notices);
        let out = edit(&mut notices);
        // Published under the lock, so that the count never lags behind a later change.
        self.count.send_replace(notices.len());
        out
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn notices_keep_their_order_and_wake_a_waiter() {
        let inbox = Arc::new(Inbox::new());
        let waiter = tokio::spawn({
            let inbox = Arc::clone(&inbox);
            async move {
                inbox.arrived().await;
                inbox.drain()
            }
        });
        inbox.push(Notice::new("one"));
        assert_eq!(waiter.await.unwrap(), [Notice::new("one")]);
        inbox.push(Notice::new("two"));
        inbox.push(Notice::new("three"));
        assert_eq!(*inbox.watch().borrow(), 2);
        assert_eq!(inbox.drain(), [Notice::new("two"), Notice::new("three")]);
        assert_eq!(inbox.drain(), []);
    }
}
