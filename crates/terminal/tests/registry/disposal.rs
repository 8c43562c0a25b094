//! The end of an owner, of a backend, and of the service.

use std::sync::Arc;

use dsh_core::Cancel;
use terminal::{SpawnRequest, TerminalError};
use testkit::{Act, Gate, Step, scripted::ScriptedBackend};

use crate::{Fixture, refusal, request};

#[tokio::test]
async fn an_owners_end_tells_a_hanging_setup_and_waits_for_it() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.script.ignore_cancellation(true);
    let gate = it.script.hold(Step::Open);
    let spawning = it.spawning(&agent, &Cancel::new());
    gate.arrived().await;
    let disposal = it.host.dispose_agent(&agent);
    tokio::pin!(disposal);
    tokio::select! {
        _ = &mut disposal => panic!("it did not wait for the setup"),
        () = it.script.saw("open pty-1 cancelled") => {}
    }
    assert!(futures_util::poll!(&mut disposal).is_pending());
    gate.open();
    disposal.await.unwrap();
    let error = TerminalError::OwnerNotLive { owner: "a".to_owned() };
    assert_eq!(refusal(spawning.await.unwrap()), error);
    assert_eq!(it.script.lines().last().map(String::as_str), Some("closed pty-1"));
    assert!(!it.terminals.has_owner_activity(&agent));
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn the_services_end_loses_setups_and_refuses_further_ones() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    let (opening, closing) = (it.script.hold(Step::Open), it.script.hold(Step::Close));
    let spawning = it.spawning(&agent, &Cancel::new());
    opening.arrived().await;
    // The backend's row goes first and takes its sessions with it.
    let disposal = it.host.dispose();
    tokio::pin!(disposal);
    tokio::select! {
        _ = &mut disposal => panic!("it did not wait for the close"),
        () = closing.arrived() => {}
    }
    let error = refusal(spawning.await.unwrap());
    assert_eq!(error.code(), "NO_BACKEND");
    closing.open();
    disposal.await.unwrap();
    let error = refusal(it.terminals.spawn(&agent, request(None), &Cancel::new()).await);
    assert_eq!(error, TerminalError::ServiceDisposing);
    assert!(!it.terminals.has_owner_activity(&agent));
}

/// The same with a backend that outlives the service, so that the service's own disposal works.
#[tokio::test]
async fn the_services_own_disposal_closes_everything() {
    let it = Fixture::boot().await;
    let scope = dsh_core::Scope::root("elsewhere");
    let backend = Arc::new(ScriptedBackend::new("lasting", &it.script));
    it.terminals.register_backend(&scope, backend.clone()).unwrap();
    let agent = it.host.agent("a");
    let lasting = || SpawnRequest { kind: "lasting".to_owned(), ..SpawnRequest::default() };
    it.terminals.spawn(&agent, lasting(), &Cancel::new()).await.unwrap();
    let gate = it.script.hold(Step::Open);
    let (terminals, owner) = (Arc::clone(&it.terminals), Arc::clone(&agent));
    let spawning =
        tokio::spawn(async move { terminals.spawn(&owner, lasting(), &Cancel::new()).await });
    gate.arrived().await;
    it.script.fail(Step::Close, "survivor");
    let error = it.host.dispose().await.unwrap_err().to_string();
    assert!(error.contains("pty-1") && error.contains("survivor"), "{error}");
    assert_eq!(refusal(spawning.await.unwrap()), TerminalError::ServiceDisposing);
    assert_eq!(
        refusal(it.terminals.register_backend(&scope, backend)),
        TerminalError::ServiceDisposing
    );
    it.host.dispose().await.unwrap();
    assert!(!it.terminals.has_owner_activity(&agent));
    scope.dispose().await.unwrap();
}

#[tokio::test]
async fn sessions_are_closed_at_the_same_time() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    for _ in 0..3 {
        it.open(&agent).await;
    }
    let gate = Gate::new();
    it.script.always(Step::Close, Act::Hold(gate.clone()));
    let (disposed, ()) = tokio::join!(it.host.dispose_agent(&agent), async {
        gate.arrived_times(3).await;
        gate.open();
    });
    disposed.unwrap();
    assert!(it.ids(&agent).is_empty());
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn every_close_is_attempted_and_failures_are_reported_together() {
    let it = Fixture::boot().await;
    let (agent, other) = (it.host.agent("a"), it.host.agent("b"));
    for _ in 0..4 {
        it.open(&agent).await;
    }
    it.open(&other).await;
    it.script.fail(Step::Close, "no").next(Step::Close, Act::Succeed).next(Step::Close, Act::Panic);
    let error = it.host.dispose_agent(&agent).await.unwrap_err().to_string();
    assert!(error.contains("2 terminal session(s)"), "{error}");
    assert!(error.contains("[BACKEND_FAILED] no"), "{error}");
    assert!(error.contains("panicked while closing"), "{error}");
    assert_eq!(it.ids(&agent).len(), 2);
    assert_eq!(it.ids(&other), ["pty-5"]);
    assert!(it.terminals.has_owner_activity(&agent));

    it.host.dispose_agent(&agent).await.unwrap();
    assert!(!it.terminals.has_owner_activity(&agent));
    let closed = it.script.lines().iter().filter(|line| line.starts_with("closed")).count();
    assert_eq!(closed, 4);
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_disposal_joins_a_close_that_runs() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    let gate = it.script.hold(Step::Close);
    let closer = it.killing(&agent, "pty-1");
    gate.arrived().await;
    let disposal = it.host.dispose_agent(&agent);
    tokio::pin!(disposal);
    assert!(futures_util::poll!(&mut disposal).is_pending());
    gate.open();
    disposal.await.unwrap();
    assert!(closer.await.unwrap().unwrap());
    it.script.saw_times("close pty-1", 1).await;
    assert_eq!(it.script.lines().iter().filter(|it| it.starts_with("close ")).count(), 1);
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn backends_have_one_type_each_in_order_and_end_with_their_scope() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    let scope = dsh_core::Scope::root("backends");
    let backend = |kind| Arc::new(ScriptedBackend::new(kind, &it.script));
    it.terminals.register_backend(&scope, backend("zsh")).unwrap();
    it.terminals.register_backend(&scope, backend("bash")).unwrap();
    assert_eq!(it.terminals.list_backends(), ["scripted", "zsh", "bash"]);
    let duplicate = refusal(it.terminals.register_backend(&scope, backend("bash")));
    assert_eq!(duplicate, TerminalError::DuplicateBackend { kind: "bash".to_owned() });
    let empty = refusal(it.terminals.register_backend(&scope, backend("")));
    assert_eq!(empty.code(), "INVALID_ARGS");

    let zsh = SpawnRequest { kind: "zsh".to_owned(), ..SpawnRequest::default() };
    it.open(&agent).await;
    it.terminals.spawn(&agent, zsh.clone(), &Cancel::new()).await.unwrap();
    it.script.fail(Step::Close, "survivor");
    scope.dispose().await.unwrap_err();
    assert_eq!(it.ids(&agent), ["pty-1", "pty-2"]);
    scope.dispose().await.unwrap();
    assert_eq!(it.ids(&agent), ["pty-1"]);
    assert_eq!(it.terminals.list_backends(), ["scripted"]);
    let gone = refusal(it.terminals.spawn(&agent, zsh, &Cancel::new()).await);
    assert_eq!(gone.code(), "NO_BACKEND");
    let late = refusal(it.terminals.register_backend(&scope, backend("fish")));
    assert_eq!(late, TerminalError::ServiceDisposing);
    it.host.dispose().await.unwrap();
}
