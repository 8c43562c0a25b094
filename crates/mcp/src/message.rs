//! What one line from the client is: a message of MCP's, a request that has to be refused, or
//! nothing to answer.
//!
//! Guarantees: what has an id that can be read and is no response is answered in any case, with
//! that id; a notification, a response and what is not JSON are never answered; no text of a
//! refusal repeats what the client sent, but a method's name.

use rmcp::{
    RoleServer,
    model::{ClientRequest, ErrorCode, JsonRpcMessage},
    service::RxJsonRpcMessage,
};
use serde_json::{Map, Value, json};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Where a request says its protocol version that needs no `initialize` before it.
const INLINE_VERSION: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";

/// What a line is.
#[derive(Debug)]
pub(crate) enum Judged {
    /// A message of MCP's.
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    /// The error response that answers it.
    Refused(Value),
    /// Why it is left alone.
    Ignored(&'static str),
}

/// Judges a line, without its newline. Before a session has `begun`, only what may stand there
/// gets through.
pub(crate) fn judge(line: &[u8], begun: bool) -> Judged {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    let Ok(message) = serde_json::from_slice::<Value>(line) else {
        return Judged::Ignored("it is not JSON");
    };
    let Some(object) = message.as_object() else {
        return malformed(None, "a message is a JSON object, and batches are not supported");
    };
    if !object.contains_key("method") {
        if !object.contains_key("result") && !object.contains_key("error") {
            return malformed(id_of(object), "a request has a `method`");
        }
        return unanswered(message, begun);
    }
    if !object.contains_key("id") {
        return unanswered(message, begun);
    }
    let Some(id) = id_of(object) else {
        return malformed(None, "the `id` of a request is a text or a whole number");
    };
    request(message, id, begun)
}

/// The answer to a line of more than `most` bytes.
pub(crate) fn too_long(most: usize) -> Value {
    let most = most / (1 << 20);
    refusal(None, ErrorCode::INVALID_REQUEST, &format!("a message has at most {most} MiB"))
}

/// Whether a session has begun with this message.
pub(crate) fn begins(message: &RxJsonRpcMessage<RoleServer>) -> bool {
    match message {
        JsonRpcMessage::Request(it) => {
            !matches!(it.request, ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_))
        }
        _ => false,
    }
}

fn id_of(object: &Map<String, Value>) -> Option<Value> {
    object.get("id").filter(|id| id.is_string() || id.is_i64()).cloned()
}

/// A notification or a response.
fn unanswered(message: Value, begun: bool) -> Judged {
    if !begun {
        return Judged::Ignored("the session has not begun");
    }
    match serde_json::from_value(message) {
        Ok(message) => Judged::Message(Box::new(message)),
        Err(_) => Judged::Ignored("it is neither a notification nor a response of MCP's"),
    }
}

fn request(message: Value, id: Value, begun: bool) -> Judged {
    let Some(method) = message["method"].as_str().map(str::to_owned) else {
        return malformed(Some(id), "a `method` is a text");
    };
    let inline = message.pointer(INLINE_VERSION).is_some();
    if message["jsonrpc"] != "2.0" {
        return malformed(Some(id), "`jsonrpc` is \"2.0\" in every message");
    }
    let opens = matches!(method.as_str(), "initialize" | "ping" | "server/discover") || inline;
    if !begun && !opens {
        return malformed(Some(id), "the session has not begun: send `initialize` first");
    }
    let Ok(message) = serde_json::from_value::<RxJsonRpcMessage<RoleServer>>(message) else {
        return malformed(Some(id), "it is no request of MCP's");
    };
    if let JsonRpcMessage::Request(it) = &message
        && let ClientRequest::CustomRequest(_) = &it.request
    {
        // What has a method of MCP's and other parameters ends up here too.
        let (code, text) = if let Some(parameters) = parameters(&method) {
            let text = format!("the parameters of `{method}` are {parameters}");
            (ErrorCode::INVALID_PARAMS, text)
        } else {
            (ErrorCode::METHOD_NOT_FOUND, format!("there is no method `{}`", shown(&method)))
        };
        return Judged::Refused(refusal(Some(id), code, &text));
    }
    Judged::Message(Box::new(message))
}

/// The parameters of the methods that are served here.
fn parameters(method: &str) -> Option<&'static str> {
    Some(match method {
        "initialize" => {
            "`protocolVersion` (a text), `capabilities` (an object) and `clientInfo` (an object \
             with the texts `name` and `version`)"
        }
        "ping" => "an object, or left out",
        "tools/list" => "an object with at most `cursor` (a text), or left out",
        "tools/call" => "`name` (a text) and `arguments` (an object, or left out)",
        "logging/setLevel" => {
            "`level` (debug, info, notice, warning, error, critical, alert or emergency)"
        }
        _ => return None,
    })
}

fn shown(method: &str) -> String {
    method.chars().take(100).collect()
}

fn malformed(id: Option<Value>, text: &str) -> Judged {
    Judged::Refused(refusal(id, ErrorCode::INVALID_REQUEST, text))
}

/// An error response. Without an id it has none, as MCP wants it.
pub(crate) fn refusal(id: Option<Value>, code: ErrorCode, message: &str) -> Value {
    let error = json!({ "code": code.0, "message": message });
    match id {
        Some(id) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        None => json!({ "jsonrpc": "2.0", "error": error }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

    #[track_caller]
    fn refused(line: &str, begun: bool) -> (Value, i64, String) {
        match judge(line.as_bytes(), begun) {
            Judged::Refused(it) => (
                it.get("id").cloned().unwrap_or(Value::Null),
                it["error"]["code"].as_i64().unwrap(),
                it["error"]["message"].as_str().unwrap().to_owned(),
            ),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn what_cannot_be_served_is_refused_with_its_id() {
        for (line, id, code, part) in [
            ("5", json!(null), -32600, "JSON object"),
            ("null", json!(null), -32600, "JSON object"),
            ("[]", json!(null), -32600, "batches"),
            ("{}", json!(null), -32600, "`method`"),
            (r#"{"id":3}"#, json!(3), -32600, "`method`"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, json!(null), -32600, "`id`"),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, json!(null), -32600, "`id`"),
            (r#"{"jsonrpc":"2.0","id":"a","method":7}"#, json!("a"), -32600, "`method`"),
            (r#"{"id":4,"method":"ping"}"#, json!(4), -32600, "`jsonrpc`"),
            (r#"{"jsonrpc":"1.0","id":4,"method":"ping"}"#, json!(4), -32600, "`jsonrpc`"),
            (r#"{"jsonrpc":"2.0","id":4,"method":"a/b"}"#, json!(4), -32601, "`a/b`"),
            (r#"{"jsonrpc":"2.0","id":4,"method":"tools/call"}"#, json!(4), -32602, "`name`"),
            (
                r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"t","arguments":[1]}}"#,
                json!(4),
                -32602,
                "`arguments`",
            ),
            (
                r#"{"jsonrpc":"2.0","id":4,"method":"logging/setLevel","params":{"level":"loud"}}"#,
                json!(4),
                -32602,
                "`level`",
            ),
        ] {
            let (its_id, its_code, text) = refused(line, true);
            assert_eq!((its_id, its_code), (id, code), "{line}");
            assert!(text.contains(part), "{line}: {text}");
        }
    }

    #[test]
    fn nothing_but_an_opening_comes_before_the_session() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a/b"}"#,
        ] {
            assert!(refused(line, false).2.contains("send `initialize` first"), "{line}");
        }
        let (id, code, text) = refused(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, false);
        assert_eq!((id, code), (json!(1), -32602));
        assert!(text.contains("`protocolVersion`"), "{text}");
        for line in [
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        ] {
            assert!(matches!(judge(line.as_bytes(), false), Judged::Ignored(_)), "{line}");
            assert!(matches!(judge(line.as_bytes(), true), Judged::Message(_)), "{line}");
        }
        for (line, is_begin) in
            [(INITIALIZE, true), (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, false)]
        {
            let Judged::Message(message) = judge(line.as_bytes(), false) else { panic!("{line}") };
            assert_eq!(begins(&message), is_begin, "{line}");
        }
    }

    #[test]
    fn what_needs_no_answer_gets_none() {
        for line in [
            "nonsense",
            "\u{1}",
            r#"{"jsonrpc":"2.0","id":"#,
            r#"{"jsonrpc":"2.0","method":7}"#,
            r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
        ] {
            assert!(matches!(judge(line.as_bytes(), true), Judged::Ignored(_)), "{line}");
        }
        assert!(matches!(judge(b"\xff\xfe", true), Judged::Ignored(_)));
        let marked = [BYTE_ORDER_MARK, INITIALIZE.as_bytes()].concat();
        assert!(matches!(judge(&marked, false), Judged::Message(_)));
    }
}
