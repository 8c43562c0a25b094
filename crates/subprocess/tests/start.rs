//! What a started program gets from the host, and what happens when it cannot be started.
#![cfg(target_os = "linux")]

mod support;

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

use rustix::io::{FdFlags, fcntl_setfd};
use subprocess::{ExitStatus, SpawnError};
use support::{Session, bash, sh, spec};

#[tokio::test]
async fn the_environment_is_what_was_asked_for_and_a_mark() {
    let mut session = Session::start(spec("/usr/bin/env", &[])).await;
    session.until_exit().await;
    let text = session.text();
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    let [mark, rest @ ..] = &lines[..] else { panic!("{lines:?}") };
    let mark = mark.strip_prefix("DSH_PROCESS_MARK=").unwrap();
    assert!(mark.len() == 16 && mark.chars().all(|it| it.is_ascii_hexdigit()), "{mark}");
    assert_eq!(rest, ["LC_ALL=C", "PATH=/usr/bin:/bin", "PS1=dsh> ", "TERM=dumb"]);
    session.close().await;
}

#[tokio::test]
async fn no_descriptor_but_the_terminal_is_inherited() {
    let careless = fs::File::open("/dev/null").unwrap();
    fcntl_setfd(&careless, FdFlags::empty()).unwrap();
    let mut session = Session::start(spec("/bin/ls", &["/proc/self/fd"])).await;
    session.until_exit().await;
    // 3 is the directory being listed.
    assert_eq!(session.text().split_ascii_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    session.close().await;
    drop(careless);
}

#[tokio::test]
async fn the_program_leads_a_session_on_its_terminal() {
    let script = "read -r _ _ _ _ group session tty _ < /proc/$$/stat; \
        echo $$ $group $session $(tty) $(ps -o tty= -p $$ 2>/dev/null || true)";
    let mut session = Session::start(sh(script)).await;
    session.until_exit().await;
    let pid = session.process.pid().to_string();
    let text = session.text();
    let fields: Vec<_> = text.split_ascii_whitespace().collect();
    assert_eq!(fields[..3], [pid.as_str(); 3]);
    assert!(fields[3].starts_with("/dev/pts/"), "{text}");
    session.close().await;
}

/// Runs itself once more below a shell that ignores signals, as `nohup` and `&` do.
#[tokio::test]
async fn ignored_and_blocked_signals_of_the_host_are_not_passed_on() {
    const INSIDE: &str = "TEST_WITH_IGNORED_SIGNALS";
    if std::env::var_os(INSIDE).is_none() {
        let name = "ignored_and_blocked_signals_of_the_host_are_not_passed_on";
        let output = Command::new("/bin/bash")
            .args(["-c", "trap '' INT HUP QUIT TERM TSTP USR1; exec \"$0\" --exact \"$1\""])
            .arg(std::env::current_exe().unwrap())
            .arg(name)
            .env(INSIDE, "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let field = |status: &str, name: &str| {
        let line = status.lines().find(|it| it.starts_with(name)).unwrap().to_owned();
        u64::from_str_radix(line.split_ascii_whitespace().nth(1).unwrap(), 16).unwrap()
    };
    assert_ne!(field(&fs::read_to_string("/proc/self/status").unwrap(), "SigIgn"), 0);

    let mut session = Session::start(spec("/bin/sleep", &["1000"])).await;
    let status = fs::read_to_string(format!("/proc/{}/status", session.process.pid())).unwrap();
    assert_eq!((field(&status, "SigIgn"), field(&status, "SigBlk")), (0, 0));
    session.process.signal_foreground("SIGINT", false).unwrap();
    assert_eq!(session.until_exit().await, ExitStatus::Signal("SIGINT".to_owned()));
    session.close().await;
}

#[tokio::test]
async fn a_bad_directory_is_refused_by_name() {
    let (_directory, path) = support::temp();
    fs::write(path.join("file"), "").unwrap();
    for (cwd, reason) in [
        (path.join("missing"), "there is no such directory"),
        (path.join("file"), "it is not a directory"),
        ("relative".into(), "it is not an absolute path"),
    ] {
        let error =
            Session::try_start(subprocess::TerminalSpec { cwd: cwd.clone(), ..bash() }).await;
        let error = error.err().expect("it is refused");
        assert!(matches!(&error, SpawnError::Cwd { path, .. } if *path == cwd), "{error:?}");
        assert_eq!(error.to_string(), format!("working directory `{}`: {reason}", cwd.display()));
    }
}

#[tokio::test]
async fn a_program_that_cannot_be_executed_is_an_error() {
    let (_directory, path) = support::temp();
    fs::write(path.join("plain"), "#!/bin/sh\n").unwrap();
    fs::write(path.join("lost"), "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(path.join("lost"), fs::Permissions::from_mode(0o755)).unwrap();
    let at = |name: &str| spec(path.join(name).to_str().unwrap(), &[]);
    let mut much = bash();
    much.env.push(("BIG".to_owned(), "x".repeat(200_000)));
    for (spec, errno) in [
        (at("missing"), libc::ENOENT),
        (at("plain"), libc::EACCES),
        (at("lost"), libc::ENOENT),
        (at(""), libc::EACCES),
        (much, libc::E2BIG),
    ] {
        let program = spec.program.clone();
        match Session::try_start(spec).await {
            Err(SpawnError::Exec { program: named, source }) => {
                assert_eq!((named, source.raw_os_error()), (program, Some(errno)));
            }
            other => panic!("{program:?}: {:?}", other.err()),
        }
    }
}
