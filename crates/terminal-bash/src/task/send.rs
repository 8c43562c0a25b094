//! One send in the task: what is typed, what is looked at, and what comes of it.

use std::{collections::BTreeMap, time::Duration};

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
    pub(super) text: String,
    total: usize,
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
}

/// What the terminal looked like when the input was written.
#[derive(Clone, Copy)]
pub(super) struct Before {
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
        let modes = self.process.modes();
        if modes.is_some_and(|it| it.canonical)
            && let Some(error) = input::too_long_for_a_line(&request.text)
        {
            return settler.refuse(error);
        }
        let bytes = input::bytes(&request.text, request.submit, self.marks.prompt().is_some());
        let facts = InputFacts { unfinished: input::is_unfinished(&bytes) };
        self.begin_exchange(Some(settler), request.text.clone(), facts, request.background);
        if let Some(live) = &mut self.live {
            live.total = bytes.len();
            live.echo = Echo::of(modes);
            live.before.must_act =
                request.submit && !self.screen.alternate() && modes.is_some_and(|it| !it.canonical);
        }
        self.process.write(&bytes);
    }

    pub(super) fn begin_exchange(
        &mut self,
        settler: Option<Settler>,
        text: String,
        input: InputFacts,
        background: bool,
    ) {
        let now = self.now();
        let limits = Limits {
            longest_gap: Duration::from_millis(self.config.poll_interval_ms),
            idle_silence: Duration::from_millis(self.config.idle_silence_ms),
            handoff_grace: Duration::from_millis(self.config.handoff_grace_ms),
            timeout: self.config.bound(background),
        };
        let before = Before {
            line_feeds: self.screen.line_feeds(),
            editor_switches: self.editor_switches,
            alternate: self.screen.alternate(),
            canonical: self.process.modes().map(|it| it.canonical),
            shell_edits: self.marks.prompt().is_none() && self.screen.bracketed_paste(),
            must_act: false,
        };
        self.marks.begin();
        self.live = Some(Live {
            exchange: Exchange::begin(now, limits, input),
            settler,
            start: self.delivered.clone(),
            followers: BTreeMap::new(),
            before,
            text,
            total: 0,
            echo: Echo::Off,
            interrupt: None,
            discarded: 0,
        });
    }

    pub(super) fn settle(&mut self, settled: &Settlement) {
        let Some(mut live) = self.live.take() else { return };
        let Some(settler) = live.settler.take() else { return };
        let slice = self.screen.since(&live.start, self.max_read());
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
            last_command: self.last_command(&live, settled),
            state: Some(self.state(settled)),
            input: Some(InputReceipt {
                accepted: live.total.saturating_sub(refused) as u64,
                unread: self.process.unread_bytes().unwrap_or(0),
            }),
            repaired: Vec::new(),
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
        let shell = self.process.pid();
        let shell_waits = settled.reason == WaitReason::StdinRead
            && settled
                .judgement
                .as_ref()
                .and_then(|it| it.foreground.as_ref())
                .is_some_and(|it| it.pid == shell);
        let finished = if shell_waits && settled.kind == StateKind::LineEditor {
            let typed_a_command = live.before.shell_edits && !live.text.trim().is_empty();
            self.marks.take_untold(self.now()).or_else(|| {
                typed_a_command.then_some(Finished {
                    status: None,
                    duration: Moment::ZERO,
                    unsure: false,
                })
            })
        } else {
            self.marks.finished().filter(|it| !(it.unsure && is_blank_or_comment(&live.text)))
        }?;
        Some(LastCommand {
            exit_code: finished.status,
            duration_ms: u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
            cwd: self.process.cwd(),
        })
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
