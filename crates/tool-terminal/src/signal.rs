//! `terminal_signal`: a signal to the foreground.

use std::sync::Arc;

use agents::Agent;
use dsh_core::Cancel;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tools::{ToolError, ToolKind, simple::Simple};

use crate::{
    Host,
    arguments::session_id,
    family::refused,
    schema,
    text::{self, Keep},
};

const DESCRIPTION: &str = "Send a signal to whatever runs in the foreground of a terminal session, \
also while a terminal_send is still waiting for it. SIGINT is what Ctrl-C would do; SIGTERM and \
SIGKILL are stronger. It reports the process group that got the signal, not whether the program \
ended: see what the waiting terminal_send returns, or terminal_read.";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Args {
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
pub(crate) struct Delivered {
    delivered: bool,
    target_pgid: i32,
}

pub(crate) struct Signal;

impl Simple for Signal {
    const NAME: &'static str = "terminal_signal";
    const DESCRIPTION: &'static str = DESCRIPTION;
    const KIND: ToolKind = ToolKind::Execute;
    type Host = Host;
    type Args = Args;
    type Value = Delivered;

    fn output(_: &Host) -> Value {
        schema::signal()
    }

    async fn run(
        host: &Host,
        owner: &Arc<Agent>,
        Args { session_id: id, signal }: Args,
        _: &Cancel,
    ) -> Result<Delivered, ToolError> {
        session_id(&id)?;
        let receipt = host.terminals.signal(owner, &id, signal).await.map_err(refused)?;
        Ok(Delivered { delivered: true, target_pgid: receipt.target_pgid })
    }

    fn text(arguments: &Value, value: &Delivered, cap: usize) -> String {
        // The value names the group only.
        let signal = arguments.get("signal").and_then(Value::as_str).unwrap_or("the signal");
        let text = format!("delivered {signal} to foreground process group {}", value.target_pgid);
        text::bound(Keep::Head, &text, cap)
    }
}
