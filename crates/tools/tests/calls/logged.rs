//! What of the arguments reaches the log.

use std::sync::Arc;

use dsh_core::async_trait;
use serde_json::{Value, json};
use tools::{Tool, ToolCall, ToolError, ToolOutput, ToolSpec};

use crate::common::{Script, fixture};

/// Says that everything may be logged.
struct LogsAll {
    script: Arc<Script>,
    spec: ToolSpec,
}

#[async_trait]
impl Tool for LogsAll {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        self.script.execute(call).await
    }

    fn render(&self, arguments: &Value, value: &Value) -> String {
        self.script.render(arguments, value)
    }
}

#[tokio::test]
async fn what_no_tool_declares_is_logged_by_name_and_size_alone() {
    let it = fixture();
    let script = Script::new("plain", &it.trace);
    let step = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let mut spec = script.spec().clone();
    spec.parameters["properties"]["steps"] = json!({ "type": "array", "items": step });
    it.tools.register(&it.plugin, Arc::new(LogsAll { script, spec })).unwrap();
    let outline = |n: u64| json!({ "bytes": n });
    let table = [
        // An unknown tool declares nothing.
        (
            "scripp",
            json!({ "text": "s3cret", "n": 4711, "o": { "s3cret": [1] }, "nothing": null }),
            json!({ "text": outline(6), "n": outline(4), "o": outline(14), "nothing": outline(4) }),
        ),
        ("scripp", json!("s3cret"), outline(6)),
        ("scripp", json!(["s3cret"]), outline(10)),
        // Neither does a known one, of what it does not know.
        (
            "plain",
            json!({ "do": "hi", "input": "s3cret" }),
            json!({ "do": "hi", "input": outline(6) }),
        ),
        ("plain", json!("s3cret"), outline(6)),
        ("plain", json!(["s3cret"]), outline(10)),
        (
            "plain",
            json!({ "do": "hi", "steps": [{ "name": "a", "key": "s3cret" }] }),
            json!({ "do": "hi", "steps": [{ "name": "a", "key": outline(6) }] }),
        ),
    ];
    let mut before = 0;
    for (tool, arguments, expected) in table {
        let call = ToolCall { name: tool.to_owned(), ..it.call(arguments.clone()) };
        let result = it.tools.call(call).await;
        assert!(result.is_error(), "{tool} {arguments}");
        let events = it.events();
        assert_eq!(events[before].1["arguments"], expected, "{tool} {arguments}");
        let all: String = events[before..].iter().map(|event| event.1.to_string()).collect();
        assert!(!all.contains("s3cret"), "{tool} {arguments}: {all}");
        before = events.len();
    }
    it.end().await;
}
