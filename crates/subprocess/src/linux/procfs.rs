//! Reading `/proc`: small files into stack buffers, the process tree, threads.
//!
//! Everything here is a snapshot of something that changes: a process that vanished is `None` or
//! an empty list, never an error worth reporting.

use std::{
    fmt::{self, Write as _},
    io,
    mem::MaybeUninit,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, RawDir, openat, readlinkat, statat},
    io::{Errno, pread, read},
    process::Signal,
};

/// So many were born at most while a few of them are looked at.
const NEWEST: i32 = 64;

/// An open `/proc`.
#[derive(Debug)]
pub(crate) struct Proc(OwnedFd);

/// `/proc/P/stat`, the fields needed here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: i32,
    pub(crate) command: String,
    /// `R S D T t Z X I`.
    pub(crate) state: u8,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// Device number of the controlling terminal in the kernel's encoding; 0 for none.
    pub(crate) tty: i32,
    /// Foreground group of that terminal; -1 for none.
    pub(crate) foreground: i32,
    pub(crate) threads: u32,
    /// Clock ticks from boot to the start; with the pid it names a process for good.
    pub(crate) start: u64,
}

/// Which end of a pipe a descriptor is. What can do both counts as the writing one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Reading,
    Writing,
}

impl Stat {
    /// Parses the file's text. The command is in parentheses and may contain anything.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let open = text.iter().position(|&b| b == b'(')?;
        let close = text.iter().rposition(|&b| b == b')')?;
        let pid = std::str::from_utf8(&text[..open]).ok()?.trim().parse().ok()?;
        let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        let tty = fields.next()?.parse().ok()?;
        let foreground = fields.next()?.parse().ok()?;
        let threads = fields.nth(11)?.parse().ok()?;
        let start = fields.nth(1)?.parse().ok()?;
        let command = String::from_utf8_lossy(text.get(open + 1..close)?).into_owned();
        Some(Self { pid, command, state, parent, group, session, tty, foreground, threads, start })
    }

    /// Dead and at most waiting to be collected. A process whose main thread alone has ended looks
    /// like a zombie but still has threads.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X') && self.threads <= 1
    }
}

impl Proc {
    /// Opens `/proc`; none where it is missing, not a process table, closed to us, or that of
    /// another PID namespace, in which our numbers name strangers.
    pub(crate) fn open() -> Option<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = Self(openat(CWD, "/proc", flags, Mode::empty()).ok()?);
        let own = i32::try_from(std::process::id()).ok()?;
        let mut buffer = [0; 1024];
        let found = Stat::parse(proc.read(format_args!("self/stat"), &mut buffer).ok()?)?;
        (found.pid == own && found.threads > 0).then_some(proc)
    }

    /// Opens a file below `/proc` for repeated [`reread`].
    pub(crate) fn file(&self, path: fmt::Arguments<'_>) -> io::Result<OwnedFd> {
        let path = ShortPath::new(path)?;
        Ok(openat(&self.0, path.as_str(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// Reads a small file into `buffer`; what does not fit is left out.
    pub(crate) fn read<'b>(
        &self,
        path: fmt::Arguments<'_>,
        buffer: &'b mut [u8],
    ) -> io::Result<&'b [u8]> {
        let file = self.file(path)?;
        let mut length = 0;
        while length < buffer.len() {
            match read(&file, &mut buffer[length..]) {
                Ok(0) => break,
                Ok(more) => length += more,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(&buffer[..length])
    }

    /// Reads a file of any length.
    pub(crate) fn read_all(&self, path: fmt::Arguments<'_>) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        io::Read::read_to_end(&mut std::fs::File::from(self.file(path)?), &mut text)?;
        Ok(text)
    }

    /// A process; none when there is none of that number.
    pub(crate) fn stat(&self, pid: i32) -> Option<Stat> {
        let mut buffer = [0; 1024];
        Stat::parse(self.read(format_args!("{pid}/stat"), &mut buffer).ok()?)
    }

    /// A thread.
    pub(crate) fn thread_stat(&self, pid: i32, tid: i32) -> Option<Stat> {
        let mut buffer = [0; 1024];
        Stat::parse(self.read(format_args!("{pid}/task/{tid}/stat"), &mut buffer).ok()?)
    }

    /// Whether a process ignores all of `signals`; false where that cannot be seen.
    pub(crate) fn ignores(&self, pid: i32, signals: &[Signal]) -> bool {
        let mut buffer = [0; 4096];
        let Ok(text) = self.read(format_args!("{pid}/status"), &mut buffer) else { return false };
        let ignored = ignored_signals(text).unwrap_or(0);
        signals.iter().all(|it| ignored >> (it.as_raw() - 1) & 1 == 1)
    }

    /// Numbers of a process's threads.
    pub(crate) fn threads(&self, pid: i32) -> Vec<i32> {
        self.numbers(format_args!("{pid}/task"))
    }

    /// Numbers of a thread's open descriptors, which mostly are its process's.
    pub(crate) fn descriptors(&self, pid: i32, tid: i32) -> Vec<i32> {
        self.numbers(format_args!("{pid}/task/{tid}/fd"))
    }

    /// How a thread's descriptor was opened; none where that cannot be seen.
    pub(crate) fn access_mode(&self, pid: i32, tid: i32, fd: i32) -> Option<End> {
        let mut buffer = [0; 512];
        let text = self.read(format_args!("{pid}/task/{tid}/fdinfo/{fd}"), &mut buffer).ok()?;
        let flags = text.split(|&b| b == b'\n').find_map(|line| line.strip_prefix(b"flags:"))?;
        // The access mode is the lowest octal digit's lower two bits: 0 reads only.
        Some(match flags.trim_ascii().last()? {
            b'0' | b'4' => End::Reading,
            _ => End::Writing,
        })
    }

    /// Number of the youngest process or thread, dead ones included: it changes with each birth. None
    /// where that cannot be read.
    pub(crate) fn youngest(&self) -> Option<u64> {
        let mut buffer = [0; 128];
        let text = self.read(format_args!("loadavg"), &mut buffer).ok()?;
        std::str::from_utf8(text).ok()?.split_ascii_whitespace().last()?.parse().ok()
    }

    /// The numbers given last, of processes and threads, dead ones included. Whoever goes on as ever new
    /// processes is always among these, whoever his parent is; a list of all is old before its end.
    pub(crate) fn newest(&self) -> Vec<i32> {
        let last = self.youngest().and_then(|it| i32::try_from(it).ok()).unwrap_or(0);
        ((last - NEWEST).max(1)..=last).collect()
    }

    /// Every process there is.
    pub(crate) fn processes(&self) -> Vec<i32> {
        self.numbers(format_args!("."))
    }

    /// Children of all threads of a process.
    pub(crate) fn children(&self, pid: i32) -> Vec<i32> {
        self.threads(pid).into_iter().flat_map(|tid| self.thread_children(pid, tid)).collect()
    }

    /// Children started by, or given to, one thread.
    pub(crate) fn thread_children(&self, pid: i32, tid: i32) -> Vec<i32> {
        let mut buffer = [0; 4096];
        let path = format_args!("{pid}/task/{tid}/children");
        let Ok(text) = self.read(path, &mut buffer) else { return Vec::new() };
        if text.len() < 4096 {
            return parse_numbers(text);
        }
        parse_numbers(&self.read_all(path).unwrap_or_default())
    }

    /// Metadata of what a path leads to.
    pub(crate) fn metadata(&self, path: fmt::Arguments<'_>) -> io::Result<rustix::fs::Stat> {
        metadata_below(self.0.as_fd(), path)
    }

    /// Target of a symbolic link.
    pub(crate) fn link(&self, path: fmt::Arguments<'_>) -> io::Result<Vec<u8>> {
        let target = readlinkat(&self.0, ShortPath::new(path)?.as_str(), Vec::new())?;
        Ok(target.into_bytes())
    }

    /// Entries of a directory whose names are numbers.
    fn numbers(&self, path: fmt::Arguments<'_>) -> Vec<i32> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(path) = ShortPath::new(path) else { return Vec::new() };
        let Ok(directory) = openat(&self.0, path.as_str(), flags, Mode::empty()) else {
            return Vec::new();
        };
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let mut entries = RawDir::new(directory, &mut buffer);
        let mut numbers = Vec::new();
        while let Some(Ok(entry)) = entries.next() {
            if let Some(number) = entry.file_name().to_str().ok().and_then(|it| it.parse().ok()) {
                numbers.push(number);
            }
        }
        numbers
    }
}

/// Metadata of what a path below a folder leads to, which was opened with [`Proc::file`].
pub(crate) fn metadata_below(
    folder: BorrowedFd<'_>,
    path: fmt::Arguments<'_>,
) -> io::Result<rustix::fs::Stat> {
    Ok(statat(folder, ShortPath::new(path)?.as_str(), AtFlags::empty())?)
}

/// Reads a file again that was opened with [`Proc::file`].
pub(crate) fn reread<'b>(file: BorrowedFd<'_>, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    let length = pread(file, &mut *buffer, 0)?;
    Ok(&buffer[..length])
}

/// The set in a `/proc/P/status`; the lowest bit is signal 1.
fn ignored_signals(status: &[u8]) -> Option<u64> {
    let set = status.split(|&b| b == b'\n').find_map(|it| it.strip_prefix(b"SigIgn:"))?;
    u64::from_str_radix(std::str::from_utf8(set).ok()?.trim(), 16).ok()
}

/// Numbers with blanks between them; what is no number is left out.
pub(crate) fn parse_numbers(text: &[u8]) -> Vec<i32> {
    let text = std::str::from_utf8(text).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|it| it.parse().ok()).collect()
}

/// A path on the stack: these are made by the thousand.
struct ShortPath {
    bytes: [u8; 64],
    length: usize,
}

impl ShortPath {
    fn new(path: fmt::Arguments<'_>) -> io::Result<Self> {
        let mut short = Self { bytes: [0; 64], length: 0 };
        short.write_fmt(path).map_err(|_| io::Error::from_raw_os_error(libc::ENAMETOOLONG))?;
        Ok(short)
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl fmt::Write for ShortPath {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_a_command_with_parentheses_and_spaces() {
        let text = b"42 (a) R (b) S 7 42 40 34817 42 4194304 1 2 3 4 5 6 7 8 20 0 3 0 99 0 0\n";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(
            (stat.pid, stat.command.as_str(), stat.state, stat.parent),
            (42, "a) R (b", b'S', 7)
        );
        assert_eq!((stat.group, stat.session, stat.tty), (42, 40, 34817));
        assert_eq!(stat.foreground, 42);
        assert_eq!((stat.threads, stat.start), (3, 99));
    }

    #[test]
    fn refuses_what_is_cut() {
        for text in ["", "42", "42 (a", "42 (a) S 1 2 3", "x (a) S 1 2 3 4 5 6 7 8 9 0"] {
            assert_eq!(Stat::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn reads_what_is_ignored() {
        let status = b"Name:\tbash\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000384004\n";
        assert_eq!(ignored_signals(status), Some(0x38_4004));
        assert_eq!(ignored_signals(b"Name:\tbash\nSigIgn:\t\n"), None);
    }

    #[test]
    fn sees_this_process() {
        let proc = Proc::open().unwrap();
        let pid = i32::try_from(std::process::id()).unwrap();
        assert_eq!(proc.stat(pid).unwrap().pid, pid);
        assert!(proc.threads(pid).contains(&pid));
        assert!(proc.processes().contains(&pid));
        assert!(proc.stat(i32::MAX).is_none());
    }
}
