//! Putting the terminal's modes right that a program left behind when it ended.
//!
//! - Only the shell's own prompt is a moment for it, and only on evidence that something is wrong.
//! - A line editor gives the terminal back as it found it, so the modes are changed while the shell
//!   waits for a line without its editor: a line that makes it do so is typed and not shown. The
//!   status of the last command and the history stay as they were.
//! - What a user's own `stty` did is left alone.

use std::time::Duration;

use subprocess::{Evidence, LineSetting};
use terminal::{LastCommand, StateKind, WaitReason};

use super::{Task, new_screen, send::Live};
use crate::{dialect::ShellDialect, input, readiness::Settlement};

/// A shell takes a fraction of a millisecond, on a machine with far too much to do seconds. One that
/// does not answer is left alone, and what is typed next is for whatever it does then: so this is long.
const LONGEST: Duration = Duration::from_secs(15);
/// Status of a command that was killed: nothing it could have put right itself.
const KILLED: i32 = 137;

/// How a program left the line, as far as it was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    lines: bool,
    echo: bool,
}

impl Left {
    fn behind(self) -> bool {
        self.lines || self.echo
    }

    fn or(self, other: Self) -> Self {
        Self { lines: self.lines || other.lines, echo: self.echo || other.echo }
    }

    fn words(self) -> Vec<&'static str> {
        let left = [(self.lines, LineSetting::Lines), (self.echo, LineSetting::Echo)];
        left.into_iter().filter(|it| it.0).map(|it| word(it.1)).collect()
    }
}

impl Task {
    /// Remembers the modes under a program that is in front of the shell, at the last two looks: it
    /// may have ended between a look's scan and its glance at the modes, and the shell have put them
    /// right by itself.
    pub(super) fn note_modes(&mut self, evidence: &Evidence) {
        let shell = self.process.pid();
        if let Some(modes) = evidence.modes
            && evidence.foreground.is_some_and(|group| group != shell)
        {
            let left = Left { lines: !modes.canonical, echo: !modes.echo };
            if evidence.processes.is_empty() {
                // It may be gone, and the shell about to take the terminal back.
                self.left_behind[1] = self.left_behind[1].or(left);
            } else {
                self.left_behind = [self.left_behind[1], left];
            }
        }
    }

    /// Puts right what of the screen's state the shell, which is at its prompt, has not set itself;
    /// what that was.
    pub(super) fn repair_screen(&mut self) -> Vec<&'static str> {
        let mut repaired = self.screen.repair();
        // A shell that takes pastes has switched them on for its prompt by itself.
        if !self.shell_pastes && self.screen.bracketed_paste() {
            self.screen.feed(b"\x1b[?2004l", &mut self.events);
            self.events.clear();
            repaired.push("turned bracketed paste off");
        }
        if !repaired.is_empty() {
            self.keep_dropped();
            self.redrawn();
        }
        repaired
    }

    /// Puts right what the command that ended in this exchange left; what that was.
    pub(super) async fn mend(
        &mut self,
        settled: &Settlement,
        last: Option<&LastCommand>,
    ) -> Vec<&'static str> {
        // The line of a launcher is as its far side wants it.
        let near = self.far.is_none() && self.config.shell_dialect == ShellDialect::Bash;
        if settled.kind != StateKind::Prompt || !near {
            return Vec::new();
        }
        let [before, latest] = std::mem::take(&mut self.left_behind);
        let left = before.or(latest);
        let status = last.and_then(|it| it.exit_code);
        let Some(live) = self.live.take() else { return Vec::new() };
        let mut mended = Vec::new();
        if self.is_suspect(&live, left, status)
            && let Some(restored) = self.restore(status).await
        {
            mended = restored.into_iter().map(word).collect();
            if mended.is_empty() && status == Some(KILLED) {
                // The shell itself has done it.
                mended = left.words();
            }
        }
        self.live = Some(live);
        mended
    }

    /// Whether the modes behind the shell's line editor may not be what they should be.
    fn is_suspect(&self, live: &Live, left: Left, status: Option<i32>) -> bool {
        if live.text.contains("stty") {
            return false;
        }
        // The editor passes this one on as it found it.
        let output = self.process.changed_settings().contains(&LineSetting::Output);
        let failed = status.is_some_and(|it| it != 0);
        output || left.behind() && failed || live.in_shell && !self.is_shown(live)
    }

    /// Whether the shell has shown the line that was typed at its prompt.
    fn is_shown(&self, live: &Live) -> bool {
        let typed = live.text.lines().next().unwrap_or_default();
        if typed.contains(|it: char| it.is_control() && it != '\t') {
            return true;
        }
        let shown = self.screen.since(&live.start, self.max_read());
        shown.truncated || input::is_shown(typed, &shown.text)
    }

    /// Makes the shell wait without its editor, restores what differs, and lets it go on. None
    /// where it did not wait.
    async fn restore(&mut self, status: Option<i32>) -> Option<Vec<LineSetting>> {
        let scratch = new_screen(&self.config);
        let shown = std::mem::replace(&mut self.screen, scratch);
        self.unseen = true;
        let mut restored = None;
        if self.hidden_line(pause(status)).await.is_some_and(|kind| kind != StateKind::Prompt) {
            restored = Some(self.process.restore_settings());
            if self.hidden_line("\n".to_owned()).await != Some(StateKind::Prompt) {
                tracing::warn!("the shell of session {} did not come back at once", self.id);
            }
        }
        self.screen = shown;
        self.unseen = false;
        restored
    }

    /// Types what is not shown, and waits until the shell waits again: for what.
    async fn hidden_line(&mut self, line: String) -> Option<StateKind> {
        self.begin_exchange(None, Some(LONGEST));
        if let Some(live) = &mut self.live {
            live.lines.push_back(line);
        }
        self.type_line();
        let settled = loop {
            if let Some(settled) = self.advance().await {
                break settled;
            }
        };
        self.live = None;
        // Its end is told to nobody, later neither.
        self.marks.finished(settled.kind == StateKind::Prompt);
        let shell = self.process.pid();
        let foreground = settled.judgement.and_then(|it| it.foreground);
        let waits = settled.reason == WaitReason::StdinRead;
        (waits && foreground.is_some_and(|it| it.pid == shell)).then_some(settled.kind)
    }
}

/// The line that makes bash wait for another line, and then gives the status back that it had. It
/// forgets itself in the history, and no strict shell ends in it.
fn pause(status: Option<i32>) -> String {
    let status = status.unwrap_or(0);
    format!(
        " {{ builtin read -r _ || :; [[ ${{HISTCONTROL-}} == *ignore[sb]* ]] || history -d -1 || :; \
         [[ $- == *e* ]] || (exit {status}); }} 2>/dev/null\r"
    )
}

fn word(setting: LineSetting) -> &'static str {
    match setting {
        LineSetting::Lines => "restored line mode",
        LineSetting::Echo => "restored the echo",
        LineSetting::Signals => "restored the signal keys",
        LineSetting::Enter => "restored the Enter key",
        LineSetting::Output => "restored line breaks",
    }
}
