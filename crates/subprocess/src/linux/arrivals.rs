//! A watch for output that arrives at a terminal, for one arrival at a time.
//!
//! What the runtime watches itself wakes one of its threads whenever more arrives, also while another
//! reads it already. With few processors that is time taken from the program that prints. So the
//! runtime watches this watch, and this one is set only while somebody waits.
//!
//! Guarantees: output that was there when the wait began, or comes during it, ends it; nothing else is
//! woken by output.

use std::{
    io,
    os::fd::OwnedFd,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll, ready},
};

use rustix::event::epoll;
use tokio::io::{Interest, unix::AsyncFd};

use super::sys;

/// A terminal's master and the watch on it.
pub(crate) struct Arrivals {
    /// Goes before what it watches.
    watch: AsyncFd<OwnedFd>,
    master: OwnedFd,
    /// The next arrival will be told.
    set: AtomicBool,
}

impl Arrivals {
    /// Needs a tokio runtime.
    pub(crate) fn at(master: OwnedFd) -> io::Result<Self> {
        let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&watch, &master, epoll::EventData::new_u64(0), once())?;
        let watch = sys::watch(watch, Interest::READABLE)?;
        Ok(Self { watch, master, set: AtomicBool::new(true) })
    }

    pub(crate) fn get_ref(&self) -> &OwnedFd {
        &self.master
    }

    /// Ready when there may be something to read, or the terminal has hung up.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.set.load(Ordering::Relaxed) {
            let data = epoll::EventData::new_u64(0);
            if let Err(error) = epoll::modify(self.watch.get_ref(), &self.master, data, once()) {
                tracing::error!(%error, "output of a terminal is not watched");
            }
            self.set.store(true, Ordering::Relaxed);
        }
        loop {
            let Ok(mut readable) = ready!(self.watch.poll_read_ready(cx)) else {
                return Poll::Pending;
            };
            let mut told = [epoll::Event {
                flags: epoll::EventFlags::empty(),
                data: epoll::EventData::new_u64(0),
            }];
            let told = epoll::wait(self.watch.get_ref(), &mut told, Some(&NOW));
            // The watch tells nothing more until it is set again, and if it has told nothing, what
            // it tells later is kept apart from what is cleared here.
            readable.clear_ready();
            if told != Ok(0) {
                self.set.store(false, Ordering::Relaxed);
                return Poll::Ready(());
            }
        }
    }
}

const NOW: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };

fn once() -> epoll::EventFlags {
    epoll::EventFlags::IN | epoll::EventFlags::ONESHOT
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, num::NonZeroU16, pin::pin};

    use rustix::io::{read, write};

    use super::*;
    use crate::{
        host::TerminalSize,
        linux::pty::{Pty, readable},
    };

    #[tokio::test]
    async fn only_who_waits_is_told_of_output() {
        let one = NonZeroU16::MIN;
        let pty = Pty::open(TerminalSize { rows: one, cols: one }).unwrap();
        let slave = pty.slave_for_child().unwrap();
        let arrivals = pty.master();
        let arrival = || poll_fn(|cx| arrivals.poll(cx));
        write(&slave, b"a").unwrap();
        arrival().await;
        assert_eq!(readable(arrivals.get_ref()), Some(true));
        assert_eq!(readable(arrivals.watch.get_ref()), Some(false), "nobody waits");
        // What is there already ends a wait, too.
        arrival().await;
        read(arrivals.get_ref(), &mut [0; 8][..]).unwrap();
        let mut next = pin!(arrival());
        let early = poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await;
        assert!(early.is_pending());
        write(&slave, b"b").unwrap();
        next.await;
    }
}
