//! What is typed while a program reads without echo stands nowhere afterwards: everything that the
//! host wrote, wherever, is searched for it.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

mod support;

use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::{NamedTempFile, TempDir};
use testkit::leaks::processes_with_env;

use crate::support::{Link, Server, files, processes};

/// Different ones, so that a finding says whose it is.
const TO_READ: &str = "hunter2-to-read";
const TO_GETPASS: &str = "hunter2-to-getpass";
const TO_JOB: &str = "hunter2-to-a-job";
const TO_RAW: &str = "hunter2-to-a-raw-reader";
const OF_ALL: &str = "hunter2";

/// Variables of a host: secrets by their names, its own, one that is denied, one that is allowed, any one.
const HOSTS: [&str; 6] = ["X_API_KEY", "my_token", "DSH_FOO", "DROP_ME", "KEEP_TOKEN", "PLAIN"];

/// Reads a line without canonical mode and without echo, showing a star for each character.
const STARS: &str = "import sys, termios, tty; fd = 0; old = termios.tcgetattr(fd); tty.setraw(fd); \
    print('Pin: ', end='', flush=True)\n\
    while (it := sys.stdin.read(1)) not in '\\r\\n': print('*', end='', flush=True)\n\
    termios.tcsetattr(fd, termios.TCSADRAIN, old); print()";

/// What the process has in files without a name, such as transcripts.
fn nameless(pid: u32) -> Vec<(String, String)> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let paths = descriptors.map(|it| it.unwrap().path());
    let deleted = paths.filter(|it| {
        fs::read_link(it).is_ok_and(|it| it.display().to_string().ends_with(" (deleted)"))
    });
    let read = |path: std::path::PathBuf| {
        let bytes = fs::read(&path).unwrap();
        (path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned())
    };
    deleted.map(read).collect()
}

#[track_caller]
fn assert_nowhere(places: &[(String, String)]) {
    for (place, text) in places {
        let at = text.find(OF_ALL);
        assert!(
            at.is_none(),
            "{place}: {:?}",
            &text[text.floor_char_boundary(at.unwrap().saturating_sub(200))..]
        );
    }
}

/// A client that keeps everything it hears.
struct Client {
    server: Server,
    id: u64,
    heard: Vec<(String, String)>,
}

impl Client {
    /// The text of a tool's result.
    fn call(&mut self, tool: &str, arguments: &Value) -> String {
        self.id += 1;
        self.server.ask(self.id, tool, arguments);
        loop {
            let line = self.server.read.as_mut().unwrap().next().unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            self.heard.push((format!("the answer to {tool}"), line));
            if message["id"] == self.id {
                return message["result"]["content"][0]["text"].as_str().unwrap().to_owned();
            }
        }
    }

    fn send(&mut self, text: &str, background: bool) -> String {
        let arguments =
            json!({ "sessionId": "pty-1", "text": text, "run_in_background": background });
        self.call("terminal_send", &arguments)
    }
}

#[tokio::test]
async fn a_served_host_writes_no_secret_anywhere() {
    let errors = NamedTempFile::new().unwrap();
    let stderr = errors.reopen().unwrap();
    let composition = "- name: terminal\n- name: terminal-bash\n  config: { scrollbackLines: 100, record: true }\n\
        - name: tool-terminal\n- name: jobs\n- name: tool-jobs\n";
    // Outlives the server.
    let home = TempDir::new().unwrap();
    let mut server = Server::connect(Link::Pipes, |command| {
        command.env("DSH_HOME", home.path());
        fs::write(command.get_current_dir().unwrap().join("c.yml"), composition).unwrap();
        command.args(["--composition", "c.yml"]);
        command.env("DSH_LOG", "trace").env("RUST_LOG", "trace").env("RUST_BACKTRACE", "1");
        command.stderr(stderr);
    });
    server.begin();
    server.open();
    let mut client = Client { server, id: 1, heard: Vec::new() };
    let asks = client.send("read -s -p 'Password: ' x; echo", false);
    assert!(asks.contains("[state: waiting for input, echo off]"), "{asks}");
    assert!(client.send(TO_READ, false).contains("[exit: 0]"));
    let asks = client.send("python3 -c 'import getpass; getpass.getpass()'", false);
    assert!(asks.contains("[state: waiting for input, echo off]"), "{asks}");
    assert!(client.send(TO_GETPASS, false).contains("[exit: 0]"));
    fs::write(client.server.home.path().join("stars.py"), STARS).unwrap();
    let asks = client.send("python3 stars.py", false);
    assert!(asks.contains("Pin: "), "{asks}");
    assert!(client.send(TO_RAW, false).contains("****"));
    // As a job, whose label and notice tell of it.
    client.send("read -s -p 'Again: ' y; sleep 0.3; echo", false);
    assert_eq!(client.send(TO_JOB, true), "started background job pty-send-1");
    let label = format!("pty-1: ({} bytes, echo off)", TO_JOB.len());
    let listed = client.call("job_list", &json!({}));
    assert!(listed.contains(&label), "{listed}");
    testkit::wait_until("the job's end", || {
        client.call("job_list", &json!({})).contains("completed")
    })
    .await;
    // Old output, so that there is a transcript.
    client.send("seq 1 30000", false);
    let transcript = nameless(client.server.child.id());
    assert!(transcript.iter().any(|(_, it)| it.contains("\n200\n")), "{transcript:?}");
    assert_nowhere(&transcript);
    // What cannot be typed any more: an error may quote.
    client.send("exec true", false);
    let refused = client.send(TO_READ, false);
    assert!(refused.starts_with("Error: "), "{refused}");
    // A notice told of the job.
    assert!(client.heard.iter().any(|(_, it)| it.contains("notifications/message")));
    assert_nowhere(&client.heard);
    let mut server = client.server;
    // So that something is logged at all.
    writeln!(server.write.as_mut().unwrap(), "no JSON").unwrap();
    server.write = None;
    assert_eq!(server.ended().await, Some(0));
    let written = files(home.path());
    assert!(written.iter().any(|(_, it)| it.contains("Password: ")), "{written:?}");
    assert_nowhere(&written);
    let errors = fs::read_to_string(errors.path()).unwrap();
    assert!(!errors.is_empty());
    assert_nowhere(&[("stderr".to_owned(), errors)]);
}

/// The agent's own model says it, before and after it is typed.
#[test]
fn a_run_writes_no_secret_anywhere() {
    let folder = TempDir::new().unwrap();
    let steps = format!(
        "- name: terminal\n- name: terminal-bash\n  config: {{ record: true }}\n- name: tool-terminal\n- name: jobs\n\
         - name: tool-jobs\n- name: model-script\n  config:\n    steps:\n\
         {i}- calls:\n{i}    - {{ tool: terminal_open, arguments: {{ type: shell }} }}\n\
         {i}- calls:\n{i}    - tool: terminal_send\n{i}      arguments: {{ sessionId: pty-1, text: \"read -s -p 'Password: ' x; echo\" }}\n\
         {i}      expect: [{{ text: 'waiting for input, echo off' }}]\n\
         {i}- say: I type {TO_READ} now.\n{i}  calls:\n{i}    - {{ tool: terminal_send, arguments: {{ sessionId: pty-1, text: {TO_READ} }} }}\n\
         {i}- calls:\n{i}    - tool: terminal_send\n{i}      arguments: {{ sessionId: pty-1, text: \"read -s -p 'Again: ' x; sleep 0.3; echo\" }}\n\
         {i}- say: And {TO_JOB}.\n{i}  calls:\n{i}    - {{ tool: terminal_send, arguments: {{ sessionId: pty-1, text: {TO_JOB}, run_in_background: true }} }}\n\
         {i}    - {{ tool: job_output, arguments: {{ job_id: pty-send-1, wait: true }} }}\n\
         {i}- say: I typed {TO_READ} and {TO_JOB}.\n",
        i = "      ",
    );
    fs::write(folder.path().join("c.yml"), steps).unwrap();
    let home = folder.path().join("home");
    let output = Command::new(env!("CARGO_BIN_EXE_dsh"))
        .args(["run", "--json", "--composition", "c.yml", "type them"])
        .current_dir(folder.path())
        .env("DSH_HOME", &home)
        .env("DSH_LOG", "trace")
        .env("RUST_BACKTRACE", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let [out, errors] =
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    assert!(output.status.success(), "{errors}");
    assert!(out.contains("assistant/message") && out.contains("echo off)"), "{out}");
    let mut places = files(&home);
    assert!(!places.is_empty());
    places.push(("stdout".to_owned(), out));
    places.push(("stderr".to_owned(), errors));
    assert_nowhere(&places);
}

/// What the programs of a session find in their environment, which the kernel tells: no secret of the
/// host's, and of all else what the two lists say. Of a remote one they are the launcher and what it runs.
#[tokio::test]
async fn a_session_has_of_the_environment_what_may_pass() {
    let lists = "environmentAllow: ['KEEP_*'], environmentDeny: ['DROP_*']";
    let rows = format!(
        "- name: terminal\n- name: terminal-bash\n  config: {{ {lists} }}\n\
         - name: terminal-remote\n  config: {{ {lists}, argv: [sh, -c] }}\n- name: tool-terminal\n"
    );
    let mut server = Server::connect(Link::Pipes, |command| {
        fs::write(command.get_current_dir().unwrap().join("c.yml"), rows).unwrap();
        command.args(["--composition", "c.yml"]);
        for name in HOSTS {
            command.env(name, OF_ALL);
        }
        // No system has it.
        command.env("LC_ALL", "tlh_KX").env_remove("LC_CTYPE").env_remove("LANG");
    });
    server.begin();
    for (id, kind) in [(1, "shell"), (2, "remote")] {
        let opened = server.call(id, "terminal_open", &json!({ "type": kind }));
        assert_eq!(opened["isError"], Value::Bool(false), "{opened}");
        let session = format!("pty-{id}");
        let programs = processes_with_env("DSH_PTY_SESSION_ID", &session);
        let programs: Vec<_> =
            processes(&server.tag).into_iter().filter(|it| programs.contains(it)).collect();
        assert!(programs.iter().any(|it| it.command == "bash"), "{programs:?}");
        for program in programs {
            let environment = fs::read(format!("/proc/{}/environ", program.pid)).unwrap();
            let environment = String::from_utf8(environment).unwrap();
            let has_it = |it: &&str| it.ends_with(&format!("={OF_ALL}"));
            let with_it: BTreeSet<_> = environment.split('\0').filter(has_it).collect();
            let passed = ["KEEP_TOKEN", "PLAIN"].map(|it| format!("{it}={OF_ALL}"));
            assert_eq!(with_it, passed.iter().map(String::as_str).collect(), "{program:?}");
            for ours in ["DSH_HOME=", "tlh_KX"] {
                assert!(!environment.contains(ours), "{program:?}: {environment}");
            }
        }
        // Python fails for a locale that does not exist.
        let locale = "python3 -c 'import locale as l; l.setlocale(l.LC_ALL, \"\"); print(l.nl_langinfo(l.CODESET))'";
        let text = json!({ "sessionId": session, "text": locale });
        let said = server.call(10 + id, "terminal_send", &text);
        assert!(said["content"][0]["text"].as_str().unwrap().contains("\nUTF-8\n"), "{said}");
    }
    server.write = None;
    assert_eq!(server.ended().await, Some(0));
}
