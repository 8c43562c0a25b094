//! What the system does about the bounds of a session, while nobody watches.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

mod support;

use std::{fs, time::Duration};

use subprocess::{Bounds, ExitStatus, Held, Met, TerminalSpec, bounds_hold};
use support::{Session, bash, python, spec};

const MIB: u64 = 1 << 20;

fn with(bounds: Bounds, spec: TerminalSpec) -> TerminalSpec {
    TerminalSpec { bounds, ..spec }
}

/// The soft limit of a name in a `/proc/PID/limits`.
fn soft_limit(limits: &str, name: &str) -> String {
    let line = limits.lines().find_map(|it| it.strip_prefix(name)).unwrap();
    line.split_ascii_whitespace().next().unwrap().to_owned()
}

#[tokio::test]
async fn a_session_without_bounds_has_nothing_of_it() {
    let mut session =
        Session::start(spec("/bin/cat", &["/proc/self/cgroup", "/proc/self/limits"])).await;
    assert_eq!(session.process.held(), Held::default());
    session.until_exit().await;
    let text = session.text().replace('\r', "");
    for group in fs::read_to_string("/proc/self/cgroup").unwrap().lines() {
        assert!(text.lines().any(|it| it == group), "not in {group}: {text}");
    }
    for name in ["Max data size", "Max cpu time"] {
        assert_eq!(soft_limit(&text, name), "unlimited", "{name}");
    }
    assert_eq!(session.process.met(), None);
    session.close().await;
}

/// Whoever uses more than all of its time is ended, and the end is known to be that.
#[tokio::test]
async fn cpu_time_is_limited_in_each_process() {
    let bounds = Bounds { cpu: Some(Duration::from_secs(1)), ..Bounds::default() };
    let mut session = Session::start(with(bounds, bash())).await;
    session.until("dsh> ").await;
    assert_eq!(session.process.met(), None);
    session.command("(while :; do :; done); echo status: $?").await;
    assert_eq!(session.process.met(), Some(Met::Cpu));
    session.process.terminate(Duration::ZERO, &mut session.output).await.unwrap();
    assert_eq!(session.process.met(), None, "its number may be another's by now");
}

#[tokio::test]
#[ignore = "needs root and the memory controller of control groups"]
async fn the_kernel_holds_a_session_to_its_memory() {
    let bounds = Bounds { memory_bytes: Some(96 * MIB), required: true, ..Bounds::default() };
    assert_eq!(bounds_hold(&bounds), Ok(()));
    let mut session = Session::start(with(bounds, bash())).await;
    session.until("dsh> ").await;
    assert_eq!(session.process.held(), Held { memory: true, processes: false });
    let pid = session.process.pid();
    let group = group_of("memory", pid);
    // One process that is large, and two that are so together.
    let hog = "python3 -c 'x = b\"x\" * (4 << 30)'; echo status: $?";
    assert!(session.command(hog).await.contains("status: 137"));
    assert_eq!(session.process.met(), Some(Met::Memory));
    let peak = fs::read_to_string(format!("{group}/memory.max_usage_in_bytes"));
    if let Ok(peak) = peak {
        assert!(peak.trim().parse::<u64>().unwrap() <= 96 * MIB, "{peak}");
    }
    session.close().await;
    assert!(!fs::exists(&group).unwrap(), "it is removed");

    let mut session = Session::start(with(bounds, bash())).await;
    session.until("dsh> ").await;
    let half = "import time; x = b\"x\" * (60 << 20); print(\"there\"); time.sleep(1000)";
    // Which of them the kernel ends is its own choice.
    session
        .command(&format!("python3 -uc '{half}' & setsid -w python3 -uc '{half}' & wait -n"))
        .await;
    assert_eq!(session.process.met(), Some(Met::Memory));
    session.close().await;
}

#[tokio::test]
#[ignore = "needs root and the pids controller of control groups"]
async fn the_kernel_stops_what_starts_without_end() {
    let bounds = Bounds { processes: Some(4), required: true, ..Bounds::default() };
    assert_eq!(bounds_hold(&bounds), Ok(()));
    let script = "
import os, signal
started = 0
try:
    while started < 2000:
        if os.fork() == 0: signal.pause()
        started += 1
except BlockingIOError: pass
print('started', started, flush=True)
signal.pause()
";
    let mut session = Session::start(with(bounds, python(script))).await;
    assert_eq!(session.process.held(), Held { memory: false, processes: true });
    let group = group_of("pids", session.process.pid());
    session.until("started ").await;
    let started = session.until("\r\n").await;
    // 16 threads for each process, and 256; itself is one.
    assert_eq!(started.trim(), "319");
    assert_eq!(session.process.met(), Some(Met::Threads(320)));
    session.close().await;
    assert!(!fs::exists(&group).unwrap(), "it is removed");
}

/// The shell may be whom the kernel chooses.
#[tokio::test]
#[ignore = "needs root and the memory controller of control groups"]
async fn a_leader_that_was_killed_for_memory_is_known_by_it() {
    let bounds = Bounds { memory_bytes: Some(64 * MIB), ..Bounds::default() };
    let mut session = Session::start(with(bounds, python("x = b'x' * (1 << 30)"))).await;
    assert_eq!(session.until_exit().await, ExitStatus::Signal("SIGKILL".to_owned()));
    assert_eq!(session.process.met(), Some(Met::Memory));
    session.close().await;
}

/// The folder of the group that holds process `pid` by a controller.
fn group_of(controller: &str, pid: i32) -> String {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let named = |it: &str| it.split(',').any(|it| it == controller);
    let group = groups.lines().find_map(|line| {
        let (_, line) = line.split_once(':')?;
        line.split_once(':').filter(|it| named(it.0)).map(|it| it.1)
    });
    let group = group.unwrap();
    assert!(group.contains(&format!("/dsh-{}-", std::process::id())), "{group}");
    format!("/sys/fs/cgroup/{controller}{group}")
}
