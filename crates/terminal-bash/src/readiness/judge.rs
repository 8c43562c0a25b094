//! One look at the terminal and its foreground, and what it means.
//!
//! | rule | a thread waits for the terminal … | verdict |
//! |---|---|---|
//! | relay | while its process, or one of its group, waits for the master of an inner terminal | that of the inner terminals, if all of them are ready, and they stay so for a moment; proves nothing where they cannot be seen |
//! | remote relay | in a remote shell: one that waits for its far end, or did, or has several threads (see `far_end`) | ready with bracketed paste switched on since the write, or behind a prompt that is known, if it stays so; else proves nothing |
//! | exact | in `read` without end, alone or as main thread; or in a wait without end on nothing else but the process's own wake-ups, which no working child can cause; and nobody else has waited for the master of an inner terminal before | ready at once |
//! | prompt | exact, and the shell's own group is in the foreground behind its own mark | ready at once, `prompt` |
//! | editor mode | otherwise, with bracketed paste switched on since the write and nothing of ours echoed after it | ready at once |
//! | no echo | otherwise, without end and in canonical mode with echo off | ready at once, `password` |
//! | left its editor | otherwise, by a process that uses bracketed paste and has it off now | not ready |
//! | left its prompt | otherwise, at a line's start, by a process that was ready behind some text before and has not shown the like since the write | not ready |
//! | known | otherwise, like it did when it was found ready before | ready at once |
//! | settled | otherwise | ready if nothing runs, prints or changes for a while |
//! | far | behind a launcher, where nothing can be seen (see `far`) | ready behind a prompt that the far shell has marked since the write, or with bracketed paste switched on since, if it stays so |
//! | unseen | nowhere that can be seen, and nothing that can be seen runs (see `unseen`) | ready if it stays so |
//!
//! What is not exact is never ready while another thread of the process runs, nor, but for an
//! editor that is open, a password, and a prompt that is known, while a child of it in the foreground
//! works; nor, but for an editor that is open, a helper thread while another one waits for a child. Who waits outside the foreground group counts only while nobody of the group works.

mod activity;
mod far;
mod far_end;
mod memory;
mod unseen;

use std::time::Duration;

use subprocess::{
    Descriptor, Evidence, InnerTerminal, Modes, ProcessFacts, Scan, ThreadFacts, Wait,
};
use terminal::{Busy, Evidence as Strength, Foreground, StateKind};

pub use self::far::FarFacts;
use self::{
    activity::{Doing, activity, process_doing},
    memory::{Memory, Signature},
};
pub(crate) use self::{far::ROUND_TRIP, far_end::is_remote};
use super::marks::Prompt;

/// Finite waits up to this long are taken for the pulse of a program, not for patience.
const SHORT_WAIT_MS: u64 = 1_000;
/// How long all inner terminals of a relay have to stay ready: it may be about to hand on a byte.
const BEHIND_RELAY: Duration = Duration::from_millis(2);

/// What the screen tells at the moment of the look.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which a rule names")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScreenFacts {
    /// The alternate screen is shown.
    pub alternate: bool,
    /// Bracketed paste is switched on.
    pub bracketed_paste: bool,
    /// It was switched on since the write, and the current line does not end in typed text that
    /// still has to be acted upon.
    pub editor_opened: bool,
    /// There is text before the cursor.
    pub text_before_cursor: bool,
    /// How that line ends, blanks left out and every digit taken for the same.
    pub line_end: [char; 2],
    /// The program has shown that it acted upon the input: a new line, or a change of modes or
    /// of the screen since the write.
    pub acted_upon: bool,
    /// Characters printed since the session began.
    pub printed: u64,
    /// The line before the cursor ends like prompts do.
    pub prompt_shaped: bool,
    /// Tells one text of that line from another.
    pub line: u64,
}

/// What a look means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Whether the foreground is ready.
    pub verdict: Verdict,
    /// What the foreground does, where that is seen.
    pub busy: Option<Busy>,
    /// It is seen to be busy, so silence does not make it idle.
    pub visibly_busy: bool,
    /// The process that the verdict speaks of.
    pub foreground: Option<Foreground>,
    /// It waits to be told what to do with a line, in an editor of its own.
    pub edits_line: bool,
    /// CPU time of the foreground in nanoseconds, where all of it was looked at.
    pub cpu_ns: Option<u64>,
}

/// Whether the foreground is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Input is still on its way.
    Unread,
    /// Ready now.
    Ready {
        /// For what.
        kind: StateKind,
        /// On what ground.
        evidence: Strength,
    },
    /// Ready if the same is seen for this long without output or work.
    Settling {
        /// For what.
        kind: StateKind,
        /// On what ground, then.
        evidence: Strength,
        /// How long.
        window: Duration,
        /// What has to stay the same.
        waiter: Waiter,
    },
    /// A reader waits, but it may not have taken the last, unfinished line.
    Unfinished,
    /// Not seen to be ready.
    Not {
        /// The foreground relays something that cannot be seen.
        relay: bool,
    },
}

/// Identity of a wait: the same thread in the same call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
}

/// What besides the evidence a look is judged by.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context {
    /// The screen.
    pub screen: ScreenFacts,
    /// The prompt that the shell's marks tell of.
    pub prompt: Option<Prompt>,
    /// The input ends in the middle of a line.
    pub unfinished: bool,
    /// The shell is on the far side of the process that is seen here.
    pub far: Option<FarFacts>,
}

/// Judges looks at one session. Remembers how processes waited before.
#[derive(Clone, Debug)]
pub struct Judge {
    shell: i32,
    memory: Memory,
}

impl Judge {
    /// A judge for the session whose leader is `shell`.
    pub fn new(shell: i32) -> Self {
        Self { shell, memory: Memory::default() }
    }

    /// The last verdict was relied upon.
    pub fn accepted(&mut self) {
        self.memory.accept();
    }

    /// A line was typed: no prompt that was shown before answers it.
    pub fn typed(&mut self) {
        self.memory.typed();
    }

    /// Output came after a verdict that was relied upon, and before the next line was typed.
    pub fn disturbed(&mut self) {
        self.memory.drop_relied();
    }

    /// Whether a look before the next line is typed could show that the last verdict was premature.
    pub fn may_be_refuted(&self) -> bool {
        self.memory.relies_softly()
    }

    /// A look before the next line is typed, `age` after the last verdict.
    pub fn recheck(&mut self, evidence: &Evidence, age: Duration) {
        self.memory.recheck(evidence, age);
    }

    /// Silence behind this line was taken for a prompt that cannot be seen.
    pub fn idled(&mut self, screen: &ScreenFacts) {
        self.memory.remember_line(screen.line);
    }

    /// Whether it was, before.
    pub fn has_idled(&self, screen: &ScreenFacts) -> bool {
        self.memory.knows_line(screen.line)
    }

    /// Judges one look.
    pub fn judge(&mut self, evidence: &Evidence, context: &Context) -> Judgement {
        self.memory.look(evidence, context.screen.printed);
        let activity = activity(evidence);
        let mut judgement = Judgement {
            verdict: Verdict::Not { relay: false },
            busy: activity.busy,
            visibly_busy: activity.visibly_busy,
            foreground: activity.foreground.clone(),
            edits_line: false,
            cpu_ns: cpu(evidence),
        };
        if evidence.unwritten > 0 || evidence.unread_input == Some(true) {
            judgement.verdict = Verdict::Unread;
            judgement.busy = judgement.busy.or(Some(Busy::UnreadInput));
            return judgement;
        }
        if let Some(far) = context.far {
            return Judgement {
                verdict: far::verdict(far, context, self.shell),
                busy: None,
                visibly_busy: false,
                cpu_ns: None,
                ..judgement
            };
        }
        // Without the fence nobody knows whether the input was taken.
        let (Some(false), Some(modes)) = (evidence.unread_input, evidence.modes) else {
            return judgement;
        };
        let shell_in_front = evidence.foreground == Some(self.shell);
        let outside: &[_] =
            if works(&evidence.processes) { &[] } else { evidence.outside.as_slice() };
        let look = Look {
            processes: &evidence.processes,
            outside,
            inner: &evidence.inner,
            blocked_reader: evidence.blocked_reader,
            scan: evidence.scan,
            screen: &context.screen,
            stale: evidence.unread_output,
            prompt: context.prompt.filter(|_| shell_in_front && !modes.canonical),
            modes,
        };
        if let Some(claim) = self.best(&look) {
            self.memory.claim(&claim, &look);
            judgement.foreground = Some(foreground(claim.process));
            // zsh's editor reads; it tells by bracketed paste. A timed wait is that of a `read -n 1 -t 5`.
            let selects = matches!(claim.thread.wait, Wait::Multiplexed { timeout_ms: None, .. });
            judgement.edits_line = !modes.canonical && (selects || context.screen.bracketed_paste);
            judgement.verdict = claim.verdict;
        } else if let Some(verdict) = unseen::verdict(&look, self.shell) {
            judgement.verdict = verdict;
        }
        // Nobody is busy who waits for the terminal, whatever the others do.
        if !matches!(judgement.verdict, Verdict::Not { .. }) {
            judgement.visibly_busy = false;
            judgement.busy = None;
        }
        let uncertain_line =
            matches!(judgement.verdict, Verdict::Ready { .. } | Verdict::Settling { .. })
                && context.unfinished
                && modes.canonical;
        if uncertain_line {
            judgement.verdict = Verdict::Unfinished;
        }
        judgement
    }

    /// What the most telling wait for the terminal means; none when nobody waits.
    fn best<'a>(&mut self, look: &Look<'a>) -> Option<Claim<'a>> {
        let mut best: Option<Claim<'a>> = None;
        for process in look.processes.iter().chain(look.outside) {
            for thread in &process.threads {
                let Some(claim) = self.claim(look, process, thread) else { continue };
                if best.as_ref().is_none_or(|kept| rank(&claim.verdict) > rank(&kept.verdict)) {
                    best = Some(claim);
                }
            }
        }
        best
    }

    /// What one thread's wait means; none when it does not wait for the terminal.
    fn claim<'a>(
        &mut self,
        look: &Look<'a>,
        process: &'a ProcessFacts,
        thread: &'a ThreadFacts,
    ) -> Option<Claim<'a>> {
        let at_prompt = look.prompt.is_some() && process.pid == self.shell;
        let waits = matches!(thread.wait, Wait::TerminalRead { .. } | Wait::Multiplexed { .. });
        // Its own mark says that the shell is not a relay.
        if waits && !at_prompt && look.everybody().any(|it| waits_for(it, &[Descriptor::PtyMaster]))
        {
            let unseen = Claim { verdict: Verdict::Not { relay: true }, process, thread };
            return Some(self.behind(look).unwrap_or(unseen));
        }
        let verdict = self.judge_waiter(look, process, thread, at_prompt)?;
        Some(Claim { verdict, process, thread })
    }

    /// What the terminals behind a relay mean: the one that keeps all of them from being ready, or
    /// the one that has to stay so for longest. None where one of them cannot be seen.
    fn behind<'a>(&mut self, look: &Look<'a>) -> Option<Claim<'a>> {
        let mut whole: Option<Claim<'a>> = None;
        for inner in look.inner {
            let modes = inner.modes?;
            let first = inner.processes.first()?;
            let thread = first.threads.first()?;
            let not = Claim { verdict: Verdict::Not { relay: false }, process: first, thread };
            if inner.unread_input? || inner.unread_output == Some(true) {
                return Some(not);
            }
            let look = Look {
                processes: &inner.processes,
                outside: &[],
                inner: &inner.inner,
                blocked_reader: inner.blocked_reader,
                prompt: None,
                modes,
                ..*look
            };
            let mut claim = match self.best(&look) {
                Some(claim) => claim,
                None if unseen::is_hidden(look.processes) => {
                    Claim { verdict: unseen::verdict(&look, self.shell)?, ..not }
                }
                None => return Some(not),
            };
            let (pid, tid) = (claim.process.pid, claim.thread.tid);
            claim.verdict = match claim.verdict {
                Verdict::Ready { kind, .. } => Verdict::Settling {
                    kind,
                    evidence: Strength::Relay,
                    window: BEHIND_RELAY,
                    waiter: Waiter { pid, tid },
                },
                Verdict::Settling { kind, window, waiter, .. } => Verdict::Settling {
                    kind,
                    evidence: Strength::Relay,
                    window: window.max(BEHIND_RELAY),
                    waiter,
                },
                Verdict::Unread | Verdict::Unfinished | Verdict::Not { .. } => return Some(claim),
            };
            if whole.as_ref().is_none_or(|kept| kept.verdict.window() < claim.verdict.window()) {
                whole = Some(claim);
            }
        }
        whole
    }

    fn judge_waiter(
        &mut self,
        look: &Look<'_>,
        process: &ProcessFacts,
        thread: &ThreadFacts,
        at_prompt: bool,
    ) -> Option<Verdict> {
        let (others, timeout_ms) = match &thread.wait {
            Wait::TerminalRead { .. } => (&[][..], look.modes.read_timeout_ms),
            Wait::Multiplexed { others, timeout_ms, .. } => (others.as_slice(), *timeout_ms),
            _ => return None,
        };
        let screen = look.screen;
        let main = is_main(process, thread);
        let alone = is_alone(process);
        let signature = Signature::of(look, thread, main);
        let by_itself = alone || acts_alone(process, thread);
        // At a line's start it says little, but of who does nothing else.
        let telling = (by_itself && others.is_empty()) || screen.text_before_cursor;
        let remote = !at_prompt && self.memory.is_remote(look, process, thread);
        let relays = !at_prompt && self.memory.relays(look, process, by_itself);
        let known = self.memory.of(process);
        if !look.stale {
            known.waits(screen);
        }
        let is_known = telling && known.signatures.contains(&signature);
        let (edits, prompt, is_back, seen) =
            (known.edits, known.prompt, known.is_back, known.waited);
        let fresh = screen.printed == known.printed_before;
        let kind = match look.prompt {
            Some(Prompt::Primary) if at_prompt => StateKind::Prompt,
            Some(Prompt::Continuation) if at_prompt => StateKind::Continuation,
            _ => look.kind(),
        };
        let waiter = Waiter { pid: process.pid, tid: thread.tid };
        let settling = |evidence, window| {
            let window = Duration::from_millis(window);
            Some(Verdict::Settling { kind, evidence, window, waiter })
        };
        let ready = |evidence| Some(Verdict::Ready { kind, evidence });
        let not = |relay| Some(Verdict::Not { relay });
        if remote {
            return match (screen.editor_opened, is_known && screen.text_before_cursor) {
                (true, _) => settling(Strength::Relay, 5),
                (_, true) if screen.acted_upon => settling(Strength::Relay, 30),
                _ => not(true),
            };
        }
        let endless = timeout_ms.is_none();
        let children_work = look.has_working_child(process.pid);
        let exact = match &thread.wait {
            Wait::TerminalRead { .. } => main,
            // What a ring shows may be stale.
            Wait::Multiplexed { call: subprocess::Multiplexer::IoUring, .. } => false,
            _ => {
                // Whatever else a shell listens to at its prompt, it waits for a line.
                (at_prompt || others.iter().all(is_own_wake_up))
                    && (alone || at_prompt || (main && others.is_empty()))
                    && (others.is_empty() || at_prompt || !children_work)
            }
        };
        if endless && exact && !relays {
            return ready(Strength::Exact);
        }
        let beside = |it: &&ThreadFacts| it.tid != thread.tid;
        let others_run = process
            .threads
            .iter()
            .filter(beside)
            .any(|it| matches!(it.wait, Wait::Running | Wait::Uninterruptible));
        if others_run {
            return not(false);
        }
        let silent = look.modes.canonical && !look.modes.echo;
        let opened = !look.modes.canonical && screen.editor_opened;
        if opened || (silent && endless && main) {
            return ready(Strength::EditorMode);
        }
        let elsewhere = !main || !others.is_empty();
        let left = !screen.alternate
            && elsewhere
            && ((edits && !screen.bracketed_paste)
                || (prompt.is_some() && !is_back && !screen.text_before_cursor));
        let waits_for_child =
            !main && process.threads.iter().filter(beside).any(|it| it.wait == Wait::Child);
        // A virtual machine has a thread that waits for its children for as long as they live.
        let editing = edits && screen.bracketed_paste;
        let busy_with_child = waits_for_child || (children_work && !is_back);
        if left || (busy_with_child && !editing) || !screen.acted_upon {
            return not(false);
        }
        // On a screen that has no lines nothing shows that a key was acted upon: another thread may have
        // yet to do it, and a short wait may be one for the rest of the key's sequence.
        let short = timeout_ms.is_some_and(|it| it <= SHORT_WAIT_MS);
        if is_known && (!screen.alternate || (by_itself && !short)) {
            return ready(Strength::Known);
        }
        let window = match (timeout_ms, screen.text_before_cursor && !fresh) {
            (_, true) if !main => 100,
            (_, false) if !main => 250,
            (Some(timeout), _) if short => (timeout + 20).max(120),
            (_, true) => 8,
            (_, false) if !seen || fresh => 250,
            (_, false) => 30,
        };
        settling(Strength::Settled, window)
    }
}

impl Verdict {
    /// How long it has to settle.
    fn window(&self) -> Duration {
        match self {
            Self::Settling { window, .. } => *window,
            _ => Duration::ZERO,
        }
    }
}

/// A wait for the terminal, and what it means.
#[derive(Clone)]
struct Claim<'a> {
    verdict: Verdict,
    process: &'a ProcessFacts,
    thread: &'a ThreadFacts,
}

/// One terminal, the session's own or one behind it, whose input fence holds.
#[derive(Clone, Copy)]
struct Look<'a> {
    processes: &'a [ProcessFacts],
    outside: &'a [ProcessFacts],
    inner: &'a [InnerTerminal],
    blocked_reader: Option<bool>,
    scan: Scan,
    screen: &'a ScreenFacts,
    /// There is output that is not on the screen yet: what is there may be from before the input.
    stale: bool,
    /// The shell itself is in front of it and behind this prompt, as far as its marks and the modes
    /// tell.
    prompt: Option<Prompt>,
    modes: Modes,
}

impl Look<'_> {
    fn everybody(&self) -> impl Iterator<Item = &ProcessFacts> {
        self.processes.iter().chain(self.outside)
    }

    /// Whether a descendant of `pid` in the foreground is seen to work or to sleep.
    fn has_working_child(&self, pid: i32) -> bool {
        self.processes
            .iter()
            .filter(|process| process_doing(process) >= Doing::Sleeping)
            .any(|process| self.descends(process, pid))
    }

    fn descends(&self, process: &ProcessFacts, ancestor: i32) -> bool {
        let mut parent = process.parent;
        // The tree may have changed during the look, so the way up is not trusted to end.
        for _ in 0..self.processes.len() {
            if parent == ancestor {
                return true;
            }
            let Some(next) = self.processes.iter().find(|it| it.pid == parent) else {
                return false;
            };
            parent = next.parent;
        }
        false
    }

    fn kind(&self) -> StateKind {
        if self.modes.canonical && !self.modes.echo {
            StateKind::Password
        } else if self.screen.alternate {
            StateKind::Tui
        } else if self.modes.canonical {
            StateKind::Line
        } else if self.screen.bracketed_paste {
            StateKind::LineEditor
        } else {
            StateKind::Raw
        }
    }
}

/// Whether a thread of it that was looked at waits for one of these, alone or among others.
fn waits_for(process: &ProcessFacts, what: &[Descriptor]) -> bool {
    process.threads.iter().any(|thread| match &thread.wait {
        Wait::Multiplexed { others: on, .. } | Wait::OtherInput { on, .. } => {
            what.iter().any(|it| on.contains(it))
        }
        _ => false,
    })
}

/// Whether one of them is seen to work or to sleep.
fn works(processes: &[ProcessFacts]) -> bool {
    processes.iter().any(|process| process_doing(process) >= Doing::Sleeping)
}

/// Whether it is the process's only living thread.
fn is_alone(process: &ProcessFacts) -> bool {
    let living = process.threads.iter().filter(|it| it.wait != Wait::Zombie).count();
    let all_seen = u32::try_from(process.threads.len()) == Ok(process.thread_count);
    process.thread_count == 1 || (all_seen && living == 1)
}

/// Whether no other thread of its process does anything before a signal comes: a library keeps such a
/// one for its timers, and a handler of the signal would do the same in a process of one thread.
fn acts_alone(process: &ProcessFacts, thread: &ThreadFacts) -> bool {
    let idle = |it: &ThreadFacts| matches!(it.wait, Wait::Signal | Wait::Zombie);
    u32::try_from(process.threads.len()) == Ok(process.thread_count)
        && process.threads.iter().all(|it| it.tid == thread.tid || idle(it))
}

/// Whether it is the main thread, or has outlived it alone.
fn is_main(process: &ProcessFacts, thread: &ThreadFacts) -> bool {
    thread.tid == process.pid || is_alone(process)
}

/// A descriptor through which a process wakes only itself.
fn is_own_wake_up(it: &Descriptor) -> bool {
    matches!(
        it,
        Descriptor::OwnPipe | Descriptor::EventFd | Descriptor::SignalFd | Descriptor::Inotify
    )
}

/// A relay speaks for what is behind it, so it outweighs a wait that may settle; a proof outweighs
/// both.
fn rank(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Ready { evidence: Strength::Exact, .. } => 4,
        Verdict::Ready { .. } => 3,
        Verdict::Not { relay: true } => 2,
        Verdict::Settling { .. } => 1,
        Verdict::Not { .. } | Verdict::Unread | Verdict::Unfinished => 0,
    }
}

fn cpu(evidence: &Evidence) -> Option<u64> {
    evidence.processes.iter().map(|process| process.cpu_ns).sum()
}

fn foreground(process: &ProcessFacts) -> Foreground {
    Foreground { pid: process.pid, command: process.command.clone() }
}
