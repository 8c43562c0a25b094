//! Output schemas of the tools. Parameter schemas come from the argument types.

use serde_json::{Value, json};
use tool_terminal::schema::{last_command, object, session_status, state};

fn integers(names: &[&str]) -> Value {
    names.iter().map(|name| ((*name).to_owned(), json!({ "type": "integer" }))).collect()
}

fn strings() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

fn highlights() -> Value {
    let highlight = object(
        &json!({
            "row": { "type": "integer" },
            "column": { "type": "integer" },
            "text": { "type": "string" },
        }),
        &["row", "column", "text"],
    );
    json!({ "type": "array", "items": highlight })
}

/// `terminal_screen` and `terminal_resize`.
pub(crate) fn screen() -> Value {
    let row = object(
        &json!({ "row": { "type": "integer" }, "text": { "type": "string" } }),
        &["row", "text"],
    );
    let cursor = object(
        &json!({
            "row": { "type": "integer" },
            "column": { "type": "integer" },
            "visible": { "type": "boolean" },
        }),
        &["row", "column", "visible"],
    );
    object(
        &json!({
            "hash": { "type": "string" },
            "changesOnly": { "type": "boolean" },
            "rows": { "type": "array", "items": row },
            "size": object(&integers(&["rows", "columns"]), &["rows", "columns"]),
            "cursor": cursor,
            "title": { "type": "string" },
            "alternateScreen": { "type": "boolean" },
            "modes": strings(),
            "highlights": highlights(),
        }),
        &[
            "hash",
            "changesOnly",
            "rows",
            "size",
            "cursor",
            "alternateScreen",
            "modes",
            "highlights",
        ],
    )
}

/// `terminal_keys`.
pub(crate) fn keys() -> Value {
    object(
        &json!({
            "screen": screen(),
            "output": { "type": "string" },
            "highlights": highlights(),
            "waitReason": {
                "type": "string",
                "enum": ["stdin_read", "inferred_idle", "timeout", "session_exit"],
            },
            "sessionStatus": session_status(),
            "truncated": { "type": "boolean" },
            "unpressed": { "type": "integer" },
            "lastCommand": last_command(),
            "state": state(),
            "limit": { "type": "string" },
            "repaired": strings(),
        }),
        &["waitReason", "sessionStatus", "truncated", "unpressed"],
    )
}

/// `terminal_wait`.
pub(crate) fn wait() -> Value {
    object(
        &json!({
            "ended": {
                "type": "string",
                "enum": ["output", "screen", "prompt", "input", "silence", "exit", "timeout"],
            },
            "matched": { "type": "string" },
            "output": { "type": "string" },
            "truncated": { "type": "boolean" },
            "sessionStatus": session_status(),
            "lastCommand": last_command(),
            "state": state(),
            "limit": { "type": "string" },
        }),
        &["ended", "output", "truncated", "sessionStatus"],
    )
}

/// `terminal_search`.
pub(crate) fn search() -> Value {
    let line = object(
        &json!({
            "line": { "type": "integer" },
            "text": { "type": "string" },
            "matches": { "type": "boolean" },
        }),
        &["line", "text", "matches"],
    );
    object(
        &json!({
            "lines": { "type": "array", "items": line },
            "matches": { "type": "integer" },
            "next": { "type": "integer" },
            "totalLines": { "type": "integer" },
            "truncated": { "type": "boolean" },
        }),
        &["lines", "matches", "totalLines", "truncated"],
    )
}

/// `terminal_lines`.
pub(crate) fn lines() -> Value {
    object(
        &json!({
            "text": { "type": "string" },
            "firstLine": { "type": "integer" },
            "count": { "type": "integer" },
            "totalLines": { "type": "integer" },
            "truncated": { "type": "boolean" },
        }),
        &["text", "firstLine", "count", "totalLines", "truncated"],
    )
}
