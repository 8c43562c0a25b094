//! From a call to typed arguments. The pipeline has validated the shape; here stand the rules that
//! no schema of the small dialect can say.

use dsh_core::{SafeInteger, number::MAX_SAFE_INTEGER};
use serde_json::Number;
use tools::ToolError;

use crate::family::invalid;

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
