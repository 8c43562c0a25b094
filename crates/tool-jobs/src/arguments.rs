//! From a call to typed arguments: the rules that no schema of the small dialect can say, and the
//! errors of the family.

use std::time::Duration;

use dsh_core::{SafeInteger, number::MAX_SAFE_INTEGER};
use jobs::JobError;
use serde_json::Number;
use tools::ToolError;

/// The family's name.
pub(crate) const ERROR: &str = "JobError";

/// An error under the family's name.
fn failure(code: &str, message: impl Into<String>) -> ToolError {
    ToolError::new(ERROR, code, message)
}

/// The jobs service's own errors keep text and code.
#[expect(clippy::needless_pass_by_value, reason = "used as a function of map_err")]
pub(crate) fn refused(error: JobError) -> ToolError {
    failure(error.code(), error.to_string())
}

fn invalid(message: impl std::fmt::Display) -> ToolError {
    failure("INVALID_ARGS", format!("invalid arguments: {message}"))
}

/// Refuses an empty id.
pub(crate) fn job_id(id: &str) -> Result<(), ToolError> {
    if id.is_empty() {
        return Err(invalid(
            r#""job_id" is empty: pass an id that a background call returned; job_list shows them"#,
        ));
    }
    Ok(())
}

/// A positive number of milliseconds.
pub(crate) fn timeout(number: &Number) -> Result<Duration, ToolError> {
    let whole = SafeInteger::<1>::from_number(number);
    whole.map(|it| Duration::from_millis(it.get())).ok_or_else(|| {
        let large = number.as_u64().is_some_and(|it| it > MAX_SAFE_INTEGER);
        let most = if large { " up to 2^53 - 1" } else { "" };
        invalid(format_args!(
            r#""timeout_ms" must be a positive integer{most}, got {number}: it is the longest wait in milliseconds"#
        ))
    })
}
