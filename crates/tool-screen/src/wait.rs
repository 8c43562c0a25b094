//! `terminal_wait`: waiting without typing.

use std::{sync::Arc, time::Duration};

use agents::Agent;
use dsh_core::Cancel;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Number, Value};
use terminal::{TerminalError, WaitCondition, WaitEnd, WaitRequest};
use tool_terminal::family::{invalid, refused};
use tools::{ToolError, ToolKind, simple::Simple, text::tail};

use crate::{
    Host,
    arguments::whole,
    schema, text,
    value::{WaitEnded, WaitValue},
};

const DESCRIPTION: &str = "Wait until something happens in a terminal session, without typing \
anything; also while a background send runs. `until` names one or more conditions, and the first \
that comes true ends the wait. A pattern in `output` is looked for in new output alone: never in \
what a result has shown before, and never in the echo of what was typed. Returns what ended the \
wait and the output that is new. The end of the session ends every wait.";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Args {
    /// Id that `terminal_open` returned.
    session_id: String,
    /// What to wait for: any of these ends the wait.
    until: Until,
    /// Longest wait in milliseconds, a whole number (default 30000, at most 600000).
    timeout_ms: Option<Number>,
}

/// At least one is given.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Until {
    /// A regular expression that a line of new output matches.
    output: Option<String>,
    /// A regular expression that a row of the visible screen matches, now or later.
    screen: Option<String>,
    /// The shell is back at its prompt.
    prompt: Option<bool>,
    /// The program in the foreground, or the shell, waits for input.
    input: Option<bool>,
    /// Nothing was shown for so many milliseconds, a whole number.
    silence_ms: Option<Number>,
    /// The session's shell has ended.
    exit: Option<bool>,
}

impl Until {
    /// The conditions, each with its name.
    fn conditions(self) -> Result<Vec<(WaitEnded, WaitCondition)>, ToolError> {
        let silence = whole::<1>("silenceMs", self.silence_ms.as_ref())?;
        let silence = silence.map(|it| WaitCondition::Silence(Duration::from_millis(it)));
        let wanted = |flag: Option<bool>, condition| (flag == Some(true)).then_some(condition);
        let all = [
            (WaitEnded::Output, self.output.map(WaitCondition::Output)),
            (WaitEnded::Screen, self.screen.map(WaitCondition::Screen)),
            (WaitEnded::Prompt, wanted(self.prompt, WaitCondition::Prompt)),
            (WaitEnded::Input, wanted(self.input, WaitCondition::Input)),
            (WaitEnded::Exit, wanted(self.exit, WaitCondition::Exit)),
            (WaitEnded::Silence, silence),
        ];
        let all: Vec<_> = all.into_iter().filter_map(|(name, it)| Some((name, it?))).collect();
        if all.is_empty() {
            return Err(invalid(
                r#""until" names nothing to wait for: give output, screen, prompt, input, silenceMs or exit"#,
            ));
        }
        Ok(all)
    }
}

pub(crate) struct Wait;

impl Simple for Wait {
    const NAME: &'static str = "terminal_wait";
    const DESCRIPTION: &'static str = DESCRIPTION;
    const KIND: ToolKind = ToolKind::Read;
    type Host = Host;
    type Args = Args;
    type Value = WaitValue;

    fn output(_: &Host) -> Value {
        schema::wait()
    }

    async fn run(
        host: &Host,
        owner: &Arc<Agent>,
        Args { session_id: id, until, timeout_ms }: Args,
        cancel: &Cancel,
    ) -> Result<WaitValue, ToolError> {
        let (names, until): (Vec<_>, Vec<_>) = until.conditions()?.into_iter().unzip();
        let timeout = whole::<1>("timeoutMs", timeout_ms.as_ref())?.unwrap_or(host.wait);
        let timeout = Duration::from_millis(timeout.min(host.longest_wait));
        let request = WaitRequest { until, timeout };
        let outcome = tokio::select! {
            outcome = host.terminals.wait(owner, &id, request) => outcome.map_err(refused)?,
            () = cancel.cancelled() => {
                let reason = cancel.reason().unwrap_or("cancelled").to_owned();
                return Err(refused(TerminalError::Cancelled { reason }));
            }
        };
        let ended = match outcome.end {
            WaitEnd::Met(condition) => names.get(condition).copied().unwrap_or(WaitEnded::Input),
            WaitEnd::Timeout => WaitEnded::Timeout,
            WaitEnd::SessionExit => WaitEnded::Exit,
        };
        let output = tail(&outcome.output, host.cap);
        Ok(WaitValue {
            ended,
            matched: outcome.matched,
            truncated: outcome.truncated || output.len() < outcome.output.len(),
            output: output.to_owned(),
            session_status: outcome.session_status,
            last_command: outcome.last_command,
            state: outcome.state,
            limit: outcome.limit,
        })
    }

    fn text(_: &Value, value: &WaitValue, cap: usize) -> String {
        text::wait(value, cap)
    }
}
