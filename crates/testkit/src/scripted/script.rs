//! The controller: instructions for the next steps, and the record of what happened.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use terminal::{OpenRequest, SendOutcome, SessionStatus, TerminalError, WaitReason};
use tokio::sync::watch;

use super::{
    backend::ScriptedSession,
    gate::{Act, Gate},
    operation::ScriptedOperation,
};
use crate::wait::guarded;

/// A step of a scripted session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Opening a session.
    Open,
    /// Starting a send, which is not async: a gate here blocks the thread.
    StartSend,
    /// The settlement of a send. Held: the test settles the [`ScriptedOperation`], or opens the
    /// gate for the default outcome.
    Settle,
    /// Reading a page.
    Read,
    /// Signalling.
    Signal,
    /// Closing.
    Close,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::StartSend => "start_send",
            Self::Settle => "settle",
            Self::Read => "read",
            Self::Signal => "signal",
            Self::Close => "close",
        })
    }
}

/// Directs every session of the backends that carry its name. Clones are the same script.
#[derive(Clone)]
pub struct Script(Arc<Inner>);

struct Inner {
    name: String,
    lines: watch::Sender<Vec<String>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: BTreeMap<Step, VecDeque<Act>>,
    always: BTreeMap<Step, Act>,
    outcomes: VecDeque<SendOutcome>,
    deaf: bool,
    hides_input: bool,
    requests: Vec<OpenRequest>,
    sessions: Vec<Arc<ScriptedSession>>,
    operations: Vec<Arc<ScriptedOperation>>,
}

static SCRIPTS: Mutex<BTreeMap<String, Script>> = Mutex::new(BTreeMap::new());

impl Script {
    /// A script with a name of its own.
    #[expect(clippy::new_without_default, reason = "each one is different")]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self::named(&format!("script-{}", NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// The script of this name, made when there is none.
    pub fn named(name: &str) -> Self {
        let mut scripts = SCRIPTS.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || {
            let lines = watch::Sender::default();
            Self(Arc::new(Inner { name: name.to_owned(), lines, state: Mutex::default() }))
        };
        scripts.entry(name.to_owned()).or_insert_with(fresh).clone()
    }

    /// Its name, for `config.script`.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The rows of a terminal service with a backend of type `scripted` that follows this script.
    pub fn composition(&self) -> String {
        let name = self.name();
        format!("- name: terminal\n- name: terminal-scripted\n  config: {{ script: {name} }}\n")
    }

    /// What the next such step does. Repeated calls queue up.
    pub fn next(&self, step: Step, act: Act) -> &Self {
        self.state().next.entry(step).or_default().push_back(act);
        self
    }

    /// What such steps do when nothing is queued.
    pub fn always(&self, step: Step, act: Act) -> &Self {
        self.state().always.insert(step, act);
        self
    }

    /// The next such step fails.
    pub fn fail(&self, step: Step, message: &str) -> &Self {
        self.next(step, Act::Fail(TerminalError::Backend(message.to_owned())))
    }

    /// The next such step waits at the returned gate.
    pub fn hold(&self, step: Step) -> Gate {
        let gate = Gate::new();
        self.next(step, Act::Hold(gate.clone()));
        gate
    }

    /// With true, held opens and held sends do not react to cancellation (it is recorded all the
    /// same). By default an open fails with `CANCELLED`, and a send settles by `stdin_read`.
    pub fn ignore_cancellation(&self, ignore: bool) -> &Self {
        self.state().deaf = ignore;
        self
    }

    /// With true, the terminal does not show what is typed; sends that settle by themselves say so.
    pub fn hide_input(&self, hide: bool) -> &Self {
        self.state().hides_input = hide;
        self
    }

    /// Outcome of the next send that settles by itself. Repeated calls queue up.
    pub fn settle_with(&self, outcome: SendOutcome) -> &Self {
        self.state().outcomes.push_back(outcome);
        self
    }

    /// Everything that happened, in order.
    pub fn lines(&self) -> Vec<String> {
        self.0.lines.borrow().clone()
    }

    /// Waits until a recorded line starts with `start`.
    ///
    /// # Panics
    ///
    /// When that never happens.
    #[track_caller]
    pub fn saw(&self, start: &str) -> impl Future<Output = ()> {
        self.saw_times(start, 1)
    }

    /// Waits until that many recorded lines start with `start`.
    ///
    /// # Panics
    ///
    /// When that never happens.
    #[track_caller]
    pub fn saw_times(&self, start: &str, times: usize) -> impl Future<Output = ()> {
        let start = start.to_owned();
        let mut lines = self.0.lines.subscribe();
        guarded(format!("no `{start}` is recorded"), async move {
            let seen = |lines: &Vec<String>| {
                lines.iter().filter(|line| line.starts_with(&start)).count() >= times
            };
            lines.wait_for(seen).await.ok();
        })
    }

    /// What the backend was asked to open, in order.
    pub fn requests(&self) -> Vec<OpenRequest> {
        self.state().requests.clone()
    }

    /// The session that was opened under this id.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn session(&self, id: &str) -> Arc<ScriptedSession> {
        let session = self.state().sessions.iter().find(|it| it.id() == id).cloned();
        let Some(session) = session else { panic!("no session {id} was opened") };
        session
    }

    /// The send that was started last.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn operation(&self) -> Arc<ScriptedOperation> {
        let last = self.state().operations.last().cloned();
        let Some(last) = last else { panic!("no send was started") };
        last
    }

    pub(super) fn record(&self, line: String) {
        self.0.lines.send_modify(|lines| lines.push(line));
    }

    pub(super) fn take(&self, step: Step) -> Act {
        let mut state = self.state();
        let queued = state.next.get_mut(&step).and_then(VecDeque::pop_front);
        queued.or_else(|| state.always.get(&step).cloned()).unwrap_or(Act::Succeed)
    }

    pub(super) fn take_outcome(&self) -> Option<SendOutcome> {
        self.state().outcomes.pop_front()
    }

    pub(super) fn is_deaf(&self) -> bool {
        self.state().deaf
    }

    pub(super) fn hides_input(&self) -> bool {
        self.state().hides_input
    }

    pub(super) fn add_request(&self, request: &OpenRequest) {
        self.state().requests.push(request.clone());
    }

    pub(super) fn add_session(&self, session: &Arc<ScriptedSession>) {
        self.state().sessions.push(Arc::clone(session));
    }

    pub(super) fn add_operation(&self, operation: &Arc<ScriptedOperation>) {
        self.state().operations.push(Arc::clone(operation));
    }

    /// Does a step that is async: waits where it is held.
    pub(super) async fn perform(&self, step: Step) -> Result<(), TerminalError> {
        let act = match self.take(step) {
            Act::Hold(gate) => gate.pass().await,
            act => act,
        };
        decided(step, act)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Carries out a decision.
pub(super) fn decided(step: Step, act: Act) -> Result<(), TerminalError> {
    match act {
        Act::Succeed => Ok(()),
        Act::Fail(error) => Err(error),
        Act::Panic => panic!("the script panics at {step}"),
        Act::Hold(_) => panic!("a gate was opened with another gate at {step}"),
    }
}

/// An outcome of a running session with nothing special about it.
pub fn outcome(viewport: &str, wait_reason: WaitReason) -> SendOutcome {
    SendOutcome {
        viewport: viewport.to_owned(),
        wait_reason,
        session_status: SessionStatus::Running,
        truncated: false,
        last_command: None,
        state: None,
        input: None,
        limit: None,
        repaired: Vec::new(),
        left: Vec::new(),
        unpressed: 0,
        missing: None,
        echoed: true,
    }
}
