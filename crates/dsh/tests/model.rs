//! `dsh run TASK` from the command line to a model's server and back.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

use std::{
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{
    chat::{Answer, End, Server, broken, delta, finish, refusal, status, stream, text},
    guarded,
    leaks::processes_with_env,
    wait_until,
};

const KEY: &str = "sk-0123456789abcdef";
const TAG: &str = "MODEL_TEST";

/// The program, in a folder of its own, with `key` as the one key there is.
fn command(folder: &Path, arguments: &[&str], key: Option<&str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dsh"));
    command
        .arg("run")
        .args(arguments)
        .current_dir(folder)
        .env("DSH_HOME", folder.join("home"))
        .env("DSH_LOG", "trace")
        .env(TAG, folder)
        .env_remove("DEEPSEEK_API_KEY")
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(key) = key {
        command.env("OPENAI_API_KEY", key);
    }
    command
}

/// What it printed until its end, which leaves nothing over.
async fn end(child: Child, folder: &Path) -> Output {
    let ended = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    let output = guarded("the run", ended).await.unwrap();
    let left = processes_with_env(TAG, folder.to_str().unwrap());
    assert!(left.is_empty(), "left over: {left:?}");
    for stream in [&output.stdout, &output.stderr] {
        assert!(!String::from_utf8_lossy(stream).contains(KEY), "the key was printed");
    }
    output
}

async fn run(folder: &Path, arguments: &[&str], key: Option<&str>) -> Output {
    end(command(folder, arguments, key).spawn().unwrap(), folder).await
}

/// A task for the model of this server.
async fn ask(server: &Server, folder: &Path, more: &[&str]) -> Output {
    let url = format!("http://{}/v1", server.address);
    let mut arguments = vec!["--base-url", &url, "--model", "tiny"];
    arguments.extend(more);
    arguments.push("Compute it.");
    run(folder, &arguments, Some(KEY)).await
}

fn call(id: &str, name: &str, arguments: &Value) -> Value {
    call_text(id, name, &arguments.to_string())
}

fn call_text(id: &str, name: &str, arguments: &str) -> Value {
    let function = json!({ "name": name, "arguments": arguments });
    delta(
        &json!({ "tool_calls": [{ "index": 0, "id": id, "type": "function", "function": function }] }),
    )
}

/// More of the arguments of the call before.
fn more(arguments: &str) -> Value {
    delta(&json!({ "tool_calls": [{ "index": 0, "function": { "arguments": arguments } }] }))
}

fn open() -> Answer {
    let call = call("a", "terminal_open", &json!({ "type": "shell" }));
    stream(&[text("I will look. "), call, finish("tool_calls")])
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[tokio::test]
async fn a_task_is_done_in_a_real_shell() {
    let folder = TempDir::new().unwrap();
    let busy = Answer::Plain {
        status: "429 Too Many Requests",
        headers: "retry-after: 0\r\n".to_owned(),
        body: String::new(),
    };
    let send = r#"{"sessionId":"pty-1","text":"echo "#;
    let server = Server::play([
        open(),
        stream(&[
            delta(&json!({ "reasoning_content": "6 times 7." })),
            call_text("b", "terminal_send", send),
            more("result-$((6 * 7))"),
            more(r#" | tee out.txt"}"#),
            finish("tool_calls"),
        ]),
        busy,
        stream(&[text("It is "), text("42."), finish("stop")]),
    ])
    .await;
    let output = ask(&server, folder.path(), &[]).await;
    let (out, errors) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(out.contains("I will look."), "{out}");
    assert!(out.contains("result-42"), "{out}");
    assert!(out.contains("It is 42."), "{out}");
    let file = std::fs::read_to_string(folder.path().join("out.txt")).unwrap();
    assert_eq!(file, "result-42\n");

    let requests: Vec<Value> = server.requests().into_iter().map(|it| it.body).collect();
    assert_eq!(requests.len(), 4);
    assert_eq!(requests[2], requests[3], "the same again after the 429");
    let tools = requests[0]["tools"].as_array().unwrap();
    assert!(tools.iter().any(|it| it["function"]["name"] == "terminal_send"), "{tools:?}");
    let messages = requests[3]["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "tool"]);
    assert_eq!(messages[1]["content"], "Compute it.");
    assert_eq!(messages[4]["reasoning_content"], "6 times 7.");
    assert_eq!(messages[5]["tool_call_id"], "b");
    assert!(messages[5]["content"].as_str().unwrap().contains("result-42"), "{messages:?}");
}

#[tokio::test]
async fn a_model_hears_of_its_broken_calls() {
    let folder = TempDir::new().unwrap();
    let server = Server::play([
        stream(&[call_text("a", "terminal_open", r#"{"type": "she"#), finish("tool_calls")]),
        stream(&[call("b", "terminal_fly", &json!({})), finish("tool_calls")]),
        broken(&[text("I se")], End::Cut),
        stream(&[text("I see."), finish("stop")]),
    ])
    .await;
    let output = ask(&server, folder.path(), &[]).await;
    let (out, errors) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(out.contains("I see."), "{out}");
    let last = server.requests().pop().unwrap().body;
    let results = last["messages"].as_array().unwrap().iter().filter(|it| it["role"] == "tool");
    let results: Vec<_> = results.map(|it| it["content"].as_str().unwrap()).collect();
    assert_eq!(results.len(), 2, "{last}");
    assert!(results[0].contains("no JSON"), "{results:?}");
    assert!(
        results[1].contains("terminal_fly") && results[1].contains("terminal_open"),
        "{results:?}"
    );
}

#[tokio::test]
async fn a_conversation_too_long_is_trimmed_once() {
    let folder = TempDir::new().unwrap();
    let too_long = || refusal("400 Bad Request", "too long", "context_length_exceeded");
    let send = json!({ "sessionId": "pty-1", "text": "seq 2000" });
    let server = Server::play([
        open(),
        stream(&[call("b", "terminal_send", &send), finish("tool_calls")]),
        too_long(),
        stream(&[text("Counted."), finish("stop")]),
    ])
    .await;
    let output = ask(&server, folder.path(), &[]).await;
    let (out, errors) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(out.contains("Counted."), "{out}");
    let sizes: Vec<_> = server.requests().iter().map(|it| it.body.to_string().len()).collect();
    assert!(sizes[3] < sizes[2], "{sizes:?}");
}

#[tokio::test]
async fn what_no_retry_helps_ends_the_run() {
    for (answer, message) in [
        (refusal("401 Unauthorized", "who?", "x"), "refused the key in OPENAI_API_KEY (401"),
        (refusal("404 Not Found", "no", "model_not_found"), "has no model `tiny`"),
    ] {
        let folder = TempDir::new().unwrap();
        let server = Server::play([answer]).await;
        let output = ask(&server, folder.path(), &[]).await;
        let (_, errors) = said(&output);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(message), "{errors}");
        assert!(errors.contains(&server.address.to_string()), "{errors}");
    }
}

/// A server in trouble, one that is not there, and one that sends what cannot be read.
#[tokio::test]
async fn a_server_that_gives_no_reply_ends_the_run() {
    let trouble = || status("500 Internal Server Error", format!("bad {KEY}"));
    let unreadable = format!("data: {{{KEY}\n\n").into_bytes();
    for (answers, message) in [
        (vec![trouble(), trouble()], "is in trouble (500 Internal Server Error: bad [key])"),
        (vec![], "cannot reach http://"),
        (
            vec![Answer::Events { pieces: vec![unreadable], end: End::Whole }],
            "sent a piece of its answer that cannot be read",
        ),
    ] {
        let folder = TempDir::new().unwrap();
        let fast = "- id: model-openai\n  config: { retryDelayMs: 1, maxRetries: 1 }\n";
        std::fs::write(folder.path().join("fast.yml"), fast).unwrap();
        let asked = answers.len();
        let server = Server::play(answers).await;
        let output = ask(&server, folder.path(), &["--patch", "fast.yml"]).await;
        let (_, errors) = said(&output);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(message), "{errors}");
        assert!(errors.contains(&server.address.to_string()), "{errors}");
        assert_eq!(server.requests().len(), asked, "{errors}");
    }
}

#[tokio::test]
async fn calls_of_one_reply_run_in_order() {
    let folder = TempDir::new().unwrap();
    let call = |index: u64, id: &str, name: &str, arguments: Value| {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        delta(&json!({ "tool_calls": [{ "index": index, "id": id, "function": function }] }))
    };
    let send = |session: &str, text: &str| json!({ "sessionId": session, "text": text });
    let server = Server::play([
        stream(&[
            call(0, "a", "terminal_open", json!({ "type": "shell" })),
            call(1, "b", "terminal_open", json!({ "type": "shell" })),
            call(2, "c", "terminal_send", send("pty-1", "echo one >> order")),
            call(3, "d", "terminal_send", send("pty-2", "echo two >> order; cat order")),
            finish("tool_calls"),
        ]),
        stream(&[text("Done."), finish("stop")]),
    ])
    .await;
    let output = ask(&server, folder.path(), &[]).await;
    let (_, errors) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let order = std::fs::read_to_string(folder.path().join("order")).unwrap();
    assert_eq!(order, "one\ntwo\n");
    let last = server.requests().pop().unwrap().body;
    let results = last["messages"].as_array().unwrap().iter().filter(|it| it["role"] == "tool");
    let results: Vec<_> = results
        .map(|it| (it["tool_call_id"].as_str().unwrap(), it["content"].as_str().unwrap()))
        .collect();
    let ids: Vec<_> = results.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, ["a", "b", "c", "d"]);
    assert!(results[3].1.contains("one\ntwo\n"), "{results:?}");
}

#[tokio::test]
async fn a_model_that_fails_for_good_leaves_nothing_of_what_it_started() {
    let broken = || Answer::Plain {
        status: "500 Internal Server Error",
        headers: "retry-after: 0\r\n".to_owned(),
        body: String::new(),
    };
    for failures in [vec![refusal("401 Unauthorized", "who?", "x")], vec![broken(); 5]] {
        let folder = TempDir::new().unwrap();
        let background = json!({
            "sessionId": "pty-1", "text": "sleep 300 & (trap '' HUP INT TERM; touch begun; sleep 301)",
            "run_in_background": true
        });
        let other =
            json!({ "sessionId": "pty-2", "text": "until [ -e begun ]; do sleep 0.05; done" });
        let asked = 4 + failures.len();
        let server = Server::play(
            [
                open(),
                stream(&[call("b", "terminal_send", &background), finish("tool_calls")]),
                stream(&[
                    call("c", "terminal_open", &json!({ "type": "shell" })),
                    finish("tool_calls"),
                ]),
                stream(&[call("d", "terminal_send", &other), finish("tool_calls")]),
            ]
            .into_iter()
            .chain(failures),
        )
        .await;
        // That nothing is left over is checked where it ends.
        let output = ask(&server, folder.path(), &[]).await;
        assert_eq!(output.status.code(), Some(1), "{:?}", said(&output));
        let requests = server.requests();
        assert_eq!(requests.len(), asked);
        let told = requests.last().unwrap().body.to_string();
        assert!(told.contains("started background job pty-send-1"), "{told}");
        assert!(told.contains("[exit: 0]"), "{told}");
    }
}

#[tokio::test]
async fn an_interrupt_drops_the_request() {
    let folder = TempDir::new().unwrap();
    let mut server = Server::play([broken(&[text("I th")], End::Silence)]).await;
    let url = format!("http://{}/v1", server.address);
    let arguments = ["--base-url", &url, "--model", "tiny", "Compute it."];
    let child = command(folder.path(), &arguments, Some(KEY)).spawn().unwrap();
    wait_until("the request", || !server.requests().is_empty()).await;
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    guarded("the connection ends", server.left.recv()).await.unwrap();
    let output = end(child, folder.path()).await;
    assert_eq!(output.status.code(), Some(130), "{:?}", said(&output));
}

#[tokio::test]
async fn without_a_key_nothing_runs() {
    let folder = TempDir::new().unwrap();
    let output = run(folder.path(), &["Compute it."], None).await;
    let (out, errors) = said(&output);
    assert_eq!((output.status.code(), out.as_str()), (Some(2), ""), "{errors}");
    assert!(errors.contains("error: there is no key for https://api.deepseek.com"), "{errors}");
    assert!(errors.contains("DEEPSEEK_API_KEY or OPENAI_API_KEY"), "{errors}");
}

#[tokio::test]
async fn flags_are_checked_before_anything_runs() {
    let folder = TempDir::new().unwrap();
    let output = run(folder.path(), &["--base-url", "localhost:8000", "Go."], Some(KEY)).await;
    let (_, errors) = said(&output);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("baseUrl: must begin with https:// or http://"), "{errors}");
}
