//! Runs the script: every call through `ctx.tools`, in the name of an agent of its own.
//!
//! Guarantees: the first step that does not give what the script expects is the last one; the
//! agent is disposed, and with it its sessions, however the play ends.

use std::{
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
};

use agents::{Agent, AgentRegistry, AgentSpec};
use dsh_core::Cancel;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tools::{ProgressSink, ToolCall, ToolRegistry, ToolResult};

use super::{
    print::Printer,
    script::{self, Act, Call, Expect},
};

/// Where the script is played.
pub(crate) struct Stage {
    pub(super) tools: Arc<ToolRegistry>,
    pub(super) agents: Arc<AgentRegistry>,
}

/// The output of a call so far.
struct Output(watch::Sender<String>);

impl ProgressSink for Output {
    fn output(&self, text: &str) {
        self.0.send_modify(|all| all.push_str(text));
    }
}

impl Stage {
    /// Plays the script and prints it. True if every step gave what it should.
    ///
    /// # Errors
    /// The output cannot be written, or something could not be ended.
    pub(crate) async fn play<W: Write>(
        &self,
        workspace_root: PathBuf,
        mut printer: Printer<W>,
        stop: &CancellationToken,
    ) -> anyhow::Result<bool> {
        let spec = AgentSpec { id: None, workspace_root };
        let agent = self.agents.create(spec)?;
        let played = self.steps(&agent, &mut printer, stop).await;
        let ended = self.agents.dispose(&agent).await;
        let passed = played?;
        ended?;
        Ok(passed)
    }

    async fn steps<W: Write>(
        &self,
        agent: &Arc<Agent>,
        printer: &mut Printer<W>,
        stop: &CancellationToken,
    ) -> io::Result<bool> {
        let steps = script::steps();
        let count = steps.len();
        for (index, step) in steps.into_iter().enumerate() {
            if stop.is_cancelled() {
                return Ok(false);
            }
            printer.title(step.title)?;
            let wrong = self.act(agent, step.act, printer, stop).await?;
            if stop.is_cancelled() {
                return Ok(false);
            }
            if let Some(wrong) = wrong {
                printer.failed(index + 1, step.title, &wrong)?;
                return Ok(false);
            }
        }
        printer.passed(count, agent.id())?;
        Ok(true)
    }

    /// Does one step; says what was wrong with it.
    async fn act<W: Write>(
        &self,
        agent: &Arc<Agent>,
        act: Act,
        printer: &mut Printer<W>,
        stop: &CancellationToken,
    ) -> io::Result<Option<String>> {
        match act {
            Act::Call(call) => {
                printer.call(&self.tools, &call)?;
                let result = self.run(agent, &call, None, stop).await;
                printer.result(&self.tools, &call, &result)?;
                Ok(wrong(&call, &result))
            }
            Act::During { waiting, after_line, then } => {
                printer.call(&self.tools, &waiting)?;
                let output = Arc::new(Output(watch::Sender::default()));
                let mut shown = output.0.subscribe();
                let first = self.run(agent, &waiting, Some(output), stop);
                tokio::pin!(first);
                let seen = tokio::select! {
                    result = &mut first => Err(result),
                    _ = shown.wait_for(|all| all.lines().any(|it| it == after_line)) => Ok(()),
                };
                let (first, wrong_then) = match seen {
                    Ok(()) if stop.is_cancelled() => (first.await, None),
                    Ok(()) => {
                        printer.call(&self.tools, &then)?;
                        let second = self.run(agent, &then, None, stop).await;
                        printer.result(&self.tools, &then, &second)?;
                        (first.await, wrong(&then, &second))
                    }
                    Err(first) => {
                        (first, Some(format!("it ended before it showed {after_line:?}")))
                    }
                };
                printer.late_result(&self.tools, &waiting, &first)?;
                Ok(wrong_then.or_else(|| wrong(&waiting, &first)))
            }
        }
    }

    async fn run(
        &self,
        agent: &Arc<Agent>,
        call: &Call,
        progress: Option<Arc<Output>>,
        stop: &CancellationToken,
    ) -> ToolResult {
        let cancel = Cancel::new();
        let running = self.tools.call(ToolCall {
            call_id: next_call_id(),
            name: call.tool.to_owned(),
            arguments: call.arguments.clone(),
            agent: Some(Arc::clone(agent)),
            cancel: cancel.clone(),
            progress: progress.map(|it| it as Arc<dyn ProgressSink>),
        });
        tokio::pin!(running);
        tokio::select! {
            result = &mut running => result,
            () = stop.cancelled() => {
                cancel.cancel("the demonstration was interrupted");
                // A program that does not mind the interrupt goes with its session.
                let disposed = self.agents.dispose(agent);
                let (result, _) = tokio::join!(running, disposed);
                result
            }
        }
    }
}

fn next_call_id() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("call-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The first condition that does not hold, and what there was instead.
fn wrong(call: &Call, result: &ToolResult) -> Option<String> {
    let tool = call.tool;
    if let Some(error) = &result.error {
        return Some(format!("{tool} failed: {}", error.message));
    }
    let text = result.text();
    call.expects.iter().find_map(|expect| match expect {
        Expect::Value(pointer, expected) => {
            let found = result.value.as_ref().and_then(|it| it.pointer(pointer));
            (found != Some(expected)).then(|| {
                let found = found.map_or_else(|| "nothing".to_owned(), ToString::to_string);
                format!("{tool}: expected {expected} at {pointer:?} of the value, got {found}")
            })
        }
        Expect::Line(line) => (!text.lines().any(|it| it == *line))
            .then(|| format!("{tool}: expected the line {line:?}, got {text:?}")),
        Expect::Text(part) => (!text.contains(part))
            .then(|| format!("{tool}: expected {part:?} in the text, got {text:?}")),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tools::ContentBlock;

    use super::*;

    fn checked(expect: Expect) -> Option<String> {
        let call = Call { tool: "t", arguments: json!({}), expects: vec![expect] };
        let content = vec![ContentBlock::Text { text: "one\ntwo".to_owned() }];
        wrong(&call, &ToolResult { content, value: Some(json!({ "a": 1 })), error: None })
    }

    #[test]
    fn conditions_say_what_came_instead() {
        assert_eq!(checked(Expect::Value("/a", json!(1))), None);
        assert_eq!(checked(Expect::Line("two")), None);
        assert_eq!(checked(Expect::Text("ne\ntw")), None);
        let wrong = checked(Expect::Value("/a", json!(2))).unwrap();
        assert_eq!(wrong, r#"t: expected 2 at "/a" of the value, got 1"#);
        let wrong = checked(Expect::Value("/b", json!(2))).unwrap();
        assert!(wrong.ends_with("got nothing"), "{wrong}");
        let wrong = checked(Expect::Line("tw")).unwrap();
        assert_eq!(wrong, r#"t: expected the line "tw", got "one\ntwo""#);
    }
}
