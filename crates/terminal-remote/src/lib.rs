//! The remote shell backend: a controlled bash on another machine, behind a launcher such as
//! `ssh -tt host`, `kubectl exec -it pod -- sh -c`, `docker exec -it container sh -c` or
//! `srun --pty sh -c`.
//!
//! The engine is `terminal-bash`'s, which knows what a far side can tell
//! ([`terminal_bash::far`]). Here is what brings it there:
//!
//! - `script`: what the far side runs, as one argument of the launcher; no file of the far side is
//!   read or written;
//! - `launcher`: the launcher's program, and further runs of it, without a terminal, by which the far
//!   side is signalled, ended and asked;
//! - `session`: a session of the engine, with signals and the close done over there;
//! - [`backend`] → [`plugin`].

pub mod backend;
pub mod config;
mod launcher;
pub mod plugin;
mod script;
mod session;

pub use config::Config;
pub use plugin::TerminalRemotePlugin;
