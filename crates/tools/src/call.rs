//! One tool call and its result.

use std::sync::Arc;

use agents::Agent;
use dsh_core::Cancel;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One call on its way to a tool.
#[derive(Clone)]
pub struct ToolCall {
    /// Unique in the agent's log.
    pub call_id: String,
    /// Tool name.
    pub name: String,
    /// Arguments as the caller wrote them.
    pub arguments: Value,
    /// The initiating agent.
    pub agent: Option<Arc<Agent>>,
    /// Cancels the call.
    pub cancel: Cancel,
    /// Takes partial output.
    pub progress: Option<Arc<dyn ProgressSink>>,
}

/// Takes partial output of a call that still runs.
pub trait ProgressSink: Send + Sync {
    /// New output, in order. Must not block.
    fn output(&self, text: &str);
}

/// What the caller gets back. A failure is a result, never a Rust error.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// What the model reads.
    pub content: Content,
    /// The validated value; none for an error.
    pub value: Option<Value>,
    /// Set for an error.
    pub error: Option<ErrorInfo>,
}

/// Blocks of model text.
pub type Content = Vec<ContentBlock>;

/// One block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ContentBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
}

impl ContentBlock {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorInfo {
    /// For people and models, without the `Error: ` prefix.
    pub message: String,
    /// For programs.
    pub info: ErrorCode,
}

/// Name and code of an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCode {
    /// Such as `TerminalError`.
    pub name: String,
    /// Such as `NO_SESSION`.
    pub code: String,
}

impl ToolResult {
    /// A failure, with the text the model reads.
    pub fn failure(message: impl Into<String>, info: ErrorCode) -> Self {
        let message = message.into();
        Self {
            content: vec![ContentBlock::text(format!("Error: {message}"))],
            value: None,
            error: Some(ErrorInfo { message, info }),
        }
    }

    /// The text of all blocks, joined by newlines.
    pub fn text(&self) -> String {
        let texts: Vec<&str> =
            self.content.iter().map(|ContentBlock::Text { text }| text.as_str()).collect();
        texts.join("\n")
    }

    /// Whether the call failed.
    pub fn is_error(&self) -> bool {
        self.error.is_some()
    }
}
