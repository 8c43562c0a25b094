//! Limits: a session that reaches one is ended whole and says at which, and no other one is touched.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use dsh_core::ConfigError;
use subprocess::Bounds;
use terminal::{
    SendOutcome, SessionStatus, SpawnRequest, TerminalError, WaitCondition, WaitEnd, WaitReason,
    WaitRequest,
};
use testkit::{leaks::processes_with_env, wait::wait_until};

use crate::shell::{Bench, Shell, bench};

/// Takes 16 MiB after the other, and says how much it has before it takes more. One that gets no more
/// keeps what it has.
const GREEDY: &str = "
hog, had = [], os.open('had', os.O_CREAT | os.O_WRONLY)
try:
    while len(hog) < 512:
        hog.append(b'x' * (16 << 20))
        os.pwrite(had, b'%d' % (16 * len(hog)), 0)
except MemoryError: pass
time.sleep(1000)
";

/// Starts 2000 processes, or as many as it gets.
const BOMB: &str = "
try:
    for _ in range(2000):
        if os.fork() == 0: signal.pause()
except BlockingIOError: pass
signal.pause()
";

/// Sends what passes a limit; the session is over then and its neighbour is not.
async fn passes(bench: &Bench, text: &str, limit: &str) {
    let (shell, other) = (bench.open().await, bench.open().await);
    let outcome = shell.send(text).await;
    is_ended(bench, (&shell, &other), &outcome, limit).await;
}

/// The same with a script.
async fn python_passes(bench: &Bench, script: &str, limit: &str) {
    let (shell, other) = (bench.open().await, bench.open().await);
    let outcome = shell.python(script).await;
    is_ended(bench, (&shell, &other), &outcome, limit).await;
}

/// A session has ended at a limit, and its neighbour goes on.
async fn is_ended(
    bench: &Bench,
    (shell, other): (&Shell<'_>, &Shell<'_>),
    outcome: &SendOutcome,
    limit: &str,
) {
    assert_eq!(outcome.wait_reason, WaitReason::SessionExit, "{outcome:?}");
    assert_eq!(outcome.limit.as_deref(), Some(limit), "{outcome:?}");
    assert!(matches!(outcome.session_status, SessionStatus::Exited { .. }), "{outcome:?}");
    assert_ended_at(shell, limit);
    let request = WaitRequest {
        until: vec![WaitCondition::Output("never".to_owned())],
        timeout: Duration::from_mins(1),
    };
    let waited = shell.terminals().wait(&bench.agent, &shell.id, request).await.unwrap();
    assert_eq!(waited.end, WaitEnd::SessionExit);
    assert_eq!(waited.limit.as_deref(), Some(limit));
    let of_it = || {
        processes_with_env("DSH_PTY_SESSION_ID", &shell.id)
            .into_iter()
            .filter(|it| processes_with_env("DSH_SESSION_ID", bench.agent.id()).contains(it))
            .count()
    };
    assert_eq!(of_it(), 0, "all of its processes went");
    // What was printed can be read, and the session closed.
    assert!(shell.read(0, 500).await.text.starts_with("dsh>"));
    assert_eq!(shell.close().await, Ok(true));
    other.run("echo untouched", 0).await;
    assert_eq!(other.close().await, Ok(true));
}

fn assert_ended_at(shell: &Shell<'_>, limit: &str) {
    let ended = TerminalError::LimitReached { id: shell.id.clone(), limit: limit.to_owned() };
    assert_eq!(ended.code(), "SESSION_EXITED");
    assert_eq!(shell.start("true", true).map(|_| ()), Err(ended));
}

#[test]
fn memory_is_counted_over_all_processes() {
    bench("{ limits: { memoryMib: 96 } }", async |bench| {
        let half = "python3 -c 'import time; it = bytearray(60 << 20); time.sleep(1000)'";
        passes(bench, &format!("{half} & setsid -w {half}"), "memory 96 MiB").await;
    });
}

#[test]
fn a_horde_of_processes_is_ended() {
    bench("{ limits: { processes: 40 } }", async |bench| {
        let text = "trap '' TERM HUP; for i in $(seq 60); do setsid sleep 1000 & done; sleep 1000";
        passes(bench, text, "processes 40").await;
    });
}

#[test]
fn who_takes_memory_fast_does_not_get_far() {
    bench("{ limits: { memoryMib: 256 } }", assert_greed_ends);
}

pub(crate) async fn assert_greed_ends(bench: &Bench) {
    python_passes(bench, GREEDY, "memory 256 MiB").await;
    let bounds = Bounds { memory_bytes: Some(256 << 20), ..Bounds::default() };
    // The kernel lets nobody past; else each process has at most 1 GiB more.
    let most = if subprocess::bounds_hold(&bounds).is_ok() { 256 } else { 256 + 1024 };
    let had = std::fs::read_to_string(bench.host.workspace().join("had")).unwrap();
    assert!((1..=most).contains(&had.parse::<u64>().unwrap()), "{had} MiB");
}

#[test]
fn who_starts_processes_without_end_is_stopped() {
    bench("{ limits: { processes: 16 } }", assert_bombs_end);
}

pub(crate) async fn assert_bombs_end(bench: &Bench) {
    python_passes(bench, BOMB, "processes 16").await;
}

/// Nobody waits for it, and nothing but the kernel may notice.
#[test]
#[ignore = "needs root and the memory controller of control groups"]
fn a_job_that_was_killed_for_memory_ends_its_session() {
    bench("{ limits: { memoryMib: 96, enforced: true } }", async |bench| {
        let shell = bench.open().await;
        shell.start("python3 -c 'x = b\"x\" * (4 << 30)' & sleep 1000", true).unwrap();
        let exited = || shell.terminals().list(&bench.agent)[0].status != SessionStatus::Running;
        wait_until("it ends", exited).await;
        assert_ended_at(&shell, "memory 96 MiB");
        // The same where somebody waits for it.
        passes(bench, "python3 -c 'x = b\"x\" * (4 << 30)'", "memory 96 MiB").await;
    });
}

/// A limit on processes is one on threads besides.
#[test]
#[ignore = "needs root and the pids controller of control groups"]
fn threads_without_end_end_their_session() {
    let script = "
for _ in range(600): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
";
    // More processes than a wrapper around Python's takes.
    bench("{ limits: { processes: 16, enforced: true } }", async |bench| {
        python_passes(bench, script, "threads 512").await;
    });
}

/// One that the kernel ends at its start says so, too.
#[test]
#[ignore = "needs root and the memory controller of control groups"]
fn a_shell_that_has_no_room_says_why() {
    let config =
        "{ shellArgs: ['-c', 'x=x; while :; do x=$x$x; done'], limits: { memoryMib: 64 } }";
    bench(config, async |bench| {
        let refused = bench.try_open(SpawnRequest::default()).await.map(|_| ()).unwrap_err();
        assert_eq!(refused.code(), "SHELL_START_FAILED");
        assert!(refused.to_string().contains("[limit: memory 64 MiB]"), "{refused}");
    });
}

#[test]
fn cpu_time_adds_up() {
    bench("{ limits: { cpuSeconds: 1 } }", async |bench| {
        passes(bench, "while :; do :; done", "cpu 1 s").await;
    });
}

#[test]
fn a_session_that_nobody_uses_ends() {
    bench("{ limits: { idleSeconds: 1 } }", async |bench| {
        let shell = bench.open().await;
        // A live send is use, however long it takes.
        shell.run("sleep 1.5", 0).await;
        let exited = || shell.terminals().list(&bench.agent)[0].status != SessionStatus::Running;
        wait_until("it ends", exited).await;
        assert_ended_at(&shell, "idle 1 s");
        let refused = shell.signal(terminal::Signal::Interrupt).await.unwrap_err();
        assert_eq!(refused.code(), "SESSION_EXITED");
        // One that ended by itself before says that, however long ago it is.
        let ended = bench.open().await;
        ended.send("exit 3").await;
        assert_eq!(shell.close().await, Ok(true));
        let third = bench.open().await;
        let exited = || third.terminals().list(&bench.agent)[1].status != SessionStatus::Running;
        wait_until("another one ends later", exited).await;
        let by_itself = TerminalError::SessionExited { id: ended.id.clone() };
        assert_eq!(ended.start("true", true).map(|_| ()), Err(by_itself));
    });
}

#[test]
fn an_agent_has_so_many_sessions_and_a_closed_one_makes_room() {
    bench("{ limits: { sessions: 2 } }", async |bench| {
        let (first, _second) = (bench.open().await, bench.open().await);
        let refused = bench.try_open(SpawnRequest::default()).await.map(|_| ()).unwrap_err();
        assert_eq!(refused, TerminalError::TooManySessions { limit: 2 });
        let nowhere = SpawnRequest { cwd: Some("nowhere".to_owned()), ..Default::default() };
        first.close().await.unwrap();
        // One that fails takes no room.
        let failed = bench.try_open(nowhere).await.map(|_| ()).unwrap_err();
        assert_eq!(failed.code(), "INVALID_CWD");
        bench.open().await;
    });
}

#[test]
fn a_limit_that_means_nothing_is_refused_before_anything_starts() {
    for (written, path) in [
        ("memoryMib: 0", "limits.memoryMib"),
        ("memoryMib: 9007199254740991", "limits.memoryMib"),
        ("processes: 9007199254740991", "limits.processes"),
        ("idleSeconds: 0", "limits.idleSeconds"),
    ] {
        let config: terminal_bash::config::Config =
            serde_json::from_value(serde_json::json!({})).unwrap();
        let (name, value) = written.split_once(": ").unwrap();
        let text = format!(r#"{{"limits":{{"{name}":{value}}}}}"#);
        let limited = serde_json::from_str::<terminal_bash::config::Config>(&text).unwrap();
        assert_eq!(config.problems(), Vec::<ConfigError>::new());
        let problems: Vec<_> = limited.problems().into_iter().map(|it| it.path).collect();
        assert_eq!(problems, [path]);
    }
}
