//! Clients over HTTP, on a real port: by hand, over a scripted session service or a real bash.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

mod client;

use std::sync::Arc;

use agents::{Agents, Notice};
use serde_json::{Value, json};
use terminal::WaitReason;
use terminal_bash as _;
use testkit::{Gate, Script, Snapshot, Step, TestHost, alone, guarded, wait_until};
use tool_jobs as _;
use tool_terminal as _;

use crate::client::{Client, Messages, Server, hello, http, posted, refused, request};

/// Runs `test` alone in this process, with a server over a scripted session service, and checks
/// that it leaves nothing.
fn scripted(mcp: &str, test: impl AsyncFnOnce(&TestHost, &Script, &Server)) {
    alone(async {
        let script = Script::new();
        let rows = script.composition();
        let rows = format!(
            "{rows}- name: tool-terminal\n- name: jobs\n- name: tool-jobs\n\
             - name: mcp\n  config: {mcp}\n"
        );
        let host = TestHost::boot(&rows).await;
        let server = Server::start(&host).await;
        test(&host, &script, &server).await;
        server.stop().await;
        assert!(host.service::<Agents>().list().is_empty());
        guarded("disposal", host.dispose()).await.unwrap();
    });
}

/// The same over a real bash.
fn real(mcp: &str, test: impl AsyncFnOnce(&TestHost, Server)) {
    alone(async {
        let rows = format!(
            "- name: terminal\n- name: terminal-bash\n- name: tool-terminal\n\
             - name: mcp\n  config: {mcp}\n"
        );
        let host = TestHost::boot(&rows).await;
        let server = Server::start(&host).await;
        test(&host, server).await;
        guarded("disposal", host.dispose()).await.unwrap();
    });
}

/// A send that has begun, as request 2 and with a token for its progress, in the client's first terminal;
/// it settles once the gate is open.
async fn held(client: &Client, script: &Script, text: &str, token: &Value) -> (Gate, Messages) {
    client.call(1, "terminal_open", json!({ "type": "scripted" })).await;
    let gate = script.hold(Step::Settle);
    let send = json!({
        "name": "terminal_send", "arguments": { "sessionId": "pty-1", "text": text },
        "_meta": { "progressToken": token },
    });
    let send = client.request(2, "tools/call", send).await;
    script.saw("start_send").await;
    (gate, send)
}

fn no_session(text: &str) -> Value {
    json!([{ "type": "text", "text": format!("Error: unknown terminal session {text}") }])
}

#[test]
fn a_session_from_hello_to_end() {
    scripted("{}", async |host, script, server| {
        let client = Client::begin(server, json!({})).await;
        let welcome = &client.welcome["result"];
        assert_eq!(welcome["serverInfo"]["name"], "dsh");
        assert_eq!(welcome["protocolVersion"], client::VERSION);
        assert!(welcome["instructions"].as_str().unwrap().contains("terminal session"));
        let listed = client.request(1, "tools/list", json!({})).await.response(1).await;
        assert_eq!(listed["tools"].as_array().unwrap().len(), 9);
        let opened = client.text(2, "terminal_open", json!({ "type": "scripted" })).await;
        assert_eq!(opened, "started terminal session pty-1 [type: scripted]\ndsh> ");
        // At once nobody reaches it any more; the answer comes when it is over.
        let gate = script.hold(Step::Close);
        let ending = tokio::spawn(client.delete().send());
        gate.arrived().await;
        for request in [client.get(), client.delete(), client.post(&request(3, "ping", &json!({})))]
        {
            let (status, text) = refused(request).await;
            assert_eq!(status, 404);
            assert!(text.contains("has ended: send `initialize` without it"), "{text}");
        }
        assert!(!ending.is_finished());
        gate.open();
        let ended = guarded("DELETE", ending).await.unwrap().unwrap();
        assert_eq!(ended.status().as_u16(), 204);
        assert!(script.lines().contains(&"closed pty-1".to_owned()));
        assert!(host.service::<Agents>().list().is_empty());
    });
}

#[test]
fn two_clients_share_nothing() {
    scripted("{}", async |_, script, server| {
        let one = Client::begin(server, json!({})).await;
        let two = Client::begin(server, json!({})).await;
        assert_ne!(one.session, two.session);
        one.call(1, "terminal_open", json!({ "type": "scripted" })).await;
        script.hold(Step::Settle);
        let background = json!({ "sessionId": "pty-1", "text": "make", "run_in_background": true });
        let started = one.text(2, "terminal_send", background.clone()).await;
        assert_eq!(started, "started background job pty-send-1");

        assert_eq!(two.text(1, "terminal_list", json!({})).await, "(no terminal sessions)");
        assert_eq!(two.text(2, "job_list", json!({})).await, "(no background jobs)");
        let session = json!({ "sessionId": "pty-1" });
        for (tool, arguments) in [
            ("terminal_read", session.clone()),
            ("terminal_close", session.clone()),
            ("terminal_signal", json!({ "sessionId": "pty-1", "signal": "SIGINT" })),
            ("terminal_send", background),
        ] {
            let failed = two.call(3, tool, arguments).await;
            assert_eq!(failed["content"], no_session("pty-1"), "{tool}");
        }
        for tool in ["job_output", "job_kill"] {
            let text = two.text(4, tool, json!({ "job_id": "pty-send-1" })).await;
            assert!(text.starts_with("Error: unknown job pty-send-1"), "{text}");
        }
        // A cancellation by the id of the other's request changes nothing either.
        two.notify("notifications/cancelled", json!({ "requestId": 2 })).await;
        two.end().await;
        let listed = one.text(5, "terminal_list", json!({})).await;
        assert!(listed.starts_with("pty-1 [scripted] running"), "{listed}");
        script.operation().settle_as(WaitReason::StdinRead);
    });
}

#[test]
fn a_client_that_vanishes_leaves_nothing() {
    real("{ sessionGraceSeconds: 1 }", async |host, server| {
        let before = Snapshot::take().processes;
        let there = Client::begin(&server, json!({})).await;
        let listening = there.listen().await;
        there.call(1, "terminal_open", json!({ "type": "shell" })).await;

        let gone = Client::begin(&server, json!({})).await;
        let stream = gone.listen().await;
        gone.call(1, "terminal_open", json!({ "type": "shell" })).await;
        let text = "setsid sleep 1000 & nohup sleep 1000 & sleep 1000";
        let send =
            gone.ask(2, "terminal_send", json!({ "sessionId": "pty-2", "text": text })).await;
        let sleeping = || {
            let all = Snapshot::take().processes;
            all.iter().filter(|it| it.command == "sleep" && !before.contains(it)).count()
        };
        wait_until("three sleeps", || sleeping() == 3).await;
        // The connections break.
        drop((send, stream, gone));
        wait_until("no sleep", || sleeping() == 0).await;
        wait_until("one agent", || host.service::<Agents>().list().len() == 1).await;
        // Who has a stream open stays, however long it says nothing.
        let text = there.text(2, "terminal_list", json!({})).await;
        assert!(text.starts_with("pty-1 [shell] running"), "{text}");
        server.stop().await;
        assert_eq!(listening.rest().await, [] as [Value; 0]);
    });
}

#[test]
fn a_stop_of_the_server_ends_what_runs() {
    real("{}", async |host, server| {
        let before = Snapshot::take().processes;
        let client = Client::begin(&server, json!({})).await;
        client.call(1, "terminal_open", json!({ "type": "shell" })).await;
        let text = "setsid sleep 1000 & sleep 1000";
        let send = json!({ "sessionId": "pty-1", "text": text });
        let sending = client.ask(2, "terminal_send", send).await;
        // One that has no stream open.
        let quiet = Client::begin(&server, json!({})).await;
        quiet.call(1, "terminal_open", json!({ "type": "shell" })).await;
        let send = json!({ "sessionId": "pty-2", "text": "setsid sleep 1000 &" });
        quiet.call(2, "terminal_send", send).await;
        let fresh = |command: &str| {
            let all = Snapshot::take().processes;
            all.iter().filter(|it| it.command == command && !before.contains(it)).count()
        };
        wait_until("three sleeps", || fresh("sleep") == 3).await;
        server.stop().await;
        assert!(host.service::<Agents>().list().is_empty());
        assert_eq!((fresh("sleep"), fresh("bash")), (0, 0));
        // The stream has ended in order.
        sending.rest().await;
    });
}

#[test]
fn progress_comes_with_the_call_it_belongs_to() {
    scripted("{}", async |_, script, server| {
        let client = Client::begin(server, json!({})).await;
        let (gate, mut send) = held(&client, script, "make", &json!("p1")).await;
        // It blocks nobody.
        client.call(3, "terminal_list", json!({})).await;
        script.operation().push_output("one\n");
        let first = send.notification("notifications/progress").await;
        assert_eq!((&first["progressToken"], &first["message"]), (&json!("p1"), &json!("one\n")));
        script.operation().push_output("two\n");
        let second = send.notification("notifications/progress").await;
        assert_eq!(second["message"], "two\n");
        gate.open();
        send.response(2).await;
        assert_eq!(send.rest().await, [] as [Value; 0]);
    });
}

#[test]
fn a_cancelled_call_hears_the_reason_and_has_no_answer() {
    scripted("{}", async |_, script, server| {
        let client = Client::begin(server, json!({})).await;
        client.call(1, "terminal_open", json!({ "type": "scripted" })).await;
        script.hold(Step::Settle);
        let send = json!({ "sessionId": "pty-1", "text": "sleep 9" });
        let send = client.ask(2, "terminal_send", send).await;
        script.saw("start_send").await;
        let cancelled = json!({ "requestId": 2, "reason": "user pressed stop" });
        client.notify("notifications/cancelled", cancelled).await;
        assert_eq!(send.rest().await, [] as [Value; 0]);
        script.saw("cancel pty-1: user pressed stop").await;
        let send = json!({ "sessionId": "pty-1", "text": "echo" });
        assert_eq!(client.call(3, "terminal_send", send).await["isError"], false);
    });
}

#[test]
fn a_stream_that_broke_is_taken_up_again() {
    scripted("{}", async |_, script, server| {
        let client = Client::begin(server, json!({})).await;
        let (gate, mut send) = held(&client, script, "make", &json!(7)).await;
        script.operation().push_output("one\n");
        send.notification("notifications/progress").await;
        let last = send.last.clone();
        drop(send);
        script.operation().push_output("two\n");
        gate.open();
        // The call went on, and its answer is there, as often as it is asked for.
        for _ in 0..2 {
            let mut resumed = client.resume(&last).await;
            resumed.response(2).await;
            assert_eq!(resumed.rest().await.iter().filter(|it| it["id"] == 2).count(), 0);
        }
        for unknown in ["77-1", "0-99", "nonsense", "0-18446744073709551615"] {
            let (status, text) = refused(client.get().header("last-event-id", unknown)).await;
            assert_eq!(status, 400);
            assert!(text.contains("is not kept"), "{text}");
        }
    });
}

#[test]
fn the_first_root_is_the_workspace() {
    scripted("{}", async |host, script, server| {
        let client = Client::begin(server, json!({ "roots": {} })).await;
        let mut open = client.ask(1, "terminal_open", json!({ "type": "scripted" })).await;
        let asked = open.find("roots", |it| it["method"] == "roots/list").await;
        let uri = format!("file://{}", host.home().display());
        let roots = json!({ "roots": [{ "uri": uri }] });
        client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": roots })).await;
        open.response(1).await;
        assert_eq!(script.requests()[0].owner.workspace_root(), host.home());
    });
}

#[test]
fn notices_come_over_the_general_stream_and_with_the_next_result() {
    scripted("{}", async |host, _, server| {
        let client = Client::begin(server, json!({})).await;
        client.call(1, "terminal_list", json!({})).await;
        let agent = Arc::clone(&host.service::<Agents>().list()[0]);
        // What was said before there was a stream is not lost.
        agent.inbox().push(Notice::new("job one has finished"));
        let mut first = client.listen().await;
        assert_eq!(
            first.notification("notifications/message").await["data"],
            "job one has finished"
        );
        // The later one of two streams gets what comes.
        let mut second = client.listen().await;
        agent.inbox().push(Notice::new("job two has finished"));
        assert_eq!(
            second.notification("notifications/message").await["data"],
            "job two has finished"
        );
        let listed = client.call(2, "terminal_list", json!({})).await;
        assert_eq!(listed["content"].as_array().unwrap().len(), 3);
        client.end().await;
        assert_eq!(first.rest().await, [] as [Value; 0]);
        assert_eq!(second.rest().await, [] as [Value; 0]);
    });
}

#[test]
fn who_reads_nothing_holds_up_nobody() {
    scripted("{}", async |host, script, server| {
        let client = Client::begin(server, json!({})).await;
        let (gate, deaf) = held(&client, script, "yes", &json!(7)).await;
        // More than the sockets between the two hold.
        for _ in 0..250 {
            script.operation().push_output(&"y".repeat(60_000));
            client.request(3, "ping", json!({})).await.response(3).await;
        }
        let agent = Arc::clone(&host.service::<Agents>().list()[0]);
        agent.inbox().push(Notice::new("job one has finished"));
        let listed = client.call(4, "terminal_list", json!({})).await;
        assert_eq!(listed["content"].as_array().unwrap().len(), 2);
        // Nor does it lose its answer.
        gate.open();
        let mut deaf = deaf;
        deaf.response(2).await;
        script.hold(Step::Settle);
        let send = json!({ "sessionId": "pty-1", "text": "sleep" });
        let _deaf = client.ask(5, "terminal_send", send).await;
        client.end().await;
        assert!(script.lines().contains(&"closed pty-1".to_owned()));
    });
}

#[test]
fn a_second_initialize_begins_another_session() {
    scripted("{}", async |host, _, server| {
        let client = Client::begin(server, json!({})).await;
        client.call(1, "terminal_list", json!({})).await;
        let again = request(2, "initialize", &hello(&json!({})));
        let (status, text) = refused(client.post(&again)).await;
        assert_eq!(status, 400);
        assert!(text.starts_with("this session has begun"), "{text}");
        let other = Client::begin(server, json!({})).await;
        other.call(1, "terminal_list", json!({})).await;
        assert_eq!(host.service::<Agents>().list().len(), 2);
        client.call(3, "terminal_list", json!({})).await;
    });
}

#[test]
fn what_cannot_be_served_is_refused_and_ends_nothing() {
    scripted("{}", async |_, _, server| {
        let client = Client::begin(server, json!({})).await;
        let raw = |body: String| {
            posted(&http(), &server.url, body).header("mcp-session-id", &client.session)
        };
        let long = format!("{{\"id\":5,\"x\":\"{}\"}}", "x".repeat(5 << 20));
        let ping = request(9, "ping", &json!({})).to_string();
        for (request, status, part) in [
            (raw(long), 413, "a message has at most 4 MiB"),
            (raw("nonsense".into()), 400, "it is not JSON"),
            (raw(String::new()), 400, "it is not JSON"),
            (raw("\u{1}".into()), 400, "it is not JSON"),
            (raw("[]".into()), 400, "batches are not supported"),
            (raw("{}".into()), 400, "`method`"),
            (raw(r#"{"jsonrpc":"2.0","method":7}"#.into()), 400, "neither a notification"),
            (raw(r#"{"jsonrpc":"2.0","id":1,"method":"a/b"}"#.into()), 200, "no method `a/b`"),
            (raw(ping.clone()).header("mcp-protocol-version", "1999-01-01"), 400, "version of MCP"),
            (http().post(&server.url).body(ping.clone()), 415, "Content-Type"),
            (
                http().post(&server.url).header("accept", "application/json").body(ping.clone()),
                406,
                "text/event-stream",
            ),
            (posted(&http(), &server.url, ping.clone()), 400, "send `initialize` first"),
            (posted(&http(), &server.url, "nonsense"), 400, "it is not JSON"),
            (
                posted(&http(), &server.url, ping.clone()).header("mcp-session-id", "0".repeat(32)),
                404,
                "names no session",
            ),
            (http().get(&server.url), 400, "Mcp-Session-Id"),
            (http().delete(&server.url), 400, "Mcp-Session-Id"),
        ] {
            let (its, text) = refused(request).await;
            assert_eq!(its, status, "{text}");
            assert!(text.contains(part), "{part}: {text}");
        }
        let put = http().put(&server.url).send().await.unwrap();
        assert_eq!(put.status().as_u16(), 405);
        client.request(1, "ping", json!({})).await.response(1).await;
    });
}

#[test]
fn a_client_of_a_version_without_sessions_learns_which_have_them() {
    scripted("{}", async |_, _, server| {
        let meta = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
        let discover = request(1, "server/discover", &meta).to_string();
        let discover = posted(&http(), &server.url, discover);
        let response = discover.header("mcp-protocol-version", "2026-07-28").send().await.unwrap();
        assert_eq!(response.status().as_u16(), 400);
        let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        assert_eq!((&body["id"], &body["error"]["code"]), (&json!(1), &json!(-32022)));
        assert_eq!(body["error"]["data"]["requested"], "2026-07-28");
        let supported = body["error"]["data"]["supported"].as_array().unwrap();
        assert_eq!(supported.last().unwrap(), client::VERSION);
    });
}

#[test]
fn sessions_and_requests_are_bounded() {
    scripted("{}", async |_, script, server| {
        let mut clients = Vec::new();
        for _ in 0..64 {
            clients.push(Client::begin(server, json!({})).await);
        }
        let message = request(0, "initialize", &hello(&json!({}))).to_string();
        let (status, text) = refused(posted(&http(), &server.url, message)).await;
        assert_eq!(status, 503);
        assert!(text.starts_with("64 sessions are open"), "{text}");
        clients.pop().unwrap().end().await;
        let client = Client::begin(server, json!({})).await;

        client.call(1, "terminal_open", json!({ "type": "scripted" })).await;
        script.hold(Step::Settle);
        let send = json!({ "sessionId": "pty-1", "text": "make", "run_in_background": true });
        client.call(2, "terminal_send", send).await;
        let mut waiting = Vec::new();
        for id in 3..67 {
            let wait = json!({ "job_id": "pty-send-1", "wait": true });
            waiting.push(client.ask(id, "job_output", wait).await);
        }
        let (status, text) = refused(client.post(&request(99, "ping", &json!({})))).await;
        assert_eq!(status, 429);
        assert!(text.starts_with("64 requests of this session are unanswered"), "{text}");
        script.operation().settle_as(WaitReason::StdinRead);
        for (id, mut waiting) in (3..).zip(waiting) {
            waiting.response(id).await;
        }
        client.request(99, "ping", json!({})).await.response(99).await;
    });
}
