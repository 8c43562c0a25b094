//! Limits: a session that reaches one is ended whole and says at which, and no other one is touched.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use dsh_core::ConfigError;
use terminal::{
    SessionStatus, SpawnRequest, TerminalError, WaitCondition, WaitEnd, WaitReason, WaitRequest,
};
use testkit::{leaks::processes_with_env, wait::wait_until};

use crate::shell::{Bench, Shell, bench};

/// Sends what passes a limit; the session is over then and its neighbour is not.
async fn passes(bench: &Bench, text: &str, limit: &str) {
    let (shell, other) = (bench.open().await, bench.open().await);
    let outcome = shell.send(text).await;
    assert_eq!(outcome.wait_reason, WaitReason::SessionExit, "{outcome:?}");
    assert_eq!(outcome.limit.as_deref(), Some(limit), "{outcome:?}");
    assert!(matches!(outcome.session_status, SessionStatus::Exited { .. }), "{outcome:?}");
    assert_ended_at(&shell, limit);
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
