//! That something about the sessions has changed.

use tokio::sync::watch;

/// Tells whoever follows that something about the sessions has changed: one was opened or closed, or
/// has ended, a send was started or has settled, a lease was taken or given back. Clones tell the same
/// followers.
#[derive(Clone, Debug, Default)]
pub struct Changes(watch::Sender<u64>);

impl Changes {
    /// Something has changed.
    pub fn tell(&self) {
        // Mostly nobody follows, and each send would tell three times.
        if self.0.receiver_count() > 0 {
            self.0.send_modify(|count| *count += 1);
        }
    }

    /// Counts the changes from now on.
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
