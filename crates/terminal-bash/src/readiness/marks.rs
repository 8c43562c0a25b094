//! What the shell's own marks tell: whether it is at a prompt, and what became of a command.

use std::{ops::RangeInclusive, time::Duration};

use terminal::StateKind;

use super::judge::FarFacts;
use crate::dialect::{Mark, ShellDialect};

/// Moments are counted from one start that all sessions share.
pub type Moment = Duration;

/// Follows the shell's marks.
#[derive(Clone, Debug, Default)]
pub struct ShellMarks {
    phase: Phase,
    /// When the command that runs was started.
    started: Option<Moment>,
    /// The last prompt since then. Only a later start, or the shell seen at its prompt, makes it the
    /// command's end: the command itself may have shown the shell's prompt.
    prompted: Option<Prompted>,
    /// The line editor is open, where it says so.
    edits: bool,
    /// Of the last prompt.
    status: Option<i32>,
    history: Option<u64>,
    finished: Option<Finished>,
    /// Commands start, and no prompt is marked between them.
    prompts_lost: bool,
    /// A prompt is marked that answers a line, and no start was.
    took_unmarked: bool,
    entry: Entry,
    /// Whose the line at the prompt is, and whose the command that runs.
    typist: Typist,
    started_by: Typist,
    since_stroke: SinceStroke,
    /// Who was found to wait last, with nothing typed or shown since.
    standing: Option<StateKind>,
    dialect: ShellDialect,
}

/// A prompt that may end a command.
#[derive(Clone, Copy, Debug)]
struct Prompted {
    status: Option<i32>,
    at: Moment,
    /// The line editor was open.
    in_editor: bool,
}

/// What was marked since the last stroke.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SinceStroke {
    /// It was typed at a prompt.
    at_prompt: bool,
    /// It interrupts.
    interrupt: bool,
    /// A prompt was marked.
    prompted: bool,
    /// A command was started.
    started: bool,
}

/// The status a shell gives to a line that was interrupted: 128 and SIGINT.
const INTERRUPTED: i32 = 130;

/// The statuses a shell gives to a job that was stopped: 128 and SIGSTOP, SIGTSTP, SIGTTIN or SIGTTOU.
const STOPPED: RangeInclusive<i32> = 147..=150;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// No mark yet, or a command runs.
    #[default]
    Elsewhere,
    Prompted(Prompt),
}

/// Whether a line was entered at the prompt that led to nothing yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Entry {
    #[default]
    None,
    Entered,
    /// It is being taken back, which the prompt's next showing confirms.
    Interrupted,
}

/// Who typed something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Typist {
    #[default]
    Agent,
    Person,
}

/// A command that the shell says has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Its status, if the shell told.
    pub status: Option<i32>,
    /// How long it ran.
    pub duration: Duration,
    /// A line was taken, none of it ran, and the status is that of a line that could not be parsed:
    /// but it was that before, too, so the line may as well have been blank or a comment.
    pub unsure: bool,
}

impl ShellMarks {
    /// Of a shell that has shown no mark yet.
    pub fn new(dialect: ShellDialect) -> Self {
        Self { dialect, ..Self::default() }
    }

    /// An exchange begins: what ended before it is not its own.
    pub fn begin(&mut self) {
        self.finished = None;
        self.took_unmarked = false;
    }

    /// Something is typed: of a far shell only what is marked from now on answers it.
    /// An interrupt makes the shell show its prompt more than once, and drop what is typed between.
    pub fn stroke(&mut self, interrupt: bool) {
        let at_prompt = self.prompt().is_some();
        self.standing = None;
        self.since_stroke = SinceStroke { at_prompt, interrupt, ..SinceStroke::default() };
    }

    /// An exchange has ended: with somebody of this kind who waits, or with nobody known to.
    pub fn settled(&mut self, waits: Option<StateKind>) {
        self.standing = waits;
    }

    /// Something was shown.
    pub fn disturbed(&mut self) {
        self.standing = None;
    }

    /// When the command that runs was started.
    pub fn started(&self) -> Option<Moment> {
        self.started.filter(|_| self.prompted.is_none())
    }

    /// What a far shell has marked since the last stroke.
    pub fn far(&self) -> FarFacts {
        let SinceStroke { at_prompt, interrupt, prompted, started } = self.since_stroke;
        FarFacts {
            prompt: self.prompt().filter(|_| prompted),
            answered: (at_prompt || started) && !interrupt,
            editing: at_prompt && !started,
            interrupted: interrupt,
            standing: self.standing,
        }
    }

    /// The shell wrote `mark`.
    pub fn mark(&mut self, mark: Mark, now: Moment) {
        self.since_stroke.prompted |= mark != Mark::CommandStart;
        self.since_stroke.started |= mark == Mark::CommandStart;
        match mark {
            Mark::CommandStart => {
                self.end_command();
                self.prompts_lost = self.started.is_some();
                self.phase = Phase::Elsewhere;
                self.entry = Entry::None;
                self.started = Some(now);
                self.started_by = self.typist;
            }
            Mark::Continuation => self.phase = Phase::Prompted(Prompt::Continuation),
            Mark::Prompt { status, history } => {
                let taken = history.is_none() || history != self.history;
                if self.started.is_some() {
                    self.prompted_again(status, now, taken);
                } else if self.typist == Typist::Person {
                    // Of a person's line that ran nothing nobody is told.
                } else if taken && status.is_some() && status == self.dialect.syntax_error() {
                    let unsure = self.status == status;
                    self.finished = Some(Finished { status, duration: Moment::ZERO, unsure });
                } else if status != Some(INTERRUPTED) && !self.dialect.edits_on() {
                    self.took_unmarked |= taken;
                }
                if taken || self.entry == Entry::Interrupted {
                    self.entry = Entry::None;
                }
                self.phase = Phase::Prompted(Prompt::Primary);
                self.prompts_lost = false;
                self.status = status;
                self.history = history;
            }
        }
    }

    /// A line was typed at the prompt, with its end or without, or an interrupt.
    pub fn typed(&mut self, finished: bool, interrupt: bool) {
        self.typist = Typist::Agent;
        self.entry = match (interrupt, self.entry) {
            (true, Entry::None) => Entry::None,
            (true, _) => Entry::Interrupted,
            (false, _) if finished => Entry::Entered,
            (false, _) => Entry::None,
        };
    }

    /// The same, by a person: what becomes of the command is not told as the agent's.
    pub fn typed_by_hand(&mut self, finished: bool, interrupt: bool) {
        self.typed(finished, interrupt);
        self.typist = Typist::Person;
    }

    /// Whether the status behind which the prompt came back may be that of a job that was stopped.
    pub fn may_be_stopped(&self) -> bool {
        let told = |status: Option<i32>| status.is_some_and(|it| STOPPED.contains(&it));
        self.prompted.is_some_and(|it| !self.dialect.tells_stops() || told(it.status))
    }

    /// The prompt came back because the command was stopped: it has not ended.
    pub fn stopped(&mut self) {
        self.prompted = None;
        self.started = None;
    }

    /// A line was taken in this exchange, and nothing was marked as started: a comment, or a command of
    /// a shell that no longer marks starts.
    pub fn took_unmarked(&self) -> bool {
        self.took_unmarked
    }

    /// The end of a command that only others tell of; nothing is known of it.
    pub fn lost(&mut self) -> Finished {
        self.stopped();
        Finished { status: None, duration: Moment::ZERO, unsure: false }
    }

    /// A command runs, as far as the marks tell.
    pub fn is_running(&self) -> bool {
        self.started.is_some() && self.prompted.is_none()
    }

    /// The line editor gave the terminal back, so a line was taken.
    pub fn editor_closed(&mut self) {
        self.edits = false;
        self.phase = Phase::Elsewhere;
    }

    /// The prompt was marked after the start of a command; `taken` says that a line was, since the
    /// prompt before. An interrupt at the prompt shows it again, with a status of its own: the command
    /// ended with the one before. Where nothing tells that from a command that shows the shell's prompt
    /// and is interrupted, nobody knows its status.
    fn prompted_again(&mut self, status: Option<i32>, now: Moment, taken: bool) {
        let ended = self
            .prompted
            .filter(|before| status == Some(INTERRUPTED) && before.status != status && !taken);
        self.prompted = Some(match ended {
            Some(before) => {
                Prompted { status: before.status.filter(|_| before.in_editor), ..before }
            }
            None => Prompted { status, at: now, in_editor: self.edits },
        });
    }

    /// The line editor took the terminal.
    pub fn editor_opened(&mut self) {
        self.edits = true;
    }

    /// The prompt since the last start has ended that command.
    fn end_command(&mut self) {
        if let Some(Prompted { status, at, .. }) = self.prompted.take()
            && let Some(started) = self.started.take()
        {
            let duration = at.saturating_sub(started);
            if self.started_by == Typist::Agent {
                self.finished = Some(Finished { status, duration, unsure: false });
            }
        }
    }

    /// The kind of prompt that was shown last, if no command has started since.
    pub fn prompt(&self) -> Option<Prompt> {
        match self.phase {
            Phase::Prompted(_) if self.entry != Entry::None && self.dialect.edits_on() => {
                Some(Prompt::Continuation)
            }
            Phase::Prompted(prompt) => Some(prompt),
            Phase::Elsewhere => None,
        }
    }

    /// The last command that ended in this exchange; `at_prompt` says that the shell is seen at its
    /// prompt now.
    pub fn finished(&mut self, at_prompt: bool) -> Option<Finished> {
        if at_prompt {
            self.end_command();
        }
        self.finished
    }

    /// The end of a command whose shell is back and no longer marks its prompts.
    pub fn untold(&mut self, now: Moment) -> Option<Finished> {
        let started = self.started.filter(|_| self.prompts_lost)?;
        self.started = None;
        let duration = now.saturating_sub(started);
        Some(Finished { status: None, duration, unsure: false })
    }
}

/// Which prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// For a new command.
    Primary,
    /// For the rest of one.
    Continuation,
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTINUATION: Mark = Mark::Continuation;
    const COMMAND: Mark = Mark::CommandStart;
    const UNSEEN: Mark = Mark::Prompt { status: None, history: None };
    /// A prompt after a line that was taken.
    const fn prompt(status: i32, history: u64) -> Mark {
        Mark::Prompt { status: Some(status), history: Some(history) }
    }

    /// A millisecond between the marks; before them a prompt with status 0 and history 1.
    fn after(marks: &[Mark]) -> ShellMarks {
        let mut shell = ShellMarks::default();
        shell.mark(prompt(0, 1), Duration::ZERO);
        shell.begin();
        for (millis, mark) in (0..).zip(marks) {
            shell.mark(*mark, Duration::from_millis(millis));
        }
        shell
    }

    #[test]
    fn commands_prompts_and_statuses() {
        let ran = |status, millis| {
            let duration = Duration::from_millis(millis);
            Some(Finished { status: Some(status), duration, unsure: false })
        };
        let primary = Some(Prompt::Primary);
        for (marks, shown, expected) in [
            (&[COMMAND, prompt(7, 2)][..], primary, ran(7, 1)),
            (&[COMMAND][..], None, None),
            (&[CONTINUATION][..], Some(Prompt::Continuation), None),
            (&[CONTINUATION, COMMAND, prompt(1, 2)][..], primary, ran(1, 1)),
            // An interrupt at the prompt, or an empty line.
            (&[prompt(130, 1)][..], primary, None),
            // The command itself showed the shell's prompt: the last one counts.
            (&[COMMAND, prompt(0, 2), prompt(4, 2)][..], primary, ran(4, 2)),
            // Of several commands the last.
            (&[COMMAND, prompt(1, 2), COMMAND, prompt(2, 3)][..], primary, ran(2, 1)),
            (&[COMMAND, COMMAND, prompt(2, 3)][..], primary, ran(2, 1)),
            // A line that could not be parsed.
            (&[prompt(2, 2)][..], primary, ran(2, 0)),
            // An unfinished command that was interrupted.
            (&[CONTINUATION, prompt(130, 2)][..], primary, None),
            // A comment, or a command whose start the shell no longer marks.
            (&[prompt(0, 2)][..], primary, None),
            // A prompt that the shell could not mark itself.
            (&[UNSEEN][..], primary, None),
        ] {
            let mut shell = after(marks);
            let prompt = shell.prompt();
            assert_eq!((prompt, shell.finished(prompt == primary)), (shown, expected), "{marks:?}");
        }
        // After the same status nobody can tell it from a comment.
        let mut shell = after(&[COMMAND, prompt(2, 2)]);
        shell.finished(true);
        shell.mark(prompt(2, 3), Duration::from_millis(9));
        assert!(shell.finished(true).is_some_and(|it| it.unsure));
    }

    #[test]
    fn an_interrupt_at_the_prompt_is_not_the_end_of_the_command_before() {
        let status = |in_editor: bool, marks: &[Mark]| {
            let mut shell = after(&[COMMAND]);
            for mark in marks {
                if in_editor {
                    shell.editor_opened();
                }
                shell.mark(*mark, Duration::from_millis(9));
                shell.editor_closed();
            }
            shell.finished(true).map(|it| it.status)
        };
        for (marks, announced, unannounced) in [
            (&[prompt(0, 2), prompt(130, 2)][..], Some(0), None),
            (&[prompt(0, 2), prompt(130, 2), prompt(130, 2)], Some(0), None),
            (&[prompt(130, 2), prompt(130, 2)], Some(130), Some(130)),
            // The command was interrupted itself.
            (&[prompt(130, 2)], Some(130), Some(130)),
            // A line was taken between them.
            (&[prompt(0, 2), prompt(130, 3)], Some(130), Some(130)),
        ] {
            assert_eq!(status(true, marks), Some(announced), "{marks:?}");
            assert_eq!(status(false, marks), Some(unannounced), "{marks:?}");
        }
    }

    #[test]
    fn a_line_without_the_mark_of_a_start() {
        for (marks, unmarked) in [
            (&[prompt(0, 2)][..], true),
            (&[UNSEEN][..], true),
            (&[prompt(0, 1)][..], false),
            (&[prompt(130, 2)][..], false),
            (&[COMMAND, prompt(1, 2)][..], false),
        ] {
            assert_eq!(after(marks).took_unmarked(), unmarked, "{marks:?}");
        }
    }

    #[test]
    fn a_line_that_fish_edits_on_is_unfinished() {
        let mut shell = ShellMarks::new(ShellDialect::Fish);
        shell.mark(prompt(0, 1), Duration::ZERO);
        shell.begin();
        shell.typed(true, false);
        assert_eq!(shell.prompt(), Some(Prompt::Continuation));
        // The same prompt, drawn again.
        shell.mark(prompt(0, 1), Duration::ZERO);
        assert_eq!(shell.prompt(), Some(Prompt::Continuation));
        shell.mark(COMMAND, Duration::ZERO);
        assert_eq!(shell.prompt(), None);
        shell.mark(prompt(3, 2), Duration::ZERO);
        assert_eq!(shell.prompt(), Some(Prompt::Primary));
        assert_eq!(shell.finished(true).and_then(|it| it.status), Some(3));
        // An interrupt shows the same prompt again.
        shell.typed(true, false);
        shell.typed(false, true);
        assert_eq!(shell.prompt(), Some(Prompt::Continuation));
        shell.mark(prompt(3, 2), Duration::ZERO);
        assert_eq!(shell.prompt(), Some(Prompt::Primary));
        // An empty line leads to a new prompt.
        shell.begin();
        shell.typed(true, false);
        shell.mark(prompt(3, 3), Duration::ZERO);
        assert_eq!((shell.prompt(), shell.finished(true)), (Some(Prompt::Primary), None));
    }

    #[test]
    fn a_command_of_an_earlier_exchange_is_not_this_ones() {
        let mut shell = after(&[COMMAND, prompt(7, 2)]);
        assert!(shell.finished(true).is_some());
        shell.begin();
        assert_eq!(shell.finished(true), None);
        // One that began in an earlier exchange and ends in this one is.
        let mut shell = after(&[COMMAND]);
        shell.begin();
        shell.mark(prompt(3, 2), Duration::from_millis(9));
        assert_eq!(shell.finished(true).and_then(|it| it.status), Some(3));
    }

    #[test]
    fn a_prompt_shown_by_a_command_is_not_its_end() {
        let mut shell = after(&[COMMAND, prompt(0, 2)]);
        assert_eq!(shell.finished(false), None);
        shell.editor_closed();
        assert_eq!(shell.prompt(), None);
    }

    #[test]
    fn a_shell_without_prompt_marks_is_told_from_a_command_that_edits_a_line() {
        let now = Duration::from_secs(1);
        assert_eq!(after(&[COMMAND]).untold(now), None);
        let untold = after(&[COMMAND, COMMAND]).untold(now);
        assert_eq!(untold.map(|it| it.status), Some(None));
    }
}
