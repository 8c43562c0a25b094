//! From a call to typed arguments: the rules that no schema of the small dialect can say.

use std::sync::Arc;

use agents::Agent;
use dsh_core::SafeInteger;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Number, Value};
use terminal::TerminalError;
use tools::{ToolCall, ToolError};

/// An error under the family's name.
pub(crate) fn failure(code: &str, message: impl Into<String>) -> ToolError {
    ToolError::new("TerminalError", code, message)
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

/// The arguments as `T`.
pub(crate) fn parse<T: DeserializeOwned>(arguments: &Value) -> Result<T, ToolError> {
    T::deserialize(arguments).map_err(invalid)
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

/// A value as JSON. Fails only for a value that has no JSON form, which none of these is.
pub(crate) fn json(value: &impl Serialize) -> Result<Value, ToolError> {
    serde_json::to_value(value)
        .map_err(|error| failure("BACKEND_FAILED", format!("the result has no JSON form: {error}")))
}

/// The text of a value of type `T`. A value that a layer put in place of the tool's own, and that
/// does not have its shape, is shown as it is.
pub(crate) fn typed<T: DeserializeOwned>(value: &Value, text: impl FnOnce(&T) -> String) -> String {
    T::deserialize(value).map_or_else(|_| value.to_string(), |it| text(&it))
}
