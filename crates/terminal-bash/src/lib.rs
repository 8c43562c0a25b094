//! The shell backend: a controlled bash on a pseudo-terminal.
//!
//! Reading order: [`screen`] (bytes → text) → [`readiness`] (evidence → verdict) → `task` (the one
//! owner of terminal, screen and exchange) → `session` (its mailbox) → [`backend`] (opening a
//! session) → [`plugin`].
//! `screen` and `readiness` are pure: no system call, no clock.

pub mod backend;
pub mod config;
pub mod dialect;
pub mod environment;
mod input;
mod operation;
pub mod plugin;
pub mod readiness;
mod request;
pub mod screen;
mod session;
mod settler;
mod task;

pub use config::Config;
pub use plugin::TerminalBashPlugin;
