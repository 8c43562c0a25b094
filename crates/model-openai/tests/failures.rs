//! What goes wrong between us and a server, and what is said of it.

mod support;

use dsh_core::SafeInteger;
use futures_util::StreamExt as _;
use model::{ModelAdapter as _, ModelEvent};
use serde_json::json;
use testkit::{
    chat::{
        Answer, End, Server, broken, delta, event, finish, hello, refusal, status, stream, text,
    },
    guarded,
};

use support::{ask, config, provider, question};

/// A server that gives this answer once, and what is said of it.
async fn said(answer: Answer) -> (&'static str, String) {
    let server = Server::play([answer]).await;
    let told = ask(&config(server.address)).await;
    assert_eq!((told.events.len(), told.retries.len()), (0, 0), "{told:?}");
    told.failure(server.address)
}

#[tokio::test]
async fn trouble_that_passes_is_waited_for() {
    let wait = |line| Answer::Plain {
        status: line,
        headers: "retry-after: 0\r\n".to_owned(),
        body: "slow down".to_owned(),
    };
    for (answer, reason) in [
        (wait("429 Too Many Requests"), "is asked too often (429 Too Many Requests: slow down)"),
        (wait("503 Service Unavailable"), "is in trouble (503 Service Unavailable: slow down)"),
        (status("500 Internal Server Error", ""), "is in trouble (500 Internal Server Error)"),
        (Answer::Close, "gave no answer"),
        (broken(&[], End::Cut), "was cut in the middle"),
        (broken(&[delta(&json!({ "reasoning_content": "I" }))], End::Cut), "was cut in the middle"),
        (stream(&[json!({ "error": { "message": "overloaded" } })]), "is in trouble"),
        (stream(&[finish("insufficient_system_resource")]), "the server is overloaded"),
    ] {
        let server = Server::play([answer.clone(), answer, hello()]).await;
        let told = ask(&config(server.address)).await;
        assert_eq!((told.text().as_str(), told.error), ("hello", None), "{reason}");
        assert_eq!(told.retries.len(), 2, "{reason}");
        assert!(told.retries.iter().all(|it| it.contains(reason)), "{:?}", told.retries);
        let bodies: Vec<_> = server.requests().into_iter().map(|it| it.body).collect();
        assert_eq!(bodies.len(), 3);
        assert!(bodies.iter().all(|it| *it == bodies[0]), "the same request each time");
    }
}

#[tokio::test]
async fn trouble_that_stays_is_given_up() {
    let answer = || status("500 Internal Server Error", "no\ndisk\u{1b}[31m");
    let server = Server::play((0..5).map(|_| answer())).await;
    let told = ask(&config(server.address)).await;
    assert_eq!(server.requests().len(), 3, "two more than the first");
    assert_eq!(
        told.failure(server.address),
        (
            "MODEL_UNAVAILABLE",
            "http://SERVER/v1 is in trouble (500 Internal Server Error: no disk [31m); try again \
             later"
                .to_owned()
        )
    );
}

#[tokio::test]
async fn a_wait_beyond_reason_is_told_instead() {
    let (code, text) = said(Answer::Plain {
        status: "429 Too Many Requests",
        headers: "retry-after: 3600\r\n".to_owned(),
        body: String::new(),
    })
    .await;
    assert_eq!(code, "MODEL_UNAVAILABLE");
    assert!(text.contains("(429 Too Many Requests) and wants 3600s of patience"), "{text}");
}

#[tokio::test]
async fn a_wait_may_be_a_date() {
    let answer = Answer::Plain {
        status: "429 Too Many Requests",
        headers: "retry-after: Wed, 21 Oct 2015 07:28:00 GMT\r\n".to_owned(),
        body: String::new(),
    };
    let server = Server::play([answer, hello()]).await;
    let mut config = config(server.address);
    // Who does not read the date waits for ever.
    config.retry_delay_ms = SafeInteger::of::<{ dsh_core::number::MAX_SAFE_INTEGER }>();
    assert_eq!(ask(&config).await.text(), "hello");
}

#[tokio::test]
async fn nothing_is_asked_again_once_text_was_told() {
    for (answer, code, words) in [
        (broken(&[text("It wo")], End::Cut), "REPLY_CUT", "was cut in the middle"),
        (broken(&[text("It wo")], End::Whole), "REPLY_CUT", "it ended without a reason"),
        (
            stream(&[text("It wo"), json!({ "error": { "message": "overloaded", "code": 503 } })]),
            "MODEL_UNAVAILABLE",
            "overloaded",
        ),
    ] {
        let server = Server::play([answer, hello()]).await;
        let told = ask(&config(server.address)).await;
        assert_eq!(told.events, [ModelEvent::Text("It wo".to_owned())]);
        let (is, text) = told.failure(server.address);
        assert_eq!(is, code);
        assert!(text.starts_with("http") || text.starts_with("the answer of http"), "{text}");
        assert!(text.contains(words), "{text}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn half_a_call_is_never_told() {
    let call = json!([{ "index": 0, "id": "a", "function": { "name": "terminal_send", "arguments": "{\"text\": \"rm -rf x" } }]);
    let call = delta(&json!({ "tool_calls": call }));
    let server = Server::play([broken(&[call], End::Cut), hello()]).await;
    let told = ask(&config(server.address)).await;
    assert_eq!((told.text().as_str(), told.retries.len()), ("hello", 1), "{told:?}");
    assert!(!told.events.iter().any(|it| matches!(it, ModelEvent::ToolCall(_))), "{told:?}");
}

#[tokio::test]
async fn a_line_that_is_no_json_is_an_error() {
    let pieces = [event(&text("It wo")), "data: {\"choices\": [}\n\n".to_owned()];
    let pieces = pieces.into_iter().map(String::into_bytes).collect();
    let server = Server::play([Answer::Events { pieces, end: End::Whole }]).await;
    let told = ask(&config(server.address)).await;
    assert_eq!(told.text(), "It wo");
    let (code, text) = told.failure(server.address);
    assert_eq!(code, "MALFORMED_REPLY");
    assert!(
        text.starts_with(
            "http://SERVER/v1 sent a piece of its answer that cannot be read (expected value"
        ),
        "{text}"
    );
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    for (answer, code, expected) in [
        (
            refusal("401 Unauthorized", "Incorrect API key provided", "invalid_api_key"),
            "KEY_REFUSED",
            "http://SERVER/v1 refused the key in DEEPSEEK_API_KEY (401 Unauthorized: Incorrect API \
             key provided); check that it belongs to this server and is still valid",
        ),
        (
            status("403 Forbidden", "<html>no</html>"),
            "KEY_REFUSED",
            "http://SERVER/v1 refused the key in DEEPSEEK_API_KEY (403 Forbidden); check that it \
             belongs to this server and is still valid",
        ),
        (
            status(
                "402 Payment Required",
                json!({ "error": { "message": "Insufficient Balance" } }).to_string(),
            ),
            "REQUEST_REFUSED",
            "http://SERVER/v1 does not answer before it is paid (402 Payment Required: Insufficient \
             Balance); top up the account of the key in DEEPSEEK_API_KEY, or use another key",
        ),
        (
            refusal("429 Too Many Requests", "You exceeded your quota", "insufficient_quota"),
            "REQUEST_REFUSED",
            "http://SERVER/v1 does not answer before it is paid (429 Too Many Requests: You exceeded \
             your quota); top up the account of the key in DEEPSEEK_API_KEY, or use another key",
        ),
        (
            refusal("404 Not Found", "The model `tiny` does not exist", "model_not_found"),
            "MODEL_NOT_FOUND",
            "http://SERVER/v1 has no model `tiny` (404 Not Found: The model `tiny` does not exist); \
             set `model` (--model) to one it has",
        ),
        (
            refusal("400 Bad Request", "Model Not Exist", "invalid_request_error"),
            "MODEL_NOT_FOUND",
            "http://SERVER/v1 has no model `tiny` (400 Bad Request: Model Not Exist); set `model` \
             (--model) to one it has",
        ),
        (
            status("404 Not Found", "404 page not found"),
            "MODEL_NOT_FOUND",
            "there is nothing at http://SERVER/v1/chat/completions (404 Not Found: 404 page not \
             found); check `baseUrl` (--base-url): many servers want it to end in /v1",
        ),
        (
            refusal(
                "400 Bad Request",
                "This model's maximum context length is 4096 tokens.",
                "context_length_exceeded",
            ),
            "CONTEXT_TOO_LONG",
            "the conversation is too long for tiny at http://SERVER/v1 (400 Bad Request: This \
             model's maximum context length is 4096 tokens.); begin a new one, or take a model with \
             a larger context",
        ),
        (
            status(
                "400 Bad Request",
                json!([{ "error": { "code": 400, "message": "it exceeds the context size" } }])
                    .to_string(),
            ),
            "CONTEXT_TOO_LONG",
            "the conversation is too long for tiny at http://SERVER/v1 (400 Bad Request: it exceeds \
             the context size); begin a new one, or take a model with a larger context",
        ),
        (
            status("413 Payload Too Large", ""),
            "CONTEXT_TOO_LONG",
            "the conversation is too long for tiny at http://SERVER/v1 (413 Payload Too Large); \
             begin a new one, or take a model with a larger context",
        ),
        (
            status("422 Unprocessable Entity", json!({ "detail": "tools: unknown" }).to_string()),
            "REQUEST_REFUSED",
            "http://SERVER/v1 refused the request (422 Unprocessable Entity: tools: unknown); if the \
             model has no tools, take another with `model` (--model)",
        ),
        (
            Answer::Plain {
                status: "301 Moved Permanently",
                headers: "location: https://elsewhere.example/\r\n".to_owned(),
                body: String::new(),
            },
            "MODEL_NOT_FOUND",
            "http://SERVER/v1/chat/completions redirects to https://elsewhere.example/ (301 Moved \
             Permanently), where neither the key nor the conversation is sent unasked; set `baseUrl` \
             (--base-url) to the final address",
        ),
        (
            status("200 OK", json!({ "choices": [] }).to_string()),
            "MALFORMED_REPLY",
            "http://SERVER/v1 sent application/json instead of a stream of events; check that \
             `baseUrl` (--base-url) is the API of an OpenAI-compatible server",
        ),
    ] {
        assert_eq!(said(answer).await, (code, expected.to_owned()));
    }
}

#[tokio::test]
async fn a_context_length_error_may_come_in_the_stream() {
    for error in [
        json!({ "message": "prompt is too long", "code": 400 }),
        json!({ "message": "too much", "code": "context_length_exceeded" }),
        json!({ "message": "the context size is exceeded", "type": "invalid_request_error" }),
        json!("the context window is full"),
    ] {
        let (code, text) = said(stream(&[json!({ "error": error })])).await;
        assert_eq!(code, "CONTEXT_TOO_LONG", "{text}");
    }
}

#[tokio::test]
async fn what_no_retry_helps_is_known_without_a_status() {
    for (error, expected, words) in [
        (
            json!({ "message": "no credit", "code": "insufficient_quota" }),
            "REQUEST_REFUSED",
            "does not answer before it is paid (no credit);",
        ),
        (
            json!({ "message": "what?", "code": "model_not_found" }),
            "MODEL_NOT_FOUND",
            "has no model `tiny` (what?);",
        ),
    ] {
        let (code, text) = said(stream(&[json!({ "error": error })])).await;
        assert_eq!(code, expected, "{text}");
        assert!(text.contains(words), "{text}");
    }
}

#[tokio::test]
async fn a_reply_that_ended_is_not_waited_for() {
    let mut server = Server::play([broken(&[text("hello"), finish("stop")], End::Silence)]).await;
    let told = ask(&config(server.address)).await;
    assert_eq!((told.text().as_str(), told.error), ("hello", None));
    guarded("the connection ends", server.left.recv()).await.unwrap();
}

#[tokio::test]
async fn nobody_listens() {
    let address = Server::play([]).await.address;
    let told = ask(&config(address)).await;
    assert_eq!(told.retries.len(), 2);
    assert_eq!(
        told.failure(address),
        (
            "MODEL_UNREACHABLE",
            "cannot reach http://SERVER/v1: Connection refused (os error 111); \
             check that the server runs and that `baseUrl` (--base-url) is right"
                .to_owned()
        )
    );
}

#[tokio::test]
async fn silence_is_bounded() {
    // The second is long enough for text that is on its way, on the busiest machine.
    for (answer, bound, shown, what) in [
        (Answer::Silence, SafeInteger::of::<50>(), "", "sent no answer for 50ms"),
        (
            broken(&[text("It wo")], End::Silence),
            SafeInteger::of::<2_000>(),
            "It wo",
            "sent nothing more of its answer for 2s",
        ),
    ] {
        let server = Server::play([answer]).await;
        let mut config = config(server.address);
        config.idle_timeout_ms = bound;
        let told = ask(&config).await;
        assert_eq!((told.text().as_str(), told.retries.len()), (shown, 0));
        assert_eq!(
            told.failure(server.address),
            (
                "MODEL_TIMED_OUT",
                format!(
                    "http://SERVER/v1 {what}; try again, or allow more with `idleTimeoutMs` of the \
                     row `model-openai`"
                )
            )
        );
    }
}

#[tokio::test]
async fn a_reply_that_nobody_wants_is_dropped_at_once() {
    for answer in [Answer::Silence, broken(&[text("It")], End::Silence)] {
        let first = matches!(answer, Answer::Events { .. });
        let mut server = Server::play([answer]).await;
        let mut reply = provider(&config(server.address)).reply(question());
        if first {
            let event = guarded("the text", reply.next()).await;
            assert_eq!(event, Some(Ok(ModelEvent::Text("It".to_owned()))));
        } else {
            // Polled until the request is there.
            tokio::select! {
                event = reply.next() => panic!("{event:?}"),
                () = testkit::wait_until("the request", || !server.requests().is_empty()) => {}
            }
        }
        drop(reply);
        guarded("the connection ends", server.left.recv()).await.unwrap();
    }
}

#[tokio::test]
async fn without_a_key_nothing_is_asked() {
    let server = Server::play([hello()]).await;
    let provider = model_openai::OpenAi::new(&config(server.address), |_| None).unwrap();
    let error = provider.ready().unwrap_err();
    assert_eq!(error.code(), "MISSING_KEY");
    let events: Vec<_> = provider.reply(question()).collect().await;
    assert_eq!(events, [Err(error)]);
    assert!(server.requests().is_empty());
}
