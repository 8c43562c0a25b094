//! One reply, from its first event to its last.

use dsh_core::Cancel;
use futures_util::StreamExt as _;
use model::{EndReason, ModelError, ModelEvent, Reply, ToolRequest, Usage};

use crate::event::{LoopEvent, LoopObserver};

/// A reply, or what there was of it.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) calls: Vec<ToolRequest>,
    pub(crate) end: End,
}

/// Why there is no more of it.
#[derive(Debug)]
pub(crate) enum End {
    /// It is complete.
    Reason(EndReason),
    /// Nobody wants more of it. Its calls are not to be run.
    Cancelled,
}

/// Listens to the end of a reply. A cancellation drops the request. `told` is set once some of the
/// reply itself has come.
pub(crate) async fn listen(
    mut reply: Reply,
    observer: &dyn LoopObserver,
    told: &mut bool,
    cancel: &Cancel,
) -> Result<Said, ModelError> {
    let (mut text, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
    let mut usage: Option<Usage> = None;
    let end = loop {
        let event = tokio::select! {
            biased;
            () = cancel.cancelled() => break End::Cancelled,
            event = reply.next() => event,
        };
        let event = event.transpose()?;
        *told |= event.as_ref().is_some_and(|it| !matches!(it, ModelEvent::Retry { .. }));
        match event {
            Some(ModelEvent::Text(piece)) => {
                observer.event(LoopEvent::Text(&piece));
                text.push_str(&piece);
            }
            Some(ModelEvent::Reasoning(thought)) => reasoning = thought,
            Some(ModelEvent::ToolCall(call)) => calls.push(call),
            Some(ModelEvent::Usage(tokens)) => usage = Some(tokens),
            Some(ModelEvent::Retry { reason, delay }) => {
                observer.event(LoopEvent::Retry { reason: &reason, delay });
            }
            Some(ModelEvent::End(reason)) => break End::Reason(reason),
            Some(_) => {}
            None => {
                let message = "the model's reply stopped without an end: try again";
                return Err(ModelError::Cut(message.to_owned()));
            }
        }
    };
    observer.event(LoopEvent::Replied(usage));
    Ok(Said { text, reasoning, calls, end })
}
