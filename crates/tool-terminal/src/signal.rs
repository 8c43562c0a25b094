//! `terminal_signal`: a signal to the foreground.

use dsh_core::async_trait;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
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

const DESCRIPTION: &str = "Send a signal to whatever runs in the foreground of a terminal session, \
also while a terminal_send is still waiting for it. SIGINT is what Ctrl-C would do; SIGTERM and \
SIGKILL are stronger. It reports the process group that got the signal, not whether the program \
ended: see what the waiting terminal_send returns, or terminal_read.";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Args {
    /// Id that `terminal_open` returned.
    session_id: String,
    /// The signal.
    #[schemars(schema_with = "signals")]
    signal: terminal::Signal,
}

fn signals(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": terminal::Signal::ALL.map(terminal::Signal::name) })
}

/// The structured value.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delivered {
    delivered: bool,
    target_pgid: i32,
}

pub(crate) struct Signal {
    host: Host,
    spec: ToolSpec,
}

impl Signal {
    pub(crate) fn new(host: Host) -> Result<Self, DialectError> {
        let spec = ToolSpec {
            name: "terminal_signal".to_owned(),
            description: DESCRIPTION.to_owned(),
            parameters: parameters_of::<Args>()?,
            output: schema::signal(),
        };
        Ok(Self { host, spec })
    }
}

#[async_trait]
impl Tool for Signal {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        let owner = agent(&call)?;
        let Args { session_id: id, signal } = parse(&call.arguments)?;
        session_id(&id)?;
        let receipt = self.host.terminals.signal(owner, &id, signal).await.map_err(refused)?;
        let target_pgid = receipt.target_pgid;
        json(&Delivered { delivered: true, target_pgid }).map(ToolOutput::from)
    }

    fn render(&self, arguments: &Value, value: &Value) -> String {
        typed(value, |it: &Delivered| {
            // The value names the group only.
            let signal = arguments.get("signal").and_then(Value::as_str).unwrap_or("the signal");
            let text = format!("delivered {signal} to foreground process group {}", it.target_pgid);
            text::bound(Keep::Head, &text, self.host.cap)
        })
    }

    fn finalize_content(&self, _result: &ToolResult, content: Content) -> Content {
        self.host.bound(Keep::Head, content)
    }

    fn present_call(&self, _arguments: &Value) -> Option<CallIntent> {
        Some(CallIntent::Generic { kind: ToolKind::Execute })
    }

    fn present_result(&self, _arguments: &Value, result: &ToolResult) -> Option<ResultIntent> {
        (!result.is_error()).then_some(ResultIntent::Generic { kind: ToolKind::Execute })
    }
}
