//! `terminal_close`: the end of a session.

use dsh_core::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tools::{
    CallIntent, Content, DialectError, ResultIntent, Tool, ToolCall, ToolError, ToolKind,
    ToolOutput, ToolResult, ToolSpec, parameters_of,
};

use crate::{
    Host,
    arguments::{agent, parse, refused, session_id},
    schema,
    text::{self, Keep},
    value::{json, typed},
};

const DESCRIPTION: &str = "Close a terminal session: its shell and every process started in it \
are ended, those in the background too, and its output is forgotten. Returns when all of them are \
gone. An error names what is left; then close again.";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Args {
    /// Id that `terminal_open` returned.
    session_id: String,
}

/// The structured value.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Closed {
    session_id: String,
    outcome: Outcome,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Outcome {
    Closed,
    AlreadyClosing,
}

pub(crate) struct Close {
    host: Host,
    spec: ToolSpec,
}

impl Close {
    pub(crate) fn new(host: Host) -> Result<Self, DialectError> {
        let spec = ToolSpec {
            name: "terminal_close".to_owned(),
            description: DESCRIPTION.to_owned(),
            parameters: parameters_of::<Args>()?,
            output: schema::close(),
        };
        Ok(Self { host, spec })
    }
}

#[async_trait]
impl Tool for Close {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        let owner = agent(&call)?;
        let Args { session_id: id } = parse(&call.arguments)?;
        session_id(&id)?;
        let closed =
            self.host.terminals.kill(owner, &id, "terminal_close").await.map_err(refused)?;
        let outcome = if closed { Outcome::Closed } else { Outcome::AlreadyClosing };
        json(&Closed { session_id: id, outcome }).map(ToolOutput::from)
    }

    fn render(&self, _: &Value, value: &Value) -> String {
        typed(value, |Closed { session_id, outcome }: &Closed| {
            let text = match outcome {
                Outcome::Closed => format!("closed terminal session {session_id}"),
                Outcome::AlreadyClosing => {
                    format!("terminal session {session_id} was already closing")
                }
            };
            text::bound(Keep::Head, &text, self.host.cap)
        })
    }

    fn finalize_content(&self, _result: &ToolResult, content: Content) -> Content {
        self.host.bound(Keep::Head, content)
    }

    fn present_call(&self, _arguments: &Value) -> Option<CallIntent> {
        Some(CallIntent::Generic { kind: ToolKind::Delete })
    }

    fn present_result(&self, _arguments: &Value, result: &ToolResult) -> Option<ResultIntent> {
        (!result.is_error()).then_some(ResultIntent::Generic { kind: ToolKind::Delete })
    }
}
