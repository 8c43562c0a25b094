//! Starting a plan and disposing it.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::{
    plan::{Plan, Step},
    plugin::{Check, Ctx},
    scope::{DisposeError, Scope},
    service::{Service, Services},
};

/// A running composition.
pub struct App {
    root: Scope,
    services: Arc<RwLock<Services>>,
}

/// A row failed to start; everything started before it has been disposed.
#[derive(Debug, thiserror::Error)]
#[error("row `{row}` failed to start{}", rollback_note(.rollback.as_deref()))]
pub struct StartError {
    /// The failing row.
    pub row: String,
    /// Why it failed.
    #[source]
    pub cause: anyhow::Error,
    /// What went wrong while undoing.
    pub rollback: Option<Arc<DisposeError>>,
}

fn rollback_note(error: Option<&DisposeError>) -> String {
    error.map_or_else(String::new, |error| format!(" (and rollback was incomplete: {error})"))
}

impl App {
    /// Starts every row in order.
    pub async fn start(plan: Plan) -> Result<Self, StartError> {
        let app = Self { root: Scope::root("app"), services: Arc::default() };
        match app.start_rows(plan).await {
            Ok(()) => Ok(app),
            Err((row, cause)) => {
                let rollback = app.root.dispose().await.err();
                Err(StartError { row, cause, rollback })
            }
        }
    }

    async fn start_rows(&self, plan: Plan) -> Result<(), (String, anyhow::Error)> {
        let checks = Arc::default();
        for step in plan.steps {
            let row = step.row.clone();
            self.start_row(step, &checks).await.map_err(|cause| (row, cause))?;
        }
        let checks = std::mem::take(&mut *checks.lock().unwrap_or_else(PoisonError::into_inner));
        for check in checks {
            (check.run)().await.map_err(|cause| (check.row, cause))?;
        }
        Ok(())
    }

    async fn start_row(&self, step: Step, checks: &Arc<Mutex<Vec<Check>>>) -> anyhow::Result<()> {
        let scope = self.root.child(step.row.clone())?;
        // Registered first, therefore undone last: consumers are already gone by then.
        let services = Arc::clone(&self.services);
        let names = (step.entry.provide)();
        scope.defer("withdraw services", move || {
            let mut services = services.write().unwrap_or_else(PoisonError::into_inner);
            for name in &names {
                services.remove(name);
            }
            async { Ok(()) }
        })?;
        let ctx = Ctx {
            row: step.row,
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
        self.services.read().unwrap_or_else(PoisonError::into_inner).get::<K>()
    }

    /// The scope everything runs in.
    pub fn scope(&self) -> &Scope {
        &self.root
    }

    /// Disposes every row, newest first.
    pub async fn dispose(&self) -> Result<(), Arc<DisposeError>> {
        self.root.dispose().await
    }
}
