//! Turns and steps of one agent.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use agents::{Agent, AgentStatus, Notice};
use dsh_core::Cancel;
use futures_util::FutureExt as _;
use jobs::JobId;
use model::{EndReason, Message, ModelError, ModelRequest, ToolRequest, ToolSchema};
use serde_json::{Value, json};
use session_log::{Event, LoggedCall};
use tools::{ProgressSink, ToolCall, ToolError, withheld};

use crate::{
    AgentLoop,
    background::Background,
    event::{LoopEvent, LoopObserver},
    history::History,
    reply::{End, Said, listen},
    secrets::Secrets,
};

/// How often a reply that was cut is asked for again, in one step.
const MORE_ATTEMPTS: u32 = 2;

/// The API's word for a reply that was cut for what it says.
const CONTENT_FILTER: &str = "content_filter";

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// The model had nothing more to call.
    Done,
    /// Its last reply was cut at the longest it can give.
    Length,
    /// The API's own word for another end of the last reply, such as `content_filter`.
    Other(String),
    /// The turn was cancelled.
    Cancelled,
}

/// One agent's conversation with its user.
pub struct Conversation {
    parts: AgentLoop,
    agent: Arc<Agent>,
    observer: Arc<dyn LoopObserver>,
    history: History,
    background: Option<Background>,
    secrets: Secrets,
    /// Jobs at work and the calls that started them: their tools may yet learn of secrets.
    started: Vec<(JobId, ToolRequest)>,
}

/// The agent is busy while this lives.
struct Busy<'a>(&'a Agent);

impl<'a> Busy<'a> {
    fn begin(agent: &'a Agent) -> Self {
        agent.set_status(AgentStatus::Busy);
        Self(agent)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.set_status(AgentStatus::Idle);
    }
}

/// Passes output of the running call on.
struct Output(Arc<dyn LoopObserver>);

impl ProgressSink for Output {
    fn output(&self, text: &str) {
        self.0.event(LoopEvent::CallOutput(text));
    }
}

impl Conversation {
    pub(crate) fn new(
        parts: AgentLoop,
        agent: Arc<Agent>,
        observer: Arc<dyn LoopObserver>,
    ) -> Self {
        let background = parts.jobs.get().and_then(|jobs| Background::of(&agent, jobs));
        let (history, secrets) = (History::default(), Secrets::default());
        Self { parts, agent, observer, history, background, secrets, started: Vec::new() }
    }

    /// A turn about a message of the user.
    ///
    /// # Errors
    /// The model failed for good. The conversation can go on with a further message.
    pub async fn say(&mut self, text: &str, cancel: &Cancel) -> Result<TurnEnd, ModelError> {
        self.agent.inbox().user_spoke();
        self.log(Event::user_message(text));
        self.history.push(Message::User { content: text.to_owned() });
        self.heed(cancel).await
    }

    /// A turn about the notices that have arrived; see [`Self::woken`].
    ///
    /// # Errors
    /// As [`Self::say`].
    pub async fn heed(&mut self, cancel: &Cancel) -> Result<TurnEnd, ModelError> {
        let agent = Arc::clone(&self.agent);
        let _busy = Busy::begin(&agent);
        loop {
            self.take_notices();
            if cancel.is_cancelled() {
                return Ok(TurnEnd::Cancelled);
            }
            let Said { text, reasoning, calls, end } = self.ask(cancel).await?;
            // Those of a reply that was cancelled may not be all, and nobody wants them.
            let calls = if matches!(end, End::Cancelled) { Vec::new() } else { calls };
            self.take_reply(text, reasoning, &calls);
            let reason = match end {
                End::Cancelled => return Ok(TurnEnd::Cancelled),
                End::Reason(reason) if calls.is_empty() => return Ok(reason.into()),
                End::Reason(reason) => reason,
            };
            for call in &calls {
                // Without its agent a call is refused, to be read by nobody.
                if self.agent.is_ending() {
                    return Ok(TurnEnd::Cancelled);
                }
                self.run(call, &reason, cancel).await;
            }
        }
    }

    /// What the model says next. One history that is too long for it is cut; a reply that breaks off
    /// is asked for again: nothing has been done about it. One that never began is not: what could
    /// be done about that, the provider has done.
    async fn ask(&mut self, cancel: &Cancel) -> Result<Said, ModelError> {
        if let Some(trimmed) = self.history.fit(self.parts.max_history_bytes) {
            self.observer.event(LoopEvent::Trimmed(trimmed));
        }
        let mut may_shrink = true;
        let mut attempts = 0;
        loop {
            self.observer.event(LoopEvent::Asking);
            let reply = self.parts.model.reply(self.request());
            let mut told = false;
            match listen(reply, &*self.observer, &mut told, cancel).await {
                Err(ModelError::ContextTooLong(message)) if may_shrink => {
                    may_shrink = false;
                    let Some(trimmed) = self.history.shrink(self.history.bytes() / 2) else {
                        return Err(ModelError::ContextTooLong(message));
                    };
                    self.observer.event(LoopEvent::Trimmed(trimmed));
                }
                Err(ModelError::Cut(reason)) if told && attempts < MORE_ATTEMPTS => {
                    attempts += 1;
                    let delay = Duration::ZERO;
                    self.observer.event(LoopEvent::Retry { reason: &reason, delay });
                }
                done => return done,
            }
        }
    }

    fn request(&self) -> ModelRequest {
        let tools = self.parts.tools.list(Some(&self.agent)).into_iter().map(|it| ToolSchema {
            name: it.name,
            description: it.description,
            parameters: it.parameters,
        });
        ModelRequest {
            system: self.parts.prompt.render(Some(&self.agent)),
            messages: self.history.messages(),
            tools: tools.collect(),
        }
    }

    /// Waits until a notice wakes the idle agent. False when none will: nothing runs in the
    /// background any more, or the agent was woken as often as its notices allow, whatever still
    /// runs. A cancellation is a reason to wake too: the next turn ends at once.
    pub async fn woken(&self, cancel: &Cancel) -> bool {
        let woken = || self.agent.inbox().wake().now_or_never().is_some();
        if woken() {
            return true;
        }
        let could_wake = self.agent.inbox().could_wake();
        let pending = self.background.as_ref().filter(|it| could_wake && it.is_pending());
        let Some(background) = pending else {
            return woken();
        };
        self.observer.event(LoopEvent::Waiting);
        tokio::select! {
            biased;
            () = cancel.cancelled() => true,
            () = self.agent.inbox().wake() => true,
            () = background.quiet() => woken(),
        }
    }

    fn take_notices(&mut self) {
        for notice in self.agent.inbox().drain().into_iter().filter(Notice::deliver) {
            self.log(Event::notice(&notice.text));
            self.observer.event(LoopEvent::Notice(&notice.text));
            self.history.push(Message::Notice { content: notice.text });
        }
    }

    fn take_reply(&mut self, content: String, reasoning: String, calls: &[ToolRequest]) {
        if content.is_empty() && calls.is_empty() {
            return;
        }
        for call in calls {
            self.learn_secrets(call);
        }
        self.learn_of_jobs();
        let logged: Vec<LoggedCall> = calls.iter().map(|it| self.logged(it)).collect();
        let said = Event::assistant_message(&self.secrets.hide(&content), &logged);
        self.log(said.with_reasoning(&self.secrets.hide(&reasoning)));
        self.history.push(Message::Assistant { content, reasoning, calls: calls.to_vec() });
    }

    fn learn_secrets(&mut self, call: &ToolRequest) {
        if let Ok(arguments) = arguments(call) {
            self.secrets
                .extend(self.parts.tools.secrets(&call.name, &arguments).unwrap_or_default());
        }
    }

    /// Learns what the calls that started jobs are known to type by now.
    fn learn_of_jobs(&mut self) {
        let live = self.live_jobs();
        let mut started = std::mem::take(&mut self.started);
        for (_, call) in &started {
            self.learn_secrets(call);
        }
        // Of one that has ended all is known.
        started.retain(|(job, _)| live.contains(job));
        self.started = started;
    }

    fn live_jobs(&self) -> BTreeSet<JobId> {
        self.background.as_ref().map(Background::live).unwrap_or_default()
    }

    fn logged(&self, call: &ToolRequest) -> LoggedCall {
        let arguments = match arguments(call) {
            Ok(arguments) => {
                let logged = self.parts.tools.log_arguments(&call.name, &arguments);
                self.secrets.hide_in(logged)
            }
            Err(_) => withheld(&Value::String(call.arguments.clone())),
        };
        LoggedCall { call_id: call.id.clone(), name: call.name.clone(), arguments }
    }

    /// Runs one call of a reply that ended for `reason` to its end.
    async fn run(&mut self, request: &ToolRequest, reason: &EndReason, cancel: &Cancel) {
        let before = self.live_jobs();
        let tools = &self.parts.tools;
        let call = ToolCall {
            call_id: request.id.clone(),
            name: request.name.clone(),
            arguments: Value::String(request.arguments.clone()),
            agent: Some(Arc::clone(&self.agent)),
            cancel: cancel.clone(),
            progress: Some(Arc::new(Output(Arc::clone(&self.observer)))),
        };
        let parsed = complete(reason).and_then(|()| arguments(request));
        let (shown, intent) = match &parsed {
            Ok(arguments) => {
                let secrets = tools.secrets(&request.name, arguments);
                let shown = if secrets.is_some_and(|it| it.is_empty()) {
                    arguments.clone()
                } else {
                    tools.log_arguments(&request.name, arguments)
                };
                (shown, tools.present_call(&request.name, arguments))
            }
            Err(_) => (Value::Null, None),
        };
        self.observer.event(LoopEvent::CallBegan {
            name: &request.name,
            arguments: &shown,
            intent,
        });
        let (result, intent) = match parsed {
            Ok(arguments) => {
                let call = ToolCall { arguments: arguments.clone(), ..call };
                let result = tools.call_hiding(call, |it| self.secrets.hide_in(it)).await;
                let intent = tools.present_result(&request.name, &arguments, &result);
                (result, intent)
            }
            Err(error) => (tools.reject(&call, error), None),
        };
        self.observer.event(LoopEvent::CallEnded { result: &result, intent });
        let content = result.text();
        let began = self.live_jobs().into_iter().filter(|it| !before.contains(it));
        self.started.extend(began.map(|job| (job, request.clone())));
        self.learn_secrets(request);
        self.history.push(Message::Tool { call_id: request.id.clone(), content });
    }

    fn log(&self, event: Event) {
        let Some(log) = self.parts.log.get() else { return };
        // Of an agent that is ending nothing more is logged, and nothing more is read by its model.
        if let Err(error) = log.append(&self.agent, event)
            && !self.agent.is_ending()
        {
            tracing::warn!(%error, "the session log lacks a message");
        }
    }
}

/// Whether the calls of a reply that ended so are all there. The last of a reply that was cut may be
/// JSON by chance, as a shorter command is a command.
fn complete(reason: &EndReason) -> Result<(), ToolError> {
    let why = match reason {
        EndReason::Length => "the reply was cut at the longest that the model can give",
        EndReason::Other(word) if word == CONTENT_FILTER => {
            "the model's server cut the reply (content_filter)"
        }
        // Servers have words of their own for a reply that is complete.
        _ => return Ok(()),
    };
    let message = format!(
        "{why}, so this call may be incomplete and was not run: send it again whole, in a shorter \
         reply"
    );
    Err(ToolError::new("LoopError", "INCOMPLETE_CALL", message))
}

/// The arguments of a call, if they are JSON. The error quotes nothing of them.
fn arguments(call: &ToolRequest) -> Result<Value, ToolError> {
    if call.arguments.trim().is_empty() {
        return Ok(json!({}));
    }
    serde_json::from_str(&call.arguments).map_err(|error| {
        let message = format!(
            "the arguments of this call are no JSON, so nothing was run: {error}; send the call \
             again with a complete JSON object"
        );
        ToolError::new("LoopError", "INVALID_ARGS", message)
    })
}

impl From<EndReason> for TurnEnd {
    fn from(reason: EndReason) -> Self {
        match reason {
            EndReason::Length => Self::Length,
            EndReason::Other(word) => Self::Other(word),
            _ => Self::Done,
        }
    }
}
