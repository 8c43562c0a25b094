//! Nothing is left over: neither of sessions that were closed nor of those that never started.
//!
//! One test in a process of its own, because it counts what the whole process holds.
#![cfg(target_os = "linux")]

mod support;

use std::time::Duration;

use subprocess::{Depth, LocalHost, TerminalHost as _};
use support::{Session, bash, children, guarded, open_descriptors, spec};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_given_back() {
    // What is made once and kept.
    Session::shell().await.close().await;
    let descriptors = open_descriptors();
    assert_eq!(children(), Vec::<i32>::new());

    for _ in 0..20 {
        let missing = subprocess::TerminalSpec { cwd: "/no/such".into(), ..bash() };
        assert!(Session::try_start(missing).await.is_err());
        assert!(Session::try_start(spec("/no/such", &[])).await.is_err());
    }
    assert_eq!((open_descriptors(), children().len()), (descriptors, 0), "after failed starts");

    for round in 0..40 {
        let mut session = Session::shell().await;
        if round % 4 == 0 {
            session.command("(setsid sleep 1000 &)").await;
            session.type_line("exit");
            session.until_exit().await;
        }
        session.process.probe(Depth::Full).await;
        session.close().await;
    }
    assert_eq!((open_descriptors(), children().len()), (descriptors, 0), "after closed sessions");

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
