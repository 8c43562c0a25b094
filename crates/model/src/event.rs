//! What a reply consists of.

use std::time::Duration;

use crate::request::ToolRequest;

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// More of the text.
    Text(String),
    /// What the model thought, complete, at most once: not for show, and to be given back with the
    /// reply in the next request.
    Reasoning(String),
    /// A call, complete.
    ToolCall(ToolRequest),
    /// What the reply cost, once, where the API tells it.
    Usage(Usage),
    /// An attempt failed before anything of it was yielded, and there will be another.
    Retry {
        /// What went wrong, for people.
        reason: String,
        /// How long the provider waits before the next attempt.
        delay: Duration,
    },
    /// The end of the reply; the last event.
    End(EndReason),
}

/// Why a reply ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndReason {
    /// The model has said what it wanted to say.
    Stop,
    /// It waits for the results of its calls.
    ToolCalls,
    /// It was cut at the longest reply there can be. Calls of such a reply may be incomplete.
    Length,
    /// The API's own word for anything else, such as `content_filter`.
    Other(String),
}

/// Tokens of one reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of the request.
    pub input_tokens: u64,
    /// Of the reply.
    pub output_tokens: u64,
}
