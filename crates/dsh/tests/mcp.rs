//! `dsh mcp` as its clients know it: a process, two pipes, a real bash behind it.

mod support;

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::guarded;

use crate::support::{Link, Server, TAG, hello, nothing_left};

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

#[tokio::test]
async fn what_is_typed_is_not_logged() {
    const SECRET: &str = "hunter2-swordfish";
    for (filter, logged) in
        [("debug", false), ("trace,rmcp_macros=trace", false), ("rmcp=debug", true)]
    {
        let mut server = Server::connect(Link::Pipes, |command| {
            command.env("DSH_LOG", filter).stderr(Stdio::piped());
        });
        let mut errors = server.child.0.stderr.take().unwrap();
        let reading = std::thread::spawn(move || {
            let mut text = String::new();
            errors.read_to_string(&mut text).unwrap();
            text
        });
        server.begin();
        server.open();
        let send = json!({ "sessionId": "pty-1", "text": format!("true {SECRET}") });
        server.call(2, "terminal_send", &send);
        // Nor what is not understood.
        server.request(3, SECRET, &json!({ "text": SECRET }));
        server.response(3);
        server.request(4, "tools/call", &json!({ "name": 1, "arguments": { "text": SECRET } }));
        server.response(4);
        writeln!(server.write.as_mut().unwrap(), "no JSON, {SECRET}").unwrap();
        server.write = None;
        assert_eq!(server.ended().await, Some(0));
        let text = reading.join().unwrap();
        assert!(!text.is_empty(), "{filter}");
        assert_eq!(text.contains(SECRET), logged, "{filter}:\n{text}");
    }
}

#[tokio::test]
async fn without_jobs_a_background_send_is_refused_before_it_is_typed() {
    let minimal = concat!(env!("CARGO_MANIFEST_DIR"), "/../../compositions/minimal.yml");
    let mut server = Server::start(&["--composition", minimal]);
    server.open();
    let background =
        json!({ "sessionId": "pty-1", "text": "touch typed", "run_in_background": true });
    let refused = server.call(2, "terminal_send", &background);
    assert_eq!(refused["_meta"]["dsh/error"]["code"], "NO_JOBS");
    let listed = server.call(3, "terminal_send", &json!({ "sessionId": "pty-1", "text": "ls" }));
    assert!(!listed.to_string().contains("typed"), "{listed}");
    server.write = None;
    assert_eq!(server.ended().await, Some(0));
}

#[tokio::test]
async fn other_front_ends_stay_idle() {
    let rows = "- name: web\n- name: terminal\n- name: '@deepseek-ai/dsh-agent-loop'\n\
                - name: terminal-bash\n- name: tool-terminal\n- name: mcp\n";
    let mut server = Server::connect(Link::Pipes, |command| {
        std::fs::write(command.get_current_dir().unwrap().join("c.yml"), rows).unwrap();
        command.args(["--composition", "c.yml"]);
    });
    server.begin();
    server.open();
    server.write = None;
    assert_eq!(server.ended().await, Some(0));
}
