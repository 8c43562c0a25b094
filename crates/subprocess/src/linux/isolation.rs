//! Starting a session in a PID namespace of its own.
//!
//! Its leader is process 1 there: what the session signals, even all processes at once, is in the
//! session, and the end of the leader is the end of everything. The host sees them all, under
//! numbers of its own.

use std::{io, process::Child, thread};

use dsh_core::panic_text;

use super::sys;

/// Runs `start` where its child is born into a PID namespace of its own.
pub(super) fn in_pid_namespace(
    start: impl FnOnce() -> io::Result<Child> + Send,
) -> io::Result<Child> {
    on_a_thread(|| {
        sys::unshare_pid_namespace().map_err(|it| refused(&it))?;
        start()
    })
}

/// Whether sessions can have PID namespaces of their own here; if not, why, and what to do.
pub fn pid_namespaces_work() -> Result<(), String> {
    on_a_thread(|| sys::unshare_pid_namespace().map_err(|it| refused(&it)))
        .map_err(|it| it.to_string())
}

fn on_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let name = "pid-namespace".to_owned();
        let thread = thread::Builder::new().name(name).spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|panic| Err(io::Error::other(panic_text(&*panic))))
    })
}

fn refused(error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!(
            "no PID namespace can be made ({error}): run the host as root or with the capability \
             SYS_ADMIN, or use `isolation: none`"
        ),
    )
}
