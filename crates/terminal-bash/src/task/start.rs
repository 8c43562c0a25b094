//! The start of a session: the shell's first prompt, and its hooks.

use std::time::Duration;

use dsh_core::Cancel;
use terminal::{DISPOSAL_GRACE, SessionStatus, TerminalError, WaitReason};

use super::{Task, new_screen};
use crate::{dialect::PROMPT, readiness::Settlement};

impl Task {
    /// Waits until the shell reads its first command, and installs its hooks.
    pub(super) async fn start(&mut self, cancel: Cancel) -> Result<String, TerminalError> {
        self.begin_recording()?;
        if self.far.is_some() {
            return self.start_far(&cancel).await;
        }
        self.begin_exchange(None, self.config.bound(false));
        let settled = self.until_settled(&cancel).await?;
        let shown = self.screen.since(&self.delivered, self.max_read()).text;
        let failed = |what: String| {
            let shown = shown.trim();
            let shown = if shown.is_empty() { "it printed nothing" } else { shown };
            Err(TerminalError::ShellStartFailed(format!("{what}: {shown}")))
        };
        match settled.reason {
            WaitReason::SessionExit => {
                let how = describe_exit(self.exit.as_ref());
                let limit = self.limits.reached().map(|it| format!(" [limit: {it}]"));
                let limit = limit.unwrap_or_default();
                let shell = self.config.shell_path.display();
                return failed(format!("`{shell}` {how} before its first prompt{limit}"));
            }
            WaitReason::Timeout => {
                let (shell, bound) = (self.config.shell_path.display(), self.config.timeout_ms);
                return failed(format!("`{shell}` showed no prompt within {bound} ms"));
            }
            WaitReason::StdinRead if self.config.shell_dialect.speaks(&self.config.shell_path) => {
                self.install_hooks(&cancel).await?;
            }
            WaitReason::StdinRead | WaitReason::InferredIdle => {}
        }
        let shown = self.screen.since(&self.delivered, self.max_read()).text;
        self.delivered = self.screen.end();
        self.shell_pastes = self.screen.bracketed_paste();
        Ok(shown)
    }

    /// Types the line that makes the shell mark its prompts. Nothing of it is shown, unless the
    /// shell turns out not to understand it.
    pub(super) async fn install_hooks(&mut self, cancel: &Cancel) -> Result<(), TerminalError> {
        let line = self.config.shell_dialect.install(&self.nonce, self.far.is_some());
        let scratch = new_screen(&self.config);
        let shown = std::mem::replace(&mut self.screen, scratch);
        self.unseen = true;
        self.hidden = Some(Vec::new());
        self.begin_exchange(None, self.config.bound(false));
        if let Some(live) = &mut self.live {
            live.lines.push_back(line + "\r");
        }
        if self.far.is_some() {
            let handed_over = format!("{}\r", self.nonce.as_str());
            self.process.write(handed_over.as_bytes());
        }
        self.type_line();
        let settled = self.until_installed(cancel).await;
        let editor = self.screen.bracketed_paste();
        if let Some(far) = &mut self.far {
            far.pastes = editor;
        }
        self.screen = shown;
        self.unseen = false;
        let hidden = self.hidden.take().unwrap_or_default();
        if self.marks.prompt().is_some() {
            self.marks.finished(true);
            let text = self.screen.cursor_column() > 0;
            let keep = text && !self.config.shell_dialect.prompts_at_first();
            self.show(if keep { "\r\n".as_bytes() } else { b"\r\x1b[K" });
            if editor {
                self.show(b"\x1b[?2004h");
            }
            self.show(PROMPT.as_bytes());
        } else {
            self.show(&hidden);
        }
        settled.map(|_| ())
    }

    /// Waits for the shell's answer to the line with the hooks. A far one may take its time.
    async fn until_installed(&mut self, cancel: &Cancel) -> Result<Settlement, TerminalError> {
        let (bound, begun) = (Duration::from_millis(self.config.timeout_ms), self.now());
        loop {
            let settled = self.until_settled(cancel).await?;
            let ended = matches!(settled.reason, WaitReason::SessionExit | WaitReason::Timeout);
            if self.far.is_none() || self.marks.prompt().is_some() || ended {
                return Ok(settled);
            }
            let left = bound.saturating_sub(self.now().saturating_sub(begun));
            self.begin_exchange(None, Some(left));
        }
    }

    /// Waits for the end of an exchange that nobody sent.
    async fn until_settled(&mut self, cancel: &Cancel) -> Result<Settlement, TerminalError> {
        loop {
            tokio::select! {
                () = cancel.cancelled() => {
                    let reason = cancel.reason().unwrap_or("cancelled").to_owned();
                    return Err(TerminalError::Cancelled { reason });
                }
                settled = self.advance() => if let Some(settled) = settled {
                    self.live = None;
                    return Ok(settled);
                },
            }
        }
    }

    fn show(&mut self, bytes: &[u8]) {
        self.record_shown(bytes);
        self.screen.feed(bytes, &mut self.events);
        self.events.clear();
    }

    /// Ends what a failed start left; the error says if that failed too.
    pub(super) async fn undo(&mut self, error: TerminalError) -> TerminalError {
        match self.end(Some(DISPOSAL_GRACE)).await {
            Ok(()) => error,
            Err(survivors) => TerminalError::CloseIncomplete(format!("{error}; and {survivors}")),
        }
    }
}

pub(super) fn describe_exit(status: Option<&SessionStatus>) -> String {
    match status {
        Some(SessionStatus::Exited { exit_code: Some(code), .. }) => {
            format!("exited with status {code}")
        }
        Some(SessionStatus::Exited { signal: Some(signal), .. }) => {
            format!("was ended by {signal}")
        }
        _ => "ended".to_owned(),
    }
}
