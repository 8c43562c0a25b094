//! One send in the task: what is typed, what is looked at, and what comes of it.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use subprocess::Modes;
use terminal::{
    Busy, Evidence, Foreground, InputReceipt, KeyPress, LastCommand, OutputDelta, SendOutcome,
    SendRequest, SendState, SessionStatus, Shown, StateKind, TerminalError, WaitReason,
};

use super::{Task, far::Chase, interrupt::Interrupt, typing::ApartEnter};
use crate::{
    crowd::Member,
    input,
    readiness::{Exchange, Finished, InputFacts, Limits, Moment, Prompt, Settlement, Verdict},
    screen::Position,
    settler::{Follower, Settler},
    typing::Stroke,
};

/// Most bytes of a text that are looked for in what was shown.
const LONGEST_ECHO: usize = 65_536;

/// The exchange that runs.
pub(super) struct Live {
    pub(super) exchange: Exchange,
    /// None while the shell starts: nobody sent anything then.
    pub(super) settler: Option<Settler>,
    /// It waits, like those of other sessions.
    pub(super) member: Member,
    pub(super) start: Position,
    followers: BTreeMap<Follower, Position>,
    pub(super) before: Before,
    /// The whole text.
    pub(super) text: String,
    /// What of it is still to be typed.
    pub(super) lines: VecDeque<String>,
    /// What was typed last.
    pub(super) stroke: Stroke,
    /// Its Enter, which is typed apart.
    pub(super) apart_enter: Option<ApartEnter>,
    /// A program had the whole screen when it began.
    full_screen: bool,
    /// Lines that are not typed any more.
    untyped: u64,
    /// Bytes of the text that were handed to the terminal.
    pub(super) typed: usize,
    echo: Echo,
    /// It began at the shell's own prompt.
    pub(super) in_shell: bool,
    /// Bytes of the input that a cancellation kept from the terminal.
    pub(super) discarded: usize,
    /// It was cancelled.
    pub(super) interrupt: Option<Interrupt>,
    /// Keys that are pressed behind the lines.
    pub(super) keys: VecDeque<KeyPress>,
    /// Nobody sent it: it looks for a reader that is waited for.
    pub(super) watching: bool,
    /// A command on the far side that it may not have met.
    pub(super) chase: Option<Chase>,
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

impl Live {
    /// One more stroke is typed, under these modes.
    pub(super) fn note_echo(&mut self, modes: Option<Modes>) {
        self.echo = self.echo.and(Echo::of(modes));
    }

    /// When the Enter that is typed apart is due, at the latest.
    pub(super) fn enter_due(&self) -> Option<Moment> {
        self.apart_enter.and_then(|it| it.due)
    }

    /// What was typed may be shown.
    pub(super) fn may_be_echoed(&self) -> bool {
        self.echo != Echo::Off
    }

    /// Nothing else is waited for.
    pub(super) fn waits_for_enter_alone(&self) -> bool {
        self.apart_enter.is_some_and(|it| it.only_due)
    }
}

impl Task {
    pub(super) async fn send(&mut self, request: &SendRequest, settler: Settler) {
        self.begin_send(request, settler).await;
        // What is stopping gets nothing: it is typed when the shell waits for it.
        if self.handover.is_none() {
            self.type_line();
        }
    }

    /// Begins an exchange, unless it is refused; nothing is typed yet.
    pub(super) async fn begin_send(&mut self, request: &SendRequest, settler: Settler) {
        self.drain();
        if self.exit.is_some() {
            return settler.refuse(TerminalError::SessionExited { id: self.id.to_string() });
        }
        let modes = self.process.modes();
        let canonical = modes.is_some_and(|it| it.canonical);
        let in_shell = self.marks.prompt().is_some();
        if !canonical && !in_shell && !self.still_waits() {
            // Who takes it decides how it is typed, and how much of it.
            self.look_for_reader().await;
        }
        if let Some((open, ends)) = self.line(modes) {
            // What is left of an earlier text comes first, and its last line may be unfinished.
            let open = self.left.back().map_or(open, |last| input::open_line(0, last, ends));
            if let Some((bytes, limit)) = input::too_long(open, &request.text, ends) {
                return settler.refuse(TerminalError::LineTooLong { bytes, limit });
            }
        }
        let mut lines = input::lines(&request.text, request.submit);
        let mut untyped = 0;
        if !self.screen.alternate() || self.left_full_screen {
            self.left.append(&mut lines);
            lines = std::mem::take(&mut self.left);
        } else {
            untyped = untyped_lines(&self.left);
            self.left.clear();
        }
        self.clear_replies();
        self.begin_exchange(Some(settler), self.config.bound(request.background));
        if let Some(live) = &mut self.live {
            live.text.clone_from(&request.text);
            live.lines = lines;
            live.untyped = untyped;
            live.in_shell = in_shell && !canonical;
            if request.background {
                live.exchange.in_background();
            }
        }
    }

    /// Keeps replies of the terminal that nobody has read from coming before what is sent: those in
    /// the terminal are dropped, and those that a shell took for keys are taken back.
    fn clear_replies(&mut self) {
        if self.answers.only_replies() {
            self.process.flush_input();
            self.answers.flushed();
        }
        if self.answers.take_stray() && self.marks.prompt() == Some(Prompt::Primary) {
            self.process.write(self.config.shell_dialect.discard_line().as_bytes());
        }
    }

    pub(super) fn before(&self, modes: Option<Modes>) -> Before {
        Before {
            at: self.screen.end(),
            printed: self.screen.printed(),
            line_feeds: self.screen.line_feeds(),
            editor_switches: self.editor_switches,
            alternate: self.screen.alternate(),
            canonical: modes.map(|it| it.canonical),
            shell_edits: self.unmarked_prompt,
            must_act: false,
        }
    }

    pub(super) fn begin_exchange(&mut self, settler: Option<Settler>, timeout: Option<Duration>) {
        let now = self.now();
        let limits = Limits {
            longest_gap: Duration::from_millis(self.config.poll_interval_ms),
            idle_silence: Duration::from_millis(self.config.idle_silence_ms),
            handoff_grace: Duration::from_millis(self.config.handoff_grace_ms),
            timeout,
        };
        self.marks.begin();
        self.live = Some(Live {
            exchange: Exchange::begin(now, limits, InputFacts::default()),
            settler,
            member: Member::join(),
            start: self.delivered.clone(),
            followers: BTreeMap::new(),
            before: self.before(self.process.modes()),
            text: String::new(),
            lines: VecDeque::new(),
            stroke: Stroke::default(),
            apart_enter: None,
            full_screen: self.screen.alternate(),
            untyped: 0,
            typed: 0,
            echo: Echo::On,
            in_shell: false,
            interrupt: None,
            chase: None,
            discarded: 0,
            keys: VecDeque::new(),
            watching: false,
        });
    }

    /// What a settlement means while lines are left: the next one is typed if somebody waits. Else
    /// they are kept for the next send, which begins with them: typed blindly, a secret among them
    /// would be shown.
    pub(super) fn goes_on(&mut self, settled: &Settlement) -> bool {
        self.relayed = settled.evidence == Evidence::Relay || settled.kind == StateKind::Relay;
        if !self.has_more() {
            return false;
        }
        if settled.reason == WaitReason::StdinRead && self.enter_is_due() {
            return true;
        }
        let Some(live) = &mut self.live else { return false };
        // Whoever presses keys sees the screen, and knows who gets them.
        let keys = live.lines.is_empty() && settled.reason == WaitReason::InferredIdle;
        if settled.reason == WaitReason::StdinRead || keys {
            self.marks.finished(settled.kind == StateKind::Prompt);
            return self.type_line();
        }
        self.left.append(&mut live.lines);
        self.left_full_screen = live.full_screen;
        false
    }

    /// Whether something is still to be typed. Lines are not that were sent before a program took the
    /// whole screen: to that program they would be keys.
    pub(super) fn has_more(&mut self) -> bool {
        let full_screen = self.screen.alternate();
        let Some(live) = &mut self.live else { return false };
        // The Enter of a line is no line of its own.
        if full_screen && !live.full_screen && live.apart_enter.is_none() {
            live.untyped += untyped_lines(&live.lines);
            live.lines.clear();
        }
        !live.lines.is_empty() || !live.keys.is_empty()
    }

    /// Settles the live exchange; at the shell's prompt what a program left behind is put right
    /// first. The waits end after it: whoever is told of the prompt may send at once.
    pub(super) async fn conclude(&mut self, settled: &Settlement) {
        let last_command = self.last_command(settled);
        let mended = self.mend(settled, last_command.as_ref()).await;
        let proven = settled.reason == WaitReason::StdinRead && settled.evidence == Evidence::Exact;
        if let Some(waiting) = self.waiting.as_mut().filter(|_| proven) {
            waiting.still = true;
        }
        let waits = settled.reason == WaitReason::StdinRead && settled.output_complete;
        self.marks.settled(waits.then_some(settled.kind));
        // Whom a limit ends is not left.
        let left = settled.reason == WaitReason::SessionExit && self.limits.reached().is_none();
        let left = if left { self.process.living().await } else { Vec::new() };
        let left = left.into_iter().map(|(pid, command)| Foreground { pid, command }).collect();
        self.settle(settled, last_command.clone(), mended, left);
        self.settle_watches(settled, last_command.as_ref());
    }

    fn settle(
        &mut self,
        settled: &Settlement,
        last_command: Option<LastCommand>,
        mended: Vec<&'static str>,
        left: Vec<Foreground>,
    ) {
        let Some(mut live) = self.live.take() else { return };
        let Some(settler) = live.settler.take() else { return };
        let at_prompt = matches!(settled.kind, StateKind::Prompt | StateKind::Continuation);
        // What a program left that ended in the middle of something.
        let repaired = if at_prompt { self.repair_screen() } else { Vec::new() };
        let (slice, end) = self.screen.since_to_end(&live.start, self.max_read());
        let missing = self.missing(&slice);
        let drawn = self.screen.alternate().then(|| self.screen.shown().text());
        if drawn.is_none() {
            self.delivered = end;
        }
        let echoed = match live.echo {
            Echo::On => true,
            Echo::Off => false,
            Echo::ByEditor => {
                let drawn = drawn.as_deref().is_some_and(|it| input::is_shown(&live.text, it));
                drawn || input::is_shown(&live.text, &slice.text)
            }
        };
        let repaired = mended.into_iter().chain(repaired);
        let modes = self.process.modes();
        let outcome = SendOutcome {
            echoed,
            truncated: slice.truncated && drawn.is_none(),
            missing: drawn.is_none().then_some(missing),
            viewport: drawn.unwrap_or(slice.text),
            wait_reason: settled.reason,
            session_status: self.exit.clone().unwrap_or(SessionStatus::Running),
            last_command,
            state: Some(self.state(settled, modes)),
            input: Some(InputReceipt {
                accepted: live.accepted(self.process.unwritten()),
                unread: self.unread(modes),
                untyped: live.untyped,
            }),
            limit: self.limits.reached(),
            repaired: repaired.map(str::to_owned).collect(),
            left,
            unpressed: live.keys.len() as u64,
        };
        let max = self.max_read();
        let leftovers = live.followers.into_iter().map(|(follower, mut position)| {
            let slice = self.screen.delta(&mut position, max);
            (follower, OutputDelta { text: slice.text, truncated: slice.truncated })
        });
        settler.settle(outcome, leftovers.collect());
    }

    pub(super) fn state(&self, settled: &Settlement, modes: Option<Modes>) -> SendState {
        let judgement = settled.judgement.as_ref();
        let silent = modes.is_some_and(|it| it.canonical && !it.echo);
        let running = matches!(settled.kind, StateKind::Running | StateKind::Relay);
        let busy = judgement.filter(|_| running).and_then(|it| it.busy);
        let unread =
            !self.left.is_empty() || judgement.is_some_and(|it| it.verdict == Verdict::Unread);
        let busy = match busy {
            // What it does besides matters less than that it has not read what was typed.
            Some(doing) if doing != Busy::Stopped && unread => Some(Busy::UnreadInput),
            other => other,
        };
        SendState {
            kind: settled.kind,
            evidence: settled.evidence,
            echo: settled.kind != StateKind::Password && (running || !silent),
            alternate_screen: self.screen.alternate(),
            foreground: judgement.and_then(|it| it.foreground.clone()),
            busy,
            output_complete: settled.output_complete,
        }
    }

    /// The shell command that ended in this exchange: told by the shell's marks, or, where they
    /// are gone, known only to have ended.
    fn last_command(&mut self, settled: &Settlement) -> Option<LastCommand> {
        let live = self.live.as_ref()?;
        let foreground = settled.judgement.as_ref().and_then(|it| it.foreground.as_ref());
        let shell_waits = settled.reason == WaitReason::StdinRead
            && foreground
                .is_some_and(|it| it.pid == self.process.pid() && it.command == self.shell_name());
        let edits = settled.judgement.as_ref().is_some_and(|it| it.edits_line);
        let unmarked = matches!(settled.kind, StateKind::LineEditor | StateKind::Raw);
        self.unmarked_prompt = shell_waits && edits && unmarked;
        let finished = if settled.reason == WaitReason::SessionExit && self.marks.is_running() {
            // Of the command with which the shell ended, the shell's own end tells.
            None
        } else if self.unmarked_prompt {
            // Its editor announces itself where it writes its prompts: not to this terminal.
            let elsewhere = settled.kind == StateKind::Raw && self.editor_switches > 0;
            self.marks.untold(self.now()).or_else(|| {
                let command = (live.before.shell_edits || elsewhere) && may_run(&live.text);
                command.then(|| self.marks.lost())
            })
        } else {
            let at_prompt = settled.kind == StateKind::Prompt;
            let finished = self.marks.finished(at_prompt);
            let finished = finished.filter(|it| !it.unsure || may_run(&live.text));
            let unmarked = at_prompt && self.marks.took_unmarked() && may_run(&live.text);
            finished.or_else(|| unmarked.then(|| self.marks.lost()))
        }?;
        Some(self.last_command_of(finished))
    }

    pub(super) fn last_command_of(&self, finished: Finished) -> LastCommand {
        LastCommand {
            exit_code: finished.status,
            duration_ms: u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
            cwd: match &self.far {
                Some(far) => far.directory.clone(),
                None => self.process.cwd(),
            },
        }
    }

    /// The shell's command name as the kernel keeps it.
    fn shell_name(&self) -> String {
        const KEPT: usize = 15;
        let name = self.config.shell_path.file_name().unwrap_or_default();
        name.to_string_lossy().chars().take(KEPT).collect()
    }

    /// Takes note of how much of a text is known to be shown that nobody waits for: whoever waits
    /// is told by the outcome. What was shown once stays so.
    pub(super) fn note_shown(&mut self) {
        let Some(live) = self.live.as_ref().filter(|it| it.exchange.is_in_background()) else {
            return;
        };
        let Some(settler) = &live.settler else { return };
        let (known, hidden) = (settler.shown(), live.echo == Echo::Off);
        if hidden || known.bytes >= live.text.len().min(LONGEST_ECHO) {
            settler.announce_shown(Shown { hidden, ..known });
            return;
        }
        let untyped: usize = live.lines.iter().map(String::len).sum();
        let typed = live.text.len().saturating_sub(untyped).min(LONGEST_ECHO);
        let bytes = live.text.floor_char_boundary(typed);
        let is_shown = live.echo == Echo::On || {
            let slice = self.screen.since(&live.start, 2 * LONGEST_ECHO);
            input::is_shown(&live.text[..bytes], &slice.text)
        };
        if is_shown && bytes > known.bytes {
            settler.announce_shown(Shown { bytes, hidden });
        }
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

/// How many lines are dropped with these; one with nothing in it is none.
fn untyped_lines(lines: &VecDeque<String>) -> u64 {
    lines.iter().filter(|it| !it.trim().is_empty()).count() as u64
}

/// Whether a text may make the shell run something: it is not only comments and blanks, and no
/// interrupt took it back.
fn may_run(text: &str) -> bool {
    let blank = |it: char| it.is_control() || it.is_whitespace();
    let mut firsts = text.lines().filter_map(|line| line.chars().find(|it| !blank(*it)));
    !text.contains('\u{3}') && firsts.any(|it| it != '#')
}
