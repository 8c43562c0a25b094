//! What a producer implements: starting one piece of work, and the work.
//!
//! Guarantees expected of every [`JobWork`]:
//! - [`JobWork::done`] resolves once, when nothing of the work runs any more, or with the truth
//!   about what does;
//! - after a cancellation with [`CancelCause::End`] it resolves within moments, whatever it takes:
//!   the disposal of the owner waits for it;
//! - once it is done, [`JobWork::read`] answers at once.

use std::sync::Arc;

use agents::Agent;
use dsh_core::async_trait;

use crate::job::{JobKind, JobStatus};

/// Starts the work. Called once, on the caller's thread, and must not block.
pub type Run = Box<dyn FnOnce() -> anyhow::Result<Arc<dyn JobWork>> + Send>;

/// A job to start.
pub struct JobRequest {
    /// What kind of work it is.
    pub kind: JobKind,
    /// What it does, in one line.
    pub label: String,
    /// The agent that may see it, and whose end ends it. Without one everybody may see it.
    pub owner: Option<Arc<Agent>>,
    /// Most bytes of one text about it, at least 1.
    pub output_limit_bytes: Option<u64>,
    /// Starts it, once everything else is settled.
    pub run: Run,
}

/// A piece of work under way.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use dsh_core::{Cancel, Scope, async_trait};
/// use jobs::{
///     Ending, JobCancel, JobEnd, JobKind, JobRegistry, JobRequest, JobStatus, JobWork, LocalJobs,
/// };
///
/// /// A kind is a constant of the producer's crate.
/// const NAP: JobKind = JobKind::new("nap");
///
/// /// Rests until somebody asks for its end.
/// struct Nap(Cancel);
///
/// #[async_trait]
/// impl JobWork for Nap {
///     async fn done(&self) -> JobEnd {
///         self.0.cancelled().await;
///         let why = self.0.reason().unwrap_or_default();
///         JobEnd::new(Ending::Killed, why).with_output("zzz")
///     }
///
///     fn cancel(&self, cancel: &JobCancel) -> anyhow::Result<()> {
///         self.0.cancel(&cancel.reason);
///         Ok(())
///     }
/// }
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let scope = Scope::root("example");
/// let jobs = LocalJobs::new(&scope, 10)?;
/// // In a host the plugin `tool-jobs` is the controller.
/// jobs.attach_controller(&scope, "example", Arc::new(|_| true))?;
///
/// let started = jobs.start(JobRequest {
///     kind: NAP,
///     label: "a short rest".to_owned(),
///     owner: None,
///     output_limit_bytes: None,
///     run: Box::new(|| Ok(Arc::new(Nap(Cancel::new())))),
/// })?;
/// assert_eq!(started.id.as_str(), "nap-1");
/// jobs.kill(None, "nap-1", "enough")?;
/// let ended = jobs.wait(None, "nap-1", Duration::from_secs(60), &Cancel::new()).await?;
/// assert_eq!((ended.status, ended.detail.as_deref()), (JobStatus::Killed, Some("enough")));
/// assert_eq!(jobs.read(None, "nap-1", &Cancel::new()).await?.output.text, "zzz");
/// scope.dispose().await?;
/// # anyhow::Ok(())
/// # })?;
/// # anyhow::Ok(())
/// ```
#[async_trait]
pub trait JobWork: Send + Sync {
    /// Waits for its end. Called once.
    async fn done(&self) -> JobEnd;

    /// Takes the output since the last call. Work whose output comes with its [`JobEnd`] has none
    /// before.
    async fn read(&self) -> JobOutput {
        JobOutput::default()
    }

    /// What it does, where that is known better than at the start. Must not block.
    fn label(&self) -> Option<String> {
        None
    }

    /// Asks for its end; the end itself comes by [`Self::done`]. Never blocks. It may be called
    /// again, and also after the end, when it does nothing.
    ///
    /// # Errors
    /// Nobody can end it: the job counts as failed from then on, and its work as orphaned.
    fn cancel(&self, cancel: &JobCancel) -> anyhow::Result<()>;
}

/// Who asks for the end, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobCancel {
    /// The asker's words.
    pub reason: String,
    /// Who asks.
    pub cause: CancelCause,
}

/// Who asks for the end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelCause {
    /// Somebody who can see how it goes on.
    Kill,
    /// The owner or the service ends, and waits.
    End,
}

/// How work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself.
    Completed,
    /// Because that was asked for.
    Killed,
    /// By an error.
    Failed,
}

impl From<Ending> for JobStatus {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Completed => Self::Completed,
            Ending::Killed => Self::Killed,
            Ending::Failed => Self::Failed,
        }
    }
}

/// The end of a piece of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEnd {
    /// How it ended.
    pub ending: Ending,
    /// How it ended, in words of the producer.
    pub detail: Option<String>,
    /// The output of work that has it only now. It can be read any number of times.
    pub output: Option<String>,
}

impl JobEnd {
    /// An end with words about it. Its output is what [`JobWork::read`] gives.
    pub fn new(ending: Ending, detail: impl Into<String>) -> Self {
        Self { ending, detail: Some(detail.into()), output: None }
    }

    /// The same with an output of its own.
    #[must_use]
    pub fn with_output(self, output: impl Into<String>) -> Self {
        Self { output: Some(output.into()), ..self }
    }
}

/// What was read of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobOutput {
    /// What it put out.
    pub text: String,
    /// Something before or in it is missing.
    pub truncated: bool,
    /// Lines about it for the model, each in brackets, the most important first. They are no
    /// output: each reading has them as they are then.
    pub lines: Vec<String>,
}
