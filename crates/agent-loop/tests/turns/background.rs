//! The idle agent: what wakes it, how often, and when a run is over.

use std::sync::Arc;

use agent_loop::TurnEnd;
use agents::{Agent, Notice};
use dsh_core::async_trait;
use jobs::{Ending, JobCancel, JobEnd, JobKind, JobRequest, JobWork, Jobs};
use model::Message;
use testkit::Script;
use tokio::sync::watch;
use tool_jobs as _;

use crate::fixture::{Fixture, booted, fixture};

pub(crate) const ROWS: &str = "- name: jobs\n- name: tool-jobs\n";

/// Work that ends when the test says so, or when it is asked to.
#[derive(Default)]
struct Work(watch::Sender<Option<Ending>>);

#[async_trait]
impl JobWork for Work {
    async fn done(&self) -> JobEnd {
        let mut end = self.0.subscribe();
        let ending = end.wait_for(Option::is_some).await.unwrap().unwrap();
        JobEnd::new(ending, "as told")
    }

    fn cancel(&self, _: &JobCancel) -> anyhow::Result<()> {
        self.0.send_replace(Some(Ending::Killed));
        Ok(())
    }
}

impl Work {
    fn start(it: &Fixture) -> Arc<Self> {
        Self::start_for(it, Some(&it.agent))
    }

    fn start_for(it: &Fixture, owner: Option<&Arc<Agent>>) -> Arc<Self> {
        let work = Arc::<Self>::default();
        let started = Arc::clone(&work);
        let request = JobRequest {
            kind: JobKind::new("test"),
            label: "work".to_owned(),
            owner: owner.cloned(),
            output_limit_bytes: None,
            run: Box::new(move || Ok(started)),
        };
        it.host.service::<Jobs>().start(request).unwrap();
        work
    }

    fn end(&self) {
        self.0.send_replace(Some(Ending::Completed));
    }
}

/// Waits until the agent has begun to wait that often.
pub(crate) async fn idle(it: &Fixture, times: usize) {
    let waits = || it.watched().iter().filter(|it| *it == "waiting").count();
    testkit::wait_until("the agent waits", || waits() == times).await;
}

fn notices(it: &Fixture) -> Vec<String> {
    let of = |it: Message| match it {
        Message::Notice { content } => Some(content),
        _ => None,
    };
    it.last().into_iter().filter_map(of).collect()
}

#[tokio::test]
async fn a_run_waits_for_its_jobs_and_hears_of_their_ends() {
    let it = booted(&Script::new(), "{}", ROWS).await;
    it.model.says("It runs; I will report.").says("It is finished.");
    let work = Work::start(&it);
    let meanwhile = async {
        idle(&it, 1).await;
        work.end();
    };
    let (end, ()) = tokio::join!(it.run(), meanwhile);
    assert_eq!(end, Ok(TurnEnd::Done));
    let told = "background job test-1 (test: work) finished [status: completed, as told]. \
                Read its output with job_output.";
    assert_eq!(notices(&it), [told]);
    let heard = format!("notice {told}");
    assert_eq!(
        it.watched(),
        ["text It runs; I will report.", "waiting", &heard, "text It is finished."]
    );
    it.end().await;
}

#[tokio::test]
async fn an_idle_agent_is_woken_as_often_as_its_notices_allow() {
    let it = booted(&Script::new(), "{}", ROWS).await;
    // Each reply leaves the agent idle; each wake is answered by one.
    for _ in 0..=3 {
        it.model.says("idle");
    }
    let works: Vec<_> = (0..5).map(|_| Work::start(&it)).collect();
    let meanwhile = async {
        for (index, work) in works[..3].iter().enumerate() {
            // One after another, so that each could wake it.
            idle(&it, index + 1).await;
            work.end();
        }
    };
    // Two jobs still run at the end, and could not wake it any more.
    let (end, ()) = tokio::join!(it.run(), meanwhile);
    assert_eq!(end, Ok(TurnEnd::Done));
    assert_eq!(it.model.requests().len(), 4);
    for work in &works[3..] {
        work.end();
    }
    testkit::wait_until("both notices", || *it.agent.inbox().watch().borrow() == 2).await;
    // They wait for the next message of the user.
    assert_eq!(notices(&it).len(), 3);
    it.model.says("heard");
    it.run().await.unwrap();
    assert_eq!(notices(&it).len(), 2);
    it.end().await;
}

#[tokio::test]
async fn quiet_notices_do_not_wake_and_are_not_waited_for() {
    let it = fixture().await;
    it.model.says("idle");
    it.agent.inbox().push(Notice::new("before the first step"));
    assert_eq!(it.run().await, Ok(TurnEnd::Done));
    assert_eq!(notices(&it), ["before the first step"]);

    let rows = "- name: jobs\n- name: tool-jobs\n  config: { completionDelivery: quiet }\n";
    let it = booted(&Script::new(), "{}", rows).await;
    it.model.says("idle");
    let _work = Work::start(&it);
    assert_eq!(it.run().await, Ok(TurnEnd::Done));
    assert_eq!(it.watched(), ["text idle"]);
    it.end().await;
}

#[tokio::test]
async fn a_job_of_nobody_is_not_waited_for() {
    let it = booted(&Script::new(), "{}", ROWS).await;
    it.model.says("idle").says("It is finished.");
    let _nobodys = Work::start_for(&it, None);
    let own = Work::start(&it);
    let meanwhile = async {
        idle(&it, 1).await;
        own.end();
    };
    assert_eq!(tokio::join!(it.run(), meanwhile).0, Ok(TurnEnd::Done));
    assert_eq!(it.watched().iter().filter(|it| *it == "waiting").count(), 1);
    it.end().await;
}

#[tokio::test]
async fn a_cancellation_ends_the_wait_and_the_end_of_the_agent_its_jobs() {
    let it = booted(&Script::new(), "{}", ROWS).await;
    it.model.says("idle");
    let work = Work::start(&it);
    let meanwhile = async {
        idle(&it, 1).await;
        it.cancel.cancel("the user interrupted");
    };
    assert_eq!(tokio::join!(it.run(), meanwhile).0, Ok(TurnEnd::Cancelled));
    assert_eq!(*work.0.borrow(), None);
    it.host.dispose_agent(&it.agent).await.unwrap();
    assert_eq!(*work.0.borrow(), Some(Ending::Killed));
    it.end().await;
}
