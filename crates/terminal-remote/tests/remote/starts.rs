//! Sessions that do not come about: each with what was shown, what to do, and nothing left.

use dsh_core::Cancel;
use terminal::SpawnRequest;
use testkit::{leaks::alone, wait::wait_until};

use crate::support::bench;

const NEXT: &str = "\nRun it by hand until it gives a shell without asking anything, then open the \
                    session again.";

fn row(argv: &str) -> String {
    format!(
        "- name: terminal-remote\n  config: {{ argv: {argv}, timeoutMs: 1500, idleSilenceMs: 300 }}"
    )
}

/// The host says so before it starts. One that has gone since ends the start of a session.
#[test]
fn a_launcher_that_does_not_exist() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("launcher");
    std::os::unix::fs::symlink("/bin/true", &path).unwrap();
    let name = path.display();
    bench(
        |_| row(&format!("['{name}', host]")),
        async |bench| {
            std::fs::remove_file(&path).unwrap();
            let text = bench.refused(None, "SHELL_START_FAILED").await;
            assert_eq!(
                text,
                format!(
                    "`{name} host` cannot be started: there is no program `{name}`: install it, or \
                     give its path in the row of this backend"
                )
            );
        },
    );
    alone(async {
        for (argv, says) in [
            ("[no-such-launcher, host]", "config.argv: there is no program `no-such-launcher`"),
            ("[/etc/passwd, host]", "config.argv: `/etc/passwd` is not executable"),
            ("[sh], controlArgv: [/no/sh]", "config.controlArgv: there is no program `/no/sh`"),
        ] {
            let rows = format!("- name: terminal\n{}\n", row(argv));
            let error = testkit::TestHost::try_boot(&rows).await.map(|_| ()).unwrap_err();
            assert!(format!("{error:#}").contains(says), "{error:#}");
        }
    });
}

#[test]
fn a_launcher_that_ends() {
    bench(
        |_| row("[sh, -c, 'echo no route to host; exit 255']"),
        async |bench| {
            let text = bench.refused(None, "SHELL_START_FAILED").await;
            assert_eq!(
                text,
                format!(
                    "`sh -c echo no route to host; exit 255` exited with status 255 before it had a \
                 shell there: no route to host{NEXT}"
                )
            );
        },
    );
}

#[test]
fn a_launcher_that_asks() {
    for question in ["printf 'Password: '; stty -echo; read x", "printf 'yes or no? '; read x"] {
        bench(
            |_| row(&format!("[sh, -c, \"{question}\"]")),
            async |bench| {
                let text = bench.refused(None, "SHELL_START_FAILED").await;
                let asks = "asks what nobody here can answer: ";
                assert!(text.contains(asks) && text.ends_with(NEXT), "{text}");
                assert!(text.contains("Password:") || text.contains("yes or no?"), "{text}");
            },
        );
    }
}

#[test]
fn a_launcher_that_is_silent() {
    bench(
        |_| row("[sh, -c, 'exec sleep 1000']"),
        async |bench| {
            let text = bench.refused(None, "SHELL_START_FAILED").await;
            assert_eq!(
                text,
                format!(
                    "`sh -c exec sleep 1000` had no shell there within 1500 ms: it printed nothing{NEXT}"
                )
            );
        },
    );
}

#[test]
fn a_far_side_that_refuses() {
    bench(
        |far| far.row(""),
        async |bench| {
            let text = bench.refused(Some("/no/such/folder"), "INVALID_CWD").await;
            assert!(text.contains("cannot start a shell in `/no/such/folder`: "), "{text}");
            assert!(text.contains("the far side cannot enter it: "), "{text}");
        },
    );
    bench(
        |far| far.row("shellPath: no-such-bash"),
        async |bench| {
            let text = bench.refused(None, "SHELL_START_FAILED").await;
            assert!(
                text.ends_with("has no such shell: install bash there, or name it by `shellPath`")
            );
        },
    );
}

#[test]
fn a_shell_that_is_no_bash() {
    bench(
        |far| far.row("shellPath: cat, timeoutMs: 700").replacen("timeoutMs: 20000, ", "", 1),
        async |bench| {
            // It refuses bash's options, or shows no prompt.
            bench.refused(None, "SHELL_START_FAILED").await;
        },
    );
}

/// At whatever moment the caller gives up, nothing is left on either side.
#[test]
fn a_start_that_is_given_up() {
    bench(
        |far| far.row(""),
        async |bench| {
            for begun in 0..3 {
                let cancel = Cancel::new();
                let request = SpawnRequest { kind: "remote".to_owned(), ..SpawnRequest::default() };
                let terminals = bench.terminals();
                let open = terminals.spawn(&bench.agent, request, &cancel);
                let give_up = async {
                    // Of the launcher, and of what it starts on the far side.
                    wait_until("the start", || bench.processes().len() >= begun.min(1)).await;
                    cancel.cancel("no more patience");
                };
                let (opened, ()) = tokio::join!(open, give_up);
                let error = opened.unwrap_err();
                assert_eq!(
                    (error.code(), error.to_string().as_str()),
                    ("CANCELLED", "no more patience")
                );
                assert_eq!(bench.processes(), []);
            }
        },
    );
}

#[test]
fn there_is_room_for_as_many_sessions_as_the_row_says() {
    bench(
        |far| far.row("limits: { sessions: 1 }"),
        async |bench| {
            let shell = bench.open().await;
            let Err(error) = bench.try_open(None).await else { panic!("a second one opens") };
            assert_eq!(error.code(), "TOO_MANY_SESSIONS");
            assert!(shell.close().await.unwrap());
            bench.open().await;
        },
    );
    alone(async {
        let rows = format!("- name: terminal\n{}\n", row("[sh], limits: { memoryMib: 1 }"));
        let error = testkit::TestHost::try_boot(&rows).await.map(|_| ()).unwrap_err();
        let says = "config.limits.memoryMib: what runs on the far side cannot be measured";
        assert!(format!("{error:#}").contains(says), "{error:#}");
    });
}

#[tokio::test]
async fn a_row_without_a_launcher_is_refused_before_anything_starts() {
    let rows = "- name: terminal\n- name: terminal-remote\n";
    let Err(error) = testkit::TestHost::try_boot(rows).await else { panic!("it boots") };
    let text = format!("{error:#}");
    assert!(text.contains("must name a launcher, such as `[ssh, -tt, host]`"), "{text}");
}
