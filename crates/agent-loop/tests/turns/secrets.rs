//! What was typed unseen and is learned of late: by a job, or by a send that failed.

use model::ToolRequest;
use terminal::WaitReason;
use testkit::{
    Script, Step,
    scripted::{Act, outcome},
};
use tool_jobs as _;

use crate::{
    background::{ROWS, idle},
    fixture::{Fixture, booted, fixture, open, send},
    told::call,
};

/// A call that types into the first session and does not wait.
fn background(id: &str, text: &str) -> ToolRequest {
    let arguments =
        serde_json::json!({ "sessionId": "pty-1", "text": text, "run_in_background": true });
    call(id, "terminal_send", &arguments.to_string())
}

/// Ends the agent. The messages of the model in its log tell of the secret by its size alone.
async fn no_message_tells_it(it: Fixture) {
    let (_, events) = it.log().await;
    let said = events.iter().filter(|it| it["type"] == "assistant/message");
    let said: Vec<_> = said.map(ToString::to_string).collect();
    assert!(said.iter().all(|it| !it.contains("hunter2")), "{said:?}");
    assert!(said.iter().any(|it| it.contains("I typed (7 bytes, echo off).")), "{said:?}");
    it.end().await;
}

#[tokio::test]
async fn a_secret_of_a_job_at_work_is_in_no_message_of_the_log() {
    let it = booted(&Script::new(), "{}", ROWS).await;
    it.script.hide_input(true);
    let _gate = it.script.hold(Step::Settle);
    it.model.calls(&[open("c1"), background("c2", "hunter2")]).says("I typed hunter2.");
    let meanwhile = async {
        idle(&it, 1).await;
        it.cancel.cancel("enough");
    };
    tokio::join!(it.run(), meanwhile).0.unwrap();
    no_message_tells_it(it).await;
}

#[tokio::test]
async fn a_secret_that_a_job_finds_out_about_later_is_in_no_later_message_of_the_log() {
    for ended in [false, true] {
        let it = booted(&Script::new(), "{}", ROWS).await;
        it.script.next(Step::Open, Act::Succeed);
        let gate = it.script.hold(Step::Open);
        let _sending = it.script.hold(Step::Settle);
        it.model.calls(&[open("c1"), background("c2", "hunter2")]).calls(&[open("c3")]);
        it.model.says("I typed hunter2.");
        let meanwhile = async {
            it.script.saw_times("open pty", 2).await;
            if ended {
                let mut unseen = outcome("\ndsh> ", WaitReason::StdinRead);
                unseen.echoed = false;
                it.script.operation().settle(Ok(unseen));
                it.agent.inbox().arrived().await;
            } else {
                it.script.hide_input(true);
            }
            gate.open();
            if !ended {
                idle(&it, 1).await;
                it.cancel.cancel("enough");
            }
        };
        tokio::join!(it.run(), meanwhile).0.unwrap();
        no_message_tells_it(it).await;
    }
}

#[tokio::test]
async fn a_secret_of_a_send_that_failed_is_in_no_message_of_the_log() {
    let it = fixture().await;
    it.script.hide_input(true);
    it.script.fail(Step::Settle, "the session was lost");
    it.model.calls(&[open("c1"), send("c2", "hunter2")]).says("I typed hunter2.");
    it.run().await.unwrap();
    no_message_tells_it(it).await;
}

#[tokio::test]
async fn a_secret_is_in_no_arguments_of_a_message_either() {
    let it = fixture().await;
    it.script.hide_input(true);
    let named = call("c3", "terminal_open", r#"{"type":"scripted","name":"for hunter2"}"#);
    it.model.calls(&[open("c1"), send("c2", "hunter2")]).calls(&[named]).says("done");
    it.run().await.unwrap();
    let (_, events) = it.log().await;
    let [.., said, called, _, _, _] = &events[..] else { panic!("{events:?}") };
    for logged in [&said["data"]["toolCalls"][0], &called["data"]] {
        assert_eq!(logged["arguments"]["name"], "for (7 bytes, echo off)", "{events:?}");
    }
    it.end().await;
}
