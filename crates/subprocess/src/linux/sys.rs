//! The calls that need `unsafe`: the start of a child, from `clone` to `exec`, the fork of the
//! supervisor, a look into another process's memory, a question to the C library, the descriptor
//! inside portable-pty's master, and the promise tokio wants about a descriptor it watches.
//!
//! This is the one module of the crate where `unsafe` is allowed; each use says why it is sound.
#![expect(unsafe_code, reason = "the audited module of the crate")]

use std::{
    collections::BTreeMap,
    ffi::{CStr, CString, OsStr},
    io::{self, Read as _},
    os::{
        fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
        unix::ffi::OsStrExt as _,
    },
    panic::{AssertUnwindSafe, catch_unwind},
};

use portable_pty::MasterPty;
use rustix::{
    fs::Mode,
    io::Errno,
    process::{Pid, WaitId, WaitIdOptions, getegid, geteuid, waitid},
    thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs},
};
use tokio::io::{Interest, unix::AsyncFd};

use super::{holds::OfEach, inherited};
use crate::host::{Confinement, TerminalSpec};

/// A start of a session's leader, laid out whole: the child only makes system calls.
pub(crate) struct Start {
    program: CString,
    args: Vec<CString>,
    env: Vec<CString>,
    cwd: CString,
    born: Born,
    /// Becomes the limit on unblocked real-time CPU time (see [`Mark`](super::mark::Mark)).
    rttime_mark: u64,
    umask: Mode,
    confinement: Confinement,
    of_each: OfEach,
}

/// Where a child is born.
#[derive(Clone, Debug, Default)]
pub(crate) struct Born {
    /// In a PID namespace of its own, with a `/proc` of that.
    pub(crate) pid_namespace: bool,
    /// In a user namespace of its own, in which its user and group are themselves and nobody else is:
    /// in there, whoever is born may do what needs a privilege outside.
    pub(crate) as_user: Option<UserMaps>,
}

/// What is written to the maps of a user namespace.
#[derive(Clone, Debug)]
pub(crate) struct UserMaps {
    user: String,
    group: String,
}

impl UserMaps {
    /// The user and the group of this process, as themselves.
    pub(crate) fn own() -> Self {
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        Self { user: format!("{user} {user} 1"), group: format!("{group} {group} 1") }
    }
}

impl Start {
    /// Lays out the start of `spec`, whose environment is marked besides. Fails for a NUL in a text.
    pub(crate) fn new(
        spec: &TerminalSpec,
        (variable, mark): (&str, &str),
        rttime_mark: u64,
        born: Born,
        of_each: OfEach,
    ) -> io::Result<Self> {
        let text = |it: &OsStr| CString::new(it.as_bytes()).map_err(io::Error::from);
        let mut args = vec![text(spec.program.as_os_str())?];
        for it in &spec.args {
            args.push(text(it.as_ref())?);
        }
        // Of two values of one name the last counts.
        let mut env: BTreeMap<&str, &str> =
            spec.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        env.insert(variable, mark);
        let env = env.iter().map(|(name, value)| format!("{name}={value}"));
        let env = env.map(|it| text(it.as_ref())).collect::<io::Result<_>>()?;
        Ok(Self {
            program: text(spec.program.as_os_str())?,
            args,
            env,
            cwd: text(spec.cwd.as_os_str())?,
            born,
            rttime_mark,
            umask: Mode::from_raw_mode(spec.umask.into()),
            confinement: spec.confinement.clone(),
            of_each,
        })
    }

    /// Starts it as the leader of a new session on `terminal`: default signal dispositions, an empty
    /// signal mask, no descriptor but 0, 1 and 2; limits and priority are a fresh login's. A
    /// confinement holds for the program and all it starts. A failed `exec` is an error here.
    ///
    /// It is born into the control group behind `group`, where the kernel can do that, and moves into
    /// those behind `entrances`.
    pub(crate) fn leader(
        &self,
        terminal: BorrowedFd<'_>,
        group: Option<BorrowedFd<'_>>,
        entrances: &[BorrowedFd<'_>],
    ) -> io::Result<Child> {
        let pointers = |texts: &[CString]| {
            let all = texts.iter().map(|it| it.as_ptr()).chain([std::ptr::null()]);
            all.collect::<Vec<_>>()
        };
        let (args, env) = (pointers(&self.args), pointers(&self.env));
        let become_program = || {
            for entrance in entrances {
                move_in(*entrance)?;
            }
            // SAFETY: this is a child that is about to become another program.
            unsafe { self.prepare(terminal) }?;
            // SAFETY: both lists end with a null, and what they point to lives in `self`.
            unsafe { libc::execve(self.program.as_ptr(), args.as_ptr(), env.as_ptr()) };
            Err(io::Error::last_os_error())
        };
        // SAFETY: `become_program` makes system calls and nothing else: it neither allocates nor takes
        // a lock (an `io::Error` of an OS code is a plain number).
        unsafe { in_child(self.born.flags(), group, become_program) }
    }

    /// Makes the calling process what the program is to find.
    ///
    /// # Safety
    /// Only for a freshly forked child that becomes another program: signals, descriptors and rights
    /// of the calling process are changed.
    unsafe fn prepare(&self, terminal: BorrowedFd<'_>) -> io::Result<()> {
        // The kernel's `struct sigaction`, whose order of fields depends on the architecture: all
        // zero is the default disposition without flags.
        let default = [0u64; 4];
        let nowhere = std::ptr::null_mut::<u64>();
        let limit = libc::rlimit { rlim_cur: self.rttime_mark, rlim_max: self.rttime_mark };
        // SAFETY: every call below is async-signal-safe, takes plain values or pointers to live
        // variables, and touches no memory shared with the host.
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
            inherited::reset(self.umask);
            self.of_each.set();
            // Refused where the host itself is limited further: the mark is then one sign less.
            libc::setrlimit(libc::RLIMIT_RTTIME, &raw const limit);
            for stream in 0..3 {
                or_errno(libc::dup2(terminal.as_raw_fd(), stream))?;
            }
            close_on_exec_above_stderr();
            or_errno(libc::setsid())?;
            or_errno(libc::ioctl(0, libc::TIOCSCTTY, 0))?;
        }
        self.born.settle()?;
        if let Confinement::Namespaces(namespaces) = &self.confinement {
            for namespace in namespaces.iter() {
                // SAFETY: a plain system call on a number.
                or_errno(unsafe { libc::setns(namespace.as_raw_fd(), 0) })?;
            }
        }
        // Not before: entering a mount namespace puts one at its root.
        // SAFETY: the path is a string that outlives the call.
        or_errno(unsafe { libc::chdir(self.cwd.as_ptr()) })?;
        // Last: what comes before may need what is given up here.
        match &self.confinement {
            Confinement::None => Ok(()),
            Confinement::Namespaces(_) => give_up_privileges(),
            // SAFETY: as promised by the caller.
            Confinement::Landlock(ruleset) => unsafe { restrict_self(ruleset.as_raw_fd()) },
        }
    }
}

impl Born {
    fn flags(&self) -> libc::c_int {
        let own = if self.pid_namespace { libc::CLONE_NEWPID | libc::CLONE_NEWNS } else { 0 };
        own | if self.as_user.is_some() { libc::CLONE_NEWUSER } else { 0 }
    }

    /// What is left to do for the child itself. Makes system calls only.
    fn settle(&self) -> io::Result<()> {
        if let Some(maps) = &self.as_user {
            // The group may be mapped only where no group can be given up.
            write_file(c"/proc/self/setgroups", "deny")?;
            write_file(c"/proc/self/uid_map", &maps.user)?;
            write_file(c"/proc/self/gid_map", &maps.group)?;
        }
        if self.pid_namespace {
            let (none, proc, root) = (c"none".as_ptr(), c"proc".as_ptr(), c"/".as_ptr());
            let nowhere = std::ptr::null();
            // Mounts of the host go on to appear; those of the child stay with it.
            let slave = libc::MS_REC | libc::MS_SLAVE;
            let usual = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
            // SAFETY: two system calls with constant strings.
            unsafe {
                or_errno(libc::mount(none, root, std::ptr::null(), slave, nowhere))?;
                or_errno(libc::mount(proc, c"/proc".as_ptr(), proc, usual, nowhere))?;
            }
        }
        Ok(())
    }

    /// Whether children can be born like this.
    pub(crate) fn works(&self) -> io::Result<()> {
        // SAFETY: `settle` makes system calls and nothing else.
        let child = unsafe { in_child(self.flags(), None, || self.settle()) }?;
        wait_for(child.pid);
        Ok(())
    }
}

/// Moves this process into the control group behind `entrance`. Makes a system call only.
fn move_in(entrance: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: a plain system call on a constant.
    match unsafe { libc::write(entrance.as_raw_fd(), c"0".as_ptr().cast(), 1) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Whether a child can be born into the control group behind `group`; fails where it cannot move into
/// the one behind `entrance`.
pub(crate) fn can_be_born_in(
    group: Option<BorrowedFd<'_>>,
    entrance: Option<BorrowedFd<'_>>,
) -> io::Result<bool> {
    // SAFETY: it makes a system call at most.
    let child = unsafe { in_child(0, group, || entrance.map_or(Ok(()), move_in)) }?;
    wait_for(child.pid);
    Ok(child.in_group)
}

fn write_file(path: &CStr, text: &str) -> io::Result<()> {
    // SAFETY: plain system calls on a string and a buffer that outlive them.
    unsafe {
        let file = or_errno(libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC))?;
        let written = libc::write(file, text.as_ptr().cast(), text.len());
        let done = if written == -1 { Err(io::Error::last_os_error()) } else { Ok(()) };
        libc::close(file);
        done
    }
}

fn or_errno(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// A child that was started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child {
    /// Nobody has collected it.
    pub(crate) pid: i32,
    /// It was born into the group that was asked for.
    pub(crate) in_group: bool,
}

/// Runs `work` in a child and the child's end, status 0, behind it. An error of `work` is an error
/// here, and the child is collected then. Returns when `work` is over or has become a program.
///
/// # Safety
/// `work` must be async-signal-safe: the child lacks the other threads, and with them whoever holds a
/// lock, also that of the allocator.
unsafe fn in_child(
    flags: libc::c_int,
    group: Option<BorrowedFd<'_>>,
    work: impl FnOnce() -> io::Result<()>,
) -> io::Result<Child> {
    let (mut reader, writer) = io::pipe()?;
    // SAFETY: the child below does nothing but what the caller promises, write a number, and end.
    let child = unsafe { clone(flags, group) }?;
    if child.pid == 0 {
        let status = match work() {
            Ok(()) => 0,
            Err(error) => {
                let code = error.raw_os_error().unwrap_or(libc::EIO).to_ne_bytes();
                // SAFETY: writes a live array. Nobody could be told of a failure.
                unsafe { libc::write(writer.as_raw_fd(), code.as_ptr().cast(), code.len()) };
                1
            }
        };
        // SAFETY: ends the child without running what the host has registered for its own end.
        unsafe { libc::_exit(status) }
    }
    drop(writer);
    let mut code = [0; 4];
    match reader.read_exact(&mut code) {
        Ok(()) => {
            wait_for(child.pid);
            Err(io::Error::from_raw_os_error(i32::from_ne_bytes(code)))
        }
        Err(_) => Ok(child),
    }
}

/// Collects a child that has ended or is just about to.
fn wait_for(pid: i32) {
    let Some(id) = Pid::from_raw(pid) else { return };
    while waitid(WaitId::Pid(id), WaitIdOptions::EXITED).err() == Some(Errno::INTR) {}
}

/// Forks. In the child the number is 0.
///
/// # Safety
/// Until it becomes another program or ends, the child may make async-signal-safe calls only.
unsafe fn clone(flags: libc::c_int, group: Option<BorrowedFd<'_>>) -> io::Result<Child> {
    /// Linux 5.7.
    const INTO_CGROUP: u64 = 0x2_0000_0000;
    let born = |pid: libc::c_long, in_group| {
        let pid = i32::try_from(pid).map_err(io::Error::other)?;
        Ok(Child { pid, in_group })
    };
    if let Some(group) = group {
        // SAFETY: all zero is valid, and means "not that".
        let mut asked = unsafe { std::mem::zeroed::<libc::clone_args>() };
        asked.flags = u64::from(flags.cast_unsigned()) | INTO_CGROUP;
        asked.exit_signal = u64::from(libc::SIGCHLD.cast_unsigned());
        asked.cgroup = u64::from(group.as_raw_fd().cast_unsigned());
        // SAFETY: without `CLONE_VM` this is a fork; the structure is live, and its size is told.
        let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const asked, size_of_val(&asked)) };
        if pid != -1 {
            return born(pid, true);
        }
        // A container may forbid this call as a whole. What else is wrong the next one says.
    }
    let flags = libc::c_long::from(flags | libc::SIGCHLD);
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: without `CLONE_VM` this is a fork, and no pointer is passed.
    match unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) } {
        -1 => Err(io::Error::last_os_error()),
        pid => born(pid, false),
    }
}

/// Puts the calling process under a Landlock ruleset, for ever: without a way to new privileges, and
/// without the capabilities that reach around any rule about files.
///
/// # Safety
/// Only for a freshly forked child: what the calling thread may do changes.
unsafe fn restrict_self(ruleset: RawFd) -> io::Result<()> {
    // The kernel asks for it of whoever restricts itself without a capability, lest a set-user-id
    // program runs into rules it knows nothing of.
    give_up_privileges()?;
    // SAFETY: a plain system call on numbers; a descriptor that is no ruleset is an error return.
    if unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) } == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Takes from the calling thread the capabilities that reach around a confinement; no `exec` brings
/// one back.
fn give_up_privileges() -> io::Result<()> {
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
