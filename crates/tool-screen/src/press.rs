//! `terminal_keys`: pressing keys and waiting for what they do.

use std::{
    collections::VecDeque,
    hash::{BuildHasher as _, RandomState},
    sync::Mutex,
};

use dsh_core::{Cancel, async_trait, lock};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use terminal::{Key, KeyPress, KeysRequest, StateKind, TerminalError};
use tool_terminal::{
    family::{agent, invalid, refused},
    settled,
};
use tools::{
    CallIntent, Content, DialectError, ResultIntent, Tool, ToolCall, ToolError, ToolKind,
    ToolOutput, ToolResult, ToolSpec, parameters_of,
    simple::{self, Family as _, typed},
    text::{Keep, tail},
    withheld,
};

use crate::{
    Host, keys, schema, text,
    value::{Highlighted, KeysValue, ScreenValue},
};

const DESCRIPTION: &str = "Press keys in a terminal session, one after the other, and wait until \
the program has acted upon them. Each key is a name (Enter, Escape, Tab, Backspace, Space, Up, Down, \
Left, Right, Home, End, PageUp, PageDown, Insert, Delete, F1 to F12), a single character, or a text \
in quotes, such as \"'hello'\"; C-, M- and S- in front hold Ctrl, Alt and Shift (C-c, M-x, S-Tab). \
Where the program uses the mouse, Click@ROW,COLUMN, RightClick@, MiddleClick@, ScrollUp@ and \
ScrollDown@ work at a cell counted from 1. Returns the rows of the screen that have changed if a \
full-screen program has it, else the new output and what is newly shown in reverse, and what the \
program does now.";

/// Most texts remembered that were typed unseen.
const MOST: usize = 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Args {
    /// Id that `terminal_open` returned.
    session_id: String,
    /// The keys, for example `["'dd'", "Escape", "':wq'", "Enter"]`.
    keys: Vec<String>,
}

pub(crate) struct Keys {
    host: Host,
    spec: ToolSpec,
    hasher: RandomState,
    /// Hashes of texts that were typed unseen.
    unseen: Mutex<VecDeque<u64>>,
}

impl Keys {
    pub(crate) fn new(host: Host) -> Result<Self, DialectError> {
        let spec = ToolSpec {
            name: "terminal_keys".to_owned(),
            description: DESCRIPTION.to_owned(),
            parameters: parameters_of::<Args>()?,
            output: schema::keys(),
        };
        Ok(Self { host, spec, hasher: RandomState::new(), unseen: Mutex::default() })
    }

    fn note_unseen(&self, keys: &[KeyPress]) {
        let mut unseen = lock(&self.unseen);
        for text in keys.iter().filter_map(text_of) {
            if unseen.len() == MOST {
                unseen.pop_front();
            }
            unseen.push_back(self.hasher.hash_one(text));
        }
    }
}

/// The presses that are written so. Refused whole if one of them is none.
fn presses(written: &[String]) -> Result<Vec<KeyPress>, ToolError> {
    if written.is_empty() {
        return Err(invalid(r#""keys" is empty: give at least one key"#));
    }
    written.iter().map(|it| keys::parse(it).map_err(invalid)).collect()
}

/// The text, where it is one of several characters.
fn text_of(press: &KeyPress) -> Option<&str> {
    match &press.key {
        Key::Text(text) => Some(text),
        _ => None,
    }
}

/// Whether pressing it types what a secret may be made of.
fn may_be_secret(written: &str) -> bool {
    match keys::parse(written) {
        Ok(KeyPress { key: Key::Text(_), .. }) | Err(_) => true,
        Ok(KeyPress { key: Key::Character(_), modifiers }) => !modifiers.control && !modifiers.alt,
        Ok(_) => false,
    }
}

#[async_trait]
impl Tool for Keys {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        let owner = agent(&call)?;
        let args: Args = simple::parse::<Host, _>(&call.arguments)?;
        let presses = presses(&args.keys)?;
        if let Some(reason) = call.cancel.reason() {
            return Err(refused(TerminalError::Cancelled { reason: reason.to_owned() }));
        }
        let (terminals, id) = (&self.host.terminals, &args.session_id);
        let before = terminals.screen(owner, id).await.map_err(refused)?;
        // The call's own token reaches the operation in `settled`.
        let request = KeysRequest { keys: presses.clone(), cancel: Cancel::new() };
        let operation = terminals.start_keys(owner, id, request).map_err(refused)?;
        let outcome = settled(&operation, &call).await.map_err(refused)?;
        let after = terminals.screen(owner, id).await.ok();
        // At its prompt the shell has the screen, and what is reversed there is no selection.
        let in_shell = outcome
            .state
            .as_ref()
            .is_none_or(|it| matches!(it.kind, StateKind::Prompt | StateKind::Continuation));
        let main = after.as_ref().filter(|it| !it.alternate && !in_shell);
        let highlights = main.map(|after| {
            let fresh = after.highlights.iter().filter(|it| !before.highlights.contains(it));
            fresh.cloned().map(Highlighted::from).collect()
        });
        let after = after.filter(|it| it.alternate);
        let hidden = !outcome.echoed;
        if hidden && after.is_none() {
            self.note_unseen(&presses);
        }
        let screen = after.map(|after| {
            self.host.seen.note(id, &after);
            let known =
                (before.alternate && before.columns == after.columns).then(|| before.row_hashes());
            ScreenValue::new(after, known.as_deref())
        });
        let viewport = tail(&outcome.viewport, self.host.cap);
        let value = KeysValue {
            output: screen.is_none().then(|| viewport.to_owned()),
            truncated: screen.is_none()
                && (outcome.truncated || viewport.len() < outcome.viewport.len()),
            screen,
            highlights: highlights.unwrap_or_default(),
            wait_reason: outcome.wait_reason,
            session_status: outcome.session_status,
            unpressed: outcome.unpressed,
            last_command: outcome.last_command,
            state: outcome.state,
            limit: outcome.limit,
            repaired: outcome.repaired,
        };
        let log_arguments = (!hidden).then(|| call.arguments.clone());
        Ok(ToolOutput { value: simple::json::<Host>(&value)?, log_arguments })
    }

    fn render(&self, _: &Value, value: &Value) -> String {
        typed(value, |it| text::keys(it, self.host.cap))
    }

    fn finalize_content(&self, _: &ToolResult, content: Content) -> Content {
        self.host.bound(Keep::Head, content)
    }

    fn present_call(&self, _: &Value) -> Option<CallIntent> {
        Some(CallIntent::Generic { kind: ToolKind::Execute })
    }

    fn present_result(&self, _: &Value, result: &ToolResult) -> Option<ResultIntent> {
        (!result.is_error()).then_some(ResultIntent::Generic { kind: ToolKind::Execute })
    }

    fn secrets(&self, arguments: &Value) -> Vec<String> {
        let Ok(args) = Args::deserialize(arguments) else { return Vec::new() };
        let presses: Vec<_> = args.keys.iter().filter_map(|it| keys::parse(it).ok()).collect();
        let unseen = lock(&self.unseen);
        let texts = presses.iter().filter_map(text_of);
        let hidden = texts.filter(|it| unseen.contains(&self.hasher.hash_one(it)));
        hidden.map(str::to_owned).collect()
    }

    fn log_arguments(&self, arguments: &Value) -> Value {
        let Some(named) = arguments.as_object() else { return withheld(arguments) };
        let shown = |(name, value): (&String, &Value)| {
            let value = match (name.as_str(), value) {
                ("sessionId", Value::String(_)) => value.clone(),
                ("keys", Value::Array(written)) => {
                    let key = |it: &Value| match it.as_str() {
                        Some(key) if !may_be_secret(key) => json!(key),
                        _ => withheld(it),
                    };
                    written.iter().map(key).collect()
                }
                _ => withheld(value),
            };
            (name.clone(), value)
        };
        named.iter().map(shown).collect()
    }
}
