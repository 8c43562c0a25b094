//! What a person types, beside whatever the agent has typed.

use secrecy::ExposeSecret as _;
use terminal::{ByHand, TerminalError, TypedByHand};
use tokio::sync::oneshot;

use super::Task;
use crate::input::{self, LineEnds};

/// Most bytes that wait for the terminal to take them.
const MOST: usize = 64 << 10;
/// The key that interrupts: it waits for nothing.
const INTERRUPT: &str = "\u{3}";

/// Input that waits until a line of the agent has got its Enter.
pub(super) struct Waits {
    input: ByHand,
    reply: oneshot::Sender<Result<(), TerminalError>>,
}

impl Task {
    /// Types for a person, not in the middle of a line of the agent's.
    pub(super) fn type_by_hand(
        &mut self,
        input: ByHand,
        reply: oneshot::Sender<Result<(), TerminalError>>,
    ) {
        if !self.is_within_a_line() || input.text.expose_secret() == INTERRUPT {
            reply.send(self.type_now(input)).ok();
            return;
        }
        let waiting: usize =
            self.by_hand.iter().map(|it| it.input.text.expose_secret().len()).sum();
        match room(&input, waiting) {
            Ok(()) => self.by_hand.push(Waits { input, reply }),
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    /// Types what has waited, if it need not wait any more.
    pub(super) fn type_waiting_by_hand(&mut self) {
        if self.by_hand.is_empty() || self.is_within_a_line() {
            return;
        }
        for Waits { input, reply } in std::mem::take(&mut self.by_hand) {
            reply.send(self.type_now(input)).ok();
        }
    }

    /// A line of the agent's was typed whose Enter comes later.
    fn is_within_a_line(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.apart_enter.is_some())
    }

    fn type_now(&mut self, input: ByHand) -> Result<(), TerminalError> {
        self.drain();
        if self.exit.is_some() {
            return Err(TerminalError::SessionExited { id: self.id.to_string() });
        }
        room(&input, self.process.unwritten())?;
        let now = self.now();
        let modes = self.process.modes();
        let canonical = modes.is_some_and(|it| it.canonical);
        let at_prompt = !canonical && self.marks.prompt().is_some();
        let shown = at_prompt || modes.is_some_and(|it| it.echo);
        if shown && input.secret {
            return Err(TerminalError::SecretShown { id: self.id.to_string() });
        }
        let text = input.text.expose_secret();
        let interrupt = text.contains(INTERRUPT);
        let ends = LineEnds::of(modes);
        let unfinished = input::is_unfinished(text, ends);
        self.note_line(modes, text);
        self.marks.stroke(interrupt);
        if at_prompt {
            self.marks.typed_by_hand(!unfinished, interrupt);
        }
        self.longest_unread = self.longest_unread.max(text.len());
        if shown {
            self.watches.typed(text);
            self.record_input(text);
        }
        self.answers.typed();
        self.disturb_waiting();
        self.process.write(text.as_bytes());
        if let Some(live) = &mut self.live {
            live.exchange.stirred(now);
        }
        self.expect_echo();
        (input.typed)(TypedByHand { hidden: !shown });
        Ok(())
    }
}

/// Refuses what is too much behind `waiting` bytes.
fn room(input: &ByHand, waiting: usize) -> Result<(), TerminalError> {
    let (bytes, limit) = (input.text.expose_secret().len(), MOST.saturating_sub(waiting));
    if bytes > limit {
        return Err(TerminalError::InputTooLarge { bytes: bytes as u64, limit: limit as u64 });
    }
    Ok(())
}
