//! What is remembered of processes that waited for the terminal, so that a wait like one that proved
//! right is believed at once.
//!
//! What proves premature, by output or work before anything else was typed, is forgotten.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use subprocess::{Descriptor, Evidence, Modes, Multiplexer, ProcessFacts, ThreadFacts, Wait};
use terminal::Evidence as Strength;

use super::{Claim, Look, SHORT_WAIT_MS, ScreenFacts, Verdict, activity, far_end, waits_for};

/// Of more processes than this only those are remembered that are still in the foreground.
const MOST_PROCESSES: usize = 256;
/// Ways of one process to wait, and lines, that are remembered; the oldest, or all, go first.
const MOST_SIGNATURES: usize = 16;
const MOST_LINES: usize = 256;
/// Work after a verdict that does not belie it: this much, and this part of the time.
const IDLE_WORK: Duration = Duration::from_millis(2);
const IDLE_SHARE: u32 = 50;

/// How a thread waited, and what the screen looked like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    call: Option<Multiplexer>,
    fd: i32,
    /// A short bound in milliseconds; none for patience.
    pulse_ms: Option<u64>,
    main: bool,
    modes: Modes,
    alternate: bool,
    bracketed_paste: bool,
    /// How the text before the cursor ends, if there is any.
    line_end: Option<[char; 2]>,
}

impl Signature {
    pub(super) fn of(look: &Look<'_>, thread: &ThreadFacts, main: bool) -> Self {
        let (call, fd, timeout_ms) = match &thread.wait {
            Wait::TerminalRead { fd } => (None, *fd, look.modes.read_timeout_ms),
            Wait::Multiplexed { call, fd, timeout_ms, .. } => (Some(*call), *fd, *timeout_ms),
            _ => (None, -1, None),
        };
        let screen = look.screen;
        Self {
            call,
            fd,
            pulse_ms: timeout_ms.filter(|&it| it <= SHORT_WAIT_MS),
            main,
            modes: look.modes,
            alternate: screen.alternate,
            bracketed_paste: screen.bracketed_paste,
            line_end: screen.text_before_cursor.then_some(if screen.alternate {
                ['\0'; 2]
            } else {
                screen.line_end
            }),
        }
    }
}

/// What is remembered of a process. Another program under the same number is another one.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which a rule names")]
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    command: String,
    /// It was seen waiting for the terminal.
    pub(super) waited: bool,
    /// It uses bracketed paste.
    pub(super) edits: bool,
    /// It was ready behind some text that ended like this.
    pub(super) prompt: Option<[char; 2]>,
    /// It was seen behind such text again since the last line was typed.
    pub(super) is_back: bool,
    /// What had been printed before it was there.
    pub(super) printed_before: u64,
    /// How it waited when it was found ready without proof.
    pub(super) signatures: Vec<Signature>,
    /// It was seen waiting for the master of an inner terminal.
    on_master: bool,
    /// It was seen waiting for its far end.
    at_far_end: bool,
}

impl Known {
    /// It waits for the terminal.
    pub(super) fn waits(&mut self, screen: &ScreenFacts) {
        self.edits |= screen.bracketed_paste;
        self.is_back |=
            screen.text_before_cursor && screen.acted_upon && self.prompt == Some(screen.line_end);
    }
}

/// What is remembered of a session's processes.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    processes: HashMap<i32, Known>,
    /// What the last look would be remembered as.
    pending: Option<Pending>,
    /// The last verdict that was relied upon.
    relied: Option<Relied>,
    /// Lines behind which silence was taken for a prompt.
    lines: HashSet<u64>,
    /// Characters printed until the last look.
    printed: u64,
}

#[derive(Clone, Debug)]
struct Pending {
    pid: i32,
    cpu_ns: Option<u64>,
    prompt: Option<[char; 2]>,
    /// Only of a verdict that is no proof.
    signature: Option<Signature>,
}

#[derive(Clone, Debug)]
struct Relied {
    now: Pending,
    prompt_before: Option<[char; 2]>,
}

impl Memory {
    /// What is known of a process that waits for the terminal.
    pub(super) fn of(&mut self, process: &ProcessFacts) -> &mut Known {
        let printed_before = self.printed;
        let known = self.processes.entry(process.pid).or_default();
        if known.command != process.command {
            let command = process.command.clone();
            *known = Known { command, printed_before, ..Known::default() };
        }
        known
    }

    /// Takes in who is in the foreground, and behind it.
    pub(super) fn look(&mut self, evidence: &Evidence, printed: u64) {
        self.pending = None;
        let mut all: Vec<_> = evidence.processes.iter().chain(&evidence.outside).collect();
        activity::add_inner(&mut all, &evidence.inner);
        if self.processes.len() > MOST_PROCESSES {
            self.processes.retain(|pid, _| all.iter().any(|it| it.pid == *pid));
        }
        for process in all {
            let known = self.of(process);
            known.on_master |= waits_for(process, &[Descriptor::PtyMaster]);
            known.at_far_end |= far_end::has_far_end(process);
        }
        self.printed = printed;
    }

    /// Whether a wait for the terminal may be one for another machine.
    pub(super) fn is_remote(
        &self,
        look: &Look<'_>,
        process: &ProcessFacts,
        thread: &ThreadFacts,
    ) -> bool {
        far_end::relays(look, process, thread, |it| self.is_of(it, |known| known.at_far_end))
    }

    /// Whether somebody was seen waiting for the master of an inner terminal who may hand on what comes
    /// from there: any thread but that of `process` which waits `by_itself`.
    pub(super) fn relays(&self, look: &Look<'_>, process: &ProcessFacts, by_itself: bool) -> bool {
        look.everybody()
            .filter(|it| it.pid != process.pid || !by_itself)
            .any(|it| self.is_of(it, |known| known.on_master))
    }

    fn is_of(&self, process: &ProcessFacts, what: impl Fn(&Known) -> bool) -> bool {
        self.processes
            .get(&process.pid)
            .is_some_and(|known| known.command == process.command && what(known))
    }

    /// The look's verdict rests on this wait.
    pub(super) fn claim(&mut self, claim: &Claim<'_>, look: &Look<'_>) {
        let (process, screen) = (claim.process, look.screen);
        self.of(process).waited = true;
        let soft = match &claim.verdict {
            Verdict::Ready { evidence, .. } | Verdict::Settling { evidence, .. } => {
                *evidence != Strength::Exact
            }
            _ => false,
        };
        let main = super::is_main(process, claim.thread);
        let alone = (super::is_alone(process) || super::acts_alone(process, claim.thread))
            && match &claim.thread.wait {
                Wait::Multiplexed { others, .. } => others.is_empty(),
                _ => true,
            };
        let telling = soft && (alone || screen.text_before_cursor);
        self.pending = Some(Pending {
            pid: process.pid,
            cpu_ns: process.cpu_ns,
            prompt: screen.text_before_cursor.then_some(screen.line_end),
            signature: telling.then(|| Signature::of(look, claim.thread, main)),
        });
    }

    /// The last look's verdict is relied upon.
    pub(super) fn accept(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        let Some(known) = self.processes.get_mut(&pending.pid) else { return };
        let prompt_before = known.prompt;
        known.prompt = pending.prompt.or(known.prompt);
        if let Some(signature) = &pending.signature
            && !known.signatures.contains(signature)
        {
            if known.signatures.len() >= MOST_SIGNATURES {
                known.signatures.remove(0);
            }
            known.signatures.push(signature.clone());
        }
        self.relied = Some(Relied { now: pending, prompt_before });
    }

    pub(super) fn typed(&mut self) {
        self.relied = None;
        for known in self.processes.values_mut() {
            known.is_back = false;
        }
    }

    /// The last verdict that was relied upon was no proof.
    pub(super) fn relies_softly(&self) -> bool {
        self.relied.as_ref().is_some_and(|it| it.now.signature.is_some())
    }

    /// Forgets what gave that verdict.
    pub(super) fn drop_relied(&mut self) {
        let Some(Relied { now, prompt_before }) = self.relied.take() else { return };
        let Some(signature) = now.signature else { return };
        if let Some(known) = self.processes.get_mut(&now.pid) {
            known.signatures.retain(|it| *it != signature);
            known.prompt = prompt_before;
        }
    }

    /// Whoever has worked since that verdict, `age` ago, was not waiting.
    pub(super) fn recheck(&mut self, evidence: &Evidence, age: Duration) {
        let Some(relied) = &self.relied else { return };
        let inner = evidence.inner.iter().flat_map(|it| &it.processes);
        let process = evidence
            .processes
            .iter()
            .chain(&evidence.outside)
            .chain(inner)
            .find(|it| it.pid == relied.now.pid);
        let cpu_ns = process.and_then(|it| it.cpu_ns).zip(relied.now.cpu_ns);
        if let Some((now, then)) = cpu_ns
            && Duration::from_nanos(now.saturating_sub(then)) > IDLE_WORK.max(age / IDLE_SHARE)
        {
            self.drop_relied();
        }
    }

    pub(super) fn remember_line(&mut self, line: u64) {
        if self.lines.len() >= MOST_LINES {
            self.lines.clear();
        }
        self.lines.insert(line);
    }

    pub(super) fn knows_line(&self, line: u64) -> bool {
        self.lines.contains(&line)
    }
}
