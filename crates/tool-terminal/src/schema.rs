//! Output schemas of the tools, by hand, since they are the wire's to the letter. Parameter schemas
//! come from the argument types, in the small dialect that models know.

use serde_json::{Value, json};

/// A closed object.
pub fn object(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// A value or null.
fn nullable(kind: &str) -> Value {
    json!({ "oneOf": [{ "type": kind }, { "type": "null" }] })
}

/// Whether a session's top-level process runs.
pub fn session_status() -> Value {
    let exited = object(
        &json!({
            "kind": { "type": "string", "const": "exited" },
            "exitCode": nullable("integer"),
            "signal": nullable("string"),
        }),
        &["kind", "exitCode", "signal"],
    );
    let running = object(&json!({ "kind": { "type": "string", "const": "running" } }), &["kind"]);
    json!({ "oneOf": [running, exited] })
}

/// `terminal_open`.
pub(crate) fn open() -> Value {
    object(
        &json!({
            "sessionId": { "type": "string" },
            "name": { "type": "string" },
            "type": { "type": "string" },
            "pid": { "type": "integer" },
            "status": session_status(),
            "motd": { "type": "string" },
        }),
        &["sessionId", "type", "status", "motd"],
    )
}

/// `terminal_send`.
pub(crate) fn send(report_state: bool) -> Value {
    let mut properties = json!({
        "kind": { "type": "string", "const": "foreground" },
        "viewport": { "type": "string" },
        "waitReason": {
            "type": "string",
            "enum": ["stdin_read", "inferred_idle", "timeout", "session_exit"],
        },
        "sessionStatus": session_status(),
        "truncated": { "type": "boolean" },
    });
    if report_state {
        properties["lastCommand"] = last_command();
        properties["state"] = state();
        properties["input"] = object(
            &json!({
                "accepted": { "type": "integer" },
                "unread": { "type": "integer" },
                "untyped": { "type": "integer" },
            }),
            &["accepted"],
        );
        properties["limit"] = json!({ "type": "string" });
        properties["repaired"] = json!({ "type": "array", "items": { "type": "string" } });
        properties["left"] = json!({ "type": "array", "items": process() });
    }
    let foreground =
        object(&properties, &["kind", "viewport", "waitReason", "sessionStatus", "truncated"]);
    let background = object(
        &json!({
            "kind": { "type": "string", "const": "background" },
            "jobId": { "type": "string" },
        }),
        &["kind", "jobId"],
    );
    json!({ "oneOf": [background, foreground] })
}

/// A shell command that ended.
pub fn last_command() -> Value {
    object(
        &json!({
            "exitCode": nullable("integer"),
            "durationMs": { "type": "integer" },
            "cwd": nullable("string"),
        }),
        &["exitCode", "durationMs", "cwd"],
    )
}

fn process() -> Value {
    object(
        &json!({ "pid": { "type": "integer" }, "command": { "type": "string" } }),
        &["pid", "command"],
    )
}

/// What a session is doing.
pub fn state() -> Value {
    object(
        &json!({
            "kind": {
                "type": "string",
                "enum": [
                    "prompt", "continuation", "line", "line_editor", "password", "raw", "tui",
                    "running", "relay", "exited",
                ],
            },
            "evidence": {
                "type": "string",
                "enum": [
                    "exact", "known", "editor_mode", "settled", "relay", "opaque_read",
                    "prompt_text", "silence",
                ],
            },
            "echo": { "type": "boolean" },
            "alternateScreen": { "type": "boolean" },
            "foreground": process(),
            "busy": {
                "type": "string",
                "enum": [
                    "running", "sleeping", "waiting_child", "pipe", "network", "stopped",
                    "opaque", "unread_input",
                ],
            },
            "outputComplete": { "type": "boolean" },
        }),
        &["kind", "evidence", "echo", "alternateScreen", "outputComplete"],
    )
}

/// `terminal_read`.
pub(crate) fn read(report_state: bool) -> Value {
    let mut properties = json!({
        "text": { "type": "string" },
        "totalLines": { "type": "integer" },
        "lineBegin": { "type": "integer" },
        "lineEnd": { "type": "integer" },
        "truncated": { "type": "boolean" },
    });
    if report_state {
        properties["firstLine"] = json!({ "type": "integer" });
    }
    object(&properties, &["text", "totalLines", "lineBegin", "lineEnd", "truncated"])
}

/// `terminal_signal`.
pub(crate) fn signal() -> Value {
    object(
        &json!({
            "delivered": { "type": "boolean", "const": true },
            "targetPgid": { "type": "integer" },
        }),
        &["delivered", "targetPgid"],
    )
}

/// `terminal_close`.
pub(crate) fn close() -> Value {
    object(
        &json!({
            "sessionId": { "type": "string" },
            "outcome": { "type": "string", "enum": ["closed", "already-closing"] },
        }),
        &["sessionId", "outcome"],
    )
}

/// `terminal_list`.
pub(crate) fn list() -> Value {
    let session = object(
        &json!({
            "sessionId": { "type": "string" },
            "name": { "type": "string" },
            "type": { "type": "string" },
            "pid": { "type": "integer" },
            "status": session_status(),
        }),
        &["sessionId", "type", "status"],
    );
    json!({ "type": "array", "items": session })
}
