//! Nothing is left over: neither of sessions that were closed nor of those that never started.
//!
//! One test in a process of its own, because it counts what the whole process holds.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::time::Duration;

use subprocess::{Depth, LocalHost, TerminalHost as _};
use support::{Session, bash, children, guarded, open_descriptors, spec};

/// Resident memory that is this process's own, in bytes.
fn anonymous_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_given_back() {
    // What is made once and kept.
    Session::shell().await.close().await;
    let descriptors = open_descriptors();
    assert_eq!(children(), Vec::<i32>::new());

    for _ in 0..50 {
        let missing = subprocess::TerminalSpec { cwd: "/no/such".into(), ..bash() };
        assert!(Session::try_start(missing).await.is_err());
        assert!(Session::try_start(spec("/no/such", &[])).await.is_err());
    }
    assert_eq!((open_descriptors(), children().len()), (descriptors, 0), "after failed starts");

    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let (threads_before, memory) = (threads(), anonymous_memory());
    for round in 0..1000 {
        // A shell that has not come to its prompt is closed as well as one that has.
        let mut session = Session::start(bash()).await;
        if round % 5 == 0 {
            session.until("dsh> ").await;
        }
        if round % 25 == 0 {
            session.command("(setsid sleep 1000 &)").await;
            session.type_line("exit");
            session.until_exit().await;
        }
        session.process.probe(Depth::Full).await;
        session.close().await;
    }
    assert_eq!((open_descriptors(), children().len()), (descriptors, 0), "after closed sessions");
    guarded("threads that had to block end when they have nothing to do", async {
        while threads() > threads_before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let grown = anonymous_memory().saturating_sub(memory);
    assert!(grown < 4 << 20, "{grown} bytes more than before");

    // A start nobody waits for.
    for _ in 0..10 {
        let host = LocalHost::new();
        let mut start = Box::pin(host.spawn(bash()));
        tokio::select! {
            biased;
            _ = &mut start => panic!("a start takes a thread switch at least"),
            () = tokio::task::yield_now() => {}
        }
        drop(start);
    }
    guarded("abandoned starts end", async {
        while children().iter().any(|&it| support::lives(it)) || open_descriptors() > descriptors {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    // The next close collects what was killed without waiting.
    Session::shell().await.close().await;
    assert_eq!((open_descriptors(), children().len()), (descriptors, 0), "after abandoned starts");
}
