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
    finished: Option<Finished>,
    /// Whether any prompt was shown since [`ShellMarks::begin`], and its status.
    shown: bool,
}

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
}

impl ShellMarks {
    /// An exchange begins: what ended before it is not its own.
    pub fn begin(&mut self) {
        self.finished = None;
        self.shown = false;
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
            Mark::Prompt { status } => {
                self.phase = Phase::Prompted(Prompt::Primary);
                self.status = status;
                self.shown = true;
                if let Some(started) = self.started.take() {
                    let duration = now.saturating_sub(started);
                    self.finished = Some(Finished { status, duration });
                }
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
        Some(Finished { status: None, duration: now.saturating_sub(started) })
    }

    /// The status shown with a prompt of this exchange, without any command having run.
    pub fn status_without_command(&self) -> Option<i32> {
        if self.shown && self.finished.is_none() { self.status } else { None }
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
    const fn prompt(status: i32) -> Mark {
        Mark::Prompt { status: Some(status) }
    }

    fn after(marks: &[Mark]) -> ShellMarks {
        let mut shell = ShellMarks::default();
        shell.mark(prompt(0), Duration::ZERO);
        shell.begin();
        for (millis, mark) in (0..).zip(marks) {
            shell.mark(*mark, Duration::from_millis(millis));
        }
        shell
    }

    #[test]
    fn commands_prompts_and_statuses() {
        let finished = |status, millis| {
            Some(Finished { status: Some(status), duration: Duration::from_millis(millis) })
        };
        for (marks, shown, expected) in [
            (&[COMMAND, prompt(7)][..], Some(Prompt::Primary), finished(7, 1)),
            (&[COMMAND][..], None, None),
            (&[CONTINUATION][..], Some(Prompt::Continuation), None),
            (&[CONTINUATION, COMMAND, prompt(1)][..], Some(Prompt::Primary), finished(1, 1)),
            // An empty line, or an interrupt at the prompt.
            (&[prompt(130)][..], Some(Prompt::Primary), None),
            // Of several commands the last.
            (&[COMMAND, prompt(1), COMMAND, prompt(2)][..], Some(Prompt::Primary), finished(2, 1)),
            (&[COMMAND, COMMAND, prompt(2)][..], Some(Prompt::Primary), finished(2, 1)),
        ] {
            let shell = after(marks);
            assert_eq!((shell.prompt(), shell.finished()), (shown, expected), "{marks:?}");
        }
    }

    #[test]
    fn a_command_of_an_earlier_exchange_is_not_this_ones() {
        let mut shell = after(&[COMMAND, prompt(7)]);
        shell.begin();
        assert_eq!(shell.finished(), None);
        // One that began in an earlier exchange and ends in this one is.
        let mut shell = after(&[COMMAND]);
        shell.begin();
        shell.mark(prompt(3), Duration::from_millis(9));
        assert_eq!(shell.finished().and_then(|it| it.status), Some(3));
    }

    #[test]
    fn a_status_without_a_command_is_told_apart() {
        assert_eq!(after(&[prompt(2)]).status_without_command(), Some(2));
        assert_eq!(after(&[COMMAND, prompt(2)]).status_without_command(), None);
        assert_eq!(after(&[]).status_without_command(), None);
    }
}
