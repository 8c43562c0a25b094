//! One session's close: closer, joiners, failures, dropped callers.

use testkit::{Act, Step, wait_until};

use crate::{Fixture, line, refusal};

#[tokio::test]
async fn one_closes_others_join_and_afterwards_there_is_no_session() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    let gate = it.script.hold(Step::Close);
    let closer = it.killing(&agent, "pty-1");
    gate.arrived().await;
    let kill = it.terminals.kill(&agent, "pty-1", "me too");
    tokio::pin!(kill);
    assert!(futures_util::poll!(&mut kill).is_pending());
    assert!(it.terminals.has_owner_activity(&agent));
    assert_eq!(it.ids(&agent), ["pty-1"]);
    gate.open();
    assert!(closer.await.unwrap().unwrap());
    assert!(!kill.await.unwrap());
    assert!(!it.terminals.has_owner_activity(&agent));
    let error = refusal(it.terminals.kill(&agent, "pty-1", "").await);
    assert_eq!(error.to_string(), "unknown terminal session pty-1");
    let record = ["open pty-1", "opened pty-1", "close pty-1: asked to", "closed pty-1"];
    assert_eq!(it.script.lines(), record);
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_failed_close_rejects_all_and_can_be_retried() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    let gate = it.script.hold(Step::Close);
    let closer = it.killing(&agent, "pty-1");
    gate.arrived().await;
    let kill = it.terminals.kill(&agent, "pty-1", "me too");
    tokio::pin!(kill);
    assert!(futures_util::poll!(&mut kill).is_pending());
    gate.fail(terminal::TerminalError::CloseIncomplete("pid 99 survived".to_owned()));
    assert_eq!(refusal(closer.await.unwrap()).to_string(), "pid 99 survived");
    assert_eq!(refusal(kill.await).code(), "CLOSE_INCOMPLETE");
    assert_eq!(it.ids(&agent), ["pty-1"]);
    assert!(it.terminals.has_owner_activity(&agent));
    it.terminals.start_send(&agent, "pty-1", line("x")).unwrap();

    it.script.next(Step::Close, Act::Panic);
    assert_eq!(refusal(it.terminals.kill(&agent, "pty-1", "").await).code(), "BACKEND_FAILED");
    assert!(it.terminals.kill(&agent, "pty-1", "").await.unwrap());
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_close_that_hangs_holds_up_nobody_else() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    let gate = it.script.hold(Step::Close);
    let closer = it.killing(&agent, "pty-1");
    gate.arrived().await;
    it.open(&agent).await;
    it.terminals.start_send(&agent, "pty-2", line("x")).unwrap();
    assert!(it.terminals.kill(&agent, "pty-2", "").await.unwrap());
    assert_eq!(it.ids(&agent), ["pty-1"]);
    assert!(!closer.is_finished() && it.terminals.has_owner_activity(&agent));
    gate.open();
    assert!(closer.await.unwrap().unwrap());
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn dropping_the_caller_does_not_stop_the_close() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    let gate = it.script.hold(Step::Close);
    let closer = it.killing(&agent, "pty-1");
    gate.arrived().await;
    closer.abort();
    assert!(closer.await.unwrap_err().is_cancelled());
    gate.open();
    it.script.saw("closed pty-1").await;
    wait_until("the session is forgotten", || !it.terminals.has_owner_activity(&agent)).await;
    it.host.dispose().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_racing_closes_exactly_one_is_the_closer() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    for round in 1..=60 {
        let id = it.open(&agent).await.session.session_id;
        let closes: Vec<_> = (0..6).map(|_| it.killing(&agent, id.as_str())).collect();
        let mut won = 0;
        for close in closes {
            match close.await.unwrap() {
                Ok(true) => won += 1,
                Ok(false) => {}
                Err(error) => assert_eq!(error.code(), "NO_SESSION"),
            }
        }
        assert_eq!(won, 1, "round {round}");
    }
    it.host.dispose().await.unwrap();
}
