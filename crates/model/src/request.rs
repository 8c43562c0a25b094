//! What a model is asked.

use serde_json::Value;

/// A conversation up to the reply that is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRequest {
    /// The system prompt.
    pub system: String,
    /// The messages, oldest first. Each call of an assistant message is answered by a tool message
    /// before the next message of another kind.
    pub messages: Vec<Message>,
    /// The tools the model may call.
    pub tools: Vec<ToolSchema>,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// What the user said.
    User {
        /// The text.
        content: String,
    },
    /// What the host tells the model by itself, such as the end of a job. An API without a role for
    /// it takes it as a message of the user.
    Notice {
        /// The text.
        content: String,
    },
    /// An earlier reply.
    Assistant {
        /// Its text; empty when it only called tools.
        content: String,
        /// [`ModelEvent::Reasoning`](crate::ModelEvent::Reasoning) of that reply; empty when there
        /// was none. Some APIs refuse a conversation whose calls lack it.
        reasoning: String,
        /// Its calls, in order.
        calls: Vec<ToolRequest>,
    },
    /// The result of one call.
    Tool {
        /// [`ToolRequest::id`] of the call.
        call_id: String,
        /// The text.
        content: String,
    },
}

/// A call the model wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRequest {
    /// Unique within the conversation.
    pub id: String,
    /// Tool name.
    pub name: String,
    /// The arguments as the model wrote them: JSON, unless the model broke it. Empty text stands
    /// for no arguments.
    pub arguments: String,
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSchema {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}
