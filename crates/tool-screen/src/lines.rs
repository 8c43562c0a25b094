//! `terminal_lines`: reading lines by their numbers.

use std::sync::Arc;

use agents::Agent;
use dsh_core::Cancel;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Number, Value};
use terminal::ReadRequest;
use tool_terminal::family::refused;
use tools::{ToolError, ToolKind, simple::Simple, text::head};

use crate::{Host, arguments::whole, schema, text, value::LinesValue};

const DESCRIPTION: &str = "Read lines of a terminal session by the numbers that terminal_search \
gives: counted from 0 since the session began, and the same however much output follows. Types \
nothing and waits for nothing.";

/// Room for the number of each line.
const NUMBER_BYTES: usize = 21;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Args {
    /// Id that `terminal_open` returned.
    session_id: String,
    /// The first line, a whole number.
    from_line: Number,
    /// How many lines, a whole number from 1 (default 200).
    count: Option<Number>,
}

pub(crate) struct Lines;

impl Simple for Lines {
    const NAME: &'static str = "terminal_lines";
    const DESCRIPTION: &'static str = DESCRIPTION;
    const KIND: ToolKind = ToolKind::Read;
    type Host = Host;
    type Args = Args;
    type Value = LinesValue;

    fn output(_: &Host) -> Value {
        schema::lines()
    }

    async fn run(
        host: &Host,
        owner: &Arc<Agent>,
        args: Args,
        _: &Cancel,
    ) -> Result<LinesValue, ToolError> {
        let from = whole::<0>("fromLine", Some(&args.from_line))?.unwrap_or(0);
        let count = whole::<1>("count", args.count.as_ref())?.unwrap_or(200);
        let request = ReadRequest::from_line(from, count);
        let page = host.terminals.read(owner, &args.session_id, request).await.map_err(refused)?;
        let first_line = page.first_line.unwrap_or(from);
        let lines = page.line_end.saturating_sub(page.line_begin);
        let room = host.cap.saturating_sub(256);
        let mut kept = page.text.as_str();
        let mut count = lines;
        // Whole lines alone, so that the numbers are those of the text.
        while count > 1 && kept.len() as u64 + count * NUMBER_BYTES as u64 > room as u64 {
            kept = kept.rsplit_once('\n').map_or("", |(before, _)| before);
            count -= 1;
        }
        if count == 1 {
            kept = head(kept, room);
        }
        Ok(LinesValue {
            truncated: page.truncated || kept.len() < page.text.len(),
            text: kept.to_owned(),
            first_line,
            count,
            total_lines: page.total_lines,
        })
    }

    fn text(_: &Value, value: &LinesValue, cap: usize) -> String {
        text::lines(value, cap)
    }
}
