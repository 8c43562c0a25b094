//! A scripted tool, an in-memory trace, and a registry with a log in a temporary folder.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use agents::{Agent, AgentRegistry, AgentSpec};
use dsh_core::{Cancel, Scope, async_trait};
use serde_json::{Value, json};
use session_log::{EventLog, FileLog, read_log};
use tokio::sync::Notify;
use tools::{
    Content, ContentBlock, Tool, ToolCall, ToolError, ToolOutput, ToolRegistry, ToolResult,
    ToolSpec,
};

/// What happened, in order.
#[derive(Clone, Default)]
pub(crate) struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    pub(crate) fn push(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A tool whose body does what its `do` argument says.
pub(crate) struct Script {
    spec: ToolSpec,
    trace: Trace,
    /// Lets a body that waits go on.
    pub(crate) go: Arc<Notify>,
    /// Told when a body has begun to wait.
    pub(crate) waiting: Arc<Notify>,
}

impl Script {
    pub(crate) fn new(name: &str, trace: &Trace) -> Arc<Self> {
        Arc::new(Self {
            spec: ToolSpec {
                name: name.into(),
                description: "Does as it is told.".into(),
                parameters: json!({
                    "type": "object",
                    "properties": {
                        "do": { "type": "string" },
                        "secret": { "type": "string" },
                        "count": { "type": "number" },
                    },
                    "required": ["do"],
                }),
                output: json!({ "type": "string" }),
            },
            trace: trace.clone(),
            go: Arc::default(),
            waiting: Arc::default(),
        })
    }
}

#[async_trait]
impl Tool for Script {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        self.trace.push(format!("body {}", call.arguments));
        let held_back = || json!({ "secret": call.arguments["secret"] });
        match call.arguments["do"].as_str().unwrap() {
            "fail" => Err(ToolError::new("ScriptError", "SCRIPTED", "as you said")
                .with_log_arguments(held_back())),
            "panic" => panic!("as you said"),
            "misbehave" => Ok(json!(1).into()),
            "reveal" => Ok(ToolOutput { value: json!("told"), log_arguments: Some(held_back()) }),
            "wait" => {
                self.waiting.notify_one();
                call.cancel.cancelled().await;
                self.trace.push("body cancelled");
                self.go.notified().await;
                self.trace.push("body over");
                let reason = call.cancel.reason().unwrap_or_default().to_owned();
                Err(ToolError::new("ScriptError", "CANCELLED", reason))
            }
            other => Ok(json!(other).into()),
        }
    }

    fn render(&self, _: &Value, value: &Value) -> String {
        let text = value.as_str().unwrap();
        assert_ne!(text, "panic in render");
        text.to_owned()
    }

    fn finalize_content(&self, result: &ToolResult, content: Content) -> Content {
        self.trace.push("finalize");
        assert_ne!(result.text(), "panic in finalize");
        content
            .into_iter()
            .map(|ContentBlock::Text { text }| ContentBlock::text(format!("<{text}>")))
            .collect()
    }

    fn log_arguments(&self, arguments: &Value) -> Value {
        let mut arguments = arguments.clone();
        for (name, value) in arguments.as_object_mut().into_iter().flatten() {
            assert_ne!(value, "panic in log_arguments");
            if !["do", "count"].contains(&name.as_str()) {
                *value = json!("held back");
            }
        }
        arguments
    }
}

pub(crate) struct Fixture {
    home: tempfile::TempDir,
    pub(crate) scope: Scope,
    /// Scope of the tool `script`.
    pub(crate) plugin: Scope,
    pub(crate) agents: Arc<AgentRegistry>,
    log: Arc<FileLog>,
    pub(crate) tools: Arc<ToolRegistry>,
    pub(crate) script: Arc<Script>,
    pub(crate) trace: Trace,
    pub(crate) agent: Arc<Agent>,
}

pub(crate) fn fixture() -> Fixture {
    let home = tempfile::tempdir().unwrap();
    let scope = Scope::root("test");
    let agents = Arc::new(AgentRegistry::new(scope.clone()));
    let log = Arc::new(FileLog::new(home.path().into()));
    let api: Arc<dyn EventLog> = log.clone();
    let tools = Arc::new(ToolRegistry::new(&scope, move || Some(Arc::clone(&api))).unwrap());
    let plugin = scope.child("plugin").unwrap();
    let trace = Trace::default();
    let script = Script::new("script", &trace);
    tools.register(&plugin, script.clone()).unwrap();
    let agent =
        agents.create(AgentSpec { id: Some("main".into()), workspace_root: "/w".into() }).unwrap();
    Fixture { home, scope, plugin, agents, log, tools, script, trace, agent }
}

impl Fixture {
    pub(crate) fn call(&self, arguments: Value) -> ToolCall {
        ToolCall {
            call_id: "c1".into(),
            name: "script".into(),
            arguments,
            agent: Some(Arc::clone(&self.agent)),
            cancel: Cancel::new(),
            progress: None,
        }
    }

    pub(crate) async fn run(&self, arguments: Value) -> ToolResult {
        self.tools.call(self.call(arguments)).await
    }

    /// Starts a call whose body waits to be cancelled and then for `script.go`.
    pub(crate) async fn start_waiting(&self) -> (Cancel, tokio::task::JoinHandle<ToolResult>) {
        let call = self.call(json!({ "do": "wait" }));
        let cancel = call.cancel.clone();
        let tools = Arc::clone(&self.tools);
        let task = tokio::spawn(async move { tools.call(call).await });
        within(self.script.waiting.notified()).await;
        (cancel, task)
    }

    pub(crate) fn log_file(&self) -> PathBuf {
        self.log.folder(&self.agent).join("session.jsonl.zstd")
    }

    /// `(type, data)` of the events so far, without the header.
    pub(crate) fn events(&self) -> Vec<(String, Value)> {
        let lines = read_log(&self.log_file()).unwrap();
        let event =
            |line: &Value| (line["type"].as_str().unwrap().to_owned(), line["data"].clone());
        lines[1..].iter().map(event).collect()
    }

    /// Puts a file where the folder of all logs belongs.
    pub(crate) fn break_log(&self) {
        std::fs::write(self.home.path().join("sessions"), "").unwrap();
    }

    pub(crate) async fn end(self) {
        within(self.scope.dispose()).await.unwrap();
    }
}

/// The code of an error, empty for a success.
pub(crate) fn code(result: &ToolResult) -> &str {
    result.error.as_ref().map_or("", |error| error.info.code.as_str())
}

/// A guard against hanging, not a measurement.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.unwrap()
}
