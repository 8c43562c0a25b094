//! What breaks such tools in the field, each with the right answer, on a real bash.

mod brittle;
mod dialects;
mod ends;
mod hidden;
mod hooks;
mod input;
mod isolation;
mod liars;
mod limits;
mod mend;
mod output;
mod people;
mod pitfalls;
mod queries;
mod readiness;
mod recording;
mod relays;
mod screen;
mod shell;
mod transcript;
mod typing;
mod waits;
