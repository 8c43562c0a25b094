//! What goes wrong, and how the loop goes on.

use agent_loop::TurnEnd;
use model::{EndReason, Message, ModelError};
use serde_json::json;
use terminal::WaitReason;
use testkit::{Step, scripted::outcome};

use crate::{
    fixture::{configured, fixture, open, send},
    told::call,
};

#[tokio::test]
async fn an_unknown_tool_is_answered_by_the_tools_there_are() {
    let it = fixture().await;
    it.model.calls(&[call("c1", "shell", r#"{"command":"ls"}"#), open("c2")]).says("done");
    assert_eq!(it.run().await, Ok(TurnEnd::Done));
    assert_eq!(
        it.told("c1"),
        "Error: unknown tool \"shell\": the tools are terminal_close, terminal_list, \
         terminal_open, terminal_read, terminal_send, terminal_signal"
    );
    assert!(it.told("c2").starts_with("started"));
    it.end().await;
}

#[tokio::test]
async fn broken_arguments_are_answered_and_logged_by_their_size() {
    let it = fixture().await;
    it.model
        .calls(&[
            call("c1", "terminal_open", r#"{"type":"scripted""#),
            call("c2", "terminal_open", r#"["scripted"]"#),
            call("c3", "terminal_list", ""),
        ])
        .says("done");
    assert_eq!(it.run().await, Ok(TurnEnd::Done));
    assert_eq!(
        it.told("c1"),
        "Error: the arguments of this call are no JSON, so nothing was run: EOF while parsing an \
         object at line 1 column 18; send the call again with a complete JSON object"
    );
    assert!(it.told("c2").starts_with("Error: invalid arguments: "), "{}", it.told("c2"));
    assert_eq!(it.told("c3"), "(no terminal sessions)");
    assert_eq!(it.script.lines(), [""; 0]);
    let (types, events) = it.log().await;
    assert_eq!(types[2..8], ["tool/call", "tool/result"].repeat(3));
    assert_eq!(events[1]["data"]["toolCalls"][0]["arguments"], json!({ "bytes": 18 }));
    assert_eq!(events[2]["data"]["arguments"], json!({ "bytes": 18 }));
    assert_eq!(events[3]["data"]["error"]["info"]["code"], "INVALID_ARGS");
    it.end().await;
}

#[tokio::test]
async fn a_cancelled_turn_ends_with_its_running_call() {
    let it = fixture().await;
    let _gate = it.script.hold(Step::Settle);
    it.model.calls(&[open("c1"), send("c2", "sleep 100"), send("c3", "echo never")]);
    let meanwhile = async {
        it.script.saw("start_send").await;
        it.cancel.cancel("the user interrupted");
    };
    let (end, ()) = tokio::join!(it.run(), meanwhile);
    assert_eq!(end, Ok(TurnEnd::Cancelled));
    let lines = it.script.lines();
    assert!(lines.contains(&"cancel pty-1: the user interrupted".to_owned()), "{lines:?}");
    assert!(!lines.iter().any(|it| it.contains("never")), "{lines:?}");
    assert_eq!(it.model.requests().len(), 1);
    let watched = it.watched();
    let last = watched.last().unwrap();
    assert!(last.contains("cancelled before anything ran: the user interrupted"), "{last}");
    // Each call has its result, so that the conversation could go on.
    let (types, _) = it.log().await;
    assert_eq!(types[2..], [&["tool/call", "tool/result"].repeat(3)[..], &["agent/end"]].concat());
    it.end().await;
}

#[tokio::test]
async fn a_cancelled_reply_calls_nothing() {
    let it = fixture().await;
    it.model.hangs("I will", open("c1"));
    let meanwhile = async {
        it.model.asked(1).await;
        it.cancel.cancel("enough");
    };
    let (end, ()) = tokio::join!(it.run(), meanwhile);
    assert_eq!(end, Ok(TurnEnd::Cancelled));
    assert_eq!(it.script.lines(), [""; 0]);
    it.end().await;
}

#[tokio::test]
async fn an_old_result_makes_room_and_the_log_keeps_it() {
    let it = configured("{ maxHistoryBytes: 8192 }").await;
    it.model.calls(&[open("c0")]);
    for number in 1..=6 {
        it.script.settle_with(outcome(&"x".repeat(3000), WaitReason::StdinRead));
        it.model.calls(&[send(&format!("c{number}"), "make")]);
    }
    it.model.says("done");
    assert_eq!(it.run().await, Ok(TurnEnd::Done));
    for request in it.model.requests() {
        let results = request.messages.iter().map(|it| match it {
            Message::Tool { content, .. } => content.len(),
            _ => 0,
        });
        assert!(results.sum::<usize>() <= 8192);
    }
    assert_eq!(
        it.told("c1"),
        "[this result of terminal_send, 3038 bytes, was left out to save space]"
    );
    assert!(it.told("c6").starts_with("xxx"));
    assert!(it.watched().iter().any(|it| it.starts_with("trimmed 2 0")), "{:?}", it.watched());
    let (_, events) = it.log().await;
    let full =
        events.iter().filter(|it| it["type"] == "tool/result" && it.to_string().len() > 3000);
    assert_eq!(full.count(), 6);
    it.end().await;
}

fn too_long() -> ModelError {
    ModelError::ContextTooLong("this model takes 10 tokens".into())
}

#[tokio::test]
async fn a_context_that_is_too_long_is_cut_once() {
    for second in [true, false] {
        let it = fixture().await;
        it.script.settle_with(outcome(&"x".repeat(3000), WaitReason::StdinRead));
        it.model.calls(&[open("c1"), send("c2", "make")]).fails("", too_long());
        if second {
            it.model.fails("", too_long());
            assert_eq!(it.run().await, Err(too_long()));
        } else {
            it.model.says("done");
            assert_eq!(it.run().await, Ok(TurnEnd::Done));
            assert!(it.told("c2").starts_with("[the first "), "{}", it.told("c2"));
        }
        assert_eq!(it.model.requests().len(), 3);
        assert_eq!(it.watched().iter().filter(|it| it.starts_with("trimmed")).count(), 1);
        it.end().await;
    }
}

#[tokio::test]
async fn a_context_that_cannot_be_cut_is_an_error_at_once() {
    let it = fixture().await;
    it.model.fails("", too_long());
    assert_eq!(it.run().await, Err(too_long()));
    it.end().await;
}

#[tokio::test]
async fn a_reply_that_breaks_off_is_asked_for_again() {
    let cut = || ModelError::Cut("the connection was lost".into());
    let it = fixture().await;
    it.model.fails("I wi", cut()).fails("I w", cut()).says("I will.");
    assert_eq!(it.run().await, Ok(TurnEnd::Done));
    assert_eq!(
        it.watched(),
        [
            "text I wi",
            "retry: the connection was lost",
            "text I w",
            "retry: the connection was lost",
            "text I will."
        ]
    );
    assert!(it.model.requests().iter().all(|it| it.messages.len() == 1));
    let (types, events) = it.log().await;
    assert_eq!(types, ["user/message", "assistant/message", "agent/end"]);
    assert_eq!(events[1]["data"]["content"], "I will.");
    it.end().await;

    let it = fixture().await;
    it.model.fails("I", cut()).fails("I", cut()).fails("I", cut());
    assert_eq!(it.run().await, Err(cut()));
    it.end().await;
}

#[tokio::test]
async fn a_reply_that_never_began_was_asked_for_often_enough_by_its_provider() {
    let cut = || ModelError::Cut("the connection was lost".into());
    let it = fixture().await;
    it.model.breaks(cut());
    assert_eq!(it.run().await, Err(cut()));
    assert_eq!(it.model.requests().len(), 1);
    it.end().await;
}

#[tokio::test]
async fn calls_of_a_reply_that_was_cut_are_answered_and_not_run() {
    for (reason, why) in [
        (EndReason::Length, "the reply was cut at the longest that the model can give"),
        (
            EndReason::Other("content_filter".into()),
            "the model's server cut the reply (content_filter)",
        ),
    ] {
        let it = fixture().await;
        let whole = r#"{"type":"scripted"}"#;
        let cut =
            [call("c1", "terminal_open", whole), call("c2", "terminal_open", r#"{"type":"scr"#)];
        it.model.calls_and_ends(&cut, reason).says("Again, then.");
        assert_eq!(it.run().await, Ok(TurnEnd::Done));
        assert_eq!(it.script.lines(), [""; 0]);
        for id in ["c1", "c2"] {
            assert_eq!(
                it.told(id),
                format!(
                    "Error: {why}, so this call may be incomplete and was not run: send it again \
                     whole, in a shorter reply"
                )
            );
        }
        let (types, events) = it.log().await;
        assert_eq!(types[2..6], ["tool/call", "tool/result"].repeat(2));
        assert_eq!(events[3]["data"]["error"]["info"]["code"], "INCOMPLETE_CALL");
        it.end().await;
    }
}

#[tokio::test]
async fn calls_of_a_reply_with_an_end_of_its_own_kind_are_run() {
    let it = fixture().await;
    it.model.calls_and_ends(&[open("c1")], EndReason::Other("tool_use".into())).says("done");
    assert_eq!(it.run().await, Ok(TurnEnd::Done));
    assert!(it.told("c1").starts_with("started"), "{}", it.told("c1"));
    it.end().await;
}

#[tokio::test]
async fn other_failures_of_the_model_end_the_turn() {
    let it = fixture().await;
    let error = ModelError::KeyRefused("the key was refused".into());
    it.model.calls(&[open("c1")]).fails("", error.clone());
    assert_eq!(it.run().await, Err(error));
    assert_eq!(it.model.requests().len(), 2);
    it.end().await;
}
