//! A run as a person would like to watch it: streamed text, a card for each call, and while
//! something is awaited, a spinner with the time that has passed and the last line of output.
//!
//! Guarantees: plain whole lines where nobody watches live, colours only where they were asked for;
//! nothing that a model or a program wrote can move the reader's cursor or change colours; nothing
//! here blocks.
//!
//! Reading order: `printer` → `card`, `spinner` (pure) → `live` (a run), `log` (a run of the past).

mod card;
mod live;
mod log;
mod printer;
mod spinner;

pub(crate) use live::Live;
pub(crate) use log::Replay;
pub(crate) use printer::{Look, Printer};
pub(crate) use spinner::FRAME;

/// What may be written to a terminal as it is.
fn visible(c: char) -> char {
    if c.is_control() && c != '\t' { char::REPLACEMENT_CHARACTER } else { c }
}
