//! From a call to typed arguments. The pipeline has validated the shape; here stand the rules that
//! no schema of the small dialect can say.

use std::sync::Arc;

use agents::Agent;
use dsh_core::{SafeInteger, number::MAX_SAFE_INTEGER};
use serde_json::Number;
use terminal::TerminalError;
use tools::{ToolCall, ToolError};

/// The family's name.
pub(crate) const ERROR: &str = "TerminalError";

/// An error under the family's name.
pub(crate) fn failure(code: &str, message: impl Into<String>) -> ToolError {
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

/// Refuses an empty id.
pub(crate) fn session_id(id: &str) -> Result<(), ToolError> {
    if id.is_empty() {
        return Err(invalid(
            r#""sessionId" is empty: pass an id that terminal_open returned; terminal_list shows them"#,
        ));
    }
    Ok(())
}

/// A whole number of at least `LEAST`.
pub(crate) fn whole<const LEAST: u64>(
    name: &str,
    number: &Number,
    hint: &str,
) -> Result<u64, ToolError> {
    SafeInteger::<LEAST>::from_number(number).map(SafeInteger::get).ok_or_else(|| {
        let kind = if LEAST == 0 { "non-negative" } else { "positive" };
        let large = number.as_u64().is_some_and(|it| it > MAX_SAFE_INTEGER);
        let most = if large { " up to 2^53 - 1" } else { "" };
        invalid(format_args!(r#""{name}" must be a {kind} integer{most}, got {number}: {hint}"#))
    })
}
