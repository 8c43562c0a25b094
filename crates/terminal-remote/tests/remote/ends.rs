//! Ends of remote sessions: of the shell, of the connection, by a close.

use terminal::{SessionStatus, WaitReason};
use testkit::wait::{shown, wait_until};

use crate::support::{FarMachine, bench, shell};

const HUNG_UP: fn() -> SessionStatus =
    || SessionStatus::Exited { exit_code: None, signal: Some("SIGHUP".to_owned()) };

#[test]
fn the_shells_own_status_is_told_whatever_it_is() {
    for code in [0, 3, 255] {
        bench(
            |far| far.row(""),
            async |bench| {
                let shell = bench.open().await;
                let outcome = shell.send(&format!("exit {code}")).await;
                assert_eq!(outcome.wait_reason, WaitReason::SessionExit);
                let exited = SessionStatus::Exited { exit_code: Some(code), signal: None };
                assert_eq!(outcome.session_status, exited);
                // What went on behind it ends with it.
                assert!(shell.close().await.unwrap());
                assert_eq!(bench.processes(), []);
            },
        );
    }
}

/// In the middle of a send: a typed end, not the launcher's status, and the far side ends by itself
/// what the hang-up does not.
#[test]
fn a_connection_that_is_cut() {
    // Without a second way, so that nobody helps.
    bench(
        |far| far.row_alone(""),
        async |bench| {
            let shell = bench.open().await;
            shell.run("nohup setsid sleep 1000 >/dev/null 2>&1 &", 0).await;
            let operation = shell.start("trap '' HUP; echo begun; sleep 1000", true);
            shown(&*operation, "begun\n").await;
            bench.far.as_ref().unwrap().cut();
            let outcome = operation.done().await.unwrap();
            assert_eq!(outcome.wait_reason, WaitReason::SessionExit, "{outcome:#?}");
            assert_eq!(outcome.session_status, HUNG_UP());
            assert!(outcome.viewport.ends_with("far: connection closed\n"), "{outcome:#?}");
            assert_eq!(outcome.last_command, None);
            wait_until("the far side has ended", || bench.processes().is_empty()).await;
            assert_eq!(bench.terminals().list(&bench.agent)[0].status, HUNG_UP());
            assert!(shell.close().await.unwrap());
        },
    );
}

/// The close returns when the far side has said that all of its processes are gone.
#[test]
fn a_close_ends_the_far_tree() {
    shell(async |shell| {
        shell.run("(trap '' HUP TERM; exec setsid sleep 1000) >/dev/null 2>&1 &", 0).await;
        shell.run("(exec -a kept sleep 1000) & disown; echo", 0).await;
        let live = shell.start("bash -c 'trap \"\" INT HUP TERM; sleep 1000; :'", true);
        assert!(shell.bench.processes().len() >= 4);
        assert!(shell.close().await.unwrap());
        assert_eq!(shell.bench.processes(), []);
        assert_eq!(live.done().await.unwrap().wait_reason, WaitReason::SessionExit);
    });
}

/// A far side that cannot be asked fails the first close, and the second leaves it to itself.
#[test]
fn a_far_side_that_cannot_be_asked() {
    let row = |far: &FarMachine| far.row_alone("controlArgv: [sh, -c, 'echo no route; exit 255']");
    bench(row, async |bench| {
        let shell = bench.open().await;
        let error = shell.close().await.unwrap_err();
        assert_eq!(error.code(), "CLOSE_INCOMPLETE");
        let text = error.to_string();
        assert!(text.contains("no route") && text.contains("close again"), "{text}");
        assert!(bench.terminals().has_owner_activity(&bench.agent));
        assert!(shell.close().await.unwrap());
        wait_until("the far side has ended", || bench.processes().is_empty()).await;
    });
}

/// A launcher that minds neither signals nor the end of its connection has no time left once the far side
/// says that nothing is left there; the grace is longer than any test.
#[test]
fn a_launcher_that_does_not_end() {
    let row = |far: &FarMachine| {
        let row = far.row("");
        row.replacen("--tty", "--stubborn, --tty", 1).replacen("300", "1000000", 1)
    };
    bench(row, async |bench| {
        let shell = bench.open().await;
        shell.run("sleep 1000 & echo", 0).await;
        assert!(shell.close().await.unwrap());
        assert_eq!(bench.processes(), []);
    });
}

/// Nor have processes of the far side that this machine runs itself.
#[test]
fn a_far_side_on_this_machine() {
    let row = "- name: terminal-remote\n  config: { argv: [sh, -c], controlArgv: [sh, -c], \
               disposeGraceMs: 1000000 }";
    bench(
        |_| row.to_owned(),
        async |bench| {
            let shell = bench.open().await;
            shell.run("sleep 1000 & echo", 0).await;
            assert!(shell.close().await.unwrap());
            assert_eq!(bench.processes(), []);
        },
    );
}

#[test]
fn a_session_that_nobody_uses_is_ended_on_both_sides() {
    bench(
        |far| far.row("limits: { idleSeconds: 1 }"),
        async |bench| {
            bench.open().await;
            let status = || bench.terminals().list(&bench.agent)[0].status.clone();
            wait_until("the limit", || status() != SessionStatus::Running).await;
            wait_until("the far side has ended", || bench.processes().is_empty()).await;
        },
    );
}
