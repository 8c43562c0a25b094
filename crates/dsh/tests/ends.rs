//! However the host is told to end, it ends, with the right status and with nothing left.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

mod support;

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Command, Stdio},
};

use serde_json::json;
use tempfile::TempDir;
use testkit::guarded;

use crate::support::{Link, Server, kill, nothing_left, processes};

/// Ways to end a host, and its exit status.
const ENDS: [(Option<&str>, i32); 4] =
    [(None, 0), (Some("TERM"), 143), (Some("INT"), 130), (Some("HUP"), 129)];

fn end(server: &mut Server, signal: Option<&str>) {
    match signal {
        Some(signal) => kill(signal, server.child.id()),
        None => server.write = None,
    }
}

#[tokio::test]
async fn every_end_leaves_nothing() {
    for (signal, status) in ENDS {
        let mut server = Server::start(&[]);
        server.leave_something_running().await;
        end(&mut server, signal);
        assert_eq!(server.ended().await, Some(status), "{signal:?}");
    }
}

#[tokio::test]
async fn a_client_that_never_reads_does_not_keep_the_host() {
    for link in [Link::Pipes, Link::Sockets] {
        for (signal, status) in ENDS {
            let mut server = Server::connect(link, |_| {});
            server.begin();
            server.open();
            let marker = server.home.path().join("shown");
            let text = format!("seq 1 60000; touch {}", marker.display());
            for id in 2..8 {
                server.ask(id, "terminal_send", &json!({ "sessionId": "pty-1", "text": text }));
            }
            testkit::wait_until("the output", || marker.exists()).await;
            end(&mut server, signal);
            assert_eq!(server.ended().await, Some(status), "{link:?} {signal:?}");
        }
    }
}

#[tokio::test]
async fn garbage_from_a_client_that_never_reads_does_not_hide_the_end_of_its_input() {
    let mut server = Server::connect(Link::Pipes, |_| {});
    server.begin();
    server.open();
    // Far more answers than a pipe holds.
    let mut write = server.write.take().unwrap();
    let sending = std::thread::spawn(move || {
        for _ in 0..20_000 {
            write.write_all(b"{\"neither\":\"a request nor a notification\"}\n").unwrap();
        }
    });
    testkit::wait_until("the garbage is taken", || sending.is_finished()).await;
    sending.join().unwrap();
    assert_eq!(server.ended().await, Some(0));
}

#[tokio::test]
async fn a_closed_output_ends_the_host() {
    for link in [Link::Pipes, Link::Sockets] {
        let mut server = Server::connect(link, |_| {});
        server.begin();
        server.leave_something_running().await;
        server.read = None;
        server.ask(3, "terminal_list", &json!({}));
        assert_eq!(server.ended().await, Some(0), "{link:?}");

        // The output goes while the host is already ending.
        let mut server = Server::connect(link, |_| {});
        server.begin();
        server.leave_something_running().await;
        server.read = None;
        kill("TERM", server.child.id());
        assert_eq!(server.ended().await, Some(143), "{link:?}");
    }
}

#[tokio::test]
async fn a_second_signal_ends_at_once_and_leaves_nothing() {
    let logs = tempfile::NamedTempFile::new().unwrap();
    let stderr = logs.reopen().unwrap();
    let mut server = Server::connect(Link::Pipes, |command| {
        command.env("DSH_LOG", "info").stderr(stderr);
    });
    server.begin();
    server.open();
    let deaf = "(trap '' HUP TERM INT; exec sleep 300) & sleep 300";
    server.ask(2, "terminal_send", &json!({ "sessionId": "pty-1", "text": deaf }));
    let tag = server.tag.clone();
    testkit::wait_until("two sleeps", move || support::sleeping(&tag) == 2).await;
    // It finds both when it goes on, and says which it took for the first. The status is that of
    // the other one: after the first alone it would be its own.
    for signal in ["STOP", "TERM", "HUP", "CONT"] {
        kill(signal, server.child.id());
    }
    let status = server.child.exit().await;
    let logs = std::fs::read_to_string(logs.path()).unwrap();
    let first = logs.lines().find(|it| it.contains("ending")).unwrap_or_default();
    assert_eq!(status, Some(if first.contains("SIGTERM") { 129 } else { 143 }), "{logs}");
    // It was killed before the exit, not by somebody afterwards.
    let left: Vec<_> =
        processes(&server.tag).into_iter().filter(|it| it.command.starts_with("sleep")).collect();
    assert!(left.is_empty(), "{left:?}");
    nothing_left(&server.tag).await;
}

#[tokio::test]
async fn a_demonstration_that_nobody_reads_ends() {
    // A pipe that is full already.
    let (_reader, writer) = std::io::pipe().unwrap();
    let full = Command::new("bash")
        .args(["-c", "dd if=/dev/zero of=/proc/self/fd/1 bs=4096 oflag=nonblock conv=notrunc 2>/dev/null; true"])
        .stdout(writer.try_clone().unwrap())
        .status();
    assert!(full.unwrap().success());
    for (signal, status) in [("TERM", 143), ("INT", 130)] {
        let home = TempDir::new().unwrap();
        let tag = home.path().display().to_string();
        let mut child = demonstration(&home, writer.try_clone().unwrap().into());
        let log = home.path().join("home/sessions");
        testkit::wait_until("the session log", || log.exists()).await;
        kill(signal, child.id());
        assert_eq!(exit(&mut child).await, Some(status), "{signal}");
        nothing_left(&tag).await;
    }
}

#[tokio::test]
async fn a_task_is_interrupted_in_order_whatever_runs() {
    let home = TempDir::new().unwrap();
    let tag = home.path().display().to_string();
    let rows = "- name: terminal\n- name: terminal-bash\n- name: tool-terminal\n- name: model-script\n\
                \x20 config:\n    steps:\n    - say: I wait.\n      calls:\n\
                \x20     - { tool: terminal_open, arguments: { type: shell } }\n\
                \x20     - { tool: terminal_send, arguments: { sessionId: pty-1, text: 'trap \"\" INT TERM; sleep 1000' } }\n\
                \x20     - { tool: terminal_list }\n";
    std::fs::write(home.path().join("c.yml"), rows).unwrap();
    let child = run_of_the_script(&home, "wait").spawn().unwrap();
    testkit::wait_until("a sleep", || support::sleeping(&tag) == 1).await;
    kill("INT", child.id());
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    let output = guarded("the host's end", output).await.unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\n* interrupted\n* logged as session "), "{text}");
    nothing_left(&tag).await;
}

/// An agent that kills by a pattern of its own words (`pkill -f`) must not meet its host.
#[tokio::test]
async fn no_process_of_ours_has_the_words_of_a_task_in_its_command_line() {
    let home = TempDir::new().unwrap();
    let tag = home.path().display().to_string();
    let rows = "- name: terminal\n- name: terminal-bash\n- name: tool-terminal\n- name: model-script\n\
                \x20 config:\n    steps:\n    - say: I wait.\n      calls:\n\
                \x20     - { tool: terminal_open, arguments: { type: shell, name: peculiar-name } }\n\
                \x20     - { tool: terminal_send, arguments: { sessionId: pty-1, text: 'sleep 1000 # peculiar-text' } }\n";
    std::fs::write(home.path().join("c.yml"), rows).unwrap();
    let mut child = run_of_the_script(&home, "do the peculiar-task").spawn().unwrap();
    testkit::wait_until("a sleep", || support::sleeping(&tag) == 1).await;
    let mut ours: Vec<i32> = processes(&tag).iter().map(|it| it.pid).collect();
    // The supervisor has no environment.
    let host = child.id();
    let children = std::fs::read_to_string(format!("/proc/{host}/task/{host}/children")).unwrap();
    ours.extend(children.split_whitespace().map(|it| it.parse::<i32>().unwrap()));
    ours.sort_unstable();
    ours.dedup();
    assert_eq!(ours.len(), 4, "host, supervisor, shell and sleep: {ours:?}");
    for pid in ours {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        let line = String::from_utf8_lossy(&line).into_owned();
        assert!(!line.contains("peculiar"), "{line:?}");
    }
    kill("INT", child.id());
    assert_eq!(exit(&mut child).await, Some(130));
    nothing_left(&tag).await;
}

#[tokio::test]
async fn a_second_signal_ends_a_run_at_once_and_leaves_nothing() {
    let home = TempDir::new().unwrap();
    let tag = home.path().display().to_string();
    let rows = "- name: terminal\n- name: terminal-bash\n- name: tool-terminal\n- name: model-script\n\
                \x20 config:\n    steps:\n    - say: I wait.\n      calls:\n\
                \x20     - { tool: terminal_open, arguments: { type: shell } }\n\
                \x20     - tool: terminal_send\n        arguments:\n          sessionId: pty-1\n\
                \x20         text: '(trap \"\" HUP TERM INT; exec sleep 300) & sleep 300'\n";
    std::fs::write(home.path().join("c.yml"), rows).unwrap();
    let mut child = run_of_the_script(&home, "wait").env("DSH_LOG", "info").spawn().unwrap();
    testkit::wait_until("two sleeps", || support::sleeping(&tag) == 2).await;
    // It finds both when it goes on, as in the test above.
    for signal in ["STOP", "INT", "HUP", "CONT"] {
        kill(signal, child.id());
    }
    let status = exit(&mut child).await;
    // They were killed before the exit, not by somebody afterwards.
    assert_eq!(support::sleeping(&tag), 0);
    nothing_left(&tag).await;
    let logs = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    let first = logs.lines().find(|it| it.contains("ending")).unwrap_or_default();
    assert_eq!(status, Some(if first.contains("SIGINT") { 129 } else { 130 }), "{logs}");
}

#[tokio::test]
async fn a_reader_that_has_gone_ends_the_run() {
    let home = TempDir::new().unwrap();
    let tag = home.path().display().to_string();
    for arguments in
        [&["run", "--agent-terminal-demo"][..], &["run", "--agent-terminal-demo", "--json"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_dsh"))
            .args(arguments)
            .current_dir(home.path())
            .env("DSH_HOME", home.path().join("home"))
            .env(support::TAG, &tag)
            .env_remove("DSH_LOG")
            .stdin(Stdio::null())
            .stdout(writer)
            .output()
            .unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.to_lowercase().starts_with("error: cannot print: broken pipe"), "{errors}");
        nothing_left(&tag).await;
    }
}

/// A run over the composition `c.yml`, whose model is a script.
fn run_of_the_script(home: &TempDir, task: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dsh"));
    command
        .args(["run", task, "--composition", "c.yml"])
        .current_dir(home.path())
        .env("DSH_HOME", home.path().join("home"))
        .env(support::TAG, home.path())
        .env_remove("DSH_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Starts the program in a terminal, and closes that when its own input ends.
const IN_A_TERMINAL_THAT_IS_CLOSED: &str = "
import os, pty, select, sys
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
while 0 not in select.select([0, terminal], [], [])[0]:
    os.read(terminal, 65536)
os.close(terminal)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
";

#[tokio::test]
async fn a_run_whose_terminal_is_closed_leaves_nothing() {
    let home = TempDir::new().unwrap();
    let tag = home.path().display().to_string();
    let rows = format!(
        "- name: terminal\n- name: terminal-bash\n- name: tool-terminal\n- name: model-script\n\
         \x20 config:\n    steps:\n    - say: I wait.\n      calls:\n\
         \x20     - {{ tool: terminal_open, arguments: {{ type: shell }} }}\n\
         \x20     - {{ tool: terminal_send, arguments: {{ sessionId: pty-1, text: \"{}\" }} }}\n",
        support::LEFTOVERS
    );
    std::fs::write(home.path().join("c.yml"), rows).unwrap();
    let mut child = Command::new("python3")
        .args(["-c", IN_A_TERMINAL_THAT_IS_CLOSED, env!("CARGO_BIN_EXE_dsh")])
        .args(["run", "wait", "--composition", "c.yml"])
        .current_dir(home.path())
        .env("DSH_HOME", home.path().join("home"))
        .env(support::TAG, &tag)
        .env_remove("DSH_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    testkit::wait_until("four sleeps", || support::sleeping(&tag) == 4).await;
    drop(child.stdin.take());
    assert_eq!(exit(&mut child).await, Some(129));
    // They were killed before the exit, not by somebody afterwards.
    assert_eq!(support::sleeping(&tag), 0);
    nothing_left(&tag).await;
}

fn demonstration(home: &TempDir, stdout: Stdio) -> Child {
    Command::new(env!("CARGO_BIN_EXE_dsh"))
        .args(["run", "--agent-terminal-demo"])
        .current_dir(home.path())
        .env("DSH_HOME", home.path().join("home"))
        .env(support::TAG, home.path())
        .env_remove("DSH_LOG")
        .stdin(Stdio::null())
        .stdout(stdout)
        .spawn()
        .unwrap()
}

async fn exit(child: &mut Child) -> Option<i32> {
    let mut status = None;
    testkit::wait_until("the host's end", || {
        status = child.try_wait().unwrap();
        status.is_some()
    })
    .await;
    status.unwrap().code()
}

#[tokio::test]
async fn a_demonstration_that_is_interrupted_leaves_nothing() {
    for (signal, status) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        let home = TempDir::new().unwrap();
        let tag = home.path().display().to_string();
        let mut child = demonstration(&home, Stdio::piped());
        let mut shown = BufReader::new(child.stdout.take().unwrap()).lines();
        let seen = tokio::task::spawn_blocking(move || {
            assert!(shown.any(|line| line.unwrap().starts_with("> terminal_send")));
            shown
        });
        let shown = guarded("its first send", seen).await.unwrap();
        kill(signal, child.id());
        assert_eq!(exit(&mut child).await, Some(status), "{signal}");
        drop(shown);
        nothing_left(&tag).await;
    }
}
