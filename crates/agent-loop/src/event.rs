//! What can be watched of a conversation while it goes on.

use std::time::Duration;

use model::Usage;
use serde_json::Value;
use tools::{CallIntent, ResultIntent, ToolResult};

use crate::history::Trimmed;

/// Hears what happens, in order. Output of a call may come from any thread.
pub trait LoopObserver: Send + Sync {
    /// Something happened. Must not block.
    fn event(&self, event: LoopEvent<'_>);
}

/// What happens.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoopEvent<'a> {
    /// The model is asked for its next reply.
    Asking,
    /// More text of the reply.
    Text(&'a str),
    /// The reply is complete.
    Replied(Option<Usage>),
    /// An attempt failed; text of this reply so far is void. The next one comes after `delay`.
    Retry {
        /// What went wrong.
        reason: &'a str,
        /// How long until then.
        delay: Duration,
    },
    /// The history had to become smaller.
    Trimmed(Trimmed),
    /// A call begins. The calls of one reply follow one another.
    CallBegan {
        /// Tool name.
        name: &'a str,
        /// The arguments as far as they may be shown; null where they are no JSON.
        arguments: &'a Value,
        /// How to show it.
        intent: Option<CallIntent>,
    },
    /// The running call has new output.
    CallOutput(&'a str),
    /// The running call is over.
    CallEnded {
        /// What the model reads.
        result: &'a ToolResult,
        /// How to show it.
        intent: Option<ResultIntent>,
    },
    /// The model is told something by the host.
    Notice(&'a str),
    /// The turn is over, and the agent waits for the end of what runs in the background.
    Waiting,
}
