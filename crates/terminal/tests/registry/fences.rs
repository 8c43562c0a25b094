//! Who may use what: the exact owner, and nobody else.

use std::{sync::Arc, time::Duration};

use agents::Agent;
use dsh_core::Cancel;
use terminal::{
    KeysRequest, NamedKey, ReadRequest, SearchRequest, Signal, TerminalError, WaitCondition,
    WaitRequest, WindowSize,
};
use testkit::{Step, guarded};

use crate::{Fixture, line, refusal, request};

/// The error of every operation on `id`.
async fn refusals(it: &Fixture, agent: &Arc<Agent>, id: &str) -> Vec<TerminalError> {
    let keys = KeysRequest { keys: vec![NamedKey::Enter.into()], cancel: Cancel::new() };
    let wait = WaitRequest { until: vec![WaitCondition::Exit], timeout: Duration::from_mins(1) };
    let size = WindowSize { rows: 24, columns: 80 };
    vec![
        refusal(it.terminals.start_send(agent, id, line("ls"))),
        refusal(it.terminals.start_keys(agent, id, keys)),
        refusal(it.terminals.screen(agent, id).await),
        refusal(it.terminals.resize(agent, id, size).await),
        refusal(it.terminals.wait(agent, id, wait).await),
        refusal(it.terminals.search(agent, id, SearchRequest::new("x")).await),
        refusal(it.terminals.read(agent, id, ReadRequest::default()).await),
        refusal(it.terminals.signal(agent, id, Signal::Interrupt).await),
        refusal(it.terminals.kill(agent, id, "mine").await),
    ]
}

#[tokio::test]
async fn a_foreign_id_and_an_unknown_id_are_the_same_to_callers() {
    let it = Fixture::boot().await;
    let (owner, other) = (it.host.agent("owner"), it.host.agent("other"));
    let unknown = refusals(&it, &other, "pty-1").await;
    for error in &unknown {
        assert_eq!(error.code(), "NO_SESSION");
        assert_eq!(error.to_string(), "unknown terminal session pty-1");
    }
    it.open(&owner).await;
    let recorded = it.script.lines();
    assert_eq!(refusals(&it, &other, "pty-1").await, unknown);
    assert!(it.terminals.list(&other).is_empty());
    assert!(!it.terminals.has_owner_activity(&other));
    assert_eq!(it.script.lines(), recorded, "the backend heard of it");
    assert_eq!(it.ids(&owner), ["pty-1"]);
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn only_the_exact_id_will_do() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    for id in ["pty-01", "PTY-1", "pty-1 ", "1", "pty-", "pty-2", "pty-99999999999999999999"] {
        for error in refusals(&it, &agent, id).await {
            assert_eq!(error, TerminalError::NoSession { id: id.to_owned() });
        }
    }
    for error in refusals(&it, &agent, "").await {
        assert_eq!(error.code(), "INVALID_ARGS");
    }
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_new_agent_with_an_old_id_is_a_stranger() {
    let it = Fixture::boot().await;
    let old = it.host.agent("same");
    it.open(&old).await;
    it.host.dispose_agent(&old).await.unwrap();
    let new = it.host.agent("same");
    it.open(&new).await;
    assert_eq!(it.ids(&new), ["pty-2"]);
    assert!(it.terminals.list(&old).is_empty());
    assert_eq!(refusal(it.terminals.kill(&old, "pty-2", "").await).code(), "NO_SESSION");
    let error = refusal(it.terminals.spawn(&old, request(None), &Cancel::new()).await);
    assert_eq!(error.code(), "OWNER_NOT_LIVE");
    assert!(!it.terminals.has_owner_activity(&old));
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn an_owner_that_is_going_opens_nothing_and_can_still_close() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    it.script.fail(Step::Close, "survivor");
    it.host.dispose_agent(&agent).await.unwrap_err();
    let error = refusal(it.terminals.spawn(&agent, request(None), &Cancel::new()).await);
    assert_eq!(error.code(), "OWNER_NOT_LIVE");
    assert!(guarded("the close", it.terminals.kill(&agent, "pty-1", "again")).await.unwrap());
    it.host.dispose_agent(&agent).await.unwrap();
    it.host.dispose().await.unwrap();
}

/// A backend of somebody else that knows none of it.
#[tokio::test]
async fn what_a_backend_does_not_have_is_not_supported() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    let codes = [
        refusal(it.terminals.screen(&agent, "pty-1").await).code(),
        refusal(it.terminals.resize(&agent, "pty-1", WindowSize::MOST).await).code(),
    ];
    assert_eq!(codes, ["NOT_SUPPORTED"; 2]);
    let keys = || KeysRequest { keys: vec![NamedKey::Enter.into()], cancel: Cancel::new() };
    let error = refusal(it.terminals.start_keys(&agent, "pty-1", keys()));
    assert_eq!(error.code(), "NOT_SUPPORTED");
    // The slot is free again.
    guarded("a send", it.terminals.start_send(&agent, "pty-1", line("ls")).unwrap().done())
        .await
        .unwrap();
    it.host.dispose().await.unwrap();
}
