//! What breaks such tools in the field, each with the right answer, on a real bash.

mod ends;
mod input;
mod mend;
mod output;
mod readiness;
mod relays;
mod shell;
mod transcript;
mod typing;
