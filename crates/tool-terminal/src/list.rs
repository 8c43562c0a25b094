//! `terminal_list`: the caller's sessions.

use dsh_core::async_trait;
use schemars::JsonSchema;
use serde_json::Value;
use tools::{
    CallIntent, Content, DialectError, ResultIntent, Tool, ToolCall, ToolError, ToolKind,
    ToolOutput, ToolResult, ToolSpec, parameters_of,
};

use crate::{
    Host,
    arguments::agent,
    schema,
    text::{self, Keep},
    value::{ListedSession, json, typed},
};

const DESCRIPTION: &str = "List your terminal sessions, one a line: id, name, kind, whether the \
shell runs or how it exited, and its process id. An exited session can still be read until it is \
closed.";

#[derive(JsonSchema)]
struct Args {}

pub(crate) struct List {
    host: Host,
    spec: ToolSpec,
}

impl List {
    pub(crate) fn new(host: Host) -> Result<Self, DialectError> {
        let spec = ToolSpec {
            name: "terminal_list".to_owned(),
            description: DESCRIPTION.to_owned(),
            parameters: parameters_of::<Args>()?,
            output: schema::list(),
        };
        Ok(Self { host, spec })
    }
}

#[async_trait]
impl Tool for List {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        let owner = agent(&call)?;
        let sessions: Vec<ListedSession> =
            self.host.terminals.list(owner).into_iter().map(ListedSession::from).collect();
        json(&sessions).map(ToolOutput::from)
    }

    fn render(&self, _: &Value, value: &Value) -> String {
        typed(value, |it: &Vec<ListedSession>| text::list(it, self.host.cap))
    }

    fn finalize_content(&self, _result: &ToolResult, content: Content) -> Content {
        self.host.bound(Keep::Head, content)
    }

    fn present_call(&self, _arguments: &Value) -> Option<CallIntent> {
        Some(CallIntent::Generic { kind: ToolKind::Read })
    }

    fn present_result(&self, _arguments: &Value, result: &ToolResult) -> Option<ResultIntent> {
        (!result.is_error()).then_some(ResultIntent::Generic { kind: ToolKind::Read })
    }
}
