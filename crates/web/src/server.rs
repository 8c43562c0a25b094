//! What there is to ask for.

use std::sync::Arc;

use axum::{
    Router,
    extract::{State, ws::WebSocketUpgrade},
    http::StatusCode,
    response::Response,
    routing::get,
};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    access::refusal,
    assets,
    door::Door,
    listen::{ListenError, Listening},
    live::Live,
    past::Past,
    request,
};

/// Most pages that watch at a time.
const MOST_PAGES: usize = 256;

/// Serves the page, and what it asks for.
pub struct WebServer {
    listening: Listening,
    live: Arc<Live>,
    past: Past,
}

/// The pages that watch.
#[derive(Clone)]
struct Pages {
    live: Arc<Live>,
    room: Arc<Semaphore>,
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl WebServer {
    pub(crate) fn new(listening: Listening, live: Live, past: Past) -> Self {
        Self { listening, live: Arc::new(live), past }
    }

    /// Takes the port. Nobody is served yet.
    pub async fn open(&self) -> Result<Door, ListenError> {
        self.listening.open().await
    }

    /// Serves the page, and `others` besides, behind the same checks, until `stop`. Every connection,
    /// and all that was done for one, has ended then.
    pub async fn serve(&self, door: Door, others: Router, stop: CancellationToken) {
        let pages = Pages {
            live: Arc::clone(&self.live),
            room: Arc::new(Semaphore::new(MOST_PAGES)),
            tracker: TaskTracker::new(),
            stop: stop.clone(),
        };
        let tracker = pages.tracker.clone();
        let live = Router::new().route("/live", get(watch)).with_state(pages);
        let open = assets::open(door.access().clone());
        let closed = assets::closed().merge(live).merge(self.past.clone().routes()).merge(others);
        door.serve(open, closed, stop).await;
        tracker.close();
        tracker.wait().await;
        self.past.quiet().await;
    }
}

async fn watch(State(pages): State<Pages>, upgrade: WebSocketUpgrade) -> Response {
    let Ok(room) = Arc::clone(&pages.room).try_acquire_owned() else {
        let why = "too many pages watch already: close one";
        return refusal(StatusCode::SERVICE_UNAVAILABLE, why);
    };
    // Held from before the upgrade, so that the server waits for what comes of it.
    let tracked = pages.tracker.token();
    upgrade.max_message_size(request::MOST).max_frame_size(request::MOST).on_upgrade(
        async move |socket| {
            pages.live.serve(socket, pages.stop).await;
            drop((room, tracked));
        },
    )
}
