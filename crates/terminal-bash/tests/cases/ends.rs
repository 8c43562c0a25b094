//! How things end, and that nothing is left.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{fs, process::Command, time::Duration};

use dsh_core::Cancel;
use terminal::{SessionStatus, SpawnRequest, TerminalError, WaitReason};
use testkit::{
    host::TestHost,
    leaks::{Snapshot, alone, alone_unguarded, assert_no_leaks, processes_with_env},
    wait::{guarded, shown, wait_until},
};

use crate::shell::{Bench, assert_prompt, bench, shell};

fn exited(exit_code: Option<i32>, signal: Option<&str>) -> SessionStatus {
    SessionStatus::Exited { exit_code, signal: signal.map(str::to_owned) }
}

/// D1, D8
#[test]
fn a_shell_that_ends_says_how() {
    bench("{}", async |bench| {
        for (command, status) in [
            ("exit 7", exited(Some(7), None)),
            ("exec true", exited(Some(0), None)),
            ("kill -9 $$", exited(None, Some("SIGKILL"))),
            ("set -e; false", exited(Some(1), None)),
            // A leftover of the shell does not hold the reply.
            ("sleep 300 & exit 8", exited(Some(8), None)),
        ] {
            let shell = bench.open().await;
            let outcome = shell.send(command).await;
            assert_eq!(outcome.wait_reason, WaitReason::SessionExit, "{command}");
            assert_eq!(outcome.session_status, status, "{command}");
            assert!(outcome.viewport.starts_with(command), "{outcome:?}");
            // It stays listed and readable.
            assert_eq!(shell.terminals().list(&bench.agent)[0].status, status);
            assert!(shell.read(0, 10).await.text.contains(command));
            let gone = TerminalError::SessionExited { id: shell.id.clone() };
            assert_eq!(shell.start("true", true).map(|_| ()), Err(gone.clone()));
            assert_eq!(shell.signal(terminal::Signal::Interrupt).await, Err(gone));
            assert_eq!(shell.close().await, Ok(true));
            let unknown = TerminalError::NoSession { id: shell.id.clone() };
            assert_eq!(shell.close().await, Err(unknown));
        }
    });
}

/// D2
#[test]
fn what_a_shell_leaves_is_named_and_ended_by_the_close() {
    bench("{}", async |bench| {
        let shell = bench.open().await;
        let left = "sleep 300 & until [ $(cat /proc/$!/comm) = sleep ]; do :; done; exit 7";
        let outcome = shell.send(left).await;
        assert_eq!(outcome.session_status, exited(Some(7), None));
        let [left] = &*outcome.left else { panic!("{outcome:?}") };
        assert_eq!(left.command, "sleep");
        let process = format!("/proc/{}", left.pid);
        assert!(fs::exists(&process).unwrap(), "{left:?}");
        assert_eq!(shell.close().await, Ok(true));
        // No waiting: it is true the moment that the close returns.
        assert!(!fs::exists(&process).unwrap(), "{left:?}");
        // A command that ends is none that is left.
        let shell = bench.open().await;
        assert_eq!(shell.send("sleep 0 & wait; exit 7").await.left, []);
        assert_eq!(shell.close().await, Ok(true));
    });
}

/// D3
#[test]
fn nothing_outlives_a_close() {
    bench("{ disposeGraceMs: 300 }", async |bench| {
        let shell = bench.open().await;
        for escape in [
            "setsid sleep 999 &",
            "nohup sleep 999 > /dev/null 2>&1 &",
            "sleep 999 & disown",
            "(setsid bash -c 'sleep 999 & sleep 999' &)",
            "bash -c 'trap \"\" TERM HUP; echo deaf; while :; do sleep 999; done' &",
        ] {
            assert_eq!(shell.send(escape).await.wait_reason, WaitReason::StdinRead);
        }
        let id = bench.agent.id();
        let started = || processes_with_env("DSH_SESSION_ID", id).len() > 6;
        wait_until("the shell and its escapes run", started).await;
        assert_eq!(shell.close().await, Ok(true));
        // No waiting: it is true the moment that the close returns.
        assert_eq!(processes_with_env("DSH_SESSION_ID", id), []);
    });
}

/// D6
#[test]
fn sessions_hold_nothing_of_each_other() {
    bench("{}", async |bench| {
        let a = bench.open().await;
        let tty = a.run("tty", 0).await;
        let b = bench.open().await;
        let pid = b.spawned.session.pid.unwrap();
        let held: Vec<String> = fs::read_dir(format!("/proc/{pid}/fd"))
            .unwrap()
            .filter_map(|it| fs::read_link(it.unwrap().path()).ok())
            .map(|it| it.display().to_string())
            .collect();
        assert!(!held.contains(&tty.trim().to_owned()), "{held:?}");
        assert!(!held.iter().any(|it| it.ends_with("/ptmx")), "{held:?}");
        a.close().await.unwrap();
        assert_prompt(&b.send("true").await, Some(0));
    });
}

/// D7
#[test]
fn what_cannot_start_leaves_nothing() {
    bench("{}", async |bench| {
        let before = Snapshot::take();
        fs::write(bench.agent.workspace_root().join("file"), "").unwrap();
        for cwd in ["gone", "file", "/gone/further"] {
            let request = SpawnRequest { cwd: Some(cwd.to_owned()), ..SpawnRequest::default() };
            let error = bench.try_open(request).await.map(|_| ()).unwrap_err();
            assert_eq!(error.code(), "INVALID_CWD");
            assert!(error.to_string().contains(cwd), "{error}");
        }
        assert!(Snapshot::take().beyond(&before).processes.is_empty());
        assert!(bench.terminals().list(&bench.agent).is_empty());
    });
    for (config, says) in [
        ("{ shellPath: /bin/true }", "exited with status 0 before its first prompt"),
        (
            "{ shellPath: /bin/sleep, shellArgs: ['100'], timeoutMs: 300 }",
            "no prompt within 300 ms",
        ),
        (
            "{ shellArgs: ['-c', 'echo no luck; exit 3'] }",
            "exited with status 3 before its first prompt: no luck",
        ),
    ] {
        bench(config, async |bench| {
            let error = bench.try_open(SpawnRequest::default()).await.map(|_| ()).unwrap_err();
            assert_eq!(error.code(), "SHELL_START_FAILED");
            assert!(error.to_string().contains(says), "{error}");
        });
    }
}

/// Of a shell that is not there the host says so before it starts; one that has gone since ends the start
/// of a session.
#[test]
fn a_shell_that_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own-bash");
    std::os::unix::fs::symlink("/bin/bash", &path).unwrap();
    let config = format!("{{ shellPath: '{}' }}", path.display());
    bench(&config, async |bench| {
        std::fs::remove_file(&path).unwrap();
        let error = bench.try_open(SpawnRequest::default()).await.map(|_| ()).unwrap_err();
        assert_eq!(error.code(), "SHELL_START_FAILED");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    });
    alone(async {
        for (path, says) in [
            ("/etc/passwd", "config.shellPath: `/etc/passwd` is not executable"),
            ("/no/such/shell", "config.shellPath: there is no program `/no/such/shell`"),
            ("/tmp", "config.shellPath: `/tmp` is not a program"),
            ("no-such-shell", "config.shellPath: there is no program `no-such-shell`"),
        ] {
            let rows = format!(
                "- name: terminal\n- name: terminal-bash\n  config: {{ shellPath: {path} }}\n"
            );
            let error = testkit::TestHost::try_boot(&rows).await.map(|_| ()).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(says), "{error}");
        }
    });
}

#[test]
fn closing_settles_the_live_send() {
    shell(async |shell| {
        let sleeping = shell.start("echo started; sleep 100", true).unwrap();
        shown(&*sleeping, "started\n").await;
        let (closed, outcome) = tokio::join!(shell.close(), sleeping.done());
        assert_eq!(closed, Ok(true));
        let outcome = outcome.unwrap();
        assert_eq!(outcome.wait_reason, WaitReason::SessionExit);
        assert!(matches!(outcome.session_status, SessionStatus::Exited { .. }), "{outcome:#?}");
        assert!(outcome.viewport.contains("started\n"));
    });
}

/// A send that meets a close has an outcome all the same, whichever comes first.
#[test]
fn a_send_that_races_a_close_settles() {
    bench("{}", async |bench| {
        for _ in 0..40 {
            let shell = bench.open().await;
            let sending = async {
                tokio::task::yield_now().await;
                match shell.start("true", true) {
                    Ok(operation) => operation.done().await.map(|it| it.wait_reason),
                    Err(refused) => Err(refused),
                }
            };
            let (closed, outcome) = tokio::join!(shell.close(), sending);
            assert_eq!(closed, Ok(true));
            match outcome {
                Ok(WaitReason::StdinRead | WaitReason::SessionExit) => {}
                Err(error) if ["SESSION_EXITED", "NO_SESSION"].contains(&error.code()) => {}
                other => panic!("{other:?}"),
            }
        }
    });
}

/// D10, with real sessions.
#[test]
fn another_owner_sees_and_reaches_nothing() {
    shell(async |shell| {
        let stranger = shell.bench.host.agent("stranger");
        let terminals = shell.terminals();
        let foreign = terminals.kill(&stranger, &shell.id, "mine").await.unwrap_err();
        let unknown = terminals.kill(&stranger, "pty-999", "mine").await.unwrap_err();
        assert_eq!(foreign.code(), unknown.code());
        assert_eq!(foreign.to_string(), format!("unknown terminal session {}", shell.id));
        assert!(terminals.list(&stranger).is_empty());
        assert_prompt(&shell.send("true").await, Some(0));
    });
}

/// The end of an agent is the end of its sessions.
#[test]
fn an_agent_takes_its_sessions_along() {
    shell(async |shell| {
        shell.send("setsid sleep 999 &").await;
        shell.bench.host.dispose_agent(&shell.bench.agent).await.unwrap();
        assert_eq!(processes_with_env("DSH_SESSION_ID", shell.bench.agent.id()), []);
    });
}

/// Set in the run of a test that has a process of its own.
const ALONE: &str = "TEST_ENDS_ALONE";

/// Resident memory that is this process's own, in bytes.
fn anonymous_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// A shell that comes to its prompt, one that ends before it, one that never comes to it.
const KINDS: &str = "- name: terminal
- name: terminal-bash
- { name: terminal-bash, id: ends, config: { backendType: ends, shellPath: /bin/true } }
- name: terminal-bash
  id: mute
  config: { backendType: mute, shellPath: /bin/sleep, shellArgs: ['1000'], timeoutMs: 40 }
- name: terminal-bash
  id: patient
  config: { backendType: patient, shellPath: /bin/sleep, shellArgs: ['1000'] }
";

/// Opens that must fail, one of each kind.
async fn fail_to_open(bench: &Bench) {
    let cancel = Cancel::new();
    let open = |kind: &str, cwd: Option<&str>| {
        let request = SpawnRequest {
            kind: kind.to_owned(),
            cwd: cwd.map(str::to_owned),
            ..SpawnRequest::default()
        };
        let (terminals, cancel) = (bench.terminals(), cancel.clone());
        async move { terminals.spawn(&bench.agent, request, &cancel).await.map(|_| ()) }
    };
    let (missing, ends, mute) =
        tokio::join!(open("shell", Some("gone")), open("ends", None), open("mute", None));
    let id = bench.agent.id();
    let cancelled = async {
        let sleeps = || !processes_with_env("DSH_SESSION_ID", id).is_empty();
        wait_until("it sleeps", sleeps).await;
        cancel.cancel("test");
    };
    let (patient, ()) = tokio::join!(open("patient", None), cancelled);
    let codes = [missing, ends, mute, patient].map(|it| it.unwrap_err().code());
    let failed = "SHELL_START_FAILED";
    assert_eq!(codes, ["INVALID_CWD", failed, failed, "CANCELLED"]);
}

/// D5, of a host that goes on: in a process of its own, since all is counted that it holds.
#[test]
fn a_host_keeps_nothing_of_sessions_that_have_ended() {
    if std::env::var_os(ALONE).is_none() {
        alone_unguarded(async {
            let name = "ends::a_host_keeps_nothing_of_sessions_that_have_ended";
            let output = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", name, "--nocapture"])
                .env(ALONE, "1")
                .output()
                .unwrap();
            let report = String::from_utf8_lossy(&output.stdout);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && report.contains("1 passed"), "{report}\n{errors}");
        });
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        // Threads that had to block end when they have nothing to do.
        .thread_keep_alive(Duration::from_millis(20))
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let host = TestHost::boot(KINDS).await;
        let agent = host.agent(&format!("agent-{}", std::process::id()));
        let bench = Bench { host, agent };
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let threads = || fs::read_dir("/proc/self/task").unwrap().count();
        let tasks_before = tasks();
        let rounds = async |rounds: usize, of_them_failing: usize| {
            for round in 0..rounds {
                let shell = bench.open().await;
                if round % 10 == 0 {
                    assert_prompt(&shell.send("setsid -f sleep 1000").await, Some(0));
                }
                assert_eq!(shell.close().await, Ok(true));
                if round < of_them_failing {
                    fail_to_open(&bench).await;
                }
            }
        };
        // What is made once and kept.
        guarded("the first", rounds(20, 2)).await;
        wait_until("tasks end", || tasks() <= tasks_before).await;
        let (before, threads_before, memory) = (Snapshot::take(), threads(), anonymous_memory());

        // Each with a guard of its own: together they may take longer than one.
        for _ in 0..5 {
            guarded("some of many", rounds(50, 5)).await;
        }
        assert!(bench.terminals().list(&bench.agent).is_empty());
        assert!(!bench.terminals().has_owner_activity(&bench.agent));
        assert_no_leaks(&before);
        let held =
            || (tasks().saturating_sub(tasks_before), threads().saturating_sub(threads_before));
        wait_until("tasks and threads end", || held() == (0, 0)).await;
        let grown = anonymous_memory().saturating_sub(memory);
        assert!(grown < 16 << 20, "{grown} bytes more than before");
        bench.host.dispose().await.unwrap();
    });
}
