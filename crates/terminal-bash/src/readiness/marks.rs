//! What the shell's own marks tell: whether it is at a prompt, and what became of a command.

use std::time::Duration;

use crate::dialect::Mark;

/// Moments are counted from the session's start.
pub type Moment = Duration;

/// Follows the shell's marks.
#[derive(Clone, Debug, Default)]
pub struct ShellMarks {
    phase: Phase,
    started: Option<Moment>,
    status: Option<i32>,
    history: Option<u64>,
    finished: Option<Finished>,
}

/// The status bash gives to a line that it could not parse.
const SYNTAX_ERROR: i32 = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// No mark yet, or a command runs.
    #[default]
    Elsewhere,
    Prompted(Prompt),
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
    /// An exchange begins: what ended before it is not its own.
    pub fn begin(&mut self) {
        self.finished = None;
    }

    /// The shell wrote `mark`.
    pub fn mark(&mut self, mark: Mark, now: Moment) {
        match mark {
            Mark::CommandStart => {
                self.phase = Phase::Elsewhere;
                // Several commands of one input may start without a prompt between them: the last
                // one is the one that the next prompt tells of.
                self.started = Some(now);
            }
            Mark::Continuation => self.phase = Phase::Prompted(Prompt::Continuation),
            Mark::Prompt { status, history } => {
                let taken = history.is_some() && history != self.history;
                let ran = self.started.take().map(|started| now.saturating_sub(started));
                if let Some(duration) = ran {
                    self.finished = Some(Finished { status, duration, unsure: false });
                } else if taken && status == Some(SYNTAX_ERROR) {
                    let unsure = self.status == status;
                    self.finished = Some(Finished { status, duration: Moment::ZERO, unsure });
                }
                self.phase = Phase::Prompted(Prompt::Primary);
                self.status = status;
                self.history = history;
            }
        }
    }

    /// The kind of prompt that was shown last, if no command has started since.
    pub fn prompt(&self) -> Option<Prompt> {
        match self.phase {
            Phase::Prompted(prompt) => Some(prompt),
            Phase::Elsewhere => None,
        }
    }

    /// The last command that ended in this exchange.
    pub fn finished(&self) -> Option<Finished> {
        self.finished
    }

    /// A command that started and was not seen to end: its end, if the shell is back all the same,
    /// was not told.
    pub fn take_untold(&mut self, now: Moment) -> Option<Finished> {
        let started = self.started.take()?;
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
            (&[COMMAND, prompt(2, 2), prompt(2, 2)][..], primary, ran(2, 1)),
            // Of several commands the last.
            (&[COMMAND, prompt(1, 2), COMMAND, prompt(2, 3)][..], primary, ran(2, 1)),
            (&[COMMAND, COMMAND, prompt(2, 3)][..], primary, ran(2, 1)),
            // A line that could not be parsed.
            (&[prompt(2, 2)][..], primary, ran(2, 0)),
            (&[COMMAND, prompt(0, 2), prompt(2, 3)][..], primary, ran(2, 0)),
            // A comment keeps the status.
            (&[COMMAND, prompt(1, 2), prompt(1, 3)][..], primary, ran(1, 1)),
        ] {
            let shell = after(marks);
            assert_eq!((shell.prompt(), shell.finished()), (shown, expected), "{marks:?}");
        }
        // After the same status nobody can tell it from a comment.
        let shell = after(&[COMMAND, prompt(2, 2), prompt(2, 3)]);
        assert!(shell.finished().is_some_and(|it| it.unsure));
    }

    #[test]
    fn a_command_of_an_earlier_exchange_is_not_this_ones() {
        let mut shell = after(&[COMMAND, prompt(7, 2)]);
        shell.begin();
        assert_eq!(shell.finished(), None);
        // One that began in an earlier exchange and ends in this one is.
        let mut shell = after(&[COMMAND]);
        shell.begin();
        shell.mark(prompt(3, 2), Duration::from_millis(9));
        assert_eq!(shell.finished().and_then(|it| it.status), Some(3));
    }
}
