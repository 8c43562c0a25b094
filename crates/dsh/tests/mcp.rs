//! `dsh mcp` as its clients know it: a process, two pipes, a real bash behind it.
//!
//! Every process of a test carries a variable of its own, so that what is left over can be told
//! from what other tests run.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

use std::{
    io::{BufRead as _, BufReader, Lines, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{guarded, leaks::processes_with_env, wait_until};

const TAG: &str = "E2E_TEST";

/// What runs in a session when its host has to end: in the foreground, in the background, out of
/// the session, and deaf to what would end it kindly.
const LEFTOVERS: &str = "(trap '' TERM HUP; setsid sleep 1000 & nohup sleep 1000 >/dev/null & disown; sleep 1000 &); sleep 1000";

struct Server {
    child: Child,
    write: Option<ChildStdin>,
    read: Lines<BufReader<ChildStdout>>,
    tag: String,
    home: TempDir,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let home = TempDir::new().unwrap();
        let tag = home.path().display().to_string();
        let mut child = Command::new(env!("CARGO_BIN_EXE_dsh"))
            .arg("mcp")
            .args(arguments)
            .current_dir(home.path())
            .env("DSH_HOME", home.path().join("home"))
            .env(TAG, &tag)
            .env_remove("DSH_LOG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let write = child.stdin.take();
        let read = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut server = Self { child, write, read, tag, home };
        server.request(0, "initialize", &hello());
        server.response(0);
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        server
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.write.as_mut().unwrap(), "{message}").unwrap();
    }

    fn request(&mut self, id: u64, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    /// The response, which is the next message.
    fn response(&mut self, id: u64) -> Value {
        let line = self.read.next().unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["id"], id, "{message}");
        message["result"].clone()
    }

    fn call(&mut self, id: u64, tool: &str, arguments: &Value) -> Value {
        self.request(id, "tools/call", &json!({ "name": tool, "arguments": arguments }));
        self.response(id)
    }

    fn open(&mut self) {
        let opened = self.call(1, "terminal_open", &json!({ "type": "shell" }));
        let text = "started terminal session pty-1 [type: shell]\ndsh> ";
        assert_eq!(opened["content"][0]["text"], text);
    }

    /// Begins a send that would take long, and returns when its processes run.
    async fn leave_something_running(&mut self) {
        self.open();
        let send = json!({ "sessionId": "pty-1", "text": LEFTOVERS });
        self.request(2, "tools/call", &json!({ "name": "terminal_send", "arguments": send }));
        let tag = self.tag.clone();
        wait_until("four sleeps", move || sleeping(&tag) == 4).await;
    }

    /// Waits for the end of the host; nothing may be left of it.
    async fn ended(mut self) -> Option<i32> {
        let status = tokio::task::spawn_blocking(move || {
            let status = self.child.wait().unwrap();
            // What is still in the pipe is the protocol's too.
            for line in self.read {
                serde_json::from_str::<Value>(&line.unwrap()).unwrap();
            }
            (status, self.tag, self.home)
        });
        let (status, tag, home) = guarded("the host's end", status).await.unwrap();
        nothing_left(&tag).await;
        drop(home);
        status.code()
    }
}

fn hello() -> Value {
    json!({
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    })
}

fn sleeping(tag: &str) -> usize {
    processes_with_env(TAG, tag).iter().filter(|it| it.command.starts_with("sleep")).count()
}

async fn nothing_left(tag: &str) {
    let tag = tag.to_owned();
    wait_until("no process is left", move || processes_with_env(TAG, &tag).is_empty()).await;
}

fn kill(signal: &str, pid: u32) {
    let status = Command::new("bash").args(["-c", &format!("kill -{signal} {pid}")]).status();
    assert!(status.unwrap().success());
}

#[tokio::test]
async fn a_whole_session() {
    for arguments in [&[][..], &["--structured"]] {
        let mut server = Server::start(arguments);
        server.open();
        let mut id = 1;
        let mut send = |server: &mut Server, text: &str| {
            id += 1;
            let sent = json!({ "sessionId": "pty-1", "text": text });
            let sent = server.call(id, "terminal_send", &sent);
            assert_eq!(sent["structuredContent"].is_object(), !arguments.is_empty());
            sent["content"][0]["text"].as_str().unwrap().to_owned()
        };
        send(&mut server, "cd /usr; export A=b");
        assert_eq!(
            send(&mut server, "echo $A $PWD; (exit 3)"),
            "echo $A $PWD; (exit 3)\nb /usr\ndsh> \n[exit: 3]\n[wait: stdin_read]\n[session: running]"
        );
        let python = send(&mut server, "python3 -q");
        assert!(python.contains("[state: waiting for input (python3)"), "{python}");
        let four = send(&mut server, "print(2+2)");
        assert!(four.contains("\n4\n") && four.contains("[wait: stdin_read]"), "{four}");
        let closed = server.call(90, "terminal_close", &json!({ "sessionId": "pty-1" }));
        assert_eq!(closed["content"][0]["text"], "closed terminal session pty-1");
        let listed = server.call(91, "terminal_list", &json!({}));
        assert_eq!(listed["content"][0]["text"], "(no terminal sessions)");
        server.write = None;
        assert_eq!(server.ended().await, Some(0));
    }
}

#[tokio::test]
async fn the_end_of_the_input_leaves_nothing() {
    let mut server = Server::start(&[]);
    server.leave_something_running().await;
    server.write = None;
    assert_eq!(server.ended().await, Some(0));
}

#[tokio::test]
async fn signals_leave_nothing() {
    for (signal, status) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        let mut server = Server::start(&[]);
        server.leave_something_running().await;
        kill(signal, server.child.id());
        assert_eq!(server.ended().await, Some(status), "SIG{signal}");
    }
}

#[tokio::test]
async fn a_killed_client_leaves_nothing() {
    // The client is a process of its own, which holds the host's pipes.
    const CLIENT: &str = r#"
        mkfifo in out
        "$DSH" mcp <in >out &
        exec 3>in 4<out
        printf '%s\n' "$HELLO" "$OPEN" "$LIST" >&3
        while read -r line <&4; do printf '%s\n' "$line"; done
    "#;
    let request = |id: u64, method: &str, params: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    };
    let open = json!({ "name": "terminal_open", "arguments": { "type": "shell" } });
    let list = json!({ "name": "terminal_list", "arguments": {} });
    let home = TempDir::new().unwrap();
    let tag = home.path().display().to_string();
    let mut client = Command::new("bash")
        .args(["-c", CLIENT])
        .current_dir(home.path())
        .env("DSH", env!("CARGO_BIN_EXE_dsh"))
        .env("DSH_HOME", home.path().join("home"))
        .env("HELLO", request(0, "initialize", hello()))
        .env("OPEN", request(1, "tools/call", open))
        .env("LIST", request(2, "tools/call", list))
        .env(TAG, &tag)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut read = BufReader::new(client.stdout.take().unwrap()).lines();
    let opened = tokio::task::spawn_blocking(move || {
        read.any(|line| line.unwrap().contains("started terminal session pty-1"))
    });
    assert!(guarded("open", opened).await.unwrap());
    client.kill().unwrap();
    client.wait().unwrap();
    nothing_left(&tag).await;
}
