//! One session of MCP: its way in, its way out, and who is there.

use std::{convert::Infallible, sync::Arc, time::Duration};

use rmcp::{
    RoleServer,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::streams::Streams;
use crate::wire::Ends;

/// Messages that wait for being taken.
const INBOX: usize = 16;

/// A session, as requests see it.
pub(super) struct Session {
    pub(super) id: String,
    pub(super) inbox: mpsc::Sender<RxJsonRpcMessage<RoleServer>>,
    pub(super) streams: Arc<Streams>,
    pub(super) ends: Ends,
    /// Its agent has ended.
    pub(super) over: CancellationToken,
    /// How many requests and streams are open.
    present: watch::Sender<usize>,
}

/// The session's side of the protocol.
pub(super) struct Line {
    inbox: mpsc::Receiver<RxJsonRpcMessage<RoleServer>>,
    streams: Arc<Streams>,
    ends: Ends,
}

/// A request or a stream of the client is open.
pub(super) struct Present(Arc<Session>);

impl Session {
    pub(super) fn new(id: String, stop: &CancellationToken) -> (Arc<Self>, Line) {
        let (inbox, taken) = mpsc::channel(INBOX);
        let (streams, ends) = (Arc::new(Streams::new()), Ends::new(stop));
        let line = Line { inbox: taken, streams: Arc::clone(&streams), ends: ends.clone() };
        let (over, present) = (CancellationToken::new(), watch::Sender::new(0));
        (Arc::new(Self { id, inbox, streams, ends, over, present }), line)
    }

    pub(super) fn enter(self: &Arc<Self>) -> Present {
        self.present.send_modify(|it| *it += 1);
        Present(Arc::clone(self))
    }

    /// Returns when nobody has been there for `grace`.
    pub(super) async fn abandoned(&self, grace: Duration) {
        let mut present = self.present.subscribe();
        loop {
            let nobody = *present.borrow_and_update() == 0;
            tokio::select! {
                () = tokio::time::sleep(grace), if nobody => return,
                changed = present.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Begins the end.
    pub(super) fn end(&self) {
        self.ends.silent.cancel();
        self.ends.gone.cancel();
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.present.send_modify(|it| *it -= 1);
    }
}

impl Transport<RoleServer> for Line {
    type Error = Infallible;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        let (streams, silent) = (Arc::clone(&self.streams), self.ends.silent.clone());
        async move {
            streams.say(item, &silent).await;
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        tokio::select! {
            biased;
            () = self.ends.gone.cancelled() => None,
            message = self.inbox.recv() => message,
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
