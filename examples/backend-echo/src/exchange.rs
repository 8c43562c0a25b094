//! One exchange: what it shows while it waits, and how it ended.

use std::sync::{Arc, Mutex};

use dsh_core::{Cancel, async_trait};
use terminal::{OutputDelta, OutputSubscription, SendOperation, SendOutcome, TerminalError};
use tokio::sync::watch;

use crate::session::{Text, lock};

/// One send.
pub(crate) struct Exchange {
    text: Arc<Mutex<Text>>,
    start: usize,
    /// How far a job has taken the output.
    taken: Mutex<usize>,
    settled: watch::Sender<Option<SendOutcome>>,
}

impl Exchange {
    /// One whose output begins at `start`.
    pub(crate) fn new(text: &Arc<Mutex<Text>>, start: usize) -> Self {
        let (text, taken) = (Arc::clone(text), Mutex::new(start));
        Self { text, start, taken, settled: watch::Sender::default() }
    }

    pub(crate) fn settle(&self, outcome: SendOutcome) {
        self.settled.send_replace(Some(outcome));
    }

    /// Cancels it when its caller says so. Ends with the exchange.
    pub(crate) async fn follow(&self, cancel: Cancel) {
        let mut settled = self.settled.subscribe();
        tokio::select! {
            _ = settled.wait_for(Option::is_some) => {}
            () = cancel.cancelled() => drop(self.cancel("cancelled")),
        }
    }

    /// Output from `from` on, never beyond the settlement.
    fn since(&self, from: usize) -> String {
        let settled = self.settled.borrow();
        let end = settled.as_ref().map(|outcome| self.start + outcome.viewport.len());
        drop(settled);
        let text = lock(&self.text);
        let end = end.unwrap_or(text.shown.len());
        text.shown.get(from..end).unwrap_or_default().to_owned()
    }
}

#[async_trait]
impl SendOperation for Exchange {
    async fn done(&self) -> Result<SendOutcome, TerminalError> {
        let mut settled = self.settled.subscribe();
        let settled = settled.wait_for(Option::is_some).await;
        settled.ok().and_then(|outcome| outcome.clone()).ok_or_else(|| {
            TerminalError::Backend("the exchange has gone without an outcome".to_owned())
        })
    }

    fn is_settled(&self) -> bool {
        self.settled.borrow().is_some()
    }

    async fn read_output(&self) -> OutputDelta {
        let mut taken = lock(&self.taken);
        let text = self.since(*taken);
        *taken += text.len();
        OutputDelta { text, truncated: false }
    }

    fn subscribe(&self) -> Box<dyn OutputSubscription> {
        let mut settled = self.settled.subscribe();
        settled.mark_changed();
        Box::new(Follower { settled })
    }

    fn cancel(&self, _: &str) -> bool {
        let mut text = lock(&self.text);
        let live = !self.is_settled();
        if live {
            text.interrupt();
        }
        live
    }
}

/// An echo shows all it has to show at once, so a follower gets it with the settlement.
struct Follower {
    settled: watch::Receiver<Option<SendOutcome>>,
}

#[async_trait]
impl OutputSubscription for Follower {
    async fn next(&mut self) -> Option<OutputDelta> {
        loop {
            self.settled.changed().await.ok()?;
            let settled = self.settled.borrow_and_update().clone();
            if let Some(outcome) = settled {
                // The sender may live on; nothing changes any more, and the next call would wait.
                self.settled = watch::channel(None).1;
                return Some(OutputDelta { text: outcome.viewport, truncated: false });
            }
        }
    }
}
