//! Starting a session in a PID namespace of its own.
//!
//! Its leader is process 1 there: what the session signals, even all processes at once, is in the
//! session, and the end of the leader is the end of everything. The host sees them all, under
//! numbers of its own.
//!
//! Where only a privileged process may make one, the session gets a user namespace besides, in which
//! it has the privilege: its user and its group are themselves there, and all others are nobody.

use std::io;

use super::sys::{Born, UserMaps};
use crate::host::{Confinement, Isolation, TerminalSpec};

/// Where the leader of a session is to be born.
pub(super) fn born(spec: &TerminalSpec) -> io::Result<Born> {
    match (spec.isolation, &spec.confinement) {
        (Isolation::None, _) => Ok(Born::default()),
        // The process table that is mounted in there is another one.
        (Isolation::PidNamespace, Confinement::Namespaces(_)) => Err(io::Error::other(
            "`isolation: pid-namespace` does not go with a sandbox of namespaces: use the row \
             `sandbox-landlock`, or `isolation: none`",
        )),
        (Isolation::PidNamespace, _) => in_pid_namespace(),
    }
}

fn in_pid_namespace() -> io::Result<Born> {
    let privileged = Born { pid_namespace: true, as_user: None };
    let Err(refused) = privileged.works() else { return Ok(privileged) };
    let user = Born { as_user: Some(UserMaps::own()), ..privileged };
    let Err(of_user) = user.works() else { return Ok(user) };
    let message = format!(
        "no PID namespace can be made ({refused}), and none in a user namespace ({of_user}): run the \
         host as root or with the capability SYS_ADMIN, allow users their namespaces (sysctl \
         user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns), or use \
         `isolation: none`"
    );
    Err(io::Error::new(of_user.kind(), message))
}

/// Whether sessions can have PID namespaces of their own here; if not, why, and what to do.
pub fn pid_namespaces_work() -> Result<(), String> {
    in_pid_namespace().map(|_| ()).map_err(|it| it.to_string())
}
