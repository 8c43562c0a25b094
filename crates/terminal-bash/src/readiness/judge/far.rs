//! A shell on the far side of a launcher: what the launcher does says nothing of it.
//!
//! - The far shell's marks say where it is. They count from the last stroke on: before that they tell
//!   of an earlier command.
//! - The fence of the terminal says that the launcher took the input, not that the far side did. A line
//!   that was typed at a prompt is followed by a prompt only once it was taken. One that was typed
//!   while a command ran may still be on its way when the prompt of that command comes, so the prompt
//!   has to stand for longer than an answer needs to travel. So has one behind an interrupt.
//! - Who was found to wait does so as long as nothing is typed or shown.
//! - Nothing is ever better known than `relay`.

use std::time::Duration;

use terminal::{Evidence as Strength, StateKind};

use super::{Context, Verdict, Waiter};
use crate::readiness::marks::Prompt;

/// The rest of what was written before, in the same packet or the next.
const SOON: Duration = Duration::from_millis(5);
/// There and back again.
pub(crate) const ROUND_TRIP: Duration = Duration::from_millis(200);

/// What is known of a far shell besides the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FarFacts {
    /// The prompt at which it waits, marked since the last stroke.
    pub prompt: Option<Prompt>,
    /// The last stroke was typed at its prompt, or it has started a command since; and it was no
    /// interrupt.
    pub answered: bool,
    /// The last stroke was typed at its prompt, and it has started no command since.
    pub editing: bool,
    /// It was an interrupt. bash, where that comes between two keys of a line, opens its editor again
    /// without a prompt and keeps the interrupt for the next key, which is lost.
    pub interrupted: bool,
    /// Who was found to wait last, if nothing was typed or shown since.
    pub standing: Option<StateKind>,
}

pub(super) fn verdict(far: FarFacts, context: &Context, launcher: i32) -> Verdict {
    let screen = &context.screen;
    let settling = |kind, window| Verdict::Settling {
        kind,
        evidence: Strength::Relay,
        window,
        waiter: Waiter { pid: launcher, tid: launcher },
    };
    let window = if far.answered { SOON } else { ROUND_TRIP };
    if let (None, Some(kind)) = (far.prompt, far.standing) {
        return settling(kind, SOON);
    }
    match far.prompt {
        Some(Prompt::Primary) => settling(StateKind::Prompt, window),
        Some(Prompt::Continuation) => settling(StateKind::Continuation, window),
        // Its editor gives no sign that it has taken a part of a line.
        None if far.editing && context.unfinished => Verdict::Unfinished,
        None if far.editing && far.interrupted => Verdict::Not { relay: true },
        None if screen.editor_opened && screen.alternate => settling(StateKind::Tui, SOON),
        None if screen.editor_opened => settling(StateKind::LineEditor, SOON),
        None => Verdict::Not { relay: true },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readiness::ScreenFacts;

    #[test]
    fn what_the_far_side_shows() {
        let at = |prompt| FarFacts { prompt: Some(prompt), answered: true, ..FarFacts::default() };
        let opened = ScreenFacts { editor_opened: true, ..ScreenFacts::default() };
        let full = ScreenFacts { alternate: true, ..opened };
        let nothing = FarFacts::default();
        let typing = FarFacts { answered: true, editing: true, ..nothing };
        let stands = FarFacts { standing: Some(StateKind::LineEditor), ..nothing };
        for (far, screen, unfinished, expected) in [
            (at(Prompt::Primary), opened, false, Some((StateKind::Prompt, SOON))),
            (at(Prompt::Continuation), opened, false, Some((StateKind::Continuation, SOON))),
            (
                FarFacts { answered: false, ..at(Prompt::Primary) },
                opened,
                false,
                Some((StateKind::Prompt, ROUND_TRIP)),
            ),
            (nothing, opened, false, Some((StateKind::LineEditor, SOON))),
            (nothing, full, false, Some((StateKind::Tui, SOON))),
            (nothing, ScreenFacts::default(), false, None),
            (nothing, ScreenFacts::default(), true, None),
            (stands, ScreenFacts::default(), false, Some((StateKind::LineEditor, SOON))),
            (typing, ScreenFacts::default(), false, None),
            (typing, opened, false, Some((StateKind::LineEditor, SOON))),
            (FarFacts { interrupted: true, ..typing }, opened, false, None),
        ] {
            let context = Context { screen, unfinished, ..Context::default() };
            let expected = expected.map_or(Verdict::Not { relay: true }, |(kind, window)| {
                let waiter = Waiter { pid: 7, tid: 7 };
                Verdict::Settling { kind, evidence: Strength::Relay, window, waiter }
            });
            assert_eq!(verdict(far, &context, 7), expected, "{far:?} {screen:?}");
        }
        let context = Context { unfinished: true, ..Context::default() };
        assert_eq!(verdict(typing, &context, 7), Verdict::Unfinished);
    }
}
