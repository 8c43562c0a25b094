//! The innermost part of a call: final validation, guards, and the body on a task of its own.
//!
//! Guarantee: the body runs at most once, and once it started [`Core::settle`] awaits its end, even
//! when everything around it has been dropped.

use std::sync::{Arc, Mutex};

use dsh_core::lock;
use serde_json::Value;
use tokio::{sync::oneshot, task::JoinHandle};

use crate::{
    call::ToolCall,
    layer::{Guard, Outcome},
    pipeline::{cancelled, denied, panicked},
    registry::Entry,
    running::CancelOnDrop,
};

/// What [`Next`](crate::Next) leads to.
pub(crate) struct Core<'a> {
    entry: &'a Entry,
    guards: Vec<Arc<dyn Guard>>,
    call: &'a ToolCall,
    validated: &'a Value,
    body: Mutex<Option<JoinHandle<()>>>,
}

impl<'a> Core<'a> {
    /// The inside of `call`, whose arguments were `validated` before any layer saw them.
    pub(crate) fn new(
        entry: &'a Entry,
        guards: Vec<Arc<dyn Guard>>,
        call: &'a ToolCall,
        validated: &'a Value,
    ) -> Self {
        Self { entry, guards, call, validated, body: Mutex::default() }
    }

    /// Runs guards and body with the arguments of `call`.
    pub(crate) async fn run(&self, call: ToolCall) -> Outcome {
        let ToolCall { mut arguments, cancel, progress, .. } = call;
        if arguments != *self.validated {
            let logged = self.entry.log_arguments(&arguments);
            arguments = self.entry.check_arguments(arguments, &logged)?;
        }
        // A layer cannot turn the call into one of another tool or agent.
        let call = ToolCall {
            call_id: self.call.call_id.clone(),
            name: self.call.name.clone(),
            agent: self.call.agent.clone(),
            arguments,
            cancel,
            progress,
        };
        if let Some(reason) = self.guards.iter().find_map(|guard| guard.deny(&call)) {
            return Err(denied(&reason));
        }
        if let Some(reason) = call.cancel.reason() {
            return Err(cancelled(reason));
        }
        self.run_body(call).await
    }

    async fn run_body(&self, call: ToolCall) -> Outcome {
        let (sender, receiver) = oneshot::channel();
        let tool = Arc::clone(&self.entry.tool);
        let abandoned = CancelOnDrop::new(call.cancel.clone(), "the call was given up");
        let task = tokio::spawn(async move {
            // With nobody listening any more the work has ended well all the same.
            sender.send(tool.execute(call).await).ok();
        });
        *lock(&self.body) = Some(task);
        let outcome = receiver.await;
        abandoned.disarm();
        outcome.unwrap_or_else(|_| Err(panicked(&format!("tool `{}`", self.entry.name()))))
    }

    /// Resolves when no body runs any more.
    pub(crate) async fn settle(&self) {
        let body = lock(&self.body).take();
        if let Some(body) = body
            && let Err(error) = body.await
        {
            tracing::error!(tool = self.entry.name(), %error, "a tool body did not return");
        }
    }
}
