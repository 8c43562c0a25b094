//! Notices of finished jobs.

use std::sync::Arc;

use agents::{Agent, Notice};
use jobs::JobDone;

use crate::{CompletionDelivery, Config, text};

/// Puts a notice into the owner's inbox when a job has ended that nobody was told of. Once one of
/// the tools tells of the end, the notice is obsolete.
pub(crate) struct Notifier {
    wakes: u32,
    /// Most bytes of a notice.
    cap: usize,
}

impl Notifier {
    pub(crate) fn new(config: &Config) -> Self {
        let most = u32::try_from(config.max_consecutive_wakes.get()).unwrap_or(u32::MAX);
        Self {
            wakes: match config.completion_delivery {
                CompletionDelivery::Wakeup => most,
                CompletionDelivery::Quiet => 0,
            },
            cap: config.max_result_bytes.as_len(),
        }
    }

    /// A job of this owner was started, or has changed.
    pub(crate) fn expect(&self, owner: Option<&Arc<Agent>>) {
        if let Some(owner) = owner {
            owner.inbox().expect(self.wakes);
        }
    }

    pub(crate) fn job_done(&self, JobDone { job, owner, told }: &JobDone) {
        let Some(owner) = owner else { return };
        if told.is_set() {
            return;
        }
        let text = text::notice(job, text::cap(job, self.cap));
        owner.inbox().push(Notice::new(text).waking(self.wakes).unless(told.clone()));
    }
}
