//! Scopes: ordered, awaited undo for everything a plugin or an owner registers.
//!
//! Guarantees:
//! - cleanups run strictly one after another, newest first;
//! - a failing or panicking cleanup never prevents the older ones from running;
//! - every cleanup runs at most once, on its own task: dropping the future that asked for it
//!   does not abandon it, and concurrent callers join the same run;
//! - once disposal has started, [`Scope::defer`] refuses new cleanups.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use futures_util::{FutureExt as _, future::BoxFuture};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

type Cleanup = Box<dyn FnMut() -> BoxFuture<'static, anyhow::Result<()>> + Send>;
type Shared<T> = watch::Sender<Option<T>>;
type Outcome = Result<(), Arc<DisposeError>>;

/// An ordered stack of cleanups. Cheap to clone; clones share the stack.
#[derive(Clone)]
pub struct Scope(Arc<Inner>);

struct Inner {
    label: String,
    token: CancellationToken,
    state: Mutex<State>,
    outcome: Shared<Outcome>,
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
}

/// One registered cleanup. Dropping the handle leaves the cleanup with its scope.
#[derive(Clone)]
pub struct Effect {
    scope: Weak<Inner>,
    id: u64,
}

struct Job {
    label: String,
    cleanup: Mutex<Option<Cleanup>>,
    done: Shared<Result<(), Arc<anyhow::Error>>>,
}

/// The scope is already closing, so nothing may be registered in it.
#[derive(Debug, thiserror::Error)]
#[error("scope `{0}` is closed")]
pub struct ScopeClosed(String);

/// Every cleanup that failed, in the order they ran.
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
        self.failures.iter().try_for_each(|(label, cause)| write!(f, "\n  {label}: {cause:#}"))
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
            outcome: watch::Sender::new(None),
            in_parent,
            _cancel_on_drop: guard,
        }))
    }

    /// Creates a scope that is disposed with this one, before anything older.
    ///
    /// Disposing the child first removes it from the parent, unless a cleanup failed: then the
    /// parent's disposal reports the failure again.
    pub fn child(&self, label: impl Into<String>) -> Result<Self, ScopeClosed> {
        let label = label.into();
        let slot = Arc::new(OnceLock::<Self>::new());
        let filled = Arc::clone(&slot);
        let effect = self.defer(label.clone(), move || {
            let child = filled.get().cloned();
            async move {
                match child {
                    Some(child) => Ok(child.dispose().await?),
                    None => Ok(()),
                }
            }
        })?;
        let child = Self::new(label, self.0.token.child_token(), Some(effect));
        slot.set(child.clone()).ok();
        Ok(child)
    }

    /// Cancelled when disposal starts. Long operations select on it.
    pub fn token(&self) -> &CancellationToken {
        &self.0.token
    }

    /// Registers an async cleanup.
    pub fn defer<F, Fut>(
        &self,
        label: impl Into<String>,
        mut cleanup: F,
    ) -> Result<Effect, ScopeClosed>
    where
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let mut state = lock(&self.0.state);
        if state.closing {
            return Err(ScopeClosed(self.0.label.clone()));
        }
        let id = state.next;
        state.next += 1;
        let job = Job {
            label: label.into(),
            cleanup: Mutex::new(Some(Box::new(move || cleanup().boxed()))),
            done: watch::Sender::new(None),
        };
        state.jobs.insert(id, Arc::new(job));
        Ok(Effect { scope: Arc::downgrade(&self.0), id })
    }

    /// Spawns a task that is cancelled through its token and joined when the scope is disposed.
    pub fn spawn<F, Fut>(&self, label: impl Into<String>, task: F) -> Result<Effect, ScopeClosed>
    where
        F: FnOnce(CancellationToken) -> Fut + Send + 'static,
        Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let token = self.0.token.child_token();
        let slot = Arc::new(Mutex::new(None::<tokio::task::JoinHandle<anyhow::Result<()>>>));
        let filled = Arc::clone(&slot);
        let stop = token.clone();
        let effect = self.defer(label, move || {
            stop.cancel();
            let handle = lock(&filled).take();
            async move {
                match handle {
                    Some(handle) => handle.await?,
                    None => Ok(()),
                }
            }
        })?;
        *lock(&slot) = Some(tokio::spawn(task(token)));
        Ok(effect)
    }

    /// Labels of the cleanups that have not finished, newest first. Diagnoses a stuck shutdown.
    pub fn pending(&self) -> Vec<String> {
        lock(&self.0.state).jobs.values().rev().map(|job| job.label.clone()).collect()
    }

    /// Cancels the token, then runs and awaits all cleanups, newest first.
    pub async fn dispose(&self) -> Result<(), Arc<DisposeError>> {
        let mut outcome = self.0.outcome.subscribe();
        if !std::mem::replace(&mut lock(&self.0.state).closing, true) {
            self.0.token.cancel();
            tokio::spawn(Arc::clone(&self.0).unwind());
        }
        let outcome = outcome.wait_for(Option::is_some).await;
        // The sender lives in `self`, so waiting cannot fail.
        outcome.ok().and_then(|it| it.clone()).unwrap_or(Ok(()))
    }
}

impl Inner {
    async fn unwind(self: Arc<Self>) {
        let mut failures = Vec::new();
        loop {
            let newest =
                lock(&self.state).jobs.last_key_value().map(|(&id, job)| (id, Arc::clone(job)));
            let Some((id, job)) = newest else { break };
            if let Err(cause) = job.run().await {
                failures.push((job.label.clone(), cause));
            }
            lock(&self.state).jobs.remove(&id);
        }
        let outcome = if failures.is_empty() {
            if let Some(effect) = &self.in_parent {
                effect.dismiss();
            }
            Ok(())
        } else {
            Err(Arc::new(DisposeError { scope: self.label.clone(), failures }))
        };
        self.outcome.send_replace(Some(outcome));
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
    /// Removes the cleanup without running it, because the effect is already undone.
    pub fn dismiss(&self) {
        if let Some(scope) = self.scope.upgrade() {
            lock(&scope.state).jobs.remove(&self.id);
        }
    }

    /// Runs the cleanup now, or joins the run already in progress.
    ///
    /// On failure the cleanup stays registered so that disposal reports it too.
    pub async fn undo(&self) -> Result<(), Arc<anyhow::Error>> {
        let Some(scope) = self.scope.upgrade() else { return Ok(()) };
        let Some(job) = lock(&scope.state).jobs.get(&self.id).cloned() else { return Ok(()) };
        job.run().await?;
        lock(&scope.state).jobs.remove(&self.id);
        Ok(())
    }
}

impl Job {
    async fn run(self: &Arc<Self>) -> Result<(), Arc<anyhow::Error>> {
        let mut done = self.done.subscribe();
        if let Some(mut cleanup) = lock(&self.cleanup).take() {
            let job = Arc::clone(self);
            tokio::spawn(async move {
                let result = AssertUnwindSafe(async { cleanup().await }).catch_unwind().await;
                let result = result.unwrap_or_else(|_| Err(anyhow::anyhow!("cleanup panicked")));
                job.done.send_replace(Some(result.map_err(Arc::new)));
            });
        }
        let result = done.wait_for(Option::is_some).await;
        // The sender lives in `self`, so waiting cannot fail.
        result.ok().and_then(|it| it.clone()).unwrap_or(Ok(()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
