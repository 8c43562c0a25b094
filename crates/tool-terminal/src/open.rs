//! `terminal_open`: a new session.

use dsh_core::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use terminal::SpawnRequest;
use tools::{
    CallIntent, Content, DialectError, ResultIntent, Tool, ToolCall, ToolError, ToolKind,
    ToolOutput, ToolResult, ToolSpec, parameters_of,
};

use crate::{
    Host,
    arguments::{agent, invalid, parse, refused},
    schema,
    text::{self, Keep},
    value::{OpenValue, json, typed},
};

const DESCRIPTION: &str = "Open a persistent terminal session: a real shell on a pseudo-terminal \
that keeps its working directory, variables and running programs from one call to the next. \
Returns the session id that the other terminal tools take, then what the shell printed at its \
start. Close the session with terminal_close when you no longer need it.";

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// Kind of session, usually `shell`. The error for an unknown one lists the kinds there are.
    #[serde(rename = "type")]
    kind: String,
    /// A name to recognise the session by in `terminal_list`; unique among your sessions.
    name: Option<String>,
    /// Directory to start in. A relative one is taken from the workspace root, which is also the
    /// default.
    cwd: Option<String>,
}

pub(crate) struct Open {
    host: Host,
    spec: ToolSpec,
}

impl Open {
    pub(crate) fn new(host: Host) -> Result<Self, DialectError> {
        let spec = ToolSpec {
            name: "terminal_open".to_owned(),
            description: DESCRIPTION.to_owned(),
            parameters: parameters_of::<Args>()?,
            output: schema::open(),
        };
        Ok(Self { host, spec })
    }
}

#[async_trait]
impl Tool for Open {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        let owner = agent(&call)?;
        let Args { kind, name, cwd } = parse(&call.arguments)?;
        if kind.is_empty() {
            return Err(invalid(format_args!(
                r#""type" is empty: available types are {}"#,
                self.host.terminals.list_backends().join(", ")
            )));
        }
        if name.as_ref().is_some_and(String::is_empty) {
            return Err(invalid(r#""name" is empty: give the session a name or leave it out"#));
        }
        let request = SpawnRequest { kind, name, cwd };
        let spawned =
            self.host.terminals.spawn(owner, request, &call.cancel).await.map_err(refused)?;
        json(&OpenValue::new(spawned, self.host.cap)).map(ToolOutput::from)
    }

    fn render(&self, _: &Value, value: &Value) -> String {
        typed(value, |it| text::open(it, self.host.cap))
    }

    fn finalize_content(&self, _result: &ToolResult, content: Content) -> Content {
        self.host.bound(Keep::Head, content)
    }

    fn present_call(&self, _arguments: &Value) -> Option<CallIntent> {
        Some(CallIntent::Generic { kind: ToolKind::Execute })
    }

    fn present_result(&self, _arguments: &Value, result: &ToolResult) -> Option<ResultIntent> {
        (!result.is_error()).then_some(ResultIntent::Generic { kind: ToolKind::Execute })
    }
}
