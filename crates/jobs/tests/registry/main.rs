//! The in-process registry over work that does what the test says.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

mod ending;
mod reading;
mod settling;
mod starting;

use std::sync::{Arc, Mutex};

use agents::{Agent, AgentRegistry, AgentSpec};
use dsh_core::{Scope, async_trait};
use jobs::{
    Ending, JobCancel, JobDone, JobEnd, JobError, JobKind, JobOutput, JobRegistry, JobRequest,
    JobSnapshot, JobWork, LocalJobs,
};
use testkit::guarded;
use tokio::sync::watch;

const KIND: JobKind = JobKind::new("test");

/// A registry with a controller that serves everybody, and its agents.
struct World {
    root: Scope,
    agents: AgentRegistry,
    jobs: LocalJobs,
    /// Every end that was announced, and whether somebody had been told.
    done: Arc<Mutex<Vec<(String, bool)>>>,
}

impl World {
    fn new() -> Self {
        let world = Self::without_controller();
        world.jobs.attach_controller(&world.root, "all", Arc::new(|_| true)).unwrap();
        world
    }

    fn without_controller() -> Self {
        let root = Scope::root("test");
        let agents = AgentRegistry::new(root.clone());
        let jobs = LocalJobs::new(&root, 10).unwrap();
        let done = Arc::<Mutex<Vec<(String, bool)>>>::default();
        let heard = Arc::clone(&done);
        let listener = Arc::new(move |done: &JobDone| {
            heard.lock().unwrap().push((done.job.id.to_string(), done.told.is_set()));
        });
        jobs.on_job_done(&root, "test", listener).unwrap();
        Self { root, agents, jobs, done }
    }

    fn agent(&self, id: &str) -> Arc<Agent> {
        let spec = AgentSpec { id: Some(id.to_owned()), workspace_root: "/tmp".into() };
        self.agents.create(spec).unwrap()
    }

    fn start(&self, owner: Option<&Arc<Agent>>, work: &Arc<Work>) -> Result<JobSnapshot, JobError> {
        self.jobs.start(request(owner, work))
    }

    /// The announcements so far.
    fn done(&self) -> Vec<(String, bool)> {
        self.done.lock().unwrap().clone()
    }

    /// Waits until a job has ended, which is told to nobody.
    async fn ended(&self, owner: Option<&Arc<Agent>>, id: &str) -> JobSnapshot {
        guarded("the end of the job", async {
            while self.jobs.get(owner, id).unwrap().status.is_live() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        self.jobs.get(owner, id).unwrap()
    }

    async fn dispose(&self) {
        guarded("disposal", self.root.dispose()).await.unwrap();
    }
}

fn request(owner: Option<&Arc<Agent>>, work: &Arc<Work>) -> JobRequest {
    let work = Arc::clone(work);
    JobRequest {
        kind: KIND,
        label: "some work".to_owned(),
        owner: owner.cloned(),
        output_limit_bytes: None,
        run: Box::new(move || Ok(work)),
    }
}

/// What a piece of work does when it is cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cancelled {
    /// It ends.
    #[default]
    Ends,
    /// It goes on.
    GoesOn,
    /// It says that it cannot be ended.
    Fails,
    /// It panics.
    Panics,
}

/// Work that does what the test says.
#[derive(Default)]
struct Work {
    end: watch::Sender<Option<JobEnd>>,
    output: Mutex<String>,
    cancelled: Cancelled,
    cancels: Mutex<Vec<JobCancel>>,
}

impl Work {
    fn new() -> Arc<Self> {
        Arc::default()
    }

    fn that(cancelled: Cancelled) -> Arc<Self> {
        Arc::new(Self { cancelled, ..Self::default() })
    }

    fn put_out(&self, text: &str) {
        self.output.lock().unwrap().push_str(text);
    }

    /// The first end stands.
    fn end(&self, end: JobEnd) {
        self.end.send_if_modified(|it| {
            let first = it.is_none();
            it.get_or_insert(end);
            first
        });
    }

    fn complete(&self) {
        self.end(JobEnd::new(Ending::Completed, "done"));
    }

    fn cancels(&self) -> Vec<JobCancel> {
        self.cancels.lock().unwrap().clone()
    }
}

#[async_trait]
impl JobWork for Work {
    async fn done(&self) -> JobEnd {
        let mut end = self.end.subscribe();
        let end = end.wait_for(Option::is_some).await;
        end.unwrap().clone().unwrap()
    }

    async fn read(&self) -> JobOutput {
        let text = std::mem::take(&mut *self.output.lock().unwrap());
        JobOutput { text, ..JobOutput::default() }
    }

    fn cancel(&self, cancel: &JobCancel) -> anyhow::Result<()> {
        self.cancels.lock().unwrap().push(cancel.clone());
        match self.cancelled {
            Cancelled::Ends => self.end(JobEnd::new(Ending::Killed, "cancelled")),
            Cancelled::GoesOn => {}
            Cancelled::Fails => anyhow::bail!("no way to reach it"),
            Cancelled::Panics => panic!("a bug"),
        }
        Ok(())
    }
}
