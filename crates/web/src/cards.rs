//! Cards: what the log of a run tells, as a page shows it. Live and past runs share [`Run`].
//!
//! Guarantees: of one run the newest [`MOST`] cards are kept, each with the end of its output; what is
//! left out is counted. Nothing is told that the log does not hold.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;
use serde_json::Value;
use tools::{CallIntent, ResultIntent, ToolKind, ToolRegistry, ToolResult};

/// Most cards of one run.
pub(crate) const MOST: usize = 200;
/// Most bytes of the output of one card.
const MOST_OUTPUT: usize = 16 << 10;
/// Most characters of a title.
const MOST_TITLE: usize = 400;
/// Commands of a session that are remembered.
const COMMANDS: usize = 10;

/// A card, and its place in the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Dated {
    /// Sequence number of the call.
    pub(crate) seq: u64,
    /// When it began, in milliseconds since the epoch.
    pub(crate) time: u64,
    pub(crate) card: Card,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Card {
    pub(crate) call_id: String,
    tool: String,
    state: State,
    kind: Kind,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    /// Bytes of the output that are left out before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_status: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Running,
    Done,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Terminal,
    Execute,
    Read,
    Delete,
    Other,
}

/// A shell command that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Command {
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_status: Option<i64>,
    duration_ms: u64,
    reason: String,
}

/// A run so far.
#[derive(Default)]
pub(crate) struct Run {
    cards: VecDeque<Dated>,
    /// Arguments of the calls without a result, by call.
    open: BTreeMap<String, Value>,
    /// The newest commands of each session, newest last.
    commands: BTreeMap<String, VecDeque<Command>>,
}

impl Run {
    /// Takes one line of the log. What it changed, if it is about a call.
    pub(crate) fn line(&mut self, line: &Value, tools: &ToolRegistry) -> Option<&Dated> {
        match line["type"].as_str()? {
            "tool/call" => Some(self.begun(line, tools)),
            "tool/result" => self.ended(line, tools),
            _ => None,
        }
    }

    /// The cards, oldest first.
    pub(crate) fn cards(&self) -> impl Iterator<Item = &Dated> {
        self.cards.iter()
    }

    /// What is typed into a session by a call that runs.
    pub(crate) fn live(&self, session: &str) -> Option<&str> {
        let typed = |it: &&Dated| {
            let Card { state, kind, call_id, .. } = &it.card;
            *state == State::Running
                && *kind == Kind::Terminal
                && self.open.get(call_id).is_some_and(|it| it["sessionId"] == session)
        };
        self.cards.iter().rev().find(typed).map(|it| it.card.title.as_str())
    }

    /// The newest commands of a session, newest last.
    pub(crate) fn commands(&self, session: &str) -> impl Iterator<Item = &Command> {
        self.commands.get(session).into_iter().flatten()
    }

    fn begun(&mut self, line: &Value, tools: &ToolRegistry) -> &Dated {
        let data = &line["data"];
        let (tool, arguments) = (text(data, "name"), data["arguments"].clone());
        let (kind, title, description) = match tools.present_call(tool, &arguments) {
            Some(CallIntent::Terminal { title, description }) => {
                // Held back until the result tells whether it was shown.
                let held = arguments["text"]["bytes"].as_u64();
                let title = held.map_or(title, |bytes| format!("({bytes} bytes)"));
                (Kind::Terminal, title, Some(description))
            }
            Some(CallIntent::Generic { kind }) => (kind.into(), listed(&arguments), None),
            None => (Kind::Other, listed(&arguments), None),
        };
        let card = Card {
            call_id: text(data, "callId").to_owned(),
            tool: tool.to_owned(),
            state: State::Running,
            kind,
            title: one_line(&title),
            description,
            output: None,
            cut: None,
            exit_status: None,
            duration_ms: None,
        };
        self.open.insert(card.call_id.clone(), arguments);
        if self.cards.len() == MOST {
            self.cards.pop_front();
        }
        self.cards.push_back(Dated { seq: number(line, "seq"), time: number(line, "time"), card });
        &self.cards[self.cards.len() - 1]
    }

    fn ended(&mut self, line: &Value, tools: &ToolRegistry) -> Option<&Dated> {
        let data = &line["data"];
        let begun = self.open.remove(text(data, "callId")).unwrap_or_default();
        // Held back with the call, and told with the result where it was shown anyway.
        let arguments = data.get("arguments").cloned().unwrap_or(begun);
        let result = result(data);
        let at = self.cards.iter().rposition(|it| it.card.call_id == text(data, "callId"))?;
        let Dated { time, card, .. } = &mut self.cards[at];
        card.state = if result.is_error() { State::Failed } else { State::Done };
        let shown = tools.present_result(&card.tool, &arguments, &result);
        let (output, cut) = match shown {
            Some(ResultIntent::Terminal { title, description, output }) => {
                card.title = one_line(&title);
                card.description = Some(description);
                end_of(output)
            }
            _ => end_of(result.text()),
        };
        (card.output, card.cut) = (Some(output), cut);
        card.duration_ms = Some(number(line, "time").saturating_sub(*time));
        let value = result.value.unwrap_or_default();
        if let Some(last) = value.get("lastCommand") {
            card.exit_status = last["exitCode"].as_i64();
            let command = Command {
                text: card.title.clone(),
                exit_status: card.exit_status,
                duration_ms: number(last, "durationMs"),
                reason: text(&value, "waitReason").to_owned(),
            };
            card.duration_ms = Some(command.duration_ms);
            let commands = self.commands.entry(text(&arguments, "sessionId").to_owned());
            let commands = commands.or_default();
            if commands.len() == COMMANDS {
                commands.pop_front();
            }
            commands.push_back(command);
        }
        self.cards.get(at)
    }

    /// Nothing more is told of sessions but these.
    pub(crate) fn forget_but(&mut self, there: impl Fn(&str) -> bool) {
        self.commands.retain(|session, _| there(session));
    }
}

impl From<ToolKind> for Kind {
    fn from(kind: ToolKind) -> Self {
        match kind {
            ToolKind::Execute => Self::Execute,
            ToolKind::Read => Self::Read,
            ToolKind::Delete => Self::Delete,
        }
    }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_default()
}

fn result(data: &Value) -> ToolResult {
    ToolResult {
        content: serde_json::from_value(data["content"].clone()).unwrap_or_default(),
        value: data.get("value").cloned(),
        error: data.get("error").cloned().and_then(|it| serde_json::from_value(it).ok()),
    }
}

/// The end of an output, and how many bytes are before it.
fn end_of(mut output: String) -> (String, Option<usize>) {
    if output.len() <= MOST_OUTPUT {
        return (output, None);
    }
    let cut = output.ceil_char_boundary(output.len() - MOST_OUTPUT);
    output.drain(..cut);
    (output, Some(cut))
}

/// `key=value` for each argument.
fn listed(arguments: &Value) -> String {
    let pairs = arguments.as_object().into_iter().flatten().map(|(name, value)| match value {
        Value::String(text) if !text.contains(|c: char| c.is_whitespace() || c.is_control()) => {
            format!("{name}={text}")
        }
        value => format!("{name}={value}"),
    });
    pairs.collect::<Vec<_>>().join(" ")
}

/// One line of bounded length.
fn one_line(text: &str) -> String {
    let visible = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut line: String = text.chars().take(MOST_TITLE).map(visible).collect();
    if text.chars().nth(MOST_TITLE).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use dsh_core::Scope;
    use serde_json::json;

    use super::*;

    fn call(seq: u64, id: &str) -> Value {
        let arguments = json!({ "sessionId": "pty-1", "text": { "bytes": 2 } });
        json!({ "seq": seq, "time": seq, "type": "tool/call",
                "data": { "callId": id, "name": "t", "arguments": arguments } })
    }

    fn end(seq: u64, id: &str, value: &Value, text: &str) -> Value {
        let content = json!([{ "type": "text", "text": text }]);
        json!({ "seq": seq, "time": seq, "type": "tool/result",
                "data": { "callId": id, "name": "t", "isError": false, "content": content,
                          "value": value } })
    }

    fn tools() -> ToolRegistry {
        ToolRegistry::new(&Scope::root("test"), || None).unwrap()
    }

    #[test]
    fn a_result_takes_the_place_of_its_call() {
        let (mut run, tools) = (Run::default(), tools());
        let begun = run.line(&call(1, "a"), &tools).unwrap().clone();
        assert_eq!((begun.seq, begun.card.state), (1, State::Running));
        assert_eq!(begun.card.title, "sessionId=pty-1 text={\"bytes\":2}");
        run.line(&call(2, "b"), &tools).unwrap();
        let value = json!({ "lastCommand": { "exitCode": 3, "durationMs": 7 }, "waitReason": "stdin_read" });
        let ended = run.line(&end(9, "a", &value, "out"), &tools).unwrap().clone();
        assert_eq!((ended.seq, ended.card.state), (1, State::Done));
        assert_eq!((ended.card.exit_status, ended.card.duration_ms), (Some(3), Some(7)));
        assert_eq!(ended.card.output.as_deref(), Some("out"));
        let ids: Vec<_> = run.cards().map(|it| it.card.call_id.as_str()).collect();
        assert_eq!(ids, ["a", "b"]);
        let commands: Vec<_> = run.commands("pty-1").collect();
        assert_eq!((commands.len(), commands[0].reason.as_str()), (1, "stdin_read"));
        assert_eq!(run.line(&json!({ "type": "notice", "data": {} }), &tools), None);
        assert_eq!(run.line(&json!({}), &tools), None);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (mut run, tools) = (Run::default(), tools());
        let value = json!({ "lastCommand": { "exitCode": null, "durationMs": 0 } });
        for seq in 0..2 * MOST as u64 {
            let id = seq.to_string();
            run.line(&call(seq, &id), &tools).unwrap();
            let ended = run.line(&end(seq, &id, &value, &"é".repeat(MOST_OUTPUT)), &tools).unwrap();
            assert_eq!(ended.card.cut, Some(MOST_OUTPUT));
            assert_eq!(ended.card.exit_status, None);
        }
        assert_eq!(run.cards().count(), MOST);
        assert_eq!(run.cards().next().unwrap().seq, MOST as u64);
        assert_eq!(run.commands("pty-1").count(), COMMANDS);
        run.forget_but(|session| session != "pty-1");
        assert_eq!(run.commands("pty-1").count(), 0);
        // The result of a call whose card is gone.
        assert_eq!(run.line(&end(1, "0", &value, ""), &tools), None);
    }

    #[test]
    fn titles_are_one_line() {
        assert_eq!(one_line("a\n\u{1b}b"), "a\u{fffd}\u{fffd}b");
        assert_eq!(one_line(&"x".repeat(1000)).chars().count(), MOST_TITLE + 1);
    }
}
