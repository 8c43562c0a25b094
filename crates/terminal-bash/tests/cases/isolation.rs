//! `isolation: pid-namespace`: what an agent does to all processes meets its own session only.

use terminal::{StateKind, WaitReason};
use testkit::leaks::processes_with_env;

use crate::shell::{Bench, assert_prompt, assert_waits, bench};

pub(crate) const ISOLATED: &str = "{ isolation: pid-namespace, disposeGraceMs: 300 }";

#[test]
#[ignore = "needs root"]
fn a_sweep_over_all_processes_stays_in_the_session() {
    bench(ISOLATED, assert_a_sweep_stays_in_the_session);
}

pub(crate) async fn assert_a_sweep_stays_in_the_session(bench: &Bench) {
    let (shell, other) = (bench.open().await, bench.open().await);
    assert_eq!(shell.run("echo $$", 0).await, "1\n");
    shell.run("setsid -f sleep 1000", 0).await;
    other.run("setsid -f sleep 1000", 0).await;
    // One may vanish between its name and its reading.
    let sleepers = "cat /proc/[0-9]*/comm 2>/dev/null | grep -c '^sleep'";
    let until_some = format!("until [ $({sleepers}) -gt 0 ]; do :; done");
    let until_none = format!("until [ $({sleepers}) = 0 ]; do :; done");
    shell.run(&until_some, 0).await;
    other.run(&until_some, 0).await;
    assert_eq!(shell.run(sleepers, 0).await, "1\n");
    // The shell is process 1, which is spared.
    shell.send("kill -9 -1").await;
    shell.run(&until_none, 0).await;
    assert_eq!(other.run(sleepers, 0).await, "1\n");
    // What is seen of the session is seen as ever.
    assert_waits(&shell.send("read -p 'name? ' x").await, StateKind::Line);
    assert_prompt(&shell.send("me").await, Some(0));
    let python = shell.send("python3 -q").await;
    assert_eq!(python.wait_reason, WaitReason::StdinRead, "{python:?}");
    assert_prompt(&shell.send("exit(3)").await, Some(3));
    shell.run("(trap '' TERM HUP; setsid -f sleep 1000)", 0).await;
    assert_eq!(shell.close().await, Ok(true));
    let of_shell = processes_with_env("DSH_PTY_SESSION_ID", &shell.id);
    let mut left = processes_with_env("DSH_SESSION_ID", bench.agent.id());
    left.retain(|it| of_shell.contains(it));
    assert_eq!(left, []);
    other.run("echo here", 0).await;
}
