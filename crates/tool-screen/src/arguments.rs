//! From a call to typed arguments: the rules that no schema of the small dialect can say.

use dsh_core::SafeInteger;
use serde_json::Number;
use tool_terminal::family::invalid;
use tools::ToolError;

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
