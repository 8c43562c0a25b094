//! One look at the terminal and its foreground, and what it means.
//!
//! | rule | a thread waits for the terminal … | verdict |
//! |---|---|---|
//! | exact | in `read`, alone or as main thread; or in a wait without end on nothing else but the process's own wake-ups | ready at once |
//! | prompt | exact, and the shell's own group is in the foreground behind its own mark | ready at once, `prompt` |
//! | editor mode | otherwise, with bracketed paste switched on since the write and nothing of ours echoed after it | ready at once |
//! | no echo | otherwise, in canonical mode with echo off | ready at once, `password` |
//! | left its editor | otherwise, by a process that uses bracketed paste and has it off now | not ready |
//! | relay | together with an inner terminal or, for a remote shell, a socket | proves nothing |
//! | settled | otherwise | ready if nothing runs, prints or changes for a while |
//! | unseen read | nowhere that can be seen, but somebody is blocked in `read`, and nothing that can be seen runs | ready if it stays so |

use std::{collections::HashSet, time::Duration};

use subprocess::{Descriptor, Evidence, Modes, ProcessFacts, Scan, ThreadFacts, Wait};
use terminal::{Busy, Evidence as Strength, Foreground, StateKind};

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

/// Judges looks at one session. Remembers which processes are line editors.
#[derive(Clone, Debug)]
pub struct Judge {
    shell: i32,
    editors: HashSet<i32>,
    /// Processes that were seen waiting for the terminal before.
    waited: HashSet<i32>,
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
        Self { shell, editors: HashSet::new(), waited: HashSet::new() }
    }

    /// Judges one look.
    pub fn judge(&mut self, evidence: &Evidence, context: &Context) -> Judgement {
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
        let mut best = None;
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
            self.waited.insert(process.pid);
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
            Wait::TerminalRead { .. } => (&[][..], None),
            Wait::Multiplexed { others, timeout_ms, .. } => (others.as_slice(), *timeout_ms),
            _ => return None,
        };
        let screen = &look.context.screen;
        if screen.bracketed_paste {
            self.editors.insert(process.pid);
        }
        let kind = self.kind(look);
        let at_prompt = matches!(kind, StateKind::Prompt | StateKind::Continuation);
        let main = thread.tid == process.pid;
        let alone = process.thread_count == 1;
        let reads = matches!(thread.wait, Wait::TerminalRead { .. });
        let exact = if reads {
            alone || main
        } else {
            timeout_ms.is_none()
                && others.iter().all(is_own_wake_up)
                && (alone || at_prompt || (main && others.is_empty()))
        };
        if exact {
            return Some(Verdict::Ready { kind, evidence: Strength::Exact });
        }
        let waiter = Waiter { pid: process.pid, tid: thread.tid };
        let settling = |evidence, window| Verdict::Settling { kind, evidence, window, waiter };
        if others.contains(&Descriptor::PtyMaster) {
            return Some(Verdict::Not { relay: true });
        }
        let remote = others.contains(&Descriptor::Socket)
            && !look.modes.canonical
            && REMOTE.contains(&process.command.as_str());
        if remote {
            return Some(if screen.editor_opened {
                settling(Strength::Relay, Duration::from_millis(5))
            } else {
                Verdict::Not { relay: true }
            });
        }
        if look.modes.canonical && !look.modes.echo {
            return Some(Verdict::Ready { kind, evidence: Strength::EditorMode });
        }
        if screen.editor_opened && !look.modes.canonical {
            return Some(Verdict::Ready { kind, evidence: Strength::EditorMode });
        }
        let helper = !main && !alone;
        let left_its_editor = self.editors.contains(&process.pid)
            && !screen.bracketed_paste
            && !screen.alternate
            && (helper || !others.is_empty());
        if left_its_editor || !screen.acted_upon {
            return Some(Verdict::Not { relay: false });
        }
        let others_run = process
            .threads
            .iter()
            .any(|it| it.tid != thread.tid && matches!(it.wait, Wait::Running));
        if helper && others_run {
            return Some(Verdict::Not { relay: false });
        }
        let text = screen.text_before_cursor;
        let window = match timeout_ms {
            _ if helper => {
                if text {
                    100
                } else {
                    250
                }
            }
            Some(timeout) if timeout <= SHORT_WAIT_MS => (timeout + 20).max(120),
            _ if !self.waited.contains(&process.pid) && !text => 250,
            _ => {
                if text {
                    8
                } else {
                    30
                }
            }
        };
        Some(settling(Strength::Settled, Duration::from_millis(window)))
    }

    /// What a ready foreground waits for.
    fn kind(&self, look: &Look<'_>) -> StateKind {
        let shell_in_front = look.evidence.foreground == Some(self.shell);
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

/// What the foreground does while nobody in it waits for the terminal.
struct Activity {
    busy: Option<Busy>,
    visibly_busy: bool,
    foreground: Option<Foreground>,
    running: bool,
    opaque: Option<Waiter>,
}

/// What one process does, from the most to the least telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Doing {
    Unknown,
    /// Waits for what others write.
    Pipe,
    /// Waits for a child.
    Child,
    Stopped,
    Opaque,
    Network,
    Sleeping,
    Running,
}

fn activity(processes: &[ProcessFacts]) -> Activity {
    let doing: Vec<(Doing, &ProcessFacts)> =
        processes.iter().map(|process| (process_doing(process), process)).collect();
    // A process that waits for another one says what the other one says. Of several that do
    // different things, the one that is seen to work decides.
    let leading = doing.iter().max_by_key(|(doing, process)| (*doing, process.pid));
    let opaque = doing
        .iter()
        .find(|(doing, _)| *doing == Doing::Opaque)
        .map(|(_, process)| Waiter { pid: process.pid, tid: process.pid });
    let (busy, visibly_busy) = match leading.map(|(doing, _)| *doing) {
        None | Some(Doing::Unknown) => (None, false),
        Some(Doing::Pipe) => (Some(Busy::Pipe), true),
        Some(Doing::Child) => (Some(Busy::WaitingChild), true),
        Some(Doing::Stopped) => (Some(Busy::Stopped), false),
        Some(Doing::Opaque) => (Some(Busy::Opaque), false),
        Some(Doing::Network) => (Some(Busy::Network), false),
        Some(Doing::Sleeping) => (Some(Busy::Sleeping), true),
        Some(Doing::Running) => (Some(Busy::Running), true),
    };
    Activity {
        busy,
        visibly_busy,
        foreground: leading.map(|(_, process)| foreground(process)),
        running: doing.iter().any(|(doing, _)| *doing == Doing::Running),
        opaque,
    }
}

fn process_doing(process: &ProcessFacts) -> Doing {
    process.threads.iter().map(|thread| thread_doing(&thread.wait)).max().unwrap_or(Doing::Unknown)
}

fn thread_doing(wait: &Wait) -> Doing {
    match wait {
        Wait::Running | Wait::Uninterruptible | Wait::Writing(_) => Doing::Running,
        Wait::Sleeping => Doing::Sleeping,
        Wait::Child => Doing::Child,
        Wait::Stopped => Doing::Stopped,
        Wait::Opaque => Doing::Opaque,
        Wait::OtherInput { on, timeout_ms } => {
            let has = |it: &Descriptor| on.contains(it);
            if has(&Descriptor::Socket) {
                Doing::Network
            } else if has(&Descriptor::Pipe) {
                Doing::Pipe
            } else if timeout_ms.is_some() || has(&Descriptor::TimerFd) {
                Doing::Sleeping
            } else {
                Doing::Unknown
            }
        }
        Wait::TerminalRead { .. } | Wait::Multiplexed { .. } | Wait::Zombie | Wait::Other(_) => {
            Doing::Unknown
        }
    }
}
