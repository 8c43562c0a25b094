//! Steps as they should go.

use agent_loop::{Loop, TurnEnd};
use agents::{AgentStatus, Notice, ToolFilter};
use model::{EndReason, Message};
use model_script as _;
use serde_json::json;
use system_prompt::{Section, SystemPrompt};
use terminal::{Evidence, SendState, StateKind, WaitReason};
use testkit::{Script, Step, TestHost, guarded, scripted::outcome};

use crate::{
    fixture::{Watched, fixture, open, send},
    told::call,
};

#[tokio::test]
async fn calls_of_one_reply_run_in_order_and_everything_is_logged_once() {
    let it = fixture().await;
    it.model.calls(&[open("c1"), send("c2", "ls")]).says("It is done.");
    assert_eq!(it.run().await, Ok(TurnEnd::Done));
    assert_eq!(
        it.script.lines(),
        ["open pty-1", "opened pty-1", "start_send pty-1 \"ls\"", "settle pty-1"]
    );
    let sent = "ls\ndsh> \n[wait: stdin_read]\n[session: running]";
    let calls = vec![open("c1"), send("c2", "ls")];
    assert_eq!(
        it.last(),
        [
            Message::User { content: "do it".into() },
            Message::Assistant { content: String::new(), reasoning: String::new(), calls },
            Message::Tool {
                call_id: "c1".into(),
                content: "started terminal session pty-1 [type: scripted]\ndsh> ".into()
            },
            Message::Tool { call_id: "c2".into(), content: sent.into() },
        ]
    );
    assert_eq!(
        it.watched(),
        [
            r#"call terminal_open {"type":"scripted"} {"card":"generic","kind":"execute"}"#,
            r#"result "started terminal session pty-1 [type: scripted]\ndsh> " true"#,
            r#"call terminal_send {"sessionId":"pty-1","text":"ls"} {"card":"terminal","title":"ls","description":"Terminal pty-1"}"#,
            &format!("result {sent:?} true"),
            "text It is done.",
        ]
    );
    let (types, events) = it.log().await;
    assert_eq!(
        types,
        [
            "user/message",
            "assistant/message",
            "tool/call",
            "tool/result",
            "tool/call",
            "tool/result",
            "assistant/message",
            "agent/end"
        ]
    );
    assert_eq!(events[0]["data"], json!({ "content": "do it" }));
    let withheld = json!({ "sessionId": "pty-1", "text": { "bytes": 2 } });
    assert_eq!(
        events[1]["data"],
        json!({ "content": "", "toolCalls": [
            { "callId": "c1", "name": "terminal_open", "arguments": { "type": "scripted" } },
            { "callId": "c2", "name": "terminal_send", "arguments": withheld },
        ] })
    );
    assert_eq!(events[5]["data"]["arguments"]["text"], "ls");
    assert_eq!(events[6]["data"], json!({ "content": "It is done." }));
    it.end().await;
}

#[tokio::test]
async fn what_was_typed_without_echo_is_in_no_message_of_the_log() {
    let it = fixture().await;
    let mut unseen = outcome("\ndsh> ", WaitReason::StdinRead);
    unseen.echoed = false;
    it.script.settle_with(unseen);
    let misspelt = call("c3", "terminal_sent", r#"{"text":"hunter2"}"#);
    let broken = call("c4", "terminal_send", r#"{"sessionId":"pty-1","text":"hunter2""#);
    it.model.calls(&[open("c1"), send("c2", "hunter2"), misspelt, broken]).says("I typed hunter2.");
    it.run().await.unwrap();
    let (types, events) = it.log().await;
    assert_eq!(types.iter().filter(|it| *it == "tool/result").count(), 4);
    assert!(!format!("{events:?}").contains("hunter2"), "{events:?}");
    // Nor on a card, once it is known.
    let told = |it: &&String| it.contains("hunter2") && !it.starts_with("text ");
    let watched = it.watched();
    let told: Vec<_> = watched.iter().filter(told).collect();
    assert_eq!((told.len(), &told[0][..20]), (1, "call terminal_send {"), "{told:?}");
    assert_eq!(events[events.len() - 2]["data"]["content"], "I typed (7 bytes, echo off).");
    // The model itself gets back what it wrote.
    assert!(format!("{:?}", it.last()).contains("hunter2"));
    it.end().await;
}

#[tokio::test]
async fn a_secret_that_is_asked_for_is_hidden_before_it_is_typed() {
    let it = fixture().await;
    let mut asks = outcome("Password: ", WaitReason::StdinRead);
    asks.state = Some(SendState {
        kind: StateKind::Password,
        evidence: Evidence::Exact,
        echo: false,
        alternate_screen: false,
        foreground: None,
        busy: None,
        output_complete: true,
    });
    it.script.settle_with(asks);
    let mut unseen = outcome("\ndsh> ", WaitReason::StdinRead);
    unseen.echoed = false;
    it.script.settle_with(unseen);
    it.model
        .calls(&[open("c1"), send("c2", "login")])
        .says_and_calls("I type hunter2.", &[send("c3", "hunter2")])
        .says("done");
    it.run().await.unwrap();
    let (_, events) = it.log().await;
    assert!(!format!("{events:?}").contains("hunter2"), "{events:?}");
    it.end().await;
}

#[tokio::test]
async fn a_notice_enters_the_next_step_and_the_log_once() {
    let it = fixture().await;
    let gate = it.script.hold(Step::Settle);
    it.model.calls(&[open("c1"), send("c2", "make")]).calls(&[open("c3")]).says("done");
    let meanwhile = async {
        it.script.saw("start_send").await;
        assert_eq!(it.agent.status(), AgentStatus::Busy);
        it.agent.inbox().push(Notice::new("job a finished"));
        it.agent.inbox().push(Notice::new("job b finished"));
        gate.open();
    };
    let (end, ()) = tokio::join!(it.run(), meanwhile);
    assert_eq!((end, it.agent.status()), (Ok(TurnEnd::Done), AgentStatus::Idle));
    let second = &it.model.requests()[1].messages;
    let notice = |text: &str| Message::Notice { content: format!("job {text} finished") };
    assert_eq!(second[4..], [notice("a"), notice("b")]);
    assert_eq!(it.last().iter().filter(|it| matches!(it, Message::Notice { .. })).count(), 2);
    let (types, _) = it.log().await;
    assert_eq!(types[6..9], ["notice", "notice", "assistant/message"]);
    assert_eq!(types.iter().filter(|it| *it == "notice").count(), 2);
    it.end().await;
}

#[tokio::test]
async fn prompt_and_schemas_are_those_of_the_step() {
    let it = fixture().await;
    let gate = it.script.hold(Step::Open);
    it.model.calls(&[open("c1")]).says("done");
    let meanwhile = async {
        it.script.saw("open").await;
        let section = Section { name: "late".into(), order: 300, text: "A late section.".into() };
        it.host.service::<SystemPrompt>().contribute_for(&it.agent, section).unwrap();
        it.agent.set_tool_filter(Some(ToolFilter::Only(["terminal_list".to_owned()].into())));
        gate.open();
    };
    tokio::join!(it.run(), meanwhile).0.unwrap();
    let [first, second] = it.model.requests().try_into().unwrap();
    let names = |request: &model::ModelRequest| -> Vec<String> {
        request.tools.iter().map(|it| it.name.clone()).collect()
    };
    assert_eq!(names(&first).len(), 6);
    assert_eq!(names(&second), ["terminal_list"]);
    assert!(second.system.ends_with("\n\nA late section.") && !first.system.contains("late"));
    insta::assert_snapshot!(first.system);
    it.end().await;
}

#[tokio::test]
async fn a_reply_says_how_it_ended() {
    for (reason, end) in [
        (EndReason::Stop, TurnEnd::Done),
        (EndReason::ToolCalls, TurnEnd::Done),
        (EndReason::Length, TurnEnd::Length),
        (EndReason::Other("content_filter".into()), TurnEnd::Other("content_filter".into())),
    ] {
        let it = fixture().await;
        it.model.ends("so", reason);
        assert_eq!(it.run().await, Ok(end));
        it.end().await;
    }
}

#[tokio::test]
async fn a_script_drives_the_same_loop() {
    for (expected, right) in [("dsh> ", true), ("never shown", false)] {
        let script = Script::new();
        let rows = format!(
            "{}- name: tool-terminal\n- name: agent-loop\n- name: model-script\n  config:\n    steps:\n\
             \x20   - say: Open it.\n      calls:\n      - tool: terminal_open\n        \
             arguments: {{ type: scripted }}\n        expect: [{{ line: '{expected}' }}]\n\
             \x20   - say: It is open.\n",
            script.composition()
        );
        let host = TestHost::boot(&rows).await;
        let agent = host.agent("a1");
        let running = host.service::<Loop>();
        let observer = std::sync::Arc::<Watched>::default();
        let end =
            guarded("run", running.run(&agent, "go", observer, &dsh_core::Cancel::new())).await;
        if right {
            assert_eq!(end, Ok(TurnEnd::Done));
        } else {
            let error = end.unwrap_err();
            assert_eq!(error.code(), "UNEXPECTED");
            assert!(error.to_string().contains(r#"expected the line "never shown""#), "{error}");
        }
        host.dispose().await.unwrap();
    }
}
