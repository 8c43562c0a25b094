//! New output of a running call, as progress notifications.
//!
//! Guarantees: the tool never waits for the client; a slow client gets later output in fewer,
//! larger messages, and at most [`MOST`] bytes are held for it; the progress number grows with
//! every message; none is sent after the call's result.

use std::sync::Mutex;

use dsh_core::lock;
use rmcp::{
    RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::Peer,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tools::ProgressSink;

/// Most bytes of output that wait for the client.
const MOST: usize = 65_536;

/// The way from a tool to a client.
#[derive(Default)]
pub(crate) struct Progress {
    pending: Mutex<Pending>,
    changed: Notify,
}

#[derive(Default)]
struct Pending {
    text: String,
    /// Bytes of output so far, sent or dropped ones included.
    total: u64,
    over: bool,
}

impl ProgressSink for Progress {
    fn output(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        {
            let mut pending = lock(&self.pending);
            pending.total += text.len() as u64;
            pending.text.push_str(text);
            if pending.text.len() > MOST {
                let from = pending.text.ceil_char_boundary(pending.text.len() - MOST);
                pending.text.drain(..from);
            }
        }
        self.changed.notify_one();
    }
}

impl Progress {
    /// The call is over: what is still pending stands in its result.
    pub(crate) fn finish(&self) {
        lock(&self.pending).over = true;
        self.changed.notify_one();
    }

    /// Sends until the call is over or the client has gone.
    pub(crate) async fn pump(
        &self,
        peer: &Peer<RoleServer>,
        token: &ProgressToken,
        silent: &CancellationToken,
    ) {
        loop {
            tokio::select! {
                () = self.changed.notified() => {}
                () = silent.cancelled() => return,
            }
            let Some((text, total)) = self.take() else { return };
            if text.is_empty() {
                continue;
            }
            #[expect(clippy::cast_precision_loss, reason = "grows strictly far beyond any session")]
            let message =
                ProgressNotificationParam::new(token.clone(), total as f64).with_message(text);
            tokio::select! {
                sent = peer.notify_progress(message) => {
                    if let Err(error) = sent {
                        tracing::debug!(%error, "progress was not sent");
                        return;
                    }
                }
                () = silent.cancelled() => return,
            }
        }
    }

    /// What is pending; nothing once the call is over.
    fn take(&self) -> Option<(String, u64)> {
        let mut pending = lock(&self.pending);
        if pending.over {
            return None;
        }
        Some((std::mem::take(&mut pending.text), pending.total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_output_is_bounded_and_its_newest_part_survives() {
        let progress = Progress::default();
        for _ in 0..MOST {
            progress.output("é");
        }
        progress.output("end");
        let (text, total) = progress.take().unwrap();
        assert!(text.len() <= MOST && text.ends_with("éend"));
        assert_eq!(total, 2 * MOST as u64 + 3);
        progress.output("more");
        progress.finish();
        assert!(progress.take().is_none());
    }
}
