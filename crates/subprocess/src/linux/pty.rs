//! One pseudo-terminal: the master we read and write, a slave of our own for the fences, modes.
//!
//! - portable-pty opens and resizes it; its writer is never taken, because dropping that writer
//!   types a newline and EOT into the program.
//! - Nothing here blocks: the master is non-blocking, and so is the kept slave, which is an open
//!   file of its own and shares no flags with the child's.
//! - While the slave is kept, the master reports no end of file when the last program is gone.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
    path::PathBuf,
};

use portable_pty::{MasterPty, PtyPair, PtySize, native_pty_system};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_getfl, fcntl_setfl, fstat},
    io::{Errno, ioctl_fionread, read},
    pty::{OpenptFlags, ioctl_tiocgptpeer},
    termios::{
        InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, tcflush,
        tcgetattr, tcgetpgrp, tcsetattr,
    },
};
use tokio::io::{Interest, unix::AsyncFd};

use super::{
    arrivals::Arrivals,
    settings::Settings,
    sys::{duplicate_master, watch},
};
use crate::{
    evidence::{Enter, LineSetting, Modes},
    host::{SpawnError, TerminalSize},
};

/// What the reader's side holds when it is full.
const READER_SIDE: u64 = 4_095;

/// A terminal whose other side a child may be started on.
pub(crate) struct Pty {
    master: Arrivals,
    /// None once the output has ended, so that the line can hang up.
    slave: Option<OwnedFd>,
    identity: TerminalIdentity,
    name: Option<PathBuf>,
    /// The line as it was when it was opened.
    settings: Settings,
    /// Only for its size. Dropped last: the line hangs up when both descriptors are gone.
    portable: Box<dyn MasterPty + Send>,
}

/// What makes a descriptor of another process *this* terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TerminalIdentity {
    /// File system, inode and device number of the slave.
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    pub(crate) rdev: u64,
    /// Device number as `/proc/P/stat` shows it.
    pub(crate) tty: i32,
}

impl TerminalIdentity {
    /// Of an open slave.
    pub(crate) fn of(slave: &rustix::fs::Stat) -> Self {
        Self {
            dev: slave.st_dev,
            ino: slave.st_ino,
            rdev: slave.st_rdev,
            tty: kernel_device_number(slave.st_rdev),
        }
    }
}

impl Pty {
    /// Opens a terminal. Needs a tokio runtime.
    pub(crate) fn open(size: TerminalSize) -> Result<Self, SpawnError> {
        // The first slave stays open until there is another: without any, the line hangs up.
        let PtyPair { master: portable, slave: _first } = native_pty_system()
            .openpty(pty_size(size))
            .map_err(|error| at("open a pseudo-terminal")(io::Error::other(error.to_string())))?;
        let master = duplicate_master(&*portable).map_err(at("duplicate the master"))?;
        let flags = fcntl_getfl(&master).map_err(at("read the master's flags"))?;
        fcntl_setfl(&master, flags | OFlags::NONBLOCK).map_err(at("make it non-blocking"))?;
        let slave = open_slave(&master, OFlags::NONBLOCK).map_err(at("open the other side"))?;
        let stat = fstat(&slave).map_err(at("identify the terminal"))?;
        let identity = TerminalIdentity::of(&stat);
        let settings = Settings::of(&slave).map_err(at("read its modes"))?;
        let name = portable.tty_name();
        let master = Arrivals::at(master).map_err(at("watch the master"))?;
        Ok(Self { master, slave: Some(slave), identity, name, settings, portable })
    }

    /// A new, blocking open file of the slave, for a child's standard streams.
    pub(crate) fn slave_for_child(&self) -> io::Result<OwnedFd> {
        open_slave(self.master.get_ref(), OFlags::empty())
    }

    pub(crate) fn master(&self) -> &Arrivals {
        &self.master
    }

    /// Another watch on the master, for room for more input; none where no descriptor is left.
    pub(crate) fn watch_room(&self) -> Option<AsyncFd<OwnedFd>> {
        watch(self.master.get_ref().try_clone().ok()?, Interest::WRITABLE).ok()
    }

    pub(crate) fn identity(&self) -> TerminalIdentity {
        self.identity
    }

    /// Path of the slave in our own mount namespace.
    pub(crate) fn name(&self) -> Option<&PathBuf> {
        self.name.as_ref()
    }

    /// Gives up the kept slave; the input fence and the reader test are gone with it.
    pub(crate) fn close_slave(&mut self) {
        self.slave = None;
    }

    pub(crate) fn resize(&self, size: TerminalSize) -> io::Result<()> {
        self.portable.resize(pty_size(size)).map_err(|error| io::Error::other(error.to_string()))
    }

    /// Foreground process group; none when the terminal has none.
    pub(crate) fn foreground(&self) -> Option<i32> {
        tcgetpgrp(self.master.get_ref()).ok().map(|it| it.as_raw_nonzero().get())
    }

    pub(crate) fn modes(&self) -> Option<Modes> {
        modes(self.master.get_ref())
    }

    /// Input fence: polling the slave first moves everything that was written to the master to the
    /// reader's side, so "not readable" means it was all taken (or is an unfinished line).
    pub(crate) fn unread_input(&self) -> Option<bool> {
        readable(self.slave.as_ref()?)
    }

    /// Bytes of input that wait on the reader's side; none where that is full, so that there may be
    /// more behind.
    pub(crate) fn unread_bytes(&self) -> Option<u64> {
        self.readers_side().filter(|unread| *unread < READER_SIDE)
    }

    /// Bytes of input on the reader's side.
    fn readers_side(&self) -> Option<u64> {
        let slave = self.slave.as_ref()?;
        // Moves what was written there first.
        readable(slave)?;
        ioctl_fionread(slave).ok()
    }

    /// Settings that are not as they were when the line was opened.
    pub(crate) fn changed_settings(&self) -> Vec<LineSetting> {
        tcgetattr(self.master.get_ref())
            .map_or_else(|_| Vec::new(), |now| self.settings.changed(&now))
    }

    /// Makes every changed setting what it was; which ones.
    pub(crate) fn restore_settings(&self) -> Vec<LineSetting> {
        let restored = tcgetattr(self.master.get_ref()).and_then(|mut termios| {
            let restored = self.settings.restore(&mut termios);
            if !restored.is_empty() {
                tcsetattr(self.master.get_ref(), OptionalActions::Now, &termios)?;
            }
            Ok(restored)
        });
        restored.unwrap_or_else(|error| {
            tracing::debug!(%error, "the terminal's modes were not restored");
            Vec::new()
        })
    }

    /// Drops the input on the reader's side; how many bytes of it are known.
    pub(crate) fn flush_input(&self) -> u64 {
        let Some(slave) = &self.slave else { return 0 };
        let told = self.readers_side();
        match tcflush(slave, QueueSelector::IFlush) {
            Ok(()) => told.unwrap_or(0),
            Err(error) => {
                tracing::debug!(%error, "unread input was not dropped");
                0
            }
        }
    }

    /// Output fence: the same for what programs wrote.
    pub(crate) fn unread_output(&self) -> bool {
        readable(self.master.get_ref()).unwrap_or(false)
    }

    /// Whether some thread is blocked in `read(2)` on this terminal: it holds the line discipline's
    /// read lock, which a read of zero bytes only tries to take. Nothing is consumed.
    pub(crate) fn blocked_reader(&self) -> Option<bool> {
        zero_byte_read(self.slave.as_ref()?)
    }
}

/// Modes of the line behind either side of a terminal.
pub(crate) fn modes(terminal: &OwnedFd) -> Option<Modes> {
    let termios = tcgetattr(terminal).ok()?;
    let modes = termios.local_modes;
    let canonical = modes.contains(LocalModes::ICANON);
    let at_least = termios.special_codes[SpecialCodeIndex::VMIN];
    let tenths = u64::from(termios.special_codes[SpecialCodeIndex::VTIME]);
    let timed = !canonical && at_least == 0 && tenths > 0;
    Some(Modes {
        canonical,
        echo: modes.contains(LocalModes::ECHO),
        signals: modes.contains(LocalModes::ISIG),
        enter: match termios.input_modes {
            input if input.contains(InputModes::IGNCR) => Enter::Dropped,
            input if input.contains(InputModes::ICRNL) => Enter::EndsLine,
            _ => Enter::Character,
        },
        newline: !termios.input_modes.contains(InputModes::INLCR),
        read_timeout_ms: timed.then_some(tenths * 100),
    })
}

/// The reader test on any non-blocking descriptor of a slave; none on an unexpected answer.
pub(crate) fn zero_byte_read(slave: &OwnedFd) -> Option<bool> {
    match read(slave, &mut [0u8; 0][..]) {
        Ok(_) => Some(false),
        Err(Errno::AGAIN) => Some(true),
        Err(_) => None,
    }
}

fn open_slave(master: &OwnedFd, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | flags;
    Ok(ioctl_tiocgptpeer(master, OpenptFlags::from_bits_retain(flags.bits()))?)
}

/// Whether a read would find something; none where that cannot be asked.
pub(crate) fn readable(fd: &OwnedFd) -> Option<bool> {
    let mut fds = [PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).ok()?;
    Some(fds[0].revents().contains(PollFlags::IN))
}

fn pty_size(size: TerminalSize) -> PtySize {
    PtySize { rows: size.rows.get(), cols: size.cols.get(), pixel_width: 0, pixel_height: 0 }
}

/// The encoding of `/proc/P/stat`: the minor's low byte, the major, the rest of the minor.
fn kernel_device_number(rdev: u64) -> i32 {
    let (major, minor) = (rustix::fs::major(rdev), rustix::fs::minor(rdev));
    (minor & 0xff | major << 8 | (minor & !0xff) << 12).cast_signed()
}

/// Names the step in the error of setting up a terminal.
pub(crate) fn at<E: Into<io::Error>>(step: &'static str) -> impl FnOnce(E) -> SpawnError {
    move |source| SpawnError::Terminal { step, source: source.into() }
}
