//! Reading: deltas of streams, answers that stay, and what is kept how long.

use std::sync::{Arc, Weak};

use dsh_core::Cancel;
use jobs::{Ending, JobEnd, JobRegistry as _, JobStatus};

use super::{Work, World, request};

#[tokio::test]
async fn a_stream_is_read_once_and_its_rest_after_the_end() {
    let world = World::new();
    let agent = world.agent("a");
    let work = Work::new();
    world.start(Some(&agent), &work).unwrap();
    let read = async || {
        let reading = world.jobs.read(Some(&agent), "test-1", &Cancel::new()).await.unwrap();
        (reading.output.text, reading.job.status)
    };
    assert_eq!(read().await, (String::new(), JobStatus::Running));
    work.put_out("one");
    assert_eq!(read().await, ("one".to_owned(), JobStatus::Running));
    work.put_out("two");
    work.put_out(", three");
    work.complete();
    world.ended(Some(&agent), "test-1").await;
    assert_eq!(read().await, ("two, three".to_owned(), JobStatus::Completed));
    assert_eq!(read().await, (String::new(), JobStatus::Completed));
    world.dispose().await;
}

/// Whoever cancels does not get what was read, so it is there for the next reading; and nobody has
/// been told of the end.
#[tokio::test]
async fn a_cancelled_reading_takes_nothing() {
    let world = World::new();
    let agent = world.agent("a");
    let work = Work::new();
    world.start(Some(&agent), &work).unwrap();
    let (cancelled, live) = (Cancel::new(), Cancel::new());
    cancelled.cancel("gone");
    let read = async |cancel| {
        let reading = world.jobs.read(Some(&agent), "test-1", cancel).await;
        reading.map(|it| (it.output.text, it.job.status)).map_err(|it| it.code())
    };
    let refused = Err("CANCELLED");
    work.put_out("one, ");
    assert_eq!(read(&cancelled).await, refused);
    work.put_out("two, ");
    assert_eq!(read(&cancelled).await, refused);
    assert_eq!(read(&live).await, Ok(("one, two, ".to_owned(), JobStatus::Running)));
    work.put_out("three, ");
    assert_eq!(read(&cancelled).await, refused);
    work.put_out("four");
    work.complete();
    world.ended(Some(&agent), "test-1").await;
    assert_eq!(read(&cancelled).await, refused);
    assert_eq!(world.done(), [("test-1".to_owned(), false)]);
    assert_eq!(read(&live).await, Ok(("three, four".to_owned(), JobStatus::Completed)));
    assert_eq!(read(&live).await, Ok((String::new(), JobStatus::Completed)));
    world.dispose().await;
}

#[tokio::test]
async fn an_output_that_comes_with_the_end_stays() {
    let world = World::new();
    let agent = world.agent("a");
    let work = Work::new();
    world.start(Some(&agent), &work).unwrap();
    let read =
        async || world.jobs.read(Some(&agent), "test-1", &Cancel::new()).await.unwrap().output.text;
    assert_eq!(read().await, "");
    work.end(JobEnd::new(Ending::Completed, "done").with_output("the answer"));
    world.ended(Some(&agent), "test-1").await;
    for _ in 0..3 {
        assert_eq!(read().await, "the answer");
    }
    world.dispose().await;
}

#[tokio::test]
async fn what_is_kept_is_bounded_and_its_newest_part() {
    let world = World::new();
    let work = Work::new();
    let mut limited = request(None, &work);
    limited.output_limit_bytes = Some(5);
    assert_eq!(world.jobs.start(limited).unwrap().output_limit_bytes, Some(5));
    work.put_out("0123é6789");
    work.complete();
    world.ended(None, "test-1").await;
    let output = world.jobs.read(None, "test-1", &Cancel::new()).await.unwrap().output;
    assert_eq!((output.text.as_str(), output.truncated), ("6789", true));
    let again = world.jobs.read(None, "test-1", &Cancel::new()).await.unwrap().output;
    assert_eq!((again.text.as_str(), again.truncated), ("", false));
    world.dispose().await;
}

#[tokio::test]
async fn a_thousand_jobs_leave_no_growth() {
    let world = World::new();
    let agent = world.agent("a");
    let mut works: Vec<Weak<Work>> = Vec::new();
    for number in 1..=1_000 {
        let work = Work::new();
        works.push(Arc::downgrade(&work));
        let id = world.start(Some(&agent), &work).unwrap().id;
        work.put_out("something");
        work.complete();
        drop(work);
        world.ended(Some(&agent), id.as_str()).await;
        if number % 2 == 0 {
            world.jobs.read(Some(&agent), id.as_str(), &Cancel::new()).await.unwrap();
        }
    }
    let listed = world.jobs.list(Some(&agent));
    assert!(listed.len() <= 64, "{}", listed.len());
    assert_eq!(listed.last().unwrap().id.as_str(), "test-1000");
    // What nobody was told of is kept longer than what somebody was.
    assert!(listed.iter().any(|it| it.id.as_str() == "test-900" || it.id.as_str() == "test-901"));
    testkit::wait_until("the work of all of them is dropped", || {
        works.iter().all(|work| work.strong_count() == 0)
    })
    .await;
    world.dispose().await;
}

#[tokio::test]
async fn many_that_end_at_once_are_kept_within_the_bound() {
    let world = World::new();
    let agent = world.agent("a");
    let own = world.start(Some(&agent), &Work::new()).unwrap().id;
    let works: Vec<_> = (0..100).map(|_| Work::new()).collect();
    for work in &works {
        world.start(None, work).unwrap();
    }
    assert_eq!(world.jobs.list(None).len(), 100, "what is live is never forgotten");
    // The one that started first ends last: it is the newest of the ends.
    for (at, work) in works.iter().enumerate().rev() {
        work.complete();
        world.ended(None, &format!("test-{}", at + 2)).await;
    }
    testkit::wait_until("announced", || world.done().len() == 100).await;
    let listed = world.jobs.list(None);
    assert_eq!(listed.len(), 64);
    assert_eq!(listed[0].id.as_str(), "test-2");
    assert!(world.jobs.get(Some(&agent), own.as_str()).unwrap().status.is_live());
    world.dispose().await;
}
