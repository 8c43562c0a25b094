//! `terminal_close`: the end of a session.

use std::sync::Arc;

use agents::Agent;
use dsh_core::Cancel;
use schemars::JsonSchema;
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

const DESCRIPTION: &str = "Close a terminal session: its shell and every process started in it \
are ended, those in the background too, and its output is forgotten. Returns when all of them are \
gone. An error names what is left; then close again.";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Args {
    /// Id that `terminal_open` returned.
    session_id: String,
}

/// The structured value.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Closed {
    session_id: String,
    outcome: Outcome,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Outcome {
    Closed,
    AlreadyClosing,
}

pub(crate) struct Close;

impl Simple for Close {
    const NAME: &'static str = "terminal_close";
    const DESCRIPTION: &'static str = DESCRIPTION;
    const KIND: ToolKind = ToolKind::Delete;
    type Host = Host;
    type Args = Args;
    type Value = Closed;

    fn output(_: &Host) -> Value {
        schema::close()
    }

    async fn run(
        host: &Host,
        owner: &Arc<Agent>,
        Args { session_id: id }: Args,
        _: &Cancel,
    ) -> Result<Closed, ToolError> {
        session_id(&id)?;
        let closed = host.terminals.kill(owner, &id, "terminal_close").await.map_err(refused)?;
        let outcome = if closed { Outcome::Closed } else { Outcome::AlreadyClosing };
        Ok(Closed { session_id: id, outcome })
    }

    fn text(_: &Value, Closed { session_id, outcome }: &Closed, cap: usize) -> String {
        let text = match outcome {
            Outcome::Closed => format!("closed terminal session {session_id}"),
            Outcome::AlreadyClosing => format!("terminal session {session_id} was already closing"),
        };
        text::bound(Keep::Head, &text, cap)
    }
}
