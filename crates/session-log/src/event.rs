//! The events a log holds: their names and the shapes of their data, in one place.

use serde_json::{Value, json};

/// One event. The log adds `seq` and `time`.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Such as `tool/call`.
    pub kind: &'static str,
    /// Its payload, a JSON object.
    pub data: Value,
}

/// A tool call inside an assistant message.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedCall {
    /// Ties it to its `tool/call` and `tool/result`.
    pub call_id: String,
    /// Tool name.
    pub name: String,
    /// What of the arguments may be logged.
    pub arguments: Value,
}

/// The data of a `tool/result`.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedResult<'a> {
    /// Ties it to its `tool/call`.
    pub call_id: &'a str,
    /// Tool name.
    pub name: &'a str,
    /// Arguments that were held back with the call and may be logged now.
    pub arguments: Option<Value>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Blocks of model text.
    pub content: Value,
    /// The value of a success.
    pub value: Option<Value>,
    /// Message, name and code of a failure.
    pub error: Option<Value>,
}

impl Event {
    /// The user said something: `{content}`.
    pub fn user_message(content: &str) -> Self {
        Self { kind: "user/message", data: json!({ "content": content }) }
    }

    /// The model said something or called tools:
    /// `{content, toolCalls?: [{callId, name, arguments}]}`.
    pub fn assistant_message(content: &str, calls: &[LoggedCall]) -> Self {
        let mut data = json!({ "content": content });
        if !calls.is_empty() {
            let call = |it: &LoggedCall| json!({ "callId": it.call_id, "name": it.name, "arguments": it.arguments });
            data["toolCalls"] = calls.iter().map(call).collect();
        }
        Self { kind: "assistant/message", data }
    }

    /// The same with what the model thought, in `reasoning?`.
    #[must_use]
    pub fn with_reasoning(mut self, reasoning: &str) -> Self {
        if !reasoning.is_empty() {
            self.data["reasoning"] = reasoning.into();
        }
        self
    }

    /// The agent was told something: `{content}`.
    pub fn notice(content: &str) -> Self {
        Self { kind: "notice", data: json!({ "content": content }) }
    }

    /// A tool call starts: `{callId, name, arguments}`.
    pub fn tool_call(call_id: &str, name: &str, arguments: &Value) -> Self {
        let data = json!({ "callId": call_id, "name": name, "arguments": arguments });
        Self { kind: "tool/call", data }
    }

    /// A tool call is over: `{callId, name, arguments?, isError, content, value?, error?}`.
    pub fn tool_result(result: LoggedResult<'_>) -> Self {
        let mut data = json!({ "callId": result.call_id, "name": result.name });
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                data[name] = value;
            }
        };
        set("arguments", result.arguments);
        set("isError", Some(result.is_error.into()));
        set("content", Some(result.content));
        set("value", result.value);
        set("error", result.error);
        Self { kind: "tool/result", data }
    }

    /// The agent has ended: `{}`. Written by the log itself.
    pub(crate) fn agent_end() -> Self {
        Self { kind: "agent/end", data: json!({}) }
    }
}
