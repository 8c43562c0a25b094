//! From a call to typed arguments. The pipeline has validated the shape; here stand the rules that
//! no schema of the small dialect can say.

use std::sync::Arc;

use agents::Agent;
use serde::de::DeserializeOwned;
use serde_json::{Number, Value};
use terminal::TerminalError;
use tools::{ToolCall, ToolError};

use crate::MAX_SAFE_INTEGER;

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

/// Refuses an empty id.
pub(crate) fn session_id(id: &str) -> Result<(), ToolError> {
    if id.is_empty() {
        return Err(invalid(
            r#""sessionId" is empty: pass an id that terminal_open returned; terminal_list shows them"#,
        ));
    }
    Ok(())
}

/// A whole number of at least `least`.
pub(crate) fn whole(name: &str, number: &Number, least: u64, hint: &str) -> Result<u64, ToolError> {
    let value = number.as_u64().or_else(|| whole_float(number.as_f64()?));
    match value {
        Some(value) if (least..=MAX_SAFE_INTEGER).contains(&value) => Ok(value),
        _ => {
            let kind = if least == 0 { "non-negative" } else { "positive" };
            let most =
                if value.is_some_and(|it| it > MAX_SAFE_INTEGER) { " up to 2^53 - 1" } else { "" };
            Err(invalid(format_args!(
                r#""{name}" must be a {kind} integer{most}, got {number}: {hint}"#
            )))
        }
    }
}

/// `5.0` is a whole number to JSON; `5.5`, `-1.0` and what an `f64` cannot hold exactly are none.
fn whole_float(number: f64) -> Option<u64> {
    #[expect(clippy::cast_precision_loss, reason = "2^53 - 1 is exact")]
    let most = MAX_SAFE_INTEGER as f64;
    if number.fract() != 0.0 || !(0.0..=most).contains(&number) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole and in range"
    )]
    Some(number as u64)
}
