//! The program, started once for what it says, as `dsh mcp` for a client that speaks the protocol by
//! hand, or as a host that listens; and what its processes leave behind.
//!
//! Every process of a test carries a variable of its own, so that what is left over can be told
//! from what other tests run.

#![allow(dead_code, reason = "each test binary uses a part")]
#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Lines, Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::Path,
    process::{Child, ChildStderr, Command, Output, Stdio},
};

use serde_json::{Value, json};
use session_log::read_log;
use tempfile::TempDir;
use testkit::{
    leaks::{Process, processes_with_env},
    wait_until,
};

pub(crate) const TAG: &str = "E2E_TEST";

/// What runs in a session when its host has to end: in the foreground, in the background, out of
/// the session, and deaf to what would end it kindly.
pub(crate) const LEFTOVERS: &str = "(trap '' TERM HUP; setsid sleep 1000 & nohup sleep 1000 >/dev/null & disown; sleep 1000 &); sleep 1000";

/// What the program says in a folder of its own, without a key for a model and without input.
pub(crate) fn dsh(folder: &Path, arguments: &[&str]) -> Output {
    dsh_at(folder, &folder.join("home"), arguments)
}

/// The same, with its own files elsewhere.
pub(crate) fn dsh_at(folder: &Path, home: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dsh"))
        .args(arguments)
        .current_dir(folder)
        .env("DSH_HOME", home)
        .env_remove("DSH_LOG")
        .env_remove("DEEPSEEK_API_KEY")
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// A host that runs. A test that fails leaves none.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits for its end.
    pub(crate) async fn exit(&mut self) -> Option<i32> {
        let mut status = None;
        wait_until("the host's end", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.0.try_wait().unwrap().is_none() {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }
}

/// A host that listens, in a folder of its own.
pub(crate) struct Listening {
    pub(crate) child: Running,
    pub(crate) errors: Lines<BufReader<ChildStderr>>,
    pub(crate) tag: String,
    pub(crate) home: TempDir,
}

impl Listening {
    pub(crate) fn start(arguments: &[&str], set: impl FnOnce(&mut Command)) -> Self {
        let home = TempDir::new().unwrap();
        let tag = home.path().display().to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_dsh"));
        command
            .args(arguments)
            .args(["--listen", "127.0.0.1:0"])
            .current_dir(home.path())
            .env("DSH_HOME", home.path().join("home"))
            .env(TAG, &tag)
            .env_remove("DSH_LOG")
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        set(&mut command);
        let mut child = Running(command.spawn().unwrap());
        let errors = BufReader::new(child.0.stderr.take().unwrap()).lines();
        Self { child, errors, tag, home }
    }

    /// The rest of the next line that begins with `start`.
    pub(crate) fn told(&mut self, start: &str) -> String {
        let found = self.errors.find_map(|it| it.unwrap().strip_prefix(start).map(str::to_owned));
        found.unwrap_or_else(|| panic!("it ended without {start:?}"))
    }

    /// What it writes until it ends.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        self.errors.by_ref().map(Result::unwrap).collect()
    }

    /// Waits for its end, which leaves nothing.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        let status = self.child.exit().await;
        nothing_left(&self.tag).await;
        status
    }
}

/// Every file below `folder`, and what is in it; logs decompressed.
pub(crate) fn files(folder: &Path) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else if path.extension().is_some_and(|it| it == "zstd") {
            let lines = read_log(&path).unwrap();
            all.push((path.display().to_string(), format!("{lines:?}")));
        } else {
            let bytes = fs::read(&path).unwrap();
            all.push((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    all
}

/// How the client is connected.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Link {
    /// Two pipes.
    Pipes,
    /// Two sockets.
    Sockets,
}

pub(crate) struct Server {
    pub(crate) child: Running,
    pub(crate) write: Option<Box<dyn Write + Send>>,
    pub(crate) read: Option<Lines<BufReader<Box<dyn Read + Send>>>>,
    pub(crate) tag: String,
    pub(crate) home: TempDir,
}

impl Server {
    /// A session over two pipes that has begun.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut server = Self::connect(Link::Pipes, |command| {
            command.args(arguments);
        });
        server.begin();
        server
    }

    pub(crate) fn connect(link: Link, set: impl FnOnce(&mut Command)) -> Self {
        Self::connect_to(Command::new(env!("CARGO_BIN_EXE_dsh")), link, set)
    }

    /// A connection to what `command` starts, which takes the arguments of the host.
    pub(crate) fn connect_to(
        mut command: Command,
        link: Link,
        set: impl FnOnce(&mut Command),
    ) -> Self {
        let home = TempDir::new().unwrap();
        let tag = home.path().display().to_string();
        command
            .arg("mcp")
            .current_dir(home.path())
            .env("DSH_HOME", home.path().join("home"))
            .env(TAG, &tag)
            .env_remove("DSH_LOG");
        set(&mut command);
        let (child, write, read) = match link {
            Link::Pipes => {
                let mut child =
                    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
                let write: Box<dyn Write + Send> = Box::new(child.stdin.take().unwrap());
                let read: Box<dyn Read + Send> = Box::new(child.stdout.take().unwrap());
                (child, write, read)
            }
            Link::Sockets => {
                let (write, input) = UnixStream::pair().unwrap();
                let (read, output) = UnixStream::pair().unwrap();
                command.stdin(OwnedFd::from(input)).stdout(OwnedFd::from(output));
                let child = command.spawn().unwrap();
                // It holds the other ends.
                drop(command);
                let (write, read): (Box<dyn Write + Send>, Box<dyn Read + Send>) =
                    (Box::new(write), Box::new(read));
                (child, write, read)
            }
        };
        let read = Some(BufReader::new(read).lines());
        Self { child: Running(child), write: Some(write), read, tag, home }
    }

    pub(crate) fn begin(&mut self) {
        self.request(0, "initialize", &hello());
        self.response(0);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.write.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    pub(crate) fn request(&mut self, id: u64, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    /// The response, which is the next message.
    pub(crate) fn response(&mut self, id: u64) -> Value {
        let line = self.read.as_mut().unwrap().next().unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["id"], id, "{message}");
        message["result"].clone()
    }

    pub(crate) fn ask(&mut self, id: u64, tool: &str, arguments: &Value) {
        self.request(id, "tools/call", &json!({ "name": tool, "arguments": arguments }));
    }

    pub(crate) fn call(&mut self, id: u64, tool: &str, arguments: &Value) -> Value {
        self.ask(id, tool, arguments);
        self.response(id)
    }

    pub(crate) fn open(&mut self) {
        let opened = self.call(1, "terminal_open", &json!({ "type": "shell" }));
        let text = "started terminal session pty-1 [type: shell]\ndsh> ";
        assert_eq!(opened["content"][0]["text"], text);
    }

    /// Begins a send that would take long, and returns when its processes run.
    pub(crate) async fn leave_something_running(&mut self) {
        self.open();
        self.ask(2, "terminal_send", &json!({ "sessionId": "pty-1", "text": LEFTOVERS }));
        let tag = self.tag.clone();
        wait_until("four sleeps", move || sleeping(&tag) == 4).await;
    }

    /// Waits for the end of the host; nothing may be left of it. What it wrote is read only then.
    pub(crate) async fn ended(mut self) -> Option<i32> {
        let status = self.child.exit().await;
        nothing_left(&self.tag).await;
        // What is still in the pipe is the protocol's too; the last line may have been cut.
        let lines: Vec<_> = self.read.take().into_iter().flatten().map(Result::unwrap).collect();
        for line in lines.iter().rev().skip(1) {
            serde_json::from_str::<Value>(line).unwrap();
        }
        status
    }
}

pub(crate) fn hello() -> Value {
    json!({
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    })
}

/// What runs with this tag.
pub(crate) fn processes(tag: &str) -> Vec<Process> {
    processes_with_env(TAG, tag)
}

pub(crate) fn sleeping(tag: &str) -> usize {
    processes(tag).iter().filter(|it| it.command.starts_with("sleep")).count()
}

pub(crate) async fn nothing_left(tag: &str) {
    let tag = tag.to_owned();
    wait_until("no process is left", move || processes(&tag).is_empty()).await;
}

pub(crate) fn kill(signal: &str, pid: u32) {
    let status = Command::new("bash").args(["-c", &format!("kill -{signal} {pid}")]).status();
    assert!(status.unwrap().success());
}
