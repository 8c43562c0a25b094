//! Scopes: ordered, awaited undo for everything a plugin or an owner registers.
//!
//! Guarantees:
//! - cleanups run strictly one after another, newest first;
//! - a failing or panicking cleanup never prevents the older ones from running;
//! - every cleanup runs on its own task, one run at a time: dropping the future that asked for it
//!   does not abandon it, and concurrent callers join the same run;
//! - a cleanup is done once it succeeded; after a failure a later [`Effect::undo`] or
//!   [`Scope::dispose`] runs it again;
//! - once disposal has started, nothing new can be registered.
//!
//! A cleanup that waits for its own scope's disposal, or undoes itself, waits forever. Cleanups are
//! run with `tokio::spawn`, so disposal needs a runtime.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::job::{Cleanup, Job};
use crate::unwind::lock;

mod job;

type Outcome = Result<(), Arc<DisposeError>>;

/// An ordered stack of cleanups. Cheap to clone; clones share the stack.
#[derive(Clone)]
pub struct Scope(Arc<Inner>);

struct Inner {
    label: String,
    token: CancellationToken,
    state: Mutex<State>,
    /// This scope's own entry in its parent.
    in_parent: Option<Effect>,
    /// Dropping the last handle at least requests cancellation; it cannot await cleanups.
    _cancel_on_drop: DropGuard,
}

#[derive(Default)]
struct State {
    closing: bool,
    next: u64,
    jobs: BTreeMap<u64, Arc<Job>>,
    /// The disposal in progress.
    run: Option<watch::Receiver<Option<Outcome>>>,
}

/// One registered cleanup. Dropping the handle leaves the cleanup with its scope.
#[derive(Clone)]
pub struct Effect {
    scope: Weak<Inner>,
    id: u64,
}

/// The scope is already closing, so nothing may be registered in it.
#[derive(Debug, thiserror::Error)]
#[error("scope `{0}` is closed")]
pub struct ScopeClosed(String);

/// Every cleanup that failed in one disposal, in the order they ran.
#[derive(Debug, thiserror::Error)]
pub struct DisposeError {
    /// Label of the disposed scope.
    pub scope: String,
    /// `(cleanup label, cause)` pairs.
    pub failures: Vec<(String, Arc<anyhow::Error>)>,
}

impl fmt::Display for DisposeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cleanup(s) failed in scope `{}`", self.failures.len(), self.scope)?;
        self.failures.iter().try_for_each(|(label, cause)| {
            // The cause may be the report of a child scope, lines of its own.
            let cause = format!("{cause:#}").replace('\n', "\n  ");
            write!(f, "\n  {label}: {cause}")
        })
    }
}

impl Scope {
    /// Creates a root scope.
    pub fn root(label: impl Into<String>) -> Self {
        Self::new(label.into(), CancellationToken::new(), None)
    }

    fn new(label: String, token: CancellationToken, in_parent: Option<Effect>) -> Self {
        let guard = token.clone().drop_guard();
        Self(Arc::new(Inner {
            label,
            token,
            state: Mutex::default(),
            in_parent,
            _cancel_on_drop: guard,
        }))
    }

    /// Creates a scope that is disposed with this one, before anything older.
    ///
    /// Disposing the child first removes it from the parent. A child whose disposal failed stays
    /// until all its cleanups have succeeded or been dismissed: the parent's disposal tries it again.
    pub fn child(&self, label: impl Into<String>) -> Result<Self, ScopeClosed> {
        let label = label.into();
        self.register(label.clone(), |effect| {
            let child = Self::new(label, self.0.token.child_token(), Some(effect.clone()));
            let scope = child.clone();
            let cleanup = move || {
                let scope = scope.clone();
                async move { Ok(scope.dispose().await?) }.boxed()
            };
            (Box::new(cleanup), child)
        })
    }

    /// Cancelled when disposal starts. Long operations select on it.
    pub fn token(&self) -> &CancellationToken {
        &self.0.token
    }

    /// Registers an async cleanup. It is called again if it failed, so it should go on from where
    /// it stopped.
    pub fn defer<F, Fut>(
        &self,
        label: impl Into<String>,
        mut cleanup: F,
    ) -> Result<Effect, ScopeClosed>
    where
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        self.register(label.into(), |effect| (Box::new(move || cleanup().boxed()), effect.clone()))
    }

    /// Spawns a task that is cancelled through its token and joined when the scope is disposed.
    ///
    /// A task that ended well by itself leaves the scope. The error or panic of one that did not is
    /// reported by the disposal, once: there is nothing left to run again.
    pub fn spawn<F, Fut>(&self, label: impl Into<String>, task: F) -> Result<Effect, ScopeClosed>
    where
        F: FnOnce(CancellationToken) -> Fut + Send + 'static,
        Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let stop = self.0.token.child_token();
        let label = label.into();
        let name = label.clone();
        self.register(label, |effect| {
            let (token, own) = (stop.clone(), effect.clone());
            let mut handle = Some(tokio::spawn(async move {
                let outcome = task(token).await;
                match &outcome {
                    Ok(()) => own.dismiss(),
                    // The report may be hours away.
                    Err(error) => tracing::warn!(task = name, "task failed: {error:#}"),
                }
                outcome
            }));
            let cleanup = move || {
                stop.cancel();
                let handle = handle.take();
                async move { if let Some(handle) = handle { handle.await? } else { Ok(()) } }
                    .boxed()
            };
            (Box::new(cleanup), effect.clone())
        })
    }

    /// Adds what `make` returns, in one step: nobody can dispose the scope in between.
    fn register<T>(
        &self,
        label: String,
        make: impl FnOnce(&Effect) -> (Cleanup, T),
    ) -> Result<T, ScopeClosed> {
        let mut state = lock(&self.0.state);
        if state.closing {
            return Err(ScopeClosed(self.0.label.clone()));
        }
        let id = state.next;
        state.next += 1;
        let effect = Effect { scope: Arc::downgrade(&self.0), id };
        let (cleanup, result) = make(&effect);
        state.jobs.insert(id, Arc::new(Job::new(label, effect, cleanup)));
        Ok(result)
    }

    /// Labels of the cleanups that have not succeeded yet, newest first. Diagnoses a stuck shutdown.
    pub fn pending(&self) -> Vec<String> {
        lock(&self.0.state).jobs.values().rev().map(|job| job.label.clone()).collect()
    }

    /// Cancels the token, then runs and awaits all cleanups, newest first.
    ///
    /// Joins a disposal in progress. After one that failed, the next call tries again what is left.
    pub async fn dispose(&self) -> Result<(), Arc<DisposeError>> {
        let mut run = {
            let mut state = lock(&self.0.state);
            state.closing = true;
            if let Some(run) = &state.run {
                run.clone()
            } else {
                let (publish, run) = watch::channel(None);
                state.run = Some(run.clone());
                tokio::spawn(Arc::clone(&self.0).unwind(publish));
                run
            }
        };
        let outcome = run.wait_for(Option::is_some).await.map(|outcome| outcome.clone());
        outcome.ok().flatten().unwrap_or_else(|| {
            let failures = vec![("disposal".to_owned(), Arc::new(job::stopped()))];
            Err(Arc::new(DisposeError { scope: self.0.label.clone(), failures }))
        })
    }
}

impl Inner {
    async fn unwind(self: Arc<Self>, publish: watch::Sender<Option<Outcome>>) {
        self.token.cancel();
        let mut failures = Vec::new();
        let mut done_down_to = u64::MAX;
        loop {
            let newest = lock(&self.state)
                .jobs
                .range(..done_down_to)
                .next_back()
                .map(|(&id, job)| (id, Arc::clone(job)));
            let Some((id, job)) = newest else { break };
            done_down_to = id;
            if let Err(cause) = job.run().await {
                failures.push((job.label.clone(), cause));
            }
        }
        let outcome = if failures.is_empty() {
            Ok(())
        } else {
            Err(Arc::new(DisposeError { scope: self.label.clone(), failures }))
        };
        let empty = {
            let mut state = lock(&self.state);
            state.run = None;
            state.jobs.is_empty()
        };
        if empty {
            self.leave_parent();
        }
        // Last: whoever hears of a failure may dispose again at once.
        publish.send_replace(Some(outcome));
    }

    fn remove(&self, id: u64) {
        let (job, empty) = {
            let mut state = lock(&self.state);
            let job = state.jobs.remove(&id);
            // A disposal in progress leaves the parent by itself, when it has seen every cleanup.
            let empty = state.closing && state.run.is_none() && state.jobs.is_empty();
            (job, empty)
        };
        // Outside the lock: dropping a cleanup may drop other scopes.
        drop(job);
        if empty {
            self.leave_parent();
        }
    }

    fn leave_parent(&self) {
        if let Some(effect) = &self.in_parent {
            effect.dismiss();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let abandoned = self.state.get_mut().unwrap_or_else(PoisonError::into_inner).jobs.len();
        if abandoned > 0 {
            tracing::error!(scope = self.label, abandoned, "scope dropped without dispose()");
        }
    }
}

impl Effect {
    /// Removes the cleanup without running it, because the effect is already undone. A run in
    /// progress goes on.
    pub fn dismiss(&self) {
        if let Some(scope) = self.scope.upgrade() {
            scope.remove(self.id);
        }
    }

    /// Runs the cleanup now, or joins the run already in progress. `Ok` if it is already undone.
    ///
    /// On failure the cleanup stays registered: a later `undo` or the disposal runs it again.
    pub async fn undo(&self) -> Result<(), Arc<anyhow::Error>> {
        let Some(scope) = self.scope.upgrade() else { return Ok(()) };
        let Some(job) = lock(&scope.state).jobs.get(&self.id).cloned() else { return Ok(()) };
        job.run().await
    }
}
