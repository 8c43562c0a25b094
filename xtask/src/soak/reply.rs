//! The reply of a send, and the promises that every one keeps.

use anyhow::{Context as _, ensure};
use serde_json::Value;
use tools::ToolResult;

use super::MAX_RESULT_BYTES;

/// Begins the words that actors print. Nothing else prints it.
pub(crate) const MARK: &str = "soak~";

/// What a send returned.
pub(crate) struct Reply {
    value: Value,
    /// What a model reads.
    pub(crate) text: String,
}

impl Reply {
    /// Checks what holds for every result: its bound, and that each of the words in it belongs to
    /// `owner`, the one to whom it is given.
    pub(crate) fn of(result: ToolResult, owner: &str) -> anyhow::Result<Self> {
        let text = result.text();
        ensure!(!result.is_error(), "an error: {text}");
        let reply = Self { value: result.value.unwrap_or_default(), text };
        reply.is_bounded()?;
        reply.is_of(owner)?;
        Ok(reply)
    }

    fn is_bounded(&self) -> anyhow::Result<()> {
        let bytes = self.text.len();
        ensure!(bytes <= MAX_RESULT_BYTES, "{bytes} bytes of text");
        Ok(())
    }

    fn is_of(&self, owner: &str) -> anyhow::Result<()> {
        for (at, _) in self.text.match_indices(MARK) {
            let word = &self.text[at..];
            ensure!(word.starts_with(owner), "somebody else's words: {}", self.end());
        }
        Ok(())
    }

    /// Back at the shell's prompt, proven, with this status. Returns what was shown.
    pub(crate) fn at_prompt(&self, status: i32) -> anyhow::Result<&str> {
        self.reason("stdin_read")?;
        let state = &self.value["state"]["kind"];
        ensure!(state == "prompt", "not at the prompt but {state}: {}", self.end());
        let exit = &self.value["lastCommand"]["exitCode"];
        ensure!(*exit == status, "status {exit} and not {status}: {}", self.end());
        let lines = format!("\n[exit: {status}]\n[wait: stdin_read]\n[session: running]");
        let text = self.text.strip_suffix("\n[output truncated]").unwrap_or(&self.text);
        ensure!(text.ends_with(&lines), "other lines: {}", self.end());
        self.shown()
    }

    /// A program waits for input. Returns what was shown.
    pub(crate) fn waits(&self) -> anyhow::Result<&str> {
        self.reason("stdin_read")?;
        let state = &self.value["state"]["kind"];
        ensure!(state != "prompt", "at the prompt: {}", self.end());
        self.shown()
    }

    /// The session's shell ended, with this status in the words of the contract.
    pub(crate) fn ended(&self, status: &str) -> anyhow::Result<()> {
        self.reason("session_exit")?;
        let line = format!("[session: exited {status}]");
        ensure!(self.text.contains(&line), "not {line}: {}", self.end());
        Ok(())
    }

    fn reason(&self, reason: &str) -> anyhow::Result<()> {
        let told = &self.value["waitReason"];
        ensure!(told == reason, "{told} and not {reason}: {}", self.end());
        Ok(())
    }

    fn shown(&self) -> anyhow::Result<&str> {
        self.value["viewport"].as_str().context("no viewport")
    }

    /// The end of the text, for a person.
    pub(crate) fn end(&self) -> String {
        let from = self.text.len().saturating_sub(600);
        format!("{:?}", &self.text[self.text.ceil_char_boundary(from)..])
    }
}

/// Lines of a text that are exactly `line`.
pub(crate) fn lines(text: &str, line: &str) -> usize {
    text.lines().filter(|it| *it == line).count()
}
