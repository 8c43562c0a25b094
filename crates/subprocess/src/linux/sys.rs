//! The calls that need `unsafe`: the part of a child's start between `fork` and `exec`, a look
//! into another process's memory, the descriptor inside portable-pty's master, and the promise tokio
//! wants about a descriptor it watches.
//!
//! This is the one module of the crate where `unsafe` is allowed; each use says why it is sound.
#![expect(unsafe_code, reason = "the audited module of the crate")]

use std::{
    io,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::process::CommandExt as _,
    },
    process::{Child, Command},
};

use portable_pty::MasterPty;
use tokio::io::{Interest, unix::AsyncFd};

/// Starts `command`, whose standard input must be a terminal, as the leader of a new session on
/// that terminal: default signal dispositions, an empty signal mask, no descriptor but 0, 1 and 2.
///
/// `rttime_mark` becomes the limit on unblocked real-time CPU time (see [`Mark`](super::mark::Mark)).
/// The umask is the host's, as with any program a user starts. A failed `exec` is an error here.
pub(crate) fn spawn_session_leader(command: &mut Command, rttime_mark: u64) -> io::Result<Child> {
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
            // Refused where the host itself is limited further: the mark is then one sign less.
            libc::setrlimit(libc::RLIMIT_RTTIME, &raw const limit);
            close_on_exec_above_stderr();
            if libc::setsid() == -1 || libc::ioctl(0, libc::TIOCSCTTY, 0) == -1 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: `prepare` runs between fork and exec and only makes async-signal-safe calls; it
    // neither allocates nor takes a lock (an `io::Error` of an OS code is a plain number).
    unsafe { command.pre_exec(prepare) }.spawn()
}

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
