//! A stop that is under way: the foreground was told to stop, and the shell has yet to take the
//! terminal back. What is typed meanwhile would be waiting for the program when it is continued.

use subprocess::Evidence;

use crate::readiness::Moment;

/// Whom the terminal is to be taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handover {
    group: i32,
    /// Who still has it then does not stop.
    until: Moment,
}

impl Handover {
    pub(super) fn new(group: i32, until: Moment) -> Self {
        Self { group, until }
    }

    /// What a look says of it.
    pub(super) fn outcome(&self, evidence: &Evidence, now: Moment) -> Outcome {
        if evidence.foreground != Some(self.group) {
            Outcome::Taken
        } else if now < self.until {
            Outcome::Pending
        } else {
            Outcome::Refused
        }
    }
}

/// What became of a handover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The program still has the terminal.
    Pending,
    /// Somebody else has it.
    Taken,
    /// The program keeps it.
    Refused,
}
