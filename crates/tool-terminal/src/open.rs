//! `terminal_open`: a new session.

use std::sync::Arc;

use agents::Agent;
use dsh_core::Cancel;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use terminal::SpawnRequest;
use tools::{ToolError, ToolKind, simple::Simple};

use crate::{
    Host,
    family::{invalid, refused},
    schema, text,
    value::OpenValue,
};

const DESCRIPTION: &str = "Open a persistent terminal session: a real shell on a pseudo-terminal \
that keeps its working directory, variables and running programs from one call to the next. \
Returns the session id that the other terminal tools take, then what the shell printed at its \
start. Close the session with terminal_close when you no longer need it.";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// Kind of session, usually `shell`. The error for an unknown one lists the kinds there are.
    #[serde(rename = "type")]
    kind: String,
    /// A name to recognise the session by in `terminal_list`; unique among your sessions.
    name: Option<String>,
    /// Directory to start in. A relative one is taken from the workspace root, which is also the
    /// default.
    cwd: Option<String>,
}

pub(crate) struct Open;

impl Simple for Open {
    const NAME: &'static str = "terminal_open";
    const DESCRIPTION: &'static str = DESCRIPTION;
    const KIND: ToolKind = ToolKind::Execute;
    type Host = Host;
    type Args = Args;
    type Value = OpenValue;

    fn output(_: &Host) -> Value {
        schema::open()
    }

    async fn run(
        host: &Host,
        owner: &Arc<Agent>,
        Args { kind, name, cwd }: Args,
        cancel: &Cancel,
    ) -> Result<OpenValue, ToolError> {
        if kind.is_empty() {
            return Err(invalid(format_args!(
                r#""type" is empty: available types are {}"#,
                host.terminals.list_backends().join(", ")
            )));
        }
        if name.as_ref().is_some_and(String::is_empty) {
            return Err(invalid(r#""name" is empty: give the session a name or leave it out"#));
        }
        let request = SpawnRequest { kind, name, cwd };
        let spawned = host.terminals.spawn(owner, request, cancel).await.map_err(refused)?;
        Ok(OpenValue::new(spawned, host.cap))
    }

    fn text(_: &Value, value: &OpenValue, cap: usize) -> String {
        text::open(value, cap)
    }
}
