//! The calls that need `unsafe`: the part of a child's start between `fork` and `exec`, the fork of
//! the supervisor, a look into another process's memory, a question to the C library, the descriptor inside portable-pty's master, and the promise tokio
//! wants about a descriptor it watches.
//!
//! This is the one module of the crate where `unsafe` is allowed; each use says why it is sound.
#![expect(unsafe_code, reason = "the audited module of the crate")]

use std::{
    io,
    os::{
        fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
        unix::process::CommandExt as _,
    },
    panic::{AssertUnwindSafe, catch_unwind},
    process::{Child, Command},
};

use portable_pty::MasterPty;
use rustix::{
    fs::Mode,
    thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs},
};
use tokio::io::{Interest, unix::AsyncFd};

use super::inherited;

/// Starts `command`, whose standard input must be a terminal, as the leader of a new session on
/// that terminal: default signal dispositions, an empty signal mask, no descriptor but 0, 1 and 2.
///
/// `rttime_mark` becomes the limit on unblocked real-time CPU time (see [`Mark`](super::mark::Mark)).
/// The umask is `mask`; limits and priority are a fresh login's. With a Landlock ruleset, its rules hold
/// for the program and all it starts. A failed `exec` is an error here.
pub(crate) fn spawn_session_leader(
    command: &mut Command,
    rttime_mark: u64,
    mask: Mode,
    ruleset: Option<BorrowedFd<'_>>,
) -> io::Result<Child> {
    let ruleset = ruleset.map(|it| it.as_raw_fd());
    let prepare = move || {
        // The kernel's `struct sigaction`, whose order of fields depends on the architecture: all
        // zero is the default disposition without flags.
        let default = [0u64; 4];
        let nowhere = std::ptr::null_mut::<u64>();
        let limit = libc::rlimit { rlim_cur: rttime_mark, rlim_max: rttime_mark };
        // SAFETY: every call below is async-signal-safe, takes plain values or pointers to live
        // stack variables, and touches no memory shared with other threads of the host.
        unsafe {
            for signal in 1..=64 {
                // Not through the C library, which keeps two numbers to itself. Fails for KILL and
                // STOP, which have no other disposition.
                let size = size_of::<u64>();
                libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), nowhere, size);
            }
            let mut none = std::mem::zeroed::<libc::sigset_t>();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            inherited::reset(mask);
            // Refused where the host itself is limited further: the mark is then one sign less.
            libc::setrlimit(libc::RLIMIT_RTTIME, &raw const limit);
            close_on_exec_above_stderr();
            if libc::setsid() == -1 || libc::ioctl(0, libc::TIOCSCTTY, 0) == -1 {
                return Err(io::Error::last_os_error());
            }
            // Last: what comes before may need what is given up here.
            if let Some(ruleset) = ruleset {
                restrict_self(ruleset)?;
            }
        }
        Ok(())
    };
    // SAFETY: `prepare` runs between fork and exec and only makes async-signal-safe calls; it
    // neither allocates nor takes a lock (an `io::Error` of an OS code is a plain number).
    unsafe { command.pre_exec(prepare) }.spawn()
}

/// Puts the calling process under a Landlock ruleset, for ever: without a way to new privileges, and
/// without the capabilities that reach around any rule about files.
///
/// # Safety
/// Only for a freshly forked child: what the calling thread may do changes.
unsafe fn restrict_self(ruleset: RawFd) -> io::Result<()> {
    // The kernel asks for this of whoever restricts itself without a capability, lest a set-user-id
    // program runs into rules it knows nothing of. With it, no `exec` brings a capability back.
    set_no_new_privs(true)?;
    let all = capabilities(None)?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: all.effective & UNDER_RULES,
            permitted: all.permitted & UNDER_RULES,
            inheritable: all.inheritable & UNDER_RULES,
        },
    )?;
    // SAFETY: a plain system call on numbers; a descriptor that is no ruleset is an error return.
    if unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) } == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// What a privileged process keeps under a ruleset: about what the root of a container has, device
/// nodes left out. Loading modules, raw access to devices and the like is gone.
const UNDER_RULES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::AUDIT_WRITE)
    .union(CapabilitySet::SETFCAP);

/// Marks every descriptor above 2 close-on-exec; the one `std` reports a failed exec on is marked
/// already and must stay open until then.
///
/// # Safety
/// Only for a freshly forked child: the descriptors of the calling process are changed.
unsafe fn close_on_exec_above_stderr() {
    // SAFETY: plain system calls on descriptor numbers; a number that is not open is an error
    // return and nothing else.
    unsafe {
        let flags = libc::CLOSE_RANGE_CLOEXEC;
        if libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, flags) == 0 {
            return;
        }
        // Kernels before 5.11.
        let mut limit = libc::rlimit { rlim_cur: 1024, rlim_max: 1024 };
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        let end = libc::c_int::try_from(limit.rlim_cur).unwrap_or(65_536).min(65_536);
        for fd in 3..end {
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}

/// Lets the children that this thread starts from now on live in a PID namespace of their own, the
/// first of them as its process 1. Such a thread can start no threads, and should soon end.
pub(crate) fn unshare_pid_namespace() -> io::Result<()> {
    // SAFETY: it changes where children of this thread are born, and no memory.
    if unsafe { libc::unshare(libc::CLONE_NEWPID) } == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

/// Gives `command` a `/proc` of the PID namespace that it is born in. Nobody else sees that one.
pub(crate) fn mount_own_proc(command: &mut Command) {
    let prepare = || {
        let (none, proc, root) = (c"none".as_ptr(), c"proc".as_ptr(), c"/".as_ptr());
        let nowhere = std::ptr::null();
        // Mounts of the host go on to appear; those of the child stay with it.
        let slave = libc::MS_REC | libc::MS_SLAVE;
        let usual = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        // SAFETY: three system calls with constant strings.
        let done = unsafe {
            libc::unshare(libc::CLONE_NEWNS) == 0
                && libc::mount(none, root, std::ptr::null(), slave, nowhere) == 0
                && libc::mount(proc, c"/proc".as_ptr(), proc, usual, nowhere) == 0
        };
        if done { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: `prepare` runs between fork and exec and makes system calls only.
    unsafe { command.pre_exec(prepare) };
}

/// Runs `work` in a copy of this process, which ends with it: in a session of its own, with every
/// signal blocked and no descriptor but `kept`. The number of the copy.
///
/// Refused unless this process has exactly one thread: the copy would lack the others, and with
/// them whoever holds a lock.
pub(crate) fn fork_for(kept: &OwnedFd, work: impl FnOnce(OwnedFd)) -> io::Result<i32> {
    const KEPT: libc::c_int = 3;
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("this process has other threads by now"));
    }
    // SAFETY: there is one thread, so the copy is whole: no lock is held by a thread that it lacks,
    // and it may do whatever this process may.
    match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {}
        pid => return Ok(pid),
    }
    // SAFETY: plain system calls. All descriptors but `KEPT` are closed although values of this
    // copy own some of them: none of these is used or dropped any more, since the copy ends
    // without unwinding beyond this function. `KEPT` is owned by nobody else.
    let kept = unsafe {
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        libc::setsid();
        if libc::dup2(kept.as_raw_fd(), KEPT) == -1 {
            libc::_exit(1);
        }
        for fd in 0..KEPT {
            libc::close(fd);
        }
        if libc::syscall(libc::SYS_close_range, KEPT + 1, u32::MAX, 0) != 0 {
            let mut limit = libc::rlimit { rlim_cur: 1024, rlim_max: 1024 };
            libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
            let end = libc::c_int::try_from(limit.rlim_cur).unwrap_or(65_536).min(65_536);
            for fd in KEPT + 1..end {
                libc::close(fd);
            }
        }
        OwnedFd::from_raw_fd(KEPT)
    };
    let done = catch_unwind(AssertUnwindSafe(|| work(kept)));
    // SAFETY: ends the copy without running what the original has registered for its own end.
    unsafe { libc::_exit(i32::from(done.is_err())) }
}

/// Whether the C library of this host knows a locale of that name. Not one with a NUL in it.
pub fn has_locale(name: &str) -> bool {
    let Ok(name) = std::ffi::CString::new(name) else { return false };
    // SAFETY: `name` is a string that outlives the call; a null base asks for a locale of its own,
    // which nobody else knows and which is freed here. Neither call touches the current locale.
    unsafe {
        let found = libc::newlocale(libc::LC_CTYPE_MASK, name.as_ptr(), std::ptr::null_mut());
        if found.is_null() {
            return false;
        }
        libc::freelocale(found);
    }
    true
}

/// Reads `buffer.len()` bytes at `address` of process `pid`; fewer where the mapping ends.
///
/// Fails like `process_vm_readv(2)`: `EPERM` without the right to trace it, `EFAULT` where
/// nothing is mapped.
pub(crate) fn read_memory(pid: i32, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let length = buffer.len();
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: length };
    let base = usize::try_from(address).map_err(|_| io::Error::from_raw_os_error(libc::EFAULT))?;
    let remote = libc::iovec { iov_base: base as *mut libc::c_void, iov_len: length };
    // SAFETY: `local` describes `buffer`, which is writable and outlives the call; `remote` is only
    // interpreted in the other process, by the kernel.
    let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// The unit of times in `/proc`.
pub(crate) fn clock_ticks_per_second() -> u64 {
    // SAFETY: it only answers a number.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100)
}

/// The unit of memory in `/proc`.
pub(crate) fn page_size() -> u64 {
    // SAFETY: it only answers a number.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// A descriptor of our own for the terminal behind `master`.
pub(crate) fn duplicate_master(master: &dyn MasterPty) -> io::Result<OwnedFd> {
    let fd = master.as_raw_fd().ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
    // SAFETY: `master` is borrowed for the whole function and keeps `fd` open.
    unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()
}

/// Watches a descriptor for readiness. Needs a tokio runtime.
pub(crate) fn watch(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open for as long as it exists, always answers the same number, and the
    // `AsyncFd` owns it from here on.
    Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
}
