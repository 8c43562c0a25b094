//! Puts a reply together from the pieces it comes in. Pure.
//!
//! Guarantees:
//! - however the pieces are cut, the calls are the same;
//! - a call gets an id of its own within the conversation, also from a server that gives none, or
//!   the same to several;
//! - what is kept is bounded by [`MAX_BYTES`] and [`MAX_CALLS`];
//! - the work for a piece does not grow with what came before it, but for the number of calls.

use std::collections::HashSet;

use crate::chunk::{CallDelta, Choice, Chunk, Delta, Tokens};
use model::{EndReason, ModelEvent, ToolRequest, Usage};

/// Most bytes of one reply: far beyond what any model writes at once.
const MAX_BYTES: usize = 16 << 20;

/// Most calls of one reply.
const MAX_CALLS: usize = 256;

/// What a piece of a call counts beside its texts, in bytes: also pieces that say nothing come to an
/// end.
const PIECE: usize = 16;

/// A reply so far.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    bytes: usize,
    reasoning: String,
    calls: Vec<Call>,
    usage: Option<Usage>,
    finish: Option<String>,
}

/// A call so far.
#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    extent: Extent,
}

/// Where the JSON object of the arguments ends, found as it comes.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    /// Brackets that are open.
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// A bracket was closed, and none is open.
    ended: bool,
}

/// A reply that is longer than any model's.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TooLong {
    #[error("more than {MAX_BYTES} bytes as one reply")]
    Bytes,
    #[error("more than {MAX_CALLS} calls in one reply")]
    Calls,
}

impl Assembly {
    /// Takes the next piece and gives the text in it, which is shown at once.
    pub(crate) fn push(&mut self, chunk: Chunk) -> Result<Option<String>, TooLong> {
        if let Some(tokens) = chunk.usage {
            self.usage = Some(tokens.into());
        }
        // One reply is asked for; further choices would be others.
        let first = chunk.choices.unwrap_or_default().into_iter();
        let first = first.filter(|it| it.index.unwrap_or(0) == 0);
        let mut text = String::new();
        for Choice { delta, finish_reason, .. } in first {
            let Delta { content, refusal, reasoning_content, reasoning, tool_calls } =
                delta.unwrap_or_default();
            for piece in content.into_iter().chain(refusal) {
                text += &piece;
            }
            let reasoning = reasoning_content.or(reasoning).unwrap_or_default();
            self.reasoning += &reasoning;
            self.bytes += text.len() + reasoning.len();
            for delta in tool_calls.unwrap_or_default() {
                self.add(delta)?;
            }
            self.finish = finish_reason.filter(|it| !it.is_empty()).or(self.finish.take());
        }
        if self.bytes > MAX_BYTES {
            return Err(TooLong::Bytes);
        }
        Ok(Some(text).filter(|it| !it.is_empty()))
    }

    fn add(&mut self, delta: CallDelta) -> Result<(), TooLong> {
        let function = delta.function.unwrap_or_default();
        let id = delta.id.unwrap_or_default();
        let name = function.name.unwrap_or_default();
        let arguments = function.arguments.unwrap_or_default();
        self.bytes += PIECE + id.len() + name.len() + arguments.len();
        let call = match self.begun(delta.index, &id, &name, &arguments) {
            Some(at) => &mut self.calls[at],
            None if self.calls.len() == MAX_CALLS => return Err(TooLong::Calls),
            None => self.calls.push_mut(Call { index: delta.index, ..Call::default() }),
        };
        if call.id.is_empty() {
            call.id = id;
        }
        // Some servers repeat the name with every piece, others cut it into pieces.
        if call.arguments.is_empty() && call.name != name {
            call.name += &name;
        }
        call.extent.take(&arguments);
        call.arguments += &arguments;
        Ok(())
    }

    /// The call that a piece belongs to, if it does not begin one.
    fn begun(&self, index: Option<u64>, id: &str, name: &str, arguments: &str) -> Option<usize> {
        let at = match (index, id) {
            (None, "") => self.calls.len().checked_sub(1),
            (None, id) => self.calls.iter().rposition(|it| it.id == id),
            (index, id) => self.calls.iter().rposition(|it| {
                it.index == index && (id.is_empty() || it.id.is_empty() || it.id == id)
            }),
        }?;
        // A name after complete arguments is another call, of a server that numbers all alike.
        let call = &self.calls[at];
        let named_anew = !name.is_empty() && (name != call.name || !arguments.is_empty());
        (!(named_anew && call.extent.ended)).then_some(at)
    }

    /// Why the model ended, in the server's words, once it said so.
    pub(crate) fn ended(&self) -> Option<&str> {
        self.finish.as_deref()
    }

    /// What is still to be told of a reply that [ended](Self::ended). `used` are the ids of earlier
    /// calls of the conversation.
    pub(crate) fn finish(self, mut used: HashSet<String>) -> Vec<ModelEvent> {
        let end = match self.finish.as_deref() {
            Some("stop" | "tool_calls" | "function_call") | None if self.calls.is_empty() => {
                EndReason::Stop
            }
            Some("stop" | "tool_calls" | "function_call") | None => EndReason::ToolCalls,
            Some("length") => EndReason::Length,
            Some(other) => EndReason::Other(other.to_owned()),
        };
        let mut events = Vec::new();
        if !self.reasoning.is_empty() {
            events.push(ModelEvent::Reasoning(self.reasoning));
        }
        for Call { id, name, arguments, .. } in self.calls {
            let id = own_id(id, &used);
            used.insert(id.clone());
            events.push(ModelEvent::ToolCall(ToolRequest { id, name, arguments }));
        }
        events.extend(self.usage.map(ModelEvent::Usage));
        events.push(ModelEvent::End(end));
        events
    }
}

impl Extent {
    fn take(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = self.in_string,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => continue,
            }
            self.ended = self.depth == 0 && matches!(byte, b'}' | b']') && !self.in_string;
        }
    }
}

fn own_id(id: String, used: &HashSet<String>) -> String {
    if !id.is_empty() && !used.contains(&id) {
        return id;
    }
    let mut ours = (used.len() + 1..).map(|number| format!("call-{number}"));
    ours.find(|it| !used.contains(it)).unwrap_or(id)
}

impl From<Tokens> for Usage {
    fn from(tokens: Tokens) -> Self {
        Self {
            input_tokens: tokens.prompt_tokens.unwrap_or(0),
            output_tokens: tokens.completion_tokens.unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    fn chunk(delta: &Value, finish: Option<&str>) -> Chunk {
        serde_json::from_value(json!({ "choices": [{ "delta": delta, "finish_reason": finish }] }))
            .unwrap()
    }

    fn call(id: &str, name: &str, arguments: &str) -> ToolRequest {
        ToolRequest { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
    }

    /// An entry of `tool_calls`; empty texts are left out.
    fn piece(index: Option<u64>, id: &str, name: &str, arguments: &str) -> Value {
        let text = |text: &str| Some(text.to_owned()).filter(|it| !it.is_empty());
        json!({
            "index": index, "id": text(id), "type": "function",
            "function": { "name": text(name), "arguments": arguments },
        })
    }

    /// The calls that come of these pieces, after calls with the ids `used`.
    fn calls(pieces: &[Value], used: &[&str]) -> Vec<ToolRequest> {
        let mut assembly = Assembly::default();
        for piece in pieces {
            assembly.push(chunk(&json!({ "tool_calls": [piece] }), None)).unwrap();
        }
        assembly.push(chunk(&json!({}), Some("tool_calls"))).unwrap();
        let used = used.iter().map(|it| (*it).to_owned()).collect();
        let mut events = assembly.finish(used);
        assert_eq!(events.pop(), Some(ModelEvent::End(EndReason::ToolCalls)));
        let calls = events.into_iter().map(|event| match event {
            ModelEvent::ToolCall(call) => call,
            other => panic!("no call: {other:?}"),
        });
        calls.collect()
    }

    #[test]
    fn pieces_become_calls() {
        let (one, two) = (Some(0), Some(1));
        let x = r#"{"x":1}"#;
        let cases = [
            vec![
                piece(one, "a", "send", ""),
                piece(one, "", "", r#"{"x""#),
                piece(one, "", "", ":1}"),
                piece(two, "b", "read", "{}"),
            ],
            // In turns.
            vec![
                piece(one, "a", "send", "{"),
                piece(two, "b", "read", ""),
                piece(one, "", "", r#""x":1"#),
                piece(two, "", "", "{}"),
                piece(one, "", "", "}"),
            ],
            // Not numbered, or all with the same number.
            vec![piece(None, "a", "send", x), piece(None, "b", "read", "{}")],
            vec![piece(one, "a", "send", x), piece(one, "b", "read", "{}")],
            // Everything in every piece.
            vec![
                piece(one, "a", "send", r#"{"x""#),
                piece(one, "a", "send", ":1}"),
                piece(one, "a", "send", ""),
                piece(two, "b", "read", "{"),
                piece(two, "b", "read", "}"),
            ],
            // A name in pieces, an id that comes late.
            vec![piece(one, "", "se", ""), piece(one, "a", "nd", x), piece(two, "b", "read", "{}")],
            // Numbers far out.
            vec![piece(Some(u64::MAX), "a", "send", x), piece(Some(7), "b", "read", "{}")],
            // Arguments that are no string.
            vec![
                json!({ "id": "a", "function": { "name": "send", "arguments": { "x": 1 } } }),
                piece(None, "b", "read", "{}"),
            ],
        ];
        for pieces in cases {
            let expected = [call("a", "send", x), call("b", "read", "{}")];
            assert_eq!(calls(&pieces, &[]), expected, "{pieces:?}");
        }
    }

    #[test]
    fn every_call_has_an_id_of_its_own() {
        let nameless = [
            piece(None, "", "send", r#"{"x":1}"#),
            piece(None, "", "send", r#"{"x":2}"#),
            piece(None, "", "read", ""),
        ];
        assert_eq!(
            calls(&nameless, &[]),
            [
                call("call-1", "send", r#"{"x":1}"#),
                call("call-2", "send", r#"{"x":2}"#),
                call("call-3", "read", ""),
            ]
        );
        let twice = [piece(Some(0), "a", "send", "{}"), piece(Some(1), "a", "read", "{}")];
        assert_eq!(calls(&twice, &[]), [call("a", "send", "{}"), call("call-2", "read", "{}")]);
        let earlier = [piece(Some(0), "call-2", "read", "{}")];
        assert_eq!(calls(&earlier, &["a", "call-2", "call-4"]), [call("call-5", "read", "{}")]);
    }

    #[test]
    fn broken_arguments_stay_as_they_are() {
        let broken = [piece(Some(0), "a", "send", r#"{"x": 1"#)];
        assert_eq!(calls(&broken, &[]), [call("a", "send", r#"{"x": 1"#)]);
    }

    #[test]
    fn text_is_told_at_once_and_reasoning_at_the_end() {
        let mut assembly = Assembly::default();
        let pieces = [
            (json!({ "role": "assistant", "content": "", "reasoning_content": null }), None),
            (json!({ "reasoning_content": "I ", "reasoning": "I " }), None),
            (json!({ "reasoning": "think" }), None),
            (json!({ "content": "so" }), Some("so")),
            (json!({ "refusal": "but no" }), Some("but no")),
        ];
        for (delta, text) in pieces {
            let told = assembly.push(chunk(&delta, Some(""))).unwrap();
            assert_eq!(told.as_deref(), text, "{delta}");
            assert_eq!(assembly.ended(), None);
        }
        let last = json!({
            "choices": [{ "delta": {}, "finish_reason": "stop" }, { "index": 1, "delta": { "content": "other" } }],
            "usage": { "prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10 },
        });
        assert_eq!(assembly.push(serde_json::from_value(last).unwrap()), Ok(None));
        let late = serde_json::from_value(json!({ "choices": [], "usage": null })).unwrap();
        assert_eq!(assembly.push(late), Ok(None));
        assert_eq!(assembly.ended(), Some("stop"));
        assert_eq!(
            assembly.finish(HashSet::new()),
            [
                ModelEvent::Reasoning("I think".to_owned()),
                ModelEvent::Usage(Usage { input_tokens: 7, output_tokens: 3 }),
                ModelEvent::End(EndReason::Stop),
            ]
        );
    }

    #[test]
    fn ends() {
        for (word, called, end) in [
            ("stop", false, EndReason::Stop),
            ("stop", true, EndReason::ToolCalls),
            ("tool_calls", true, EndReason::ToolCalls),
            ("tool_calls", false, EndReason::Stop),
            ("function_call", true, EndReason::ToolCalls),
            ("length", true, EndReason::Length),
            ("content_filter", false, EndReason::Other("content_filter".to_owned())),
        ] {
            let mut assembly = Assembly::default();
            if called {
                let piece = piece(Some(0), "a", "read", "{}");
                assembly.push(chunk(&json!({ "tool_calls": [piece] }), None)).unwrap();
            }
            assembly.push(chunk(&Value::Null, Some(word))).unwrap();
            let events = assembly.finish(HashSet::new());
            assert_eq!(events.last(), Some(&ModelEvent::End(end)), "{word}");
        }
    }

    #[test]
    fn an_endless_reply_is_given_up() {
        let mut assembly = Assembly::default();
        let piece = "x".repeat(MAX_BYTES / 2);
        let mut more = || assembly.push(chunk(&json!({ "reasoning": piece }), None));
        assert_eq!([more(), more(), more()], [Ok(None), Ok(None), Err(TooLong::Bytes)]);
    }

    #[test]
    fn calls_that_say_nothing_are_bounded_too() {
        let mut assembly = Assembly::default();
        let calls = |count: u64| {
            let calls: Vec<_> = (0..count).map(|at| piece(Some(at), "", "", "")).collect();
            chunk(&json!({ "tool_calls": calls }), None)
        };
        let most = MAX_CALLS as u64;
        assert_eq!(assembly.push(calls(most)), Ok(None));
        assert_eq!(assembly.push(calls(most + 1)), Err(TooLong::Calls));

        let mut assembly = Assembly::default();
        let nothing = || {
            let delta = Delta {
                tool_calls: Some((0..100_000).map(|_| CallDelta::default()).collect()),
                ..Delta::default()
            };
            let choice = Choice { delta: Some(delta), ..Choice::default() };
            Chunk { choices: Some(vec![choice]), ..Chunk::default() }
        };
        let pushes = 2 + MAX_BYTES / PIECE / 100_000;
        let end = (0..pushes).find_map(|_| assembly.push(nothing()).err());
        assert_eq!(end, Some(TooLong::Bytes));
    }

    /// Who reads all of the arguments again for each piece does not come to an end.
    #[test]
    fn a_long_call_may_be_named_with_every_piece() {
        let mut assembly = Assembly::default();
        let item = format!("{:?},", "}".repeat(40));
        let mut expected = r#"{"items":["#.to_owned();
        let mut add = |text: &str| {
            let piece = piece(Some(0), "a", "send", text);
            assembly.push(chunk(&json!({ "tool_calls": [piece] }), None)).unwrap();
        };
        add(&expected);
        for _ in 0..50_000 {
            add(&item);
            expected += &item;
        }
        add("0]}");
        expected += "0]}";
        let events = assembly.finish(HashSet::new());
        assert_eq!(events[0], ModelEvent::ToolCall(call("a", "send", &expected)));
        assert_eq!(events.len(), 2);
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            "[\"\\\\{}\\[\\]:, é\n]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a\"{}]{0,2}", inner, 0..3)
                    .prop_map(|it| Value::Object(it.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_end_of_an_object_is_where_a_parser_finds_it(
            inner in json_value(), pretty in any::<bool>()
        ) {
            let object = json!({ "x": inner });
            let text = if pretty { format!("{object:#} ") } else { object.to_string() };
            let mut extent = Extent::default();
            for (at, c) in text.char_indices() {
                extent.take(c.encode_utf8(&mut [0; 4]));
                let read = &text[..at + c.len_utf8()];
                let parsed = serde_json::from_str::<Map<String, Value>>(read).is_ok();
                prop_assert_eq!(extent.ended, parsed, "{}", read);
            }
        }

        #[test]
        fn cuts_do_not_change_the_calls(
            texts in prop::collection::vec("[a-z{}:\", é]{0,12}", 1..4),
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
            cuts in prop::collection::vec(1..4_usize, 0..40),
        ) {
            let mut rest: Vec<Vec<char>> = texts.iter().map(|it| it.chars().collect()).collect();
            let mut pieces: Vec<_> = (0..texts.len())
                .map(|at| piece(Some(at as u64), &at.to_string(), "send", ""))
                .collect();
            for (at, cut) in order.iter().map(|it| it.index(texts.len())).zip(cuts) {
                let cut = cut.min(rest[at].len());
                let text: String = rest[at].drain(..cut).collect();
                pieces.push(piece(Some(at as u64), "", "", &text));
            }
            for (at, left) in rest.iter().enumerate() {
                pieces.push(piece(Some(at as u64), "", "", &left.iter().collect::<String>()));
            }
            let expected: Vec<_> = texts
                .iter()
                .enumerate()
                .map(|(at, text)| call(&at.to_string(), "send", text))
                .collect();
            prop_assert_eq!(calls(&pieces, &[]), expected);
        }
    }
}
