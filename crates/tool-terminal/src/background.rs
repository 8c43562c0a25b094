//! A send in the background: the work of a `pty-send` job.
//!
//! Guarantees:
//! - the session is reserved before the job has an id;
//! - it was killed if its end was asked for while it lived and it then came to an end by readiness
//!   or with its shell; until then it is stopping, and a reading says who still runs;
//! - its label never holds what was typed where the terminal does not show it, nor what is not
//!   known to be shown.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use dsh_core::{async_trait, lock};
use jobs::{CancelCause, Ending, JobCancel, JobEnd, JobKind, JobOutput, JobWork};
use terminal::{SendOperation, SendOutcome, SessionStatus, Shown, WaitReason};
use tokio_util::sync::CancellationToken;

use crate::{text, typed::Typed};

/// A send that nobody waits for.
pub(crate) const PTY_SEND: JobKind = JobKind::new("pty-send");

/// How long the end of an agent waits for a program to take its interrupt. Who does not is ended
/// with its session, which comes next.
const END_GRACE: Duration = Duration::from_millis(100);

/// What is typed where.
pub(crate) struct Typing {
    pub(crate) session: String,
    pub(crate) text: String,
    /// Process id of the session's shell.
    pub(crate) shell: Option<u32>,
    /// Whether readings tell of exit status and state.
    pub(crate) report_state: bool,
    pub(crate) typed: Arc<Typed>,
}

impl Typing {
    /// What the job is called while so much of its text is known to be shown.
    pub(crate) fn label(&self, shown: Shown) -> String {
        let Self { session, text, .. } = self;
        let what = if text.is_empty() {
            "(input)".to_owned()
        } else if shown.hidden {
            text::unseen_title(text.len() as u64)
        } else if shown.bytes == 0 {
            format!("({} bytes)", text.len())
        } else {
            let part = text::head(text, shown.bytes);
            let cut = if part.len() < text.len() { "…" } else { "" };
            format!("{part}{cut}")
        };
        text::one_line(&format!("{session}: {what}"))
    }
}

/// A send under way.
pub(crate) struct Background {
    operation: Arc<dyn SendOperation>,
    typing: Typing,
    state: Mutex<State>,
    /// The owner ends.
    ending: CancellationToken,
}

#[derive(Default)]
struct State {
    /// Its end was asked for while it lived.
    stopped: bool,
    /// What is known of the text after the end.
    shown: Option<Shown>,
    /// What a reading tells after the end.
    lines: Vec<String>,
}

impl Background {
    pub(crate) fn new(operation: Arc<dyn SendOperation>, typing: Typing) -> Self {
        Self { operation, typing, state: Mutex::default(), ending: CancellationToken::new() }
    }

    /// How much of the text is known to be shown.
    pub(crate) fn shown(&self) -> Shown {
        lock(&self.state).shown.unwrap_or_else(|| self.operation.shown())
    }

    /// Waits a moment for the terminal to show the text.
    pub(crate) async fn shown_known(&self) {
        const MOMENT: Duration = Duration::from_millis(100);
        tokio::time::timeout(MOMENT, self.operation.shown_known()).await.ok();
    }

    /// Resolves some time after the owner has begun to end.
    async fn left_behind(&self) {
        self.ending.cancelled().await;
        tokio::time::sleep(END_GRACE).await;
    }

    fn settled(&self, outcome: &SendOutcome) -> JobEnd {
        let Typing { session, text, report_state, typed, .. } = &self.typing;
        let asks_unseen = outcome.state.as_ref().is_some_and(|it| !it.echo);
        typed.note(session, text, outcome.echoed, asks_unseen);
        let bytes = if outcome.echoed { text.len() } else { 0 };
        let mut state = lock(&self.state);
        state.shown = Some(Shown { bytes, hidden: !outcome.echoed });
        if *report_state {
            state.lines = text::told(outcome);
        }
        let reason = outcome.wait_reason;
        let over = matches!(reason, WaitReason::StdinRead | WaitReason::SessionExit);
        let ending = if state.stopped && over { Ending::Killed } else { Ending::Completed };
        JobEnd::new(ending, detail(outcome))
    }

    /// The end of a send without an outcome. What was typed of it, and how, nobody will know.
    fn failed(&self, detail: impl Into<String>) -> JobEnd {
        let Typing { session, text, typed, .. } = &self.typing;
        let shown = *lock(&self.state).shown.get_or_insert_with(|| self.operation.shown());
        typed.note_failure(session, text, shown);
        JobEnd::new(Ending::Failed, detail)
    }
}

fn detail(outcome: &SendOutcome) -> String {
    match (&outcome.wait_reason, &outcome.session_status) {
        (WaitReason::SessionExit, SessionStatus::Exited { exit_code, signal }) => {
            let code = exit_code.map(|code| code.to_string());
            let how = code.or_else(|| signal.clone());
            format!("session exited: {}", how.as_deref().unwrap_or("unknown"))
        }
        (reason, _) => format!("wait: {}", reason.as_str()),
    }
}

#[async_trait]
impl JobWork for Background {
    async fn done(&self) -> JobEnd {
        tokio::select! {
            biased;
            outcome = self.operation.done() => match outcome {
                Ok(outcome) => self.settled(&outcome),
                Err(error) => self.failed(error.to_string()),
            },
            () = self.left_behind() => {
                self.failed("it went on after its interrupt; its session's end ends it")
            }
        }
    }

    async fn read(&self) -> JobOutput {
        let delta = self.operation.read_output().await;
        let stopping = lock(&self.state).stopped && !self.operation.is_settled();
        let lines = if stopping {
            let foreground = self.operation.foreground().await;
            vec![text::stopping(foreground.as_ref(), self.typing.shell)]
        } else {
            lock(&self.state).lines.clone()
        };
        JobOutput { text: delta.text, truncated: delta.truncated, lines }
    }

    fn label(&self) -> Option<String> {
        Some(self.typing.label(self.shown()))
    }

    fn cancel(&self, cancel: &JobCancel) -> anyhow::Result<()> {
        // Held while the operation is asked: whoever sees it settled sees what became of this.
        let mut state = lock(&self.state);
        state.stopped |= self.operation.cancel(&cancel.reason);
        drop(state);
        if cancel.cause == CancelCause::End {
            self.ending.cancel();
        }
        Ok(())
    }
}
