//! What a started program gets from the host, and what happens when it cannot be started.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

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

#[tokio::test]
async fn a_pid_namespace_does_not_go_with_the_namespaces_of_a_sandbox() {
    let spec = subprocess::TerminalSpec {
        isolation: subprocess::Isolation::PidNamespace,
        confinement: subprocess::Confinement::Namespaces(std::sync::Arc::new([])),
        ..bash()
    };
    let error = Session::try_start(spec).await.map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("use the row `sandbox-landlock`"), "{error}");
}

/// Set for a test that runs once more below a host as `dirt`, a piece of python, left it.
const INSIDE: &str = "TEST_BELOW_A_DIRTY_HOST";

/// Runs the test `name` of this file once more in a process that first did `dirt`. True in there.
fn below(name: &str, dirt: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let script = format!(
        "import os, resource, signal, sys\n{dirt}\nos.execv(sys.argv[1], [sys.argv[1], '--exact', sys.argv[2]])"
    );
    let output = Command::new("python3")
        .args(["-c", &script])
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let says = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    assert!(output.status.success() && says[0].contains("1 passed"), "{says:#?}");
    false
}

/// A line of `/proc/PID/NAME` that begins with `field`, without that.
fn line_of(pid: &str, name: &str, field: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
    let line = text.lines().find_map(|it| it.strip_prefix(field)).unwrap_or_else(|| {
        panic!("no {field} in {text}");
    });
    line.trim().to_owned()
}

fn signals(pid: &str, field: &str) -> u64 {
    u64::from_str_radix(&line_of(pid, "status", field), 16).unwrap()
}

async fn sleeping() -> (Session, String) {
    let session = Session::start(spec("/bin/sleep", &["1000"])).await;
    let pid = session.process.pid().to_string();
    (session, pid)
}

#[tokio::test]
async fn ignored_and_blocked_signals_of_the_host_are_not_passed_on() {
    let name = "ignored_and_blocked_signals_of_the_host_are_not_passed_on";
    let dirt = "for it in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1):\n  \
        signal.signal(it, signal.SIG_IGN)\n\
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTSTP])";
    if !below(name, dirt) {
        return;
    }
    assert!(signals("thread-self", "SigIgn:") != 0 && signals("thread-self", "SigBlk:") != 0);
    let (mut session, pid) = sleeping().await;
    assert_eq!((signals(&pid, "SigIgn:"), signals(&pid, "SigBlk:")), (0, 0));
    session.process.signal_foreground("SIGINT", false).unwrap();
    assert_eq!(session.until_exit().await, ExitStatus::Signal("SIGINT".to_owned()));
    session.close().await;
}

#[tokio::test]
async fn the_umask_is_what_was_asked_for() {
    if !below("the_umask_is_what_was_asked_for", "os.umask(0o777)") {
        return;
    }
    for (umask, shown) in [(0o022, "0022"), (0o077, "0077"), (0, "0000")] {
        let spec = subprocess::TerminalSpec { umask, ..spec("/bin/sleep", &["1000"]) };
        let session = Session::start(spec).await;
        let pid = session.process.pid().to_string();
        assert_eq!(line_of(&pid, "status", "Umask:"), shown);
        session.close().await;
    }
}

/// Soft ones; a hard one cannot be undone.
#[tokio::test]
async fn limits_of_the_host_are_not_passed_on() {
    let dirt = "for it, soft in ((resource.RLIMIT_CORE, resource.RLIM_INFINITY), \
        (resource.RLIMIT_NOFILE, 256), (resource.RLIMIT_STACK, 1 << 20), (resource.RLIMIT_FSIZE, 1 << 16), \
        (resource.RLIMIT_CPU, 1000), (resource.RLIMIT_NPROC, 5000), (resource.RLIMIT_AS, 1 << 40)):\n  \
        hard = resource.getrlimit(it)[1]\n  \
        soft = hard if it == resource.RLIMIT_CORE else soft if hard == -1 else min(soft, hard)\n  \
        resource.setrlimit(it, (soft, hard))";
    if !below("limits_of_the_host_are_not_passed_on", dirt) {
        return;
    }
    let (session, pid) = sleeping().await;
    for (name, soft) in [
        ("Max core file size", Some("0")),
        ("Max open files", Some("1024")),
        ("Max stack size", Some("8388608")),
        ("Max file size", None),
        ("Max cpu time", None),
        ("Max processes", None),
        ("Max address space", None),
    ] {
        let (own, line) = (line_of("self", "limits", name), line_of(&pid, "limits", name));
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        // The hard one is the host's, and the soft one is at most that.
        assert_eq!(own.split_ascii_whitespace().nth(1), Some(fields[1]), "{name}");
        let hard: u64 = fields[1].parse().unwrap_or(u64::MAX);
        let expected = match soft {
            Some(soft) if soft.parse::<u64>().unwrap() <= hard => soft,
            _ => fields[1],
        };
        assert_eq!(fields[0], expected, "{name}: {line}");
    }
    session.close().await;
}

#[tokio::test]
async fn a_lower_priority_of_the_host_is_not_passed_on_where_it_may_be_raised() {
    let name = "a_lower_priority_of_the_host_is_not_passed_on_where_it_may_be_raised";
    if !below(name, "os.nice(7)") {
        return;
    }
    let nice = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect();
        fields[16].parse::<i32>().unwrap()
    };
    let lowered = nice("thread-self");
    let (session, pid) = sleeping().await;
    let raised = rustix::process::setpriority_process(None, 0).is_ok();
    assert_eq!(nice(&pid), if raised { 0 } else { lowered });
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
