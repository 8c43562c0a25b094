//! Setups: admission, publication, rollback.

use std::sync::Arc;

use dsh_core::Cancel;
use terminal::{SpawnRequest, TerminalError};
use testkit::{Act, Step, guarded, wait_until};

use crate::{Fixture, refusal, request};

#[tokio::test]
async fn a_session_is_published_only_after_its_setup() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    let gate = it.script.hold(Step::Open);
    assert!(!it.terminals.has_owner_activity(&agent));
    let spawning = it.spawning(&agent, &Cancel::new());
    gate.arrived().await;
    assert_eq!(it.ids(&agent), Vec::<String>::new());
    assert_eq!(refusal(it.terminals.kill(&agent, "pty-1", "").await).code(), "NO_SESSION");
    assert!(it.terminals.has_owner_activity(&agent));
    gate.open();
    let spawned = spawning.await.unwrap().unwrap();
    assert_eq!(spawned.motd, "dsh> ");
    assert_eq!(it.terminals.list(&agent), [spawned.session]);
    let asked = it.script.requests();
    assert_eq!(asked[0].owner.id(), "a");
    assert_eq!(asked[0].owner.workspace_root(), it.host.workspace());
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn ids_count_up_and_are_never_reused() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.open(&agent).await;
    it.open(&agent).await;
    assert!(it.terminals.kill(&agent, "pty-1", "done").await.unwrap());
    it.script.fail(Step::Open, "no luck");
    assert_eq!(
        refusal(it.terminals.spawn(&agent, request(None), &Cancel::new()).await).to_string(),
        "no luck"
    );
    it.open(&agent).await;
    let ids = it.ids(&agent);
    assert_eq!(ids[0], "pty-2");
    assert!(ids.len() == 2 && !["pty-1", "pty-2"].contains(&ids[1].as_str()), "{ids:?}");
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_list_is_in_order_of_opening_whatever_is_ready_first() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    let gate = it.script.hold(Step::Open);
    let slow = it.spawning(&agent, &Cancel::new());
    gate.arrived().await;
    it.open(&agent).await;
    assert_eq!(it.ids(&agent), ["pty-2"]);
    gate.open();
    slow.await.unwrap().unwrap();
    assert_eq!(it.ids(&agent), ["pty-1", "pty-2"]);
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_name_is_visible_and_unique_per_owner_also_while_being_created() {
    let it = Fixture::boot().await;
    let (one, two) = (it.host.agent("1"), it.host.agent("2"));
    let spawn =
        async |owner, name| it.terminals.spawn(owner, request(Some(name)), &Cancel::new()).await;
    for wrong in ["", "  ", "a\nb", "\u{1b}[2J"] {
        let error = refusal(spawn(&one, wrong).await);
        assert_eq!(error.code(), "INVALID_ARGS");
        assert!(error.to_string().contains(&format!("{wrong:?}")), "{error}");
    }
    assert!(it.script.lines().is_empty());

    let gate = it.script.hold(Step::Open);
    let first = {
        let (terminals, one) = (Arc::clone(&it.terminals), Arc::clone(&one));
        tokio::spawn(
            async move { terminals.spawn(&one, request(Some("main")), &Cancel::new()).await },
        )
    };
    gate.arrived().await;
    let duplicate = TerminalError::DuplicateName { name: "main".to_owned() };
    assert_eq!(refusal(spawn(&one, "main").await), duplicate);
    spawn(&two, "main").await.unwrap();
    gate.open();
    let first = first.await.unwrap().unwrap().session;
    assert_eq!(first.name.as_deref(), Some("main"));
    assert_eq!(refusal(spawn(&one, "main").await), duplicate);
    it.terminals.kill(&one, first.session_id.as_str(), "").await.unwrap();
    spawn(&one, "main").await.unwrap();

    it.script.fail(Step::Open, "no luck");
    refusal(spawn(&one, "other").await);
    spawn(&one, "other").await.unwrap();
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn an_unknown_type_names_the_ones_there_are() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    for kind in ["", "shel"] {
        let request = SpawnRequest { kind: kind.to_owned(), ..SpawnRequest::default() };
        let error = refusal(it.terminals.spawn(&agent, request, &Cancel::new()).await);
        assert_eq!(error.code(), "NO_BACKEND");
        assert!(error.to_string().contains("scripted"), "{error}");
    }
    assert!(!it.terminals.has_owner_activity(&agent));
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_cancelled_setup_keeps_the_callers_reason() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    let cancel = Cancel::new();
    let gate = it.script.hold(Step::Open);
    let spawning = it.spawning(&agent, &cancel);
    gate.arrived().await;
    cancel.cancel("the user pressed stop");
    let error = refusal(spawning.await.unwrap());
    assert_eq!((error.code(), error.to_string().as_str()), ("CANCELLED", "the user pressed stop"));
    assert!(it.script.lines().contains(&"open pty-1 cancelled: the user pressed stop".to_owned()));
    assert!(!it.terminals.has_owner_activity(&agent));

    // Cancelled before it began: the backend is never asked.
    let error = refusal(it.terminals.spawn(&agent, request(None), &cancel).await);
    assert_eq!(error.to_string(), "the user pressed stop");
    assert_eq!(it.script.requests().len(), 1);
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_setup_that_succeeds_after_its_cancellation_is_closed_before_the_answer() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    let cancel = Cancel::new();
    it.script.ignore_cancellation(true);
    let (opening, closing) = (it.script.hold(Step::Open), it.script.hold(Step::Close));
    let spawning = it.spawning(&agent, &cancel);
    opening.arrived().await;
    cancel.cancel("too late");
    opening.open();
    closing.arrived().await;
    assert!(!spawning.is_finished());
    assert!(it.terminals.has_owner_activity(&agent));
    assert!(it.ids(&agent).is_empty());
    closing.open();
    assert_eq!(refusal(spawning.await.unwrap()).to_string(), "too late");
    assert!(it.script.lines().contains(&"closed pty-1".to_owned()));
    assert!(!it.terminals.has_owner_activity(&agent));
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_cancellation_after_publication_changes_nothing() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    let cancel = Cancel::new();
    it.terminals.spawn(&agent, request(None), &cancel).await.unwrap();
    cancel.cancel("late");
    tokio::task::yield_now().await;
    assert_eq!(it.ids(&agent), ["pty-1"]);
    assert_eq!(it.script.lines(), ["open pty-1", "opened pty-1"]);
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_backends_error_after_the_cancellation_does_not_hide_the_reason() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    let cancel = Cancel::new();
    it.script.ignore_cancellation(true);
    let gate = it.script.hold(Step::Open);
    let spawning = it.spawning(&agent, &cancel);
    gate.arrived().await;
    cancel.cancel("mine");
    it.script.saw("open pty-1 cancelled").await;
    gate.fail(TerminalError::Backend("the shell hung".to_owned()));
    assert_eq!(refusal(spawning.await.unwrap()).to_string(), "mine");
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn dropping_a_spawn_undoes_it() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    let gate = it.script.hold(Step::Open);
    it.script.ignore_cancellation(true);
    let spawning = it.spawning(&agent, &Cancel::new());
    gate.arrived().await;
    spawning.abort();
    it.script.saw("open pty-1 cancelled: the caller went away").await;
    assert!(it.terminals.has_owner_activity(&agent));
    gate.open();
    it.script.saw("closed pty-1").await;
    wait_until("the session is forgotten", || !it.terminals.has_owner_activity(&agent)).await;
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_spawn_dropped_after_its_publication_leaves_no_session() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    let gate = it.script.hold(Step::Open);
    let cancel = Cancel::new();
    {
        let spawn = it.terminals.spawn(&agent, request(None), &cancel);
        tokio::pin!(spawn);
        // Polled once: the setup runs. Then it succeeds, and nobody asks for the result.
        assert!(futures_util::poll!(&mut spawn).is_pending());
        gate.arrived().await;
        gate.open();
        wait_until("it is published", || !it.ids(&agent).is_empty()).await;
    }
    it.script.saw("closed pty-1").await;
    wait_until("the session is forgotten", || !it.terminals.has_owner_activity(&agent)).await;
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_backend_that_panics_is_an_error_and_leaves_nothing() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.script.next(Step::Open, Act::Panic);
    let error = refusal(it.terminals.spawn(&agent, request(None), &Cancel::new()).await);
    assert_eq!(error.code(), "BACKEND_FAILED");
    assert!(error.to_string().contains("the script panics at open"), "{error}");
    assert!(!it.terminals.has_owner_activity(&agent));
    it.open(&agent).await;
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_failed_rollback_is_kept_reported_and_retried() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    let cancel = Cancel::new();
    it.script.ignore_cancellation(true);
    let gate = it.script.hold(Step::Open);
    it.script.fail(Step::Close, "first survivor").fail(Step::Close, "second survivor");
    let spawning = it.spawning(&agent, &cancel);
    gate.arrived().await;
    cancel.cancel("stop");
    gate.open();
    assert_eq!(refusal(spawning.await.unwrap()).to_string(), "stop");

    assert!(it.terminals.has_owner_activity(&agent));
    assert!(it.ids(&agent).is_empty());
    assert_eq!(refusal(it.terminals.kill(&agent, "pty-1", "").await).code(), "NO_SESSION");

    let error = it.host.dispose_agent(&agent).await.unwrap_err().to_string();
    assert!(error.contains("pty-1") && error.contains("second survivor"), "{error}");
    assert!(it.terminals.has_owner_activity(&agent));
    it.host.dispose_agent(&agent).await.unwrap();
    assert!(!it.terminals.has_owner_activity(&agent));
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_failed_rollback_is_reported_even_when_its_retry_succeeds() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    it.script.ignore_cancellation(true);
    let gate = it.script.hold(Step::Open);
    it.script.fail(Step::Close, "a survivor");
    let cancel = Cancel::new();
    let spawning = it.spawning(&agent, &cancel);
    gate.arrived().await;
    cancel.cancel("stop");
    gate.open();
    refusal(spawning.await.unwrap());
    let error = it.host.dispose().await.unwrap_err().to_string();
    assert!(error.contains("a survivor") && error.contains("closed now"), "{error}");
    assert!(it.script.lines().contains(&"closed pty-1".to_owned()));
    it.host.dispose().await.unwrap();
}

#[tokio::test]
async fn what_a_backend_could_not_undo_is_activity_until_a_disposal_says_so() {
    let it = Fixture::boot().await;
    let agent = it.host.agent("a");
    let left = TerminalError::CloseIncomplete("pid 99 survived".to_owned());
    it.script.next(Step::Open, Act::Fail(left.clone()));
    assert_eq!(refusal(it.terminals.spawn(&agent, request(None), &Cancel::new()).await), left);
    assert!(it.terminals.has_owner_activity(&agent));
    let error = it.host.dispose_agent(&agent).await.unwrap_err().to_string();
    assert!(error.contains("pid 99 survived"), "{error}");
    assert!(!it.terminals.has_owner_activity(&agent));
    it.host.dispose_agent(&agent).await.unwrap();
    it.host.dispose().await.unwrap();
}

/// Whatever wins, every opened session is closed, and nobody hears of a session that is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_spawns_cancellations_drops_and_disposals_leave_nothing() {
    let it = Fixture::boot().await;
    for round in 0..60 {
        let agent = it.host.agent(&format!("a{round}"));
        let cancel = Cancel::new();
        let spawns: Vec<_> = (0..6).map(|_| it.spawning(&agent, &cancel)).collect();
        let racers = async {
            match round % 3 {
                0 => cancel.cancel("raced"),
                1 => spawns.iter().for_each(tokio::task::JoinHandle::abort),
                _ => tokio::task::yield_now().await,
            }
        };
        let (disposed, ()) = tokio::join!(it.host.dispose_agent(&agent), racers);
        disposed.unwrap();
        assert!(!it.terminals.has_owner_activity(&agent));
        for spawn in spawns {
            match guarded("a spawn", spawn).await {
                Ok(Ok(_)) | Err(_) => {}
                Ok(Err(error)) => {
                    assert!(["CANCELLED", "OWNER_NOT_LIVE"].contains(&error.code()), "{error}");
                }
            }
        }
    }
    let lines = it.script.lines();
    let count = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
    assert_eq!(count("opened "), count("closed "));
    it.host.dispose().await.unwrap();
}
