//! What a step is told to do, and the gate that holds it until the test decides.

use std::{
    fmt,
    sync::{Arc, Condvar, Mutex, PoisonError},
};

use terminal::TerminalError;
use tokio::sync::watch;

use crate::wait::{HANG, guarded};

/// What one step does.
#[derive(Clone, Debug)]
pub enum Act {
    /// It works.
    Succeed,
    /// It fails.
    Fail(TerminalError),
    /// It panics.
    Panic,
    /// It waits until the test decides.
    Hold(Gate),
}

/// Holds steps until it is opened. Clones are the same gate; a step that arrives later finds the
/// decision made.
#[derive(Clone, Default)]
pub struct Gate(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: watch::Sender<State>,
    /// For steps that are not async.
    decided: Mutex<Option<Act>>,
    on_decided: Condvar,
}

#[derive(Default)]
struct State {
    arrived: usize,
    decision: Option<Act>,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}

impl Gate {
    /// A closed one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until a step stands before it.
    pub async fn arrived(&self) {
        self.arrived_times(1).await;
    }

    /// Waits until that many steps have come, those that went on included.
    pub async fn arrived_times(&self, times: usize) {
        let mut state = self.0.state.subscribe();
        let arrived = state.wait_for(|state| state.arrived >= times);
        guarded("nobody arrives at the gate", arrived).await.ok();
    }

    /// Lets the step succeed.
    pub fn open(&self) {
        self.decide(Act::Succeed);
    }

    /// Lets the step fail.
    pub fn fail(&self, error: TerminalError) {
        self.decide(Act::Fail(error));
    }

    /// Decides what the held step does. The first decision stands.
    pub fn decide(&self, act: Act) {
        let mut decided = self.0.decided.lock().unwrap_or_else(PoisonError::into_inner);
        let act = decided.get_or_insert(act).clone();
        drop(decided);
        self.0.on_decided.notify_all();
        self.0.state.send_modify(|state| state.decision = Some(act));
    }

    /// A step waits here.
    pub(super) async fn pass(&self) -> Act {
        let mut state = self.0.state.subscribe();
        self.0.state.send_modify(|state| state.arrived += 1);
        let decided = state.wait_for(|state| state.decision.is_some()).await;
        decided.ok().and_then(|state| state.decision.clone()).unwrap_or(Act::Succeed)
    }

    /// A step that is not async waits here, with its thread.
    pub(super) fn pass_blocking(&self) -> Act {
        self.0.state.send_modify(|state| state.arrived += 1);
        let decided = self.0.decided.lock().unwrap_or_else(PoisonError::into_inner);
        let (decided, _) = self
            .0
            .on_decided
            .wait_timeout_while(decided, HANG, |decided| decided.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        match &*decided {
            Some(act) => act.clone(),
            None => panic!("hangs: nobody opens the gate"),
        }
    }
}
