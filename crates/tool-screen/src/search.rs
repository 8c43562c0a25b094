//! `terminal_search`: finding lines in all that a session has shown.

use std::{collections::BTreeMap, sync::Arc};

use agents::Agent;
use dsh_core::Cancel;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Number, Value};
use terminal::{SearchMatch, SearchPage, SearchRequest};
use tool_terminal::family::refused;
use tools::{ToolError, ToolKind, simple::Simple};

use crate::{
    Host,
    arguments::whole,
    schema, text,
    value::{FoundLine, SearchValue},
};

const DESCRIPTION: &str = "Find lines in all output of a terminal session that can still be read, \
the newest first. Each line comes with its number, which stays the same; terminal_lines reads what \
is around it.";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Args {
    /// Id that `terminal_open` returned.
    session_id: String,
    /// A regular expression, matched against each line.
    pattern: String,
    /// Upper and lower case are the same (default false).
    ignore_case: Option<bool>,
    /// Most lines to find, a whole number from 1 (default 20).
    max_matches: Option<Number>,
    /// Lines to show before and after each one that matches (default 0).
    context: Option<Number>,
    /// Only lines before this number: where an earlier search says that older lines may match.
    before: Option<Number>,
}

pub(crate) struct Search;

impl Simple for Search {
    const NAME: &'static str = "terminal_search";
    const DESCRIPTION: &'static str = DESCRIPTION;
    const KIND: ToolKind = ToolKind::Read;
    type Host = Host;
    type Args = Args;
    type Value = SearchValue;

    fn output(_: &Host) -> Value {
        schema::search()
    }

    async fn run(
        host: &Host,
        owner: &Arc<Agent>,
        args: Args,
        _: &Cancel,
    ) -> Result<SearchValue, ToolError> {
        let request = SearchRequest {
            ignore_case: args.ignore_case.unwrap_or(false),
            before: whole::<0>("before", args.before.as_ref())?,
            max_matches: whole::<1>("maxMatches", args.max_matches.as_ref())?.unwrap_or(20),
            context: whole::<0>("context", args.context.as_ref())?.unwrap_or(0),
            ..SearchRequest::new(args.pattern)
        };
        let page = host.terminals.search(owner, &args.session_id, request).await;
        Ok(found(page.map_err(refused)?))
    }

    fn text(_: &Value, value: &SearchValue, cap: usize) -> String {
        text::search(value, cap)
    }
}

/// The lines in their order, each once, though they may be around several that match.
fn found(page: SearchPage) -> SearchValue {
    let matches = page.matches.len() as u64;
    let mut lines = BTreeMap::new();
    for SearchMatch { line, text, before, after } in page.matches {
        let around = (line.saturating_sub(before.len() as u64)..).zip(before);
        for (line, text) in around.chain((line + 1..).zip(after)) {
            lines.entry(line).or_insert(FoundLine { line, text, matches: false });
        }
        lines.insert(line, FoundLine { line, text, matches: true });
    }
    SearchValue {
        lines: lines.into_values().collect(),
        matches,
        next: page.next,
        total_lines: page.total_lines,
        truncated: page.truncated,
    }
}
