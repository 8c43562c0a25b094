//! What others put around tools: policy before, layers around, guards, policy after, observers.
//!
//! Layers of one kind run in the order of their registration, the first outermost. A layer that
//! panics fails its call closed: the call ends in an error result.

use dsh_core::async_trait;
use serde_json::Value;

use crate::{
    call::{Content, ToolCall, ToolResult},
    core::Core,
    tool::{ToolError, ToolOutput},
};

/// How the inside of the pipeline ended.
pub type Outcome = Result<ToolOutput, ToolError>;

/// What a [`PreLayer`] decides.
#[derive(Clone, Debug, PartialEq)]
pub enum PreDecision {
    /// Go on.
    Allow,
    /// Refuse, with a reason the model reads.
    Deny(String),
    /// Somebody must say yes. With nobody to ask the call is denied.
    Ask(String),
    /// Go on with other arguments. They are validated again.
    Rewrite(Value),
}

/// Decides on a call whose arguments are valid, before anything runs.
#[async_trait]
pub trait PreLayer: Send + Sync {
    /// The decision. Its future is dropped when the call is cancelled.
    async fn pre_execute(&self, call: &ToolCall) -> PreDecision;
}

/// Wraps guards and body: timeouts, metrics, rewriting, short-circuits.
///
/// `next` is consumed by [`Next::run`], so running a body twice does not compile:
///
/// ```compile_fail,E0382
/// use tools::{ExecuteLayer, Next, Outcome, ToolCall};
/// struct Twice;
/// #[dsh_core::async_trait]
/// impl ExecuteLayer for Twice {
///     async fn around(&self, call: ToolCall, next: Next<'_>) -> Outcome {
///         next.run(call.clone()).await.ok();
///         next.run(call).await
///     }
/// }
/// ```
///
/// The same layer with one run does:
///
/// ```
/// use tools::{ExecuteLayer, Next, Outcome, ToolCall};
/// struct Once;
/// #[dsh_core::async_trait]
/// impl ExecuteLayer for Once {
///     async fn around(&self, call: ToolCall, next: Next<'_>) -> Outcome {
///         next.run(call).await
///     }
/// }
/// ```
#[async_trait]
pub trait ExecuteLayer: Send + Sync {
    /// Returns `next.run(call)`, possibly changed on either side, or an outcome of its own.
    ///
    /// Of a changed call the arguments, the cancellation and the progress sink count; its id, tool
    /// and agent cannot be changed. To bound the time, cancel the call and go on awaiting `next`:
    /// a body whose `next` is dropped is cancelled and awaited all the same.
    async fn around(&self, call: ToolCall, next: Next<'_>) -> Outcome;
}

/// The rest of the pipeline, as an [`ExecuteLayer`] sees it.
#[must_use = "a layer that drops `next` refuses the call: return an outcome that says so"]
pub struct Next<'a> {
    pub(crate) layers: &'a [std::sync::Arc<dyn ExecuteLayer>],
    pub(crate) core: &'a Core<'a>,
}

impl Next<'_> {
    /// Delegates.
    pub async fn run(self, call: ToolCall) -> Outcome {
        match self.layers {
            [layer, rest @ ..] => layer.around(call, Next { layers: rest, core: self.core }).await,
            [] => self.core.run(call).await,
        }
    }
}

/// A monotonic denial: may refuse, may not allow what another guard refuses. Innermost.
pub trait Guard: Send + Sync {
    /// A reason to refuse this call, whose arguments are final, if there is one.
    fn deny(&self, call: &ToolCall) -> Option<String>;
}

/// What a [`PostLayer`] decides.
#[derive(Clone, Debug, PartialEq)]
pub enum PostDecision {
    /// Leave the result as it is.
    Accept,
    /// The model reads this instead; the value is replaced too, so that nothing of the old result
    /// is left. It must fit the output schema. Without one the result has no value.
    Replace {
        /// New model text.
        content: Content,
        /// New value.
        value: Option<Value>,
    },
    /// The result becomes an error with this reason.
    Block(String),
    /// Further blocks for the model, after the tool's own.
    AddContext(Content),
}

/// Judges what the inside of the pipeline returned, success or failure. Not asked about calls
/// that never got that far: invalid arguments and denials of a [`PreLayer`].
#[async_trait]
pub trait PostLayer: Send + Sync {
    /// The decision on `result`, which earlier layers may have changed. `call` has the arguments
    /// that the [`PreLayer`]s left.
    async fn post_execute(&self, call: &ToolCall, result: &ToolResult) -> PostDecision;
}

/// Hears of every finished call (`tools/result`).
pub trait ResultObserver: Send + Sync {
    /// A call and its final result. Must not block.
    fn tool_result(&self, call: &ToolCall, result: &ToolResult);
}
