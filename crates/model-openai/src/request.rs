//! A conversation as the API takes it. Pure.
//!
//! Servers read back what models wrote, and some refuse a whole conversation for one call that is
//! not well-formed. So a call goes back with a name of allowed characters and with arguments that
//! are a JSON object.

use async_openai::types::chat::{
    ChatCompletionMessageToolCall, ChatCompletionMessageToolCalls,
    ChatCompletionRequestAssistantMessage, ChatCompletionRequestMessage,
    ChatCompletionRequestSystemMessage, ChatCompletionRequestToolMessage,
    ChatCompletionRequestUserMessage, ChatCompletionStreamOptions, ChatCompletionTool,
    ChatCompletionTools, CreateChatCompletionRequest, FunctionCall, FunctionObject,
};
use model::{Message, ModelRequest, ToolRequest, ToolSchema};
use serde_json::{Map, Value, json};

use crate::endpoint::Endpoint;

/// The body of the request for the next reply.
pub(crate) fn body(endpoint: &Endpoint, request: &ModelRequest) -> serde_json::Result<Value> {
    let system = ChatCompletionRequestSystemMessage {
        content: request.system.clone().into(),
        ..Default::default()
    };
    let system = Some(ChatCompletionRequestMessage::System(system));
    let system = system.filter(|_| !request.system.is_empty());
    let messages = system.into_iter().chain(request.messages.iter().map(message)).collect();
    let tools: Vec<_> = request.tools.iter().map(tool).collect();
    let typed = CreateChatCompletionRequest {
        model: endpoint.model.clone(),
        messages,
        tools: Some(tools).filter(|it| !it.is_empty()),
        stream: Some(true),
        stream_options: Some(ChatCompletionStreamOptions {
            include_usage: Some(true),
            include_obfuscation: None,
        }),
        ..Default::default()
    };
    let mut body = serde_json::to_value(typed)?;
    if let Some(effort) = &endpoint.reasoning_effort {
        // The library knows only the words of OpenAI.
        body["reasoning_effort"] = json!(effort);
    }
    complete_replies(endpoint, request, &mut body);
    Ok(body)
}

fn message(message: &Message) -> ChatCompletionRequestMessage {
    match message {
        Message::User { content } | Message::Notice { content } => {
            ChatCompletionRequestMessage::User(ChatCompletionRequestUserMessage {
                content: content.clone().into(),
                ..Default::default()
            })
        }
        Message::Assistant { content, calls, .. } => {
            let calls: Vec<_> = calls.iter().map(call).collect();
            let only_calls = content.is_empty() && !calls.is_empty();
            ChatCompletionRequestMessage::Assistant(ChatCompletionRequestAssistantMessage {
                content: (!only_calls).then(|| content.clone().into()),
                tool_calls: Some(calls).filter(|it| !it.is_empty()),
                ..Default::default()
            })
        }
        Message::Tool { call_id, content } => {
            ChatCompletionRequestMessage::Tool(ChatCompletionRequestToolMessage {
                content: content.clone().into(),
                tool_call_id: call_id.clone(),
            })
        }
    }
}

fn call(call: &ToolRequest) -> ChatCompletionMessageToolCalls {
    ChatCompletionMessageToolCalls::Function(ChatCompletionMessageToolCall {
        id: call.id.clone(),
        function: FunctionCall { name: name(&call.name), arguments: arguments(&call.arguments) },
    })
}

fn name(written: &str) -> String {
    const MOST: usize = 64;
    let allowed = |it: char| if it.is_ascii_alphanumeric() || it == '-' { it } else { '_' };
    let name: String = written.chars().take(MOST).map(allowed).collect();
    if name.is_empty() { "_".to_owned() } else { name }
}

fn arguments(written: &str) -> String {
    if written.trim().is_empty() {
        return "{}".to_owned();
    }
    match serde_json::from_str::<Map<String, Value>>(written) {
        Ok(_) => written.to_owned(),
        Err(_) => json!({ "malformed_arguments": written }).to_string(),
    }
}

fn tool(schema: &ToolSchema) -> ChatCompletionTools {
    ChatCompletionTools::Function(ChatCompletionTool {
        function: FunctionObject {
            name: schema.name.clone(),
            description: Some(schema.description.clone()),
            parameters: Some(schema.parameters.clone()),
            strict: None,
        },
    })
}

/// Gives the replies what the library does not write: the content of one that only called, which
/// servers write as null and some demand, and the reasoning, a key of DeepSeek's, which refuses a
/// conversation without it. A server that never gave any reasoning gets none.
fn complete_replies(endpoint: &Endpoint, request: &ModelRequest, body: &mut Value) {
    let thoughts: Vec<&str> = request
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::Assistant { reasoning, .. } => Some(reasoning.as_str()),
            _ => None,
        })
        .collect();
    let wanted = endpoint.wants_reasoning() || thoughts.iter().any(|it| !it.is_empty());
    let messages = body.get_mut("messages").and_then(Value::as_array_mut);
    let replies = messages.into_iter().flatten().filter(|it| it["role"] == "assistant");
    for (reply, thought) in replies.zip(thoughts) {
        if reply.get("content").is_none() {
            reply["content"] = Value::Null;
        }
        if wanted {
            reply["reasoning_content"] = json!(thought);
        }
    }
}
