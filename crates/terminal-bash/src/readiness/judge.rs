//! One look at the terminal and its foreground, and what it means.
//!
//! | rule | a thread waits for the terminal … | verdict |
//! |---|---|---|
//! | relay | while its process, or one of its group, waits for an inner terminal or, as a remote shell, for a socket | proves nothing |
//! | exact | in `read` without end, alone or as main thread; or in a wait without end on nothing else but the process's own wake-ups, which no working child can cause | ready at once |
//! | prompt | exact, and the shell's own group is in the foreground behind its own mark | ready at once, `prompt` |
//! | editor mode | otherwise, with bracketed paste switched on since the write and nothing of ours echoed after it | ready at once |
//! | no echo | otherwise, without end and in canonical mode with echo off | ready at once, `password` |
//! | left its editor | otherwise, by a process that uses bracketed paste and has it off now | not ready |
//! | left its prompt | otherwise, at a line's start, by a process that was ready behind some text before and has not shown the like since the write | not ready |
//! | settled | otherwise | ready if nothing runs, prints or changes for a while |
//! | unseen read | nowhere that can be seen, but somebody is blocked in `read`, and nothing that can be seen runs | ready if it stays so |
//!
//! What is not exact is never ready while another thread of the process runs, nor, but for an
//! editor that opened, a password, and a prompt that is known, while a child of it in the foreground
//! works.

mod activity;

use std::{collections::HashMap, time::Duration};

use subprocess::{Descriptor, Evidence, Modes, ProcessFacts, Scan, ThreadFacts, Wait};
use terminal::{Busy, Evidence as Strength, Foreground, StateKind};

use self::activity::{Activity, Doing, activity, process_doing};
use super::marks::Prompt;

/// Finite waits up to this long are taken for the pulse of a program, not for patience.
const SHORT_WAIT_MS: u64 = 1_000;

/// Programs whose other end is on another machine or in another container.
const REMOTE: [&str; 11] = [
    "ssh",
    "mosh-client",
    "telnet",
    "docker",
    "podman",
    "kubectl",
    "nc",
    "ncat",
    "socat",
    "picocom",
    "srun",
];

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

/// Judges looks at one session. Remembers how processes waited before.
#[derive(Clone, Debug)]
pub struct Judge {
    shell: i32,
    known: HashMap<i32, Known>,
    /// The process that the last verdict speaks of, if it waits behind some text, and how that ends.
    behind_text: Option<(i32, [char; 2])>,
}

/// What is remembered of a process. Another program under the same number is another one.
#[derive(Clone, Debug, Default)]
struct Known {
    command: String,
    /// It was seen waiting for the terminal.
    waited: bool,
    /// It uses bracketed paste.
    edits: bool,
    /// It was ready behind some text that ended like this.
    prompt: Option<[char; 2]>,
    /// It was seen behind such text again since the last line was typed.
    is_back: bool,
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
}

impl Judge {
    /// A judge for the session whose leader is `shell`.
    pub fn new(shell: i32) -> Self {
        Self { shell, known: HashMap::new(), behind_text: None }
    }

    /// The last verdict was relied upon.
    pub fn accepted(&mut self) {
        let Some((pid, line_end)) = self.behind_text.take() else { return };
        if let Some(known) = self.known.get_mut(&pid) {
            known.prompt = Some(line_end);
        }
    }

    /// A line was typed: no prompt that was shown before answers it.
    pub fn typed(&mut self) {
        for known in self.known.values_mut() {
            known.is_back = false;
        }
    }

    /// What is known of a process that waits for the terminal.
    fn known(&mut self, process: &ProcessFacts) -> &mut Known {
        let known = self.known.entry(process.pid).or_default();
        if known.command != process.command {
            *known = Known { command: process.command.clone(), ..Known::default() };
        }
        known
    }

    /// Judges one look.
    pub fn judge(&mut self, evidence: &Evidence, context: &Context) -> Judgement {
        self.behind_text = None;
        let activity = activity(&evidence.processes);
        let mut judgement = Judgement {
            verdict: Verdict::Not { relay: false },
            busy: activity.busy,
            visibly_busy: activity.visibly_busy,
            foreground: activity.foreground.clone(),
            cpu_ns: cpu(evidence),
        };
        if evidence.unwritten > 0 || evidence.unread_input == Some(true) {
            judgement.verdict = Verdict::Unread;
            judgement.busy = judgement.busy.or(Some(Busy::UnreadInput));
            return judgement;
        }
        // Without the fence nobody knows whether the input was taken.
        let (Some(false), Some(modes)) = (evidence.unread_input, evidence.modes) else {
            return judgement;
        };
        let look = Look { evidence, context, modes };
        let mut best: Option<(Verdict, &ProcessFacts)> = None;
        for process in &evidence.processes {
            for thread in &process.threads {
                let Some(verdict) = self.judge_waiter(&look, process, thread) else { continue };
                let better = match &best {
                    None => true,
                    Some((kept, _)) => rank(&verdict) > rank(kept),
                };
                if better {
                    best = Some((verdict, process));
                }
            }
        }
        if let Some((verdict, process)) = best {
            self.known(process).waited = true;
            let screen = &context.screen;
            self.behind_text = screen.text_before_cursor.then_some((process.pid, screen.line_end));
            judgement.foreground = Some(foreground(process));
            // Nobody is busy who waits for the terminal, whatever the others do.
            if !matches!(verdict, Verdict::Not { .. }) {
                judgement.visibly_busy = false;
                judgement.busy = None;
            }
            judgement.verdict = verdict;
        } else if let Some(verdict) = unseen_reader(&look, &activity) {
            judgement.verdict = verdict;
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

    /// The verdict that one thread's wait gives; none when it does not wait for the terminal.
    fn judge_waiter(
        &mut self,
        look: &Look<'_>,
        process: &ProcessFacts,
        thread: &ThreadFacts,
    ) -> Option<Verdict> {
        let (others, timeout_ms) = match &thread.wait {
            Wait::TerminalRead { .. } => (&[][..], look.modes.read_timeout_ms),
            Wait::Multiplexed { others, timeout_ms, .. } => (others.as_slice(), *timeout_ms),
            _ => return None,
        };
        let screen = &look.context.screen;
        let known = self.known(process);
        known.edits |= screen.bracketed_paste;
        known.is_back |=
            screen.text_before_cursor && screen.acted_upon && known.prompt == Some(screen.line_end);
        let Known { waited, edits, prompt, is_back, .. } = *known;
        let kind = self.kind(look, process);
        let at_prompt = matches!(kind, StateKind::Prompt | StateKind::Continuation);
        let waiter = Waiter { pid: process.pid, tid: thread.tid };
        let settling = |evidence, window| {
            Some(Verdict::Settling {
                kind,
                evidence,
                window: Duration::from_millis(window),
                waiter,
            })
        };
        let ready = |evidence| Some(Verdict::Ready { kind, evidence });
        let not = |relay| Some(Verdict::Not { relay });
        // Its own mark says that the shell is not a relay.
        if !at_prompt {
            if look.waits_for(None, &Descriptor::PtyMaster) {
                return not(true);
            }
            let remote = REMOTE.contains(&process.command.as_str())
                && look.waits_for(Some(process.pid), &Descriptor::Socket);
            if remote {
                return if screen.editor_opened { settling(Strength::Relay, 5) } else { not(true) };
            }
        }
        let main = is_main(process, thread);
        let endless = timeout_ms.is_none();
        let by_read = matches!(thread.wait, Wait::TerminalRead { .. });
        let children_work = look.has_working_child(process.pid);
        let exact = if by_read {
            main
        } else {
            others.iter().all(is_own_wake_up)
                && (is_alone(process) || at_prompt || (main && others.is_empty()))
                && (others.is_empty() || at_prompt || !children_work)
        };
        if endless && exact {
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
        if left || (children_work && !is_back) || waits_for_child || !screen.acted_upon {
            return not(false);
        }
        let window = match (timeout_ms, screen.text_before_cursor) {
            (_, true) if !main => 100,
            (_, false) if !main => 250,
            (Some(timeout), _) if timeout <= SHORT_WAIT_MS => (timeout + 20).max(120),
            (_, true) => 8,
            (_, false) if !waited => 250,
            (_, false) => 30,
        };
        settling(Strength::Settled, window)
    }

    /// What a ready process waits for.
    fn kind(&self, look: &Look<'_>, process: &ProcessFacts) -> StateKind {
        let shell_in_front =
            look.evidence.foreground == Some(self.shell) && process.pid == self.shell;
        match look.context.prompt {
            Some(prompt) if shell_in_front && !look.modes.canonical => match prompt {
                Prompt::Primary => StateKind::Prompt,
                Prompt::Continuation => StateKind::Continuation,
            },
            _ => look.kind(),
        }
    }
}

/// Evidence and context whose fences hold.
struct Look<'a> {
    evidence: &'a Evidence,
    context: &'a Context,
    modes: Modes,
}

impl Look<'_> {
    /// Whether a thread that was looked at, of one process or of any, waits for such a descriptor,
    /// alone or among others.
    fn waits_for(&self, pid: Option<i32>, what: &Descriptor) -> bool {
        let processes = self.evidence.processes.iter();
        processes
            .filter(|process| pid.is_none_or(|pid| process.pid == pid))
            .flat_map(|process| &process.threads)
            .any(|thread| match &thread.wait {
                Wait::Multiplexed { others: on, .. } | Wait::OtherInput { on, .. } => {
                    on.contains(what)
                }
                _ => false,
            })
    }

    /// Whether a descendant of `pid` in the foreground is seen to work or to sleep.
    fn has_working_child(&self, pid: i32) -> bool {
        let processes = &self.evidence.processes;
        processes
            .iter()
            .filter(|process| process_doing(process) >= Doing::Sleeping)
            .any(|process| self.descends(process, pid))
    }

    fn descends(&self, process: &ProcessFacts, ancestor: i32) -> bool {
        let processes = &self.evidence.processes;
        let mut parent = process.parent;
        // The tree may have changed during the look, so the way up is not trusted to end.
        for _ in 0..processes.len() {
            if parent == ancestor {
                return true;
            }
            let Some(next) = processes.iter().find(|it| it.pid == parent) else { return false };
            parent = next.parent;
        }
        false
    }

    fn kind(&self) -> StateKind {
        let screen = &self.context.screen;
        if self.modes.canonical && !self.modes.echo {
            StateKind::Password
        } else if screen.alternate {
            StateKind::Tui
        } else if self.modes.canonical {
            StateKind::Line
        } else if screen.bracketed_paste {
            StateKind::LineEditor
        } else {
            StateKind::Raw
        }
    }
}

/// Whether it is the process's only living thread.
fn is_alone(process: &ProcessFacts) -> bool {
    let living = process.threads.iter().filter(|it| it.wait != Wait::Zombie).count();
    let all_seen = u32::try_from(process.threads.len()) == Ok(process.thread_count);
    process.thread_count == 1 || (all_seen && living == 1)
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

/// Somebody is blocked in a read of the terminal, and no thread that can be looked at is it.
fn unseen_reader(look: &Look<'_>, activity: &Activity) -> Option<Verdict> {
    if look.evidence.blocked_reader != Some(true) || activity.running {
        return None;
    }
    let opaque = activity
        .opaque
        .or_else(|| (look.evidence.scan == Scan::Blind).then_some(Waiter { pid: 0, tid: 0 }))?;
    Some(Verdict::Settling {
        kind: look.kind(),
        evidence: Strength::OpaqueRead,
        window: Duration::from_millis(1),
        waiter: opaque,
    })
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
