//! What there is to ask for.

use axum::Router;
use tokio_util::sync::CancellationToken;

use crate::{
    assets,
    door::Door,
    listen::{ListenError, Listening},
};

/// Serves the page.
pub struct WebServer {
    listening: Listening,
}

impl WebServer {
    pub(crate) fn new(listening: Listening) -> Self {
        Self { listening }
    }

    /// Takes the port. Nobody is served yet.
    pub async fn open(&self) -> Result<Door, ListenError> {
        self.listening.open().await
    }

    /// Serves the page, and `others` besides, behind the same checks, until `stop`.
    pub async fn serve(&self, door: Door, others: Router, stop: CancellationToken) {
        let open = assets::open(door.access().clone());
        let closed = assets::closed().merge(others);
        door.serve(open, closed, stop).await;
    }
}
