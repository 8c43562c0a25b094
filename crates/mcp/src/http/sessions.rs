//! The sessions of a server, each with a task of its own.

use std::{
    collections::HashMap,
    fmt::Write as _,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::http::StatusCode;
use dsh_core::lock;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    refusal::Refusal,
    session::{Line, Present, Session},
};
use crate::McpServer;

/// Most sessions at a time; one whose end is under way counts too.
const MOST: usize = 64;

/// All sessions.
pub(super) struct Sessions {
    server: Arc<McpServer>,
    workspace_root: PathBuf,
    grace: Duration,
    stop: CancellationToken,
    open: Mutex<HashMap<String, Arc<Session>>>,
    tasks: TaskTracker,
}

impl Sessions {
    pub(super) fn new(
        server: Arc<McpServer>,
        workspace_root: PathBuf,
        stop: CancellationToken,
    ) -> Self {
        let (open, tasks) = (Mutex::default(), TaskTracker::new());
        let grace = server.session_grace;
        Self { server, workspace_root, grace, stop, open, tasks }
    }

    /// A session that waits for `initialize`.
    pub(super) fn open(self: &Arc<Self>) -> Result<(Arc<Session>, Present), Refusal> {
        let unavailable = |text: &str| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, text);
        let id = new_id().map_err(|error| {
            tracing::error!(%error, "the system has no random numbers");
            unavailable("the system has no random numbers for the id of a session")
        })?;
        let mut open = lock(&self.open);
        // Under the lock, so that `ended` sees each task.
        if self.stop.is_cancelled() {
            return Err(unavailable("the server stops"));
        }
        if open.len() >= MOST {
            let text = format!(
                "{MOST} sessions are open, the most there may be: end one with DELETE, or wait \
                 until one has been left for {} s",
                self.grace.as_secs()
            );
            return Err(unavailable(&text));
        }
        let (session, line) = Session::new(id.clone(), &self.stop);
        let present = session.enter();
        open.insert(id, Arc::clone(&session));
        self.tasks.spawn(Arc::clone(self).live(Arc::clone(&session), line));
        Ok((session, present))
    }

    /// A session that has not been asked to end.
    pub(super) fn find(&self, id: &str) -> Option<Arc<Session>> {
        let session = lock(&self.open).get(id).cloned();
        session.filter(|it| !it.ends.gone.is_cancelled())
    }

    /// Serves a session to its end.
    async fn live(self: Arc<Self>, session: Arc<Session>, line: Line) {
        let _over = Over { sessions: &self, session: &session };
        let root = self.workspace_root.clone();
        let serving = async {
            let served = self.server.converse(line, root, session.ends.clone()).await;
            session.end();
            served
        };
        let leaving = async {
            tokio::select! {
                () = session.abandoned(self.grace) => session.end(),
                () = session.ends.gone.cancelled() => {}
            }
        };
        if let (Err(error), ()) = tokio::join!(Box::pin(serving), leaving) {
            tracing::error!("a session of MCP: {error:#}");
        }
    }

    /// Returns when the server stops.
    pub(super) async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// Returns when the server has been stopped and every session has ended.
    pub(super) async fn ended(&self) {
        self.stop.cancelled().await;
        drop(lock(&self.open));
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Tells that a session is over, also when its task fails.
struct Over<'a> {
    sessions: &'a Sessions,
    session: &'a Session,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.session.end();
        self.session.streams.close();
        lock(&self.sessions.open).remove(&self.session.id);
        self.session.over.cancel();
    }
}

/// 128 random bits: nobody can guess it, and it says nothing.
fn new_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().fold(String::with_capacity(32), |mut id, byte| {
        // Writing to a string cannot fail.
        write!(id, "{byte:02x}").ok();
        id
    }))
}
