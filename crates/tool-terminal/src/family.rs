//! What all tools about sessions have in common, wherever they are: who may call them, and under which
//! name their errors go.

use std::sync::Arc;

use agents::Agent;
use terminal::TerminalError;
use tools::{ToolCall, ToolError};

/// The name of the family's errors.
pub const ERROR: &str = "TerminalError";

/// An error of the family.
pub fn failure(code: &str, message: impl Into<String>) -> ToolError {
    ToolError::new(ERROR, code, message)
}

/// An error of the session service, with its own text and code.
#[expect(clippy::needless_pass_by_value, reason = "used as a function of map_err")]
pub fn refused(error: TerminalError) -> ToolError {
    failure(error.code(), error.to_string())
}

/// Arguments that no schema refuses and that do not fit.
pub fn invalid(message: impl std::fmt::Display) -> ToolError {
    failure("INVALID_ARGS", format!("invalid arguments: {message}"))
}

/// The agent that makes the call.
///
/// # Errors
/// `NO_AGENT`: nobody in particular calls, so nobody can own a session.
pub fn agent(call: &ToolCall) -> Result<&Arc<Agent>, ToolError> {
    call.agent
        .as_ref()
        .ok_or_else(|| failure("NO_AGENT", "terminal tools require an initiating agent"))
}
