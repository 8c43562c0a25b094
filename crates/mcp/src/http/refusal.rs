//! A request that is not served: a status, and an error response of MCP's that says why.

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use rmcp::model::ErrorCode;
use serde_json::{Value, json};

use super::headers;
use crate::message;

/// Why a request is not served.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    body: Value,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, text: &str) -> Self {
        Self::of(status, message::refusal(None, ErrorCode::INVALID_REQUEST, text))
    }

    /// With this error response.
    pub(super) fn of(status: StatusCode, body: Value) -> Self {
        Self { status, body }
    }

    /// The body is no message.
    pub(super) fn no_message(why: &str) -> Self {
        let text = format!("the body is no message of MCP's: {why}");
        Self::of(StatusCode::BAD_REQUEST, message::refusal(None, ErrorCode::PARSE_ERROR, &text))
    }

    /// The client wants a version of MCP that has no sessions.
    pub(super) fn version(id: Option<Value>, requested: &str) -> Self {
        let text = "sessions over HTTP begin with `initialize`, in a version of MCP that has it";
        let mut body = message::refusal(id, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, text);
        body["error"]["data"] =
            json!({ "requested": requested, "supported": headers::supported() });
        Self::of(StatusCode::BAD_REQUEST, body)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let headers = [(header::CONTENT_TYPE, headers::JSON)];
        (self.status, headers, self.body.to_string()).into_response()
    }
}
