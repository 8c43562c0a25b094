//! `ctx.subprocess`: one process on a pseudo-terminal, evidence about it, and its end.
//!
//! The provider moves bytes and gathers *evidence*; it never judges. Everything that crosses this
//! seam is plain data, so a provider may serve it from another process or another machine.
//!
//! On Linux the crate holds a provider for this machine, `LocalHost`, and its plugin row. A host that
//! leaves without an orderly end calls [`kill_all_at_once`] first.

pub mod evidence;
pub mod host;
#[cfg(target_os = "linux")]
mod linux;

pub use evidence::{
    Depth, Descriptor, Evidence, InnerTerminal, LineSetting, Modes, Multiplexer, ProcessFacts,
    Scan, ThreadFacts, Wait,
};
pub use host::{
    Event, ExitStatus, SignalError, SpawnError, Survivor, TerminalHost, TerminalProcess,
    TerminalSize, TerminalSpec, TerminateError,
};

#[cfg(target_os = "linux")]
pub use linux::{LocalHost, kill_all_at_once};

/// Kills every process of every session of this host process, and lets no other start. There are
/// none: this system has no provider.
#[cfg(not(target_os = "linux"))]
pub fn kill_all_at_once() {}

use dsh_core::Service;

/// Service key of the terminal-process primitive.
pub struct Subprocess;

impl Service for Subprocess {
    type Api = dyn TerminalHost;
    const NAME: &'static str = "subprocess";
}
