//! Admission: what is refused before anything runs, and what is registered.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use dsh_core::{Cancel, Scope};
use jobs::{JobError, JobKind, JobRegistry as _, JobRequest, JobStatus};
use testkit::guarded;

use super::{Cancelled, KIND, Work, World, request};

#[tokio::test]
async fn nothing_runs_that_is_refused() {
    let world = World::new();
    let agent = world.agent("a");
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = |edit: fn(&mut JobRequest)| {
        let (runs, work) = (Arc::clone(&runs), Work::new());
        let mut request = request(Some(&agent), &work);
        request.run = Box::new(move || {
            runs.fetch_add(1, Ordering::SeqCst);
            Ok(work)
        });
        edit(&mut request);
        world.jobs.start(request).map_err(|error| error.code())
    };
    assert_eq!(counted(|it| it.kind = JobKind::new("")).unwrap_err(), "INVALID_ARGS");
    assert_eq!(counted(|it| it.label = " ".to_owned()).unwrap_err(), "INVALID_ARGS");
    assert_eq!(counted(|it| it.output_limit_bytes = Some(0)).unwrap_err(), "INVALID_ARGS");
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    assert_eq!(counted(|it| it.output_limit_bytes = Some(1)).unwrap().id.as_str(), "test-1");
    assert_eq!(runs.load(Ordering::SeqCst), 1, "once");

    world.agents.dispose(&agent).await.unwrap();
    assert_eq!(counted(|_| {}).unwrap_err(), "OWNER_NOT_LIVE");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    world.dispose().await;
}

#[tokio::test]
async fn without_a_controller_for_the_owner_nothing_starts() {
    let world = World::without_controller();
    let (served, other) = (world.agent("served"), world.agent("other"));
    let work = Work::new();
    let refused = world.start(Some(&served), &work).unwrap_err();
    assert_eq!(refused.code(), "NO_JOBS");
    let scope = world.root.child("controller").unwrap();
    let only = Arc::clone(&served);
    let controller = Arc::new(move |owner: Option<&Arc<agents::Agent>>| {
        owner.is_some_and(|it| Arc::ptr_eq(it, &only))
    });
    world.jobs.attach_controller(&scope, "one", controller).unwrap();
    assert_eq!(world.start(Some(&other), &work).unwrap_err().code(), "NO_JOBS");
    assert_eq!(world.start(None, &work).unwrap_err().code(), "NO_JOBS");
    world.start(Some(&served), &work).unwrap();
    scope.dispose().await.unwrap();
    assert_eq!(world.start(Some(&served), &work).unwrap_err().code(), "NO_JOBS");
    world.jobs.attach_controller(&world.root, "bug", Arc::new(|_| panic!("a bug"))).unwrap();
    assert_eq!(world.start(Some(&served), &work).unwrap_err().code(), "NO_JOBS");
    world.dispose().await;
}

#[tokio::test]
async fn a_start_that_fails_registers_nothing() {
    let world = World::new();
    let agent = world.agent("a");
    let start = |run| {
        let owner = Some(Arc::clone(&agent));
        let label = "never".to_owned();
        world.jobs.start(JobRequest { kind: KIND, label, owner, output_limit_bytes: None, run })
    };
    let refused = start(Box::new(|| Err(JobError::ServiceDisposing.into()))).unwrap_err();
    let JobError::NotStarted(cause) = refused else { panic!("{refused}") };
    // The producer gets its own error back.
    assert!(matches!(cause.downcast_ref(), Some(JobError::ServiceDisposing)));
    let panicked = start(Box::new(|| panic!("a bug"))).unwrap_err();
    assert_eq!(panicked.code(), "NOT_STARTED");
    assert!(panicked.to_string().contains("a bug"), "{panicked}");
    assert_eq!(world.jobs.list(Some(&agent)), []);
    assert_eq!(world.start(Some(&agent), &Work::new()).unwrap().id.as_str(), "test-1");
    world.dispose().await;
}

#[tokio::test]
async fn ids_count_for_each_kind() {
    let world = World::new();
    let (one, two) = (world.agent("one"), world.agent("two"));
    let other = JobKind::new("other");
    let mut ids = Vec::new();
    for (owner, kind) in [(&one, KIND), (&two, KIND), (&one, other), (&two, KIND), (&two, other)] {
        let work = Work::new();
        let request = JobRequest { kind, ..request(Some(owner), &work) };
        ids.push(world.jobs.start(request).unwrap().id.to_string());
    }
    assert_eq!(ids, ["test-1", "test-2", "other-1", "test-3", "other-2"]);
    world.dispose().await;
}

#[tokio::test]
async fn an_owner_has_ten_live_jobs_and_no_more() {
    let world = World::new();
    let (agent, other) = (world.agent("a"), world.agent("b"));
    let works: Vec<_> = (0..10).map(|_| Work::that(Cancelled::GoesOn)).collect();
    for work in &works {
        world.start(Some(&agent), work).unwrap();
    }
    let refused = world.start(Some(&agent), &Work::new()).unwrap_err();
    assert_eq!(refused.code(), "TOO_MANY_JOBS");
    let text = refused.to_string();
    assert!(text.contains("10") && text.contains("job_kill"), "{text}");
    world.start(Some(&other), &Work::new()).unwrap();
    for _ in 0..11 {
        world.start(None, &Work::new()).unwrap();
    }
    // One that is stopping still counts.
    world.jobs.kill(Some(&agent), "test-1", "enough").unwrap();
    assert_eq!(world.jobs.get(Some(&agent), "test-1").unwrap().status, JobStatus::Stopping);
    assert_eq!(world.start(Some(&agent), &Work::new()).unwrap_err().code(), "TOO_MANY_JOBS");
    works[0].complete();
    world.ended(Some(&agent), "test-1").await;
    world.start(Some(&agent), &Work::new()).unwrap();
    for work in &works {
        work.complete();
    }
    world.dispose().await;
}

#[tokio::test]
async fn a_start_under_way_counts_and_blocks_nobody() {
    let world = World::new();
    let agent = world.agent("a");
    for _ in 0..9 {
        world.start(Some(&agent), &Work::new()).unwrap();
    }
    let inside = world.jobs.clone();
    let mut outer = request(Some(&agent), &Work::new());
    let inner = request(Some(&agent), &Work::new());
    let owner = Arc::clone(&agent);
    outer.run = Box::new(move || {
        assert_eq!(inside.start(inner).unwrap_err().code(), "TOO_MANY_JOBS");
        assert_eq!(inside.list(Some(&owner)).len(), 9, "not registered before it has started");
        Ok(Work::new())
    });
    world.jobs.start(outer).unwrap();
    assert_eq!(world.jobs.list(Some(&agent)).len(), 10);
    world.dispose().await;
}

#[tokio::test]
async fn jobs_are_their_owners() {
    let world = World::new();
    let (agent, other) = (world.agent("a"), world.agent("b"));
    world.start(Some(&agent), &Work::new()).unwrap();
    world.start(None, &Work::new()).unwrap();
    let unknown = |id: &str| format!("unknown job {id}: job_list shows the jobs there are");
    for caller in [Some(&other), None] {
        // An id of another's and one that never was give the same.
        for id in ["test-1", "test-9", ""] {
            let refused = [
                world.jobs.get(caller, id).unwrap_err(),
                world.jobs.read(caller, id, &Cancel::new()).await.unwrap_err(),
                world.jobs.kill(caller, id, "mine").unwrap_err(),
                world
                    .jobs
                    .wait(caller, id, std::time::Duration::MAX, &dsh_core::Cancel::new())
                    .await
                    .unwrap_err(),
            ];
            for error in refused {
                assert_eq!((error.code(), error.to_string()), ("UNKNOWN_JOB", unknown(id)));
            }
        }
        let listed = world.jobs.list(caller);
        assert_eq!(listed.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["test-2"]);
    }
    assert_eq!(world.jobs.list(Some(&agent)).len(), 2);
    assert!(matches!(
        world.jobs.kill(Some(&other), "test-2", "open"),
        Ok(jobs::Kill::Requested(_))
    ));
    world.dispose().await;
}

#[tokio::test]
async fn an_agent_of_the_same_id_is_a_stranger() {
    let world = World::new();
    let first = world.agent("a");
    let work = Work::new();
    world.start(Some(&first), &work).unwrap();
    world.agents.dispose(&first).await.unwrap();
    let second = world.agent("a");
    assert_eq!(world.jobs.list(Some(&second)), []);
    assert_eq!(world.jobs.get(Some(&second), "test-1").unwrap_err().code(), "UNKNOWN_JOB");
    assert_eq!(world.start(Some(&first), &work).unwrap_err().code(), "OWNER_NOT_LIVE");
    assert_eq!(world.start(Some(&second), &Work::new()).unwrap().id.as_str(), "test-2");
    world.dispose().await;
}

#[tokio::test]
async fn the_end_of_an_owner_waits_for_a_start_and_ends_its_job() {
    let world = World::new();
    let agent = world.agent("a");
    let work = Work::new();
    let (inside, entered) = tokio::sync::oneshot::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let mut slow = request(Some(&agent), &work);
    let started = Arc::clone(&work);
    slow.run = Box::new(move || {
        inside.send(()).unwrap();
        may_go_on.recv().unwrap();
        Ok(started)
    });
    let (jobs, runtime) = (world.jobs.clone(), tokio::runtime::Handle::current());
    let starting = std::thread::spawn(move || {
        let _entered = runtime.enter();
        jobs.start(slow).map(|job| job.id)
    });
    guarded("the start runs", entered).await.unwrap();
    let ending = world.agents.dispose(&agent);
    tokio::pin!(ending);
    assert!(futures_util::poll!(&mut ending).is_pending());
    // From here on nothing new starts, and the end is still to come.
    testkit::wait_until("the end has begun", || agent.is_ending()).await;
    let refused = world.start(Some(&agent), &Work::new()).unwrap_err();
    assert_eq!(refused.code(), "OWNER_NOT_LIVE");
    assert!(futures_util::poll!(&mut ending).is_pending());
    assert_eq!(work.cancels(), []);
    go_on.send(()).unwrap();
    guarded("disposal", ending).await.unwrap();
    assert_eq!(starting.join().unwrap().unwrap().as_str(), "test-1");
    assert_eq!(work.cancels().len(), 1);
    world.dispose().await;
}

#[tokio::test]
async fn names_of_listeners_and_controllers_are_taken_once() {
    let world = World::new();
    let scope = Scope::root("other");
    assert!(world.jobs.attach_controller(&scope, "all", Arc::new(|_| true)).is_err());
    assert!(world.jobs.on_job_done(&scope, "test", Arc::new(|_| {})).is_err());
    world.jobs.on_jobs_changed(&scope, "test", Arc::new(|_| {})).unwrap();
    assert!(world.jobs.on_jobs_changed(&scope, "test", Arc::new(|_| {})).is_err());
    scope.dispose().await.unwrap();
    world.dispose().await;
}
