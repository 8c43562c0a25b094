//! Output schemas of the tools, by hand, since they are the wire's to the letter.

use serde_json::{Value, json};

/// A closed object.
fn object(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn job() -> Value {
    object(
        &json!({
            "id": { "type": "string" },
            "kind": { "type": "string" },
            "label": { "type": "string" },
            "status": {
                "type": "string",
                "enum": ["running", "stopping", "completed", "killed", "failed"],
            },
            "detail": { "type": "string" },
            "startedAt": { "type": "integer" },
            "finishedAt": { "type": "integer" },
        }),
        &["id", "kind", "label", "status", "startedAt"],
    )
}

/// `job_output`.
pub(crate) fn output() -> Value {
    object(&json!({ "text": { "type": "string" }, "job": job() }), &["text", "job"])
}

/// `job_list`.
pub(crate) fn list() -> Value {
    json!({ "type": "array", "items": job() })
}

/// `job_kill`.
pub(crate) fn kill() -> Value {
    let outcomes = json!(["cancellation-requested", "already-finished"]);
    object(
        &json!({ "outcome": { "type": "string", "enum": outcomes }, "job": job() }),
        &["outcome", "job"],
    )
}
