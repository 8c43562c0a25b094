//! `dsh mcp --listen` as its clients know it: a process, a port, a real bash behind it.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

mod support;

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::wait_until;

use crate::support::{LEFTOVERS, Listening, dsh, hello, kill, sleeping};

/// A host that listens.
struct Host {
    running: Listening,
    address: String,
    token: String,
}

impl Host {
    fn start() -> Self {
        let mut running = Listening::start(&["mcp"], |it| {
            it.env("DSH_LOG", "debug");
        });
        let address = running.told("http://").strip_suffix("/mcp").unwrap().to_owned();
        let token = running.told("Authorization: Bearer ");
        Self { running, address, token }
    }

    /// Begins a request, with the token and these headers.
    fn ask(&self, method: &str, headers: &str, body: &str) -> TcpStream {
        let Self { address, token, .. } = self;
        let mut stream = TcpStream::connect(address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
             authorization: Bearer {token}\r\ncontent-length: {length}\r\n{headers}\r\n{body}",
        )
        .unwrap();
        stream
    }

    fn answer(&self, method: &str, headers: &str, body: &str) -> String {
        let mut text = String::new();
        self.ask(method, headers, body).read_to_string(&mut text).unwrap();
        text
    }

    /// The header of a new session.
    fn begin(&self) -> String {
        let welcome = self.answer("POST", "", &request(0, "initialize", &hello()));
        assert!(welcome.starts_with("HTTP/1.1 200 "), "{welcome}");
        let id = welcome.lines().find_map(|it| it.strip_prefix("mcp-session-id: ")).unwrap();
        format!("mcp-session-id: {id}\r\n")
    }

    /// What a call of a session is answered with.
    fn call(&self, session: &str, tool: &str, arguments: &Value) -> String {
        let answer = self.answer("POST", session, &call(tool, arguments));
        let data = answer.lines().filter_map(|it| it.strip_prefix("data: ")).next_back().unwrap();
        let result: Value = serde_json::from_str(data).unwrap();
        result["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Waits for the end, which leaves nothing; no line of the log may have the token.
    async fn ended(mut self) -> Option<i32> {
        let rest = self.running.rest();
        assert!(!rest.is_empty() && !rest.iter().any(|it| it.contains(&self.token)), "{rest:?}");
        self.running.ended().await
    }
}

fn request(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

fn call(tool: &str, arguments: &Value) -> String {
    request(1, "tools/call", &json!({ "name": tool, "arguments": arguments }))
}

#[tokio::test]
async fn clients_have_terminals_of_their_own_and_a_signal_ends_them_all() {
    let host = Host::start();
    let (one, two) = (host.begin(), host.begin());
    let opened = host.call(&one, "terminal_open", &json!({ "type": "shell" }));
    assert!(opened.starts_with("started terminal session pty-1 "), "{opened}");
    let text = json!({ "sessionId": "pty-1", "text": "echo $((6 * 7))" });
    assert!(host.call(&one, "terminal_send", &text).contains("\n42\n"));
    let foreign = host.call(&two, "terminal_send", &text);
    assert_eq!(foreign, "Error: unknown terminal session pty-1");
    host.call(&two, "terminal_open", &json!({ "type": "shell" }));
    // One is ended by its client, the other by the signal, while it works.
    assert!(host.answer("DELETE", &two, "").starts_with("HTTP/1.1 204 "));
    assert!(host.answer("DELETE", &two, "").starts_with("HTTP/1.1 404 "));
    let send = json!({ "sessionId": "pty-1", "text": LEFTOVERS });
    let sending = host.ask("POST", &one, &call("terminal_send", &send));
    let tag = host.running.tag.clone();
    wait_until("four sleeps", move || sleeping(&tag) == 4).await;
    kill("TERM", host.running.child.id());
    assert_eq!(host.ended().await, Some(128 + 15));
    drop(sending);
}

#[tokio::test]
async fn nothing_is_served_without_the_token_or_to_a_page_of_elsewhere() {
    let host = Host::start();
    let hello = request(0, "initialize", &hello());
    let session = host.begin();
    let foreign = format!("{session}origin: http://evil.example\r\n");
    assert!(host.answer("POST", &foreign, &hello).starts_with("HTTP/1.1 403 "));
    let port = host.address.rsplit_once(':').unwrap().1;
    for (authority, authorization, status) in [
        (&*host.address, String::new(), "401"),
        (&*host.address, format!("authorization: Bearer {}0\r\n", host.token), "401"),
        ("evil.example", format!("authorization: Bearer {}\r\n", host.token), "403"),
    ] {
        for method in ["POST", "GET", "DELETE"] {
            let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
            write!(
                stream,
                "{method} /mcp HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\
                 {authorization}{session}\r\n"
            )
            .unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
            // The page is the other command's.
            assert!(!host.answer("GET", "", "").contains("<html"));
        }
    }
    assert_eq!(host.call(&session, "terminal_list", &json!({})), "(no terminal sessions)");
    kill("INT", host.running.child.id());
    assert_eq!(host.ended().await, Some(128 + 2));
}

#[tokio::test]
async fn the_clients_configuration_in_the_documentation_fits_what_is_printed() {
    let host = Host::start();
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md"));
    let readme = readme.unwrap();
    let mut blocks = readme.split("```json\n").skip(1).map(|it| it.split("```").next().unwrap());
    let configuration = blocks.find(|it| it.contains("\"url\"")).unwrap();
    let configuration =
        configuration.replace("127.0.0.1:7171", &host.address).replace("TOKEN", &host.token);
    let configuration: Value = serde_json::from_str(&configuration).unwrap();
    let expected = json!({
        "url": format!("http://{}/mcp", host.address),
        "headers": { "Authorization": format!("Bearer {}", host.token) },
    });
    assert_eq!(configuration["mcpServers"]["terminal"], expected);
    host.begin();
    kill("TERM", host.running.child.id());
    assert_eq!(host.ended().await, Some(128 + 15));
}

#[test]
fn what_is_for_a_port_wants_one() {
    let folder = TempDir::new().unwrap();
    for flags in
        [&["--token-file", "t"][..], &["--insecure-listen"], &["--tls-cert", "a", "--tls-key", "b"]]
    {
        let said = dsh(folder.path(), &[&["mcp"], flags].concat());
        let errors = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{errors}");
        assert!(errors.contains("--listen <ADDRESS:PORT>"), "{errors}");
    }
    let said = dsh(folder.path(), &["mcp", "--listen", "0.0.0.0:0"]);
    let errors = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(2), "{errors}");
    assert!(errors.contains("can be reached from other machines"), "{errors}");
}
