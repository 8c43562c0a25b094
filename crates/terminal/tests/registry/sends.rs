//! The one-send slot, and what an exited or closing session still takes.

use std::sync::Arc;

use terminal::{
    OutputDelta, ReadRequest, SearchRequest, SessionStatus, Signal, TerminalError, WaitReason,
};
use testkit::{Act, Step};

use crate::{Fixture, line, refusal};

#[tokio::test]
async fn one_send_at_a_time_until_it_has_settled() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    it.script.hold(Step::Settle);
    let first = it.terminals.start_send(&agent, "pty-1", line("one")).unwrap();
    let busy = refusal(it.terminals.start_send(&agent, "pty-1", line("two")));
    assert_eq!(busy, TerminalError::SendActive { id: "pty-1".to_owned() });

    let operation = it.script.operation();
    let mut follower = first.subscribe();
    operation.push_output("hello");
    let delta = OutputDelta { text: "hello".to_owned(), truncated: false };
    assert_eq!(follower.next().await, Some(delta.clone()));
    assert_eq!(first.read_output().await, delta);
    assert_eq!(first.read_output().await, OutputDelta::default());
    assert!(operation.settle_as(WaitReason::InferredIdle));
    assert_eq!(first.done().await.unwrap().viewport, "hello");
    assert_eq!(follower.next().await, None);
    assert!(!first.cancel("late"));

    let second = it.terminals.start_send(&agent, "pty-1", line("two")).unwrap();
    assert_eq!(second.done().await.unwrap().viewport, "two\ndsh> ");
    it.host.dispose().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_racing_callers_one_reaches_the_backend() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    let gate = it.script.hold(Step::StartSend);
    let (terminals, owner) = (Arc::clone(&it.terminals), Arc::clone(&agent));
    let first = tokio::task::spawn_blocking(move || {
        terminals.start_send(&owner, "pty-1", line("one")).map(|_| ())
    });
    gate.arrived().await;
    assert_eq!(
        refusal(it.terminals.start_send(&agent, "pty-1", line("two"))).code(),
        "SEND_ACTIVE"
    );
    gate.open();
    first.await.unwrap().unwrap();
    let sends = it.script.lines().iter().filter(|it| it.starts_with("start_send")).count();
    assert_eq!(sends, 1);
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_backend_that_refuses_or_panics_gives_the_slot_back() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    let large = TerminalError::InputTooLarge { bytes: 10, limit: 5 };
    it.script.next(Step::StartSend, Act::Fail(large.clone())).next(Step::StartSend, Act::Panic);
    assert_eq!(refusal(it.terminals.start_send(&agent, "pty-1", line("x"))), large);
    let error = refusal(it.terminals.start_send(&agent, "pty-1", line("x")));
    assert_eq!(error.code(), "BACKEND_FAILED");
    it.terminals.start_send(&agent, "pty-1", line("x")).unwrap().done().await.unwrap();
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_failed_send_frees_the_session() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    it.script.fail(Step::Settle, "write failed");
    let failed = it.terminals.start_send(&agent, "pty-1", line("x")).unwrap();
    assert_eq!(failed.done().await.unwrap_err().to_string(), "write failed");
    it.terminals.start_send(&agent, "pty-1", line("x")).unwrap();
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_settlement_and_a_cancellation_race_and_one_wins() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    for settled_first in [true, false] {
        it.script.hold(Step::Settle);
        let request = line("x");
        let cancel = request.cancel.clone();
        let send = it.terminals.start_send(&agent, "pty-1", request).unwrap();
        if settled_first {
            it.script.operation().settle_as(WaitReason::Timeout);
        }
        cancel.cancel("stop");
        let reason = send.done().await.unwrap().wait_reason;
        let expected = if settled_first { WaitReason::Timeout } else { WaitReason::StdinRead };
        assert_eq!(reason, expected);
        assert!(!it.script.operation().settle_as(WaitReason::InferredIdle));
        assert_eq!(send.done().await.unwrap().wait_reason, expected);
    }
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn an_exited_session_stays_listed_and_readable_and_takes_nothing() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    let session = it.script.session("pty-1");
    session.set_screen("1\n2\n3\n4");
    session.exit(3);
    let exited = TerminalError::SessionExited { id: "pty-1".to_owned() };
    assert_eq!(refusal(it.terminals.start_send(&agent, "pty-1", line("x"))), exited);
    assert_eq!(refusal(it.terminals.signal(&agent, "pty-1", Signal::Terminate).await), exited);
    let status = SessionStatus::Exited { exit_code: Some(3), signal: None };
    assert_eq!(it.terminals.list(&agent)[0].status, status);
    let request = ReadRequest::newest(1, 2);
    let page = it.terminals.read(&agent, "pty-1", request).await.unwrap();
    assert_eq!((page.text.as_str(), page.line_begin, page.line_end), ("2\n3", 1, 3));
    let none = ReadRequest::newest(0, 0);
    assert_eq!(refusal(it.terminals.read(&agent, "pty-1", none).await).code(), "INVALID_ARGS");
    assert!(it.terminals.kill(&agent, "pty-1", "").await.unwrap());
    assert!(it.ids(&agent).is_empty());
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn signals_and_reads_reach_the_backend_and_its_panics_do_not_reach_the_caller() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    let receipt = it.terminals.signal(&agent, "pty-1", Signal::Stop).await.unwrap();
    assert_eq!(receipt.target_pgid, testkit::scripted::PID.cast_signed());
    assert!(it.script.lines().contains(&"signal pty-1 SIGTSTP".to_owned()));
    it.script.next(Step::Read, Act::Panic).next(Step::Signal, Act::Panic);
    let request = ReadRequest::default();
    assert_eq!(refusal(it.terminals.read(&agent, "pty-1", request).await).code(), "BACKEND_FAILED");
    let signal = it.terminals.signal(&agent, "pty-1", Signal::Kill).await;
    assert_eq!(refusal(signal).code(), "BACKEND_FAILED");
    let found = it.terminals.search(&agent, "pty-1", SearchRequest::new("x")).await;
    assert_eq!(refusal(found).code(), "NOT_SUPPORTED");
    let none = SearchRequest { max_matches: 0, ..SearchRequest::new("x") };
    let found = it.terminals.search(&agent, "pty-1", none).await;
    assert_eq!(refusal(found).code(), "INVALID_ARGS");
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn closing_settles_the_live_send_and_refuses_another() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    it.script.hold(Step::Settle);
    let send = it.terminals.start_send(&agent, "pty-1", line("sleep 9")).unwrap();
    let gate = it.script.hold(Step::Close);
    let killing = it.killing(&agent, "pty-1");
    gate.arrived().await;
    let error = refusal(it.terminals.start_send(&agent, "pty-1", line("x")));
    assert_eq!(error, TerminalError::SessionClosing { id: "pty-1".to_owned() });
    assert_eq!(error.code(), "SESSION_EXITED");
    gate.open();
    assert!(killing.await.unwrap().unwrap());
    assert_eq!(send.done().await.unwrap().wait_reason, WaitReason::SessionExit);
    it.host.dispose().await.unwrap();
}
