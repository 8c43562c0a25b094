//! Plays the steps and checks what they gave.

use std::sync::{Arc, Mutex};

use dsh_core::lock;
use futures_util::{StreamExt as _, stream};
use model::{
    EndReason, Message, ModelAdapter, ModelError, ModelEvent, ModelRequest, Reply, ToolRequest,
};
use serde_json::Value;

use crate::config::{Expect, Step};

pub(crate) struct Player(Arc<Script>);

struct Script {
    steps: Vec<Step>,
    /// Replies given so far.
    played: Mutex<usize>,
}

impl Player {
    pub(crate) fn new(steps: Vec<Step>) -> Self {
        Self(Arc::new(Script { steps, played: Mutex::new(0) }))
    }
}

impl Script {
    /// The events of the next reply.
    fn next(&self, messages: &[Message]) -> Result<Vec<ModelEvent>, ModelError> {
        let mut played = lock(&self.played);
        let number = *played;
        if let Some(wrong) = number.checked_sub(1).and_then(|it| self.wrong(it, messages)) {
            return Err(ModelError::Unexpected(wrong));
        }
        let step = self.steps.get(number).ok_or_else(|| {
            ModelError::Unexpected(format!(
                "the script has only {number} steps, and a further reply was asked for: end a turn \
                 by a step without calls"
            ))
        })?;
        *played += 1;
        // In pieces, as a model says it.
        let text = step.say.split_inclusive(' ').map(|it| ModelEvent::Text(it.to_owned()));
        let calls = step.calls.iter().enumerate().map(|(index, call)| {
            ModelEvent::ToolCall(ToolRequest {
                id: id(number, index),
                name: call.tool.clone(),
                arguments: written(&call.arguments),
            })
        });
        let reason = if step.calls.is_empty() { EndReason::Stop } else { EndReason::ToolCalls };
        Ok(text.chain(calls).chain([ModelEvent::End(reason)]).collect())
    }

    /// The first thing that a step expected and did not get.
    fn wrong(&self, number: usize, messages: &[Message]) -> Option<String> {
        let calls = self.steps.get(number).into_iter().flat_map(|it| &it.calls);
        calls.enumerate().find_map(|(index, call)| {
            let text = result(messages, &id(number, index));
            let wrong = call.expect.iter().find_map(|it| unmet(it, text?));
            let wrong = if text.is_none() { Some("it has no result".to_owned()) } else { wrong };
            Some(format!("step {} of the script, {}: {}", number + 1, call.tool, wrong?))
        })
    }
}

impl ModelAdapter for Player {
    fn reply(&self, request: ModelRequest) -> Reply {
        let script = Arc::clone(&self.0);
        let events = stream::once(async move {
            match script.next(&request.messages) {
                Ok(events) => events.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            }
        });
        events.flat_map(stream::iter).boxed()
    }
}

fn id(step: usize, call: usize) -> String {
    format!("call-{}-{}", step + 1, call + 1)
}

fn written(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        arguments => arguments.to_string(),
    }
}

fn result<'a>(messages: &'a [Message], id: &str) -> Option<&'a str> {
    messages.iter().rev().find_map(|it| match it {
        Message::Tool { call_id, content } if call_id == id => Some(content.as_str()),
        _ => None,
    })
}

/// What was expected and what there is instead, where that is not the same.
fn unmet(expect: &Expect, text: &str) -> Option<String> {
    let (holds, expected) = match expect {
        Expect::Line(line) => (text.lines().any(|it| it == line), format!("the line {line:?}")),
        Expect::Text(part) => (text.contains(part), format!("{part:?}")),
        Expect::Without(part) => (!text.contains(part), format!("nothing like {part:?}")),
    };
    (!holds).then(|| format!("expected {expected}, got {text:?}"))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn conditions_say_what_came_instead() {
        let text = "one\ntwo";
        for (expect, wrong) in [
            (Expect::Line("two".into()), None),
            (Expect::Text("ne\ntw".into()), None),
            (Expect::Without("three".into()), None),
            (Expect::Line("tw".into()), Some(r#"expected the line "tw", got "one\ntwo""#)),
            (Expect::Text("x".into()), Some(r#"expected "x", got "one\ntwo""#)),
            (Expect::Without("one".into()), Some(r#"expected nothing like "one", got "one\ntwo""#)),
        ] {
            assert_eq!(unmet(&expect, text).as_deref(), wrong, "{expect:?}");
        }
    }

    fn player() -> Player {
        let steps = serde_json::json!([
            { "say": "Two words", "calls": [
                { "tool": "a", "arguments": { "x": 1 }, "expect": [{ "line": "fine" }] },
                { "tool": "b", "arguments": "{broken" },
            ] },
            { "say": "Done" },
        ]);
        Player::new(serde_json::from_value(steps).unwrap())
    }

    fn results(texts: [(&str, &str); 2]) -> Vec<Message> {
        let tool = |(id, text): (&str, &str)| Message::Tool {
            call_id: id.to_owned(),
            content: text.to_owned(),
        };
        texts.map(tool).into()
    }

    #[test]
    fn a_step_is_a_reply() {
        let player = player();
        let call = |id: &str, name: &str, arguments: &str| {
            ModelEvent::ToolCall(ToolRequest {
                id: id.into(),
                name: name.into(),
                arguments: arguments.into(),
            })
        };
        assert_eq!(
            player.0.next(&[]).unwrap(),
            [
                ModelEvent::Text("Two ".into()),
                ModelEvent::Text("words".into()),
                call("call-1-1", "a", r#"{"x":1}"#),
                call("call-1-2", "b", "{broken"),
                ModelEvent::End(EndReason::ToolCalls),
            ]
        );
        let messages = results([("call-1-1", "fine"), ("call-1-2", "whatever")]);
        let last = player.0.next(&messages).unwrap();
        assert_eq!(last, [ModelEvent::Text("Done".into()), ModelEvent::End(EndReason::Stop)]);
        let error = player.0.next(&messages).unwrap_err();
        assert!(error.to_string().starts_with("the script has only 2 steps"), "{error}");
    }

    #[test]
    fn a_reply_that_nobody_polls_plays_nothing() {
        let player = player();
        let request =
            || ModelRequest { system: String::new(), messages: Vec::new(), tools: Vec::new() };
        drop(player.reply(request()));
        let first = player.reply(request()).next().now_or_never().flatten();
        assert_eq!(first, Some(Ok(ModelEvent::Text("Two ".into()))));
    }

    #[test]
    fn what_is_not_as_expected_is_the_end() {
        for (messages, wrong) in [
            (
                results([("call-1-1", "bad"), ("call-1-2", "")]),
                r#"step 1 of the script, a: expected the line "fine", got "bad""#,
            ),
            (
                results([("call-1-1", "fine"), ("other", "")]),
                "step 1 of the script, b: it has no result",
            ),
        ] {
            let player = player();
            player.0.next(&[]).unwrap();
            assert_eq!(player.0.next(&messages).unwrap_err(), ModelError::Unexpected(wrong.into()));
        }
    }
}
