//! One exchange between its caller and the session's task.
//!
//! The task's end, the [`Settler`], is unique and travels with the exchange. Whatever becomes of
//! it (settled, refused, dropped with a mailbox or by a panic), the caller gets an outcome.
//! The task owns screen and positions; an operation only asks it. What a follower had not taken when
//! the exchange settled is put aside for it then, so that later output never reaches it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use dsh_core::{Cancel, async_trait};
use terminal::{
    OutputDelta, OutputSubscription, SendOperation, SendOutcome, SessionId, TerminalError,
};
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

/// What followers get once the exchange has settled.
#[derive(Default)]
struct Leftovers {
    /// What each known follower had not taken.
    known: BTreeMap<Follower, OutputDelta>,
    /// What one gets that asks for the first time.
    whole: OutputDelta,
}

/// The task's end of one exchange.
pub(crate) struct Settler {
    session: SessionId,
    /// Tells one exchange of a session from the next.
    pub(crate) number: u64,
    pub(crate) cancel: Cancel,
    settled: watch::Sender<Option<Settled>>,
    /// Counts the occasions on which there was new output.
    output: watch::Sender<u64>,
    leftovers: Arc<Mutex<Leftovers>>,
}

impl Settler {
    /// There is new output.
    pub(crate) fn announce_output(&self) {
        if self.output.receiver_count() > 0 {
            self.output.send_modify(|count| *count += 1);
        }
    }

    /// Refuses the exchange.
    pub(crate) fn refuse(self, error: TerminalError) {
        self.settled.send_replace(Some(Err(error)));
    }

    /// Settles; `known` is what each known follower has not taken.
    pub(crate) fn settle(self, outcome: SendOutcome, known: BTreeMap<Follower, OutputDelta>) {
        let whole = OutputDelta { text: outcome.viewport.clone(), truncated: outcome.truncated };
        *lock(&self.leftovers) = Leftovers { known, whole };
        self.settled.send_replace(Some(Ok(outcome)));
    }
}

impl Drop for Settler {
    fn drop(&mut self) {
        self.settled.send_if_modified(|settled| {
            let open = settled.is_none();
            if open {
                *settled =
                    Some(Err(TerminalError::SessionClosing { id: self.session.to_string() }));
            }
            open
        });
    }
}

/// The caller's end of one exchange.
pub(crate) struct Operation {
    feed: Feed,
    cancel: Cancel,
    followers: AtomicU64,
}

/// What a caller or a follower needs to take output.
#[derive(Clone)]
struct Feed {
    number: u64,
    settled: watch::Receiver<Option<Settled>>,
    output: watch::Receiver<u64>,
    leftovers: Arc<Mutex<Leftovers>>,
    mailbox: mpsc::UnboundedSender<Request>,
}

/// The two ends of exchange `number` of a session.
pub(crate) fn exchange(
    session: SessionId,
    number: u64,
    cancel: Cancel,
    mailbox: mpsc::UnboundedSender<Request>,
) -> (Operation, Settler) {
    let (settle, settled) = watch::channel(None);
    let (announce, output) = watch::channel(0);
    let leftovers = Arc::<Mutex<Leftovers>>::default();
    let feed = Feed { number, settled, output, leftovers: Arc::clone(&leftovers), mailbox };
    let operation = Operation { feed, cancel: cancel.clone(), followers: AtomicU64::new(JOB + 1) };
    let settler = Settler { session, number, cancel, settled: settle, output: announce, leftovers };
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
        Box::new(Subscription {
            follower: self.followers.fetch_add(1, Ordering::Relaxed),
            feed: self.feed.clone(),
            last: None,
            finished: false,
        })
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
    last: Option<Instant>,
    finished: bool,
}

#[async_trait]
impl OutputSubscription for Subscription {
    async fn next(&mut self) -> Option<OutputDelta> {
        while !self.finished {
            let Feed { settled, output, .. } = &mut self.feed;
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
