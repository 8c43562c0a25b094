//! Turns and steps, over a model that says what the test says and a scripted terminal.

#![expect(clippy::unwrap_used, reason = "a fixture that cannot be built is a failed test")]

mod background;
mod fixture;
mod secrets;
mod steps;
mod told;
mod trouble;
