//! `terminal_read`: a page of what a session has shown.

use std::sync::Arc;

use agents::Agent;
use dsh_core::Cancel;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Number, Value};
use terminal::{Lines, ReadPage, ReadRequest};
use tools::{ToolError, ToolKind, simple::Simple};

use crate::{
    Host,
    arguments::{session_id, whole},
    family::refused,
    schema,
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

/// Keeps the newest whole lines that the bound has room for, so that the line numbers of the page
/// are those of its text; of a single line as much as there is room for.
fn fit(page: &mut ReadPage, cap: usize) {
    if text::read(page, usize::MAX).len() <= cap {
        return;
    }
    page.truncated = true;
    let around = text::read(&ReadPage { text: "x".to_owned(), ..page.clone() }, usize::MAX).len();
    let room = (cap + 1).saturating_sub(around).min(page.text.len());
    let mut kept = text::tail(&page.text, room);
    let cut = page.text.len() - kept.len();
    if !page.text[..cut].ends_with('\n')
        && let Some((_, whole)) = kept.split_once('\n')
    {
        kept = whole;
    }
    let dropped = page.text[..page.text.len() - kept.len()].matches('\n').count() as u64;
    page.line_end = page.line_end.saturating_sub(dropped);
    page.first_line = page.first_line.map(|line| line + dropped);
    page.text = kept.to_owned();
}

impl Simple for Read {
    const NAME: &'static str = "terminal_read";
    const DESCRIPTION: &'static str = DESCRIPTION;
    const KIND: ToolKind = ToolKind::Read;
    const KEEP: Keep = Keep::Tail;
    type Host = Host;
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
            request.lines = Lines::Newest(whole::<0>("offset", &offset, "0 is the newest line")?);
        }
        if let Some(count) = args.count {
            request.count = whole::<1>("count", &count, "it is the number of lines to return")?;
        }
        let page = host.terminals.read(owner, &args.session_id, request).await;
        let mut page = page.map_err(refused)?;
        fit(&mut page, host.cap);
        let lost = page.lost.take();
        if !host.report_state {
            page.first_line = None;
        } else if let Some(why) = lost {
            let note = format!("[older lines are lost: {why}]\n");
            if text::read(&page, usize::MAX).len() + note.len() <= host.cap {
                page.text.insert_str(0, &note);
            }
        }
        Ok(page)
    }

    fn text(_: &Value, page: &ReadPage, cap: usize) -> String {
        text::read(page, cap)
    }
}
