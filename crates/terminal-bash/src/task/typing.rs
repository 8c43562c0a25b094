//! Typing: for whom the next stroke is, and when it is due.

use std::time::Duration;

use subprocess::{
    Depth, Descriptor, Evidence, InnerTerminal, Modes, Multiplexer, ProcessFacts, Scan,
    ThreadFacts, Wait,
};
use terminal::TerminalError;

use super::Task;
use crate::{
    input::{self, LineEnds},
    readiness::{InputFacts, Moment},
    typing::{self, Reader, Stroke},
};

/// The key that makes the tab behind it text, in the line editors of a library.
const TAB: &str = "\u{16}\t";
/// Programs that tell typing from a paste by the time between two keys call less than this one.
const KEY_GAP: Duration = Duration::from_millis(60);
/// A program that took a line and never comes to rest gets its Enter after so long.
const LONGEST_GAP: Duration = Duration::from_millis(250);
/// A library whose line editor takes keys one by one, however they come.
const LINE_EDITOR: &str = "libreadline.";
/// Shells whose line editors take pastes, and an Enter right behind one as a key.
const SHELLS: [&str; 3] = ["bash", "fish", "zsh"];

/// An Enter that is typed apart from its line, or whatever is typed apart from an Escape.
#[derive(Clone, Copy, Debug)]
pub(super) struct ApartEnter {
    /// How long it is kept back from when the program has taken what is before it.
    gap: Duration,
    /// When the program was seen to have taken the line.
    taken: Option<Moment>,
    /// When it is typed at the latest.
    pub(super) due: Option<Moment>,
    /// The program waits again: nothing else is waited for.
    pub(super) only_due: bool,
}

impl ApartEnter {
    /// One that comes so long after what is before it.
    pub(super) fn after(gap: Duration) -> Self {
        Self { gap, taken: None, due: None, only_due: false }
    }
}

/// A terminal in line mode behind a relay.
#[derive(Clone, Copy, Debug)]
pub(super) struct InnerLine {
    relay: i32,
    ends: LineEnds,
    /// Bytes of an unfinished line that it keeps from its reader.
    open: usize,
}

/// How a thread waits for the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// In a read.
    Reads,
    /// Until it is readable, without end; it wakes up for nothing else than itself.
    Selects,
    /// Among other things, or for a while.
    Loops,
}

/// A process that was seen to wait for the terminal.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pid: i32,
    command: String,
    /// How, in one of its threads.
    how: How,
    /// That is a poll of the terminal alone, for a while.
    polls: bool,
    /// That was proven, and nothing was printed or signalled since.
    pub(super) still: bool,
}

impl Task {
    /// Types the next stroke of the live exchange, which somebody waits for. True if there was one.
    pub(super) fn type_line(&mut self) -> bool {
        let now = self.now();
        let modes = self.process.modes();
        let canonical = modes.is_some_and(|it| it.canonical);
        let at_prompt = !canonical && self.marks.prompt().is_some();
        let (before, ends) = (self.before(modes), LineEnds::of(modes));
        let by_lines = self.line(modes);
        let Some(first) = self.live.as_ref().and_then(|live| live.lines.front()) else {
            return self.press_keys();
        };
        if let Some((open, ends)) = by_lines
            && let Some((bytes, limit)) = input::too_long(open, first, ends)
        {
            self.refuse_line(bytes, limit);
            return true;
        }
        let reader = self.reader(modes);
        let Some(live) = &mut self.live else { return false };
        let Some(stroke) = typing::next(&mut live.lines, reader) else { return false };
        live.typed += stroke.text.len();
        live.note_echo(modes);
        let unfinished = input::is_unfinished(&stroke.bytes, ends);
        live.exchange.typed(now, InputFacts { unfinished });
        let must_act = !unfinished && !before.alternate && modes.is_some_and(|it| !it.canonical);
        live.before = super::send::Before { must_act, ..before };
        live.apart_enter = stroke.enter_follows.then(|| ApartEnter::after(KEY_GAP));
        let sent = live.settler.is_some();
        self.note_line(modes, &stroke.text);
        self.longest_unread = self.longest_unread.max(stroke.bytes.len());
        let interrupt = stroke.text.contains('\u{3}');
        self.marks.stroke(interrupt);
        if at_prompt {
            self.marks.typed(!unfinished, interrupt);
        }
        if sent && modes.is_some_and(|it| it.echo || !it.canonical) {
            self.watches.typed(&stroke.text);
        }
        self.answers.typed();
        self.record_input(&stroke.bytes);
        self.process.write(stroke.bytes.as_bytes());
        if let Some(live) = &mut self.live {
            live.stroke = stroke;
        }
        self.note_shown();
        true
    }

    /// Bytes of the line that the next stroke goes on, and what ends it, where a terminal takes it by
    /// lines: the session's own, or one behind a relay.
    pub(super) fn line(&self, modes: Option<Modes>) -> Option<(usize, LineEnds)> {
        if modes.is_some_and(|it| it.canonical) {
            return Some((self.open_line, LineEnds::of(modes)));
        }
        // A relay asks its terminal for pastes only where the program behind it has.
        let behind = self.marks.prompt().is_none() && !self.screen.bracketed_paste();
        self.inner_line.filter(|_| behind).map(|it| (it.open, it.ends))
    }

    /// Takes note of what a text leaves of a line in whichever terminal takes it.
    pub(super) fn note_line(&mut self, modes: Option<Modes>, text: &str) {
        let open = self.line(modes).map_or(0, |(open, ends)| input::open_line(open, text, ends));
        if modes.is_some_and(|it| it.canonical) {
            self.open_line = open;
            return;
        }
        self.open_line = 0;
        if let Some(inner) = &mut self.inner_line {
            inner.open = open;
        }
    }

    /// Looks who takes what is typed next: behind a relay, and where nobody is seen to wait, at
    /// everybody.
    pub(super) async fn look_for_reader(&mut self) {
        let mut evidence = self.process.probe(Depth::Fast).await;
        if !evidence.processes.iter().any(|it| reads_itself(it) == Some(true)) {
            evidence = self.process.probe(Depth::Full).await;
        }
        self.note_input(&evidence);
    }

    /// Refuses a line that whoever waits for it would get cut, and what follows it.
    fn refuse_line(&mut self, bytes: u64, limit: u64) {
        let Some(mut live) = self.live.take() else { return };
        let Some(settler) = live.settler.take() else { return };
        settler.refuse(match live.typed {
            0 => TerminalError::LineTooLong { bytes, limit },
            typed => TerminalError::LaterLineTooLong { bytes, limit, typed: typed as u64 },
        });
    }

    /// Who is typed for. What cannot be read of a terminal is taken for a reader of lines.
    fn reader(&mut self, modes: Option<Modes>) -> Reader {
        let ours = self.live.as_ref().is_some_and(|live| live.settler.is_none());
        let at_prompt = self.marks.prompt().is_some();
        let pastes = self.screen.bracketed_paste();
        let tab = self.config.shell_dialect.literal_tab();
        if modes.is_none_or(|it| it.canonical) {
            Reader::Lines
        } else if ours {
            Reader::Shell { pastes: false, tab }
        } else if self.screen.alternate() {
            Reader::FullScreen
        } else if at_prompt {
            Reader::Shell { pastes, tab }
        } else if pastes {
            let blocks = self.waiting.as_ref().is_some_and(|it| it.how == How::Loops);
            let apart = !self.relayed && !self.takes_enter_behind_a_paste(modes);
            Reader::Editor { blocks: blocks && !self.relayed, apart }
        } else if self.waits_in_a_line_editor() {
            Reader::Shell { pastes: false, tab: TAB }
        } else {
            Reader::Keys
        }
    }

    /// Whether the process that waits is known for a line editor without pastes.
    fn waits_in_a_line_editor(&mut self) -> bool {
        self.waiting.as_ref().is_some_and(|it| it.how == How::Selects) && self.has_line_editor()
    }

    /// Whether the process that waits is known to take an Enter as a key that comes right behind a paste:
    /// a shell, who has the library, and Python's own prompt, which leaves the signals to the terminal.
    fn takes_enter_behind_a_paste(&mut self, modes: Option<Modes>) -> bool {
        let Some(waiting) = &self.waiting else { return false };
        let signals = modes.is_some_and(|it| it.signals);
        let python = waiting.polls && signals && waiting.command.starts_with("python");
        python || SHELLS.contains(&waiting.command.as_str()) || self.has_line_editor()
    }

    /// Whether the process that waits has the library.
    fn has_line_editor(&mut self) -> bool {
        let Some(waiting) = &self.waiting else { return false };
        let (pid, command) = (waiting.pid, waiting.command.clone());
        if let Some((known, edits)) = &self.line_editor
            && *known == (pid, command.clone())
        {
            return *edits;
        }
        let edits = self.process.has_loaded(pid, LINE_EDITOR) == Some(true);
        self.line_editor = Some(((pid, command), edits));
        edits
    }

    /// Whether it is known without another look who waits.
    pub(super) fn still_waits(&self) -> bool {
        self.waiting.as_ref().is_some_and(|it| it.still)
    }

    /// Something happened that may have ended a wait.
    pub(super) fn disturb_waiting(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.still = false;
        }
    }

    /// Remembers who waits, and whether an Enter's line was taken.
    pub(super) fn note_input(&mut self, evidence: &Evidence) {
        let waiting = evidence.processes.iter().find_map(|process| {
            let (thread, how) =
                process.threads.iter().find_map(|it| Some((it, how_it_waits(it)?)))?;
            let polls = matches!(
                &thread.wait,
                Wait::Multiplexed { call: Multiplexer::Poll, others, timeout_ms: Some(_), .. }
                    if others.is_empty()
            );
            let (pid, command) = (process.pid, process.command.clone());
            Some(Waiting { pid, command, how, polls, still: false })
        });
        self.waiting = waiting.or_else(|| self.waiting.take());
        if matches!(evidence.scan, Scan::Full | Scan::Unchanged) {
            let known = self.inner_line.take();
            let found = in_line_mode(&evidence.inner).map(|found| {
                let open = known.filter(|it| it.relay == found.relay).map_or(0, |it| it.open);
                InnerLine { open, ..found }
            });
            // While a relay hands something on, it is not seen to be one.
            let works = |it: &InnerLine| {
                let relay = evidence.processes.iter().find(|process| process.pid == it.relay);
                relay.is_some_and(|relay| reads_itself(relay).is_none())
            };
            self.inner_line = found.or_else(|| known.filter(works));
        } else if evidence.processes.iter().any(|it| reads_itself(it) == Some(true)) {
            self.inner_line = None;
        }
        if evidence.unwritten > 0 || evidence.unread_input != Some(false) {
            return;
        }
        self.longest_unread = 0;
        let now = self.now();
        if let Some(enter) = self.live.as_mut().and_then(|live| live.apart_enter.as_mut()) {
            let taken = *enter.taken.get_or_insert(now);
            enter.due.get_or_insert(taken + LONGEST_GAP);
        }
    }

    /// The program waits again after a line whose Enter is still to be typed: that is due soon.
    /// False where there is none.
    pub(super) fn enter_is_due(&mut self) -> bool {
        let now = self.now();
        let Some(enter) = self.live.as_mut().and_then(|live| live.apart_enter.as_mut()) else {
            return false;
        };
        enter.due = Some(enter.taken.unwrap_or(now) + enter.gap);
        enter.only_due = true;
        true
    }

    /// Bytes of input that no program has read; none where nobody knows.
    pub(super) fn unread(&self, modes: Option<Modes>) -> Option<u64> {
        /// What the terminal holds for the reader when it is full.
        const FULL: u64 = 4_095;
        let canonical = modes?.canonical;
        let told = self.process.unread_bytes()?;
        if !canonical {
            return Some(told + self.line(modes).map_or(0, |(open, _)| open as u64));
        }
        // A line that did not fit is not told of, nor is what is behind it.
        let open = self.open_line as u64;
        let longest = self.longest_unread as u64;
        (told == 0 && longest <= FULL || told + longest.max(open) < FULL).then_some(told + open)
    }
}

/// The terminal behind relays that takes what is typed by lines; of several any.
fn in_line_mode(terminals: &[InnerTerminal]) -> Option<InnerLine> {
    terminals.iter().find_map(|it| {
        if it.modes.is_some_and(|modes| modes.canonical) {
            return Some(InnerLine { relay: it.relay, ends: LineEnds::of(it.modes), open: 0 });
        }
        in_line_mode(&it.inner)
    })
}

/// Whether a process that waits for the terminal does so for itself, and relays nothing; none if it
/// does not wait.
fn reads_itself(process: &ProcessFacts) -> Option<bool> {
    let waits = process.threads.iter().filter(|it| how_it_waits(it).is_some());
    let relays = |thread: &ThreadFacts| match &thread.wait {
        Wait::Multiplexed { others, .. } => others.contains(&Descriptor::PtyMaster),
        _ => false,
    };
    waits.map(|it| !relays(it)).reduce(|a, b| a && b)
}

/// How a thread waits for the terminal; none if it does not.
fn how_it_waits(thread: &ThreadFacts) -> Option<How> {
    match &thread.wait {
        Wait::TerminalRead { .. } => Some(How::Reads),
        Wait::Multiplexed { others, timeout_ms, .. } => {
            let own = |it: &Descriptor| {
                matches!(
                    it,
                    Descriptor::OwnPipe
                        | Descriptor::EventFd
                        | Descriptor::SignalFd
                        | Descriptor::Inotify
                )
            };
            let selects = timeout_ms.is_none() && others.iter().all(own);
            Some(if selects { How::Selects } else { How::Loops })
        }
        _ => None,
    }
}

impl super::send::Live {
    /// Bytes of the text that the terminal has taken.
    pub(super) fn accepted(&self, unwritten: usize) -> u64 {
        let stroke: &Stroke = &self.stroke;
        let untaken = stroke.untaken_text(unwritten) + self.discarded;
        self.typed.saturating_sub(untaken) as u64
    }
}
