//! The tools through the whole pipeline, over a session service whose backend knows no screen.

use std::sync::Arc;

use agents::Agent;
use serde_json::{Value, json};
use testkit::{Script, TestHost};
use tool_screen as _;
use tools::{CallIntent, ErrorInfo, ToolKind, ToolResult, Tools};

async fn boot(script: &Script) -> (TestHost, Arc<Agent>) {
    let rows = format!("{}- name: tool-terminal\n- name: tool-screen\n", script.composition());
    let host = TestHost::boot(&rows).await;
    let agent = host.agent("a1");
    let opened = host.call(&agent, "terminal_open", json!({ "type": "scripted" })).await;
    assert!(!opened.is_error(), "{opened:?}");
    (host, agent)
}

#[track_caller]
fn error(result: ToolResult) -> (String, String) {
    let Some(ErrorInfo { message, info }) = result.error else { panic!("no error: {result:?}") };
    (info.code, message)
}

const NAMES: [&str; 6] = [
    "terminal_keys",
    "terminal_lines",
    "terminal_resize",
    "terminal_screen",
    "terminal_search",
    "terminal_wait",
];

#[tokio::test]
async fn what_the_model_is_offered() {
    let (host, agent) = boot(&Script::new()).await;
    let tools = host.service::<Tools>();
    let mut texts = Vec::new();
    for spec in tools.list(Some(&agent)).iter().filter(|it| NAMES.contains(&it.name.as_str())) {
        let parameters = serde_json::to_string_pretty(&spec.parameters).unwrap();
        texts.push(format!("=== {}\n{}\n{parameters}", spec.name, spec.description));
    }
    assert_eq!(texts.len(), NAMES.len());
    insta::assert_snapshot!(texts.join("\n\n"));
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_backend_without_a_screen_says_so() {
    let (host, agent) = boot(&Script::new()).await;
    for (tool, more, what) in [
        ("terminal_screen", json!({}), "showing the screen"),
        ("terminal_keys", json!({ "keys": ["Enter"] }), "showing the screen"),
        ("terminal_resize", json!({ "rows": 24, "cols": 80 }), "changing the size"),
        ("terminal_wait", json!({ "until": { "prompt": true } }), "waiting"),
        ("terminal_search", json!({ "pattern": "x" }), "searching"),
    ] {
        let mut arguments = more;
        arguments["sessionId"] = json!("pty-1");
        let (code, message) = error(host.call(&agent, tool, arguments).await);
        assert_eq!(code, "NOT_SUPPORTED", "{tool}");
        assert!(message.starts_with(what), "{tool}: {message}");
    }
    let lines = json!({ "sessionId": "pty-1", "fromLine": 0 });
    let lines = host.call(&agent, "terminal_lines", lines).await;
    assert_eq!(lines.text(), "     0|dsh> \n[lines: 0-1, 1 can be read]");
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn what_does_not_fit_is_refused_before_any_session_is_asked() {
    let (host, agent) = boot(&Script::new()).await;
    for (tool, more, expected) in [
        ("terminal_keys", json!({ "keys": [] }), r#""keys" is empty"#),
        ("terminal_keys", json!({ "keys": ["Entr"] }), "do you mean Enter?"),
        ("terminal_resize", json!({ "rows": -1, "cols": 80 }), r#""rows" must be a whole number"#),
        ("terminal_resize", json!({ "rows": 24, "cols": 1e9 }), r#""cols" must be a whole number"#),
        ("terminal_resize", json!({ "rows": 0, "cols": 80 }), "a terminal cannot have 0 rows"),
        ("terminal_wait", json!({ "until": {} }), "names nothing to wait for"),
        ("terminal_wait", json!({ "until": { "prompt": false } }), "names nothing to wait for"),
        ("terminal_wait", json!({ "until": { "silenceMs": 0 } }), r#""silenceMs" must be"#),
        ("terminal_search", json!({ "pattern": "x", "maxMatches": 0 }), r#""maxMatches" must be"#),
        ("terminal_lines", json!({ "fromLine": 1.5 }), r#""fromLine" must be"#),
    ] {
        let mut arguments = more;
        arguments["sessionId"] = json!("pty-1");
        let (code, message) = error(host.call(&agent, tool, arguments).await);
        assert_eq!(code, "INVALID_ARGS", "{tool}: {message}");
        assert!(message.contains(expected), "{tool}: {message}");
    }
    let unknown = json!({ "sessionId": "pty-9" });
    let (code, message) = error(host.call(&agent, "terminal_screen", unknown).await);
    assert_eq!((code.as_str(), message.as_str()), ("NO_SESSION", "unknown terminal session pty-9"));
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn cards_and_logs_show_no_text_that_may_be_a_secret() {
    let (host, _) = boot(&Script::new()).await;
    let tools = host.service::<Tools>();
    let shown = |name: &str| tools.present_call(name, &json!({ "sessionId": "pty-1" }));
    for (name, kind) in NAMES.into_iter().zip([
        ToolKind::Execute,
        ToolKind::Read,
        ToolKind::Execute,
        ToolKind::Read,
        ToolKind::Read,
        ToolKind::Read,
    ]) {
        assert_eq!(shown(name), Some(CallIntent::Generic { kind }), "{name}");
    }
    let arguments = json!({
        "sessionId": "pty-1",
        "keys": ["'hunter2'", "x", "C-c", "Enter", "hunter3", 7],
        "other": "secret",
    });
    let logged: Value = tools.log_arguments("terminal_keys", &arguments);
    assert_eq!(
        logged,
        json!({
            "sessionId": "pty-1",
            "keys": [{ "bytes": 9 }, { "bytes": 1 }, "C-c", "Enter", { "bytes": 7 }, { "bytes": 1 }],
            "other": { "bytes": 6 },
        })
    );
    host.dispose().await.unwrap();
}
