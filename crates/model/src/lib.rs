//! `ctx.model`: one reply of a language model to a conversation.
//!
//! Guarantees that every provider keeps:
//! - a reply is a stream of [`ModelEvent`]s that ends with [`ModelEvent::End`] or with one
//!   [`ModelError`], and yields nothing after that;
//! - dropping the stream cancels the request at once;
//! - a tool call arrives whole, in the order in which the model began its calls, each with an id
//!   of its own within the conversation;
//! - a provider tries again by itself where that is safe, and says so by [`ModelEvent::Retry`]:
//!   never after it yielded text or a call. An error is its last word;
//! - no key is part of an event or an error.

mod error;
mod event;
mod request;

pub use error::ModelError;
pub use event::{EndReason, ModelEvent, Usage};
pub use request::{Message, ModelRequest, ToolRequest, ToolSchema};

use dsh_core::Service;
use futures_util::stream::BoxStream;

/// Service key of the model.
pub struct Model;

impl Service for Model {
    type Api = dyn ModelAdapter;
    const NAME: &'static str = "model";
}

/// A reply as it comes.
pub type Reply = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// A model behind some API.
///
/// ```
/// use futures_util::{StreamExt as _, stream};
/// use model::{EndReason, Message, ModelAdapter, ModelEvent, ModelRequest, Reply};
///
/// /// Says what the user said.
/// struct Echo;
///
/// impl ModelAdapter for Echo {
///     fn reply(&self, request: ModelRequest) -> Reply {
///         let said = match request.messages.last() {
///             Some(Message::User { content }) => content.clone(),
///             _ => String::new(),
///         };
///         let events = [ModelEvent::Text(said), ModelEvent::End(EndReason::Stop)];
///         stream::iter(events.map(Ok)).boxed()
///     }
/// }
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let request = ModelRequest {
///     system: String::new(),
///     messages: vec![Message::User { content: "Hello".to_owned() }],
///     tools: Vec::new(),
/// };
/// let reply: Vec<_> = Echo.reply(request).filter_map(|it| async { it.ok() }).collect().await;
/// assert_eq!(reply, [ModelEvent::Text("Hello".to_owned()), ModelEvent::End(EndReason::Stop)]);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// A plugin provides it as the service [`Model`], and a composition mounts that plugin instead of
/// another provider.
pub trait ModelAdapter: Send + Sync {
    /// Whether a request can be made at all. Asks nobody: for what shows before the first request,
    /// such as a key that is missing.
    fn ready(&self) -> Result<(), ModelError> {
        Ok(())
    }

    /// Asks for the next message of the assistant. Nothing is sent before the stream is polled.
    fn reply(&self, request: ModelRequest) -> Reply;
}
