//! `terminal_read`: a page of what a session has shown.

use dsh_core::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Number, Value};
use terminal::ReadRequest;
use tools::{
    CallIntent, Content, DialectError, ResultIntent, Tool, ToolCall, ToolError, ToolKind,
    ToolOutput, ToolResult, ToolSpec, parameters_of,
};

use crate::{
    Host,
    arguments::{agent, parse, refused, session_id, whole},
    schema,
    text::{self, Keep},
    value::{json, typed},
};

const DESCRIPTION: &str = "Read what a terminal session has shown, also while a program runs or \
after the shell ended. Types nothing and waits for nothing. Lines are counted from the newest: \
offset 0 ends with the newest line, and a page is printed oldest line first. \
[lines: 0-12 of 340] names the page and how many lines can be read; \
[output truncated] says that something of this page is missing: read fewer lines.";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Args {
    /// Id that `terminal_open` returned.
    session_id: String,
    /// Newest lines to skip, a whole number (default 0).
    offset: Option<Number>,
    /// Most lines to return, a whole number from 1 (default 500).
    count: Option<Number>,
}

pub(crate) struct Read {
    host: Host,
    spec: ToolSpec,
}

impl Read {
    pub(crate) fn new(host: Host) -> Result<Self, DialectError> {
        let spec = ToolSpec {
            name: "terminal_read".to_owned(),
            description: DESCRIPTION.to_owned(),
            parameters: parameters_of::<Args>()?,
            output: schema::read(host.report_state),
        };
        Ok(Self { host, spec })
    }
}

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        let owner = agent(&call)?;
        let args: Args = parse(&call.arguments)?;
        session_id(&args.session_id)?;
        let mut request = ReadRequest::default();
        if let Some(offset) = args.offset {
            request.offset = whole("offset", &offset, 0, "0 is the newest line")?;
        }
        if let Some(count) = args.count {
            request.count = whole("count", &count, 1, "it is the number of lines to return")?;
        }
        let mut page =
            self.host.terminals.read(owner, &args.session_id, request).await.map_err(refused)?;
        let kept = text::tail(&page.text, self.host.cap);
        if kept.len() < page.text.len() {
            page.text = kept.to_owned();
            page.truncated = true;
        }
        if !self.host.report_state {
            page.first_line = None;
        }
        json(&page).map(ToolOutput::from)
    }

    fn render(&self, _: &Value, value: &Value) -> String {
        typed(value, |it| text::read(it, self.host.cap))
    }

    fn finalize_content(&self, result: &ToolResult, content: Content) -> Content {
        self.host.bound(if result.is_error() { Keep::Head } else { Keep::Tail }, content)
    }

    fn present_call(&self, _arguments: &Value) -> Option<CallIntent> {
        Some(CallIntent::Generic { kind: ToolKind::Read })
    }

    fn present_result(&self, _arguments: &Value, result: &ToolResult) -> Option<ResultIntent> {
        (!result.is_error()).then_some(ResultIntent::Generic { kind: ToolKind::Read })
    }
}
