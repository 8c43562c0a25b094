//! The six tools through the whole pipeline, over a scripted session service.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

use std::sync::{Arc, Mutex};

use agents::Agent;
use dsh_core::Cancel;
use serde_json::{Value, json};
use terminal::{
    Evidence, InputReceipt, LastCommand, Missing, SendOutcome, SendState, StateKind, WaitReason,
};
use testkit::{Script, Step, TestHost, guarded, scripted::outcome};
use tool_terminal as _;
use tools::{
    CallIntent, ErrorInfo, ProgressSink, ResultIntent, ToolCall, ToolKind, ToolResult, Tools,
};

async fn boot(script: &Script, config: &str) -> (TestHost, Arc<Agent>) {
    let rows = format!("{}- name: tool-terminal\n  config: {config}\n", script.composition());
    let host = TestHost::boot(&rows).await;
    let agent = host.agent("a1");
    (host, agent)
}

async fn open(host: &TestHost, agent: &Arc<Agent>) {
    let opened = host.call(agent, "terminal_open", json!({ "type": "scripted" })).await;
    assert_eq!(opened.text(), "started terminal session pty-1 [type: scripted]\ndsh> ");
}

#[track_caller]
fn error(result: ToolResult) -> (String, String) {
    let Some(ErrorInfo { message, info }) = result.error else { panic!("no error: {result:?}") };
    (info.code, message)
}

fn told(viewport: &str) -> SendOutcome {
    let mut it = outcome(viewport, WaitReason::StdinRead);
    it.last_command =
        Some(LastCommand { exit_code: Some(3), duration_ms: 5, cwd: Some("/tmp".into()) });
    it.state = Some(SendState {
        kind: StateKind::Prompt,
        evidence: Evidence::Exact,
        echo: true,
        alternate_screen: false,
        foreground: None,
        busy: None,
        output_complete: true,
    });
    it.input = Some(InputReceipt { accepted: 6, unread: Some(0), untyped: 0 });
    it.repaired = vec!["echo was off".to_owned()];
    it
}

#[tokio::test]
async fn one_session_from_open_to_close() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{}").await;
    let named = json!({ "type": "scripted", "name": "main" });
    let opened = host.call(&agent, "terminal_open", named).await;
    assert_eq!(opened.text(), "started terminal session pty-1 (main) [type: scripted]\ndsh> ");
    assert_eq!(
        opened.value,
        Some(json!({
            "sessionId": "pty-1", "name": "main", "type": "scripted", "pid": 4711,
            "status": { "kind": "running" }, "motd": "dsh> ",
        }))
    );

    script.settle_with(told("false\ndsh> "));
    let sent = json!({ "sessionId": "pty-1", "text": "false" });
    let sent = host.call(&agent, "terminal_send", sent).await;
    assert_eq!(
        sent.text(),
        "false\ndsh> \n(The terminal was repaired: echo was off.)\n[exit: 3]\n\
         [wait: stdin_read]\n[session: running]"
    );
    assert_eq!(
        sent.value,
        Some(json!({
            "kind": "foreground", "viewport": "false\ndsh> ", "waitReason": "stdin_read",
            "sessionStatus": { "kind": "running" }, "truncated": false,
            "lastCommand": { "exitCode": 3, "durationMs": 5, "cwd": "/tmp" },
            "state": {
                "kind": "prompt", "evidence": "exact", "echo": true, "alternateScreen": false,
                "outputComplete": true,
            },
            "input": { "accepted": 6, "unread": 0 },
            "repaired": ["echo was off"],
        }))
    );

    let read = host.call(&agent, "terminal_read", json!({ "sessionId": "pty-1" })).await;
    assert_eq!(read.text(), "dsh> \n[lines: 0-1 of 1]");
    let signal = json!({ "sessionId": "pty-1", "signal": "SIGINT" });
    let signal = host.call(&agent, "terminal_signal", signal).await;
    assert_eq!(signal.text(), "delivered SIGINT to foreground process group 4711");
    assert_eq!(signal.value, Some(json!({ "delivered": true, "targetPgid": 4711 })));
    let list = host.call(&agent, "terminal_list", json!({})).await;
    assert_eq!(list.text(), "pty-1 (main) [scripted] running pid=4711");

    let close = host.call(&agent, "terminal_close", json!({ "sessionId": "pty-1" })).await;
    assert_eq!(close.text(), "closed terminal session pty-1");
    assert_eq!(close.value, Some(json!({ "sessionId": "pty-1", "outcome": "closed" })));
    let list = host.call(&agent, "terminal_list", json!({})).await;
    assert_eq!((list.text().as_str(), list.value), ("(no terminal sessions)", Some(json!([]))));
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_second_close_joins_the_first() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{}").await;
    open(&host, &agent).await;
    let gate = script.hold(Step::Close);
    let id = json!({ "sessionId": "pty-1" });
    let closing = host.call(&agent, "terminal_close", id.clone());
    let joining = async {
        gate.arrived().await;
        let joining = host.call(&agent, "terminal_close", id);
        tokio::pin!(joining);
        // The second call has joined by the time it is pending.
        tokio::select! {
            biased;
            early = &mut joining => panic!("{early:?}"),
            () = tokio::task::yield_now() => gate.open(),
        }
        joining.await
    };
    let (first, second) = guarded("close", async { tokio::join!(closing, joining) }).await;
    assert_eq!(first.text(), "closed terminal session pty-1");
    assert_eq!(second.text(), "terminal session pty-1 was already closing");
    host.dispose().await.unwrap();
}

/// What the model reads is within the bound, and tells exactly what is not in it.
#[tokio::test]
async fn what_a_send_could_not_show_is_told_and_found() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{ maxResultBytes: 2000 }").await;
    open(&host, &agent).await;
    let lines: Vec<String> = (0..1000).map(|n| format!("line {n}")).collect();
    let session = script.session("pty-1");
    session.set_screen(&lines.join("\n"));
    // The backend itself gave the newest 500 of them.
    let mut outcome = outcome(&lines[500..].join("\n"), WaitReason::StdinRead);
    outcome.truncated = true;
    outcome.missing = Some(Missing { lines: 500, bytes: 4390, readable: 500, offset: 500 });
    script.settle_with(outcome);
    let sent = json!({ "sessionId": "pty-1", "text": "x" });
    let sent = host.call(&agent, "terminal_send", sent).await;
    let text = sent.text();
    assert!(text.len() <= 2000, "{}", text.len());
    let (note, rest) = text.split_once('\n').unwrap();
    let shown = rest.lines().filter(|line| line.starts_with("line")).count();
    assert!(shown > 100, "{text}");
    let missing = 1000 - shown;
    let bytes: usize = lines[..missing].iter().map(|line| line.len() + 1).sum();
    assert_eq!(
        note,
        format!(
            "[{missing} lines come before this, {bytes} bytes, not shown; terminal_read with \
             offset {shown} has them]"
        )
    );
    assert_eq!(rest.lines().next().unwrap(), lines[missing]);
    let arguments = json!({ "sessionId": "pty-1", "offset": shown, "count": 1 });
    let read = host.call(&agent, "terminal_read", arguments).await;
    assert!(
        read.text().starts_with(&format!("{}\n[lines:", lines[missing - 1])),
        "{}",
        read.text()
    );
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn without_report_state_values_are_the_compatible_ones() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{ reportState: false }").await;
    open(&host, &agent).await;
    script.settle_with(told("x\ndsh> "));
    let sent = json!({ "sessionId": "pty-1", "text": "x" });
    let sent = host.call(&agent, "terminal_send", sent).await;
    assert_eq!(sent.text(), "x\ndsh> \n[wait: stdin_read]\n[session: running]");
    let value = sent.value.unwrap();
    let names: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(names, ["kind", "viewport", "waitReason", "sessionStatus", "truncated"]);
    let read = host.call(&agent, "terminal_read", json!({ "sessionId": "pty-1" })).await;
    assert_eq!(read.value.unwrap().get("firstLine"), None);
    host.dispose().await.unwrap();
}

/// Parameter and output shapes of the reference, descriptions aside.
const SHAPES: &str = include_str!("dsh-shapes.json");

fn bare(schema: &Value) -> Value {
    match schema {
        Value::Object(entries) => entries
            .iter()
            .filter(|(key, value)| *key != "description" || !value.is_string())
            .map(|(key, value)| (key.clone(), bare(value)))
            .collect(),
        Value::Array(items) => items.iter().map(bare).collect(),
        value => value.clone(),
    }
}

/// Names the order of which means nothing.
fn sorted(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(entries) => {
            for (key, value) in entries.iter_mut() {
                *value = sorted(value.take());
                if let ("required", Value::Array(names)) = (key.as_str(), value) {
                    names.sort_by_key(Value::to_string);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                *item = sorted(item.take());
            }
        }
        _ => {}
    }
    schema
}

#[tokio::test]
async fn shapes_are_those_of_the_reference() {
    let shapes: Value = serde_json::from_str(SHAPES).unwrap();
    let script = Script::new();
    let (host, agent) = boot(&script, "{ reportState: false }").await;
    let tools = host.service::<Tools>().list(Some(&agent));
    let names: Vec<&str> = tools.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "terminal_close",
            "terminal_list",
            "terminal_open",
            "terminal_read",
            "terminal_send",
            "terminal_signal"
        ]
    );
    for tool in &tools {
        for (which, schema) in [("parameters", &tool.parameters), ("output", &tool.output)] {
            let expected = sorted(shapes[which][&tool.name].clone());
            assert_eq!(sorted(bare(schema)), expected, "{which} of {}", tool.name);
        }
    }
    host.dispose().await.unwrap();

    let (host, agent) = boot(&Script::new(), "{}").await;
    let tools = host.service::<Tools>().list(Some(&agent));
    let shown: Vec<String> = tools
        .iter()
        .map(|it| {
            let parameters = serde_json::to_string_pretty(&it.parameters).unwrap();
            format!("== {}\n{}\n{parameters}", it.name, it.description)
        })
        .collect();
    insta::assert_snapshot!("tools", shown.join("\n\n"));
    insta::assert_snapshot!("send_output", serde_json::to_string_pretty(&tools[4].output).unwrap());
    host.dispose().await.unwrap();
}

/// Tool, arguments, the code of the error and a part of its text.
type Bad = (&'static str, Value, &'static str, &'static str);

fn bad_arguments() -> Vec<Bad> {
    vec![
        (
            "terminal_open",
            json!({ "type": "" }),
            "INVALID_ARGS",
            r#""type" is empty: available types are scripted"#,
        ),
        ("terminal_open", json!({ "type": "vm" }), "NO_BACKEND", "`vm`"),
        (
            "terminal_open",
            json!({ "type": "scripted", "name": "" }),
            "INVALID_ARGS",
            r#""name" is empty"#,
        ),
        ("terminal_open", json!({ "type": 3 }), "INVALID_ARGS", "type"),
        (
            "terminal_send",
            json!({ "sessionId": "", "text": "x" }),
            "INVALID_ARGS",
            r#""sessionId" is empty"#,
        ),
        (
            "terminal_send",
            json!({ "sessionId": "pty-9", "text": "x" }),
            "NO_SESSION",
            "unknown terminal session pty-9",
        ),
        (
            "terminal_send",
            json!({ "sessionId": "pty-1" }),
            "INVALID_ARGS",
            r#"missing required property "text""#,
        ),
        (
            "terminal_send",
            json!({ "sessionId": "pty-1", "text": "x", "run_in_background": true }),
            "NO_JOBS",
            "jobs service",
        ),
        ("terminal_read", json!({ "sessionId": "" }), "INVALID_ARGS", r#""sessionId" is empty"#),
        (
            "terminal_read",
            json!({ "sessionId": "pty-1", "offset": -1 }),
            "INVALID_ARGS",
            r#""offset" must be a non-negative integer, got -1"#,
        ),
        (
            "terminal_read",
            json!({ "sessionId": "pty-1", "offset": 1.5 }),
            "INVALID_ARGS",
            "got 1.5",
        ),
        (
            "terminal_read",
            json!({ "sessionId": "pty-1", "count": 0 }),
            "INVALID_ARGS",
            r#""count" must be a positive integer, got 0"#,
        ),
        (
            "terminal_read",
            json!({ "sessionId": "pty-1", "count": 1e300 }),
            "INVALID_ARGS",
            "got 1e+300",
        ),
        (
            "terminal_read",
            json!({ "sessionId": "pty-1", "count": 9_007_199_254_740_992_u64 }),
            "INVALID_ARGS",
            "up to 2^53 - 1, got 9007199254740992",
        ),
        (
            "terminal_signal",
            json!({ "sessionId": "", "signal": "SIGINT" }),
            "INVALID_ARGS",
            r#""sessionId" is empty"#,
        ),
        (
            "terminal_signal",
            json!({ "sessionId": "pty-1", "signal": "SIGUSR1" }),
            "INVALID_ARGS",
            "signal",
        ),
        ("terminal_close", json!({ "sessionId": "" }), "INVALID_ARGS", r#""sessionId" is empty"#),
        (
            "terminal_close",
            json!({ "sessionId": "pty-9" }),
            "NO_SESSION",
            "unknown terminal session pty-9",
        ),
    ]
}

#[tokio::test]
async fn bad_arguments_are_named_and_nothing_is_done() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{}").await;
    open(&host, &agent).await;
    let before = script.lines();
    for (tool, arguments, code, part) in bad_arguments() {
        let result = host.call(&agent, tool, arguments.clone()).await;
        assert!(result.text().starts_with("Error: "), "{}", result.text());
        let (found, message) = error(result);
        assert!(found == code && message.contains(part), "{tool} {arguments}: {found}: {message}");
    }
    assert_eq!(script.lines(), before);
    let whole = json!({ "sessionId": "pty-1", "offset": 0.0, "count": 5.0 });
    assert_eq!(host.call(&agent, "terminal_read", whole).await.error, None);
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn no_agent_no_terminal() {
    let (host, _) = boot(&Script::new(), "{}").await;
    for (tool, arguments) in [
        ("terminal_open", json!({ "type": "scripted" })),
        ("terminal_send", json!({ "sessionId": "pty-1", "text": "x" })),
        ("terminal_read", json!({ "sessionId": "pty-1" })),
        ("terminal_signal", json!({ "sessionId": "pty-1", "signal": "SIGINT" })),
        ("terminal_close", json!({ "sessionId": "pty-1" })),
        ("terminal_list", json!({})),
    ] {
        let call = ToolCall {
            call_id: "c1".to_owned(),
            name: tool.to_owned(),
            arguments,
            agent: None,
            cancel: Cancel::new(),
            progress: None,
        };
        let found = error(host.service::<Tools>().call(call).await);
        let expected = ("NO_AGENT", "terminal tools require an initiating agent");
        assert_eq!((found.0.as_str(), found.1.as_str()), expected, "{tool}");
    }
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn background_sends_can_be_switched_off() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{ enableRunInBackground: false }").await;
    open(&host, &agent).await;
    let tools = host.service::<Tools>().list(Some(&agent));
    let tool = tools.iter().find(|it| it.name == "terminal_send").unwrap();
    assert_eq!(tool.parameters["properties"].get("run_in_background"), None);
    assert!(!tool.description.contains("background"));
    let sent = json!({ "sessionId": "pty-1", "text": "x", "run_in_background": false });
    let (code, message) = error(host.call(&agent, "terminal_send", sent).await);
    assert!(code == "INVALID_ARGS" && message.contains("run_in_background"), "{message}");
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_cancelled_send_is_cancelled_once_and_awaited() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{}").await;
    open(&host, &agent).await;
    script.hold(Step::Settle);
    let cancel = Cancel::new();
    let sent = json!({ "sessionId": "pty-1", "text": "sleep 9" });
    let sending = host.call_with(&agent, "terminal_send", sent, &cancel);
    let cancelling = async {
        script.saw("start_send").await;
        cancel.cancel("the user lost patience");
    };
    guarded("cancelled send", async { tokio::join!(sending, cancelling) }).await;
    let cancels: Vec<String> =
        script.lines().into_iter().filter(|it| it.starts_with("cancel")).collect();
    assert_eq!(cancels, ["cancel pty-1: the user lost patience"]);
    host.dispose().await.unwrap();
}

#[derive(Default)]
struct Sink(Mutex<String>);

impl ProgressSink for Sink {
    fn output(&self, text: &str) {
        self.0.lock().unwrap().push_str(text);
    }
}

#[tokio::test]
async fn progress_carries_output_while_the_send_waits() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{}").await;
    open(&host, &agent).await;
    let gate = script.hold(Step::Settle);
    let sink = Arc::new(Sink::default());
    let call = ToolCall {
        call_id: "c1".to_owned(),
        name: "terminal_send".to_owned(),
        arguments: json!({ "sessionId": "pty-1", "text": "make" }),
        agent: Some(Arc::clone(&agent)),
        cancel: Cancel::new(),
        progress: Some(Arc::clone(&sink) as Arc<dyn ProgressSink>),
    };
    let tools = host.service::<Tools>();
    let calling = tools.call(call);
    let showing = async {
        script.saw("start_send").await;
        script.operation().push_output("building\n");
        testkit::wait_until("progress", || sink.0.lock().unwrap().as_str() == "building\n").await;
        gate.open();
    };
    let (result, ()) = guarded("send", async { tokio::join!(calling, showing) }).await;
    assert_eq!(result.error, None);
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn every_text_keeps_the_bound() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{ maxResultBytes: 64 }").await;
    open(&host, &agent).await;
    script.settle_with(outcome(&"é".repeat(500), WaitReason::StdinRead));
    let sent = json!({ "sessionId": "pty-1", "text": "x" });
    let sent = host.call(&agent, "terminal_send", sent).await;
    assert_eq!(sent.text(), "ééé\n[wait: stdin_read]\n[session: running]\n[output truncated]");
    let value = sent.value.unwrap();
    assert_eq!(value["viewport"], "é".repeat(32));
    assert_eq!(value["truncated"], true);

    script.session("pty-1").set_screen(&"line\n".repeat(100));
    let read = host.call(&agent, "terminal_read", json!({ "sessionId": "pty-1" })).await;
    assert!(read.text().len() <= 64, "{}", read.text());
    assert!(
        read.text() == "line\nline\nline\nline\n[lines: 0-5 of 101]\n[output truncated]",
        "{}",
        read.text()
    );

    assert_eq!(read.value.unwrap()["lineEnd"], 5);

    let long = json!({ "sessionId": "x".repeat(500) });
    let failed = host.call(&agent, "terminal_close", long).await;
    assert!(failed.text().len() <= 64, "{}", failed.text());
    assert!(failed.text().starts_with("Error: unknown terminal session xxx"));
    assert!(failed.text().ends_with("\n[output truncated]"));
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn cards() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{}").await;
    open(&host, &agent).await;
    let tools = host.service::<Tools>();
    let send = json!({ "sessionId": "pty-1", "text": "ls\n" });
    let terminal = |title: &str| {
        Some(CallIntent::Terminal {
            title: title.to_owned(),
            description: "Terminal pty-1".to_owned(),
        })
    };
    assert_eq!(tools.present_call("terminal_send", &send), terminal("ls\\n"));
    // What the first line runs may ask for the second without echo.
    let asks = json!({ "sessionId": "pty-1", "text": "read -s x\nhush" });
    let first = terminal("read -s x … (4 more bytes)");
    assert_eq!(tools.present_call("terminal_send", &asks), first);
    let logged = json!({ "sessionId": "pty-1", "text": { "bytes": 8 } });
    assert_eq!(tools.present_call("terminal_send", &logged), terminal("(8 bytes, echo off)"));
    for (tool, kind) in [
        ("terminal_open", ToolKind::Execute),
        ("terminal_signal", ToolKind::Execute),
        ("terminal_read", ToolKind::Read),
        ("terminal_list", ToolKind::Read),
        ("terminal_close", ToolKind::Delete),
    ] {
        assert_eq!(tools.present_call(tool, &json!({})), Some(CallIntent::Generic { kind }));
    }
    let background = json!({ "sessionId": "pty-1", "text": "x", "run_in_background": true });
    let execute = Some(CallIntent::Generic { kind: ToolKind::Execute });
    assert_eq!(tools.present_call("terminal_send", &background), execute);

    let done = host.call(&agent, "terminal_send", send.clone()).await;
    assert_eq!(
        tools.present_result("terminal_send", &send, &done),
        Some(ResultIntent::Terminal {
            title: "ls\\n".to_owned(),
            description: "Terminal pty-1".to_owned(),
            output: done.text(),
        })
    );
    let failed = host.call(&agent, "terminal_send", background.clone()).await;
    assert_eq!(tools.present_result("terminal_send", &background, &failed), None);
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn what_was_typed_unseen_stays_unseen() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{}").await;
    open(&host, &agent).await;
    let tools = host.service::<Tools>();
    let mut asks = told("sudo true\nPassword: ");
    asks.state.as_mut().unwrap().kind = StateKind::Password;
    asks.state.as_mut().unwrap().echo = false;
    script.settle_with(asks);
    let sudo = json!({ "sessionId": "pty-1", "text": "sudo true" });
    let asked = host.call(&agent, "terminal_send", sudo.clone()).await;
    assert!(asked.text().contains("[state: waiting for input, echo off]"), "{}", asked.text());

    let secret = json!({ "sessionId": "pty-1", "text": "hunter22" });
    let Some(CallIntent::Terminal { title, .. }) = tools.present_call("terminal_send", &secret)
    else {
        panic!("no card");
    };
    assert_eq!(title, "(8 bytes, echo off)");
    let mut unseen = told("\ndsh> ");
    unseen.echoed = false;
    script.settle_with(unseen);
    let done = host.call(&agent, "terminal_send", secret.clone()).await;
    let Some(ResultIntent::Terminal { title, .. }) =
        tools.present_result("terminal_send", &secret, &done)
    else {
        panic!("no card");
    };
    assert_eq!(title, "(8 bytes, echo off)");
    let Some(ResultIntent::Terminal { title, .. }) =
        tools.present_result("terminal_send", &sudo, &asked)
    else {
        panic!("no card");
    };
    assert_eq!(title, "sudo true");

    let log = logged(&host).await;
    assert!(!log.contains("hunter22"), "{log}");
    assert!(log.contains(r#""text":{"bytes":8}"#), "{log}");
    assert!(log.contains(r#""text":"sudo true""#), "{log}");
}

#[tokio::test]
async fn what_may_be_a_secret_is_neither_logged_nor_quoted() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{}").await;
    open(&host, &agent).await;
    for (tool, arguments) in [
        ("terminal_send", json!({ "sessionId": "pty-1", "input": "hunter22" })),
        ("terminal_send", json!({ "sessionId": "pty-1", "text": ["hunter22"] })),
        ("terminal_send", json!({ "sessionId": "pty-1", "text": "x", "submit": "hunter22" })),
        ("terminal_send", json!({ "sessionId": { "text": "hunter22" }, "text": "x" })),
        ("terminal_send", json!("hunter22")),
        ("terminal_send", json!(["pty-1", "hunter22"])),
        ("terminal_sendd", json!({ "sessionId": "pty-1", "text": "hunter22" })),
        ("terminal_read", json!({ "sessionId": "pty-1", "text": "hunter22" })),
        ("terminal_list", json!({ "text": "hunter22" })),
    ] {
        let result = host.call(&agent, tool, arguments.clone()).await;
        assert!(result.is_error(), "{tool} {arguments}");
        assert!(!result.text().contains("hunter22"), "{tool} {arguments}: {}", result.text());
    }
    let log = logged(&host).await;
    assert!(!log.contains("hunter22"), "{log}");
    for part in [
        r#""arguments":{"sessionId":"pty-1","input":{"bytes":8}}"#,
        r#""arguments":{"sessionId":"pty-1","text":{"bytes":12}}"#,
        r#""arguments":{"bytes":8}"#,
        r#""name":"terminal_sendd","arguments":{"sessionId":{"bytes":5},"text":{"bytes":8}}"#,
    ] {
        assert!(log.contains(part), "{part} in {log}");
    }
}

/// Every event of every session of the host, which is ended by this.
async fn logged(host: &TestHost) -> String {
    host.dispose().await.unwrap();
    let mut text = String::new();
    let mut folders = vec![host.home().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "zstd") {
                let events = zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap();
                text.push_str(&String::from_utf8(events).unwrap());
            }
        }
    }
    text
}

#[tokio::test]
async fn configuration_is_checked_before_anything_starts() {
    for (config, part) in [
        ("{ maxResultBytes: 63 }", "maxResultBytes: 63 is out of range: at least 64"),
        ("{ maxResultBytes: 9007199254740992 }", "at most 9007199254740991"),
        ("{ maxResultBytes: -1 }", "maxResultBytes"),
        ("{ maxResultBytes: many }", "maxResultBytes"),
        ("{ reportState: 3 }", "reportState"),
        ("{ reportstate: true }", "reportState"),
    ] {
        let rows =
            format!("{}- name: tool-terminal\n  config: {config}\n", Script::new().composition());
        let Err(error) = TestHost::try_boot(&rows).await else { panic!("{config} is accepted") };
        assert!(format!("{error:#}").contains(part), "{config}: {error:#}");
    }
}
