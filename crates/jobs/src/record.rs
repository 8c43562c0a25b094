//! One job: its status, its one settlement, who waits for it, what is left to read.
//!
//! Guarantees:
//! - the first settlement stands, and what the work had put out until then can still be read;
//! - its end is announced once: at the settlement, or, while somebody waits for it, when it is
//!   known whether they were told.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
    time::{SystemTime, UNIX_EPOCH},
};

use agents::{Agent, Told};
use dsh_core::{lock, panic_text};
use tokio_util::sync::CancellationToken;

use crate::{
    job::{JobDone, JobId, JobKind, JobSnapshot, JobStatus},
    work::{JobCancel, JobOutput, JobWork},
};

/// Most bytes that are kept of a job whose producer sets no bound.
const MOST_KEPT: usize = 1 << 20;

/// One job.
pub(crate) struct Job {
    pub(crate) id: JobId,
    pub(crate) owner: Option<Arc<Agent>>,
    pub(crate) told: Told,
    /// Cancelled at the settlement.
    pub(crate) ended: CancellationToken,
    kind: JobKind,
    limit: Option<usize>,
    started_at: u64,
    state: Mutex<State>,
}

struct State {
    label: String,
    status: JobStatus,
    detail: Option<String>,
    finished_at: Option<u64>,
    source: Source,
    /// What a reading took whose caller was gone by then. It comes before all else.
    given_back: Option<JobOutput>,
    waiters: usize,
    announced: bool,
}

/// Where the output comes from.
enum Source {
    /// The work, live or given up.
    Work(Arc<dyn JobWork>),
    /// What was left at the end, to be read once.
    Rest(JobOutput),
    /// What the end brought, to be read any number of times.
    Whole(JobOutput),
}

/// A settlement to be.
pub(crate) struct Settlement {
    pub(crate) status: JobStatus,
    pub(crate) detail: Option<String>,
    pub(crate) rest: Option<Rest>,
}

/// What can be read after the end. Without it the work is still asked.
pub(crate) enum Rest {
    Once(JobOutput),
    Always(JobOutput),
}

/// What a job is started with.
pub(crate) struct Fresh {
    pub(crate) kind: JobKind,
    pub(crate) label: String,
    pub(crate) owner: Option<Arc<Agent>>,
    pub(crate) limit: Option<usize>,
    pub(crate) work: Arc<dyn JobWork>,
}

impl Job {
    pub(crate) fn new(id: JobId, fresh: Fresh) -> Self {
        let Fresh { kind, label, owner, limit, work } = fresh;
        let state = State {
            label,
            status: JobStatus::Running,
            detail: None,
            finished_at: None,
            source: Source::Work(work),
            given_back: None,
            waiters: 0,
            announced: false,
        };
        Self {
            id,
            owner,
            told: Told::default(),
            ended: CancellationToken::new(),
            kind,
            limit,
            started_at: now(),
            state: Mutex::new(state),
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        lock(&self.state).status.is_live()
    }

    pub(crate) fn snapshot(&self) -> JobSnapshot {
        // The work is asked outside the lock: it may have one of its own.
        let label = self.work().filter(|_| self.is_live()).and_then(|work| work.label());
        self.view(&lock(&self.state), label)
    }

    fn view(&self, state: &State, label: Option<String>) -> JobSnapshot {
        let fresh = label.filter(|_| state.status.is_live());
        JobSnapshot {
            id: self.id.clone(),
            kind: self.kind.as_str().to_owned(),
            label: fresh.unwrap_or_else(|| state.label.clone()),
            status: state.status,
            detail: state.detail.clone(),
            started_at: self.started_at,
            finished_at: state.finished_at,
            owned: self.owner.is_some(),
            output_limit_bytes: self.limit,
        }
    }

    /// The work, as long as it is what is read.
    pub(crate) fn work(&self) -> Option<Arc<dyn JobWork>> {
        match &lock(&self.state).source {
            Source::Work(work) => Some(Arc::clone(work)),
            Source::Rest(_) | Source::Whole(_) => None,
        }
    }

    /// Takes what is new.
    pub(crate) async fn read(&self) -> (JobSnapshot, JobOutput) {
        // The status first: what is read after it is all there was before it.
        let snapshot = self.snapshot();
        let left = {
            let mut state = lock(&self.state);
            match &mut state.source {
                Source::Work(work) => Err(Arc::clone(work)),
                Source::Rest(rest) => Ok(Self::take(rest)),
                Source::Whole(whole) => Ok(whole.clone()),
            }
        };
        let (snapshot, output) = match left {
            Ok(left) => (self.snapshot(), left),
            Err(work) => (snapshot, work.read().await),
        };
        (snapshot, self.after_given_back(output))
    }

    /// Takes back what a reading had taken: the next one has it.
    pub(crate) fn give_back(&self, output: JobOutput) {
        let mut state = lock(&self.state);
        if !matches!(state.source, Source::Whole(_)) {
            let later = state.given_back.take().unwrap_or_default();
            state.given_back = Some(self.bounded(joined(output, later)));
        }
    }

    fn after_given_back(&self, output: JobOutput) -> JobOutput {
        match lock(&self.state).given_back.take() {
            Some(earlier) => self.bounded(joined(earlier, output)),
            None => output,
        }
    }

    fn take(rest: &mut JobOutput) -> JobOutput {
        let lines = rest.lines.clone();
        std::mem::replace(rest, JobOutput { lines, ..JobOutput::default() })
    }

    /// Says that its end is asked for. False once it has ended.
    pub(crate) fn stop(&self) -> bool {
        let mut state = lock(&self.state);
        let live = state.status.is_live();
        if live {
            state.status = JobStatus::Stopping;
        }
        live
    }

    /// Asks its work to end. An error has settled it: nobody can end it.
    pub(crate) fn cancel(&self, cancel: &JobCancel) -> Result<(), String> {
        let Some(work) = self.work() else { return Ok(()) };
        let asked = catch_unwind(AssertUnwindSafe(|| work.cancel(cancel)));
        let cause = match asked {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => format!("{error:#}"),
            Err(panic) => format!("a panic: {}", panic_text(&*panic)),
        };
        let detail = format!("cancelling it failed ({cause}); its work may be orphaned");
        let settled =
            self.settle(Settlement { status: JobStatus::Failed, detail: Some(detail), rest: None });
        if settled { Err(cause) } else { Ok(()) }
    }

    /// Settles it. False when it was settled already: then only what the work had left is kept,
    /// since it can be read nowhere else any more.
    pub(crate) fn settle(&self, settlement: Settlement) -> bool {
        let label = self.work().and_then(|work| work.label());
        let source = match settlement.rest {
            Some(Rest::Once(rest)) => Some(Source::Rest(self.bounded(rest))),
            Some(Rest::Always(whole)) => Some(Source::Whole(self.bounded(whole))),
            None => None,
        };
        let mut state = lock(&self.state);
        let first = state.status.is_live();
        if first {
            state.status = settlement.status;
            state.detail = settlement.detail;
            state.finished_at = Some(now().max(self.started_at));
            if let Some(label) = label {
                state.label = label;
            }
        }
        let work = source.map(|source| std::mem::replace(&mut state.source, source));
        drop(state);
        // Outside the lock, and before anybody hears of the end.
        drop(work);
        if first {
            self.ended.cancel();
        }
        first
    }

    /// What is kept of an output: its newest part.
    fn bounded(&self, mut output: JobOutput) -> JobOutput {
        let most = self.limit.unwrap_or(MOST_KEPT);
        if output.text.len() > most {
            let from = output.text.ceil_char_boundary(output.text.len() - most);
            output.text.drain(..from);
            output.truncated = true;
        }
        output.text.shrink_to_fit();
        output
    }

    /// Somebody waits from now on.
    pub(crate) fn begin_wait(&self) {
        lock(&self.state).waiters += 1;
    }

    /// Somebody waits no more. `told`: the answer reaches them.
    pub(crate) fn end_wait(&self, told: bool) {
        let mut state = lock(&self.state);
        state.waiters -= 1;
        if told && !state.status.is_live() {
            self.told.set();
        }
    }

    /// The end, if it is to be announced now.
    pub(crate) fn announcement(&self) -> Option<JobDone> {
        let mut state = lock(&self.state);
        let settled = !state.status.is_live();
        let due = settled && !state.announced && (state.waiters == 0 || self.told.is_set());
        state.announced |= due;
        due.then(|| JobDone {
            job: self.view(&state, None),
            owner: self.owner.clone(),
            told: self.told.clone(),
        })
    }
}

/// Two pieces of one output. What is told about it is what the later one tells.
fn joined(mut earlier: JobOutput, later: JobOutput) -> JobOutput {
    earlier.text.push_str(&later.text);
    earlier.truncated |= later.truncated;
    if !later.lines.is_empty() {
        earlier.lines = later.lines;
    }
    earlier
}

/// Milliseconds since the epoch.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
