//! What a program would inherit of the host's own circumstances, made what a fresh login has.
//!
//! A host may run under anything: a service manager's limits, a strict or an open umask, a lowered
//! priority. None of it is meant for the shells. Hard limits and, without the privilege, a lowered
//! priority cannot be undone and stay.

use rustix::{
    fs::Mode,
    process::{Resource, Rlimit, getrlimit, setpriority_process, setrlimit, umask},
};

/// Soft limits where the kernel's own default for a first process is not "as much as the hard
/// limit allows".
const SOFT: [(Resource, u64); 5] = [
    (Resource::Stack, 8 * 1024 * 1024),
    (Resource::Core, 0),
    (Resource::Nofile, 1024),
    (Resource::Nice, 0),
    (Resource::Rtprio, 0),
];

/// Soft limits that are as high as the hard ones.
const UNLIMITED: [Resource; 10] = [
    Resource::Cpu,
    Resource::Fsize,
    Resource::Data,
    Resource::Rss,
    Resource::Nproc,
    Resource::Memlock,
    Resource::As,
    Resource::Locks,
    Resource::Sigpending,
    Resource::Msgqueue,
];

/// Makes soft limits, priority and umask of the calling process those of a fresh login.
///
/// For a child between fork and exec: plain system calls, nothing is allocated.
pub(crate) fn reset(mask: Mode) {
    umask(mask);
    for (resource, soft) in SOFT {
        set_soft(resource, soft);
    }
    for resource in UNLIMITED {
        set_soft(resource, u64::MAX);
    }
    // Refused to an ordinary user whose host has a lower one.
    setpriority_process(None, 0).ok();
}

/// Sets a soft limit, to the hard one where that is lower. A resource the kernel does not know has
/// no limit.
fn set_soft(resource: Resource, soft: u64) {
    let maximum = getrlimit(resource).maximum;
    let current = match maximum {
        Some(hard) => Some(soft.min(hard)),
        None => (soft != u64::MAX).then_some(soft),
    };
    setrlimit(resource, Rlimit { current, maximum }).ok();
}
