//! The shell backend: a controlled bash on a pseudo-terminal.
//!
//! Reading order: [`screen`] (bytes → text) → [`readiness`] (evidence → verdict) → [`session`] (one
//! task owns terminal, screen and exchange) → [`backend`] (opening a session) → [`plugin`].
//! `screen` and `readiness` are pure: no system call, no clock.

pub mod backend;
pub mod config;
pub mod dialect;
pub mod environment;
mod input;
pub mod operation;
pub mod plugin;
pub mod readiness;
pub mod screen;
pub mod session;

pub use config::Config;
pub use plugin::TerminalBashPlugin;
