//! Terminals behind a relay: what `script`, a multiplexer or an editor's terminal window waits for.
//!
//! A master tells the number of its terminal, and the relay's own root where that one is, also in a
//! container's file system. Its foreground is what the processes on it say, since only a session's own
//! members may ask the terminal itself.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, fstat, major, minor, openat},
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};

use super::scan::{Scan, waits_for_master};
use crate::{
    evidence::InnerTerminal,
    linux::{
        procfs::Stat,
        pty::{TerminalIdentity, modes, readable, zero_byte_read},
        tree,
    },
};

/// Terminals within terminals are followed so far.
pub(super) const DEEPEST: usize = 3;

/// The terminals whose masters `relays` hold.
pub(super) fn terminals(scan: &mut Scan<'_>, relays: &[i32], depth: usize) -> Vec<InnerTerminal> {
    if depth == 0 || relays.is_empty() {
        return Vec::new();
    }
    let orphans = tree::orphans(scan.proc, true).into_iter().map(|it| it.pid);
    let roots = relays.iter().copied().chain([scan.leader]).chain(orphans);
    let tree: Vec<Stat> = tree::walk(scan.proc, roots).into_iter().map(|(stat, _)| stat).collect();
    let mut found = Vec::new();
    for &relay in relays {
        let mut seen = Vec::new();
        for fd in scan.proc.descriptors(relay, relay) {
            let Some(number) = number_of(scan, relay, fd) else { continue };
            if !seen.contains(&number) {
                seen.push(number);
                found.extend(terminal(scan, &tree, (relay, fd), number, depth));
            }
        }
    }
    found
}

/// The number of the terminal whose master this is.
fn number_of(scan: &Scan<'_>, relay: i32, fd: i32) -> Option<u32> {
    let stat = scan.proc.metadata(format_args!("{relay}/fd/{fd}")).ok()?;
    let device = FileType::from_raw_mode(stat.st_mode).is_char_device();
    let master = device && (major(stat.st_rdev), minor(stat.st_rdev)) == (5, 2);
    let text = master.then(|| scan.proc.read_all(format_args!("{relay}/fdinfo/{fd}")).ok())??;
    let line = text.split(|&b| b == b'\n').find_map(|it| it.strip_prefix(b"tty-index:"))?;
    std::str::from_utf8(line).ok()?.trim().parse().ok()
}

/// One terminal, whose master is a relay's descriptor; none where nobody is on it.
fn terminal(
    scan: &mut Scan<'_>,
    tree: &[Stat],
    (relay, master): (i32, i32),
    number: u32,
    depth: usize,
) -> Option<InnerTerminal> {
    let unseen = InnerTerminal {
        relay,
        unread_input: None,
        blocked_reader: None,
        modes: None,
        processes: Vec::new(),
        inner: Vec::new(),
        unread_output: None,
    };
    let Some((slave, identity)) = open(relay, number) else { return Some(unseen) };
    let session_of_relay = tree.iter().find(|it| it.pid == relay)?.session;
    // Another instance of the file system counts from the same numbers, so the device alone does not
    // tell.
    let on_it = |it: &&Stat| it.tty == identity.tty && it.session != session_of_relay;
    let Some(group) = tree.iter().find(on_it).map(|it| it.foreground) else {
        // Whoever is on its way to it belongs to nobody's group.
        scan.counters.spoil();
        return None;
    };
    let members: Vec<Stat> =
        tree.iter().filter(on_it).filter(|it| it.group == group).cloned().collect();
    let unread_input = readable(&slave);
    let blocked_reader = scan.reader_test.then(|| zero_byte_read(&slave)).flatten();
    if let Some(leader) = members.first().map(|it| it.session) {
        scan.watch_parents(&members, leader);
    }
    let processes = scan.look_at(identity, &members);
    let relays: Vec<i32> =
        processes.iter().filter(|it| waits_for_master(it)).map(|it| it.pid).collect();
    let inner = terminals(scan, &relays, depth - 1);
    let modes = modes(&slave);
    let unread_output = unread_output(relay, master);
    Some(InnerTerminal {
        relay,
        unread_input,
        blocked_reader,
        modes,
        processes,
        inner,
        unread_output,
    })
}

/// Whether the relay has yet to read output from this master: asked through a descriptor of our own
/// for it, since only the kernel knows what is still on its way there.
fn unread_output(relay: i32, master: i32) -> Option<bool> {
    let relay = pidfd_open(Pid::from_raw(relay)?, PidfdFlags::empty()).ok()?;
    readable(&pidfd_getfd(relay, master, PidfdGetfdFlags::empty()).ok()?)
}

/// Opens a terminal as the relay sees it, without making it anybody's own.
fn open(relay: i32, number: u32) -> Option<(OwnedFd, TerminalIdentity)> {
    let path = format!("/proc/{relay}/root/dev/pts/{number}");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let slave = openat(CWD, path, flags, Mode::empty()).ok()?;
    let identity = TerminalIdentity::of(&fstat(&slave).ok()?);
    Some((slave, identity))
}
