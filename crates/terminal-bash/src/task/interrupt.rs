//! Whom a cancellation has interrupted, and whether it met them.

use subprocess::{Evidence, Scan};

/// A cancellation interrupts this often at the most: it follows a start that is under way, not a
/// program that goes on by itself.
const MOST: u32 = 5;

/// Whom the last interrupt went to: a process group, and what its leader ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interrupt {
    group: Option<i32>,
    command: Option<String>,
    sent: u32,
}

impl Interrupt {
    /// The foreground of a full look is interrupted now.
    pub(super) fn new(evidence: &Evidence) -> Self {
        Self { group: evidence.foreground, command: leader(evidence), sent: 1 }
    }

    /// Whether another group, or another program in the same group, has come to the foreground
    /// since. It counts as interrupted then.
    pub(super) fn missed(&mut self, evidence: &Evidence) -> bool {
        let command = leader(evidence);
        if evidence.scan == Scan::Fast || command.is_none() || self.sent >= MOST {
            return false;
        }
        if self.group == evidence.foreground && self.command.is_none() {
            // It was met; what it runs could not be seen then.
            self.command = command;
            return false;
        }
        let missed = (self.group, &self.command) != (evidence.foreground, &command);
        if missed {
            *self = Self { group: evidence.foreground, command, sent: self.sent + 1 };
        }
        missed
    }
}

/// What the leader of the foreground group runs.
fn leader(evidence: &Evidence) -> Option<String> {
    let group = evidence.foreground?;
    let leader = evidence.processes.iter().find(|process| process.pid == group)?;
    Some(leader.command.clone())
}

#[cfg(test)]
mod tests {
    use subprocess::ProcessFacts;

    use super::*;

    fn look(group: i32, command: &str) -> Evidence {
        let process = ProcessFacts {
            pid: group,
            parent: 1,
            command: command.to_owned(),
            thread_count: 1,
            cpu_ns: None,
            threads: Vec::new(),
        };
        Evidence {
            unwritten: 0,
            unread_input: Some(false),
            foreground: Some(group),
            blocked_reader: None,
            modes: None,
            scan: Scan::Full,
            processes: vec![process],
            outside: Vec::new(),
            awaited: Vec::new(),
            inner: Vec::new(),
            unread_output: false,
        }
    }

    #[test]
    fn a_start_that_was_under_way_is_met_again_and_nobody_else() {
        let mut interrupt = Interrupt::new(&look(200, "bash"));
        assert!(!interrupt.missed(&look(200, "bash")), "it was met");
        assert!(interrupt.missed(&look(200, "sleep")), "it was the shell's fork then");
        assert!(!interrupt.missed(&look(200, "sleep")));
        assert!(interrupt.missed(&look(201, "sleep")), "the next of a list");
        let fast = Evidence { scan: Scan::Fast, ..look(202, "sleep") };
        assert!(!interrupt.missed(&fast));
        for group in 300..400 {
            interrupt.missed(&look(group, "sleep"));
        }
        assert_eq!(interrupt.sent, MOST, "not for ever");
    }
}
