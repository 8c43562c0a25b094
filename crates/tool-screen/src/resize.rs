//! `terminal_resize`: another size of the window.

use std::{sync::Arc, time::Duration};

use agents::Agent;
use dsh_core::Cancel;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Number, Value};
use terminal::{WaitCondition, WaitRequest, WindowSize};
use tool_terminal::family::{invalid, refused};
use tools::{ToolError, ToolKind, simple::Simple};

use crate::{Host, schema, text, value::ScreenValue};

const DESCRIPTION: &str = "Change the size of a terminal session's window, in rows and columns of \
characters. The program in it is told, as by a person's terminal; returns the screen after it has \
drawn itself anew.";

/// How long a program is given to draw itself anew, and the pause behind which it is taken to have.
const LONGEST: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(150);

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Args {
    /// Id that `terminal_open` returned.
    session_id: String,
    /// Rows, 1 to 500.
    rows: Number,
    /// Columns, 2 to 1000.
    cols: Number,
}

pub(crate) struct Resize;

/// A side of the window; what no window can have is left to the session service to refuse.
fn side(name: &str, number: &Number) -> Result<u16, ToolError> {
    let whole = number.as_u64().and_then(|it| u16::try_from(it).ok());
    whole.ok_or_else(|| {
        invalid(format_args!(
            r#""{name}" must be a whole number, rows 1 to {} and columns 2 to {}, got {number}"#,
            WindowSize::MOST.rows,
            WindowSize::MOST.columns
        ))
    })
}

impl Simple for Resize {
    const NAME: &'static str = "terminal_resize";
    const DESCRIPTION: &'static str = DESCRIPTION;
    const KIND: ToolKind = ToolKind::Execute;
    type Host = Host;
    type Args = Args;
    type Value = ScreenValue;

    fn output(_: &Host) -> Value {
        schema::screen()
    }

    async fn run(
        host: &Host,
        owner: &Arc<Agent>,
        Args { session_id: id, rows, cols }: Args,
        cancel: &Cancel,
    ) -> Result<ScreenValue, ToolError> {
        let size = WindowSize { rows: side("rows", &rows)?, columns: side("cols", &cols)? };
        host.terminals.resize(owner, &id, size).await.map_err(refused)?;
        let drawn = WaitRequest {
            until: vec![WaitCondition::Input, WaitCondition::Silence(PAUSE)],
            timeout: LONGEST,
        };
        tokio::select! {
            // A backend that cannot wait shows what there is.
            _ = host.terminals.wait(owner, &id, drawn) => {}
            () = cancel.cancelled() => {}
        }
        let shown = host.terminals.screen(owner, &id).await.map_err(refused)?;
        host.seen.note(&id, &shown);
        Ok(ScreenValue::new(shown, None))
    }

    fn text(_: &Value, value: &ScreenValue, cap: usize) -> String {
        text::screen(value, cap)
    }
}
