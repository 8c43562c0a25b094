//! Replies as servers send them.

mod support;

use model::{EndReason, Message, ModelEvent, ModelRequest, ToolRequest, ToolSchema, Usage};
use serde_json::json;

use support::{ask, ask_for, config};
use testkit::chat::{Answer, End, Server, broken, delta, event, finish, hello, stream, text};

fn call(id: &str, name: &str, arguments: &str) -> ToolRequest {
    ToolRequest { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

#[tokio::test]
async fn text_comes_in_pieces_and_is_counted() {
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 12, "completion_tokens": 2 } });
    let server =
        Server::play([stream(&[text(""), text("It "), text("works."), finish("stop"), usage])])
            .await;
    let told = ask(&config(server.address)).await;
    assert_eq!(told.error, None);
    assert_eq!(
        told.events,
        [
            ModelEvent::Text("It ".to_owned()),
            ModelEvent::Text("works.".to_owned()),
            ModelEvent::Usage(Usage { input_tokens: 12, output_tokens: 2 }),
            ModelEvent::End(EndReason::Stop),
        ]
    );
}

#[tokio::test]
async fn two_parallel_calls_are_put_together_from_split_deltas() {
    let calls = |calls| delta(&json!({ "tool_calls": calls }));
    let server = Server::play([stream(&[
        delta(&json!({ "role": "assistant", "content": null, "reasoning_content": "Two things." })),
        calls(json!([{ "index": 0, "id": "a", "type": "function", "function": { "name": "terminal_open", "arguments": "" } }])),
        calls(json!([{ "index": 0, "function": { "arguments": "{\"cwd\"" } }])),
        calls(json!([
            { "index": 1, "id": "b", "type": "function", "function": { "name": "terminal_list", "arguments": "{" } },
            { "index": 0, "function": { "arguments": ":\"/\"}" } },
        ])),
        calls(json!([{ "index": 1, "function": { "arguments": "}" } }])),
        finish("tool_calls"),
    ])])
    .await;
    let told = ask(&config(server.address)).await;
    assert_eq!(told.error, None);
    assert_eq!(
        told.events,
        [
            ModelEvent::Reasoning("Two things.".to_owned()),
            ModelEvent::ToolCall(call("a", "terminal_open", r#"{"cwd":"/"}"#)),
            ModelEvent::ToolCall(call("b", "terminal_list", "{}")),
            ModelEvent::End(EndReason::ToolCalls),
        ]
    );
}

#[tokio::test]
async fn malformed_arguments_are_passed_on_as_they_are() {
    let piece = json!([{ "index": 0, "id": "a", "function": { "name": "terminal_send", "arguments": "{\"text\": \"ls" } }]);
    let server =
        Server::play([stream(&[delta(&json!({ "tool_calls": piece })), finish("tool_calls")])])
            .await;
    let told = ask(&config(server.address)).await;
    let broken = call("a", "terminal_send", "{\"text\": \"ls");
    assert_eq!(told.events[0], ModelEvent::ToolCall(broken));
    assert_eq!(told.error, None);
}

#[tokio::test]
async fn bytes_may_be_cut_anywhere() {
    let whole: String = [text("größer 🦀"), finish("stop")].iter().map(event).collect();
    let whole = format!(": keep-alive\n\n{whole}data: [DONE]\n\n");
    let pieces = whole.bytes().map(|it| vec![it]).collect();
    let server = Server::play([Answer::Events { pieces, end: End::Whole }]).await;
    let told = ask(&config(server.address)).await;
    assert_eq!((told.text().as_str(), told.error), ("größer 🦀", None));
}

#[tokio::test]
async fn a_reply_that_said_why_it_ended_is_whole() {
    for end in [End::Whole, End::Cut] {
        let server = Server::play([broken(&[text("hello"), finish("length")], end)]).await;
        let told = ask(&config(server.address)).await;
        assert_eq!(told.error, None);
        assert_eq!(told.events.last(), Some(&ModelEvent::End(EndReason::Length)));
    }
}

#[tokio::test]
async fn the_request_says_everything() {
    let server = Server::play([hello()]).await;
    let said = ModelRequest {
        system: "Be brief.".to_owned(),
        messages: vec![
            Message::User { content: "Look.".to_owned() },
            Message::Assistant {
                content: String::new(),
                reasoning: "Look where?".to_owned(),
                calls: vec![
                    call("a", "terminal_list", ""),
                    call("b", "functions.terminal send", "{\"text\": \"l"),
                ],
            },
            Message::Tool { call_id: "a".to_owned(), content: "(none)".to_owned() },
            Message::Tool { call_id: "b".to_owned(), content: "no such tool".to_owned() },
            Message::Assistant {
                content: "Nothing.".to_owned(),
                reasoning: String::new(),
                calls: Vec::new(),
            },
            Message::Notice { content: "job done".to_owned() },
        ],
        tools: vec![ToolSchema {
            name: "terminal_list".to_owned(),
            description: "Lists.".to_owned(),
            parameters: json!({ "type": "object", "properties": {} }),
        }],
    };
    let told = ask_for(&config(server.address), said).await;
    assert_eq!(told.text(), "hello");
    let request = server.requests().pop().unwrap();
    assert!(request.head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", request.head);
    let authorization = format!("authorization: Bearer {}\r\n", support::KEY);
    assert!(request.head.contains(&authorization), "{}", request.head);
    assert_eq!(
        request.body,
        json!({
            "model": "tiny",
            "stream": true,
            "stream_options": { "include_usage": true },
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": "Look." },
                {
                    "role": "assistant", "content": null, "reasoning_content": "Look where?",
                    "tool_calls": [
                        { "id": "a", "type": "function",
                          "function": { "name": "terminal_list", "arguments": "{}" } },
                        { "id": "b", "type": "function",
                          "function": {
                              "name": "functions_terminal_send",
                              "arguments": r#"{"malformed_arguments":"{\"text\": \"l"}"#,
                          } },
                    ],
                },
                { "role": "tool", "tool_call_id": "a", "content": "(none)" },
                { "role": "tool", "tool_call_id": "b", "content": "no such tool" },
                { "role": "assistant", "content": "Nothing.", "reasoning_content": "" },
                { "role": "user", "content": "job done" },
            ],
            "tools": [{
                "type": "function",
                "function": {
                    "name": "terminal_list", "description": "Lists.",
                    "parameters": { "type": "object", "properties": {} },
                },
            }],
        })
    );
}

#[tokio::test]
async fn what_is_not_needed_is_not_sent() {
    let server = Server::play([hello()]).await;
    ask(&config(server.address)).await;
    let body = server.requests().pop().unwrap().body;
    let keys: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["messages", "model", "stream", "stream_options"]);
}

#[tokio::test]
async fn an_effort_is_sent_in_the_servers_words() {
    let server = Server::play([hello()]).await;
    let mut config = config(server.address);
    config.reasoning_effort = Some("ultra".to_owned());
    ask_for(&config, support::question()).await;
    assert_eq!(server.requests().pop().unwrap().body["reasoning_effort"], "ultra");
}
