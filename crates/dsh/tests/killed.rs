//! A host that is killed leaves nothing of its sessions: neither when its supervisor survives it
//! nor, from the next start on, when that is killed too.
//!
//! What is started here sheds its environment, so it is known by a number among its arguments.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

mod support;

use std::{env, fs, os::unix::process::CommandExt as _, path::Path, process::Command};

use serde_json::json;
use tempfile::TempDir;
use testkit::{
    again::{as_an_ordinary_user, assert_passes},
    wait_until,
};

use crate::support::{Link, Server, kill, nothing_left};

/// Ways out of a terminal; `N` is an argument of `sleep`.
const ESCAPES: [&str; 7] = [
    "setsid -f sleep N",
    "nohup sleep N >/dev/null 2>&1 & disown",
    "env -i setsid -f sleep N",
    "env -i setsid sh -c '(sleep N &) & exit' </dev/null >/dev/null 2>&1",
    "bash -c 'trap \"\" TERM HUP INT; while :; do sleep N; done' & disown",
    "(trap '' TERM HUP; setsid sh -c 'while :; do sleep N; done' &)",
    "setsid -f sh -c 'trap \"exec setsid -f sleep N\" TERM HUP; while :; do sleep N; done'",
];

/// Numbers that are an argument of nobody else's `sleep`.
fn numbers(host: &Server) -> Vec<String> {
    (0..ESCAPES.len()).map(|it| format!("{}.{}", 900_000 + it, host.child.id())).collect()
}

/// Starts everything that tries to escape from the host's session.
async fn let_them_escape(server: &mut Server) {
    server.open();
    for (id, (escape, number)) in (2..).zip(ESCAPES.iter().zip(numbers(server))) {
        let text = escape.replace('N', &number);
        server.call(id, "terminal_send", &json!({ "sessionId": "pty-1", "text": text }));
        wait_until(escape, || !sleeping(&number).is_empty()).await;
    }
}

/// Living processes with this argument, which is also part of a script.
fn sleeping(argument: &str) -> Vec<i32> {
    let has = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(argument)
    };
    processes().into_iter().filter(has).collect()
}

fn processes() -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

async fn all_gone(numbers: &[String]) {
    wait_until("all who escaped are gone", || numbers.iter().all(|it| sleeping(it).is_empty()))
        .await;
}

/// The supervisor of a host.
fn supervisor(host: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{host}/task/{host}/children")).unwrap();
    let is_it =
        |pid: &&str| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap() == "session-keeper\n";
    children.split_whitespace().find(is_it).unwrap().parse().unwrap()
}

/// Also where nobody collects it: the test may be process 1.
fn is_gone(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

/// Where the program is, for whoever may not come where it was built.
const PROGRAM: &str = "TEST_PROGRAM";

#[tokio::test]
async fn a_killed_host_leaves_nothing() {
    let program = env::var_os(PROGRAM).unwrap_or(env!("CARGO_BIN_EXE_dsh").into());
    // Alone, and with everything of its process group; by a fault of its own, too.
    for (signal, target) in [("KILL", ""), ("KILL", "-"), ("ABRT", ""), ("SEGV", "")] {
        let mut server = Server::connect_to(Command::new(&program), Link::Pipes, |command| {
            command.process_group(0);
        });
        server.begin();
        let_them_escape(&mut server).await;
        let (numbers, supervisor) = (numbers(&server), supervisor(server.child.id()));
        let line = format!("kill -{signal} -- {target}{}", server.child.id());
        // The first SEGV that is no fault only ends the handler that Rust has for it.
        wait_until(&line, || {
            assert!(Command::new("bash").args(["-c", &line]).status().unwrap().success());
            server.child.0.try_wait().unwrap().is_some()
        })
        .await;
        assert_eq!(server.child.exit().await, None);
        all_gone(&numbers).await;
        nothing_left(&server.tag).await;
        wait_until("the supervisor ends", || is_gone(supervisor)).await;
    }
}

#[test]
#[ignore = "needs root"]
fn a_killed_host_of_an_ordinary_user_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let program = folder.path().join("dsh");
    fs::copy(env!("CARGO_BIN_EXE_dsh"), &program).unwrap();
    let mut command = as_an_ordinary_user(folder.path(), "a_killed_host_leaves_nothing");
    assert_passes(command.env(PROGRAM, &program));
}

#[tokio::test]
async fn the_supervisor_is_out_of_everybodys_way() {
    let mut server = Server::start(&[]);
    server.open();
    let pid = supervisor(server.child.id());
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    // As far as there is room for it.
    let line = String::from_utf8(line).unwrap();
    let line = line.trim_end_matches('\0');
    assert!(!line.is_empty() && "session-keeper".starts_with(line), "{line}");
    let descriptors: Vec<_> = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .map(|it| fs::read_link(it.unwrap().path()).unwrap().display().to_string())
        .collect();
    assert!(
        descriptors.iter().all(|it| it == "/dev/null" || it.starts_with("anon_inode:[pidfd]")),
        "{descriptors:?}"
    );
    for signal in ["TERM", "INT", "HUP", "USR1"] {
        kill(signal, pid);
    }
    let listed = server.call(2, "terminal_list", &json!({}));
    assert!(listed["content"][0]["text"].as_str().unwrap().contains("running"), "{listed}");
    assert!(!is_gone(pid));
    server.write = None;
    assert_eq!(server.ended().await, Some(0));
    wait_until("the supervisor ends", || is_gone(pid)).await;
}

#[tokio::test]
async fn the_next_start_ends_what_is_left_and_touches_no_other_host() {
    let home = TempDir::new().unwrap();
    let start = || {
        let mut server = Server::connect(Link::Pipes, |command| {
            command.env("DSH_HOME", home.path());
        });
        server.begin();
        server
    };
    let records = || fs::read_dir(home.path().join("hosts")).unwrap().count();
    let (mut killed, mut other) = (start(), start());
    let_them_escape(&mut killed).await;
    let_them_escape(&mut other).await;
    assert_eq!(records(), 2);
    kill("KILL", supervisor(killed.child.id()));
    kill("KILL", killed.child.id());
    assert_eq!(killed.child.exit().await, None);
    let (left, of_other) = (numbers(&killed), numbers(&other));
    assert!(!sleeping(&left[0]).is_empty(), "without them this shows nothing");
    let others = || of_other.iter().map(|it| sleeping(it).len()).collect::<Vec<_>>();
    let before = others();

    let next = start();
    all_gone(&left).await;
    wait_until("the record of the killed one is gone", || records() == 2).await;
    assert_eq!(others(), before);
    let text = json!({ "sessionId": "pty-1", "text": "echo here" });
    let said = other.call(90, "terminal_send", &text);
    assert!(said["content"][0]["text"].as_str().unwrap().contains("\nhere\n"), "{said}");

    for mut server in [next, other] {
        server.write = None;
        assert_eq!(server.ended().await, Some(0));
    }
    all_gone(&of_other).await;
    assert_eq!(records(), 0);
    nothing_left(&killed.tag).await;
}

/// What sheds its environment and its limits, and loses its parents, has no mark any more.
const SHED: &str =
    "env -i bash -c 'ulimit -R 1000; exec setsid -f sleep N' </dev/null >/dev/null 2>&1";

#[tokio::test]
#[ignore = "needs root and control groups of version 2"]
async fn a_close_ends_what_shed_its_marks_and_nothing_of_another_session() {
    let mut server = Server::start(&[]);
    let host = server.child.id();
    server.open();
    server.call(2, "terminal_open", &json!({ "type": "shell" }));
    let numbers = [1, 2].map(|it| format!("90020{it}.{host}"));
    for (session, number) in (1..).zip(&numbers) {
        let id = format!("pty-{session}");
        let text = SHED.replace('N', number);
        server.call(10 + session, "terminal_send", &json!({ "sessionId": id, "text": text }));
        wait_until("it sleeps", || !sleeping(number).is_empty()).await;
    }
    let group = |pid: i32| group_of(&fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap());
    let groups = numbers.each_ref().map(|it| group(sleeping(it)[0]));
    assert_ne!(groups[0], groups[1]);
    // The shell goes first: nothing leads from it to the other one.
    let bye = json!({ "sessionId": "pty-1", "text": "exit" });
    server.call(20, "terminal_send", &bye);
    assert!(!sleeping(&numbers[0]).is_empty(), "without it this shows nothing");
    let closed = server.call(21, "terminal_close", &json!({ "sessionId": "pty-1" }));
    // No waiting: it is true the moment that the close returns.
    assert!(sleeping(&numbers[0]).is_empty(), "{closed}");
    assert!(!sleeping(&numbers[1]).is_empty(), "{closed}");
    wait_until("its group is removed", || !Path::new(&groups[0]).exists()).await;
    server.write = None;
    assert_eq!(server.ended().await, Some(0));
    assert!(sleeping(&numbers[1]).is_empty());
}

/// Who ends takes his CPU time along, unless a group counts it.
#[tokio::test]
#[ignore = "needs root and control groups of version 2"]
async fn the_cpu_time_of_orphans_counts() {
    let home = TempDir::new().unwrap();
    let file = home.path().join("limited.yml");
    // The send ends with the session or at the prompt, however slow the machine is.
    let rows = "- name: terminal\n- name: terminal-bash\n  config: { limits: { cpuSeconds: 1 }, \
                idleSilenceMs: 300000, timeoutMs: 300000 }\n- name: tool-terminal\n";
    fs::write(&file, rows).unwrap();
    let mut server = Server::start(&["--composition", file.to_str().unwrap()]);
    server.open();
    // One after the other, each an orphan that uses a tenth of the limit and is gone.
    let spin = "import time\nwhile time.process_time() < .1: pass\nprint()";
    fs::write(home.path().join("spin.py"), spin).unwrap();
    let text = format!(
        "cd {}; mkfifo p; exec 9<>p; \
         for i in $(seq 20); do setsid -f python3 spin.py >&9; read -r _ <&9; done",
        home.path().display()
    );
    let said = server.call(2, "terminal_send", &json!({ "sessionId": "pty-1", "text": text }));
    assert!(said["content"][0]["text"].as_str().unwrap().contains("[limit: cpu 1 s]"), "{said}");
    server.write = None;
    assert_eq!(server.ended().await, Some(0));
}

#[tokio::test]
#[ignore = "needs root and control groups of version 2"]
async fn what_shed_its_marks_is_in_the_hosts_control_group() {
    for both_killed in [false, true] {
        let home = TempDir::new().unwrap();
        let start = || {
            let mut server = Server::connect(Link::Pipes, |command| {
                command.env("DSH_HOME", home.path());
            });
            server.begin();
            server
        };
        let mut server = start();
        let pid = server.child.id();
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
        assert!(groups.contains(&format!("/dsh-{pid}-")), "{groups}");
        server.open();
        let number = format!("900100.{pid}");
        let text = SHED.replace('N', &number);
        server.call(2, "terminal_send", &json!({ "sessionId": "pty-1", "text": text }));
        wait_until("it sleeps", || !sleeping(&number).is_empty()).await;
        let supervisor = supervisor(pid);
        if both_killed {
            kill("KILL", supervisor);
        }
        kill("KILL", pid);
        assert_eq!(server.child.exit().await, None);
        let next = if both_killed {
            assert!(!sleeping(&number).is_empty());
            Some(start())
        } else {
            None
        };
        all_gone(&[number]).await;
        nothing_left(&server.tag).await;
        wait_until("the group is removed", || {
            let group = group_of(&groups);
            !Path::new(&group).parent().unwrap().exists() && is_gone(supervisor)
        })
        .await;
        if let Some(mut next) = next {
            next.write = None;
            assert_eq!(next.ended().await, Some(0));
        }
    }
}

/// What holds a session to its limits goes like the session itself, and whoever sheds all marks in there.
#[tokio::test]
#[ignore = "needs root and control groups of version 1 with memory and pids"]
async fn the_groups_of_limits_go_with_a_killed_host() {
    for both_killed in [false, true] {
        let home = TempDir::new().unwrap();
        let file = home.path().join("limited.yml");
        let rows = "- name: terminal\n- name: terminal-bash\n  config: { limits: { memoryMib: 512, \
                    processes: 64, enforced: true } }\n- name: tool-terminal\n";
        fs::write(&file, rows).unwrap();
        let start = || {
            let mut server = Server::connect(Link::Pipes, |command| {
                command.env("DSH_HOME", home.path()).arg("--composition").arg(&file);
            });
            server.begin();
            server
        };
        let mut server = start();
        let pid = server.child.id();
        server.open();
        let number = format!("900200.{pid}");
        let text = SHED.replace('N', &number);
        server.call(2, "terminal_send", &json!({ "sessionId": "pty-1", "text": text }));
        wait_until("it sleeps", || !sleeping(&number).is_empty()).await;
        let groups = fs::read_to_string(format!("/proc/{}/cgroup", sleeping(&number)[0])).unwrap();
        let folders = ["memory", "pids"].map(|it| {
            let line = groups.lines().find_map(|line| line.split_once(&format!(":{it}:"))).unwrap();
            format!("/sys/fs/cgroup/{it}{}", line.1)
        });
        assert!(folders.iter().all(|it| it.contains(&format!("/dsh-{pid}-"))), "{folders:?}");
        assert_eq!(folders.each_ref().map(|it| Path::new(it).exists()), [true; 2]);
        let supervisor = supervisor(pid);
        if both_killed {
            kill("KILL", supervisor);
        }
        kill("KILL", pid);
        assert_eq!(server.child.exit().await, None);
        let next = both_killed.then(start);
        all_gone(&[number]).await;
        nothing_left(&server.tag).await;
        wait_until("the groups are removed", || {
            folders.iter().all(|it| !Path::new(it).exists()) && is_gone(supervisor)
        })
        .await;
        if let Some(mut next) = next {
            next.write = None;
            assert_eq!(next.ended().await, Some(0));
        }
    }
}

/// The folder of the group in a `/proc/P/cgroup`.
fn group_of(groups: &str) -> String {
    let own = groups.lines().find_map(|it| it.strip_prefix("0::")).unwrap();
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let point = mounts.lines().find(|it| it.split(' ').nth(2) == Some("cgroup2")).unwrap();
    format!("{}{own}", point.split(' ').nth(1).unwrap())
}

/// In a container the host may be process 1, to which every orphan is given.
#[tokio::test]
#[ignore = "needs root"]
async fn a_host_that_is_process_1_collects_orphans() {
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--fork", "--kill-child", "--mount-proc", env!("CARGO_BIN_EXE_dsh")]);
    let mut server = Server::connect_to(unshare, Link::Pipes, |_| {});
    server.begin();
    server.open();
    let orphans = "for i in $(seq 200); do setsid -f true; done; echo started";
    let count =
        "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l | sed 's/^/zombies: /'";
    let mut said = |id: u64, text: &str| {
        let sent = server.call(id, "terminal_send", &json!({ "sessionId": "pty-1", "text": text }));
        sent["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let unmarked = "for i in $(seq 200); do \
                    env -i bash -c 'ulimit -R 1000; exec setsid -f true'; done; echo started";
    assert!(said(2, orphans).contains("\nstarted\n"));
    assert!(said(3, unmarked).contains("\nstarted\n"));
    assert!(said(4, "cat /proc/1/comm").contains("\ndsh\n"));
    let mut id = 4;
    wait_until("no zombie is left", || {
        id += 1;
        said(id, count).contains("\nzombies: 0\n")
    })
    .await;
    server.write = None;
    assert_eq!(server.ended().await, Some(0));
}
