//! The caller's end of one exchange.
//!
//! The task owns screen and positions; an operation only asks it, and takes what was put aside once
//! the exchange has settled.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use dsh_core::{Cancel, async_trait, lock};
use terminal::{
    Changes, Foreground, OutputDelta, OutputSubscription, SendOperation, SessionId, Shown,
    TerminalError,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

use crate::{
    request::Request,
    settler::{Follower, JOB, Leftovers, Settled, Settler, Told},
};

/// Shortest time between two deltas for one follower: a person cannot read faster, and a model's
/// client should not have to.
const FOLLOW_GAP: Duration = Duration::from_millis(100);

/// The caller's end of one exchange.
pub(crate) struct Operation {
    feed: Feed,
    output: watch::Sender<u64>,
    cancel: Cancel,
    followers: AtomicU64,
}

/// What a caller or a follower needs to take output.
#[derive(Clone)]
struct Feed {
    number: u64,
    settled: watch::Receiver<Option<Settled>>,
    shown: watch::Receiver<Shown>,
    leftovers: Arc<Mutex<Leftovers>>,
    mailbox: mpsc::UnboundedSender<Request>,
}

/// The two ends of exchange `number` of a session.
pub(crate) fn exchange(
    session: SessionId,
    number: u64,
    cancel: Cancel,
    mailbox: mpsc::UnboundedSender<Request>,
    changes: Changes,
) -> (Operation, Settler) {
    let (settler, told) = Settler::new(session, number, cancel.clone(), changes);
    let Told { settled, output, shown, leftovers } = told;
    let feed = Feed { number, settled, shown, leftovers, mailbox };
    let operation = Operation { feed, output, cancel, followers: AtomicU64::new(JOB + 1) };
    (operation, settler)
}

impl Feed {
    fn is_settled(&self) -> bool {
        self.settled.borrow().is_some()
    }

    /// Takes what is new for `follower`: from the session while the exchange lives, then from what
    /// was put aside.
    async fn take(&self, follower: Follower) -> OutputDelta {
        if !self.is_settled() {
            let (reply, delta) = oneshot::channel();
            let request = Request::Delta { exchange: self.number, follower, reply };
            if self.mailbox.send(request).is_ok()
                && let Ok(Some(delta)) = delta.await
            {
                return delta;
            }
        }
        let mut leftovers = lock(&self.leftovers);
        match leftovers.known.insert(follower, OutputDelta::default()) {
            Some(left) => left,
            None => leftovers.whole.clone(),
        }
    }
}

#[async_trait]
impl SendOperation for Operation {
    async fn done(&self) -> Settled {
        let mut settled = self.feed.settled.clone();
        let outcome = settled.wait_for(Option::is_some).await;
        // The other end settles before it goes.
        outcome.ok().and_then(|it| it.clone()).unwrap_or_else(|| {
            Err(TerminalError::Backend("the session ended without an outcome".to_owned()))
        })
    }

    fn is_settled(&self) -> bool {
        self.feed.is_settled()
    }

    async fn read_output(&self) -> OutputDelta {
        self.feed.take(JOB).await
    }

    fn subscribe(&self) -> Box<dyn OutputSubscription> {
        let mut output = self.output.subscribe();
        // There may be some already.
        output.mark_changed();
        Box::new(Subscription {
            follower: self.followers.fetch_add(1, Ordering::Relaxed),
            feed: self.feed.clone(),
            output,
            last: None,
            finished: false,
        })
    }

    fn shown(&self) -> Shown {
        *self.feed.shown.borrow()
    }

    async fn shown_known(&self) {
        let (mut shown, mut settled) = (self.feed.shown.clone(), self.feed.settled.clone());
        tokio::select! {
            // An error is the other end gone, which settles before it goes.
            _ = shown.wait_for(|it| *it != Shown::default()) => {}
            _ = settled.wait_for(Option::is_some) => {}
        }
    }

    async fn foreground(&self) -> Option<Foreground> {
        if self.is_settled() {
            return None;
        }
        let (reply, answer) = oneshot::channel();
        let request = Request::Foreground { exchange: self.feed.number, reply };
        self.feed.mailbox.send(request).ok()?;
        answer.await.ok().flatten()
    }

    fn cancel(&self, reason: &str) -> bool {
        let live = !self.is_settled();
        if live {
            self.cancel.cancel(reason);
        }
        live
    }
}

struct Subscription {
    follower: Follower,
    feed: Feed,
    output: watch::Receiver<u64>,
    last: Option<Instant>,
    finished: bool,
}

#[async_trait]
impl OutputSubscription for Subscription {
    async fn next(&mut self) -> Option<OutputDelta> {
        while !self.finished {
            let (settled, output) = (&mut self.feed.settled, &mut self.output);
            let last = self.last;
            let changed = async {
                let changed = output.changed().await;
                if let Some(last) = last {
                    tokio::time::sleep_until(last + FOLLOW_GAP).await;
                }
                changed
            };
            tokio::select! {
                // An error is the other end gone, which settles before it goes.
                _ = settled.wait_for(Option::is_some) => self.finished = true,
                _ = changed => {}
            }
            self.last = Some(Instant::now());
            let delta = self.feed.take(self.follower).await;
            if delta != OutputDelta::default() {
                return Some(delta);
            }
        }
        None
    }
}
