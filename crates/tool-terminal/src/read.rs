//! `terminal_read`: a page of what a session has shown.

use std::sync::Arc;

use agents::Agent;
use dsh_core::Cancel;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Number, Value};
use terminal::{ReadPage, ReadRequest};
use tools::{ToolError, ToolKind};

use crate::{
    Host,
    arguments::{refused, session_id, whole},
    schema,
    simple::Simple,
    text::{self, Keep},
};

const DESCRIPTION: &str = "Read what a terminal session has shown, also while a program runs or \
after the shell ended. Types nothing and waits for nothing. Lines are counted from the newest: \
offset 0 ends with the newest line, and a page is printed oldest line first. \
[lines: 0-12 of 340] names the page and how many lines can be read; \
[output truncated] says that something of this page is missing: read fewer lines.";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Args {
    /// Id that `terminal_open` returned.
    session_id: String,
    /// Newest lines to skip, a whole number (default 0).
    offset: Option<Number>,
    /// Most lines to return, a whole number from 1 (default 500).
    count: Option<Number>,
}

pub(crate) struct Read;

impl Simple for Read {
    const NAME: &'static str = "terminal_read";
    const DESCRIPTION: &'static str = DESCRIPTION;
    const KIND: ToolKind = ToolKind::Read;
    const KEEP: Keep = Keep::Tail;
    type Args = Args;
    type Value = ReadPage;

    fn output(host: &Host) -> Value {
        schema::read(host.report_state)
    }

    async fn run(
        host: &Host,
        owner: &Arc<Agent>,
        args: Args,
        _: &Cancel,
    ) -> Result<ReadPage, ToolError> {
        session_id(&args.session_id)?;
        let mut request = ReadRequest::default();
        if let Some(offset) = args.offset {
            request.offset = whole::<0>("offset", &offset, "0 is the newest line")?;
        }
        if let Some(count) = args.count {
            request.count = whole::<1>("count", &count, "it is the number of lines to return")?;
        }
        let page = host.terminals.read(owner, &args.session_id, request).await;
        let mut page = page.map_err(refused)?;
        let kept = text::tail(&page.text, host.cap);
        if kept.len() < page.text.len() {
            page.text = kept.to_owned();
            page.truncated = true;
        }
        if !host.report_state {
            page.first_line = None;
        }
        Ok(page)
    }

    fn text(_: &Value, page: &ReadPage, cap: usize) -> String {
        text::read(page, cap)
    }
}
