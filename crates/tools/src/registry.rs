//! Registered tools, what is put around them, and the way into the pipeline.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use agents::Agent;
use anyhow::Context as _;
use dsh_core::{Scope, ScopedMap, scope::ScopeClosed};
use serde_json::Value;
use session_log::EventLog;

use crate::{
    call::{ToolCall, ToolResult},
    intent::{CallIntent, ResultIntent},
    journal::Journal,
    layer::{ExecuteLayer, Guard, PostLayer, PreLayer, ResultObserver},
    pipeline::{self, failed, panicked},
    running::{CancelOnDrop, Running, RunningCalls, Ticket},
    schema::{OutputSchema, ParameterSchema},
    tool::{Tool, ToolError, ToolSpec},
    withheld::withhold_undeclared,
};

/// One tool as an agent sees it.
pub type ToolListing = ToolSpec;

/// The registry and the way into the pipeline.
pub struct ToolRegistry(Arc<Inner>);

/// A registered tool with its compiled schemas.
#[derive(Clone)]
pub(crate) struct Entry {
    id: u64,
    pub(crate) tool: Arc<dyn Tool>,
    parameters: Arc<ParameterSchema>,
    output: Arc<OutputSchema>,
}

pub(crate) struct Inner {
    scope: Scope,
    next: AtomicU64,
    tools: ScopedMap<Entry>,
    pub(crate) pre: ScopedMap<Arc<dyn PreLayer>>,
    pub(crate) execute: ScopedMap<Arc<dyn ExecuteLayer>>,
    pub(crate) guards: ScopedMap<Arc<dyn Guard>>,
    pub(crate) post: ScopedMap<Arc<dyn PostLayer>>,
    pub(crate) observers: ScopedMap<Arc<dyn ResultObserver>>,
    pub(crate) running: Arc<RunningCalls>,
    pub(crate) journal: Journal,
}

impl ToolRegistry {
    /// An empty registry that ends with `scope`: running calls are cancelled and awaited then.
    /// `log` is asked with each call; without a log nothing is written.
    pub fn new(
        scope: &Scope,
        log: impl Fn() -> Option<Arc<dyn EventLog>> + Send + Sync + 'static,
    ) -> Result<Self, ScopeClosed> {
        let running = Arc::<RunningCalls>::default();
        let calls = Arc::clone(&running);
        scope.defer("running tool calls", move || {
            let calls = Arc::clone(&calls);
            async move {
                calls.end("the host is shutting down", |_| true).await;
                Ok(())
            }
        })?;
        Ok(Self(Arc::new(Inner {
            scope: scope.clone(),
            next: AtomicU64::new(0),
            tools: ScopedMap::new("tool"),
            pre: ScopedMap::new("pre-execute layer"),
            execute: ScopedMap::new("execute layer"),
            guards: ScopedMap::new("tool guard"),
            post: ScopedMap::new("post-execute layer"),
            observers: ScopedMap::new("tool result observer"),
            running,
            journal: Journal::new(log),
        })))
    }

    /// Registers a tool for as long as `scope` lives. Its calls still running at the end of the
    /// scope are cancelled and awaited by it.
    ///
    /// Fails for a name that is taken or that no model API takes, for parameters outside of the
    /// small dialect, and for schemas that do not compile.
    pub fn register(&self, scope: &Scope, tool: Arc<dyn Tool>) -> anyhow::Result<()> {
        let spec = tool.spec();
        let name = spec.name.clone();
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        anyhow::ensure!(
            (1..=64).contains(&name.len()) && name.chars().all(fits),
            "tool name {name:?} must be 1 to 64 of the characters a-z, A-Z, 0-9, _ and -"
        );
        let parameters = ParameterSchema::compile(&spec.parameters)
            .with_context(|| format!("parameter schema of tool `{name}`"))?;
        let output = OutputSchema::compile(&spec.output)
            .with_context(|| format!("output schema of tool `{name}`"))?;
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let calls = Arc::clone(&self.0.running);
        let reason = format!("tool `{name}` is being removed");
        // Registered before the entry, so undone after it: no call can start in between.
        let effect = scope.defer(format!("running calls of tool `{name}`"), move || {
            let (calls, reason) = (Arc::clone(&calls), reason.clone());
            async move {
                calls.end(&reason, |call| call.tool == Some(id)).await;
                Ok(())
            }
        })?;
        let (parameters, output) = (Arc::new(parameters), Arc::new(output));
        let entry = Entry { id, tool, parameters, output };
        self.0.tools.contribute(scope, &name, entry).inspect_err(|_| effect.dismiss())?;
        Ok(())
    }

    /// Adds a layer that decides before anything runs.
    pub fn add_pre_layer(
        &self,
        scope: &Scope,
        name: &str,
        layer: Arc<dyn PreLayer>,
    ) -> anyhow::Result<()> {
        self.0.pre.contribute(scope, name, layer)?;
        Ok(())
    }

    /// Adds a layer around guards and body.
    pub fn add_execute_layer(
        &self,
        scope: &Scope,
        name: &str,
        layer: Arc<dyn ExecuteLayer>,
    ) -> anyhow::Result<()> {
        self.0.execute.contribute(scope, name, layer)?;
        Ok(())
    }

    /// Adds a guard.
    pub fn add_guard(
        &self,
        scope: &Scope,
        name: &str,
        guard: Arc<dyn Guard>,
    ) -> anyhow::Result<()> {
        self.0.guards.contribute(scope, name, guard)?;
        Ok(())
    }

    /// Adds a layer that judges results.
    pub fn add_post_layer(
        &self,
        scope: &Scope,
        name: &str,
        layer: Arc<dyn PostLayer>,
    ) -> anyhow::Result<()> {
        self.0.post.contribute(scope, name, layer)?;
        Ok(())
    }

    /// Adds an observer of results.
    pub fn add_observer(
        &self,
        scope: &Scope,
        name: &str,
        observer: Arc<dyn ResultObserver>,
    ) -> anyhow::Result<()> {
        self.0.observers.contribute(scope, name, observer)?;
        Ok(())
    }

    /// The tools an agent sees, sorted by name; all of them without an agent.
    pub fn list(&self, agent: Option<&Agent>) -> Vec<ToolListing> {
        let names = self.0.names(agent);
        names.iter().filter_map(|name| Some(self.0.tools.get(name)?.tool.spec().clone())).collect()
    }

    /// Runs one call through the whole pipeline. Dropping the future cancels the call; its body
    /// is awaited in the background all the same.
    ///
    /// Calls with an agent are logged. A call of an agent whose end has begun is refused with
    /// `OWNER_NOT_LIVE`, a call while the host shuts down with `SHUTTING_DOWN`.
    pub async fn call(&self, call: ToolCall) -> ToolResult {
        self.call_hiding(call, |logged| logged).await
    }

    /// The same, where `hide` has the last word on the arguments that are logged before it has run.
    pub async fn call_hiding(
        &self,
        call: ToolCall,
        hide: impl FnOnce(Value) -> Value + Send,
    ) -> ToolResult {
        let inner = Arc::clone(&self.0);
        let entry = inner.tools.get(&call.name);
        let (ticket, entry) = match inner.admit(&call) {
            Ok(admitted) => admitted,
            Err(error) => return pipeline::refuse(&inner, entry.as_ref(), &call, error),
        };
        let logged = hide(pipeline::loggable(entry.as_ref(), &call.arguments));
        let given_up = CancelOnDrop::new(call.cancel.clone(), "the caller is gone");
        let task = tokio::spawn(async move {
            let result = Box::pin(pipeline::run(&inner, entry.as_ref(), call, logged)).await;
            drop(ticket);
            result
        });
        let result = task.await;
        given_up.disarm();
        result.unwrap_or_else(|_| {
            let error = panicked("the tool pipeline");
            ToolResult::failure(error.message, error.info)
        })
    }

    /// Ends a call with `error` in place of running it, for a caller that finds it cannot be run: it
    /// is logged and shown to observers like every call, and bounded by its tool.
    pub fn reject(&self, call: &ToolCall, error: ToolError) -> ToolResult {
        let entry = self.0.tools.get(&call.name);
        match &call.agent {
            Some(agent) if agent.is_ending() => {
                pipeline::refuse(&self.0, entry.as_ref(), call, not_live(agent))
            }
            _ => pipeline::reject(&self.0, entry.as_ref(), call, error),
        }
    }

    /// What of a call's arguments may be logged or shown before it has run.
    pub fn log_arguments(&self, name: &str, arguments: &Value) -> Value {
        pipeline::loggable(self.0.tools.get(name).as_ref(), arguments)
    }

    /// Texts in a call's arguments that nothing else may show; see [`Tool::secrets`]. None where
    /// there is no such tool, and so nobody who could tell.
    pub fn secrets(&self, name: &str, arguments: &Value) -> Option<Vec<String>> {
        Some(self.0.tools.get(name)?.tool.secrets(arguments))
    }

    /// How to show a call.
    pub fn present_call(&self, name: &str, arguments: &Value) -> Option<CallIntent> {
        self.0.tools.get(name)?.tool.present_call(arguments)
    }

    /// How to show its result.
    pub fn present_result(
        &self,
        name: &str,
        arguments: &Value,
        result: &ToolResult,
    ) -> Option<ResultIntent> {
        self.0.tools.get(name)?.tool.present_result(arguments, result)
    }
}

impl Inner {
    fn admit(&self, call: &ToolCall) -> Result<(Ticket, Option<Entry>), ToolError> {
        self.running.enter(|| {
            if self.scope.token().is_cancelled() {
                return Err(failed("SHUTTING_DOWN", "the host is shutting down"));
            }
            if let Some(agent) = &call.agent
                && agent.is_ending()
            {
                return Err(not_live(agent));
            }
            let entry = self.tools.get(&call.name);
            let running = Running {
                cancel: call.cancel.clone(),
                tool: entry.as_ref().map(|entry| entry.id),
                agent: call.agent.as_ref().map(|agent| agent.instance()),
            };
            Ok((running, entry))
        })
    }

    /// Names of the tools an agent sees, sorted.
    pub(crate) fn names(&self, agent: Option<&Agent>) -> Vec<String> {
        let mut names = self.tools.names();
        names.retain(|name| agent.is_none_or(|agent| agent.sees_tool(name)));
        names.sort();
        names
    }
}

pub(crate) fn not_live(agent: &Agent) -> ToolError {
    failed("OWNER_NOT_LIVE", format!("agent `{}` has ended and can call no tools", agent.id()))
}

impl Entry {
    pub(crate) fn name(&self) -> &str {
        &self.tool.spec().name
    }

    /// What of `arguments` may be logged: what the tool says of what it declares, nothing when it
    /// fails to say it.
    pub(crate) fn log_arguments(&self, arguments: &Value) -> Value {
        let told = catch_unwind(AssertUnwindSafe(|| self.tool.log_arguments(arguments)));
        let mut logged = told.unwrap_or_default();
        withhold_undeclared(&self.tool.spec().parameters, arguments, &mut logged);
        logged
    }

    /// The arguments as the body gets them. Only values that are also in `logged` are quoted in
    /// the error.
    pub(crate) fn check_arguments(
        &self,
        arguments: Value,
        logged: &Value,
    ) -> Result<Value, ToolError> {
        self.parameters
            .check(arguments, logged)
            .map_err(|problems| failed("INVALID_ARGS", format!("invalid arguments: {problems}")))
    }

    pub(crate) fn check_output(&self, value: &Value) -> Result<(), ToolError> {
        self.output.check(value).map_err(|problems| {
            let name = self.name();
            let message = format!(
                "tool `{name}` returned a value that breaks its own output schema: {problems}"
            );
            failed("INVALID_OUTPUT", message)
        })
    }
}
