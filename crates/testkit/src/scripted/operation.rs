//! One send of a scripted session.

use std::sync::{Arc, Mutex, PoisonError};

use dsh_core::async_trait;
use terminal::{
    Foreground, OutputDelta, OutputSubscription, SendOperation, SendOutcome, SendRequest,
    SessionStatus, Shown, TerminalError, WaitReason,
};
use tokio::sync::watch;

use super::{
    backend::PID,
    script::{Script, outcome},
};

/// A send. The test gives it output and settles it, unless the script lets it settle by itself.
pub struct ScriptedOperation {
    session: String,
    script: Script,
    request: SendRequest,
    exchange: watch::Sender<Exchange>,
    /// Bytes that [`SendOperation::read_output`] gave away.
    taken: Mutex<usize>,
}

#[derive(Default)]
struct Exchange {
    output: String,
    settled: Option<Result<SendOutcome, TerminalError>>,
}

impl ScriptedOperation {
    pub(super) fn new(session: &str, script: &Script, request: SendRequest) -> Self {
        let (session, script) = (session.to_owned(), script.clone());
        Self { session, script, request, exchange: watch::Sender::default(), taken: Mutex::new(0) }
    }

    /// What was asked for.
    pub fn request(&self) -> &SendRequest {
        &self.request
    }

    /// The program shows something.
    pub fn push_output(&self, text: &str) {
        self.exchange.send_modify(|exchange| exchange.output.push_str(text));
    }

    /// Settles it. False when it had settled already.
    pub fn settle(&self, result: Result<SendOutcome, TerminalError>) -> bool {
        let first = self.exchange.send_if_modified(|exchange| {
            let first = exchange.settled.is_none();
            exchange.settled.get_or_insert(result);
            first
        });
        if first {
            self.script.record(format!("settle {}", self.session));
        }
        first
    }

    /// Settles it with what was shown so far.
    pub fn settle_as(&self, reason: WaitReason) -> bool {
        let viewport = self.exchange.borrow().output.clone();
        let mut outcome = outcome(&viewport, reason);
        outcome.echoed = !self.script.hides_input();
        if reason == WaitReason::SessionExit {
            outcome.session_status = SessionStatus::Exited { exit_code: Some(0), signal: None };
        }
        self.settle(Ok(outcome))
    }

    /// Settles it with the script's outcome or, without one, as a shell that has nothing to say.
    pub(super) fn settle_by_itself(&self) {
        let settled = self.script.take_outcome().unwrap_or_else(|| {
            let newline = if self.request.submit { "\ndsh> " } else { "" };
            let shown = &self.exchange.borrow().output;
            let hidden = self.script.hides_input();
            let typed = if hidden { "" } else { &self.request.text };
            let viewport = format!("{typed}{shown}{newline}");
            SendOutcome { echoed: !hidden, ..outcome(&viewport, WaitReason::StdinRead) }
        });
        self.settle(Ok(settled));
    }

    /// Cancels it when the request's own cancellation comes. Ends with the send.
    pub(super) async fn follow_cancellation(self: Arc<Self>) {
        let mut exchange = self.exchange.subscribe();
        tokio::select! {
            biased;
            _ = exchange.wait_for(|exchange| exchange.settled.is_some()) => {}
            () = self.request.cancel.cancelled() => {
                self.cancel(self.request.cancel.reason().unwrap_or_default());
            }
        }
    }
}

#[async_trait]
impl SendOperation for ScriptedOperation {
    async fn done(&self) -> Result<SendOutcome, TerminalError> {
        let mut exchange = self.exchange.subscribe();
        let settled = exchange.wait_for(|exchange| exchange.settled.is_some()).await;
        settled.ok().and_then(|exchange| exchange.settled.clone()).unwrap_or_else(|| {
            Err(TerminalError::Backend("the scripted send was dropped".to_owned()))
        })
    }

    fn is_settled(&self) -> bool {
        self.exchange.borrow().settled.is_some()
    }

    async fn read_output(&self) -> OutputDelta {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let exchange = self.exchange.borrow();
        let text = exchange.output.get(*taken..).unwrap_or_default().to_owned();
        *taken = exchange.output.len();
        OutputDelta { text, truncated: false }
    }

    fn subscribe(&self) -> Box<dyn OutputSubscription> {
        Box::new(Follower { exchange: self.exchange.subscribe(), given: 0 })
    }

    fn shown(&self) -> Shown {
        let hidden = self.script.hides_input();
        Shown { bytes: if hidden { 0 } else { self.request.text.len() }, hidden }
    }

    async fn foreground(&self) -> Option<Foreground> {
        (!self.is_settled())
            .then(|| Foreground { pid: PID.cast_signed(), command: "bash".to_owned() })
    }

    fn cancel(&self, reason: &str) -> bool {
        if self.is_settled() {
            return false;
        }
        self.script.record(format!("cancel {}: {reason}", self.session));
        if !self.script.is_deaf() {
            self.push_output("^C\n");
            self.settle_as(WaitReason::StdinRead);
        }
        true
    }
}

struct Follower {
    exchange: watch::Receiver<Exchange>,
    given: usize,
}

#[async_trait]
impl OutputSubscription for Follower {
    async fn next(&mut self) -> Option<OutputDelta> {
        let given = self.given;
        let more =
            |exchange: &Exchange| exchange.output.len() > given || exchange.settled.is_some();
        let exchange = self.exchange.wait_for(more).await.ok()?;
        let text = exchange.output.get(given..).unwrap_or_default().to_owned();
        self.given = exchange.output.len();
        (!text.is_empty()).then_some(OutputDelta { text, truncated: false })
    }
}
