//! `terminal_list`: the caller's sessions.

use std::sync::Arc;

use agents::Agent;
use dsh_core::Cancel;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tools::{ToolError, ToolKind, simple::Simple};

use crate::{Host, schema, text, value::ListedSession};

const DESCRIPTION: &str = "List your terminal sessions, one a line: id, name, kind, whether the \
shell runs or how it exited, and its process id. An exited session can still be read until it is \
closed.";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {}

pub(crate) struct List;

impl Simple for List {
    const NAME: &'static str = "terminal_list";
    const DESCRIPTION: &'static str = DESCRIPTION;
    const KIND: ToolKind = ToolKind::Read;
    type Host = Host;
    type Args = Args;
    type Value = Vec<ListedSession>;

    fn output(_: &Host) -> Value {
        schema::list()
    }

    async fn run(
        host: &Host,
        owner: &Arc<Agent>,
        Args {}: Args,
        _: &Cancel,
    ) -> Result<Vec<ListedSession>, ToolError> {
        Ok(host.terminals.list(owner).into_iter().map(ListedSession::from).collect())
    }

    fn text(_: &Value, sessions: &Vec<ListedSession>, cap: usize) -> String {
        text::list(sessions, cap)
    }
}
