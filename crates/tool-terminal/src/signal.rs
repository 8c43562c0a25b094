//! `terminal_signal`: a signal to the foreground.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

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

/// Most deliveries remembered for their text.
const MOST: usize = 64;

pub(crate) struct Signal {
    host: Host,
    spec: ToolSpec,
    /// The value does not name the signal and its text does: deliveries not yet put into words.
    delivered: Mutex<VecDeque<(i32, terminal::Signal)>>,
}

impl Signal {
    pub(crate) fn new(host: Host) -> Result<Self, DialectError> {
        let spec = ToolSpec {
            name: "terminal_signal".to_owned(),
            description: DESCRIPTION.to_owned(),
            parameters: parameters_of::<Args>()?,
            output: schema::signal(),
        };
        Ok(Self { host, spec, delivered: Mutex::default() })
    }

    fn remember(&self, group: i32, signal: terminal::Signal) {
        let mut delivered = self.delivered.lock().unwrap_or_else(PoisonError::into_inner);
        if delivered.len() == MOST {
            delivered.pop_front();
        }
        delivered.push_back((group, signal));
    }

    fn recall(&self, group: i32) -> Option<terminal::Signal> {
        let mut delivered = self.delivered.lock().unwrap_or_else(PoisonError::into_inner);
        let at = delivered.iter().position(|it| it.0 == group)?;
        delivered.remove(at).map(|it| it.1)
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
        self.remember(target_pgid, signal);
        json(&Delivered { delivered: true, target_pgid }).map(ToolOutput::from)
    }

    fn render(&self, value: &Value) -> String {
        typed(value, |it: &Delivered| {
            let signal = self.recall(it.target_pgid).map_or("the signal", terminal::Signal::name);
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
