//! What a sleeping thread waits for, from its system call and the call's arguments.
//!
//! - Numbers are taken from the `syscalls` crate for the architecture the host was built for; a
//!   program of another architecture (32-bit on 64-bit) gives a wrong name, never a terminal it
//!   does not hold, since every descriptor is resolved.
//! - Only interest in *input* counts as waiting for a descriptor.
//! - Structures are read from the thread's memory; without the right to, the answer is
//!   [`Wait::Opaque`].

mod channel;
mod ring;

use std::io;

use syscalls::Sysno;

use super::{descriptor::View, sys::read_memory};
use crate::evidence::{Descriptor, Multiplexer, Wait};

/// `POLLIN | POLLRDNORM`; `EPOLLIN | EPOLLRDNORM` are the same bits.
const INPUT: u32 = 0x41;
/// `POLLOUT | POLLWRNORM`.
const ROOM: u32 = 0x104;
/// `F_SETLKW` and `F_OFD_SETLKW`; the former has another number where a `long` has 32 bits.
const LOCK_COMMANDS: [i32; 3] = [7, 14, 38];
/// Larger sets are looked at only so far.
const MAX_SET: usize = 1024;
/// How many descriptors besides the terminal are told.
const MAX_OTHERS: usize = 64;

/// One thread's system call as `/proc/P/task/T/syscall` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Running,
    /// Blocked, but not in a system call (a page fault).
    None,
    Of {
        number: usize,
        args: [u64; 6],
    },
}

/// One descriptor of a set that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interest {
    fd: i32,
    events: u32,
    /// Inode and file system of what was registered, if that is known.
    file: Option<(u64, u64)>,
}

/// What the thread waits for, given the text of its `syscall` file.
pub(crate) fn wait_of(view: &View<'_>, text: &[u8]) -> Wait {
    match Call::parse(text) {
        Some(Call::Running) => Wait::Running,
        Some(Call::None) => Wait::Other("no system call"),
        Some(Call::Of { number, args }) => {
            let name = Sysno::new(number).map_or("unknown", |it| it.name());
            in_call(view, name, args)
        }
        None => Wait::Opaque,
    }
}

/// The wait of a thread whose `syscall` file cannot be read: what its wait channel tells by itself.
pub(crate) fn unreadable(view: &View<'_>, error: &io::Error) -> Wait {
    match error.raw_os_error() {
        // It vanished between two looks.
        Some(libc::ESRCH | libc::ENOENT) => Wait::Zombie,
        _ => channel(view).map_or(Wait::Opaque, |it| channel::wait_of(&it)),
    }
}

/// The function of the kernel a thread sleeps in; none where it may not be told.
fn channel(view: &View<'_>) -> Option<String> {
    let mut buffer = [0; 128];
    let path = format_args!("{}/task/{}/wchan", view.pid, view.tid);
    let name = String::from_utf8_lossy(view.proc.read(path, &mut buffer).ok()?).trim().to_owned();
    (!name.is_empty() && name != "0").then_some(name)
}

impl Call {
    fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.trim();
        if text == "running" {
            return Some(Self::Running);
        }
        let mut fields = text.split_ascii_whitespace();
        let number = fields.next()?.parse::<i64>().ok()?;
        let Ok(number) = usize::try_from(number) else { return Some(Self::None) };
        let mut args = [0; 6];
        for arg in &mut args {
            *arg = u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok()?;
        }
        Some(Self::Of { number, args })
    }
}

fn in_call(view: &View<'_>, name: &'static str, args: [u64; 6]) -> Wait {
    let decoded = match name {
        "read" | "readv" | "pread64" | "preadv" | "preadv2" | "recvfrom" | "recvmsg"
        | "recvmmsg" | "accept" | "accept4" | "splice" | "tee" | "copy_file_range" => {
            Ok(reading(view, int(args[0])))
        }
        "sendfile" | "sendfile64" => Ok(reading(view, int(args[1]))),
        "open" | "openat" | "openat2" => Ok(opening(view, name)),
        "flock" => Ok(Wait::Lock),
        "fcntl" | "fcntl64" if LOCK_COMMANDS.contains(&int(args[1])) => Ok(Wait::Lock),
        "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" | "sendto" | "sendmsg"
        | "sendmmsg" => Ok(Wait::Writing(view.resolve(int(args[0])).what)),
        "poll" => polled(view, name, args, Ok(milliseconds(args[2]))),
        "ppoll" => polled(view, name, args, duration(view.tid, args[2], 1_000_000)),
        "select" | "_newselect" => selected(view, name, args, duration(view.tid, args[4], 1_000)),
        "pselect6" => selected(view, name, args, duration(view.tid, args[4], 1_000_000)),
        "epoll_wait" | "epoll_pwait" => Ok(epolled(view, name, args, milliseconds(args[3]))),
        "epoll_pwait2" => {
            duration(view.tid, args[3], 1_000_000).map(|it| epolled(view, name, args, it))
        }
        "nanosleep" | "clock_nanosleep" => Ok(Wait::Sleeping),
        "wait4" | "waitid" | "waitpid" => Ok(Wait::Child),
        "pause" | "rt_sigsuspend" | "sigsuspend" => Ok(Wait::Signal),
        "rt_sigtimedwait" if args[2] == 0 => Ok(Wait::Signal),
        "restart_syscall" => Ok(restarted(view, args)),
        "io_uring_enter" => Ok(ring::wait_of(view, int(args[0]), name)),
        _ => Ok(Wait::Other(name)),
    };
    decoded.unwrap_or_else(|error| not_decoded(name, &error))
}

/// The wait of a thread whose memory could not be read.
fn not_decoded(name: &'static str, error: &io::Error) -> Wait {
    match error.raw_os_error() {
        // Forbidden, or this kernel (or who confines us) has no such call.
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => Wait::Opaque,
        _ => Wait::Other(name),
    }
}

/// After a stop and a continue, a timed wait goes on under this number; the registers still hold
/// the first call's arguments, and only the kernel's wait channel tells which call it was.
fn restarted(view: &View<'_>, args: [u64; 6]) -> Wait {
    match channel(view).as_deref() {
        Some(it) if channel::is_poll(it) => in_call(view, "poll", args),
        Some(it) => match channel::wait_of(it) {
            Wait::Opaque => Wait::Other("restart_syscall"),
            told => told,
        },
        None => Wait::Opaque,
    }
}

/// A file is opened at once, but for a FIFO, which waits for its other end.
fn opening(view: &View<'_>, name: &'static str) -> Wait {
    match channel(view) {
        Some(it) if channel::is_fifo(&it) => {
            Wait::OtherInput { on: vec![Descriptor::Pipe], timeout_ms: None }
        }
        _ => Wait::Other(name),
    }
}

fn reading(view: &View<'_>, fd: i32) -> Wait {
    match view.resolve(fd).what {
        Descriptor::Terminal => Wait::TerminalRead { fd },
        Descriptor::Hidden => Wait::Opaque,
        other => Wait::OtherInput { on: vec![other], timeout_ms: None },
    }
}

fn polled(
    view: &View<'_>,
    name: &'static str,
    args: [u64; 6],
    timeout: io::Result<Option<u64>>,
) -> io::Result<Wait> {
    // struct pollfd { int fd; short events; short revents; }
    let count = usize::try_from(args[1]).unwrap_or(MAX_SET).min(MAX_SET);
    let mut memory = vec![0; count * 8];
    read_fully(view.tid, args[0], &mut memory)?;
    let interests =
        memory.as_chunks::<8>().0.iter().filter_map(|&[a, b, c, d, low, high, _, _]| {
            let fd = i32::from_ne_bytes([a, b, c, d]);
            let events = u16::from_ne_bytes([low, high]).into();
            (fd >= 0).then_some(Interest { fd, events, file: None })
        });
    Ok(multiplexed(view, name, Multiplexer::Poll, &interests.collect::<Vec<_>>(), timeout?))
}

fn selected(
    view: &View<'_>,
    name: &'static str,
    args: [u64; 6],
    timeout: io::Result<Option<u64>>,
) -> io::Result<Wait> {
    let count = usize::try_from(args[0]).unwrap_or(MAX_SET).min(MAX_SET);
    // The sets stay as they were passed until the call returns. They are arrays of longs.
    let set = |address: u64| -> io::Result<Vec<u64>> {
        let mut memory = vec![0; if address == 0 { 0 } else { count.div_ceil(64) * 8 }];
        read_fully(view.tid, address, &mut memory)?;
        Ok(memory.as_chunks().0.iter().map(|&word| u64::from_ne_bytes(word)).collect())
    };
    let has =
        |set: &[u64], fd: usize| set.get(fd / 64).is_some_and(|word| word >> (fd % 64) & 1 == 1);
    let (input, room) = (set(args[1])?, set(args[2])?);
    let interests = (0..count).filter_map(|fd| {
        let events =
            if has(&input, fd) { INPUT } else { 0 } | if has(&room, fd) { ROOM } else { 0 };
        let fd = i32::try_from(fd).ok()?;
        (events != 0).then_some(Interest { fd, events, file: None })
    });
    Ok(multiplexed(view, name, Multiplexer::Select, &interests.collect::<Vec<_>>(), timeout?))
}

fn epolled(view: &View<'_>, name: &'static str, args: [u64; 6], timeout: Option<u64>) -> Wait {
    match registered(view, int(args[0])) {
        Ok(interests) => {
            let flat = interests.into_iter().flat_map(|interest| {
                // One level of nesting: the outer instance is readable when the inner one is.
                let resolved = (interest.events & INPUT != 0).then(|| view.resolve(interest.fd));
                match resolved {
                    Some(it) if it.epoll && it.ino == interest.file.map(|(ino, _)| ino) => {
                        match registered(view, interest.fd) {
                            Ok(inner) if !inner.is_empty() => inner,
                            _ => vec![interest],
                        }
                    }
                    _ => vec![interest],
                }
            });
            multiplexed(view, name, Multiplexer::Epoll, &flat.collect::<Vec<_>>(), timeout)
        }
        Err(_) => Wait::Opaque,
    }
}

/// What is registered with an epoll instance.
fn registered(view: &View<'_>, epoll: i32) -> io::Result<Vec<Interest>> {
    let text = view.proc.read_all(format_args!("{}/task/{}/fdinfo/{epoll}", view.pid, view.tid))?;
    Ok(text.split(|&b| b == b'\n').filter_map(parse_registered).take(MAX_SET).collect())
}

/// `tfd: 0 events: 19 data: 0 pos:0 ino:3 sdev:18`, all but the first number in hexadecimal.
fn parse_registered(line: &[u8]) -> Option<Interest> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.trim().strip_prefix("tfd:")?.split_ascii_whitespace();
    let fd = words.next()?.parse().ok()?;
    words.next().filter(|&it| it == "events:")?;
    let events = u32::from_str_radix(words.next()?, 16).ok()?;
    let (mut ino, mut dev) = (None, None);
    for word in words {
        let hex = |prefix| u64::from_str_radix(word.strip_prefix(prefix)?, 16).ok();
        ino = ino.or_else(|| hex("ino:"));
        dev = dev.or_else(|| hex("sdev:"));
    }
    Some(Interest { fd, events, file: ino.zip(dev) })
}

fn multiplexed(
    view: &View<'_>,
    name: &'static str,
    call: Multiplexer,
    interests: &[Interest],
    timeout_ms: Option<u64>,
) -> Wait {
    let mut terminal = None;
    let mut others = Vec::new();
    let mut hidden = false;
    for interest in interests.iter().filter(|it| it.events & INPUT != 0) {
        match what(view, interest, others.len() < MAX_OTHERS) {
            Some(Descriptor::Terminal) => terminal = terminal.or(Some(interest.fd)),
            Some(Descriptor::Hidden) => hidden = true,
            Some(other) => others.push(other),
            None => {}
        }
    }
    if let Some(fd) = terminal {
        return Wait::Multiplexed { call, fd, others, timeout_ms };
    }
    if hidden {
        return Wait::Opaque;
    }
    if !others.is_empty() {
        return Wait::OtherInput { on: others, timeout_ms };
    }
    if let Some(interest) = interests.iter().find(|it| it.events & ROOM != 0) {
        return Wait::Writing(view.resolve(interest.fd).what);
    }
    // A wait for nothing is a sleep, if it ends.
    timeout_ms.map_or(Wait::Other(name), |_| Wait::Sleeping)
}

/// What one entry is; none when it is not the terminal and no more others are wanted.
fn what(view: &View<'_>, interest: &Interest, others_wanted: bool) -> Option<Descriptor> {
    let Some((ino, dev)) = interest.file else {
        let what = view.resolve(interest.fd).what;
        return (others_wanted || what == Descriptor::Terminal).then_some(what);
    };
    // Registered is the open file, whatever its number leads to by now.
    let terminal = view.terminal;
    if (ino, dev) == (terminal.ino, kernel_file_system(terminal.dev)) {
        return Some(Descriptor::Terminal);
    }
    if !others_wanted {
        return None;
    }
    let resolved = view.resolve(interest.fd);
    match resolved.ino {
        Some(it) if it != ino => Some(Descriptor::Other),
        _ => Some(resolved.what),
    }
}

/// `st_dev` as the kernel writes it in `fdinfo`.
fn kernel_file_system(dev: u64) -> u64 {
    u64::from(rustix::fs::major(dev)) << 20 | u64::from(rustix::fs::minor(dev))
}

/// An `int` argument; the upper half of the register may hold anything.
fn int(arg: u64) -> i32 {
    u32::try_from(arg & 0xffff_ffff).unwrap_or_default().cast_signed()
}

/// A timeout of milliseconds; none when negative.
fn milliseconds(arg: u64) -> Option<u64> {
    u64::try_from(int(arg)).ok()
}

/// A `timespec` or `timeval` in milliseconds; none for a null pointer.
fn duration(tid: i32, address: u64, units_per_ms: i64) -> io::Result<Option<u64>> {
    if address == 0 {
        return Ok(None);
    }
    let mut memory = [0; 16];
    read_fully(tid, address, &mut memory)?;
    let [seconds, fraction] = *memory.as_chunks::<8>().0 else { return Ok(None) };
    let (seconds, fraction) = (i64::from_ne_bytes(seconds), i64::from_ne_bytes(fraction));
    Ok(u64::try_from(seconds.saturating_mul(1000).saturating_add(fraction / units_per_ms)).ok())
}

fn read_fully(tid: i32, address: u64, buffer: &mut [u8]) -> io::Result<()> {
    if buffer.is_empty() || read_memory(tid, address, buffer)? == buffer.len() {
        return Ok(());
    }
    Err(io::Error::from_raw_os_error(libc::EFAULT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_a_thread_is_in() {
        let read = b"0 0x3 0x7ffd0000 0x200 0x0 0x0 0x0 0x7ffcffff 0x7f0000\n";
        let args = [3, 0x7ffd_0000, 0x200, 0, 0, 0];
        for (text, call) in [
            (&read[..], Some(Call::Of { number: 0, args })),
            (b"running\n", Some(Call::Running)),
            (b"-1 0x7ffcffff 0x7f0000\n", Some(Call::None)),
            (b"0 0x3\n", None),
            (b"0 3 4 5 6 7 8 9 10\n", None),
            (b"", None),
            (b"\xff", None),
        ] {
            assert_eq!(Call::parse(text), call, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn parses_what_is_registered() {
        let line = b"tfd:       21 events: 80000019 data:   15  pos:0 ino:1f sdev:1a";
        let interest = Interest { fd: 21, events: 0x8000_0019, file: Some((0x1f, 0x1a)) };
        assert_eq!(parse_registered(line), Some(interest));
        // Kernels before 5.0 do not tell the file.
        let line = b"tfd:        0 events:       19 data:                0";
        assert_eq!(parse_registered(line), Some(Interest { fd: 0, events: 0x19, file: None }));
        for line in [&b"pos:\t0"[..], b"flags:\t02", b"tfd: x events: 19", b"tfd: 1 data: 0", b""] {
            assert_eq!(parse_registered(line), None);
        }
    }

    /// The numbers differ between architectures, the names do not.
    #[test]
    fn calls_have_the_same_names_on_every_architecture() {
        use syscalls::{aarch64, x86_64};
        for (on_x86_64, on_aarch64, name) in [
            (0, Some(63), "read"),
            (19, Some(65), "readv"),
            (7, None, "poll"),
            (271, Some(73), "ppoll"),
            (23, None, "select"),
            (270, Some(72), "pselect6"),
            (232, None, "epoll_wait"),
            (281, Some(22), "epoll_pwait"),
            (441, Some(441), "epoll_pwait2"),
            (35, Some(101), "nanosleep"),
            (230, Some(115), "clock_nanosleep"),
            (61, Some(260), "wait4"),
            (247, Some(95), "waitid"),
            (219, Some(128), "restart_syscall"),
            (426, Some(426), "io_uring_enter"),
            (257, Some(56), "openat"),
            (73, Some(32), "flock"),
            (72, Some(25), "fcntl"),
            (275, Some(76), "splice"),
            (40, Some(71), "sendfile"),
            (45, Some(207), "recvfrom"),
            (43, Some(202), "accept"),
            (1, Some(64), "write"),
        ] {
            assert_eq!(x86_64::Sysno::new(on_x86_64).map(|it| it.name()), Some(name));
            if let Some(number) = on_aarch64 {
                assert_eq!(aarch64::Sysno::new(number).map(|it| it.name()), Some(name));
            }
        }
    }

    /// A name that no architecture has would never be met.
    #[test]
    fn every_name_is_one_of_a_call() {
        use std::collections::HashSet;

        use syscalls::{aarch64, x86_64};
        const EVERYWHERE: [&str; 38] = [
            "read",
            "readv",
            "pread64",
            "preadv",
            "preadv2",
            "recvfrom",
            "recvmsg",
            "recvmmsg",
            "accept",
            "accept4",
            "splice",
            "tee",
            "copy_file_range",
            "sendfile",
            "openat",
            "openat2",
            "flock",
            "fcntl",
            "write",
            "writev",
            "pwrite64",
            "pwritev",
            "pwritev2",
            "sendto",
            "sendmsg",
            "sendmmsg",
            "ppoll",
            "pselect6",
            "epoll_pwait",
            "epoll_pwait2",
            "nanosleep",
            "clock_nanosleep",
            "wait4",
            "waitid",
            "rt_sigsuspend",
            "rt_sigtimedwait",
            "restart_syscall",
            "io_uring_enter",
        ];
        const OLD: [&str; 5] = ["open", "poll", "select", "epoll_wait", "pause"];
        let on_x86_64: HashSet<_> =
            (0..1024).filter_map(x86_64::Sysno::new).map(|it| it.name()).collect();
        let on_aarch64: HashSet<_> =
            (0..1024).filter_map(aarch64::Sysno::new).map(|it| it.name()).collect();
        for name in EVERYWHERE {
            assert!(on_x86_64.contains(name) && on_aarch64.contains(name), "{name}");
        }
        for name in OLD {
            assert!(on_x86_64.contains(name) && !on_aarch64.contains(name), "{name}");
        }
    }

    #[test]
    fn memory_that_may_not_be_read_hides_a_wait() {
        for (code, wait) in [
            (libc::EPERM, Wait::Opaque),
            (libc::EACCES, Wait::Opaque),
            (libc::ENOSYS, Wait::Opaque),
            (libc::EFAULT, Wait::Other("poll")),
            (libc::ESRCH, Wait::Other("poll")),
        ] {
            assert_eq!(not_decoded("poll", &io::Error::from_raw_os_error(code)), wait, "{code}");
        }
    }

    #[test]
    fn arguments_are_as_wide_as_the_calls_say() {
        assert_eq!(int(0xffff_ffff_0000_0007), 7);
        assert_eq!(int(0x0000_0000_ffff_ffff), -1);
        assert_eq!(milliseconds(0xffff_ffff_ffff_ffff), None);
        assert_eq!(milliseconds(0x0000_0001_0000_0064), Some(100));
    }

    #[test]
    fn reads_times_from_memory() {
        let pid = std::process::id().cast_signed();
        let time = [2i64, 500_000_000];
        let address = u64::try_from(time.as_ptr().addr()).unwrap();
        assert_eq!(duration(pid, address, 1_000_000).unwrap(), Some(2500));
        assert_eq!(duration(pid, 0, 1_000_000).unwrap(), None);
        assert_eq!(duration(pid, 8, 1_000_000).unwrap_err().raw_os_error(), Some(libc::EFAULT));
    }
}
