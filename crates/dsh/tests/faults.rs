//! The machine fails: what the host says, what goes on, and what works again afterwards. The outcomes
//! stand in `docs/defensive-patterns.md`.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

mod support;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use session_log::read_log;

use crate::support::{Link, Server};

/// The same command as the argument of another one.
fn through(command: &mut Command, wrapper: &[&str]) {
    let mut outer = Command::new(wrapper[0]);
    outer.args(&wrapper[1..]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer.current_dir(command.get_current_dir().unwrap());
    *command = outer;
}

/// A session of a host behind `wrapper`.
fn behind(wrapper: &[&str]) -> Server {
    let mut server = Server::connect(Link::Pipes, |command| through(command, wrapper));
    server.begin();
    server
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

fn open(server: &mut Server, id: u64) -> Value {
    server.call(id, "terminal_open", &json!({ "type": "shell" }))
}

/// Sends a command to a session, which must come back to its prompt.
#[track_caller]
fn run(server: &mut Server, id: u64, session: &str, command: &str) -> String {
    let send = json!({ "sessionId": session, "text": command });
    let reply = text(&server.call(id, "terminal_send", &send)).to_owned();
    assert!(reply.contains("[exit: 0]\n[wait: stdin_read]\n[session: running]"), "{reply}");
    reply
}

/// Opens sessions until one is refused, which must be with `says`; then the first one still works,
/// and closing another makes room for a new one.
async fn exhaust(wrapper: &[&str], says: &[&str]) {
    let mut server = behind(wrapper);
    let mut id = 1;
    let refused = loop {
        let opened = open(&mut server, id);
        if opened["isError"] == true {
            break opened;
        }
        id += 1;
        assert!(id < 100, "nothing was exhausted");
    };
    assert!(id > 2, "not even two: {refused}");
    assert_eq!(refused["_meta"]["dsh/error"]["code"], "SHELL_START_FAILED", "{refused}");
    assert!(says.iter().any(|it| text(&refused).contains(it)), "{refused}");
    run(&mut server, 101, "pty-1", "echo still here");
    server.call(102, "terminal_close", &json!({ "sessionId": "pty-2" }));
    let opened = open(&mut server, 103);
    assert_eq!(opened["isError"], Value::Bool(false), "{opened}");
    run(&mut server, 104, "pty-1", "true");
    server.write = None;
    assert_eq!(server.ended().await, Some(0));
}

#[tokio::test]
async fn descriptors_run_out() {
    exhaust(&["prlimit", "--nofile=80:80"], &["Too many open files"]).await;
}

#[tokio::test]
#[ignore = "needs root"]
async fn pseudo_terminals_run_out() {
    let few =
        "mount -t devpts -o newinstance,ptmxmode=0666,max=3 devpts /dev/pts && exec \"$0\" \"$@\"";
    exhaust(&["unshare", "-m", "bash", "-c", few], &["No space left on device"]).await;
}

/// The kernel counts the processes and threads of a user, who is nobody else's here.
#[tokio::test]
#[ignore = "needs root"]
async fn processes_run_out() {
    let few = "cp \"$0\" dsh && chown -R 65533 . && exec setpriv --reuid 65533 --regid 65533 --clear-groups -- \
        prlimit --nproc=30 env TOKIO_WORKER_THREADS=2 \"$PWD/dsh\" \"$@\"";
    exhaust(&["bash", "-c", few], &["Resource temporarily unavailable"]).await;
}

/// The logs in a folder for those of all agents.
fn logs(sessions: &Path) -> Vec<PathBuf> {
    let below = |it: PathBuf| fs::read_dir(it).into_iter().flatten().map(|it| it.unwrap().path());
    below(sessions.to_owned()).flat_map(below).flat_map(below).collect()
}

/// Nothing can be written below `$DSH_HOME`: neither the log nor old output nor a recording. A log that was begun and
/// cannot be ended makes the host's end a failure; its small last event may still fit.
async fn without_a_disk(wrapper: &[&str]) {
    let log = tempfile::NamedTempFile::new().unwrap();
    let stderr = log.reopen().unwrap();
    let mut server = Server::connect(Link::Pipes, |command| {
        let folder = command.get_current_dir().unwrap();
        fs::write(folder.join("p.yml"), "- id: terminal-bash\n  config: { record: true }\n")
            .unwrap();
        command.args(["--patch", "p.yml"]);
        through(command, wrapper);
        command.stderr(stderr);
    });
    server.begin();
    open(&mut server, 1);
    // Far beyond the scrollback and the file.
    run(&mut server, 2, "pty-1", "seq 1 400000");
    run(&mut server, 3, "pty-1", "true");
    let old = json!({ "sessionId": "pty-1", "offset": 399_000, "count": 10 });
    let old = text(&server.call(4, "terminal_read", &old)).to_owned();
    assert!(old.contains("[lines: "), "{old}");
    assert!(!old.contains("\n1000\n"), "{old}");
    let newest = json!({ "sessionId": "pty-1", "offset": 2, "count": 2 });
    let newest = text(&server.call(5, "terminal_read", &newest)).to_owned();
    assert!(newest.contains("400000"), "{newest}");
    server.write = None;
    let home = std::mem::replace(&mut server.home, tempfile::tempdir().unwrap());
    let status = server.ended().await;
    let logs = logs(&home.path().join("home/sessions"));
    let is_whole = |log: &PathBuf| read_log(log).unwrap().last().unwrap()["type"] == "agent/end";
    assert_eq!(status, Some(i32::from(!logs.iter().all(is_whole))), "{logs:?}");
    let says = fs::read_to_string(log.path()).unwrap();
    assert!(says.contains("older output can no longer be read"), "{says}");
    assert!(says.contains("the session log fails; tools go on without it"), "{says}");
    assert_eq!(says.matches("-pty-1.cast ends: ").count(), 1, "{says}");
    // What is there of the recording can be played.
    let recordings = fs::read_dir(home.path().join("home/recordings"));
    for recording in recordings.into_iter().flatten() {
        let text = fs::read_to_string(recording.unwrap().path()).unwrap();
        assert!(text.ends_with('\n'), "{text}");
        assert!(!asciicast::Recording::parse(&text).unwrap().events.is_empty(), "{text}");
    }
}

#[tokio::test]
async fn files_may_not_grow() {
    without_a_disk(&["prlimit", "--fsize=8192:8192"]).await;
}

#[tokio::test]
#[ignore = "needs root"]
async fn the_disk_is_full() {
    let tiny = "mkdir \"$DSH_HOME\" && mount -t tmpfs -o size=32k tmpfs \"$DSH_HOME\" && \
        ! head -c 64k /dev/zero > \"$DSH_HOME/filler\" && exec \"$0\" \"$@\"";
    without_a_disk(&["unshare", "-m", "bash", "-c", tiny]).await;
}

/// The wall clock jumps an hour to and fro each time somebody asks for it.
#[tokio::test]
async fn the_clock_jumps() {
    const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
static int odd;
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(id, at);
    if (id == CLOCK_REALTIME) at->tv_sec += __atomic_fetch_xor(&odd, 1, __ATOMIC_RELAXED) ? 3600 : -3600;
    return done;
}
"#;
    let folder = tempfile::tempdir().unwrap();
    let (source, shim) = (folder.path().join("jumps.c"), folder.path().join("jumps.so"));
    fs::write(&source, SHIM).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&shim, &source])
        .arg("-ldl")
        .status()
        .unwrap();
    assert!(built.success());
    let mut server = Server::connect(Link::Pipes, |command| {
        command.env("LD_PRELOAD", &shim);
    });
    server.begin();
    open(&mut server, 1);
    // It does jump, for whoever asks.
    let jumps =
        "python3 -c 'import time; a, b = time.time(), time.time(); print(abs(b - a) > 3000)'";
    assert!(run(&mut server, 2, "pty-1", jumps).contains("\nTrue\n"));
    for id in 3..12 {
        run(&mut server, id, "pty-1", "sleep 0.05; echo done");
    }
    let background =
        json!({ "sessionId": "pty-1", "text": "sleep 0.2; echo late", "run_in_background": true });
    assert_eq!(
        text(&server.call(20, "terminal_send", &background)),
        "started background job pty-send-1"
    );
    let wait = json!({ "job_id": "pty-send-1", "wait": true });
    let output = text(&server.call(21, "job_output", &wait)).to_owned();
    assert!(output.ends_with("[status: completed, wait: stdin_read]"), "{output}");
    assert!(output.contains("\nlate\n"), "{output}");
    server.write = None;
    assert_eq!(server.ended().await, Some(0));
}

/// A client that takes nothing for a while gets everything afterwards, and nobody waits for it.
#[tokio::test]
async fn a_client_reads_late() {
    let mut server = Server::start(&[]);
    server.open();
    let marker = server.home.path().join("all");
    // Each answer is at its bound, and together they are far more than a pipe holds.
    for id in 2..10 {
        let session = json!({ "type": "shell", "name": id.to_string() });
        server.ask(100 + id, "terminal_open", &session);
    }
    let mut opened = Vec::new();
    for _ in 2..10 {
        let line = server.read.as_mut().unwrap().next().unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        opened.push(text(&message["result"]).split(' ').nth(3).unwrap().to_owned());
    }
    for (id, session) in (2..10).zip(&opened) {
        let work = format!("seq 1 60000; echo x >> {}", marker.display());
        server.ask(id, "terminal_send", &json!({ "sessionId": session, "text": work }));
    }
    let all = || fs::read_to_string(&marker).is_ok_and(|it| it.lines().count() == 8);
    testkit::wait_until("all have worked though nobody reads", all).await;
    let mut answers = Vec::new();
    for _ in 2..10 {
        let line = server.read.as_mut().unwrap().next().unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        assert!(text(&message["result"]).contains("\n60000\n"), "{message}");
        answers.push(message["id"].as_u64().unwrap());
    }
    answers.sort_unstable();
    assert_eq!(answers, (2..10).collect::<Vec<_>>());
    server.write = None;
    assert_eq!(server.ended().await, Some(0));
}
