//! The answering terminal: questions that programs ask of their terminal, and when a reply is typed.
//!
//! - A reply is typed only while a program is seen to wait for the terminal in raw mode, and never
//!   while bash or zsh wait at their prompt: whoever is gone, or reads lines, gets none.
//! - A question is kept for a moment, since who asks reads a little later; a prompt of the shell
//!   forgets it.
//! - The replies themselves are [`reply`]'s: they never repeat what was received.
//!
//! Pure: it calls no system and reads no clock.

mod reply;

use std::time::Duration;

use subprocess::{Descriptor, Evidence, ProcessFacts, Scan, Wait};

use crate::{
    readiness::{Moment, judge::is_remote},
    screen::Query,
};

/// Who asks more before it reads gets no reply to the rest.
const MOST_KEPT: usize = 32;
/// Nobody waits longer for a reply.
const KEPT: Duration = Duration::from_secs(2);
/// The shortest and the longest gap between two looks for a reader, while nothing else makes one
/// due.
const GAPS: (Duration, Duration) = (Duration::from_micros(40), Duration::from_millis(50));

/// Shells whose line editors ask nothing, and take a reply for keys.
const EDITORS: [&str; 2] = ["bash", "zsh"];

/// The questions of one session that wait for their reader, and what became of the replies.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    asked: Vec<Asked>,
    /// When the last of them was asked.
    since: Moment,
    next_try: Moment,
    /// Replies were typed since the program was last seen to have read everything.
    replies: bool,
    /// Other input was.
    text: bool,
    /// Replies may have reached the shell's line editor.
    stray: bool,
}

#[derive(Debug)]
struct Asked {
    query: Query,
    /// Characters printed before it.
    printed: u64,
    /// The terminal was raw when it arrived.
    raw: bool,
}

/// What is known besides the evidence.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    /// The shell's own marks say that it is at a prompt.
    pub(crate) at_prompt: bool,
    /// Bracketed paste is switched on.
    pub(crate) bracketed_paste: bool,
    /// The alternate screen is shown.
    pub(crate) alternate: bool,
    /// Characters printed so far.
    pub(crate) printed: u64,
}

/// Who waits for the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reader {
    /// One that speaks for somebody who cannot be seen.
    Relay,
    /// A shell that reads, but not by its line editor as far as can be seen.
    Shell,
    Program,
}

impl Answers {
    /// A program asked; `printed` characters had been printed before, and `raw` tells the mode in
    /// which the question was found.
    pub(crate) fn ask(&mut self, query: Query, printed: u64, raw: bool, now: Moment) {
        if self.asked.len() < MOST_KEPT {
            self.asked.push(Asked { query, printed, raw });
        }
        (self.since, self.next_try) = (now, now);
    }

    /// The shell showed a prompt: whoever asked before is gone, and its line editor takes what it
    /// left unread.
    pub(crate) fn prompted(&mut self) {
        self.asked.clear();
        self.stray |= std::mem::take(&mut self.replies);
    }

    /// Whether there are questions, at `now`.
    pub(crate) fn are_wanted(&mut self, now: Moment) -> bool {
        if now.saturating_sub(self.since) > KEPT {
            self.asked.clear();
        }
        !self.asked.is_empty()
    }

    /// When to look for their reader again.
    pub(crate) fn next_try(&self) -> Moment {
        self.next_try
    }

    /// A look found nobody to reply to.
    pub(crate) fn tried(&mut self, now: Moment) {
        let age = now.saturating_sub(self.since);
        self.next_try = now + (age / 4).clamp(GAPS.0, GAPS.1);
    }

    /// A look was taken: what was typed before it may have been read.
    pub(crate) fn looked(&mut self, evidence: &Evidence) {
        if all_read(evidence) {
            (self.replies, self.text) = (false, false);
        }
    }

    /// What is to be typed for the reader that the look found; nothing where there is none.
    pub(crate) fn replies(&mut self, evidence: &Evidence, facts: &Facts) -> Vec<u8> {
        if self.asked.is_empty() || !all_read(evidence) || evidence.unread_output {
            return Vec::new();
        }
        let Some(reader) = reader(evidence, facts) else { return Vec::new() };
        let answered = |it: &Asked| {
            // Text behind a question tells that whoever asked went on without a reply.
            let still = it.printed == facts.printed;
            match reader {
                Reader::Relay => facts.alternate,
                Reader::Shell => still,
                Reader::Program => it.raw || still || facts.alternate,
            }
        };
        let mut typed = Vec::new();
        self.asked.retain(|it| {
            let answered = answered(it);
            if answered {
                reply::write(it.query, &mut typed);
            }
            !answered
        });
        self.replies |= !typed.is_empty();
        typed
    }

    /// Input of a send was handed to the terminal.
    pub(crate) fn typed(&mut self) {
        self.text = true;
    }

    /// All unread input was dropped.
    pub(crate) fn flushed(&mut self) {
        (self.replies, self.text) = (false, false);
    }

    /// Whether what the terminal may hold are replies alone, so that it can be dropped.
    pub(crate) fn only_replies(&self) -> bool {
        self.replies && !self.text
    }

    /// Whether the shell's line editor may have taken replies for keys since this was asked last.
    pub(crate) fn take_stray(&mut self) -> bool {
        std::mem::take(&mut self.stray)
    }
}

/// Whether the terminal is raw and holds no input. In canonical mode it hides an unfinished line.
fn all_read(evidence: &Evidence) -> bool {
    let raw = evidence.modes.is_some_and(|it| !it.canonical);
    raw && evidence.unwritten == 0 && evidence.unread_input == Some(false)
}

/// Who waits for the terminal and may be replied to.
fn reader(evidence: &Evidence, facts: &Facts) -> Option<Reader> {
    let (processes, outside) = (&evidence.processes, &evidence.outside);
    if processes.iter().chain(outside).any(waits_for_inner_terminal) {
        return Some(Reader::Relay);
    }
    let seen = processes.iter().chain(outside).filter_map(|process| {
        let waits = |wait: &Wait| {
            matches!(wait, Wait::TerminalRead { .. })
                || (!is_bash(process) && matches!(wait, Wait::Multiplexed { .. }))
        };
        process.threads.iter().any(|it| waits(&it.wait)).then(|| kind(process))
    });
    let unseen = || {
        let hidden = evidence.scan == Scan::Blind
            || processes.iter().flat_map(|it| &it.threads).any(|it| it.wait == Wait::Opaque);
        let reads = evidence.blocked_reader == Some(true) && hidden;
        let shell = evidence.scan == Scan::Blind || processes.iter().any(is_editor);
        reads.then_some(if shell { Reader::Shell } else { Reader::Program })
    };
    let reader = seen.max().or_else(unseen)?;
    let edits = reader == Reader::Shell && (facts.at_prompt || facts.bracketed_paste);
    (!edits).then_some(reader)
}

fn kind(process: &ProcessFacts) -> Reader {
    if is_editor(process) {
        Reader::Shell
    } else if is_remote(process) {
        Reader::Relay
    } else {
        Reader::Program
    }
}

fn is_editor(process: &ProcessFacts) -> bool {
    EDITORS.contains(&process.command.as_str())
}

/// Its line editor never blocks in a plain read; its `read` does.
fn is_bash(process: &ProcessFacts) -> bool {
    process.command == "bash"
}

fn waits_for_inner_terminal(process: &ProcessFacts) -> bool {
    process.threads.iter().any(|thread| match &thread.wait {
        Wait::Multiplexed { others: on, .. } | Wait::OtherInput { on, .. } => {
            on.contains(&Descriptor::PtyMaster)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests;
