//! One send over time: when to look, and when and why it is settled.
//!
//! The gap between two looks grows with the time that nothing happened: from tens of microseconds to
//! a millisecond, after a second to a few, where several sessions wait to some more, and after two
//! seconds to `pollIntervalMs`; whatever happens (output, a read of the terminal, the end of a write)
//! makes the next look due at once. There is no fixed tick.

use std::time::Duration;

use subprocess::{Depth, Evidence, ProcessFacts, Scan, Wait};
use terminal::{Busy, Evidence as Strength, StateKind, WaitReason};

use super::{
    judge::{Context, Judge, Judgement, ScreenFacts, Verdict, Waiter},
    marks::Moment,
};

/// The shortest gap between two looks: a program that just wrote its prompt needs about that long
/// to block.
const FIRST_GAP: Duration = Duration::from_micros(40);
/// The shortest gap for each session that waits, so that many of them leave time for what they wait for.
const GAP_OF_EACH: Duration = Duration::from_micros(20);
/// Who answers sooner than this says so by output, which makes a look due.
const ANSWER_GAP: Duration = Duration::from_micros(250);
/// So soon after an event only those are looked at who are likely to wait.
const FAST_LOOKS: Duration = Duration::from_micros(300);
/// More output at once than this is a flood, not a prompt.
const FLOOD: usize = 1_024;
/// A quiet time is divided by this for the next gap, so a wait is found within a quarter of its age.
const GAP_SHARE: u32 = 4;
/// Until so long after the last event the gap between two looks is no longer than this for each session
/// that waits, nor than that for however many: most answers come soon, and each look costs a wake-up.
const SOON: [(Duration, Duration, Duration); 2] = [
    (Duration::from_secs(1), Duration::from_micros(600), Duration::from_millis(4)),
    (Duration::from_secs(2), Duration::from_millis(3), Duration::from_millis(12)),
];
/// Looks that are so far apart are due together with those of other sessions.
const GRID: Duration = Duration::from_millis(4);
/// Silence of a foreground that cannot be seen: behind what looks like a prompt, behind a line that
/// was one before, and of a full screen.
const PROMPT_SILENCE: Duration = Duration::from_millis(400);
const KNOWN_PROMPT_SILENCE: Duration = Duration::from_millis(40);
const FULL_SCREEN_SILENCE: Duration = Duration::from_millis(250);
/// How long a foreground that cannot be judged is given before the next line is typed.
const TYPE_AHEAD: Duration = Duration::from_millis(50);
/// So long after an event somebody else of the foreground who runs may be about to print what belongs to
/// it, as the end of a pipeline whose beginning reads the terminal again.
const OTHERS_RUN: Duration = Duration::from_millis(10);
/// CPU use below this share of a core is none, for a program that only waits on the network.
const IDLE_CPU_SHARE: u32 = 50;
/// CPU use is measured over at least this long.
const CPU_WINDOW: Duration = Duration::from_millis(500);
/// While a verdict settles, a program may wake up but not work: this much, plus an eighth.
const SETTLE_CPU: Duration = Duration::from_micros(300);

/// Bounds of one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest gap between two looks.
    pub longest_gap: Duration,
    /// Silence that makes a program idle that is not seen to be busy.
    pub idle_silence: Duration,
    /// How long an unfinished line is given.
    pub handoff_grace: Duration,
    /// Absolute bound; none for none.
    pub timeout: Option<Duration>,
}

/// What was typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputFacts {
    /// It ends in the middle of a line.
    pub unfinished: bool,
}

/// What output left on the line of the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Text that ends as prompts do, or a full screen's.
    Prompt,
    /// Nothing, or what may be the beginning of a line.
    Line,
    /// What a line editor shows of the line that was just typed: the answer is still to come.
    Echo,
    /// The same as of a line, behind such an echo: the answer may have begun.
    Answer,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing before this moment.
    Wait(Moment),
    /// Read the output that is there; if there was none, take a look.
    Look(Depth),
    /// Take a look, whatever output there is: the time is over.
    LastLook,
    /// It is over.
    Settled(Settlement),
}

/// Why and in which state an exchange ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The reason.
    pub reason: WaitReason,
    /// Kind of the state.
    pub kind: StateKind,
    /// What it rests on.
    pub evidence: Strength,
    /// The look that it rests on; none if none was taken.
    pub judgement: Option<Judgement>,
    /// All that was written before the verdict has been read.
    pub output_complete: bool,
}

/// One send, from the write to the settlement.
#[derive(Clone, Debug)]
pub struct Exchange {
    limits: Limits,
    input: InputFacts,
    patience: Patience,
    started: Moment,
    /// When a line was typed last, or the start.
    typed: Moment,
    /// Last output, or the start.
    last_output: Moment,
    /// Last look at which the foreground was seen to be busy, last input that was read or taken, or
    /// the start. What is seen at one look alone, such as processes on their way out, makes nobody
    /// idle.
    last_busy: Moment,
    /// Bytes of the input that the terminal had not taken at the last look.
    unwritten: usize,
    /// Last event of any kind.
    last_event: Moment,
    next_look: Moment,
    /// A verdict wants a look at everybody.
    full: bool,
    settling: Option<Settling>,
    cpu: Option<(Moment, u64)>,
    working: bool,
    last: Option<Taken>,
    /// Sessions that wait, this one among them.
    waiting: u32,
}

/// What may end it besides readiness and the shell's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    /// Its bounds.
    Foreground,
    /// Its bounds, but a foreground that is seen to be off the terminal is not idle.
    Background,
    /// Nothing.
    Endless,
}

/// A look that was taken.
#[derive(Clone, Debug)]
struct Taken {
    judgement: Judgement,
    /// Everybody in the foreground was looked at.
    all: bool,
    /// There was no output that had not been read.
    output_complete: bool,
    screen: ScreenFacts,
}

#[derive(Clone, Copy, Debug)]
struct Settling {
    waiter: Waiter,
    kind: StateKind,
    since: Moment,
    cpu_ns: Option<u64>,
}

impl Exchange {
    /// Begins as the input is handed to the terminal.
    pub fn begin(now: Moment, limits: Limits, input: InputFacts) -> Self {
        Self {
            limits,
            input,
            patience: Patience::Foreground,
            started: now,
            typed: now,
            last_output: now,
            last_busy: now,
            unwritten: 0,
            last_event: now,
            next_look: now + ANSWER_GAP,
            full: false,
            settling: None,
            cpu: None,
            working: false,
            last: None,
            waiting: 1,
        }
    }

    /// A further line of the same exchange was typed: what was seen before it says nothing.
    pub fn typed(&mut self, now: Moment, input: InputFacts) {
        *self = Self {
            started: self.started,
            cpu: self.cpu,
            patience: self.patience,
            waiting: self.waiting,
            ..Self::begin(now, self.limits, input)
        };
    }

    /// Nobody waits for it: a foreground that is seen to be off the terminal is not idle, whatever it
    /// waits for.
    pub fn in_background(&mut self) {
        self.patience = Patience::Background;
    }

    /// Whether nobody waits for it.
    pub fn is_in_background(&self) -> bool {
        self.patience != Patience::Foreground
    }

    /// So many sessions wait at the moment, this one among them: they share what looks may cost.
    pub fn waits_among(&mut self, sessions: u32) {
        self.waiting = sessions;
    }

    /// Its foreground was interrupted. One in the background goes on until that has had its effect,
    /// however long it is silent.
    pub fn interrupted(&mut self) {
        if self.is_in_background() {
            self.patience = Patience::Endless;
            self.limits.timeout = None;
        }
    }

    /// Whoever it is for can't be seen (on another machine, of another user), and it has been quiet
    /// for a moment: the next line may as well be typed now.
    pub fn may_type_ahead(&self, now: Moment) -> bool {
        let all = self.last.as_ref().is_some_and(|last| last.all);
        all && self.is_unseen() && now.saturating_sub(self.last_event) >= TYPE_AHEAD
    }

    /// The input ends in the middle of a line.
    pub fn unfinished(&self) -> bool {
        self.input.unfinished
    }

    /// So many bytes of output came.
    pub fn output(&mut self, now: Moment, bytes: usize, shape: Shape) {
        self.last_output = now;
        self.last_event = now;
        self.settling = None;
        // What may be a prompt is worth a look at once, anything else once the output pauses. A look at
        // somebody in the middle of an echo, or between that and the answer, only keeps it from going on.
        self.next_look = match (bytes, shape) {
            (FLOOD.., _) | (_, Shape::Echo) => now + ANSWER_GAP,
            (_, Shape::Prompt) => now,
            (_, Shape::Line) => now + FIRST_GAP,
            (_, Shape::Answer) => (now + FIRST_GAP).max(self.typed + ANSWER_GAP),
        };
    }

    /// Output came that changed nothing that can be seen: nothing printed, no line feed, the cursor
    /// where it was. It makes a look due, but neither puts a verdict off that settles nor ends a
    /// silence: a program may save and restore its cursor for ever while it waits.
    pub fn invisible_output(&mut self, now: Moment) {
        self.next_look = self.next_look.min(now + FIRST_GAP);
    }

    /// A program asked the terminal something, or was replied to: it is about to read.
    pub fn asked(&mut self, now: Moment) {
        self.last_event = now;
        self.next_look = self.next_look.min(now + FIRST_GAP);
    }

    /// The shell started a command: when it is done, the shell says so.
    pub fn command_started(&mut self, now: Moment) {
        self.next_look = now + ANSWER_GAP;
    }

    /// Nothing was typed yet, and the look meant nothing.
    pub fn hold(&mut self, now: Moment) {
        self.next_look = self.after_gap(now);
    }

    /// Something else happened that makes a look worth while: input was read or taken, a signal
    /// was sent.
    pub fn stirred(&mut self, now: Moment) {
        self.last_event = now;
        self.last_busy = now;
        self.next_look = now + FIRST_GAP;
    }

    /// What to do now.
    pub fn step(&self, now: Moment) -> Step {
        let end = self.limits.timeout.map(|timeout| self.started + timeout);
        if end.is_some_and(|end| now >= end) {
            if !self.last.as_ref().is_some_and(|it| it.all) {
                return Step::LastLook;
            }
            return Step::Settled(self.settle_unproven(WaitReason::Timeout));
        }
        if now >= self.next_look {
            let soon = now.saturating_sub(self.last_event) < FAST_LOOKS;
            return Step::Look(if soon && !self.full { Depth::Fast } else { Depth::Full });
        }
        Step::Wait(end.map_or(self.next_look, |end| end.min(self.next_look)))
    }

    /// The foreground was seen to be busy at the last look: as long as nobody of it runs, another look
    /// would show the same.
    pub fn may_rest(&self) -> bool {
        self.last.as_ref().is_some_and(|last| {
            let Judgement { verdict, visibly_busy, .. } = &last.judgement;
            last.all && *visibly_busy && *verdict == Verdict::Not { relay: false }
        })
    }

    /// Nobody of it has run.
    pub fn rested(&mut self, now: Moment) {
        self.last_busy = now;
        self.next_look = self.after_gap(now);
    }

    /// A look was taken; `context` is what was known besides.
    pub fn look(
        &mut self,
        now: Moment,
        evidence: &Evidence,
        context: &Context,
        judge: &mut Judge,
    ) -> Step {
        if self.last.is_none() {
            judge.typed();
        }
        let judgement = judge.judge(evidence, context);
        self.measure_cpu(now, &judgement);
        let taken = evidence.unwritten < self.unwritten;
        self.unwritten = evidence.unwritten;
        // Nobody waits, so whoever is seen to do anything else than to wait for input may do it.
        let elsewhere = self.is_in_background()
            && judgement.busy != Some(Busy::Opaque)
            && matches!(judgement.verdict, Verdict::Not { relay: false } | Verdict::Unread);
        if judgement.visibly_busy || self.working || taken || elsewhere {
            self.last_busy = now;
        }
        let verdict = judgement.verdict.clone();
        self.last = Some(Taken {
            judgement,
            all: evidence.scan != Scan::Fast,
            output_complete: !evidence.unread_output,
            screen: context.screen,
        });
        if evidence.unread_output && !matches!(verdict, Verdict::Unread) {
            // Whatever waits now has printed something that belongs to this exchange.
            self.next_look = now;
            return self.step(now);
        }
        let claims = matches!(verdict, Verdict::Ready { .. } | Verdict::Settling { .. });
        // Only the shell's own marks speak for everybody: others may belie a single wait.
        let told = matches!(
            verdict,
            Verdict::Ready { kind: StateKind::Prompt | StateKind::Continuation, .. }
        );
        if evidence.scan == Scan::Fast && claims && !told {
            self.full = true;
            self.next_look = now;
            return self.step(now);
        }
        match verdict {
            Verdict::Ready { .. } if self.others_run(now, evidence) => {
                self.full = true;
                self.next_look = self.after_gap(now);
            }
            Verdict::Ready { kind, evidence } => {
                judge.accepted();
                return Step::Settled(self.settled(WaitReason::StdinRead, kind, evidence));
            }
            Verdict::Settling { kind, evidence: strength, window, waiter } => {
                if self.keeps_still(now, kind, waiter, window) {
                    judge.accepted();
                    return Step::Settled(self.settled(WaitReason::StdinRead, kind, strength));
                }
                self.full = true;
                self.next_look = now + (window / 4).clamp(FIRST_GAP, Duration::from_millis(10));
            }
            Verdict::Unread | Verdict::Unfinished | Verdict::Not { .. } => {
                self.settling = None;
                self.full = false;
                self.next_look = self.after_gap(now);
            }
        }
        if let Some(strength) = self.idle(now, judge) {
            if evidence.scan != Scan::Fast {
                if self.is_unseen() && context.screen.text_before_cursor {
                    judge.idled(&context.screen);
                }
                let settled = self.settle_unproven(WaitReason::InferredIdle);
                return Step::Settled(Settlement { evidence: strength, ..settled });
            }
            // Who was not looked at may be busy.
            self.full = true;
            self.next_look = now;
        }
        self.step(now)
    }

    /// Whether somebody besides the one that is ready runs, so soon after an event.
    fn others_run(&self, now: Moment, evidence: &Evidence) -> bool {
        let ready = self.last.as_ref().and_then(|it| it.judgement.foreground.as_ref());
        let runs = |it: &ProcessFacts| it.threads.iter().any(|it| it.wait == Wait::Running);
        now.saturating_sub(self.last_event) < OTHERS_RUN
            && evidence
                .processes
                .iter()
                .any(|it| ready.is_none_or(|ready| ready.pid != it.pid) && runs(it))
    }

    /// The next look after a gap, which grows with the quiet time.
    fn after_gap(&self, now: Moment) -> Moment {
        let quiet = now.saturating_sub(self.last_event);
        let soon = SOON.into_iter().find(|(until, ..)| quiet < *until);
        let soon = soon.map(|(_, each, many)| each.saturating_mul(self.waiting).min(many));
        let longest = self.limits.longest_gap;
        let longest = soon.map_or(longest, |soon| soon.min(longest));
        let shortest = FIRST_GAP.max(GAP_OF_EACH.saturating_mul(self.waiting)).min(longest);
        let gap = (quiet / GAP_SHARE).clamp(shortest, longest);
        if gap < GRID {
            return now + gap;
        }
        // Looks of several sessions are due together: waking up costs more than they do.
        let grid = u64::try_from(GRID.as_nanos()).unwrap_or(u64::MAX);
        let next = u64::try_from((now + gap).as_nanos()).unwrap_or(u64::MAX);
        Moment::from_nanos(next / grid * grid)
    }

    /// The top-level process ended.
    pub fn exited(&self) -> Settlement {
        Settlement {
            reason: WaitReason::SessionExit,
            kind: StateKind::Exited,
            evidence: Strength::Exact,
            judgement: None,
            output_complete: true,
        }
    }

    /// Whether the wait that settles has been the same, without work or output, for `window`.
    fn keeps_still(
        &mut self,
        now: Moment,
        kind: StateKind,
        waiter: Waiter,
        window: Duration,
    ) -> bool {
        let cpu_ns = self.last.as_ref().and_then(|it| it.judgement.cpu_ns);
        if let Some(settling) = self.settling
            && (settling.waiter, settling.kind) == (waiter, kind)
        {
            let age = now.saturating_sub(settling.since);
            let worked = match (cpu_ns, settling.cpu_ns) {
                (Some(now), Some(then)) => Duration::from_nanos(now.saturating_sub(then)),
                _ => Duration::ZERO,
            };
            if worked <= SETTLE_CPU + age / 8 {
                return age >= window;
            }
        }
        self.settling = Some(Settling { waiter, kind, since: now, cpu_ns });
        false
    }

    fn measure_cpu(&mut self, now: Moment, judgement: &Judgement) {
        let Some(cpu_ns) = judgement.cpu_ns else { return };
        let Some((since, before)) = self.cpu else {
            self.cpu = Some((now, cpu_ns));
            return;
        };
        let age = now.saturating_sub(since);
        if age >= CPU_WINDOW {
            let used = Duration::from_nanos(cpu_ns.saturating_sub(before));
            self.working = used > age / IDLE_CPU_SHARE;
            self.cpu = Some((now, cpu_ns));
        }
    }

    /// Whether it has been quiet for long enough to be called idle, and on what ground.
    fn idle(&self, now: Moment, judge: &Judge) -> Option<Strength> {
        let Taken { judgement: last, screen, .. } = self.last.as_ref()?;
        if self.patience == Patience::Endless {
            return None;
        }
        let silence = now.saturating_sub(self.last_output.max(self.last_busy));
        let prompt_silence =
            if judge.has_idled(screen) { KNOWN_PROMPT_SILENCE } else { PROMPT_SILENCE };
        let prompt = screen.acted_upon && screen.prompt_shaped && self.is_unseen();
        if prompt && silence >= prompt_silence {
            return Some(Strength::PromptText);
        }
        let enough = match last.verdict {
            Verdict::Unfinished => self.limits.handoff_grace,
            _ if screen.alternate && last.busy == Some(Busy::Opaque) => FULL_SCREEN_SILENCE,
            _ => self.limits.idle_silence,
        };
        (silence >= enough.min(self.limits.idle_silence)).then_some(Strength::Silence)
    }

    /// The foreground, or what it relays, may not be looked at.
    fn is_unseen(&self) -> bool {
        self.last.as_ref().is_some_and(|last| {
            let relay = last.judgement.verdict == Verdict::Not { relay: true };
            relay || last.judgement.busy == Some(Busy::Opaque)
        })
    }

    fn settled(&self, reason: WaitReason, kind: StateKind, evidence: Strength) -> Settlement {
        Settlement {
            reason,
            kind,
            evidence,
            judgement: self.last.as_ref().map(|it| it.judgement.clone()),
            output_complete: self.last.as_ref().is_some_and(|it| it.output_complete),
        }
    }

    /// The state of a foreground that was not seen to be ready.
    fn settle_unproven(&self, reason: WaitReason) -> Settlement {
        let kind = match &self.last {
            Some(Taken { judgement, .. })
                if judgement.verdict == (Verdict::Not { relay: true }) =>
            {
                StateKind::Relay
            }
            Some(Taken { judgement, .. }) if judgement.verdict == Verdict::Unfinished => {
                StateKind::Line
            }
            Some(Taken { judgement, screen, .. })
                if screen.alternate && judgement.busy == Some(Busy::Opaque) =>
            {
                StateKind::Tui
            }
            _ => StateKind::Running,
        };
        self.settled(reason, kind, Strength::Silence)
    }
}
