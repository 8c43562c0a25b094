//! Settlement: the first one stands, it is announced once, and who was told hears no more of it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use dsh_core::Cancel;
use futures_util::{FutureExt as _, poll};
use jobs::{Ending, JobEnd, JobRegistry as _, JobStatus, Kill};
use testkit::guarded;

use super::{Cancelled, Work, World};

const LONG: Duration = Duration::from_hours(1);

#[tokio::test]
async fn a_job_runs_and_ends() {
    let world = World::new();
    let agent = world.agent("a");
    for (ending, status) in [
        (Ending::Completed, JobStatus::Completed),
        (Ending::Killed, JobStatus::Killed),
        (Ending::Failed, JobStatus::Failed),
    ] {
        let work = Work::new();
        let started = world.start(Some(&agent), &work).unwrap();
        assert_eq!(
            (started.status, started.detail, started.finished_at),
            (JobStatus::Running, None, None)
        );
        work.end(JobEnd::new(ending, "so it was"));
        let ended = world.ended(Some(&agent), started.id.as_str()).await;
        assert_eq!((ended.status, ended.detail.as_deref()), (status, Some("so it was")));
        assert!(ended.finished_at.unwrap() >= ended.started_at);
    }
    world.dispose().await;
}

#[tokio::test]
async fn a_kill_asks_and_the_end_comes_when_it_comes() {
    let world = World::new();
    let agent = world.agent("a");
    let work = Work::that(Cancelled::GoesOn);
    world.start(Some(&agent), &work).unwrap();
    let Ok(Kill::Requested(job)) = world.jobs.kill(Some(&agent), "test-1", "too slow") else {
        panic!("it was live");
    };
    assert_eq!(job.status, JobStatus::Stopping);
    assert_eq!(work.cancels()[0].reason, "too slow");
    assert_eq!(work.cancels()[0].cause, jobs::CancelCause::Kill);
    work.end(JobEnd::new(Ending::Killed, "at last"));
    let ended = world.ended(Some(&agent), "test-1").await;
    assert_eq!((ended.status, ended.detail.as_deref()), (JobStatus::Killed, Some("at last")));
    let Ok(Kill::AlreadyFinished(again)) = world.jobs.kill(Some(&agent), "test-1", "again") else {
        panic!("it was over");
    };
    assert_eq!(again, ended);
    assert_eq!(work.cancels().len(), 1);
    world.dispose().await;
}

#[tokio::test]
async fn of_an_end_and_a_kill_in_the_same_tick_the_works_own_word_stands() {
    for killed_first in [true, false] {
        let world = World::new();
        let agent = world.agent("a");
        let work = Work::new();
        world.start(Some(&agent), &work).unwrap();
        if !killed_first {
            work.complete();
        }
        // Where the work has ended, the registry has not heard of it yet.
        assert!(matches!(world.jobs.kill(Some(&agent), "test-1", "now"), Ok(Kill::Requested(_))));
        work.complete();
        let ended = world.ended(Some(&agent), "test-1").await;
        let expected = if killed_first { JobStatus::Killed } else { JobStatus::Completed };
        assert_eq!(ended.status, expected);
        testkit::wait_until("announced", || world.done() == [("test-1".to_owned(), true)]).await;
        world.dispose().await;
    }
}

#[tokio::test]
async fn work_that_cannot_be_cancelled_has_failed() {
    for (cancelled, cause) in
        [(Cancelled::Fails, "no way to reach it"), (Cancelled::Panics, "a bug")]
    {
        let world = World::new();
        let agent = world.agent("a");
        let work = Work::that(cancelled);
        work.put_out("so far");
        world.start(Some(&agent), &work).unwrap();
        let error = world.jobs.kill(Some(&agent), "test-1", "enough").unwrap_err();
        assert_eq!(error.code(), "CANCEL_FAILED");
        assert!(error.to_string().contains(cause) && error.to_string().contains("orphaned"));
        let failed = world.jobs.get(Some(&agent), "test-1").unwrap();
        assert_eq!(failed.status, JobStatus::Failed);
        assert!(failed.detail.unwrap().contains("orphaned"));
        // Its own end comes too late, and what it had put out is not lost.
        work.complete();
        let reading = world.jobs.read(Some(&agent), "test-1", &Cancel::new()).await.unwrap();
        assert_eq!(
            (reading.job.status, reading.output.text.as_str()),
            (JobStatus::Failed, "so far")
        );
        assert_eq!(world.done(), [("test-1".to_owned(), true)]);
        world.dispose().await;
    }
}

#[tokio::test]
async fn a_producer_that_panics_has_failed() {
    struct Bug;
    #[dsh_core::async_trait]
    impl jobs::JobWork for Bug {
        async fn done(&self) -> JobEnd {
            panic!("a bug")
        }
        fn cancel(&self, _: &jobs::JobCancel) -> anyhow::Result<()> {
            Ok(())
        }
    }
    let world = World::new();
    let mut request = super::request(None, &Work::new());
    request.run = Box::new(|| Ok(Arc::new(Bug)));
    world.jobs.start(request).unwrap();
    let ended = world.ended(None, "test-1").await;
    assert_eq!(ended.status, JobStatus::Failed);
    assert_eq!(ended.detail.as_deref(), Some("its producer panicked: a bug"));
    world.dispose().await;
}

#[tokio::test]
async fn an_end_that_nobody_was_told_of_is_announced_as_such_once() {
    let world = World::new();
    let agent = world.agent("a");
    let work = Work::new();
    world.start(Some(&agent), &work).unwrap();
    // A look at a live job tells of no end.
    world.jobs.read(Some(&agent), "test-1", &Cancel::new()).await.unwrap();
    let short = Duration::from_millis(1);
    world.jobs.wait(Some(&agent), "test-1", short, &Cancel::new()).await.unwrap();
    work.complete();
    world.ended(Some(&agent), "test-1").await;
    testkit::wait_until("announced", || world.done() == [("test-1".to_owned(), false)]).await;
    world.jobs.read(Some(&agent), "test-1", &Cancel::new()).await.unwrap();
    world.jobs.wait(Some(&agent), "test-1", LONG, &Cancel::new()).await.unwrap();
    world.jobs.kill(Some(&agent), "test-1", "late").unwrap();
    assert_eq!(world.done().len(), 1);
    world.dispose().await;
}

#[tokio::test]
async fn a_wait_is_told_before_anybody_is_notified() {
    let world = World::new();
    let agent = world.agent("a");
    let work = Work::new();
    world.start(Some(&agent), &work).unwrap();
    let cancel = Cancel::new();
    let waiting = world.jobs.wait(Some(&agent), "test-1", LONG, &cancel);
    tokio::pin!(waiting);
    assert!(poll!(&mut waiting).is_pending());
    work.complete();
    world.ended(Some(&agent), "test-1").await;
    assert_eq!(world.done(), [], "the waiter first");
    let ended = guarded("wait", waiting).await.unwrap();
    assert_eq!(ended.status, JobStatus::Completed);
    assert_eq!(world.done(), [("test-1".to_owned(), true)]);
    assert_eq!(work.cancels(), [], "a wait cancels nothing");
    world.dispose().await;
}

#[tokio::test]
async fn a_wait_that_is_given_up_tells_nobody() {
    let world = World::new();
    let agent = world.agent("a");
    let work = Work::new();
    world.start(Some(&agent), &work).unwrap();
    let cancel = Cancel::new();
    let mut waiting = Box::pin(world.jobs.wait(Some(&agent), "test-1", LONG, &cancel));
    assert!(poll!(&mut waiting).is_pending());
    work.complete();
    world.ended(Some(&agent), "test-1").await;
    drop(waiting);
    assert_eq!(world.done(), [("test-1".to_owned(), false)]);
    world.dispose().await;
}

#[tokio::test]
async fn a_wait_has_a_bound_and_an_end_of_its_own() {
    let world = World::new();
    let agent = world.agent("a");
    let work = Work::new();
    world.start(Some(&agent), &work).unwrap();
    let wait = |most, cancel| {
        let jobs = &world.jobs;
        let agent = &agent;
        async move { jobs.wait(Some(agent), "test-1", most, &cancel).await }
    };
    let zero = wait(Duration::ZERO, Cancel::new()).await.unwrap_err();
    assert_eq!(zero.code(), "INVALID_ARGS");
    let running = guarded("wait", wait(Duration::from_millis(1), Cancel::new())).await.unwrap();
    assert_eq!(running.status, JobStatus::Running);
    let cancel = Cancel::new();
    cancel.cancel("no time");
    let cancelled = wait(LONG, cancel.clone()).await.unwrap_err();
    assert_eq!((cancelled.code(), cancelled.to_string().as_str()), ("CANCELLED", "no time"));
    assert_eq!(work.cancels(), []);
    work.complete();
    world.ended(Some(&agent), "test-1").await;
    // Of a job that has ended the cancelled caller still hears.
    assert_eq!(wait(LONG, cancel).await.unwrap().status, JobStatus::Completed);
    world.dispose().await;
}

#[tokio::test]
async fn an_end_and_an_abort_in_the_same_tick_give_the_end() {
    let world = World::new();
    let agent = world.agent("a");
    let work = Work::new();
    world.start(Some(&agent), &work).unwrap();
    let cancel = Cancel::new();
    let mut waiting = Box::pin(world.jobs.wait(Some(&agent), "test-1", LONG, &cancel));
    assert!(poll!(&mut waiting).is_pending());
    work.complete();
    world.ended(Some(&agent), "test-1").await;
    cancel.cancel("too late");
    let ended = waiting.now_or_never().unwrap().unwrap();
    assert_eq!(ended.status, JobStatus::Completed);
    assert_eq!(world.done(), [("test-1".to_owned(), true)]);

    // The other way round: the abort comes first, and the job ends before the caller looks.
    let work = Work::new();
    world.start(Some(&agent), &work).unwrap();
    let cancel = Cancel::new();
    let mut waiting = Box::pin(world.jobs.wait(Some(&agent), "test-2", LONG, &cancel));
    assert!(poll!(&mut waiting).is_pending());
    cancel.cancel("just in time");
    work.complete();
    world.ended(Some(&agent), "test-2").await;
    assert_eq!(waiting.now_or_never().unwrap().unwrap().status, JobStatus::Completed);
    world.dispose().await;
}

#[tokio::test]
async fn changes_are_told_and_a_listener_that_panics_harms_nobody() {
    let world = World::new();
    let agent = world.agent("a");
    world.jobs.on_job_done(&world.root, "bug", Arc::new(|_| panic!("a bug"))).unwrap();
    world.jobs.on_jobs_changed(&world.root, "bug", Arc::new(|_| panic!("a bug"))).unwrap();
    let seen = Arc::<Mutex<Vec<JobStatus>>>::default();
    let (jobs, heard) = (world.jobs.clone(), Arc::clone(&seen));
    let listener = Arc::new(move |owner: Option<&Arc<agents::Agent>>| {
        heard.lock().unwrap().push(jobs.list(owner)[0].status);
    });
    world.jobs.on_jobs_changed(&world.root, "test", listener).unwrap();
    let work = Work::that(Cancelled::GoesOn);
    world.start(Some(&agent), &work).unwrap();
    world.jobs.kill(Some(&agent), "test-1", "enough").unwrap();
    work.complete();
    testkit::wait_until("announced", || !world.done().is_empty()).await;
    let expected = [JobStatus::Running, JobStatus::Stopping, JobStatus::Completed];
    assert_eq!(*seen.lock().unwrap(), expected);
    world.dispose().await;
}

#[tokio::test]
async fn a_second_kill_of_a_job_that_stops_asks_again() {
    let world = World::new();
    let agent = world.agent("a");
    let work = Work::that(Cancelled::GoesOn);
    world.start(Some(&agent), &work).unwrap();
    for reason in ["first", "second"] {
        let Ok(Kill::Requested(job)) = world.jobs.kill(Some(&agent), "test-1", reason) else {
            panic!("it was live");
        };
        assert_eq!(job.status, JobStatus::Stopping);
    }
    let reasons: Vec<String> = work.cancels().into_iter().map(|it| it.reason).collect();
    assert_eq!(reasons, ["first", "second"]);
    work.end(JobEnd::new(Ending::Killed, "at last"));
    assert_eq!(world.ended(Some(&agent), "test-1").await.status, JobStatus::Killed);
    testkit::wait_until("announced", || world.done() == [("test-1".to_owned(), true)]).await;
    world.dispose().await;
}

#[tokio::test]
async fn an_end_that_comes_second_hands_over_what_it_has_read() {
    /// Its cancellation fails while its rest is being read.
    struct Raced(jobs::LocalJobs, Option<&'static str>);
    #[dsh_core::async_trait]
    impl jobs::JobWork for Raced {
        async fn done(&self) -> JobEnd {
            JobEnd { output: self.1.map(str::to_owned), ..JobEnd::new(Ending::Completed, "done") }
        }
        async fn read(&self) -> jobs::JobOutput {
            let killed = self.0.kill(None, "test-1", "now").map_err(|it| it.code());
            assert_eq!(killed, Err("CANCEL_FAILED"));
            jobs::JobOutput { text: "the rest".to_owned(), ..Default::default() }
        }
        fn cancel(&self, _: &jobs::JobCancel) -> anyhow::Result<()> {
            anyhow::bail!("no way to reach it")
        }
    }
    for (output, texts) in [(None, ["the rest", ""]), (Some("the answer"), ["the answer"; 2])] {
        let world = World::new();
        let mut request = super::request(None, &Work::new());
        let jobs = world.jobs.clone();
        request.run = Box::new(move || Ok(Arc::new(Raced(jobs, output))));
        world.jobs.start(request).unwrap();
        assert_eq!(world.ended(None, "test-1").await.status, JobStatus::Failed);
        for text in texts {
            let reading = world.jobs.read(None, "test-1", &Cancel::new()).await.unwrap();
            let status = reading.job.status;
            assert_eq!((reading.output.text.as_str(), status), (text, JobStatus::Failed));
        }
        assert_eq!(world.done(), [("test-1".to_owned(), true)]);
        world.dispose().await;
    }
}
