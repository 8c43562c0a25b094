//! The start of a session on the far side of a launcher.

use std::time::Duration;

use dsh_core::Cancel;
use terminal::{Evidence, SessionStatus, StateKind, TerminalError, WaitReason};

use super::{Task, session_status, start::describe_exit};
use crate::{
    far::FarSide,
    readiness::{Moment, Settlement, judge::ROUND_TRIP},
};

/// What a terminal makes an interrupt of.
const INTERRUPT_KEY: u8 = 0x03;
/// A cancellation interrupts a command again this often at the most.
const MOST: u32 = 3;

/// The prompt of a far editor comes with its opening or at once behind it.
const PROMPT: Duration = Duration::from_millis(20);

/// A command on the far side that a cancellation may not have met.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chase {
    /// When it is interrupted again.
    next: Moment,
    left: u32,
}

impl Task {
    /// Waits until the far side is there, hands it the nonce, and installs the shell's hooks.
    pub(super) async fn start_far(&mut self, cancel: &Cancel) -> Result<String, TerminalError> {
        self.reach(cancel).await?;
        self.install_hooks(cancel).await?;
        let shown = self.screen.since(&self.delivered, self.max_read()).text;
        if self.marks.prompt().is_none() {
            // Without what was typed to install the hooks.
            let typed = |line: &&str| line.contains(self.nonce.as_str());
            let shown: Vec<&str> = shown.trim().lines().filter(|line| !typed(line)).collect();
            return Err(TerminalError::ShellStartFailed(format!(
                "the shell behind `{}` shows no prompt of bash, 4.4 or newer: {}",
                self.launcher(),
                shown.join("\n")
            )));
        }
        self.delivered = self.screen.end();
        self.shell_pastes = self.screen.bracketed_paste();
        Ok(shown)
    }

    /// Waits until the far side has shown that it is there. Until then the launcher is judged like any
    /// program: one that waits for input asks something.
    async fn reach(&mut self, cancel: &Cancel) -> Result<(), TerminalError> {
        let bound = Duration::from_millis(self.config.timeout_ms);
        let begun = self.now();
        loop {
            let left = bound.saturating_sub(self.now().saturating_sub(begun));
            self.begin_exchange(None, Some(left));
            let settled = self.until_decided(cancel).await?;
            let shown = self.screen.since(&self.delivered, self.max_read()).text;
            let shown = shown.trim();
            if let Some(refusal) = self.far.as_ref().and_then(|far| far.refusal(shown)) {
                return Err(refusal);
            }
            let Some(settled) = settled else { return Ok(()) };
            let shown = if shown.is_empty() { "it printed nothing" } else { shown };
            let launcher = self.launcher();
            let asks = matches!(settled.kind, StateKind::Line | StateKind::Password)
                && settled.evidence == Evidence::Exact;
            let what = match settled.reason {
                WaitReason::SessionExit => {
                    let ended = self.process.exit_status().map(session_status);
                    let how = describe_exit(ended.as_ref());
                    format!("{how} before it had a shell there")
                }
                WaitReason::Timeout => {
                    format!("had no shell there within {} ms", bound.as_millis())
                }
                WaitReason::StdinRead if asks => "asks what nobody here can answer".to_owned(),
                // It waits for the network.
                WaitReason::StdinRead | WaitReason::InferredIdle => continue,
            };
            return Err(TerminalError::ShellStartFailed(format!(
                "`{launcher}` {what}: {shown}\nRun it by hand until it gives a shell without asking \
                 anything, then open the session again."
            )));
        }
    }

    /// Waits for the far side's word, or for the end of the exchange before it.
    async fn until_decided(
        &mut self,
        cancel: &Cancel,
    ) -> Result<Option<Settlement>, TerminalError> {
        loop {
            if self.far.as_ref().is_some_and(FarSide::is_decided) {
                self.live = None;
                return Ok(None);
            }
            tokio::select! {
                () = cancel.cancelled() => {
                    let reason = cancel.reason().unwrap_or("cancelled").to_owned();
                    return Err(TerminalError::Cancelled { reason });
                }
                settled = self.advance() => if let Some(settled) = settled {
                    self.live = None;
                    return Ok(Some(settled));
                },
            }
        }
    }

    /// Interrupts the far foreground by the same way as what is typed, so that it reaches nobody who
    /// comes later.
    pub(super) fn interrupt_far(&mut self) {
        self.marks.stroke(true);
        self.process.write(&[INTERRUPT_KEY]);
        self.chase_far(self.now());
    }

    /// A command that starts at about the time of an interrupt may not be met by it: between `fork` and
    /// `exec` it meets the shell's own code, which lets it go. Nor may a line that is still edited: bash
    /// keeps an interrupt between two keys for the next key.
    pub(super) fn chase_far(&mut self, now: Moment) {
        let started = self.marks.started().is_some_and(|at| now.saturating_sub(at) < ROUND_TRIP);
        let missed = started || self.is_edited();
        if let Some(live) = self.live.as_mut().filter(|live| live.interrupt.is_some() && missed) {
            live.chase.get_or_insert(Chase { next: now + ROUND_TRIP, left: MOST });
        }
    }

    /// A far editor has opened. Without a prompt it goes on with the line that was interrupted.
    pub(super) fn far_editor_opened(&mut self, now: Moment) {
        let goes_on = self.is_edited();
        if let Some(chase) = self.live.as_mut().and_then(|it| it.chase.as_mut()).filter(|_| goes_on)
        {
            chase.next = chase.next.min(now + PROMPT);
        }
    }

    /// Whether the last stroke met a line of the far shell, which has shown neither a prompt nor a
    /// command since.
    fn is_edited(&self) -> bool {
        let far = self.marks.far();
        self.far.is_some() && far.editing && far.prompt.is_none()
    }

    /// Interrupts again what goes on in spite of the interrupt: a command that has started, or a line.
    pub(super) fn interrupt_again(&mut self) {
        let now = self.now();
        let running = self.marks.is_running() || self.is_edited();
        let Some(chase) = self.live.as_mut().and_then(|live| live.chase.as_mut()) else { return };
        if running && chase.left > 0 && chase.next <= now {
            *chase = Chase { next: now + ROUND_TRIP, left: chase.left - 1 };
            self.marks.stroke(true);
            self.process.write(&[INTERRUPT_KEY]);
        }
    }

    fn launcher(&self) -> String {
        self.far.as_ref().map(|far| far.launcher().to_owned()).unwrap_or_default()
    }

    /// How the session ended, as far as the far side has said; `near` is how its process here ended.
    pub(super) fn end_status(&self, near: SessionStatus) -> SessionStatus {
        self.far.as_ref().map_or(near, FarSide::exit_status)
    }
}
