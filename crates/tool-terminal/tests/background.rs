//! Background sends through the whole pipeline, over a scripted session service.

use std::sync::Arc;

use agents::Agent;
use jobs::{JobStatus, Jobs};
use serde_json::{Value, json};
use terminal::{
    Evidence, LastCommand, SendOutcome, SendState, SessionStatus, StateKind, TerminalError,
    WaitReason,
};
use testkit::{Script, Step, TestHost, guarded, scripted::outcome};
use tool_jobs as _;
use tool_terminal as _;
use tools::{CallIntent, ErrorInfo, ResultIntent, ToolKind, ToolResult, Tools};

const JOBS: &str = "- name: jobs\n- name: tool-jobs\n";

/// A host with one session.
async fn boot(script: &Script, config: &str, jobs: &str) -> (TestHost, Arc<Agent>) {
    let rows = format!("{}- name: tool-terminal\n  config: {config}\n{jobs}", script.composition());
    let host = TestHost::boot(&rows).await;
    let agent = host.agent("a1");
    host.call(&agent, "terminal_open", json!({ "type": "scripted" })).await;
    (host, agent)
}

fn background(text: &str) -> Value {
    json!({ "sessionId": "pty-1", "text": text, "run_in_background": true })
}

fn id(id: &str) -> Value {
    json!({ "job_id": id })
}

fn wait(id: &str) -> Value {
    json!({ "job_id": id, "wait": true })
}

#[track_caller]
fn error(result: ToolResult) -> (String, String) {
    let Some(ErrorInfo { message, info }) = result.error else { panic!("no error: {result:?}") };
    (info.code, message)
}

fn ended(status: i32, viewport: &str) -> SendOutcome {
    let command = LastCommand { exit_code: Some(status), duration_ms: 5, cwd: None };
    SendOutcome { last_command: Some(command), ..outcome(viewport, WaitReason::StdinRead) }
}

#[tokio::test]
async fn the_id_comes_at_once_and_the_output_when_it_is_read() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{}", JOBS).await;
    script.hold(Step::Settle);
    let sent = host.call(&agent, "terminal_send", background("make")).await;
    assert_eq!(sent.text(), "started background job pty-send-1");
    assert_eq!(sent.value, Some(json!({ "kind": "background", "jobId": "pty-send-1" })));
    let operation = script.operation();
    assert!(operation.request().background && operation.request().submit);
    operation.push_output("make\ncc a.c\n");
    let read = host.call(&agent, "job_output", id("pty-send-1")).await;
    assert_eq!(read.text(), "make\ncc a.c\n[status: running]");
    operation.push_output("cc b.c\ndsh> ");
    operation.settle(Ok(ended(2, "make\ncc a.c\ncc b.c\ndsh> ")));
    let read = host.call(&agent, "job_output", wait("pty-send-1")).await;
    assert_eq!(read.text(), "cc b.c\ndsh> \n[exit: 2]\n[status: completed, wait: stdin_read]");
    let again = host.call(&agent, "job_output", id("pty-send-1")).await;
    assert_eq!(again.text(), "(no new output)\n[exit: 2]\n[status: completed, wait: stdin_read]");
    // The session takes the next send.
    let sent =
        host.call(&agent, "terminal_send", json!({ "sessionId": "pty-1", "text": "" })).await;
    assert!(!sent.is_error());
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn the_session_is_reserved_before_there_is_an_id() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{}", JOBS).await;
    script.hold(Step::Settle);
    host.call(&agent, "terminal_send", background("make")).await;
    for arguments in [background("ls"), json!({ "sessionId": "pty-1", "text": "ls" })] {
        let (code, _) = error(host.call(&agent, "terminal_send", arguments).await);
        assert_eq!(code, "SEND_ACTIVE");
    }
    let mut unknown = background("ls");
    unknown["sessionId"] = "pty-9".into();
    let (code, text) = error(host.call(&agent, "terminal_send", unknown).await);
    assert_eq!((code.as_str(), text.as_str()), ("NO_SESSION", "unknown terminal session pty-9"));
    script.operation().settle_as(WaitReason::StdinRead);
    host.call(&agent, "job_output", wait("pty-send-1")).await;
    script.fail(Step::StartSend, "the terminal is gone");
    let (code, text) = error(host.call(&agent, "terminal_send", background("ls")).await);
    assert_eq!((code.as_str(), text.as_str()), ("BACKEND_FAILED", "the terminal is gone"));
    // None of these has become a job.
    let listed = host.call(&agent, "job_list", json!({})).await;
    assert_eq!(listed.text(), "pty-send-1 [pty-send] completed — pty-1: make");
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn without_jobs_nothing_is_typed() {
    for jobs in ["", "- name: jobs\n"] {
        let script = Script::new();
        let (host, agent) = boot(&script, "{}", jobs).await;
        let (code, text) = error(host.call(&agent, "terminal_send", background("rm x")).await);
        assert_eq!(code, "NO_JOBS");
        assert!(text.contains("foreground"), "{text}");
        assert!(!script.lines().iter().any(|it| it.starts_with("start_send")), "{jobs}");
        let sent = json!({ "sessionId": "pty-1", "text": "ls" });
        assert!(!host.call(&agent, "terminal_send", sent).await.is_error());
        host.dispose().await.unwrap();
    }
}

#[tokio::test]
async fn ten_run_at_once_and_the_next_is_refused_with_the_way_out() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{}", JOBS).await;
    for _ in 0..10 {
        host.call(&agent, "terminal_open", json!({ "type": "scripted" })).await;
    }
    for number in 1..=11 {
        script.hold(Step::Settle);
        let mut arguments = background("sleep 100");
        arguments["sessionId"] = format!("pty-{number}").into();
        let sent = host.call(&agent, "terminal_send", arguments).await;
        if number <= 10 {
            assert_eq!(sent.text(), format!("started background job pty-send-{number}"));
        } else {
            let (code, text) = error(sent);
            assert_eq!(code, "TOO_MANY_JOBS");
            assert!(text.contains("10") && text.contains("job_kill"), "{text}");
        }
    }
    assert!(!script.lines().iter().any(|it| it.starts_with("start_send pty-11")), "nothing typed");
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_kill_ends_it_as_killed_once_the_program_has_ended() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{}", JOBS).await;
    script.hold(Step::Settle);
    host.call(&agent, "terminal_send", background("sleep 100")).await;
    let kill = json!({ "job_id": "pty-send-1", "reason": "enough" });
    let killed = host.call(&agent, "job_kill", kill).await;
    assert_eq!(killed.text(), "requested cancellation of job pty-send-1");
    assert!(script.lines().contains(&"cancel pty-1: enough".to_owned()));
    let read = host.call(&agent, "job_output", wait("pty-send-1")).await;
    assert_eq!(read.text(), "^C\n[status: killed, wait: stdin_read]");
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_program_that_goes_on_is_stopping_and_named() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{}", JOBS).await;
    script.hold(Step::Settle);
    script.ignore_cancellation(true);
    host.call(&agent, "terminal_send", background("./deaf")).await;
    host.call(&agent, "job_kill", id("pty-send-1")).await;
    let read = host.call(&agent, "job_output", id("pty-send-1")).await;
    // The scripted foreground has the process id of the shell.
    assert_eq!(
        read.text(),
        "(no new output)\n\
         [stopping: the shell itself, bash (pid 4711), still runs; terminal_close ends it]\n\
         [status: stopping]"
    );
    let listed = host.call(&agent, "job_list", json!({})).await;
    assert_eq!(listed.text(), "pty-send-1 [pty-send] stopping — pty-1: ./deaf");
    let signal = json!({ "sessionId": "pty-1", "signal": "SIGTERM" });
    assert!(!host.call(&agent, "terminal_signal", signal).await.is_error(), "works meanwhile");
    script.operation().settle_as(WaitReason::SessionExit);
    let read = host.call(&agent, "job_output", wait("pty-send-1")).await;
    assert_eq!(read.text(), "(no new output)\n[status: killed, session exited: 0]");
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn of_a_settlement_and_a_kill_in_the_same_tick_the_first_counts() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{}", JOBS).await;
    let jobs = host.service::<Jobs>();
    for (number, settled_first) in [(1, true), (2, false)] {
        script.hold(Step::Settle);
        host.call(&agent, "terminal_send", background("make")).await;
        let (operation, id) = (script.operation(), format!("pty-send-{number}"));
        // Nothing awaits in between, so nobody has heard of the first when the second comes.
        if settled_first {
            operation.settle_as(WaitReason::StdinRead);
            jobs.kill(Some(&agent), &id, "now").unwrap();
        } else {
            jobs.kill(Some(&agent), &id, "now").unwrap();
            operation.settle_as(WaitReason::StdinRead);
        }
        host.call(&agent, "job_output", wait(&id)).await;
        let expected = if settled_first { JobStatus::Completed } else { JobStatus::Killed };
        assert_eq!(jobs.get(Some(&agent), &id).unwrap().status, expected);
    }
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn ends_of_all_kinds() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{}", JOBS).await;
    let exited = |exit_code, signal: Option<&str>| SendOutcome {
        session_status: SessionStatus::Exited { exit_code, signal: signal.map(str::to_owned) },
        ..outcome("", WaitReason::SessionExit)
    };
    let waits = SendState {
        kind: StateKind::Line,
        evidence: Evidence::Exact,
        echo: true,
        alternate_screen: false,
        foreground: None,
        busy: None,
        output_complete: true,
    };
    let repaired =
        |outcome| SendOutcome { repaired: vec!["restored the echo".to_owned()], ..outcome };
    let cases = [
        (
            Ok(repaired(ended(1, ""))),
            "(The terminal was repaired: restored the echo.)\n[exit: 1]\n\
             [status: completed, wait: stdin_read]",
        ),
        (Ok(outcome("", WaitReason::InferredIdle)), "[status: completed, wait: inferred_idle]"),
        (Ok(outcome("", WaitReason::Timeout)), "[status: completed, wait: timeout]"),
        (
            Ok(SendOutcome { state: Some(waits), ..outcome("", WaitReason::StdinRead) }),
            "[state: waiting for input]\n[status: completed, wait: stdin_read]",
        ),
        (Ok(exited(Some(3), None)), "[status: completed, session exited: 3]"),
        (Ok(exited(None, Some("SIGKILL"))), "[status: completed, session exited: SIGKILL]"),
        (Ok(exited(None, None)), "[status: completed, session exited: unknown]"),
        (Err(TerminalError::Backend("it broke".to_owned())), "[status: failed, it broke]"),
    ];
    for (number, (settlement, expected)) in (1..).zip(cases) {
        script.hold(Step::Settle);
        host.call(&agent, "terminal_send", background("x")).await;
        script.operation().settle(settlement);
        let read = host.call(&agent, "job_output", wait(&format!("pty-send-{number}"))).await;
        assert_eq!(read.text(), format!("(no new output)\n{expected}"));
    }
    host.dispose().await.unwrap();

    let (host, agent) = boot(&script, "{ reportState: false }", JOBS).await;
    script.settle_with(repaired(ended(0, "x\ndsh> ")));
    host.call(&agent, "terminal_send", background("x")).await;
    let read = host.call(&agent, "job_output", wait("pty-send-1")).await;
    assert_eq!(read.text(), "(no new output)\n[status: completed, wait: stdin_read]");
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn labels_are_one_line_of_what_was_shown() {
    const SECRET: &str = "hunter2";
    let script = Script::new();
    let (host, agent) = boot(&script, "{}", JOBS).await;
    let jobs = host.service::<Jobs>();
    let long = "é".repeat(200);
    let cut = format!("pty-1: {}…", "é".repeat(95));
    for (number, (text, hidden, label)) in (1..).zip([
        ("make -j2", false, "pty-1: make -j2"),
        ("", false, "pty-1: (input)"),
        ("a\n\tb\u{3}", false, "pty-1: a\\n\\tb\\x03"),
        (&long, false, &cut),
        (SECRET, true, "pty-1: (7 bytes, echo off)"),
    ]) {
        script.hide_input(hidden).hold(Step::Settle);
        host.call(&agent, "terminal_send", background(text)).await;
        let id = format!("pty-send-{number}");
        let live = jobs.get(Some(&agent), &id).unwrap();
        assert_eq!(live.label, label);
        assert!(live.label.len() <= 200);
        script.operation().settle_as(WaitReason::StdinRead);
        host.call(&agent, "job_output", wait(&id)).await;
        assert_eq!(jobs.get(Some(&agent), &id).unwrap().label, label);
    }
    // What turns out to be hidden only in the end is hidden from then on.
    script.hide_input(false).hold(Step::Settle);
    host.call(&agent, "terminal_send", background(SECRET)).await;
    script.hide_input(true).operation().settle_as(WaitReason::StdinRead);
    guarded("a notice", agent.inbox().arrived()).await;
    let notice = &agent.inbox().drain()[0].text;
    assert!(notice.contains("(pty-send: pty-1: (7 bytes, echo off))"), "{notice}");
    let listed = host.call(&agent, "job_list", json!({})).await;
    assert!(!listed.text().contains(SECRET), "{}", listed.text());
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn what_was_hidden_is_not_logged() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{}", JOBS).await;
    for (text, hidden) in [("shown-text", false), ("hidden-text", true)] {
        script.hide_input(hidden);
        host.call(&agent, "terminal_send", background(text)).await;
    }
    host.dispose_agent(&agent).await.unwrap();
    let mut logs = Vec::new();
    for folder in std::fs::read_dir(host.home().join("sessions")).unwrap() {
        let file = folder.unwrap().path().join("a1/session.jsonl.zstd");
        let bytes = std::fs::read(file).unwrap();
        logs.extend(zstd::decode_all(bytes.as_slice()).unwrap());
    }
    let log = String::from_utf8(logs).unwrap();
    assert!(log.contains("shown-text"), "{log}");
    assert!(!log.contains("hidden-text"), "{log}");
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn at_the_smallest_bound_every_id_survives() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{ maxResultBytes: 64 }", JOBS).await;
    script.hold(Step::Settle);
    let long = "x".repeat(300);
    let sent = host.call(&agent, "terminal_send", background(&long)).await;
    assert_eq!(sent.text(), "started background job pty-send-1");
    script.operation().push_output(&long);
    let read = host.call(&agent, "job_output", id("pty-send-1")).await;
    let value = read.value.as_ref().unwrap();
    let free =
        value["text"].as_str().unwrap().len() + value["job"]["label"].as_str().unwrap().len();
    assert!(free <= 64, "{value}");
    assert!(read.text().ends_with("\n[status: running]\n[output truncated]"), "{}", read.text());
    assert_eq!(value["job"]["id"], "pty-send-1");
    script.operation().settle(Ok(ended(0, &long)));
    guarded("a notice", agent.inbox().arrived()).await;
    let notice = &agent.inbox().drain()[0].text;
    assert_eq!(notice, "job pty-send-1 finished. Read its output with job_output.");
    let killed = host.call(&agent, "job_kill", id("pty-send-1")).await;
    assert_eq!(killed.text(), "job pty-send-1 had already finished [status: completed]");
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn cards_are_generic() {
    let script = Script::new();
    let (host, _agent) = boot(&script, "{}", JOBS).await;
    let tools = host.service::<Tools>();
    let card = CallIntent::Generic { kind: ToolKind::Execute };
    assert_eq!(tools.present_call("terminal_send", &background("make")), Some(card));
    let value = Some(json!({ "kind": "background", "jobId": "pty-send-1" }));
    let result = ToolResult { content: Vec::new(), value, error: None };
    let shown = tools.present_result("terminal_send", &background("make"), &result);
    assert_eq!(shown, Some(ResultIntent::Generic { kind: ToolKind::Execute }));
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn the_end_of_an_agent_waits_for_no_program_that_is_deaf() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{}", JOBS).await;
    script.hold(Step::Settle);
    script.ignore_cancellation(true);
    host.call(&agent, "terminal_send", background("./deaf")).await;
    guarded("disposal", host.dispose_agent(&agent)).await.unwrap();
    let lines = script.lines();
    let at = |start: &str| lines.iter().position(|it| it.starts_with(start));
    assert!(at("cancel pty-1").unwrap() < at("close pty-1").unwrap(), "{lines:?}");
    assert!(at("closed pty-1").is_some(), "{lines:?}");
    host.dispose().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_under_way_is_ended_with_its_agent() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{}", JOBS).await;
    let starting = script.hold(Step::StartSend);
    script.hold(Step::Settle);
    let host = Arc::new(host);
    let (calling, caller) = (Arc::clone(&host), Arc::clone(&agent));
    let call = tokio::spawn(async move {
        calling.call(&caller, "terminal_send", background("sleep 100")).await
    });
    starting.arrived().await;
    let (ending, ended) = (Arc::clone(&host), Arc::clone(&agent));
    let end = tokio::spawn(async move { ending.dispose_agent(&ended).await });
    testkit::wait_until("the end has begun", || agent.is_ending()).await;
    starting.open();
    guarded("disposal", end).await.unwrap().unwrap();
    guarded("the call", call).await.unwrap();
    let lines = script.lines();
    assert!(lines.iter().any(|it| it.starts_with("cancel pty-1")), "{lines:?}");
    assert!(lines.contains(&"closed pty-1".to_owned()), "{lines:?}");
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_closed_session_ends_its_job() {
    let script = Script::new();
    let (host, agent) = boot(&script, "{}", JOBS).await;
    script.hold(Step::Settle);
    host.call(&agent, "terminal_send", background("make")).await;
    host.call(&agent, "terminal_close", json!({ "sessionId": "pty-1" })).await;
    let read = host.call(&agent, "job_output", wait("pty-send-1")).await;
    assert_eq!(read.text(), "(no new output)\n[status: completed, session exited: 0]");
    host.dispose().await.unwrap();
}
