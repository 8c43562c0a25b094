//! The host with the echo linked, mounted by a composition, driven by the six tools over MCP.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

const HOST: &str = env!("CARGO_BIN_EXE_backend-echo");
const COMPOSITION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/composition.yml");

struct Client {
    host: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    calls: u64,
}

impl Client {
    fn start(home: &std::path::Path) -> Self {
        let mut host = Command::new(HOST)
            .args(["mcp", "--composition", COMPOSITION])
            .env("DSH_HOME", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = host.stdin.take().unwrap();
        let output = BufReader::new(host.stdout.take().unwrap());
        let mut client = Self { host, input, output, calls: 0 };
        client.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            }),
        );
        client.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        for line in (&mut self.output).lines() {
            let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
            if message["id"] == id {
                return message["result"].clone();
            }
        }
        panic!("the host ended before its answer to {method}");
    }

    /// The text that a model sees.
    fn call(&mut self, tool: &str, arguments: Value) -> String {
        let params = json!({ "name": tool, "arguments": arguments });
        let result = self.request("tools/call", &params);
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

#[test]
fn the_six_tools_drive_it() {
    let home = std::env::temp_dir().join(format!("backend-echo-{}", std::process::id()));
    let mut client = Client::start(&home);
    let session = json!({ "sessionId": "pty-1" });
    let with = |name: &str, value: &str| json!({ "sessionId": "pty-1", name: value });
    for (tool, arguments, expected) in [
        (
            "terminal_open",
            json!({ "type": "echo" }),
            "started terminal session pty-1 [type: echo]\n? ",
        ),
        (
            "terminal_send",
            with("text", "hello"),
            "hello\nhello\n? \n[wait: stdin_read]\n[session: running]",
        ),
        ("terminal_read", session.clone(), "? hello\nhello\n? \n[lines: 0-3 of 3]"),
        (
            "terminal_signal",
            with("signal", "SIGINT"),
            "Error: no foreground process group could be resolved, so no signal was sent",
        ),
        ("terminal_list", json!({}), "pty-1 [echo] running"),
        ("terminal_close", session, "closed terminal session pty-1"),
    ] {
        assert_eq!(client.call(tool, arguments), expected, "{tool}");
    }
    // A shell of the same host, beside it.
    client.call("terminal_open", json!({ "type": "shell" }));
    let sent = json!({ "sessionId": "pty-2", "text": "echo $((6 * 7))" });
    assert!(client.call("terminal_send", sent).contains("\n42\n"));
    drop(client.input);
    assert!(client.host.wait().unwrap().success());
    std::fs::remove_dir_all(home).unwrap();
}

#[test]
fn a_wrong_row_is_told_like_any_other() {
    let file = std::env::temp_dir().join(format!("backend-echo-{}.yml", std::process::id()));
    std::fs::write(&file, "- name: terminal\n- name: terminal-echo\n  config: { promt: x }\n")
        .unwrap();
    let checked = Command::new(HOST).arg("check").arg(&file).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    let told = String::from_utf8(checked.stderr).unwrap();
    assert_eq!(checked.status.code(), Some(2), "{told}");
    assert!(told.contains("promt") && told.contains("prompt"), "{told}");
}
