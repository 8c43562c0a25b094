//! The shell backend: a controlled bash on a pseudo-terminal.
//!
//! Reading order: [`screen`] (bytes → text) → [`readiness`] (evidence → verdict) → `task` (the one
//! owner of terminal, screen and exchange; `transcript` has the text that the screen drops,
//! `retained` and `search` read both) → `session` (its mailbox) → [`backend`] (opening a
//! session) → [`plugin`].
//! Whoever watches gets `viewers`' ring of what `stream` lets out.
//! [`far`] opens the same session with a shell on another machine.
//! `screen` and `readiness` are pure: no system call, no clock.

mod answers;
pub mod backend;
pub mod config;
mod crowd;
pub mod dialect;
pub mod environment;
pub mod far;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod here_document;
mod input;
mod limits;
mod operation;
pub mod plugin;
pub mod readiness;
mod recorder;
mod request;
mod retained;
pub mod screen;
mod search;
mod session;
mod settler;
mod stream;
mod task;
mod transcript;
mod typing;
mod viewers;
mod watching;

pub use config::Config;
pub use limits::Limits;
pub use plugin::TerminalBashPlugin;
