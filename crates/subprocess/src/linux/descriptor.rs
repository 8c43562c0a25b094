//! What a descriptor of another process is.
//!
//! A descriptor is the session's terminal because of what it leads to (file system, inode and
//! device number, or `/dev/tty` of a process whose controlling terminal it is), never because of
//! its number.

use std::{io, os::fd::BorrowedFd};

use rustix::fs::{FileType, Stat, major, minor};

use super::{
    procfs::{End, Proc, metadata_below},
    pty::TerminalIdentity,
};
use crate::evidence::Descriptor;

/// A process, seen from the session's terminal.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) proc: &'a Proc,
    pub(crate) terminal: TerminalIdentity,
    /// The thread that is looked at. Descriptors and memory are reached through it: those of a
    /// process whose main thread has ended cannot be reached through the process.
    pub(crate) tid: i32,
    pub(crate) pid: i32,
    /// Its controlling terminal in the kernel's encoding.
    pub(crate) tty: i32,
    /// The folder of the thread's descriptors, where it is kept open.
    pub(crate) folder: Option<BorrowedFd<'a>>,
}

/// A descriptor and what it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) what: Descriptor,
    /// An epoll instance, which has no name of its own in [`Descriptor`].
    pub(crate) epoll: bool,
    /// Inode, where it could be looked at.
    pub(crate) ino: Option<u64>,
}

impl View<'_> {
    /// What descriptor `fd` is.
    pub(crate) fn resolve(&self, fd: i32) -> Resolved {
        let (pid, tid) = (self.pid, self.tid);
        let stat = match self.metadata(fd) {
            Ok(stat) => stat,
            Err(error) => return Resolved { what: unseen(&error), epoll: false, ino: None },
        };
        let mut epoll = false;
        let what = match FileType::from_raw_mode(stat.st_mode) {
            FileType::CharacterDevice => self.device(stat.st_dev, stat.st_ino, stat.st_rdev),
            FileType::Fifo if self.holds_other_end(fd, stat.st_dev, stat.st_ino) => {
                Descriptor::OwnPipe
            }
            FileType::Fifo => Descriptor::Pipe,
            FileType::Socket => Descriptor::Socket,
            _ => match self.proc.link(format_args!("{pid}/task/{tid}/fd/{fd}")) {
                Ok(name) => {
                    epoll = name.ends_with(b"[eventpoll]");
                    anonymous(&name)
                }
                Err(error) => unseen(&error),
            },
        };
        Resolved { what, epoll, ino: Some(stat.st_ino) }
    }

    /// Metadata of what descriptor `fd` leads to.
    fn metadata(&self, fd: i32) -> io::Result<Stat> {
        if let Some(folder) = self.folder {
            return metadata_below(folder, format_args!("{fd}"));
        }
        let (pid, tid) = (self.pid, self.tid);
        self.proc.metadata(format_args!("{pid}/task/{tid}/fd/{fd}"))
    }

    fn device(&self, dev: u64, ino: u64, rdev: u64) -> Descriptor {
        let terminal = self.terminal;
        match (major(rdev), minor(rdev)) {
            _ if (dev, ino, rdev) == (terminal.dev, terminal.ino, terminal.rdev) => {
                Descriptor::Terminal
            }
            // `/dev/tty` is whatever terminal controls the process that opened it.
            (5, 0) if self.tty == terminal.tty => Descriptor::Terminal,
            (5, 2) => Descriptor::PtyMaster,
            // Consoles and serial lines, `/dev/tty` and `/dev/console`, slaves of other pairs; modems,
            // adapters and ports of boards (`ttyACM`, `ttyUSB`, `ttyAMA`, `rfcomm`).
            (4 | 5 | 136..=143 | 166 | 188 | 204 | 216, _) => Descriptor::OtherTerminal,
            _ => Descriptor::File,
        }
    }

    /// Whether the process holds a writing end of the pipe behind `fd` as well.
    fn holds_other_end(&self, fd: i32, dev: u64, ino: u64) -> bool {
        let (pid, tid) = (self.pid, self.tid);
        let writes_to_it = |other: i32| {
            self.metadata(other).is_ok_and(|it| (it.st_dev, it.st_ino) == (dev, ino))
                && self.proc.access_mode(pid, tid, other) == Some(End::Writing)
        };
        // Both ends come from one call and mostly have neighbouring numbers.
        [fd + 1, fd - 1].into_iter().any(writes_to_it)
            || self
                .proc
                .descriptors(pid, tid)
                .into_iter()
                .any(|other| (other - fd).abs() > 1 && writes_to_it(other))
    }

    /// Whether descriptor `fd` is the session's terminal.
    pub(crate) fn is_terminal(&self, fd: i32) -> bool {
        self.metadata(fd).is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode).is_char_device()
                && self.device(stat.st_dev, stat.st_ino, stat.st_rdev) == Descriptor::Terminal
        })
    }
}

fn unseen(error: &io::Error) -> Descriptor {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => Descriptor::Hidden,
        _ => Descriptor::Other,
    }
}

/// Files without a type of their own have a name in brackets.
fn anonymous(name: &[u8]) -> Descriptor {
    let Some(kind) = name.strip_prefix(b"anon_inode:") else { return Descriptor::File };
    match kind {
        b"[eventfd]" => Descriptor::EventFd,
        b"[timerfd]" => Descriptor::TimerFd,
        b"[signalfd]" => Descriptor::SignalFd,
        b"inotify" | b"[inotify]" => Descriptor::Inotify,
        _ => Descriptor::Other,
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::makedev;

    use super::*;

    #[test]
    fn devices_are_told_by_their_numbers() {
        let terminal = TerminalIdentity { dev: 24, ino: 7, rdev: makedev(136, 4), tty: 0x8804 };
        let proc = Proc::open().unwrap();
        let of = |tty| View { proc: &proc, terminal, tid: 1, pid: 1, tty, folder: None };
        for (tty, (dev, ino), (major, minor), what) in [
            (0, (24, 7), (136, 4), Descriptor::Terminal),
            (0x8804, (5, 9), (5, 0), Descriptor::Terminal),
            (0x8805, (5, 9), (5, 0), Descriptor::OtherTerminal),
            (0, (25, 7), (136, 4), Descriptor::OtherTerminal),
            (0, (5, 9), (5, 2), Descriptor::PtyMaster),
            (0, (5, 9), (4, 64), Descriptor::OtherTerminal),
            (0, (5, 9), (166, 0), Descriptor::OtherTerminal),
            (0, (5, 9), (188, 0), Descriptor::OtherTerminal),
            (0, (5, 9), (204, 64), Descriptor::OtherTerminal),
            (0, (5, 9), (1, 3), Descriptor::File),
        ] {
            assert_eq!(of(tty).device(dev, ino, makedev(major, minor)), what, "{major}, {minor}");
        }
    }

    #[test]
    fn names_of_anonymous_files() {
        for (name, what) in [
            ("anon_inode:[eventfd]", Descriptor::EventFd),
            ("anon_inode:[timerfd]", Descriptor::TimerFd),
            ("anon_inode:[signalfd]", Descriptor::SignalFd),
            ("anon_inode:inotify", Descriptor::Inotify),
            ("anon_inode:[eventpoll]", Descriptor::Other),
            ("/etc/passwd", Descriptor::File),
        ] {
            assert_eq!(anonymous(name.as_bytes()), what, "{name}");
        }
    }
}
