//! `terminal_send`: one exchange, waited for or as a job.
//!
//! Guarantees: an exchange that began is awaited to its settlement, also after a cancellation, or is
//! a job; its text is logged with the result only when the terminal is known to have shown it.

use std::sync::{Arc, OnceLock};

use agents::Agent;
use dsh_core::{Cancel, async_trait};
use jobs::{JobError, JobRequest, JobWork};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use terminal::{SendOperation, SendOutcome, SendRequest, Shown, TerminalError};
use tools::{
    CallIntent, Content, DialectError, ResultIntent, Tool, ToolCall, ToolError, ToolKind,
    ToolOutput, ToolResult, ToolSpec, parameters_of,
    simple::{Family as _, json, parse, typed},
    withhold,
};

use crate::{
    Host,
    arguments::session_id,
    background::{Background, PTY_SEND, Typing},
    family::{agent, failure, refused},
    schema,
    text::{self, Keep},
    typed::Typed,
    value::SendValue,
};

const DESCRIPTION: &str = "Type text into a terminal session, press Enter, and wait until the \
program is ready for its next input. Returns everything shown since then: the echo of the text, \
the output, the prompt that follows. Lines in brackets below it say how the exchange ended.\n\
[wait: stdin_read] the shell is back at its prompt or a program waits for input; \
[wait: inferred_idle] the output went quiet, but a program may still be at work; \
[wait: timeout] the longest wait passed and the program still runs: wait on with an \
empty text and submit false, which types only what is left of the text, or stop it with \
terminal_signal, which drops that; \
[wait: session_exit] the shell itself ended.\n\
[session: running] or [session: exited ...] tells of the shell, not of a command in it. \
[output truncated] the oldest part is missing: terminal_read can page back to it.";

const STATE_DESCRIPTION: &str = "\n[exit: 0] the status of the last shell command that ended, \
absent when none did. [state: ...] what the terminal is doing when it is not at the shell's \
prompt; `likely` marks what is not proven, `echo off` means that what you type next is not shown, \
`unread_input` that the program has not read what was typed.";

const BACKGROUND_DESCRIPTION: &str = "\nWith run_in_background it returns a job id at once: \
job_output reads what it has shown since, and how it ended; job_kill interrupts it. Until it has \
ended the session takes no other send.";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Args {
    /// Id that `terminal_open` returned.
    session_id: String,
    /// What to type. Several lines are typed one after the other, each when somebody waits for it,
    /// and the wait is for the last. Control characters are sent as they are: `\u0003` is Ctrl-C.
    text: String,
    /// Press Enter after the text (default true). False types the text alone: control characters,
    /// single keys, part of a line.
    submit: Option<bool>,
    /// Return a job id at once instead of waiting; needs the jobs service (default false).
    #[serde(rename = "run_in_background")]
    run_in_background: Option<bool>,
}

pub(crate) struct Send {
    host: Host,
    spec: ToolSpec,
    typed: Arc<Typed>,
}

impl Send {
    pub(crate) fn new(host: Host) -> Result<Self, DialectError> {
        let mut parameters = parameters_of::<Args>()?;
        let mut description = DESCRIPTION.to_owned();
        if host.report_state {
            description.push_str(STATE_DESCRIPTION);
        }
        if host.background {
            description.push_str(BACKGROUND_DESCRIPTION);
        } else if let Some(Value::Object(properties)) = parameters.get_mut("properties") {
            properties.remove("run_in_background");
        }
        let spec = ToolSpec {
            name: "terminal_send".to_owned(),
            description,
            parameters,
            output: schema::send(host.report_state),
        };
        Ok(Self { host, spec, typed: Arc::default() })
    }

    /// Starts the send as a job. Nothing is typed unless there will be one.
    async fn start(
        &self,
        owner: &Arc<Agent>,
        args: Args,
        arguments: Value,
    ) -> Result<ToolOutput, ToolError> {
        let Some(jobs) = self.host.jobs.get() else {
            return Err(failure(
                "NO_JOBS",
                "run_in_background needs the jobs service, and none is mounted here: send it in \
                 the foreground; nothing was typed",
            ));
        };
        let Args { session_id: session, text, submit, .. } = args;
        let listed = self.host.terminals.list(owner);
        let shell =
            listed.iter().find(|it| it.session_id.as_str() == session).and_then(|it| it.pid);
        let length = text.len();
        let typing = Typing {
            session,
            text,
            shell,
            report_state: self.host.report_state,
            typed: Arc::clone(&self.typed),
        };
        let started = Arc::<OnceLock<Arc<Background>>>::default();
        let (slot, terminals, agent) =
            (Arc::clone(&started), Arc::clone(&self.host.terminals), Arc::clone(owner));
        let request = JobRequest {
            kind: PTY_SEND,
            label: typing.label(Shown::default()),
            owner: Some(Arc::clone(owner)),
            output_limit_bytes: Some(self.host.cap as u64),
            run: Box::new(move || {
                let request = SendRequest {
                    text: typing.text.clone(),
                    submit: submit.unwrap_or(true),
                    background: true,
                    cancel: Cancel::new(),
                };
                let operation = terminals.start_send(&agent, &typing.session, request)?;
                typing.typed.follow(&typing.session, &typing.text, &operation);
                let work = slot.get_or_init(|| Arc::new(Background::new(operation, typing)));
                Ok(Arc::clone(work) as Arc<dyn JobWork>)
            }),
        };
        let job = jobs.start(request).map_err(not_started)?;
        let mut log_arguments = None;
        if let Some(work) = started.get() {
            if length > 0 {
                work.shown_known().await;
            }
            let shown = work.shown();
            log_arguments = (!shown.hidden && shown.bytes == length).then_some(arguments);
        }
        let value = SendValue::Background { job_id: job.id.to_string() };
        Ok(ToolOutput { value: json::<Host>(&value)?, log_arguments })
    }
}

#[async_trait]
impl Tool for Send {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        let owner = agent(&call)?;
        let args: Args = parse::<Host, _>(&call.arguments)?;
        session_id(&args.session_id)?;
        if let Some(reason) = call.cancel.reason() {
            return Err(refused(TerminalError::Cancelled { reason: reason.to_owned() }));
        }
        if args.run_in_background == Some(true) {
            return self.start(owner, args, call.arguments.clone()).await;
        }
        let request = SendRequest {
            text: args.text.clone(),
            submit: args.submit.unwrap_or(true),
            background: false,
            // The call's own token reaches the operation in `settled`, where its reason is kept.
            cancel: Cancel::new(),
        };
        let operation =
            self.host.terminals.start_send(owner, &args.session_id, request).map_err(refused)?;
        let outcome = settled(&operation, &call).await.map_err(|error| {
            self.typed.note_failure(&args.session_id, &args.text, operation.shown());
            refused(error)
        })?;
        let asks_unseen = outcome.state.as_ref().is_some_and(|it| !it.echo);
        self.typed.note(&args.session_id, &args.text, outcome.echoed, asks_unseen);
        let log_arguments = outcome.echoed.then(|| call.arguments.clone());
        let value = SendValue::foreground(outcome, self.host.report_state, self.host.cap);
        Ok(ToolOutput { value: json::<Host>(&value)?, log_arguments })
    }

    fn render(&self, _: &Value, value: &Value) -> String {
        typed(value, |it| text::send(it, self.host.cap))
    }

    fn finalize_content(&self, result: &ToolResult, content: Content) -> Content {
        self.host.bound(if result.is_error() { Keep::Head } else { Keep::Tail }, content)
    }

    fn present_call(&self, arguments: &Value) -> Option<CallIntent> {
        let card = Card::of(arguments)?;
        if card.background {
            return Some(CallIntent::Generic { kind: ToolKind::Execute });
        }
        let title = card.title_of_call(self.typed.asks_unseen(card.session));
        Some(CallIntent::Terminal { title, description: card.description() })
    }

    fn present_result(&self, arguments: &Value, result: &ToolResult) -> Option<ResultIntent> {
        let card = Card::of(arguments).filter(|_| !result.is_error())?;
        if card.background {
            return Some(ResultIntent::Generic { kind: ToolKind::Execute });
        }
        let unseen = card.text.is_some_and(|it| self.typed.was_unseen(card.session, it));
        Some(ResultIntent::Terminal {
            title: card.title(unseen),
            description: card.description(),
            output: result.text(),
        })
    }

    fn secrets(&self, arguments: &Value) -> Vec<String> {
        let Some(card) = Card::of(arguments) else { return Vec::new() };
        let hidden = |text: &&str| {
            self.typed.asks_unseen(card.session) || self.typed.was_unseen(card.session, text)
        };
        card.text.filter(hidden).map(str::to_owned).into_iter().collect()
    }

    fn log_arguments(&self, arguments: &Value) -> Value {
        withhold(arguments, |name, value| match name {
            "sessionId" => value.is_string(),
            "submit" | "run_in_background" => value.is_boolean(),
            _ => false,
        })
    }
}

/// Why there is no job: the session's own words, where it was the session that refused.
fn not_started(error: JobError) -> ToolError {
    match error {
        JobError::NotStarted(cause) => match cause.downcast::<TerminalError>() {
            Ok(error) => refused(error),
            Err(cause) => failure("BACKEND_FAILED", format!("{cause:#}")),
        },
        error => failure(error.code(), error.to_string()),
    }
}

/// Waits for the settlement and for the last of the output; feeds the call's progress, and passes
/// its cancellation on once.
pub async fn settled(
    operation: &Arc<dyn SendOperation>,
    call: &ToolCall,
) -> Result<SendOutcome, TerminalError> {
    let output = call.progress.as_ref().map(|sink| (sink, operation.subscribe()));
    let settlement = async {
        let done = operation.done();
        tokio::pin!(done);
        tokio::select! {
            outcome = &mut done => return outcome,
            () = call.cancel.cancelled() => {
                operation.cancel(call.cancel.reason().unwrap_or("cancelled"));
            }
        }
        done.await
    };
    // On a path of its own: a wait for output that is given up half-way may take output with it.
    let progress = async {
        let Some((sink, mut output)) = output else { return };
        while let Some(delta) = output.next().await {
            sink.output(&delta.text);
        }
    };
    tokio::join!(settlement, progress).0
}

/// What a card needs of the arguments, be they the call's or the log's.
struct Card<'a> {
    session: &'a str,
    /// None where the arguments come from the log and the text was held back.
    text: Option<&'a str>,
    bytes: u64,
    background: bool,
}

impl<'a> Card<'a> {
    fn of(arguments: &'a Value) -> Option<Self> {
        let text = arguments.get("text")?;
        let bytes = match text {
            Value::String(text) => text.len() as u64,
            held_back => held_back.get("bytes")?.as_u64()?,
        };
        Some(Self {
            session: arguments.get("sessionId")?.as_str()?,
            text: text.as_str(),
            bytes,
            background: arguments.get("run_in_background") == Some(&Value::Bool(true)),
        })
    }

    fn title(&self, unseen: bool) -> String {
        match self.text {
            Some(text) if !unseen || text.is_empty() => text::title(text),
            _ => text::unseen_title(self.bytes),
        }
    }

    /// The title before it is known how the text is taken: what its first line runs may ask for the
    /// others unseen.
    fn title_of_call(&self, unseen: bool) -> String {
        match self.text.and_then(|it| it.trim_end_matches('\n').split_once('\n')) {
            Some((first, rest)) if !unseen => {
                format!("{} … ({} more bytes)", text::title(first), rest.len())
            }
            _ => self.title(unseen),
        }
    }

    fn description(&self) -> String {
        format!("Terminal {}", text::escape(self.session))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    };

    use terminal::{OutputDelta, OutputSubscription, SessionStatus, WaitReason};
    use tokio::sync::Notify;
    use tools::ProgressSink;

    use super::*;

    /// What steps a send whose follower takes its one piece of output at once and hands it over when told to.
    #[derive(Default)]
    struct Slow {
        taken: Notify,
        hand_over: Notify,
        cancelled: Notify,
        settle: Notify,
    }

    struct Sending(Arc<Slow>);

    #[async_trait]
    impl SendOperation for Sending {
        async fn done(&self) -> Result<SendOutcome, TerminalError> {
            self.0.settle.notified().await;
            Ok(SendOutcome {
                viewport: "piece".to_owned(),
                wait_reason: WaitReason::StdinRead,
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
            })
        }
        fn is_settled(&self) -> bool {
            false
        }
        async fn read_output(&self) -> OutputDelta {
            OutputDelta::default()
        }
        fn subscribe(&self) -> Box<dyn OutputSubscription> {
            Box::new(Follower { send: Arc::clone(&self.0), consumed: AtomicBool::new(false) })
        }
        fn cancel(&self, _reason: &str) -> bool {
            self.0.cancelled.notify_one();
            true
        }
    }

    struct Follower {
        send: Arc<Slow>,
        consumed: AtomicBool,
    }

    #[async_trait]
    impl OutputSubscription for Follower {
        async fn next(&mut self) -> Option<OutputDelta> {
            if self.consumed.swap(true, Ordering::Relaxed) {
                return None;
            }
            self.send.taken.notify_one();
            self.send.hand_over.notified().await;
            Some(OutputDelta { text: "piece".to_owned(), truncated: false })
        }
    }

    #[derive(Default)]
    struct Sink(Mutex<String>);

    impl ProgressSink for Sink {
        fn output(&self, text: &str) {
            self.0.lock().unwrap().push_str(text);
        }
    }

    /// Where the piece is handed over.
    #[derive(Clone, Copy, Debug)]
    enum After {
        Cancellation,
        Settlement,
    }

    #[tokio::test]
    async fn no_output_is_lost_on_the_way_to_progress() {
        for after in [After::Cancellation, After::Settlement] {
            let slow = Arc::<Slow>::default();
            let sink = Arc::<Sink>::default();
            let call = ToolCall {
                call_id: "c1".to_owned(),
                name: "terminal_send".to_owned(),
                arguments: Value::Null,
                agent: None,
                cancel: Cancel::new(),
                progress: Some(Arc::clone(&sink) as Arc<dyn ProgressSink>),
            };
            let operation: Arc<dyn SendOperation> = Arc::new(Sending(Arc::clone(&slow)));
            let steps = async {
                slow.taken.notified().await;
                call.cancel.cancel("enough");
                slow.cancelled.notified().await;
                match after {
                    After::Cancellation => {
                        slow.hand_over.notify_one();
                        testkit::wait_until("progress", || *sink.0.lock().unwrap() == "piece")
                            .await;
                        slow.settle.notify_one();
                    }
                    After::Settlement => {
                        slow.settle.notify_one();
                        tokio::task::yield_now().await;
                        slow.hand_over.notify_one();
                    }
                }
            };
            let sending = async { tokio::join!(settled(&operation, &call), steps).0 };
            let outcome = testkit::guarded("send", sending).await.unwrap();
            assert_eq!(outcome.viewport, "piece");
            assert_eq!(*sink.0.lock().unwrap(), "piece", "{after:?}");
        }
    }
}
