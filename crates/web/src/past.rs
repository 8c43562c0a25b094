//! Runs of the past: `GET /runs` and `GET /runs/{id}`.
//!
//! Guarantee: few logs are read at a time, however many ask.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use dsh_core::Lookup;
use serde::Serialize;
use serde_json::json;
use session_log::{LogError, SessionLog, visit_log};
use tokio::sync::Semaphore;
use tools::ToolRegistry;

use crate::{
    access::refusal,
    cards::{Dated, Run},
};

/// Most runs in the list.
const MOST_LISTED: usize = 200;
/// Most logs that are read at a time.
const MOST_READERS: u32 = 2;

#[derive(Clone)]
pub(crate) struct Past {
    log: Lookup<SessionLog>,
    tools: Arc<ToolRegistry>,
    readers: Arc<Semaphore>,
}

/// One run in the list.
#[derive(Serialize)]
struct Listed {
    id: String,
    started: u64,
    agent: String,
    calls: u64,
}

/// Why there is no answer.
enum Unread {
    NoLog,
    NoRun,
    Failed(String),
}

impl Past {
    pub(crate) fn new(log: Lookup<SessionLog>, tools: Arc<ToolRegistry>) -> Self {
        Self { log, tools, readers: Arc::new(Semaphore::new(MOST_READERS as usize)) }
    }

    pub(crate) fn routes(self) -> Router {
        Router::new().route("/runs", get(list)).route("/runs/{id}", get(show)).with_state(self)
    }

    /// Waits until no log is read any more. Nobody may ask by then.
    pub(crate) async fn quiet(&self) {
        // The semaphore is never closed.
        self.readers.acquire_many(MOST_READERS).await.ok();
    }

    /// Does what reads files on a thread that may block.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Self) -> Result<T, Unread> + Send + 'static,
    ) -> Result<T, Unread> {
        let past = self.clone();
        let permit = Arc::clone(&self.readers).acquire_owned().await;
        let reading = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            read(&past)
        });
        reading.await.unwrap_or_else(|error| Err(Unread::Failed(error.to_string())))
    }

    fn listed(&self) -> Result<Vec<Listed>, Unread> {
        let log = self.log.get().ok_or(Unread::NoLog)?;
        let runs = log.runs(MOST_LISTED)?.into_iter();
        Ok(runs
            .map(|it| Listed {
                id: it.id,
                started: it.created_at,
                agent: it.agent,
                calls: it.calls,
            })
            .collect())
    }

    fn cards(&self, id: &str) -> Result<Vec<Dated>, Unread> {
        let log = self.log.get().ok_or(Unread::NoLog)?;
        let path = log.find_run(id)?.ok_or(Unread::NoRun)?;
        let mut run = Run::default();
        visit_log(&path, |line| {
            run.line(&line, &self.tools);
        })?;
        Ok(run.cards().cloned().collect())
    }
}

async fn list(State(past): State<Past>) -> Response {
    match past.read(Past::listed).await {
        Ok(runs) => json(&runs),
        Err(unread) => unread.answer(),
    }
}

async fn show(State(past): State<Past>, Path(id): Path<String>) -> Response {
    let wanted = id.clone();
    match past.read(move |past| past.cards(&wanted)).await {
        Ok(cards) => json(&json!({ "id": id, "cards": cards })),
        Err(unread) => unread.answer(),
    }
}

fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(error) => Unread::Failed(error.to_string()).answer(),
    }
}

impl From<LogError> for Unread {
    fn from(error: LogError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Unread {
    fn answer(&self) -> Response {
        match self {
            Self::NoLog => refusal(
                StatusCode::NOT_FOUND,
                "no session log is mounted: let the composition have the row `session-log`",
            ),
            Self::NoRun => refusal(StatusCode::NOT_FOUND, "there is no log of such a run"),
            Self::Failed(error) => refusal(StatusCode::INTERNAL_SERVER_ERROR, error),
        }
    }
}
