//! One call through the pipeline: order, outcomes, log.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use agents::AgentSpec;
use dsh_core::async_trait;
use serde_json::{Value, json};
use tools::{
    ContentBlock, ExecuteLayer, Guard, Next, Outcome, PostDecision, PostLayer, PreDecision,
    PreLayer, ResultObserver, ToolCall, ToolError, ToolResult,
};

use crate::common::{Fixture, Trace, code, fixture, within};

struct Pre(Trace, PreDecision);

#[async_trait]
impl PreLayer for Pre {
    async fn pre_execute(&self, call: &ToolCall) -> PreDecision {
        self.0.push(format!("pre {}", call.arguments));
        self.1.clone()
    }
}

/// Writes its name around the rest; may rewrite the arguments.
struct Around(Trace, &'static str, Option<Value>);

#[async_trait]
impl ExecuteLayer for Around {
    async fn around(&self, mut call: ToolCall, next: Next<'_>) -> Outcome {
        self.0.push(format!("{} in", self.1));
        if let Some(arguments) = &self.2 {
            call.arguments = arguments.clone();
            call.name = "another".into();
            call.agent = None;
        }
        let outcome = next.run(call).await;
        self.0.push(format!("{} out", self.1));
        outcome
    }
}

struct DenyRm(Trace);

impl Guard for DenyRm {
    fn deny(&self, call: &ToolCall) -> Option<String> {
        self.0.push(format!("guard {} {}", call.name, call.agent.is_some()));
        (call.arguments["do"] == "rm").then(|| "no rm".to_owned())
    }
}

struct Post(Trace, PostDecision);

#[async_trait]
impl PostLayer for Post {
    async fn post_execute(&self, _: &ToolCall, result: &ToolResult) -> PostDecision {
        self.0.push(format!("post {}", result.text()));
        self.1.clone()
    }
}

struct Observe(Trace);

impl ResultObserver for Observe {
    fn tool_result(&self, _: &ToolCall, result: &ToolResult) {
        self.0.push(format!("observe {}", result.text()));
    }
}

impl Fixture {
    fn pre(&self, decision: PreDecision) {
        let layer = Arc::new(Pre(self.trace.clone(), decision));
        self.tools.add_pre_layer(&self.scope, "pre", layer).unwrap();
    }

    fn around(&self, name: &'static str, rewrite: Option<Value>) {
        let layer = Arc::new(Around(self.trace.clone(), name, rewrite));
        self.tools.add_execute_layer(&self.scope, name, layer).unwrap();
    }

    fn guard(&self) {
        self.tools.add_guard(&self.scope, "rm", Arc::new(DenyRm(self.trace.clone()))).unwrap();
    }

    fn post(&self, decision: PostDecision) {
        let layer = Arc::new(Post(self.trace.clone(), decision));
        self.tools.add_post_layer(&self.scope, "post", layer).unwrap();
    }

    fn observe(&self) {
        let observer = Arc::new(Observe(self.trace.clone()));
        self.tools.add_observer(&self.scope, "observer", observer).unwrap();
    }
}

#[tokio::test]
async fn the_order_is_fixed() {
    let it = fixture();
    // Registered in another order than they run.
    it.observe();
    it.post(PostDecision::AddContext(vec![ContentBlock::text("context")]));
    it.guard();
    it.around("outer", None);
    it.around("inner", None);
    it.pre(PreDecision::Allow);
    let result = it.run(json!({ "do": "hi", "count": null })).await;
    assert_eq!(result.value, Some(json!("hi")));
    assert_eq!(result.content, [ContentBlock::text("<hi>"), ContentBlock::text("<context>")]);
    assert_eq!(
        it.trace.take(),
        [
            r#"pre {"do":"hi"}"#,
            "outer in",
            "inner in",
            "guard script true",
            r#"body {"do":"hi"}"#,
            "inner out",
            "outer out",
            "post hi",
            "finalize",
            "observe <hi>\n<context>",
        ]
    );
    it.end().await;
}

#[tokio::test]
async fn a_rewritten_call_is_validated_and_guarded_and_stays_the_same_call() {
    let it = fixture();
    it.guard();
    it.around("rewrite", Some(json!({ "do": "rm", "count": null })));
    let result = it.run(json!({ "do": "hi" })).await;
    assert_eq!(code(&result), "DENIED");
    assert_eq!(result.text(), "<Error: denied: no rm>");
    assert_eq!(it.trace.take(), ["rewrite in", "guard script true", "rewrite out", "finalize"]);
    it.end().await;

    for (rewrite, expected) in [
        (
            json!({ "do": 1 }),
            r#"<Error: invalid arguments: property "do" must be a string, got 1>"#,
        ),
        (json!({ "do": "other" }), "<other>"),
    ] {
        let it = fixture();
        it.pre(PreDecision::Rewrite(rewrite));
        assert_eq!(it.run(json!({ "do": "hi" })).await.text(), expected);
        it.end().await;
    }
}

#[tokio::test]
async fn a_denied_call_runs_nothing() {
    for (decision, text) in [
        (PreDecision::Deny("not today".into()), "<Error: denied: not today>"),
        (PreDecision::Ask("really?".into()), "<Error: denied: really? (nobody can be asked here)>"),
    ] {
        let it = fixture();
        it.around("layer", None);
        it.post(PostDecision::Accept);
        it.pre(decision);
        let result = it.run(json!({ "do": "hi" })).await;
        assert_eq!((code(&result), result.text().as_str()), ("DENIED", text));
        assert_eq!(result.value, None);
        assert_eq!(it.trace.take(), [r#"pre {"do":"hi"}"#, "finalize"]);
        it.end().await;
    }
}

#[tokio::test]
async fn every_outcome_is_a_result_that_was_finalized_once() {
    let panic = "failed by a bug of its own (a panic); the host's own log says where";
    let table = [
        (json!({ "do": "hi" }), "", "<hi>".to_owned()),
        (json!({ "do": "fail" }), "SCRIPTED", "<Error: as you said>".to_owned()),
        (json!({ "do": "panic" }), "PANIC", format!("<Error: tool `script` {panic}>")),
        (json!({ "do": "panic in render" }), "PANIC", format!("<Error: tool `script` {panic}>")),
        // Nobody knows what half of it would be.
        (json!({ "do": "panic in finalize" }), "PANIC", format!("Error: tool `script` {panic}")),
        (
            json!({ "do": "hi", "count": "panic in log_arguments" }),
            "INVALID_ARGS",
            r#"<Error: invalid arguments: property "count" must be a number, got a string>"#.into(),
        ),
        (
            json!({ "do": "misbehave" }),
            "INVALID_OUTPUT",
            "<Error: tool `script` returned a value that breaks its own output schema: \
             the value must be a string, got a number>"
                .to_owned(),
        ),
        (
            json!({}),
            "INVALID_ARGS",
            r#"<Error: invalid arguments: missing required property "do">"#.to_owned(),
        ),
    ];
    for (arguments, expected_code, text) in table {
        let it = fixture();
        it.observe();
        let result = it.run(arguments.clone()).await;
        assert_eq!((code(&result), result.text()), (expected_code, text.clone()), "{arguments}");
        assert_eq!(result.value.is_some(), expected_code.is_empty());
        let trace = it.trace.take();
        assert_eq!(trace.iter().filter(|it| *it == "finalize").count(), 1, "{arguments}");
        assert_eq!(trace.last(), Some(&format!("observe {text}")));
        let events = it.events();
        assert_eq!(events.len(), 2, "{arguments}");
        assert_eq!(events[1].0, "tool/result");
        assert_eq!(events[1].1["isError"], json!(result.is_error()));
        assert_eq!(events[1].1["content"], json!([{ "type": "text", "text": text }]));
        it.end().await;
    }
}

#[tokio::test]
async fn a_panicking_layer_fails_its_call() {
    struct Panics;
    #[async_trait]
    impl PreLayer for Panics {
        async fn pre_execute(&self, _: &ToolCall) -> PreDecision {
            panic!("pre")
        }
    }
    #[async_trait]
    impl ExecuteLayer for Panics {
        async fn around(&self, call: ToolCall, next: Next<'_>) -> Outcome {
            next.run(call).await.ok();
            panic!("around")
        }
    }
    impl Guard for Panics {
        fn deny(&self, _: &ToolCall) -> Option<String> {
            panic!("guard")
        }
    }
    #[async_trait]
    impl PostLayer for Panics {
        async fn post_execute(&self, _: &ToolCall, _: &ToolResult) -> PostDecision {
            panic!("post")
        }
    }
    impl ResultObserver for Panics {
        fn tool_result(&self, _: &ToolCall, _: &ToolResult) {
            panic!("observer")
        }
    }
    let body = r#"body {"do":"hi"}"#;
    let table: [(&str, &str, &[&str]); 5] = [
        ("pre", "PANIC", &["finalize"]),
        ("around", "PANIC", &[body, "finalize"]),
        ("guard", "PANIC", &["finalize"]),
        ("post", "PANIC", &[body, "finalize"]),
        ("observer", "", &[body, "finalize"]),
    ];
    for (kind, expected, trace) in table {
        let it = fixture();
        let (tools, scope, layer) = (&it.tools, &it.scope, Arc::new(Panics));
        match kind {
            "pre" => tools.add_pre_layer(scope, kind, layer),
            "around" => tools.add_execute_layer(scope, kind, layer),
            "guard" => tools.add_guard(scope, kind, layer),
            "post" => tools.add_post_layer(scope, kind, layer),
            _ => tools.add_observer(scope, kind, layer),
        }
        .unwrap();
        let result = it.run(json!({ "do": "hi" })).await;
        assert_eq!(code(&result), expected, "{kind}");
        assert_eq!(it.trace.take(), trace, "{kind}");
        it.end().await;
    }
}

#[tokio::test]
async fn results_are_replaced_blocked_and_extended() {
    let replace = |text: &str, value: Option<Value>| PostDecision::Replace {
        content: vec![ContentBlock::text(text)],
        value,
    };
    let table = [
        ("hi", PostDecision::Accept, "<hi>", "", Some(json!("hi"))),
        ("hi", replace("cut", None), "<cut>", "", None),
        ("hi", replace("new", Some(json!("new"))), "<new>", "", Some(json!("new"))),
        ("hi", PostDecision::Block("bad".into()), "<Error: blocked: bad>", "BLOCKED", None),
        ("fail", replace("softened", None), "<softened>", "SCRIPTED", None),
    ];
    for (what, decision, text, expected, value) in table {
        let it = fixture();
        it.post(decision.clone());
        let result = it.run(json!({ "do": what })).await;
        assert_eq!((result.text().as_str(), code(&result)), (text, expected), "{decision:?}");
        assert_eq!(result.value, value);
        if let Some(error) = result.error {
            assert_ne!(error.message, "as you said", "nothing of the old text is left");
        }
        it.end().await;
    }
    let it = fixture();
    it.post(replace("x", Some(json!(3))));
    assert_eq!(code(&it.run(json!({ "do": "hi" })).await), "INVALID_OUTPUT");
    it.end().await;
}

#[tokio::test]
async fn a_layer_that_drops_the_rest_does_not_drop_the_body() {
    struct Impatient(Trace, Arc<tokio::sync::Notify>);
    #[async_trait]
    impl ExecuteLayer for Impatient {
        async fn around(&self, call: ToolCall, next: Next<'_>) -> Outcome {
            tokio::select! {
                outcome = next.run(call) => outcome,
                () = self.1.notified() => {
                    self.0.push("gave up");
                    Err(ToolError::new("LayerError", "IMPATIENT", "too slow"))
                }
            }
        }
    }
    let it = fixture();
    let layer = Arc::new(Impatient(it.trace.clone(), Arc::clone(&it.script.waiting)));
    it.tools.add_execute_layer(&it.scope, "impatient", layer).unwrap();
    it.script.go.notify_one();
    let result = within(it.run(json!({ "do": "wait" }))).await;
    assert_eq!(code(&result), "IMPATIENT");
    assert_eq!(
        it.trace.take(),
        [r#"body {"do":"wait"}"#, "gave up", "body cancelled", "body over", "finalize"]
    );
    it.end().await;
}

#[tokio::test]
async fn a_cancelled_call_starts_no_body() {
    let it = fixture();
    let call = it.call(json!({ "do": "hi" }));
    call.cancel.cancel("changed my mind");
    let result = it.tools.call(call).await;
    assert_eq!(code(&result), "CANCELLED");
    assert_eq!(result.text(), "<Error: cancelled before anything ran: changed my mind>");
    assert_eq!(it.trace.take(), ["finalize"]);
    it.end().await;
}

#[tokio::test]
async fn a_rejected_call_runs_nothing_and_is_logged_like_any_other() {
    let it = fixture();
    it.observe();
    let error = || ToolError::new("LoopError", "INVALID_ARGS", "these arguments are no JSON");
    let call = it.call(json!("{\"secret\": \"s3"));
    let result = it.tools.reject(&call, error());
    assert_eq!(
        (code(&result), it.trace.take()),
        (
            "INVALID_ARGS",
            vec!["finalize".to_owned(), "observe <Error: these arguments are no JSON>".to_owned()]
        )
    );
    assert_eq!(result.text(), "<Error: these arguments are no JSON>");
    let events = it.events();
    assert_eq!(
        events[0].1,
        json!({ "callId": "c1", "name": "script", "arguments": { "bytes": 14 } })
    );
    assert_eq!(events[1].1["error"], json!(result.error));
    assert_eq!(events.len(), 2);
    it.agents.dispose(&it.agent).await.unwrap();
    assert_eq!(code(&it.tools.reject(&call, error())), "OWNER_NOT_LIVE");
    it.end().await;
}

#[tokio::test]
async fn cancelling_tells_a_pre_layer_by_dropping_it() {
    struct Hangs(tokio::sync::Notify);
    #[async_trait]
    impl PreLayer for Hangs {
        async fn pre_execute(&self, _: &ToolCall) -> PreDecision {
            self.0.notify_one();
            std::future::pending().await
        }
    }
    let it = fixture();
    let layer = Arc::new(Hangs(tokio::sync::Notify::new()));
    it.tools.add_pre_layer(&it.scope, "hangs", layer.clone()).unwrap();
    let call = it.call(json!({ "do": "hi" }));
    let cancel = call.cancel.clone();
    let asked = async {
        layer.0.notified().await;
        cancel.cancel("enough");
    };
    let (result, ()) = within(async { tokio::join!(it.tools.call(call), asked) }).await;
    assert_eq!(code(&result), "CANCELLED");
    it.end().await;
}

#[tokio::test]
async fn the_log_holds_what_the_tool_allows() {
    let held = json!("held back");
    let table = [
        // What the tool holds back appears with the result if the tool says so.
        (json!({ "do": "reveal", "secret": "s3" }), Some(json!({ "secret": "s3" }))),
        (json!({ "do": "fail", "secret": "s3" }), Some(json!({ "secret": "s3" }))),
        (json!({ "do": "hi", "secret": "s3" }), None),
        // Invalid ones go the same way, and nothing held back is quoted in an error.
        (json!({ "do": "hi", "secret": 4711 }), None),
        (json!({ "do": "hi", "sceret": "s3" }), None),
        (json!({ "do": "hi", "secret": null }), None),
    ];
    for (arguments, revealed) in table {
        let it = fixture();
        let result = it.run(arguments.clone()).await;
        let mut logged = arguments.clone();
        let key = if arguments.get("sceret").is_some() { "sceret" } else { "secret" };
        logged[key] = held.clone();
        let events = it.events();
        assert_eq!(
            events[0],
            (
                "tool/call".to_owned(),
                json!({ "callId": "c1", "name": "script", "arguments": logged })
            )
        );
        assert_eq!(events[1].1.get("arguments"), revealed.as_ref(), "{arguments}");
        let text = format!("{events:?}");
        assert!(revealed.is_some() || !(text.contains("s3") || text.contains("4711")), "{text}");
        assert_eq!(events[1].1["error"], json!(result.error));
        assert_eq!(events[1].1.get("value"), result.value.as_ref());
        it.end().await;
    }
}

/// Counts errors.
struct Errors(Arc<AtomicUsize>);

impl tracing::Subscriber for Errors {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::ERROR
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn a_failing_log_is_reported_once_per_agent_and_stops_nothing() {
    let errors = Arc::new(AtomicUsize::new(0));
    let _guard = tracing::subscriber::set_default(Errors(Arc::clone(&errors)));
    let it = fixture();
    it.break_log();
    for _ in 0..2 {
        assert_eq!(it.run(json!({ "do": "hi" })).await.text(), "<hi>");
        assert_eq!(errors.load(Ordering::SeqCst), 1);
    }
    let spec = AgentSpec { id: None, workspace_root: "/w".into() };
    let call = ToolCall { agent: Some(it.agents.create(spec).unwrap()), ..it.call(json!({})) };
    it.tools.call(call).await;
    assert_eq!(errors.load(Ordering::SeqCst), 2);
    it.end().await;
}

#[tokio::test]
async fn a_call_without_an_agent_is_not_logged() {
    let it = fixture();
    let call = ToolCall { agent: None, ..it.call(json!({ "do": "hi" })) };
    assert_eq!(it.tools.call(call).await.text(), "<hi>");
    assert!(!it.log_file().exists());
    it.end().await;
}
