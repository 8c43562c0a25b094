//! What a person may do in a session, and what its owner is told of it.

use std::sync::Arc;

use agents::Agent;
use secrecy::SecretString;
use terminal::{
    Activity, Key, KeyPress, KeysRequest, Modifiers, ReadRequest, Signal, TerminalError, WindowSize,
};
use testkit::Step;

use crate::{Fixture, line, refusal};

/// What the agent reads next.
fn read(agent: &Arc<Agent>) -> Vec<String> {
    let notices = agent.inbox().drain();
    notices.into_iter().filter(agents::Notice::deliver).map(|it| it.text).collect()
}

#[tokio::test]
async fn while_a_person_has_a_session_its_owner_types_and_signals_nothing() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    it.open(&agent).await;
    let lease = it.terminals.take_over("pty-1").unwrap();
    let held = TerminalError::LeaseHeld { id: "pty-1".to_owned() };
    assert_eq!(
        held.to_string(),
        "a person has taken over pty-1: read it, or wait until it is given back"
    );
    assert_eq!(refusal(it.terminals.take_over("pty-1")), held);
    let enter = KeyPress { key: Key::Character('a'), modifiers: Modifiers::default() };
    let keys = KeysRequest { keys: vec![enter], cancel: dsh_core::Cancel::new() };
    assert_eq!(refusal(it.terminals.start_send(&agent, "pty-1", line("ls"))), held);
    assert_eq!(refusal(it.terminals.start_keys(&agent, "pty-1", keys)), held);
    let size = WindowSize { rows: 24, columns: 80 };
    assert_eq!(refusal(it.terminals.resize(&agent, "pty-1", size).await), held);
    let signal = Signal::Interrupt;
    assert_eq!(refusal(it.terminals.signal(&agent, "pty-1", signal).await), held);
    assert!(it.terminals.read(&agent, "pty-1", ReadRequest::default()).await.is_ok());
    it.terminals.start_send(&agent, "pty-2", line("ls")).unwrap().done().await.unwrap();
    assert!(!it.script.lines().iter().any(|it| it.starts_with("start_send pty-1")));

    lease.give_back();
    it.terminals.signal(&agent, "pty-1", signal).await.unwrap();
    it.terminals.start_send(&agent, "pty-1", line("ls")).unwrap().done().await.unwrap();
    drop(it.terminals.take_over("pty-1").unwrap());
    drop(it.terminals.take_over("pty-1").unwrap());
    assert!(it.terminals.take_over("pty-1").is_ok(), "whoever drops it has given it back");
    assert_eq!(refusal(it.terminals.take_over("pty-9")).code(), "NO_SESSION");
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn the_owner_is_told_what_a_person_typed_and_of_a_secret_its_length() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    let lease = it.terminals.take_over("pty-1").unwrap();
    lease.type_text("y").await.unwrap();
    assert_eq!(agent.inbox().drain().len(), 1, "drained, but not read");
    lease.type_text("es\r").await.unwrap();
    assert_eq!(read(&agent), [r#"[a person typed in pty-1: "yes\n"]"#]);
    lease.enter_secret(SecretString::from("hunter2")).await.unwrap();
    let hidden = "[a person typed 7 bytes in pty-1 that the terminal does not show]";
    assert_eq!(read(&agent), [hidden]);
    lease.signal(Signal::Terminate).await.unwrap();
    lease.give_back();
    let lease = it.terminals.take_over("pty-1").unwrap();
    lease.type_text("n").await.unwrap();
    assert_eq!(read(&agent), [r#"[a person typed in pty-1: (SIGTERM), "n"]"#]);
    assert_eq!(read(&agent), <[String; 0]>::default());
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_send_that_runs_goes_on_and_a_lease_ends_with_its_session() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    it.script.hold(Step::Settle);
    let send = it.terminals.start_send(&agent, "pty-1", line("read x")).unwrap();
    let lease = it.terminals.take_over("pty-1").unwrap();
    assert!(!send.is_settled());
    assert!(it.terminals.kill(&agent, "pty-1", "done").await.unwrap());
    send.done().await.unwrap();
    let closed = refusal(lease.type_text("x").await);
    assert_eq!(closed.code(), "SESSION_EXITED", "{closed}");
    assert_eq!(read(&agent), <[String; 0]>::default());
    it.host.dispose().await.unwrap();
    drop(lease);
}

#[tokio::test]
async fn the_operator_sees_the_sessions_of_all_agents_and_that_they_change() {
    let it = Fixture::boot().await;
    let (one, two) = (it.host.agent("a"), it.host.agent("b"));
    let mut changes = it.terminals.changes();
    it.open(&one).await;
    assert!(changes.has_changed().unwrap());
    it.open(&two).await;
    changes.mark_unchanged();
    it.script.hold(Step::Settle);
    let send = it.terminals.start_send(&two, "pty-2", line("x")).unwrap();
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    let lease = it.terminals.take_over("pty-1").unwrap();
    assert!(changes.has_changed().unwrap());
    let told = |it: (Arc<Agent>, terminal::SessionSnapshot, Activity)| {
        (it.0.id().to_owned(), it.1.session_id.to_string(), it.2)
    };
    let all: Vec<_> = it.terminals.sessions().into_iter().map(told).collect();
    let taken = Activity { sending: false, taken_over: true };
    let sends = Activity { sending: true, taken_over: false };
    assert_eq!(
        all,
        [("a".to_owned(), "pty-1".to_owned(), taken), ("b".to_owned(), "pty-2".to_owned(), sends)]
    );
    changes.mark_unchanged();
    lease.give_back();
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    it.terminals.kill(&two, "pty-2", "done").await.unwrap();
    assert!(changes.has_changed().unwrap());
    send.done().await.unwrap();
    assert_eq!(it.terminals.sessions().len(), 1);
    it.host.dispose().await.unwrap();
}
