//! Starting a plan and disposing it.
//!
//! Guarantees: rows start one after another in the plan's order; when a row or a check fails or
//! panics, everything is disposed before the error is returned; every failure is in that error.

use std::{
    fmt,
    future::Future,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, RwLock},
};

use futures_util::FutureExt as _;

use crate::{
    plan::{Plan, Step},
    plugin::{Check, Ctx, Row},
    problem::Place,
    scope::{DisposeError, Scope},
    service::{Service, Services},
    unwind::{lock, panic_text, read, write},
};

/// A running composition.
pub struct App {
    root: Scope,
    services: Arc<RwLock<Services>>,
}

/// The composition did not start; everything that had been started has been disposed.
#[derive(Debug, thiserror::Error)]
pub struct StartError {
    /// The row whose setup failed, or every row whose check failed.
    pub failures: Vec<RowFailure>,
    /// What went wrong while undoing.
    pub rollback: Option<Arc<DisposeError>>,
}

/// Why one row did not start.
#[derive(Debug)]
pub struct RowFailure {
    /// Row id.
    pub row: String,
    /// Where the row was written.
    pub place: Place,
    /// What its setup or check returned.
    pub cause: anyhow::Error,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, RowFailure { row, place, cause }) in self.failures.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{place}: row `{row}` failed to start: {cause:#}")?;
        }
        match &self.rollback {
            Some(error) => {
                write!(f, "\nand what had been started could not all be undone: {error}")
            }
            None => Ok(()),
        }
    }
}

impl App {
    /// Starts every row in order.
    pub async fn start(plan: Plan) -> Result<Self, StartError> {
        Self::start_in(Scope::root("app"), plan).await
    }

    /// Starts every row in order, in a scope of the caller's.
    ///
    /// A caller that gives up waiting (on a signal, say) drops the future and disposes `root`:
    /// whatever had been registered by then is undone.
    pub async fn start_in(root: Scope, plan: Plan) -> Result<Self, StartError> {
        let app = Self { root, services: Arc::default() };
        let failures = app.start_rows(plan).await;
        if failures.is_empty() {
            return Ok(app);
        }
        let rollback = app.root.dispose().await.err();
        Err(StartError { failures, rollback })
    }

    async fn start_rows(&self, plan: Plan) -> Vec<RowFailure> {
        let checks = Arc::default();
        for step in plan.steps {
            let row = Row { id: step.row.clone(), place: step.place.clone() };
            if let Err(cause) = caught(self.start_row(step, row.clone(), &checks)).await {
                return vec![row.failure(cause)];
            }
        }
        let checks = std::mem::take(&mut *lock(&checks));
        let mut failures = Vec::new();
        for Check { row, run } in checks {
            if let Err(cause) = caught(async { run().await }).await {
                failures.push(row.failure(cause));
            }
        }
        failures
    }

    async fn start_row(
        &self,
        step: Step,
        row: Row,
        checks: &Arc<Mutex<Vec<Check>>>,
    ) -> anyhow::Result<()> {
        let scope = self.root.child(step.row)?;
        // Registered first, therefore undone last: consumers are already gone by then.
        let services = Arc::clone(&self.services);
        let names = (step.entry.provide)();
        scope.defer("withdraw services", move || {
            let withdrawn: Vec<_> = {
                let mut services = write(&services);
                names.iter().map(|name| services.remove(name)).collect()
            };
            drop(withdrawn);
            async { Ok(()) }
        })?;
        let ctx = Ctx {
            row,
            plugin: step.entry.name,
            declared: (step.entry.inject)(),
            scope,
            services: Arc::clone(&self.services),
            checks: Arc::clone(checks),
        };
        (step.entry.start)(&ctx, step.config).await
    }

    /// The host's own access to a service.
    pub fn service<K: Service>(&self) -> Option<Arc<K::Api>> {
        read(&self.services).get::<K>()
    }

    /// The scope everything runs in.
    pub fn scope(&self) -> &Scope {
        &self.root
    }

    /// Disposes every row, newest first. After a failure the next call tries again what is left.
    pub async fn dispose(&self) -> Result<(), Arc<DisposeError>> {
        self.root.dispose().await
    }
}

impl Row {
    fn failure(self, cause: anyhow::Error) -> RowFailure {
        RowFailure { row: self.id, place: self.place, cause }
    }
}

/// A panic of a plugin is its failure, not the host's end.
async fn caught(step: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    AssertUnwindSafe(step)
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| Err(anyhow::anyhow!("panicked: {}", panic_text(&*panic))))
}
