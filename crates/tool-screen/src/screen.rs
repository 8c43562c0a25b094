//! `terminal_screen`: what is shown now.

use std::sync::Arc;

use agents::Agent;
use dsh_core::Cancel;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tool_terminal::family::refused;
use tools::{ToolError, ToolKind, simple::Simple};

use crate::{Host, schema, text, value::ScreenValue};

const DESCRIPTION: &str = "Show the visible screen of a terminal session as it is now: its rows with \
their numbers, the cursor, the window's title, what is highlighted, and what the program asked of \
keys and mouse. Types nothing and waits for nothing. With sinceHash, the hash of an earlier result, \
only the rows that have changed since. Scrolled-off output is read with terminal_read.";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Args {
    /// Id that `terminal_open` returned.
    session_id: String,
    /// The hash of an earlier screen of this session: only what has changed since is returned.
    since_hash: Option<String>,
}

pub(crate) struct Screen;

impl Simple for Screen {
    const NAME: &'static str = "terminal_screen";
    const DESCRIPTION: &'static str = DESCRIPTION;
    const KIND: ToolKind = ToolKind::Read;
    type Host = Host;
    type Args = Args;
    type Value = ScreenValue;

    fn output(_: &Host) -> Value {
        schema::screen()
    }

    async fn run(
        host: &Host,
        owner: &Arc<Agent>,
        Args { session_id: id, since_hash }: Args,
        _: &Cancel,
    ) -> Result<ScreenValue, ToolError> {
        let shown = host.terminals.screen(owner, &id).await.map_err(refused)?;
        let before = since_hash.and_then(|hash| host.seen.rows(&id, &hash));
        host.seen.note(&id, &shown);
        Ok(ScreenValue::new(shown, before.as_deref()))
    }

    fn text(_: &Value, value: &ScreenValue, cap: usize) -> String {
        text::screen(value, cap)
    }
}
