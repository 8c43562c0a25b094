//! A client that speaks the protocol by hand, over a scripted session service.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

use std::{collections::VecDeque, sync::Arc};

use agents::{Agent, Agents, Notice};
use futures_util::FutureExt as _;
use mcp::Mcp;
use serde_json::{Value, json};
use session_log::read_log;
use terminal::{Terminals, WaitReason};
use testkit::{Script, Step, TestHost, guarded, scripted::outcome, wait_until};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use tool_jobs as _;
use tool_terminal as _;

/// One client, and the server it talks to.
struct Client {
    write: DuplexStream,
    read: Lines<BufReader<DuplexStream>>,
    /// What came while something else was waited for.
    stash: VecDeque<Value>,
    server: JoinHandle<anyhow::Result<()>>,
    stop: CancellationToken,
}

impl Client {
    fn connect(host: &TestHost) -> Self {
        let (write, input) = tokio::io::duplex(1 << 20);
        let (output, read) = tokio::io::duplex(1 << 20);
        let stop = CancellationToken::new();
        let (mcp, root) = (host.service::<Mcp>(), host.workspace().to_owned());
        let stopping = stop.clone();
        let server = tokio::spawn(async move { mcp.serve(input, output, root, stopping).await });
        let read = BufReader::new(read).lines();
        Self { write, read, stash: VecDeque::new(), server, stop }
    }

    async fn initialized(host: &TestHost, capabilities: Value) -> (Self, Value) {
        let mut client = Self::connect(host);
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": capabilities,
            "clientInfo": { "name": "test", "version": "1" },
        });
        client.request(0, "initialize", hello).await;
        let welcome = client.response(0).await;
        client.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        (client, welcome)
    }

    async fn send(&mut self, message: Value) {
        self.write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn request(&mut self, id: u64, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
    }

    async fn call(&mut self, id: u64, tool: &str, arguments: Value) {
        self.request(id, "tools/call", json!({ "name": tool, "arguments": arguments })).await;
    }

    /// The first message that `wanted` accepts.
    async fn find(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.stash.iter().position(&wanted) {
            return self.stash.remove(at).unwrap();
        }
        loop {
            let line = guarded(what, self.read.next_line()).await.unwrap();
            let line = line.unwrap_or_else(|| panic!("{what}: the server has closed its output"));
            let message: Value = serde_json::from_str(&line).unwrap();
            if wanted(&message) {
                return message;
            }
            self.stash.push_back(message);
        }
    }

    async fn response(&mut self, id: u64) -> Value {
        let what = format!("response {id}");
        let response = self.find(&what, |it| it["id"] == id && it.get("method").is_none()).await;
        response.get("result").unwrap_or_else(|| panic!("{response}")).clone()
    }

    async fn notification(&mut self, method: &str) -> Value {
        self.find(method, |it| it["method"] == method).await["params"].clone()
    }

    /// Ends the input and waits for the server.
    async fn close(self) {
        drop(self.write);
        guarded("the server's end", self.server).await.unwrap().unwrap();
    }
}

async fn boot(script: &Script, mcp: &str) -> TestHost {
    let rows = script.composition();
    TestHost::boot(&format!("{rows}- name: tool-terminal\n- name: mcp\n  config: {mcp}\n")).await
}

fn only_agent(host: &TestHost) -> Arc<Agent> {
    let agents = host.service::<Agents>().list();
    assert_eq!(agents.len(), 1);
    Arc::clone(&agents[0])
}

/// The lines of the agent's log.
fn log_of(host: &TestHost, agent: &Agent) -> Vec<Value> {
    let mut workspaces = std::fs::read_dir(host.home().join("sessions")).unwrap();
    let file = workspaces.next().unwrap().unwrap().path().join(agent.id());
    read_log(&file.join("session.jsonl.zstd")).unwrap()
}

#[tokio::test]
async fn a_session_from_hello_to_end() {
    let script = Script::new();
    let host = boot(&script, "{}").await;
    let (mut client, welcome) = Client::initialized(&host, json!({})).await;
    assert_eq!(welcome["serverInfo"]["name"], "dsh");
    assert_eq!(welcome["protocolVersion"], "2025-06-18");
    let instructions = welcome["instructions"].as_str().unwrap();
    assert!(instructions.contains("Use a terminal session only when"), "{instructions}");
    assert!(instructions.contains("mounts no one-shot"), "{instructions}");
    let sandbox = "Sandbox mode: danger-full-access (commands run with every right of the user who \
        started this host, and nothing confines them).";
    assert!(instructions.ends_with(sandbox), "{instructions}");

    client.request(1, "tools/list", json!({})).await;
    let tools = client.response(1).await["tools"].clone();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
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
    for tool in tools.as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert_eq!(tool.get("outputSchema"), None);
    }

    client.call(2, "terminal_open", json!({ "type": "scripted" })).await;
    let opened = client.response(2).await;
    let text = "started terminal session pty-1 [type: scripted]\ndsh> ";
    assert_eq!(opened["content"], json!([{ "type": "text", "text": text }]));
    assert_eq!((&opened["isError"], opened.get("structuredContent")), (&json!(false), None));

    client.call(3, "terminal_close", json!({ "sessionId": "pty-7" })).await;
    let failed = client.response(3).await;
    let text = "Error: unknown terminal session pty-7";
    assert_eq!(failed["content"], json!([{ "type": "text", "text": text }]));
    assert_eq!(failed["isError"], true);
    assert_eq!(failed["_meta"], json!({ "dsh/error": { "code": "NO_SESSION" } }));

    client.call(4, "no_such_tool", json!({})).await;
    assert_eq!(client.response(4).await["isError"], true);

    client.close().await;
    assert!(script.lines().contains(&"closed pty-1".to_owned()));
    assert!(host.service::<Agents>().list().is_empty());
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn structure_on_demand() {
    let script = Script::new();
    let host = boot(&script, "{ structuredContent: true }").await;
    let (mut client, _) = Client::initialized(&host, json!({})).await;
    client.request(1, "tools/list", json!({})).await;
    let tools = client.response(1).await["tools"].clone();
    for tool in tools.as_array().unwrap() {
        assert_eq!(tool["outputSchema"]["type"], "object", "{}", tool["name"]);
    }
    client.call(2, "terminal_open", json!({ "type": "scripted" })).await;
    assert_eq!(client.response(2).await["structuredContent"]["sessionId"], "pty-1");
    client.call(3, "terminal_list", json!({})).await;
    let listed = client.response(3).await;
    assert_eq!(listed["structuredContent"]["result"][0]["sessionId"], "pty-1");
    client.call(4, "terminal_send", json!({ "sessionId": "pty-1", "text": "x" })).await;
    assert_eq!(client.response(4).await["structuredContent"]["kind"], "foreground");
    client.call(5, "terminal_close", json!({ "sessionId": "pty-7" })).await;
    assert_eq!(client.response(5).await.get("structuredContent"), None);
    client.close().await;
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_waiting_send_blocks_nobody_and_reports_progress() {
    let script = Script::new();
    let host = boot(&script, "{}").await;
    let (mut client, _) = Client::initialized(&host, json!({})).await;
    client.call(1, "terminal_open", json!({ "type": "scripted" })).await;
    client.response(1).await;
    let gate = script.hold(Step::Settle);
    let send = json!({
        "name": "terminal_send", "arguments": { "sessionId": "pty-1", "text": "make" },
        "_meta": { "progressToken": "p1" },
    });
    client.request(2, "tools/call", send).await;
    script.saw("start_send").await;
    client.call(3, "terminal_list", json!({})).await;
    client.response(3).await;

    script.operation().push_output("one\n");
    let first = client.notification("notifications/progress").await;
    assert_eq!((&first["progressToken"], &first["message"]), (&json!("p1"), &json!("one\n")));
    script.operation().push_output("two\n");
    let second = client.notification("notifications/progress").await;
    assert_eq!(second["message"], "two\n");
    assert!(second["progress"].as_f64() > first["progress"].as_f64());
    gate.open();
    client.response(2).await;
    client.close().await;
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn cancelling_a_request_cancels_the_call_with_its_reason() {
    let script = Script::new();
    let host = boot(&script, "{}").await;
    let (mut client, _) = Client::initialized(&host, json!({})).await;
    client.call(1, "terminal_open", json!({ "type": "scripted" })).await;
    client.response(1).await;
    script.hold(Step::Settle);
    client.call(2, "terminal_send", json!({ "sessionId": "pty-1", "text": "sleep 9" })).await;
    script.saw("start_send").await;
    let cancelled = json!({ "requestId": 2, "reason": "user pressed stop" });
    let method = "notifications/cancelled";
    client.send(json!({ "jsonrpc": "2.0", "method": method, "params": cancelled })).await;
    script.saw("cancel pty-1: user pressed stop").await;
    client.call(3, "terminal_send", json!({ "sessionId": "pty-1", "text": "echo" })).await;
    assert_eq!(client.response(3).await["isError"], false);
    assert!(client.stash.iter().all(|it| it["id"] != 2), "{:?}", client.stash);
    client.close().await;
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn the_end_of_the_input_ends_a_deaf_send_and_its_session() {
    let script = Script::new();
    script.ignore_cancellation(true);
    let host = boot(&script, "{}").await;
    let (mut client, _) = Client::initialized(&host, json!({})).await;
    client.call(1, "terminal_open", json!({ "type": "scripted" })).await;
    client.response(1).await;
    script.hold(Step::Settle);
    client.call(2, "terminal_send", json!({ "sessionId": "pty-1", "text": "sleep 9" })).await;
    script.saw("start_send").await;
    client.close().await;
    let lines = script.lines();
    assert!(lines.contains(&"closed pty-1".to_owned()), "{lines:?}");
    assert!(lines.contains(&"cancel pty-1: the client has disconnected".to_owned()), "{lines:?}");
    assert!(host.service::<Agents>().list().is_empty());
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn requests_that_were_piped_in_are_answered() {
    let host = boot(&Script::new(), "{}").await;
    let (mut client, _) = Client::initialized(&host, json!({ "roots": {} })).await;
    client.request(1, "tools/list", json!({})).await;
    let open = json!({
        "name": "terminal_open", "arguments": { "type": "scripted" },
        "_meta": { "progressToken": 7 },
    });
    client.request(2, "tools/call", open).await;
    client.write.shutdown().await.unwrap();
    assert_eq!(client.response(1).await["tools"].as_array().unwrap().len(), 6);
    let opened = client.response(2).await["content"][0]["text"].clone();
    assert_eq!(opened, "started terminal session pty-1 [type: scripted]\ndsh> ");
    client.close().await;
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_stop_of_the_host_ends_the_connection() {
    let script = Script::new();
    let host = boot(&script, "{}").await;
    let (mut client, _) = Client::initialized(&host, json!({})).await;
    client.call(1, "terminal_open", json!({ "type": "scripted" })).await;
    client.response(1).await;
    client.stop.cancel();
    guarded("the server's end", client.server).await.unwrap().unwrap();
    assert!(script.lines().contains(&"closed pty-1".to_owned()));
    host.dispose().await.unwrap();

    let host = boot(&Script::new(), "{}").await;
    let client = Client::connect(&host);
    client.close().await;
    let client = Client::connect(&host);
    client.stop.cancel();
    guarded("the server's end", client.server).await.unwrap().unwrap();
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn the_first_root_is_the_workspace() {
    let script = Script::new();
    let host = boot(&script, "{}").await;
    let folder = host.workspace().join("a b");
    std::fs::create_dir(&folder).unwrap();
    let (mut client, _) = Client::initialized(&host, json!({ "roots": {} })).await;
    client.call(1, "terminal_open", json!({ "type": "scripted" })).await;
    let asked = client.find("roots", |it| it["method"] == "roots/list").await;
    let uri = format!("file://{}/a%20b", host.workspace().display());
    let roots = json!({ "roots": [{ "uri": "https://example.org/" }, { "uri": uri }] });
    client.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": roots })).await;
    client.response(1).await;
    assert_eq!(script.requests()[0].owner.workspace_root(), folder);
    assert_eq!(only_agent(&host).workspace_root(), folder);
    client.close().await;

    // A client that refuses to say them gets the folder of the host.
    let (mut client, _) = Client::initialized(&host, json!({ "roots": {} })).await;
    client.call(1, "terminal_open", json!({ "type": "scripted" })).await;
    let asked = client.find("roots", |it| it["method"] == "roots/list").await;
    let error = json!({ "code": -32601, "message": "no" });
    client.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })).await;
    client.response(1).await;
    assert_eq!(script.requests()[1].owner.workspace_root(), host.workspace());
    client.close().await;
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn notices_are_logged_and_come_with_the_next_result() {
    let script = Script::new();
    let host = boot(&script, "{}").await;
    let (mut client, _) = Client::initialized(&host, json!({})).await;
    client.call(1, "terminal_list", json!({})).await;
    client.response(1).await;
    let agent = only_agent(&host);
    agent.inbox().push(Notice::new("job one has finished"));
    let logged = client.notification("notifications/message").await;
    assert_eq!(logged["data"], "job one has finished");
    client.request(2, "logging/setLevel", json!({ "level": "error" })).await;
    client.response(2).await;
    agent.inbox().push(Notice::new("job two has finished"));
    client.call(3, "terminal_list", json!({})).await;
    let texts: Vec<Value> = client.response(3).await["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["text"].clone())
        .collect();
    assert_eq!(texts, ["(no terminal sessions)", "job one has finished", "job two has finished"]);
    assert!(client.stash.iter().all(|it| it["method"] != "notifications/message"));
    let notices: Vec<Value> = log_of(&host, &agent)
        .into_iter()
        .filter(|it| it["type"] == "notice")
        .map(|it| it["data"]["content"].clone())
        .collect();
    assert_eq!(notices, ["job one has finished", "job two has finished"]);
    client.call(4, "terminal_list", json!({})).await;
    assert_eq!(client.response(4).await["content"].as_array().unwrap().len(), 1);
    client.close().await;
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn what_a_person_typed_comes_whole_with_the_next_result() {
    let script = Script::new();
    let host = boot(&script, "{}").await;
    let (mut client, _) = Client::initialized(&host, json!({})).await;
    client.call(1, "terminal_open", json!({ "type": "scripted" })).await;
    client.response(1).await;
    let agent = only_agent(&host);
    let lease = host.service::<Terminals>().take_over("pty-1").unwrap();
    for key in ["y", "e", "s", "\r"] {
        lease.type_text(key).await.unwrap();
        // Each is on its way to the client, and none was read with a result.
        client.notification("notifications/message").await;
    }
    lease.enter_secret("hunter2".into()).await.unwrap();
    client.call(2, "terminal_send", json!({ "sessionId": "pty-1", "text": "ls" })).await;
    let refused = client.response(2).await;
    let texts: Vec<&str> = refused["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["text"].as_str().unwrap())
        .collect();
    let told = r#"[a person typed in pty-1: "yes\n", (7 bytes that the terminal does not show)]"#;
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].contains("a person has taken over pty-1"), "{texts:?}");
    assert_eq!(texts[1], told);
    lease.type_text("n").await.unwrap();
    lease.give_back();
    client.call(3, "terminal_list", json!({})).await;
    let listed = client.response(3).await["content"].as_array().unwrap().clone();
    assert_eq!(listed[1]["text"], r#"[a person typed in pty-1: "n"]"#);
    let log = log_of(&host, &agent);
    let notices: Vec<&Value> =
        log.iter().filter(|it| it["type"] == "notice").map(|it| &it["data"]["content"]).collect();
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert_eq!(notices[0], told);
    assert!(!log.iter().any(|it| it.to_string().contains("hunter2")));
    client.close().await;
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_cancellation_on_the_way_of_the_reply_loses_no_notice() {
    let script = Script::new();
    let host = boot(&script, "{}").await;
    let (mut client, _) = Client::initialized(&host, json!({})).await;
    client.call(1, "terminal_open", json!({ "type": "scripted" })).await;
    client.response(1).await;
    let agent = only_agent(&host);
    let collected = || agent.inbox().arrived().now_or_never().is_none();
    // More than the client's buffer: nothing else is written before the client reads.
    let long = "x".repeat(2 << 20);
    agent.inbox().push(Notice::new(long.clone()));
    wait_until("the first is on its way", collected).await;
    agent.inbox().push(Notice::new("job two has finished"));
    client.call(2, "terminal_list", json!({})).await;
    wait_until("the call is done, and its reply waits for the second", collected).await;
    let method = "notifications/cancelled";
    let params = json!({ "requestId": 2 });
    client.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    // Messages are taken in order: once this call has begun, the cancellation has arrived.
    script.hold(Step::Settle);
    client.call(3, "terminal_send", json!({ "sessionId": "pty-1", "text": "make" })).await;
    script.saw("start_send").await;
    client.notification("notifications/message").await;
    client.notification("notifications/message").await;
    script.operation().settle_as(WaitReason::StdinRead);
    let reply = client.response(3).await;
    let texts: Vec<&str> = reply["content"].as_array().unwrap()[1..]
        .iter()
        .map(|it| it["text"].as_str().unwrap())
        .collect();
    assert!(texts == [long.as_str(), "job two has finished"], "{} notices", texts.len());
    assert!(client.stash.iter().all(|it| it["id"] != 2), "{:?}", client.stash);
    client.close().await;
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_wait_for_a_job_that_is_cancelled_takes_nothing_from_the_job() {
    let script = Script::new();
    let rows = script.composition();
    let rows =
        format!("{rows}- name: tool-terminal\n- name: jobs\n- name: tool-jobs\n- name: mcp\n");
    let host = TestHost::boot(&rows).await;
    let (mut client, _) = Client::initialized(&host, json!({})).await;
    client.call(1, "terminal_open", json!({ "type": "scripted" })).await;
    client.response(1).await;
    script.hold(Step::Settle);
    let background = json!({ "sessionId": "pty-1", "text": "make", "run_in_background": true });
    client.call(2, "terminal_send", background).await;
    client.response(2).await;
    let agent = only_agent(&host);
    let logged = |kind: &str, id: &str| {
        let log = log_of(&host, &agent);
        log.iter().any(|it| it["type"] == kind && it.to_string().contains(id))
    };
    client.call(3, "job_output", json!({ "job_id": "pty-send-1", "wait": true })).await;
    wait_until("the wait has begun", || logged("tool/call", "call-3")).await;
    let params = json!({ "requestId": 3, "reason": "no time" });
    let method = "notifications/cancelled";
    client.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    wait_until("the wait is over", || logged("tool/result", "no time")).await;
    // The job goes on, and its end is told by a notice, since the wait told nobody.
    let jobs = host.service::<jobs::Jobs>();
    assert_eq!(jobs.get(Some(&agent), "pty-send-1").unwrap().status, jobs::JobStatus::Running);
    script.operation().settle_as(WaitReason::StdinRead);
    let notice = client.notification("notifications/message").await;
    assert!(notice["data"].as_str().unwrap().starts_with("background job pty-send-1 "), "{notice}");
    client.call(4, "job_output", json!({ "job_id": "pty-send-1" })).await;
    let read = client.response(4).await;
    let expected = "(no new output)\n[status: completed, wait: stdin_read]";
    assert_eq!(read["content"], json!([{ "type": "text", "text": expected }]));
    assert!(client.stash.iter().all(|it| it["id"] != 3), "{:?}", client.stash);
    client.close().await;
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn the_end_of_a_job_is_told_once_by_whoever_comes_first() {
    let script = Script::new();
    let rows = script.composition();
    let rows =
        format!("{rows}- name: tool-terminal\n- name: jobs\n- name: tool-jobs\n- name: mcp\n");
    let host = TestHost::boot(&rows).await;
    let (mut client, _) = Client::initialized(&host, json!({})).await;
    client.call(1, "terminal_open", json!({ "type": "scripted" })).await;
    client.response(1).await;
    let background = json!({ "sessionId": "pty-1", "text": "make", "run_in_background": true });
    let mut texts = async |id, tool, arguments| -> Vec<String> {
        client.call(id, tool, arguments).await;
        let blocks = client.response(id).await["content"].as_array().unwrap().clone();
        blocks.iter().map(|it| it["text"].as_str().unwrap().to_owned()).collect()
    };
    let notice = |id: &str| {
        format!(
            "background job {id} (pty-send: pty-1: make) finished \
             [status: completed, wait: stdin_read]. Read its output with job_output."
        )
    };
    for (id, job, read_first) in [(2, "pty-send-1", true), (5, "pty-send-2", false)] {
        script.hold(Step::Settle);
        let started = texts(id, "terminal_send", background.clone()).await;
        assert_eq!(started, [format!("started background job {job}")]);
        script.operation().settle_as(WaitReason::StdinRead);
        let jobs = host.service::<jobs::Jobs>();
        let agent = only_agent(&host);
        testkit::wait_until("the end", || !jobs.get(Some(&agent), job).unwrap().status.is_live())
            .await;
        let read = json!({ "job_id": job });
        if !read_first {
            let listed = texts(id + 1, "terminal_list", json!({})).await;
            assert_eq!(listed[1..], [notice(job)]);
        }
        let read = texts(id + 2, "job_output", read).await;
        assert_eq!(read, ["(no new output)\n[status: completed, wait: stdin_read]"]);
    }
    client.close().await;
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn two_connections_share_nothing() {
    let script = Script::new();
    let host = boot(&script, "{}").await;
    let (mut one, _) = Client::initialized(&host, json!({})).await;
    let (mut two, _) = Client::initialized(&host, json!({})).await;
    one.call(1, "terminal_open", json!({ "type": "scripted" })).await;
    one.response(1).await;
    script.settle_with(outcome("never", WaitReason::StdinRead));
    two.call(1, "terminal_send", json!({ "sessionId": "pty-1", "text": "x" })).await;
    let foreign = two.response(1).await;
    two.call(2, "terminal_send", json!({ "sessionId": "pty-2", "text": "x" })).await;
    let unknown = two.response(2).await;
    assert_eq!(foreign["content"][0]["text"], "Error: unknown terminal session pty-1");
    assert_eq!(unknown["content"][0]["text"], "Error: unknown terminal session pty-2");
    assert_eq!(foreign["_meta"], unknown["_meta"]);
    two.close().await;
    one.call(2, "terminal_list", json!({})).await;
    let text = one.response(2).await["content"][0]["text"].clone();
    assert_eq!(text, "pty-1 [scripted] running pid=4711");
    one.close().await;
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn whatever_comes_before_the_session_does_not_end_it() {
    let host = boot(&Script::new(), "{}").await;
    let mut client = Client::connect(&host);
    client.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    client.send(json!({ "jsonrpc": "2.0", "id": 7, "result": {} })).await;
    client.call(1, "terminal_list", json!({})).await;
    client.request(2, "ping", json!({})).await;
    let early = client.find("error 1", |it| it["id"] == 1).await["error"].clone();
    assert_eq!(early["message"], "the session has not begun: send `initialize` first");
    client.response(2).await;
    let hello = json!({
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    client.request(3, "initialize", hello).await;
    assert_eq!(client.response(3).await["serverInfo"]["name"], "dsh");
    client.close().await;
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn garbage_does_not_end_a_session() {
    let host = boot(&Script::new(), "{}").await;
    let (mut client, _) = Client::initialized(&host, json!({})).await;
    client.write.write_all(b"nonsense\n\n\xff\xfe\n\r\n").await.unwrap();
    client.send(json!({ "jsonrpc": "2.0", "method": "notifications/unheard_of" })).await;
    client.send(json!({ "jsonrpc": "2.0", "id": 99, "result": {} })).await;
    client.request(1, "no/such/method", json!({})).await;
    client.request(2, "tools/call", json!({ "arguments": {} })).await;
    client.send(json!([])).await;
    // Longer than any message may be.
    let part = vec![b'x'; 1 << 20];
    client.write.write_all(b"{\"id\":5,\"x\":\"").await.unwrap();
    for _ in 0..64 {
        client.write.write_all(&part).await.unwrap();
    }
    client.write.write_all(b"\"}\n").await.unwrap();
    client.request(3, "ping", json!({})).await;
    client.response(3).await;
    let mut errors = Vec::new();
    for _ in 0..4 {
        let error = client.find("an error", |it| it.get("error").is_some()).await;
        let id = error["id"].as_i64();
        errors.push((id, error["error"]["message"].as_str().unwrap().to_owned()));
    }
    errors.sort();
    let texts: Vec<(Option<i64>, &str)> = errors.iter().map(|(id, it)| (*id, &**it)).collect();
    assert_eq!(
        texts,
        [
            (None, "a message has at most 64 MiB"),
            (None, "a message is a JSON object, and batches are not supported"),
            (Some(1), "there is no method `no/such/method`"),
            (
                Some(2),
                "the parameters of `tools/call` are `name` (a text) and `arguments` (an object, or left out)"
            ),
        ]
    );
    client.close().await;
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_client_that_never_reads_does_not_hold_the_end_up() {
    let script = Script::new();
    let host = boot(&script, "{}").await;
    for ends_input in [true, false] {
        let (mut client, _) = Client::initialized(&host, json!({})).await;
        client.call(1, "terminal_open", json!({ "type": "scripted" })).await;
        client.response(1).await;
        // More answers than the stream holds, and one call that would never end.
        let gate = script.hold(Step::Settle);
        client.call(2, "terminal_send", json!({ "sessionId": "pty-1", "text": "sleep" })).await;
        for id in 3..2000 {
            client.request(id, "tools/list", json!({})).await;
        }
        let read = client.read;
        if ends_input {
            drop(client.write);
        } else {
            client.stop.cancel();
        }
        guarded("the server's end", client.server).await.unwrap().unwrap();
        assert!(host.service::<Agents>().list().is_empty());
        drop((read, gate));
    }
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_closed_output_ends_the_connection() {
    let script = Script::new();
    let host = boot(&script, "{}").await;
    let (mut client, _) = Client::initialized(&host, json!({})).await;
    client.call(1, "terminal_open", json!({ "type": "scripted" })).await;
    client.response(1).await;
    drop(client.read);
    client.write.write_all(b"{}\n").await.unwrap();
    guarded("the server's end", client.server).await.unwrap().unwrap();
    assert!(script.lines().contains(&"closed pty-1".to_owned()));
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_cancellation_that_comes_before_its_call_has_begun_keeps_its_reason() {
    let script = Script::new();
    let host = boot(&script, "{}").await;
    let (mut client, _) = Client::initialized(&host, json!({ "roots": {} })).await;
    // The call waits for the roots.
    client.call(1, "terminal_open", json!({ "type": "scripted" })).await;
    let asked = client.find("roots", |it| it["method"] == "roots/list").await;
    let cancelled = json!({ "requestId": 1, "reason": "user pressed stop" });
    let method = "notifications/cancelled";
    client.send(json!({ "jsonrpc": "2.0", "method": method, "params": cancelled })).await;
    client.request(2, "ping", json!({})).await;
    client.response(2).await;
    let none = json!({ "roots": [] });
    client.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": none })).await;
    client.call(3, "terminal_list", json!({})).await;
    assert_eq!(client.response(3).await["content"][0]["text"], "(no terminal sessions)");
    let log = log_of(&host, &only_agent(&host));
    let reasons: Vec<_> = log.iter().filter(|it| it.to_string().contains("pressed stop")).collect();
    assert_eq!(reasons.len(), 1, "{log:?}");
    client.close().await;
    host.dispose().await.unwrap();
}
