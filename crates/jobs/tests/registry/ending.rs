//! The end of owners and of the service: their jobs are cancelled, awaited and forgotten.

use std::sync::Arc;

use futures_util::poll;
use jobs::{CancelCause, JobEnd, JobRegistry as _};
use testkit::guarded;

use super::{Cancelled, Work, World};

#[tokio::test]
async fn the_end_of_an_owner_awaits_its_jobs_and_no_others() {
    let world = World::new();
    let (agent, other) = (world.agent("a"), world.agent("b"));
    let slow = Work::that(Cancelled::GoesOn);
    let (quick, foreign, open) = (Work::new(), Work::new(), Work::new());
    for (owner, work) in
        [(Some(&agent), &slow), (Some(&agent), &quick), (Some(&other), &foreign), (None, &open)]
    {
        world.start(owner, work).unwrap();
    }
    let mut ending = Box::pin(world.agents.dispose(&agent));
    assert!(poll!(&mut ending).is_pending());
    testkit::wait_until("cancelled", || slow.cancels().len() == 1).await;
    assert_eq!(slow.cancels()[0].cause, CancelCause::End);
    assert!(poll!(&mut ending).is_pending(), "one still works");
    slow.end(JobEnd::new(jobs::Ending::Killed, "at last"));
    guarded("disposal", ending).await.unwrap();
    assert_eq!(quick.cancels().len(), 1);
    assert_eq!((foreign.cancels().len(), open.cancels().len()), (0, 0));
    assert_eq!(world.jobs.list(Some(&agent)).len(), 1, "what is nobody's is left");
    assert_eq!(world.jobs.list(Some(&other)).len(), 2);
    // Nobody is notified of what the end of the owner ended.
    assert!(world.done().iter().all(|(_, told)| *told), "{:?}", world.done());
    world.dispose().await;
}

#[tokio::test]
async fn work_that_cannot_be_cancelled_is_named_once_and_given_up() {
    let world = World::new();
    let agent = world.agent("a");
    let (lost, quick) = (Work::that(Cancelled::Fails), Work::new());
    world.start(Some(&agent), &lost).unwrap();
    world.start(Some(&agent), &quick).unwrap();
    let error = guarded("disposal", world.agents.dispose(&agent)).await.unwrap_err();
    let text = error.to_string();
    for part in ["test-1", "no way to reach it", "orphaned"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("test-2"), "{text}");
    assert_eq!(quick.cancels().len(), 1, "the others are ended all the same");
    // Who counts the ends hears of each one, and that nobody is left to be notified.
    testkit::wait_until("announced", || world.done().len() == 2).await;
    let mut done = world.done();
    done.sort();
    assert_eq!(done, [("test-1".to_owned(), true), ("test-2".to_owned(), true)]);
    guarded("again", world.agents.dispose(&agent)).await.unwrap();
    world.dispose().await;
    // Its task is gone, though the work never ended.
    assert_eq!(Arc::strong_count(&lost), 1);
}

#[tokio::test]
async fn the_end_of_the_service_ends_all_and_refuses_more() {
    let world = World::new();
    let agent = world.agent("a");
    let works = [Work::new(), Work::that(Cancelled::GoesOn)];
    world.start(Some(&agent), &works[0]).unwrap();
    world.start(None, &works[1]).unwrap();
    let World { root, jobs, .. } = &world;
    let mut ending = Box::pin(root.dispose());
    assert!(poll!(&mut ending).is_pending());
    testkit::wait_until("cancelled", || works[1].cancels().len() == 1).await;
    works[1].complete();
    guarded("disposal", ending).await.unwrap();
    assert_eq!(works[0].cancels().len(), 1);
    assert_eq!(jobs.list(None), []);
    assert_eq!(world.start(None, &Work::new()).unwrap_err().code(), "NO_JOBS", "nobody serves");
    for work in works {
        assert_eq!(Arc::strong_count(&work), 1, "nothing holds it any more");
    }
}

#[tokio::test]
async fn a_waiter_hears_of_the_end_of_its_owner() {
    let world = World::new();
    let agent = world.agent("a");
    world.start(Some(&agent), &Work::new()).unwrap();
    let cancel = dsh_core::Cancel::new();
    let most = std::time::Duration::from_hours(1);
    let waiting = world.jobs.wait(Some(&agent), "test-1", most, &cancel);
    let (waited, ended) = tokio::join!(waiting, world.agents.dispose(&agent));
    ended.unwrap();
    assert_eq!(waited.unwrap().status, jobs::JobStatus::Killed);
    world.dispose().await;
}

#[tokio::test]
async fn what_the_end_of_the_service_gives_up_is_announced_to_owners_and_for_nobody() {
    let world = World::new();
    let agent = world.agent("a");
    // The service is apart, as where only its row stops.
    let scope = dsh_core::Scope::root("service");
    let jobs = jobs::LocalJobs::new(&scope, 10).unwrap();
    jobs.attach_controller(&world.root, "all", Arc::new(|_| true)).unwrap();
    let seen = Arc::<std::sync::Mutex<Vec<(String, bool, bool)>>>::default();
    let heard = Arc::clone(&seen);
    let listener = Arc::new(move |done: &jobs::JobDone| {
        let end = (done.job.id.to_string(), done.owner.is_some(), done.told.is_set());
        heard.lock().unwrap().push(end);
    });
    jobs.on_job_done(agent.scope(), "loop", listener).unwrap();
    jobs.start(super::request(Some(&agent), &Work::that(Cancelled::Fails))).unwrap();
    jobs.start(super::request(None, &Work::that(Cancelled::Panics))).unwrap();
    let error = guarded("disposal", scope.dispose()).await.unwrap_err().to_string();
    assert!(error.contains("test-1") && error.contains("test-2"), "{error}");
    let expected = [("test-1".to_owned(), true, true), ("test-2".to_owned(), false, true)];
    assert_eq!(*seen.lock().unwrap(), expected);
    world.dispose().await;
}
