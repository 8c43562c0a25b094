//! The task's end of one exchange.
//!
//! It is unique and travels with the exchange. Whatever becomes of it (settled, refused, dropped
//! with a mailbox or by a panic), the caller gets an outcome. What a follower had not taken when
//! the exchange settled is put aside for it then, so that later output never reaches it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use dsh_core::{Cancel, lock};
use terminal::{Changes, OutputDelta, SendOutcome, SessionId, Shown, TerminalError};
use tokio::sync::watch;

use crate::session::failed;

/// Who takes output of one exchange. The job's own is the first.
pub(crate) type Follower = u64;
pub(crate) const JOB: Follower = 0;

pub(crate) type Settled = Result<SendOutcome, TerminalError>;

/// What followers get once the exchange has settled.
#[derive(Default)]
pub(crate) struct Leftovers {
    /// What each known follower had not taken.
    pub(crate) known: BTreeMap<Follower, OutputDelta>,
    /// What one gets that asks for the first time.
    pub(crate) whole: OutputDelta,
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
    shown: watch::Sender<Shown>,
    leftovers: Arc<Mutex<Leftovers>>,
    changes: Changes,
}

/// What a settler tells.
pub(crate) struct Told {
    /// The outcome.
    pub(crate) settled: watch::Receiver<Option<Settled>>,
    /// For those who want to know when there is output.
    pub(crate) output: watch::Sender<u64>,
    /// How much of the text is known to be shown.
    pub(crate) shown: watch::Receiver<Shown>,
    /// What was put aside.
    pub(crate) leftovers: Arc<Mutex<Leftovers>>,
}

impl Settler {
    /// One for exchange `number` of a session, and what it tells.
    pub(crate) fn new(
        session: SessionId,
        number: u64,
        cancel: Cancel,
        changes: Changes,
    ) -> (Self, Told) {
        let (settled, outcome) = watch::channel(None);
        let output = watch::Sender::new(0);
        let (shown, seen) = watch::channel(Shown::default());
        let leftovers = Arc::<Mutex<Leftovers>>::default();
        let told = Told {
            settled: outcome,
            output: output.clone(),
            shown: seen,
            leftovers: Arc::clone(&leftovers),
        };
        (Self { session, number, cancel, settled, output, shown, leftovers, changes }, told)
    }

    /// There is new output.
    pub(crate) fn announce_output(&self) {
        if self.output.receiver_count() > 0 {
            self.output.send_modify(|count| *count += 1);
        }
    }

    /// How much of the text is known to be shown so far.
    pub(crate) fn shown(&self) -> Shown {
        *self.shown.borrow()
    }

    /// More is known of that.
    pub(crate) fn announce_shown(&self, shown: Shown) {
        self.shown.send_if_modified(|it| std::mem::replace(it, shown) != shown);
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
                *settled = Some(Err(if std::thread::panicking() {
                    failed(&self.session)
                } else {
                    TerminalError::SessionClosing { id: self.session.to_string() }
                }));
            }
            open
        });
        self.changes.tell();
    }
}
