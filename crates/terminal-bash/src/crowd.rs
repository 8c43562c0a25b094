//! How many sends of this host wait at the moment: they share what looking for their ends may cost.

use std::sync::atomic::{AtomicU32, Ordering};

/// A count of nothing else, so no order of memory is needed.
static WAITING: AtomicU32 = AtomicU32::new(0);

/// One who waits, until it is dropped.
#[derive(Debug)]
pub(crate) struct Member {
    waiting: &'static AtomicU32,
}

impl Member {
    /// One more waits.
    pub(crate) fn join() -> Self {
        WAITING.fetch_add(1, Ordering::Relaxed);
        Self { waiting: &WAITING }
    }

    /// How many there are, this one among them.
    pub(crate) fn count(&self) -> u32 {
        self.waiting.load(Ordering::Relaxed)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
