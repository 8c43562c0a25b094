//! Programs that hand on what is typed: to another machine or container, or to a serial line.
//!
//! What waits on their far side cannot be seen, so such a wait is no proof of anything. That it relays
//! shows in a wait for the far end, which a thread leaves whenever it prints, so it is remembered; and
//! who has several threads relays in one of them whatever they all do.
//!
//! A client that asks for something itself (a password, whether a host is trusted) does so by a plain
//! read, in its only thread or with echo off.

use subprocess::{Descriptor, ProcessFacts, ThreadFacts, Wait};

use super::{Look, is_alone, waits_for};

/// Names as the kernel keeps them, cut to 15 bytes.
const REMOTE: [&str; 34] = [
    "adb",
    "crictl",
    "ctr",
    "cu",
    "dbclient",
    "docker",
    "docker-compose",
    "et",
    "incus",
    "ipmitool",
    "kubectl",
    "lxc",
    "microcom",
    "minicom",
    "mosh-client",
    "nc",
    "nc.openbsd",
    "nc.traditional",
    "ncat",
    "nerdctl",
    "oc",
    "picocom",
    "plink",
    "podman",
    "podman-remote",
    "rlogin",
    "rsh",
    "session-manager",
    "slogin",
    "socat",
    "srun",
    "ssh",
    "telnet",
    "tio",
];
/// A name that is that of many programs; those of them that wait for a far end are remote.
const ANY: &str = "busybox";
/// What leads there.
const FAR_END: [Descriptor; 2] = [Descriptor::Socket, Descriptor::OtherTerminal];

/// Whether what is typed to it is for another machine or container, as far as its name tells.
pub(crate) fn is_remote(process: &ProcessFacts) -> bool {
    REMOTE.contains(&process.command.as_str()) || has_far_end(process)
}

/// Whether it is seen to wait for its far end.
pub(super) fn has_far_end(process: &ProcessFacts) -> bool {
    let command = process.command.as_str();
    (command == ANY || REMOTE.contains(&command)) && waits_for(process, &FAR_END)
}

/// Whether a wait for the terminal may be one for the far side; `had_far_end` tells who waited for it
/// before.
pub(super) fn relays(
    look: &Look<'_>,
    process: &ProcessFacts,
    thread: &ThreadFacts,
    had_far_end: impl Fn(&ProcessFacts) -> bool,
) -> bool {
    let asks = matches!(thread.wait, Wait::TerminalRead { .. })
        && (is_alone(process) || (look.modes.canonical && !look.modes.echo));
    if has_far_end(process) || (had_far_end(process) && !asks) {
        return true;
    }
    if !REMOTE.contains(&process.command.as_str()) {
        return false;
    }
    // One that reads here for another one of its kind that waits over there: a client that logs in
    // through another one asks its user in canonical mode.
    let beside = |it: &ProcessFacts| {
        it.command == process.command && it.pid != process.pid && had_far_end(it)
    };
    !is_alone(process) && !asks || !look.modes.canonical && look.everybody().any(beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_the_kernel_keeps_them() {
        assert!(REMOTE.is_sorted());
        assert!(REMOTE.iter().all(|it| it.len() <= 15));
    }
}
