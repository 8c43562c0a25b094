//! Scopes: order, joining, retries, children, tasks.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use dsh_core::Scope;
use tokio::sync::{Notify, oneshot};

/// A hang guard, not a measurement.
async fn guarded<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.unwrap()
}

#[tokio::test]
async fn disposal_is_ordered_awaited_joinable_and_survives_failures() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let gate = Arc::new(Notify::new());
    let scope = Scope::root("test");
    for label in ["oldest", "fails", "panics", "newest"] {
        let (log, gate) = (Arc::clone(&log), Arc::clone(&gate));
        scope
            .defer(label, move || {
                let (log, gate) = (Arc::clone(&log), Arc::clone(&gate));
                async move {
                    if label == "newest" {
                        gate.notified().await;
                    }
                    log.lock().unwrap().push(label);
                    match label {
                        "fails" => anyhow::bail!("stuck child"),
                        "panics" => panic!("bug"),
                        _ => Ok(()),
                    }
                }
            })
            .unwrap();
    }
    // A caller that gives up does not abandon the disposal it started.
    let mut given_up = Box::pin(scope.dispose());
    assert!(futures_util::poll!(&mut given_up).is_pending());
    drop(given_up);
    assert_eq!(scope.pending(), ["newest", "panics", "fails", "oldest"]);
    assert!(scope.defer("too late", || async { Ok(()) }).is_err());
    assert!(scope.child("too late").is_err());
    assert!(scope.spawn("too late", |_| async { Ok(()) }).is_err());

    let (first, second) = (scope.dispose(), scope.dispose());
    gate.notify_one();
    let (first, second) = guarded(async { tokio::join!(first, second) }).await;
    assert_eq!(*log.lock().unwrap(), ["newest", "panics", "fails", "oldest"]);
    let text = first.unwrap_err().to_string();
    assert_eq!(
        text,
        "2 cleanup(s) failed in scope `test`\n  panics: cleanup panicked: bug\n  fails: stuck child"
    );
    assert_eq!(second.unwrap_err().to_string(), text, "callers at the same time join one run");

    // A later caller tries again what failed, and only that.
    assert_eq!(scope.dispose().await.unwrap_err().to_string(), text);
    assert_eq!(*log.lock().unwrap(), ["newest", "panics", "fails", "oldest", "panics", "fails"]);
    assert_eq!(scope.pending(), ["panics", "fails"]);
}

/// A cleanup that fails until `fixed`.
fn stubborn(scope: &Scope, runs: &Arc<AtomicUsize>, succeed_at: usize) -> dsh_core::scope::Effect {
    let runs = Arc::clone(runs);
    scope
        .defer("close pty-1", move || {
            let run = runs.fetch_add(1, SeqCst) + 1;
            async move {
                anyhow::ensure!(run >= succeed_at, "pid 7 survives SIGKILL");
                Ok(())
            }
        })
        .unwrap()
}

#[tokio::test]
async fn an_undo_that_failed_is_tried_again_until_it_succeeds_and_never_after() {
    let runs = Arc::new(AtomicUsize::new(0));
    let scope = Scope::root("test");
    let effect = stubborn(&scope, &runs, 3);
    assert_eq!(effect.undo().await.unwrap_err().to_string(), "pid 7 survives SIGKILL");
    assert_eq!(effect.undo().await.unwrap_err().to_string(), "pid 7 survives SIGKILL");
    assert_eq!(scope.pending(), ["close pty-1"]);
    effect.undo().await.unwrap();
    assert!(scope.pending().is_empty());
    effect.undo().await.unwrap();
    scope.dispose().await.unwrap();
    assert_eq!(runs.load(SeqCst), 3);
}

#[tokio::test]
async fn one_effect_can_be_undone_early_once_and_leaves_no_residue() {
    let (runs, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let parent = Scope::root("app");
    let owner = parent.child("agent-1").unwrap();
    let (counter, wait) = (Arc::clone(&runs), Arc::clone(&gate));
    let session = owner
        .defer("close pty-1", move || {
            counter.fetch_add(1, SeqCst);
            let wait = Arc::clone(&wait);
            async move {
                wait.notified().await;
                Ok(())
            }
        })
        .unwrap();
    // An explicit close races with the owner's disposal: one run, both wait for it.
    let open = async {
        tokio::task::yield_now().await;
        gate.notify_one();
    };
    let (explicit, disposal, ()) =
        guarded(async { tokio::join!(session.undo(), owner.dispose(), open) }).await;
    assert!(explicit.is_ok() && disposal.is_ok());
    assert_eq!(runs.load(SeqCst), 1);
    assert!(parent.pending().is_empty(), "a disposed owner leaves nothing behind in its parent");

    let dismissed = parent.defer("never runs", || async { anyhow::bail!("ran") }).unwrap();
    dismissed.dismiss();
    parent.dispose().await.unwrap();
}

#[tokio::test]
async fn what_a_cleanup_holds_is_gone_when_it_is_done() {
    let held = Arc::new(());
    let scope = Scope::root("test");
    let inside = Arc::clone(&held);
    let effect = scope
        .defer("release", move || {
            let inside = Arc::clone(&inside);
            async move {
                drop(inside);
                Ok(())
            }
        })
        .unwrap();
    effect.undo().await.unwrap();
    assert_eq!(Arc::strong_count(&held), 1);
}

#[tokio::test]
async fn a_child_that_failed_is_tried_again_by_its_parent_and_leaves_it_once_clean() {
    let runs = Arc::new(AtomicUsize::new(0));
    let parent = Scope::root("app");
    let owner = parent.child("agent-1").unwrap();
    stubborn(&owner, &runs, 4);
    owner.dispose().await.unwrap_err();
    assert_eq!(parent.pending(), ["agent-1"]);
    let error = parent.dispose().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "1 cleanup(s) failed in scope `app`
  agent-1: 1 cleanup(s) failed in scope `agent-1`
    close pty-1: pid 7 survives SIGKILL"
    );
    owner.dispose().await.unwrap_err();
    assert_eq!(parent.pending(), ["agent-1"]);
    owner.dispose().await.unwrap();
    assert!(parent.pending().is_empty());
    parent.dispose().await.unwrap();
    assert_eq!(runs.load(SeqCst), 4);
}

#[tokio::test]
async fn the_last_effect_undone_after_a_failed_disposal_takes_the_child_out_of_its_parents() {
    let runs = Arc::new(AtomicUsize::new(0));
    let root = Scope::root("app");
    let plugin = root.child("terminal").unwrap();
    let owner = plugin.child("agent-1").unwrap();
    let undone = stubborn(&owner, &runs, 2);
    let dismissed = owner.defer("gone", || async { anyhow::bail!("still there") }).unwrap();
    plugin.dispose().await.unwrap_err();
    assert_eq!(root.pending(), ["terminal"]);
    undone.undo().await.unwrap();
    assert_eq!(plugin.pending(), ["agent-1"]);
    dismissed.dismiss();
    assert!(plugin.pending().is_empty() && root.pending().is_empty());
    root.dispose().await.unwrap();
}

#[tokio::test]
async fn spawned_tasks_are_cancelled_and_joined() {
    let scope = Scope::root("test");
    let (send, mut receive) = oneshot::channel();
    scope
        .spawn("pump", |stop| async move {
            stop.cancelled().await;
            tokio::task::yield_now().await;
            send.send("stopped").ok();
            Ok(())
        })
        .unwrap();
    guarded(scope.dispose()).await.unwrap();
    assert_eq!(receive.try_recv().unwrap(), "stopped");
}

#[tokio::test]
async fn one_spawned_task_can_be_stopped_alone() {
    let scope = Scope::root("test");
    let stopped = |label: &str| {
        scope
            .spawn(label, |stop| async move {
                stop.cancelled().await;
                Ok(())
            })
            .unwrap()
    };
    let (first, _second) = (stopped("first"), stopped("second"));
    guarded(first.undo()).await.unwrap();
    assert_eq!(scope.pending(), ["second"]);
    guarded(scope.dispose()).await.unwrap();
}

#[tokio::test]
async fn a_task_that_ended_well_leaves_and_one_that_did_not_is_reported_once() {
    let scope = Scope::root("test");
    let (well, ended) = oneshot::channel();
    let task = |_| async {
        well.send(()).ok();
        Ok(())
    };
    scope.spawn("well", task).unwrap();
    scope.spawn("badly", |_| async { anyhow::bail!("lost the line") }).unwrap();
    scope.spawn("panics", |_| async { panic!("bug") }).unwrap();
    guarded(ended).await.unwrap();
    while scope.pending().len() > 2 {
        tokio::task::yield_now().await;
    }
    let error = guarded(scope.dispose()).await.unwrap_err();
    let labels: Vec<&str> = error.failures.iter().map(|(label, _)| label.as_str()).collect();
    assert_eq!(labels, ["panics", "badly"]);
    assert_eq!(error.failures[1].1.to_string(), "lost the line");
    scope.dispose().await.unwrap();
}

#[tokio::test]
async fn disposal_first_tells_running_operations_to_stop() {
    let scope = Scope::root("test");
    let child = scope.child("agent-1").unwrap();
    let token = child.token().clone();
    let operation = tokio::spawn(async move { token.cancelled().await });
    let mut operation = Some(operation);
    scope
        .defer("await operation", move || {
            let operation = operation.take();
            async move {
                match operation {
                    Some(operation) => Ok(operation.await?),
                    None => Ok(()),
                }
            }
        })
        .unwrap();
    guarded(scope.dispose()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_registration_and_disposal_never_loses_a_cleanup() {
    for _ in 0..200 {
        let (accepted, ran) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let scope = Scope::root("race");
        let mut writers = tokio::task::JoinSet::new();
        for kind in 0..8 {
            let (scope, accepted, ran) = (scope.clone(), Arc::clone(&accepted), Arc::clone(&ran));
            writers.spawn(async move {
                for _ in 0..20 {
                    let (by_cleanup, by_task) = (Arc::clone(&ran), Arc::clone(&ran));
                    let cleanup = move || {
                        by_cleanup.fetch_add(1, SeqCst);
                        async { Ok(()) }
                    };
                    let registered = match kind % 3 {
                        0 => scope.defer("cleanup", cleanup).is_ok(),
                        // A child may be disposed before it gets its cleanup.
                        1 => scope
                            .child("child")
                            .is_ok_and(|child| child.defer("cleanup", cleanup).is_ok()),
                        _ => scope
                            .spawn("task", move |stop| async move {
                                stop.cancelled().await;
                                by_task.fetch_add(1, SeqCst);
                                Ok(())
                            })
                            .is_ok(),
                    };
                    accepted.fetch_add(usize::from(registered), SeqCst);
                    tokio::task::yield_now().await;
                }
            });
        }
        guarded(scope.dispose()).await.unwrap();
        while writers.join_next().await.is_some() {}
        assert_eq!(accepted.load(SeqCst), ran.load(SeqCst));
        assert!(scope.pending().is_empty());
    }
}
