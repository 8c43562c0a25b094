//! Ends without an order, and ends that are refused: each in a process of its own.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::{
    fs,
    process::{Command, Output},
    time::Duration,
};

use subprocess::{Depth, Evidence, SpawnError};
use support::{GUARD, Session, bash, guarded, lives, unique, until, with_argument};

/// Index of the sleeper that runs as another user.
const STRANGER: usize = 100;
/// Index of the sleeper of another PID namespace.
const SLEEPER: usize = 101;
/// Set in the inner run of a test; its value is the number that makes arguments unique.
const INSIDE: &str = "TEST_INSIDE";

/// Runs the test `name` of this file once more, below `wrapper`.
fn again(wrapper: &[&str], name: &str) -> Output {
    let own = std::env::current_exe().unwrap();
    let own = own.to_str().unwrap();
    let line: Vec<_> =
        wrapper.iter().copied().chain([own, "--exact", name, "--include-ignored"]).collect();
    let guard = GUARD.as_secs().to_string();
    Command::new("timeout")
        .args(["-s", "KILL", &guard])
        .args(line)
        .env(INSIDE, std::process::id().to_string())
        .output()
        .unwrap()
}

fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Living processes with `variable` in their environment.
fn with_variable(variable: &str) -> Vec<i32> {
    let carries = |pid: &i32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|&b| b == 0).any(|it| it == variable.as_bytes())
    };
    support::processes().into_iter().filter(carries).filter(|&it| lives(it)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_leaves_at_once_leaves_nothing() {
    let escapes = [
        "sleep N &",
        "setsid -f sleep N",
        "env -i setsid -f sleep N",
        "bash -c 'ulimit -R 1000; exec setsid -f sleep N'",
        "bash -c 'trap \"\" TERM HUP INT; while :; do sleep N; done' & disown",
        "(setsid sh -c 'while :; do sleep N; done' &)",
        "sleep N",
    ];
    if !is_inside() {
        let output = again(&[], "a_host_that_leaves_at_once_leaves_nothing");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let number = std::process::id();
        until("what was killed vanishes", || {
            with_variable(&format!("OF_TEST={number}")).is_empty()
                && (0..escapes.len()).all(|it| with_argument(&unique(it, number)).is_empty())
        })
        .await;
        return;
    }
    let number: u32 = std::env::var(INSIDE).unwrap().parse().unwrap();
    let mut spec = bash();
    spec.env.push(("OF_TEST".to_owned(), number.to_string()));
    // One is ended before, one is still there, one is dropped without an end.
    Session::start(spec.clone()).await.close().await;
    let mut session = Session::start(spec.clone()).await;
    session.until("dsh> ").await;
    for (index, escape) in escapes.iter().enumerate() {
        session.type_line(&escape.replace('N', &unique(index, number)));
        until(escape, || !with_argument(&unique(index, number)).is_empty()).await;
    }
    let busy = Session::start(support::sh("while :; do /bin/true; done")).await;
    drop(Session::start(spec.clone()).await);
    let mut own = Command::new("/bin/sleep").arg("1000").spawn().unwrap();

    subprocess::kill_all_at_once();

    for (index, escape) in escapes.iter().enumerate() {
        until(escape, || with_argument(&unique(index, number)).is_empty()).await;
    }
    assert!(own.try_wait().unwrap().is_none(), "a child of the host itself is not touched");
    own.kill().unwrap();
    own.wait().unwrap();
    match Session::try_start(bash()).await {
        Err(SpawnError::Exec { source, .. }) => {
            assert!(source.to_string().contains("ending"), "{source}");
        }
        other => panic!("started after the end: {:?}", other.err()),
    }
    session.close().await;
    busy.close().await;
}

#[tokio::test]
#[ignore = "needs root"]
async fn who_refuses_our_signals_is_named_and_then_released() {
    let root = rustix::process::geteuid().is_root();
    assert!(root, "only root can make itself a process that it may not signal");
    if !is_inside() {
        let wrapper = ["setpriv", "--bounding-set", "-kill", "--inh-caps", "-kill"];
        let output = again(&wrapper, "who_refuses_our_signals_is_named_and_then_released");
        let number = std::process::id();
        let left = with_argument(&unique(STRANGER, number));
        for pid in &left {
            Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(left.len(), 1, "{text}");
        return;
    }
    let number: u32 = std::env::var(INSIDE).unwrap().parse().unwrap();
    let mut session = Session::shell().await;
    let sleep = unique(STRANGER, number);
    let line = format!("setpriv --reuid 65534 --clear-groups -- sleep {sleep} & sleep {sleep}0 &");
    session.command(&line).await;
    until("both sleep", || {
        let sleeps = |it: &i32| support::command(*it) == "sleep";
        with_argument(&sleep).iter().any(sleeps)
            && with_argument(&format!("{sleep}0")).iter().any(sleeps)
    })
    .await;
    let found = with_argument(&sleep);
    let [stranger] = found[..] else {
        let lines = found.iter().map(|it| fs::read_to_string(format!("/proc/{it}/cmdline")));
        panic!("one is expected: {:?}", lines.collect::<Vec<_>>())
    };

    let grace = Duration::from_millis(400);
    let failed = guarded("close", session.process.terminate(grace, &mut session.output));
    let survivors = failed.await.unwrap_err().survivors;
    assert_eq!(survivors.iter().map(|it| it.pid).collect::<Vec<_>>(), [stranger]);
    assert!(survivors[0].reason.contains("not permitted"), "{}", survivors[0]);
    assert!(with_argument(&format!("{sleep}0")).is_empty());

    // Nothing is waited for a second time.
    let forever = Duration::from_hours(1);
    let pid = session.process.pid();
    guarded("again", session.process.terminate(forever, &mut session.output)).await.unwrap();
    guarded("and again", session.process.terminate(forever, &mut session.output)).await.unwrap();
    support::assert_gone(pid);
    assert!(lives(stranger));
}

/// The kernel says that the host's session is 0 there, which used to be taken for a number of a
/// process: the first look at a session crashed the host.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs root"]
async fn a_host_whose_session_leader_lives_in_another_pid_namespace() {
    let name = "a_host_whose_session_leader_lives_in_another_pid_namespace";
    if !is_inside() {
        let output = again(&["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"], name);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    assert_eq!(stat.rsplit(") ").next().unwrap().split(' ').nth(3), Some("0"), "{stat}");
    let mut session = Session::shell().await;
    let sleep = unique(SLEEPER, std::env::var(INSIDE).unwrap().parse().unwrap());
    session.command(&format!("setsid -f sleep {sleep}")).await;
    until("it sleeps", || !with_argument(&sleep).is_empty()).await;
    let seen = |it: &Evidence| support::processes_of(it, "bash").count() == 1;
    session.until_evidence(Depth::Full, "looked at", seen).await;
    session.close().await;
    assert!(with_argument(&sleep).is_empty());
}

/// In such a folder the host's numbers name strangers, which used to be looked at and signalled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs root"]
async fn a_host_that_sees_the_process_table_of_another_pid_namespace() {
    if !is_inside() {
        let name = "a_host_that_sees_the_process_table_of_another_pid_namespace";
        let output = again(&["unshare", "--pid", "--fork", "--kill-child"], name);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let own = fs::read_link("/proc/self").unwrap();
    assert_ne!(own.to_str(), Some(&*std::process::id().to_string()));
    let mut session = Session::shell().await;
    let seen = session.process.probe(Depth::Full).await;
    assert!(seen.processes.is_empty(), "{seen:#?}");
    session.type_line("exec true");
    session.until_exit().await;
    guarded("close", session.process.terminate(Duration::from_secs(3), &mut session.output))
        .await
        .unwrap();
}

#[tokio::test]
#[ignore = "needs root"]
async fn a_pid_namespace_that_is_not_allowed_is_refused_before_the_start() {
    let name = "a_pid_namespace_that_is_not_allowed_is_refused_before_the_start";
    if !is_inside() {
        assert_eq!(subprocess::pid_namespaces_work(), Ok(()));
        // Neither the privilege nor a user namespace to have it in.
        let script = "echo 0 > /proc/sys/user/max_user_namespaces; \
                      exec setpriv --bounding-set -sys_admin --inh-caps -sys_admin -- \"$@\"";
        let wrapper = ["unshare", "--user", "--map-root-user", "bash", "-euc", script, "bash"];
        let output = again(&wrapper, name);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let reason = subprocess::pid_namespaces_work().unwrap_err();
    assert!(reason.contains("SYS_ADMIN") && reason.contains("isolation: none"), "{reason}");
    let isolation = subprocess::Isolation::PidNamespace;
    let spec = subprocess::TerminalSpec { isolation, ..bash() };
    match Session::try_start(spec).await.map(|_| ()) {
        Err(error @ SpawnError::Exec { .. }) => {
            assert!(error.to_string().contains(&reason), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(support::children(), Vec::<i32>::new());
}
