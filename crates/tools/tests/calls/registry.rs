//! Registration, visibility, and calls under which something ends.

use std::sync::Arc;

use agents::ToolFilter;
use serde_json::json;
use session_log::read_log;
use tools::{ToolCall, ToolRegistry, ToolSpec};

use crate::common::{Script, code, fixture, within};

fn names(tools: &ToolRegistry, agent: Option<&agents::Agent>) -> Vec<String> {
    tools.list(agent).into_iter().map(|tool| tool.name).collect()
}

#[tokio::test]
async fn tools_are_listed_by_name_and_vanish_with_their_scope() {
    let it = fixture();
    it.tools.register(&it.scope, Script::new("zeta", &it.trace)).unwrap();
    it.tools.register(&it.scope, Script::new("alpha", &it.trace)).unwrap();
    assert_eq!(names(&it.tools, None), ["alpha", "script", "zeta"]);
    let error = it.tools.register(&it.scope, Script::new("script", &it.trace)).unwrap_err();
    assert_eq!(error.to_string(), "tool `script` is already registered");
    it.plugin.dispose().await.unwrap();
    assert_eq!(names(&it.tools, None), ["alpha", "zeta"]);
    let result = it.run(json!({})).await;
    assert_eq!(code(&result), "UNKNOWN_TOOL");
    assert_eq!(result.text(), r#"Error: unknown tool "script": the tools are alpha, zeta"#);
    it.tools.register(&it.scope, Script::new("script", &it.trace)).unwrap();
    it.tools.register(&it.plugin, Script::new("late", &it.trace)).unwrap_err();
    it.end().await;
}

/// No tool bounds this text.
#[tokio::test]
async fn the_text_about_an_unknown_tool_is_bounded() {
    let it = fixture();
    let call = ToolCall { name: "\u{e4}".repeat(1_000_000), ..it.call(json!({})) };
    let long_name = it.tools.call(call).await.text();
    assert!(long_name.contains("\u{e4}\" and more: the tools are script"), "{long_name}");
    for number in 0..200 {
        let script = Script::new(&format!("{number:03}{}", "x".repeat(50)), &it.trace);
        it.tools.register(&it.scope, script).unwrap();
    }
    let call = ToolCall { name: "none".to_owned(), ..it.call(json!({})) };
    let many = it.tools.call(call).await.text();
    assert!(many.starts_with("Error: unknown tool \"none\": the tools are 000x"), "{many}");
    assert!(many.ends_with("\n[output truncated]"), "{many}");
    assert!(many.len() < 5_000 && long_name.len() < 5_000, "{}", many.len());
    it.end().await;
}

#[tokio::test]
async fn bad_tools_are_refused_by_name() {
    struct Bad(ToolSpec);
    #[dsh_core::async_trait]
    impl tools::Tool for Bad {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }
        async fn execute(&self, _: ToolCall) -> Result<tools::ToolOutput, tools::ToolError> {
            Ok(json!(null).into())
        }
        fn render(&self, _: &serde_json::Value, _: &serde_json::Value) -> String {
            String::new()
        }
    }
    let it = fixture();
    let object = || json!({ "type": "object" });
    for (name, parameters, output, problem) in [
        ("", object(), json!({}), "tool name \"\" must be"),
        ("a tool", object(), json!({}), "tool name \"a tool\" must be"),
        (
            "bad",
            json!({ "type": "string" }),
            json!({}),
            "parameter schema of tool `bad`: it has another type",
        ),
        (
            "bad",
            json!({ "type": "object", "properties": { "x": { "oneOf": [] } } }),
            json!({}),
            "parameter schema of tool `bad`: `x` has the keyword `oneOf`",
        ),
        ("bad", object(), json!({ "type": "thing" }), "output schema of tool `bad`: "),
        (
            "bad",
            object(),
            json!({ "$ref": "http://example.com/x.json" }),
            "output schema of tool `bad`: ",
        ),
    ] {
        let spec = ToolSpec { name: name.into(), description: String::new(), parameters, output };
        let error = it.tools.register(&it.scope, Arc::new(Bad(spec))).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.starts_with(problem), "{text}");
    }
    assert_eq!(names(&it.tools, None), ["script"]);
    it.end().await;
}

#[tokio::test]
async fn a_filter_hides_a_tool_from_listing_and_calls_but_not_its_secrets() {
    let it = fixture();
    it.tools.register(&it.scope, Script::new("other", &it.trace)).unwrap();
    it.agent.set_tool_filter(Some(ToolFilter::Except(["script".to_owned()].into())));
    assert_eq!(names(&it.tools, Some(&it.agent)), ["other"]);
    assert_eq!(names(&it.tools, None), ["other", "script"]);
    let result = it.run(json!({ "do": "hi", "secret": "s3" })).await;
    assert_eq!(code(&result), "UNKNOWN_TOOL");
    assert_eq!(result.text(), r#"<Error: unknown tool "script": the tools are other>"#);
    assert_eq!(it.events()[0].1["arguments"]["secret"], "held back");
    assert_eq!(it.trace.take(), ["finalize"]);

    it.agent.set_tool_filter(Some(ToolFilter::Only([].into())));
    let result = it.run(json!({ "do": "hi" })).await;
    assert_eq!(result.text(), r#"<Error: unknown tool "script": no tools are mounted>"#);
    it.agent.set_tool_filter(None);
    assert_eq!(it.run(json!({ "do": "hi" })).await.text(), "<hi>");
    it.end().await;
}

#[tokio::test]
async fn a_dropped_caller_cancels_and_the_body_ends_by_itself() {
    let it = fixture();
    let (_, task) = it.start_waiting().await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    it.script.go.notify_one();
    // The end of the tool awaits the rest of the call.
    within(it.plugin.dispose()).await.unwrap();
    assert_eq!(
        it.trace.take(),
        [r#"body {"do":"wait"}"#, "body cancelled", "body over", "finalize"]
    );
    let events = it.events();
    assert_eq!(events[1].0, "tool/result");
    assert_eq!(events[1].1["error"]["message"], "the caller is gone");
    it.end().await;
}

#[tokio::test]
async fn the_caller_own_reason_reaches_the_body() {
    let it = fixture();
    let (cancel, task) = it.start_waiting().await;
    cancel.cancel("user pressed a key");
    it.script.go.notify_one();
    assert_eq!(within(task).await.unwrap().text(), "<Error: user pressed a key>");
    it.end().await;
}

#[tokio::test]
async fn whatever_ends_under_a_call_cancels_and_awaits_it() {
    for (ends, reason) in [
        ("tool", "tool `script` is being removed"),
        ("agent", "the agent has ended"),
        ("registry", "the host is shutting down"),
    ] {
        let it = fixture();
        let (_, task) = it.start_waiting().await;
        let end = {
            let (agents, agent) = (Arc::clone(&it.agents), Arc::clone(&it.agent));
            let (plugin, scope, trace) = (it.plugin.clone(), it.scope.clone(), it.trace.clone());
            tokio::spawn(async move {
                match ends {
                    "tool" => plugin.dispose().await,
                    "agent" => agents.dispose(&agent).await,
                    _ => scope.dispose().await,
                }
                .unwrap();
                trace.push("ended");
            })
        };
        it.script.go.notify_one();
        within(end).await.unwrap();
        let result = within(task).await.unwrap();
        let trace = it.trace.take();
        assert_eq!(trace.last().map(String::as_str), Some("ended"), "{ends}: {trace:?}");
        assert!(trace.contains(&"body over".to_owned()));
        let file = it.log_file();
        if ends != "registry" {
            assert_eq!(result.text(), format!("<Error: {reason}>"));
            it.agents.dispose(&it.agent).await.unwrap();
        }
        let kinds: Vec<String> = read_log(&file)
            .unwrap()
            .iter()
            .map(|line| line["type"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(kinds, ["session", "tool/call", "tool/result", "agent/end"], "{ends}");
        it.end().await;
    }
}

#[tokio::test]
async fn the_dead_call_nothing() {
    let it = fixture();
    it.agents.dispose(&it.agent).await.unwrap();
    let result = it.run(json!({ "do": "hi" })).await;
    assert_eq!(code(&result), "OWNER_NOT_LIVE");
    assert_eq!(result.text(), "<Error: agent `main` has ended and can call no tools>");
    let tools = Arc::clone(&it.tools);
    let call = ToolCall { agent: None, ..it.call(json!({ "do": "hi" })) };
    it.end().await;
    assert_eq!(code(&tools.call(call).await), "SHUTTING_DOWN");
}
