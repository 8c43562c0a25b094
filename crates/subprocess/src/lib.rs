//! `ctx.subprocess`: one process on a pseudo-terminal, evidence about it, and its end.
//!
//! The provider moves bytes and gathers *evidence*; it never judges. Everything that crosses this
//! seam is plain data, so a provider may serve it from another process or another machine.
//!
//! On Linux the crate holds a provider for this machine, `LocalHost`, and its plugin row. A host that
//! leaves without an orderly end calls [`kill_all_at_once`] first. One that calls
//! [`start_supervisor`] before all else leaves nothing even where it is killed.

pub mod evidence;
pub mod host;
#[cfg(target_os = "linux")]
mod linux;
pub mod program;

pub use evidence::{
    Depth, Descriptor, Enter, Evidence, InnerTerminal, LineSetting, Modes, Multiplexer,
    ProcessFacts, Scan, ThreadFacts, Wait,
};
pub use host::{
    Bounds, Capacity, Confinement, Event, ExitStatus, Held, Isolation, Met, SignalError,
    SpawnError, Survivor, TerminalHost, TerminalProcess, TerminalSize, TerminalSpec,
    TerminateError, Usage,
};
pub use program::{NoProgram, find_program};

#[cfg(target_os = "linux")]
pub use linux::{
    LocalHost, Reach, SupervisorError, bounds_hold, capacity, findings, has_locale,
    kill_all_at_once, pid_namespaces_work, set_command_line, start_supervisor,
};

/// Kills every process of every session of this host process, and lets no other start. There are
/// none: this system has no provider.
#[cfg(not(target_os = "linux"))]
pub fn kill_all_at_once() {}

/// Whom the supervisor ends.
#[cfg(not(target_os = "linux"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The processes of sessions.
    Sessions,
    /// Everything that the host has started.
    Everything,
}

/// Starts nothing: this system has no sessions that could outlive the host.
#[cfg(not(target_os = "linux"))]
pub fn start_supervisor(_reach: Reach) -> Result<(), std::convert::Infallible> {
    Ok(())
}

/// Leaves the command line as it is.
#[cfg(not(target_os = "linux"))]
pub fn set_command_line(_text: &str) -> std::io::Result<()> {
    Ok(())
}

/// What this machine allows: nothing yet.
#[cfg(not(target_os = "linux"))]
pub fn findings() -> Vec<dsh_core::Finding> {
    vec![dsh_core::Finding::broken("system", "terminals need Linux", "run the host on Linux")]
}

/// What this machine has: nobody looks.
#[cfg(not(target_os = "linux"))]
pub fn capacity() -> Capacity {
    Capacity::default()
}

/// Whether sessions can have PID namespaces of their own: this system has none.
#[cfg(not(target_os = "linux"))]
pub fn pid_namespaces_work() -> Result<(), String> {
    Err("this system has no PID namespaces: use `isolation: none`".to_owned())
}

/// Whether the system holds all processes of a session together to their bounds: it does not.
#[cfg(not(target_os = "linux"))]
pub fn bounds_hold(_bounds: &Bounds) -> Result<(), String> {
    Err("this system has no control groups: leave `enforced` out".to_owned())
}

/// Whether this system has a locale of that name. Not known here, and so believed.
#[cfg(not(target_os = "linux"))]
pub fn has_locale(_name: &str) -> bool {
    true
}

use dsh_core::Service;

/// Service key of the terminal-process primitive.
pub struct Subprocess;

impl Service for Subprocess {
    type Api = dyn TerminalHost;
    const NAME: &'static str = "subprocess";
}
