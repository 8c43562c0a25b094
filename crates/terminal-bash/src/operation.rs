//! The caller's side of one exchange.
//!
//! The session's task owns screen and positions; an operation only asks it. What a follower had
//! not taken when the exchange settled is put aside for it then, so that later output of the
//! session never reaches it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use dsh_core::{Cancel, async_trait};
use terminal::{OutputDelta, OutputSubscription, SendOperation, SendOutcome, TerminalError};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

use crate::session::Request;

/// Shortest time between two deltas for one follower: a person cannot read faster, and a model's
/// client should not have to.
const FOLLOW_GAP: Duration = Duration::from_millis(100);

/// Who takes output of one exchange. The job's own is the first.
pub(crate) type Follower = u64;
const JOB: Follower = 0;

pub(crate) type Settled = Result<SendOutcome, TerminalError>;

/// What the session's task and the caller share of one exchange.
pub(crate) struct Shared {
    /// Tells one exchange of a session from the next.
    pub(crate) number: u64,
    pub(crate) cancel: Cancel,
    settled: watch::Sender<Option<Settled>>,
    /// Counts the occasions on which there was new output.
    output: watch::Sender<u64>,
    leftovers: Mutex<BTreeMap<Follower, OutputDelta>>,
    /// What a follower gets that first asks after the settlement.
    whole: Mutex<OutputDelta>,
    followers: AtomicU64,
}

impl Shared {
    pub(crate) fn new(number: u64, cancel: Cancel) -> Arc<Self> {
        Arc::new(Self {
            number,
            cancel,
            settled: watch::Sender::new(None),
            output: watch::Sender::new(0),
            leftovers: Mutex::default(),
            whole: Mutex::default(),
            followers: AtomicU64::new(JOB + 1),
        })
    }

    /// There is new output.
    pub(crate) fn announce_output(&self) {
        if self.output.receiver_count() > 0 {
            self.output.send_modify(|count| *count += 1);
        }
    }

    /// Settles, once; `leftovers` is what each known follower has not taken.
    pub(crate) fn settle(&self, outcome: Settled, leftovers: BTreeMap<Follower, OutputDelta>) {
        if let Ok(outcome) = &outcome {
            *lock(&self.whole) =
                OutputDelta { text: outcome.viewport.clone(), truncated: outcome.truncated };
        }
        *lock(&self.leftovers) = leftovers;
        self.settled.send_if_modified(|settled| {
            let first = settled.is_none();
            if first {
                *settled = Some(outcome);
            }
            first
        });
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.settled.borrow().is_some()
    }

    fn take_leftover(&self, follower: Follower) -> OutputDelta {
        let mut leftovers = lock(&self.leftovers);
        let first_time = !leftovers.contains_key(&follower);
        let delta = leftovers.insert(follower, OutputDelta::default()).unwrap_or_default();
        if first_time { lock(&self.whole).clone() } else { delta }
    }
}

/// One exchange, for its caller.
pub(crate) struct Operation {
    shared: Arc<Shared>,
    session: mpsc::UnboundedSender<Request>,
}

impl Operation {
    pub(crate) fn new(shared: Arc<Shared>, session: mpsc::UnboundedSender<Request>) -> Self {
        Self { shared, session }
    }
}

/// Takes what is new for `follower`: from the session while the exchange lives, then from what was
/// put aside.
async fn take(
    shared: &Shared,
    session: &mpsc::UnboundedSender<Request>,
    follower: Follower,
) -> OutputDelta {
    if !shared.is_settled() {
        let (reply, delta) = oneshot::channel();
        let request = Request::Delta { exchange: shared.number, follower, reply };
        if session.send(request).is_ok()
            && let Ok(Some(delta)) = delta.await
        {
            return delta;
        }
    }
    shared.take_leftover(follower)
}

#[async_trait]
impl SendOperation for Operation {
    async fn done(&self) -> Settled {
        let mut settled = self.shared.settled.subscribe();
        let outcome = settled.wait_for(Option::is_some).await;
        // The sender lives in `shared`, so waiting cannot fail.
        outcome.ok().and_then(|it| it.clone()).unwrap_or_else(|| {
            Err(TerminalError::Backend("the session ended without an outcome".to_owned()))
        })
    }

    fn is_settled(&self) -> bool {
        self.shared.is_settled()
    }

    async fn read_output(&self) -> OutputDelta {
        take(&self.shared, &self.session, JOB).await
    }

    fn subscribe(&self) -> Box<dyn OutputSubscription> {
        Box::new(Subscription {
            follower: self.shared.followers.fetch_add(1, Ordering::Relaxed),
            output: self.shared.output.subscribe(),
            settled: self.shared.settled.subscribe(),
            shared: Arc::clone(&self.shared),
            session: self.session.clone(),
            last: None,
            finished: false,
        })
    }

    fn cancel(&self, reason: &str) -> bool {
        if self.shared.is_settled() {
            return false;
        }
        self.shared.cancel.cancel(reason);
        true
    }
}

struct Subscription {
    follower: Follower,
    output: watch::Receiver<u64>,
    settled: watch::Receiver<Option<Settled>>,
    shared: Arc<Shared>,
    session: mpsc::UnboundedSender<Request>,
    last: Option<Instant>,
    finished: bool,
}

#[async_trait]
impl OutputSubscription for Subscription {
    async fn next(&mut self) -> Option<OutputDelta> {
        while !self.finished {
            let changed = async {
                let changed = self.output.changed().await;
                if let Some(last) = self.last {
                    tokio::time::sleep_until(last + FOLLOW_GAP).await;
                }
                changed
            };
            // Both senders live in `shared`, so waiting cannot fail.
            tokio::select! {
                settled = self.settled.wait_for(Option::is_some) => {
                    self.finished = settled.is_ok();
                }
                _ = changed => {}
            }
            self.last = Some(Instant::now());
            let delta = take(&self.shared, &self.session, self.follower).await;
            if delta != OutputDelta::default() {
                return Some(delta);
            }
        }
        None
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
