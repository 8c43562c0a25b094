//! One registered cleanup and its runs.
//!
//! Guarantees: one run at a time, on its own task; a caller during a run joins it; after success the
//! cleanup is dropped and leaves its scope, after a failure or a panic the next caller runs it again.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
};

use futures_util::{FutureExt as _, future::BoxFuture};
use tokio::sync::watch;

use super::Effect;
use crate::unwind::{lock, panic_text};

pub(super) type Cleanup = Box<dyn FnMut() -> BoxFuture<'static, anyhow::Result<()>> + Send>;

type Outcome = Result<(), Arc<anyhow::Error>>;

pub(super) struct Job {
    pub(super) label: String,
    /// Its own entry in its scope.
    entry: Effect,
    state: Mutex<State>,
}

enum State {
    /// Never run, or failed last time.
    Due(Cleanup),
    Running(watch::Receiver<Option<Outcome>>),
    Done,
}

impl Job {
    pub(super) fn new(label: String, entry: Effect, cleanup: Cleanup) -> Self {
        Self { label, entry, state: Mutex::new(State::Due(cleanup)) }
    }

    /// Runs the cleanup, or joins the run in progress. Dropping the future leaves the run alone.
    pub(super) async fn run(self: &Arc<Self>) -> Outcome {
        let mut run = {
            let mut state = lock(&self.state);
            match std::mem::replace(&mut *state, State::Done) {
                State::Done => return Ok(()),
                State::Running(run) => {
                    *state = State::Running(run.clone());
                    run
                }
                State::Due(cleanup) => {
                    let (publish, run) = watch::channel(None);
                    *state = State::Running(run.clone());
                    tokio::spawn(Arc::clone(self).attempt(cleanup, publish));
                    run
                }
            }
        };
        let outcome = run.wait_for(Option::is_some).await.map(|outcome| outcome.clone());
        outcome.ok().flatten().unwrap_or_else(|| Err(Arc::new(stopped())))
    }

    async fn attempt(
        self: Arc<Self>,
        mut cleanup: Cleanup,
        publish: watch::Sender<Option<Outcome>>,
    ) {
        let result = AssertUnwindSafe(async { cleanup().await }).catch_unwind().await;
        let result = result.unwrap_or_else(|panic| {
            Err(anyhow::anyhow!("cleanup panicked: {}", panic_text(&*panic)))
        });
        if result.is_ok() {
            // Free what it holds before anybody hears that it is done.
            drop(cleanup);
            *lock(&self.state) = State::Done;
            self.entry.dismiss();
        } else {
            *lock(&self.state) = State::Due(cleanup);
        }
        publish.send_replace(Some(result.map_err(Arc::new)));
    }
}

/// The task of a run is gone without a result.
pub(super) fn stopped() -> anyhow::Error {
    anyhow::anyhow!("the runtime stopped before the cleanup ended")
}
