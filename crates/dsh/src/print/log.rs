//! A run of the past, from the lines of its log.

use std::{collections::BTreeMap, io::Write};

use serde_json::Value;
use tools::{ToolRegistry, ToolResult};

use super::printer::Printer;

/// Prints the events of a log, line by line. `tools` say how their cards look; those of tools that
/// are not mounted are plain.
#[derive(Default)]
pub(crate) struct Replay {
    /// Calls without a result so far: name and arguments by id.
    open: BTreeMap<String, (String, Value)>,
}

impl Replay {
    pub(crate) fn line<W: Write>(
        &mut self,
        line: &Value,
        tools: &ToolRegistry,
        printer: &mut Printer<W>,
    ) {
        let data = &line["data"];
        let text = |key: &str| data[key].as_str().unwrap_or_default();
        match line["type"].as_str().unwrap_or_default() {
            "session" => {
                let of = |key: &str| line[key].as_str().unwrap_or_default();
                printer.note(&format!("session {} in {}", of("id"), of("cwd")));
            }
            "user/message" => printer.user(text("content")),
            "assistant/message" => {
                printer.text(text("content"));
                printer.said(!text("content").is_empty());
            }
            "notice" => printer.note(text("content")),
            "tool/call" => {
                let call = (text("name").to_owned(), data["arguments"].clone());
                self.open.insert(text("callId").to_owned(), call);
            }
            "tool/result" => {
                let begun = self.open.remove(text("callId")).map(|(_, arguments)| arguments);
                // Held back with the call, and told with the result where it was shown anyway.
                let arguments = data.get("arguments").cloned().or(begun).unwrap_or_default();
                let result = result(data);
                let name = text("name");
                let call = tools.present_call(name, &arguments);
                printer.call(name, &arguments, call.as_ref());
                let shown = tools.present_result(name, &arguments, &result);
                printer.result(&result, shown.as_ref());
            }
            _ => {}
        }
    }

    /// Nothing more comes.
    pub(crate) fn end<W: Write>(self, tools: &ToolRegistry, printer: &mut Printer<W>) {
        for (name, arguments) in self.open.into_values() {
            printer.call(&name, &arguments, tools.present_call(&name, &arguments).as_ref());
            printer.note("no result: the run ended first");
        }
    }
}

fn result(data: &Value) -> ToolResult {
    ToolResult {
        content: serde_json::from_value(data["content"].clone()).unwrap_or_default(),
        value: data.get("value").cloned(),
        error: data.get("error").cloned().and_then(|it| serde_json::from_value(it).ok()),
    }
}
