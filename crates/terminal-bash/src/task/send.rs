//! One send in the task: what is typed, what is looked at, and what comes of it.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use subprocess::Modes;
use terminal::{
    InputReceipt, LastCommand, OutputDelta, SendOutcome, SendRequest, SendState, SessionStatus,
    StateKind, TerminalError, WaitReason,
};

use super::{Task, interrupt::Interrupt};
use crate::{
    input,
    readiness::{Exchange, InputFacts, Limits, Moment, Settlement, marks::Finished},
    screen::Position,
    settler::{Follower, Settler},
};

/// The exchange that runs.
pub(super) struct Live {
    pub(super) exchange: Exchange,
    /// None while the shell starts: nobody sent anything then.
    pub(super) settler: Option<Settler>,
    start: Position,
    followers: BTreeMap<Follower, Position>,
    pub(super) before: Before,
    /// The whole text.
    text: String,
    /// What of it is still to be typed.
    pub(super) lines: VecDeque<String>,
    /// The line that was typed last.
    pub(super) line: String,
    /// Bytes that were handed to the terminal.
    typed: usize,
    echo: Echo,
    /// Bytes of the input that a cancellation kept from the terminal.
    pub(super) discarded: usize,
    /// It was cancelled.
    pub(super) interrupt: Option<Interrupt>,
}

/// Whether what is typed is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Echo {
    /// By the terminal.
    On,
    /// Not by the terminal, and nobody may: or nobody knows.
    Off,
    /// Not by the terminal, but a line editor may: the viewport tells.
    ByEditor,
}

impl Echo {
    fn of(modes: Option<Modes>) -> Self {
        match modes {
            Some(Modes { echo: true, .. }) => Self::On,
            Some(Modes { canonical: false, .. }) => Self::ByEditor,
            Some(_) | None => Self::Off,
        }
    }

    /// Of two lines: what may not be shown of one may not be shown of both.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Off, _) | (_, Self::Off) => Self::Off,
            (Self::On, Self::On) => Self::On,
            _ => Self::ByEditor,
        }
    }
}

/// What the terminal looked like when the last line was typed.
#[derive(Clone)]
pub(super) struct Before {
    /// Where the text ended.
    pub(super) at: Position,
    pub(super) printed: u64,
    pub(super) line_feeds: u64,
    pub(super) editor_switches: u64,
    pub(super) alternate: bool,
    pub(super) canonical: Option<bool>,
    /// The shell itself was reading a command line.
    pub(super) shell_edits: bool,
    /// An answer is only worth something if the program shows that it acted upon the input.
    pub(super) must_act: bool,
}

impl Task {
    pub(super) fn send(&mut self, request: &SendRequest, settler: Settler) {
        self.drain();
        if self.exit.is_some() {
            return settler.refuse(TerminalError::SessionExited { id: self.id.to_string() });
        }
        if self.process.modes().is_some_and(|it| it.canonical)
            && let Some((bytes, limit)) = input::too_long(&request.text)
        {
            return settler.refuse(TerminalError::LineTooLong { bytes, limit });
        }
        let mut lines = std::mem::take(&mut self.left);
        lines.extend(input::lines(&request.text, request.submit));
        if self.screen.alternate() {
            // A full-screen program takes keys, not lines.
            lines = VecDeque::from([lines.into_iter().collect()]);
        }
        self.begin_exchange(Some(settler), request.background);
        if let Some(live) = &mut self.live {
            live.text.clone_from(&request.text);
            live.lines = lines;
        }
        self.type_line();
    }

    /// Types the next line of the live exchange, which somebody waits for. True if there was one.
    pub(super) fn type_line(&mut self) -> bool {
        let now = self.now();
        let modes = self.process.modes();
        let in_shell = self.marks.prompt().is_some() && modes.is_some_and(|it| !it.canonical);
        let before = self.before();
        let Some(live) = &mut self.live else { return false };
        let Some(next) = live.lines.pop_front() else { return false };
        if modes.is_some_and(|it| it.canonical)
            && let Some((bytes, limit)) = input::too_long(&next)
        {
            let typed = live.typed as u64;
            let settler = live.settler.take();
            self.live = None;
            if let Some(settler) = settler {
                settler.refuse(TerminalError::LaterLineTooLong { bytes, limit, typed });
            }
            return true;
        }
        live.typed += next.len();
        live.echo = live.echo.and(Echo::of(modes));
        let unfinished = input::is_unfinished(next.as_bytes());
        live.exchange.typed(now, InputFacts { unfinished });
        let must_act = !unfinished && !before.alternate && modes.is_some_and(|it| !it.canonical);
        live.before = Before { must_act, ..before };
        let bytes = if in_shell { input::for_line_editor(&next) } else { next.clone() };
        live.line = next;
        self.process.write(bytes.as_bytes());
        true
    }

    fn before(&self) -> Before {
        Before {
            at: self.screen.end(),
            printed: self.screen.printed(),
            line_feeds: self.screen.line_feeds(),
            editor_switches: self.editor_switches,
            alternate: self.screen.alternate(),
            canonical: self.process.modes().map(|it| it.canonical),
            shell_edits: self.marks.prompt().is_none() && self.screen.bracketed_paste(),
            must_act: false,
        }
    }

    pub(super) fn begin_exchange(&mut self, settler: Option<Settler>, background: bool) {
        let now = self.now();
        let limits = Limits {
            longest_gap: Duration::from_millis(self.config.poll_interval_ms),
            idle_silence: Duration::from_millis(self.config.idle_silence_ms),
            handoff_grace: Duration::from_millis(self.config.handoff_grace_ms),
            timeout: self.config.bound(background),
        };
        self.marks.begin();
        self.live = Some(Live {
            exchange: Exchange::begin(now, limits, InputFacts::default()),
            settler,
            start: self.delivered.clone(),
            followers: BTreeMap::new(),
            before: self.before(),
            text: String::new(),
            lines: VecDeque::new(),
            line: String::new(),
            typed: 0,
            echo: Echo::On,
            interrupt: None,
            discarded: 0,
        });
    }

    /// What a settlement means while lines are left: the next one is typed if somebody waits. Else
    /// they are kept for the next send, which begins with them: typed blindly, a secret among them
    /// would be shown.
    pub(super) fn goes_on(&mut self, settled: &Settlement) -> bool {
        let Some(live) = &mut self.live else { return false };
        if live.lines.is_empty() {
            return false;
        }
        if settled.reason == WaitReason::StdinRead {
            self.marks.finished(settled.kind == StateKind::Prompt);
            return self.type_line();
        }
        self.left = std::mem::take(&mut live.lines);
        false
    }

    pub(super) fn settle(&mut self, settled: &Settlement) {
        let Some(mut live) = self.live.take() else { return };
        let Some(settler) = live.settler.take() else { return };
        let at_prompt = matches!(settled.kind, StateKind::Prompt | StateKind::Continuation);
        // What a program left that ended in the middle of something.
        let repaired = if at_prompt { self.screen.repair() } else { Vec::new() };
        let slice = self.screen.since(&live.start, self.max_read());
        let missing = self.missing(&slice);
        self.delivered = self.screen.end();
        let refused = self.process.unwritten() + live.discarded;
        let outcome = SendOutcome {
            echoed: match live.echo {
                Echo::On => true,
                Echo::Off => false,
                Echo::ByEditor => input::is_shown(&live.text, &slice.text),
            },
            viewport: slice.text,
            wait_reason: settled.reason,
            session_status: self.exit.clone().unwrap_or(SessionStatus::Running),
            truncated: slice.truncated,
            missing: Some(missing),
            last_command: self.last_command(&live, settled),
            state: Some(self.state(settled)),
            input: Some(InputReceipt {
                accepted: live.typed.saturating_sub(refused) as u64,
                unread: self.process.unread_bytes().unwrap_or(0),
            }),
            repaired: repaired.into_iter().map(str::to_owned).collect(),
        };
        let max = self.max_read();
        let leftovers = live.followers.into_iter().map(|(follower, mut position)| {
            let slice = self.screen.delta(&mut position, max);
            (follower, OutputDelta { text: slice.text, truncated: slice.truncated })
        });
        settler.settle(outcome, leftovers.collect());
    }

    fn state(&self, settled: &Settlement) -> SendState {
        let judgement = settled.judgement.as_ref();
        let modes = self.process.modes();
        let silent = modes.is_some_and(|it| it.canonical && !it.echo);
        let running = matches!(settled.kind, StateKind::Running | StateKind::Relay);
        SendState {
            kind: settled.kind,
            evidence: settled.evidence,
            echo: settled.kind != StateKind::Password && (running || !silent),
            alternate_screen: self.screen.alternate(),
            foreground: judgement.and_then(|it| it.foreground.clone()),
            busy: judgement.filter(|_| running).and_then(|it| it.busy),
            output_complete: settled.output_complete,
        }
    }

    /// The shell command that ended in this exchange: told by the shell's marks, or, where they
    /// are gone, known only to have ended.
    fn last_command(&mut self, live: &Live, settled: &Settlement) -> Option<LastCommand> {
        let foreground = settled.judgement.as_ref().and_then(|it| it.foreground.as_ref());
        let shell_waits = settled.reason == WaitReason::StdinRead
            && foreground
                .is_some_and(|it| it.pid == self.process.pid() && it.command == self.shell_name());
        let finished = if settled.reason == WaitReason::SessionExit && self.marks.is_running() {
            // Of the command with which the shell ended, the shell's own end tells.
            None
        } else if shell_waits && settled.kind == StateKind::LineEditor {
            let typed = live.text.chars().any(|it| !it.is_control() && !it.is_whitespace());
            let command = live.before.shell_edits && typed && !live.text.contains('\u{3}');
            self.marks.untold(self.now()).or_else(|| {
                command.then_some(Finished { status: None, duration: Moment::ZERO, unsure: false })
            })
        } else {
            let at_prompt = settled.kind == StateKind::Prompt;
            let finished = self.marks.finished(at_prompt);
            finished.filter(|it| !(it.unsure && is_blank_or_comment(&live.text)))
        }?;
        Some(LastCommand {
            exit_code: finished.status,
            duration_ms: u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
            cwd: self.process.cwd(),
        })
    }

    /// The shell's command name as the kernel keeps it.
    fn shell_name(&self) -> String {
        const KEPT: usize = 15;
        let name = self.config.shell_path.file_name().unwrap_or_default();
        name.to_string_lossy().chars().take(KEPT).collect()
    }

    pub(super) fn delta(&mut self, exchange: u64, follower: Follower) -> Option<OutputDelta> {
        let max = self.max_read();
        let live = self.live.as_mut()?;
        if live.settler.as_ref()?.number != exchange {
            return None;
        }
        let position = live.followers.entry(follower).or_insert_with(|| live.start.clone());
        let slice = self.screen.delta(position, max);
        Some(OutputDelta { text: slice.text, truncated: slice.truncated })
    }
}

fn is_blank_or_comment(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text.starts_with('#')
}
