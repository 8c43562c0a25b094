//! From a call to typed arguments: the rules that no schema of the small dialect can say.

use std::sync::Arc;

use agents::Agent;
use dsh_core::SafeInteger;
use serde_json::Number;
use terminal::TerminalError;
use tools::{ToolCall, ToolError};

/// The family's name.
pub(crate) const ERROR: &str = "TerminalError";

/// An error under the family's name.
fn failure(code: &str, message: impl Into<String>) -> ToolError {
    ToolError::new(ERROR, code, message)
}

/// The session service's own errors keep text and code.
#[expect(clippy::needless_pass_by_value, reason = "used as a function of map_err")]
pub(crate) fn refused(error: TerminalError) -> ToolError {
    failure(error.code(), error.to_string())
}

pub(crate) fn invalid(message: impl std::fmt::Display) -> ToolError {
    failure("INVALID_ARGS", format!("invalid arguments: {message}"))
}

/// The agent that makes the call.
pub(crate) fn agent(call: &ToolCall) -> Result<&Arc<Agent>, ToolError> {
    call.agent
        .as_ref()
        .ok_or_else(|| failure("NO_AGENT", "terminal tools require an initiating agent"))
}

/// A whole number of at least `LEAST`.
pub(crate) fn whole<const LEAST: u64>(
    name: &str,
    number: Option<&Number>,
) -> Result<Option<u64>, ToolError> {
    let Some(number) = number else { return Ok(None) };
    match SafeInteger::<LEAST>::from_number(number) {
        Some(number) => Ok(Some(number.get())),
        None => Err(invalid(format_args!(
            r#""{name}" must be a whole number from {LEAST} to 2^53 - 1, got {number}"#
        ))),
    }
}
