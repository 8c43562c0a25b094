//! One call from its first log line to its last.
//!
//! log `tool/call` → validation → pre-layers → execute layers around (validation of rewritten
//! arguments → guards → body) → post-layers → normalisation → the tool's `finalize_content` →
//! observers → log `tool/result`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt as _;
use serde_json::Value;
use session_log::Event;

use crate::{
    call::{ToolCall, ToolResult},
    core::Core,
    layer::{Next, Outcome, PostDecision, PreDecision},
    registry::{Entry, Inner, not_live},
    text::{self, Keep},
    tool::ToolError,
    withheld::withhold,
};

/// Name of the errors the pipeline itself makes.
const ERROR_NAME: &str = "ToolError";

/// A failure found by the pipeline.
pub(crate) fn failed(code: &str, message: impl Into<String>) -> ToolError {
    ToolError::new(ERROR_NAME, code, message)
}

pub(crate) fn denied(reason: &str) -> ToolError {
    failed("DENIED", format!("denied: {reason}"))
}

pub(crate) fn cancelled(reason: &str) -> ToolError {
    failed("CANCELLED", format!("cancelled before anything ran: {reason}"))
}

pub(crate) fn panicked(what: &str) -> ToolError {
    failed(
        "PANIC",
        format!("{what} failed by a bug of its own (a panic); the host's own log says where"),
    )
}

/// A result and what to log with it.
struct Finished {
    result: ToolResult,
    log_arguments: Option<Value>,
}

impl From<ToolError> for Finished {
    fn from(error: ToolError) -> Self {
        Self {
            result: ToolResult::failure(error.message, error.info),
            log_arguments: error.log_arguments.map(|arguments| *arguments),
        }
    }
}

/// What of a call's arguments may be logged. `entry` is the tool of that name, if there is one.
pub(crate) fn loggable(entry: Option<&Entry>, arguments: &Value) -> Value {
    match entry {
        Some(entry) => entry.log_arguments(arguments),
        // A misspelt tool may have been meant to take a secret.
        None => withhold(arguments, |_, _| false),
    }
}

/// Runs an admitted call. `entry` is the tool of that name, whether or not the agent sees it;
/// `logged` is what of the arguments is logged before.
pub(crate) async fn run(
    inner: &Inner,
    entry: Option<&Entry>,
    call: ToolCall,
    logged: Value,
) -> ToolResult {
    let log = inner.journal.open(call.agent.as_deref());
    if let Some(log) = &log {
        log.append(Event::tool_call(&call.call_id, &call.name, &logged));
    }
    let finished = match call.agent.as_deref() {
        Some(agent) if inner.running.follow(agent).is_err() => not_live(agent).into(),
        _ => inside(inner, entry, &call, &logged).await,
    };
    let result = finish(inner, entry, &call, finished.result);
    if let Some(log) = &log {
        log.append(result_event(&call, &result, finished.log_arguments));
    }
    result
}

/// Ends a call with `error` in place of running it.
pub(crate) fn reject(
    inner: &Inner,
    entry: Option<&Entry>,
    call: &ToolCall,
    error: ToolError,
) -> ToolResult {
    let log = inner.journal.open(call.agent.as_deref());
    if let Some(log) = &log {
        let logged = loggable(entry, &call.arguments);
        log.append(Event::tool_call(&call.call_id, &call.name, &logged));
    }
    let result = refuse(inner, entry, call, error);
    if let Some(log) = &log {
        log.append(result_event(call, &result, None));
    }
    result
}

/// The end of a call that was not admitted; writes to no log.
pub(crate) fn refuse(
    inner: &Inner,
    entry: Option<&Entry>,
    call: &ToolCall,
    error: ToolError,
) -> ToolResult {
    finish(inner, entry, call, Finished::from(error).result)
}

fn result_event(call: &ToolCall, result: &ToolResult, arguments: Option<Value>) -> Event {
    Event::tool_result(session_log::LoggedResult {
        call_id: &call.call_id,
        name: &call.name,
        arguments,
        is_error: result.is_error(),
        content: json(&result.content),
        value: result.value.clone(),
        error: result.error.as_ref().map(json),
    })
}

fn json(value: &impl serde::Serialize) -> Value {
    // Plain data with string keys: serialization cannot fail.
    serde_json::to_value(value).unwrap_or_default()
}

async fn inside(inner: &Inner, entry: Option<&Entry>, call: &ToolCall, logged: &Value) -> Finished {
    let agent = call.agent.as_deref();
    let Some(entry) = entry.filter(|_| agent.is_none_or(|agent| agent.sees_tool(&call.name)))
    else {
        return unknown(&call.name, &inner.names(agent)).into();
    };
    match decide(inner, entry, call, logged).await {
        Ok((call, validated)) => execute(inner, entry, &call, &validated).await,
        Err(error) => error.into(),
    }
}

/// Most bytes that the text about an unknown tool has, and that it repeats of the name: no tool bounds
/// it, and both the name and the list may be anything.
const UNKNOWN_BYTES: usize = 4_096;
const UNKNOWN_NAME_BYTES: usize = 128;

fn unknown(name: &str, names: &[String]) -> ToolError {
    let known = match names {
        [] => "no tools are mounted".to_owned(),
        names => format!("the tools are {}", names.join(", ")),
    };
    let shown = text::head(name, UNKNOWN_NAME_BYTES);
    let rest = if shown.len() < name.len() { " and more" } else { "" };
    let message = format!("unknown tool {shown:?}{rest}: {known}");
    failed("UNKNOWN_TOOL", text::bound(Keep::Head, &message, UNKNOWN_BYTES))
}

/// Validates and asks the pre-layers. Returns the call with the arguments they want, and the
/// arguments that were validated.
async fn decide(
    inner: &Inner,
    entry: &Entry,
    call: &ToolCall,
    logged: &Value,
) -> Result<(ToolCall, Value), ToolError> {
    let validated = entry.check_arguments(call.arguments.clone(), logged)?;
    let mut call = ToolCall { arguments: validated.clone(), ..call.clone() };
    for layer in inner.pre.values() {
        let deciding = AssertUnwindSafe(layer.pre_execute(&call)).catch_unwind();
        let decision = tokio::select! {
            biased;
            () = call.cancel.cancelled() => {
                return Err(cancelled(call.cancel.reason().unwrap_or_default()));
            }
            decision = deciding => decision.map_err(|_| panicked("a layer before the tool"))?,
        };
        match decision {
            PreDecision::Allow => {}
            PreDecision::Deny(reason) => return Err(denied(&reason)),
            PreDecision::Ask(question) => {
                return Err(denied(&format!("{question} (nobody can be asked here)")));
            }
            PreDecision::Rewrite(arguments) => call.arguments = arguments,
        }
    }
    Ok((call, validated))
}

async fn execute(inner: &Inner, entry: &Entry, call: &ToolCall, validated: &Value) -> Finished {
    let layers = inner.execute.values();
    let core = Core::new(entry, inner.guards.values(), call, validated);
    let next = Next { layers: &layers, core: &core };
    let outcome = AssertUnwindSafe(Box::pin(next.run(call.clone()))).catch_unwind().await;
    core.settle().await;
    let outcome = outcome.unwrap_or_else(|_| Err(panicked("a layer around the tool")));
    let mut finished = normalise(entry, &call.arguments, outcome);
    for layer in inner.post.values() {
        let judging = AssertUnwindSafe(layer.post_execute(call, &finished.result)).catch_unwind();
        match judging.await {
            Ok(decision) => finished.result = apply(entry, finished.result, decision),
            Err(_) => finished.result = Finished::from(panicked("a layer after the tool")).result,
        }
    }
    finished
}

fn normalise(entry: &Entry, arguments: &Value, outcome: Outcome) -> Finished {
    let output = match outcome {
        Ok(output) => output,
        Err(error) => return error.into(),
    };
    let log_arguments = output.log_arguments;
    let checked = entry.check_output(&output.value).and_then(|()| {
        catch_unwind(AssertUnwindSafe(|| entry.tool.render(arguments, &output.value)))
            .map_err(|_| panicked(&format!("tool `{}`", entry.name())))
    });
    match checked {
        Ok(text) => {
            let content = vec![crate::ContentBlock::text(text)];
            let result = ToolResult { content, value: Some(output.value), error: None };
            Finished { result, log_arguments }
        }
        Err(error) => Finished { log_arguments, ..error.into() },
    }
}

fn apply(entry: &Entry, mut result: ToolResult, decision: PostDecision) -> ToolResult {
    match decision {
        PostDecision::Accept => {}
        PostDecision::AddContext(blocks) => result.content.extend(blocks),
        PostDecision::Block(reason) => {
            return Finished::from(failed("BLOCKED", format!("blocked: {reason}"))).result;
        }
        PostDecision::Replace { content, value } => {
            result.content = content;
            let text = result.text();
            if let Some(error) = &mut result.error {
                error.message = text;
            } else if let Some(Err(error)) = value.as_ref().map(|it| entry.check_output(it)) {
                return Finished::from(error).result;
            } else {
                result.value = value;
            }
        }
    }
    result
}

/// The tool's last word on the content, and the observers.
fn finish(
    inner: &Inner,
    entry: Option<&Entry>,
    call: &ToolCall,
    mut result: ToolResult,
) -> ToolResult {
    if let Some(entry) = entry {
        let content = result.content.clone();
        let finalized =
            catch_unwind(AssertUnwindSafe(|| entry.tool.finalize_content(&result, content)));
        match finalized {
            Ok(content) => result.content = content,
            // The content is in no known state, perhaps longer than the tool's bound.
            Err(_) => {
                result = Finished::from(panicked(&format!("tool `{}`", entry.name()))).result;
            }
        }
    }
    for observer in inner.observers.values() {
        if catch_unwind(AssertUnwindSafe(|| observer.tool_result(call, &result))).is_err() {
            tracing::error!(tool = call.name, "an observer of tool results panicked");
        }
    }
    result
}
