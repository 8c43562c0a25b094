//! Where the host may see little: as an ordinary user, beside programs of another one, with a process
//! table that hides strangers or with none, without watches.
//!
//! Less is proven there and nothing more is claimed. Each test runs itself again behind a command that
//! takes something away.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::{WaitOptions, wait};
use terminal::{Busy, Evidence, SendOutcome, StateKind, WaitReason};
use terminal_bash::Config;
use testkit::{
    again::{assert_passes, copy_of_tests},
    host::TestHost,
    leaks::{alone_unguarded, processes_with_env},
    wait::{guarded, wait_until},
};

use crate::{
    isolation::{ISOLATED, assert_a_sweep_stays_in_the_session},
    limits::{assert_bombs_end, assert_greed_ends},
    shell::{Bench, Shell, assert_prompt, assert_waits, bench, shell},
};

/// Where a test that runs itself again finds the programs that are made for it.
const INSIDE: &str = "TEST_HIDDEN_INSIDE";

/// As a user who owns nothing.
const NOBODY: &str = "exec setpriv --reuid 65534 --regid 65534 --clear-groups -- \"$@\"";

/// Programs for whoever runs them as their owner, root.
fn foreign_programs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for program in ["bash", "cat", "sleep"] {
        let copy = folder.path().join(program);
        fs::copy(Path::new("/bin").join(program), &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).unwrap();
    }
    // A program that may not be read may not be looked into either.
    fs::create_dir(folder.path().join("closed")).unwrap();
    let closed = folder.path().join("closed/bash");
    fs::copy("/bin/bash", &closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o711)).unwrap();
    folder
}

/// Runs the test of this name again behind a script that ends in `exec "$@"`. None in that run, whose
/// folder of programs is given instead.
fn inside(name: &str, script: &str) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(INSIDE) {
        return Some(folder.into());
    }
    let folder = foreign_programs();
    let tests = copy_of_tests(folder.path());
    // What it starts is nothing that another test has left over.
    alone_unguarded(async {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "bash", "-euc", script, "bash"])
            .arg(&tests)
            .args(["--exact", name, "--include-ignored", "--nocapture"])
            .env(INSIDE, folder.path());
        assert_passes(&mut command);
        testkit::wait_until("the end of what was not that host's to kill", no_child_is_left).await;
    });
    None
}

/// Collects the children that have ended: other tests of this process made it the reaper of orphans.
fn no_child_is_left() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

/// A shell without a check of what is left, which needs a process table.
fn shell_alone(test: impl AsyncFnOnce(&Shell<'_>)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(guarded("the test", async {
        let config = "{ idleSilenceMs: 400, timeoutMs: 20000 }";
        let rows = format!("- name: terminal\n- name: terminal-bash\n  config: {config}\n");
        let host = TestHost::boot(&rows).await;
        let agent = host.agent("hidden");
        let bench = Bench { host, agent };
        let shell = bench.open().await;
        test(&shell).await;
        drop(shell);
        bench.host.dispose().await.unwrap();
    }));
}

#[track_caller]
fn assert_likely(outcome: &SendOutcome, kind: StateKind, evidence: Evidence) {
    let state = outcome.state.as_ref().unwrap();
    let is = (outcome.wait_reason, state.kind, state.evidence);
    assert_eq!(is, (WaitReason::StdinRead, kind, evidence), "{outcome:#?}");
}

/// What the kernel shows of one's own programs needs no rights.
async fn assert_own_programs_are_seen(shell: &Shell<'_>) {
    assert_prompt(&shell.send("(exit 3)").await, Some(3));
    shell.run("sleep .6; touch done", 0).await;
    assert!(shell.is_done());
    assert_waits(&shell.send("cat").await, StateKind::Line);
    assert_waits(&shell.send("x").await, StateKind::Line);
    assert_prompt(&shell.type_only("\u{4}").await, Some(0));
    assert_waits(&shell.send("read -s x").await, StateKind::Password);
    assert_prompt(&shell.send("secret").await, Some(0));
    let selects = shell.python("say('p> '); select.select([0], [], [])").await;
    assert_waits(&selects, StateKind::Line);
    assert_prompt(&shell.send("").await, Some(0));
}

/// Another user's programs are found where they read, as likely, and never called ready while they
/// work.
async fn assert_foreign_readers_are_likely(shell: &Shell<'_>, programs: &Path) {
    let program = |name: &str| programs.join(name).display().to_string();
    let (bash, cat, sleep) = (program("bash"), program("cat"), program("sleep"));
    let reads = shell.send(&cat).await;
    assert_likely(&reads, StateKind::Line, Evidence::OpaqueRead);
    let again = shell.send("hello").await;
    assert_likely(&again, StateKind::Line, Evidence::OpaqueRead);
    assert_eq!(again.viewport, "hello\nhello\n");
    assert_prompt(&shell.type_only("\u{4}").await, Some(0));

    let asks = shell.send(&format!("{bash} -pc 'read -s -p \"Password: \" x'")).await;
    assert_likely(&asks, StateKind::Password, Evidence::OpaqueRead);
    assert!(!asks.state.unwrap().echo);
    assert_prompt(&shell.send("secret").await, Some(0));

    // Behind what looks like a prompt, and in silence, it may be inferred to be idle, which is no proof.
    for line in [
        format!("{sleep} .9; touch done"),
        format!("{bash} -pc 'printf \"name: \"; read -t .9 x < <(:); exec {sleep} .9'; touch done"),
    ] {
        let mut outcome = shell.send(&line).await;
        while outcome.wait_reason == WaitReason::InferredIdle {
            outcome = shell.type_only("").await;
        }
        assert_prompt(&outcome, Some(0));
        assert!(shell.is_done(), "{line}: {outcome:#?}");
    }
}

#[test]
#[ignore = "needs root"]
fn an_ordinary_user_sees_enough() {
    let name = "hidden::an_ordinary_user_sees_enough";
    let Some(programs) = inside(name, NOBODY) else { return };
    shell(async |shell| {
        assert_own_programs_are_seen(shell).await;
        assert_foreign_readers_are_likely(shell, &programs).await;
        // One's own program that may not be looked into, and does not read: it waits unseen.
        let hides = "import ctypes
ctypes.CDLL(None).prctl(4, 0)
say('closed\\n')
select.select([0], [], [])
";
        let unseen = shell.python(hides).await;
        let state = unseen.state.as_ref().unwrap();
        assert_eq!(unseen.wait_reason, WaitReason::InferredIdle, "{unseen:#?}");
        assert_eq!((state.evidence, state.busy), (Evidence::Silence, Some(Busy::Opaque)));
        assert_prompt(&shell.send("").await, Some(0));
    });
}

#[test]
#[ignore = "needs root"]
fn a_process_table_that_hides_strangers() {
    let name = "hidden::a_process_table_that_hides_strangers";
    let script = format!("mount -t proc -o hidepid=2 proc /proc; {NOBODY}");
    let Some(programs) = inside(name, &script) else { return };
    assert!(fs::metadata("/proc/1").is_err(), "strangers are shown");
    shell(async |shell| {
        assert_own_programs_are_seen(shell).await;
        assert_foreign_readers_are_likely(shell, &programs).await;
    });
}

#[test]
#[ignore = "needs root"]
fn without_a_process_table_the_terminal_tells() {
    let name = "hidden::without_a_process_table_the_terminal_tells";
    let script = format!("mount -t tmpfs none /proc; {NOBODY}");
    let Some(programs) = inside(name, &script) else { return };
    assert!(fs::metadata("/proc/self").is_err(), "there is a process table");
    shell_alone(async |shell| {
        for status in [0, 3] {
            let outcome = shell.send(&format!("(exit {status})")).await;
            assert_likely(&outcome, StateKind::Prompt, Evidence::Settled);
            assert_eq!(outcome.last_command.unwrap().exit_code, Some(status));
        }
        for cat in ["cat".to_owned(), programs.join("cat").display().to_string()] {
            let reads = shell.send(&cat).await;
            assert_likely(&reads, StateKind::Line, Evidence::OpaqueRead);
            let ended = shell.type_only("\u{4}").await;
            assert_likely(&ended, StateKind::Prompt, Evidence::Settled);
        }
        let asks = shell.send("read -s x").await;
        assert_likely(&asks, StateKind::Password, Evidence::OpaqueRead);
        shell.send("secret").await;
        // Silence is all there is.
        let sleeps = shell.send("sleep 1; touch done").await;
        assert_eq!(sleeps.wait_reason, WaitReason::InferredIdle, "{sleeps:#?}");
        let mut rest = shell.type_only("").await;
        while rest.wait_reason == WaitReason::InferredIdle {
            rest = shell.type_only("").await;
        }
        assert_likely(&rest, StateKind::Prompt, Evidence::Settled);
        assert!(shell.is_done());
        let selects = shell.python("say('p> '); select.select([0], [], [])").await;
        assert_eq!(selects.wait_reason, WaitReason::InferredIdle, "{selects:#?}");
        assert_likely(&shell.send("").await, StateKind::Prompt, Evidence::Settled);
    });
}

/// The process table shows it, but nothing of what it does: it is at the prompt that it marks.
#[test]
#[ignore = "needs root"]
fn a_shell_that_may_not_be_looked_into() {
    let name = "hidden::a_shell_that_may_not_be_looked_into";
    let Some(programs) = inside(name, NOBODY) else { return };
    let closed = programs.join("closed/bash");
    let rest = "idleSilenceMs: 400, timeoutMs: 20000";
    bench(&format!("{{ shellPath: {}, {rest} }}", closed.display()), async |bench| {
        let shell = bench.open().await;
        let outcome = shell.send("(exit 3)").await;
        assert_likely(&outcome, StateKind::Prompt, Evidence::Settled);
        assert_eq!(outcome.last_command.unwrap().exit_code, Some(3));
        let outcome = shell.send("sleep .6; touch done").await;
        assert_likely(&outcome, StateKind::Prompt, Evidence::Settled);
        assert!(shell.is_done(), "{outcome:#?}");
        let open = shell.send("for it in 1 2; do").await;
        assert_likely(&open, StateKind::Continuation, Evidence::Settled);
        let outcome = shell.send("sleep .2; done; touch done").await;
        assert_likely(&outcome, StateKind::Prompt, Evidence::Settled);
        assert!(shell.is_done(), "{outcome:#?}");
        assert_waits(&shell.send("cat").await, StateKind::Line);
        let ended = shell.type_only("\u{4}").await;
        assert_likely(&ended, StateKind::Prompt, Evidence::Settled);
        // It reads itself: somebody does, who cannot be told.
        let asks = shell.send("read -s x").await;
        assert_likely(&asks, StateKind::Password, Evidence::OpaqueRead);
        assert_likely(&shell.send("secret").await, StateKind::Prompt, Evidence::Settled);
        assert!(shell.close().await.unwrap());
    });
}

/// Whom nobody gave a privilege has it in a user namespace.
#[test]
#[ignore = "needs root"]
fn an_ordinary_user_has_pid_namespaces() {
    let name = "hidden::an_ordinary_user_has_pid_namespaces";
    if inside(name, NOBODY).is_none() {
        return;
    }
    bench(ISOLATED, async |bench| {
        let shell = bench.open().await;
        assert_eq!(shell.run("id -u; stat -c %u .", 0).await, "65534\n65534\n");
        shell.close().await.unwrap();
        assert_a_sweep_stays_in_the_session(bench).await;
    });
}

/// The kernel holds its processes one by one, and the sum is watched.
#[test]
#[ignore = "needs root"]
fn an_ordinary_user_has_limits() {
    let name = "hidden::an_ordinary_user_has_limits";
    if inside(name, NOBODY).is_none() {
        return;
    }
    let limited = |text: &str| {
        let config: Config = serde_json::from_str(&format!(r#"{{"limits":{{{text}}}}}"#)).unwrap();
        config.problems().into_iter().map(|it| (it.path, it.message)).collect::<Vec<_>>()
    };
    assert_eq!(limited(r#""memoryMib": 96"#), []);
    for text in [r#""memoryMib": 96"#, r#""processes": 4"#] {
        let problems = limited(&format!(r#"{text}, "enforced": true"#));
        let [(path, message)] = &problems[..] else { panic!("{problems:?}") };
        assert_eq!(path, "limits.enforced");
        assert!(message.contains("Permission denied"), "{message}");
    }
    let config = "{ limits: { memoryMib: 256, processes: 16, cpuSeconds: 100 } }";
    bench(config, async |bench| {
        let shell = bench.open().await;
        // 256 MiB and 1 GiB, in KiB; the time of one process is told a second late.
        assert_eq!(shell.run("ulimit -d; ulimit -t", 0).await, "1310720\n101\n");
        let much = "import sys\ntry: b'x' * (4 << 30)\nexcept MemoryError: sys.exit(3)\n";
        let refused = shell.python(much).await;
        assert_prompt(&refused, Some(3));
        shell.close().await.unwrap();
        assert_greed_ends(bench).await;
        assert_bombs_end(bench).await;
    });
}

/// Its user is of this session alone, so that the kernel's limit on a user's processes means it.
#[test]
#[ignore = "needs root"]
fn an_ordinary_user_has_limits_in_a_namespace() {
    let name = "hidden::an_ordinary_user_has_limits_in_a_namespace";
    if inside(name, NOBODY).is_none() {
        return;
    }
    let config = "{ isolation: pid-namespace, disposeGraceMs: 300, limits: { processes: 16 } }";
    bench(config, async |bench| {
        let shell = bench.open().await;
        assert_eq!(shell.run("ulimit -u", 0).await, "512\n");
        shell.close().await.unwrap();
        assert_bombs_end(bench).await;
    });
}

/// Whom the host may not signal a close names, and keeps the session for; when he has gone by himself, the
/// next one ends it.
#[test]
#[ignore = "needs root"]
fn a_close_names_who_refuses_to_end_and_can_be_repeated() {
    let name = "hidden::a_close_names_who_refuses_to_end_and_can_be_repeated";
    let script = "exec setpriv --bounding-set -kill --inh-caps -kill -- \"$@\"";
    if inside(name, script).is_none() {
        return;
    }
    bench("{ disposeGraceMs: 300 }", async |bench| {
        let shell = bench.open().await;
        let _gate = shell.gate();
        // Another user's from the moment that it is `head`, and then until it has read a byte.
        let line =
            "exec 9<>gate; setpriv --reuid 65534 --clear-groups -- head -c 1 <&9 >/dev/null &";
        assert_prompt(&shell.send(line).await, Some(0));
        let of_session = || processes_with_env("DSH_SESSION_ID", bench.agent.id());
        wait_until("it reads", || of_session().iter().any(|it| it.command == "head")).await;
        let stranger = of_session().into_iter().find(|it| it.command == "head").unwrap();

        let refused = shell.close().await.unwrap_err();
        assert_eq!(refused.code(), "CLOSE_INCOMPLETE");
        let says = refused.to_string();
        assert!(says.contains(&format!("head (pid {})", stranger.pid)), "{says}");
        assert_eq!(of_session().iter().map(|it| it.pid).collect::<Vec<_>>(), [stranger.pid]);
        let listed = shell.terminals().list(&bench.agent);
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].session_id.as_str(), shell.id);

        fs::write(shell.path("gate"), "x").unwrap();
        wait_until("it has gone", || of_session().is_empty()).await;
        assert_eq!(shell.close().await, Ok(true));
        assert!(shell.terminals().list(&bench.agent).is_empty());
        assert_eq!(shell.close().await.unwrap_err().code(), "NO_SESSION");
    });
}

/// A watch of reads makes things sooner, never possible.
#[test]
#[ignore = "needs root"]
fn without_watches_everything_arrives() {
    let name = "hidden::without_watches_everything_arrives";
    let script = "exec unshare --user --map-root-user bash -euc \
                  'echo 0 > /proc/sys/user/max_inotify_instances; exec \"$@\"' bash \"$@\"";
    if inside(name, script).is_none() {
        return;
    }
    assert_eq!(fs::read_to_string("/proc/sys/user/max_inotify_instances").unwrap().trim(), "0");
    shell(async |shell| {
        assert_own_programs_are_seen(shell).await;
        let late = "
tty.setraw(0)
time.sleep(.3)
got = b''
while len(got) < 65536: got += os.read(0, 4096)
os.system('stty sane')
if got == b'x' * 65536: done()
";
        let text = "x".repeat(65_536);
        let started = shell.python(&format!("say('go> '); os.read(0, 9){late}")).await;
        assert_waits(&started, StateKind::Line);
        assert_waits(&shell.send("").await, StateKind::Raw);
        assert_prompt(&shell.type_only(&text).await, Some(0));
        assert!(shell.is_done(), "what was read is not what was sent");
    });
}
