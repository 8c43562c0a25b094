//! Watching a session: one ring of what it shows, a cursor for each watcher.
//!
//! Guarantees:
//! - the session copies each piece of output once and wakes whoever waits, however many watch; nothing
//!   waits for a watcher, and what is kept is bounded;
//! - a watcher gets a picture and all that follows it, or, when the ring has gone over its cursor,
//!   another picture; one picture serves all who need one until the ring has gone over it;
//! - after the session's end a watcher gets what it has not seen, and then nothing.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use dsh_core::{async_trait, lock};
use terminal::{Seen, Watcher, WindowSize};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::{readiness::Moment, request::Request, stream::Filter};

/// Bytes of output that are kept.
const KEPT: usize = 256 << 10;

/// What a session and its watchers share. The session holds one clone, each watcher another.
#[derive(Clone)]
pub(crate) struct Viewers(Arc<Shared>);

struct Shared {
    shown: Mutex<Shown>,
    news: Notify,
}

struct Shown {
    ring: Ring,
    picture: Option<Picture>,
    /// What was shown otherwise than by output: pictures and cursors of before are worth nothing.
    generation: u64,
    size: WindowSize,
    echo: bool,
    ended: bool,
    watchers: usize,
}

/// What was shown at one point of the output.
#[derive(Clone)]
struct Picture {
    bytes: Arc<[u8]>,
    at: Cursor,
}

/// A point of the output.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Cursor {
    generation: u64,
    /// Bytes of the output before it.
    at: u64,
}

/// The newest bytes.
#[derive(Default)]
struct Ring {
    kept: Vec<u8>,
    /// Bytes so far. The next one goes to this offset, modulo the size.
    end: u64,
}

impl Ring {
    fn push(&mut self, bytes: &[u8]) {
        let bytes = if bytes.len() > KEPT {
            let (over, last) = bytes.split_at(bytes.len() - KEPT);
            self.end += over.len() as u64;
            self.kept.resize(KEPT, 0);
            last
        } else {
            bytes
        };
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = place(self.end);
            let (now, later) = rest.split_at(rest.len().min(KEPT - at));
            let over = now.len().min(self.kept.len().saturating_sub(at));
            self.kept[at..at + over].copy_from_slice(&now[..over]);
            self.kept.extend_from_slice(&now[over..]);
            self.end += now.len() as u64;
            rest = later;
        }
    }

    fn start(&self) -> u64 {
        self.end.saturating_sub(KEPT as u64)
    }

    /// What follows the first `from` bytes of all, if it is all kept.
    fn since(&self, from: u64) -> Option<Vec<u8>> {
        if from < self.start() || from > self.end {
            return None;
        }
        let length = usize::try_from(self.end - from).unwrap_or(KEPT);
        let at = place(from);
        let first = length.min(KEPT - at);
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&self.kept[at..at + first]);
        bytes.extend_from_slice(&self.kept[..length - first]);
        Some(bytes)
    }
}

/// Where in the ring the byte with this number is.
fn place(at: u64) -> usize {
    usize::try_from(at % KEPT as u64).unwrap_or_default()
}

impl Viewers {
    /// The first one, who asks the session by its mailbox.
    pub(crate) fn first(
        size: WindowSize,
        echo: bool,
        mailbox: mpsc::UnboundedSender<Request>,
    ) -> (Self, Viewer) {
        let viewers = Self(Arc::new(Shared {
            shown: Mutex::new(Shown {
                ring: Ring::default(),
                picture: None,
                generation: 0,
                size,
                echo,
                ended: false,
                watchers: 1,
            }),
            news: Notify::new(),
        }));
        let viewer = Viewer::new(viewers.clone(), mailbox);
        (viewers, viewer)
    }

    /// One more, unless all the others have gone.
    pub(crate) fn join(&self, mailbox: mpsc::UnboundedSender<Request>) -> Option<Viewer> {
        let mut shown = self.shown();
        if shown.watchers == 0 {
            return None;
        }
        shown.watchers += 1;
        drop(shown);
        Some(Viewer::new(self.clone(), mailbox))
    }

    /// Somebody watches.
    pub(crate) fn are_there(&self) -> bool {
        self.shown().watchers > 0
    }

    /// Output follows, in pieces that `pieces` gives to whom it is given.
    pub(crate) fn output(&self, pieces: impl FnOnce(&mut dyn FnMut(&[u8]))) {
        let mut shown = self.shown();
        if shown.watchers == 0 {
            return;
        }
        let before = shown.ring.end;
        let ring = &mut shown.ring;
        pieces(&mut |bytes| ring.push(bytes));
        let news = shown.ring.end > before;
        if shown.picture.as_ref().is_some_and(|it| !shown.goes_on(it.at)) {
            shown.picture = None;
        }
        drop(shown);
        if news {
            self.0.news.notify_waiters();
        }
    }

    /// What is shown has changed otherwise than by output, as by another size.
    pub(crate) fn redrawn(&self, size: WindowSize) {
        let mut shown = self.shown();
        shown.generation += 1;
        shown.picture = None;
        shown.size = size;
        drop(shown);
        self.0.news.notify_waiters();
    }

    /// Whether the terminal shows what is typed.
    pub(crate) fn echoes(&self, echo: bool) {
        let before = std::mem::replace(&mut self.shown().echo, echo);
        if before != echo {
            self.0.news.notify_waiters();
        }
    }

    /// Whoever needs a picture can have one: `paint` makes it if there is none.
    pub(crate) fn picture(&self, paint: impl FnOnce() -> Vec<u8>) {
        let shown = self.shown();
        if shown.picture.is_none() && shown.watchers > 0 {
            drop(shown);
            let bytes = paint().into();
            let mut shown = self.shown();
            let at = Cursor { generation: shown.generation, at: shown.ring.end };
            shown.picture = Some(Picture { bytes, at });
        }
    }

    /// Nothing will be shown any more; `paint` makes the last picture.
    pub(crate) fn end(&self, paint: impl FnOnce() -> Vec<u8>) {
        if !self.shown().ended {
            self.picture(paint);
            self.give_up();
        }
    }

    /// Whatever became of the session, nothing follows.
    fn give_up(&self) {
        self.shown().ended = true;
        self.0.news.notify_waiters();
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        lock(&self.0.shown)
    }
}

impl Shown {
    /// Whether all that follows `at` is kept.
    fn goes_on(&self, at: Cursor) -> bool {
        at.generation == self.generation && at.at >= self.ring.start()
    }
}

/// What a session has for those who watch it. They hear of its end, whatever became of the session.
pub(crate) struct Stage {
    pub(crate) viewers: Viewers,
    pub(crate) filter: Filter,
    /// When it is looked next whether the terminal echoes, and how long after that again.
    pub(crate) look: (Moment, Duration),
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.viewers.give_up();
    }
}

/// One who watches.
pub(crate) struct Viewer {
    viewers: Viewers,
    mailbox: mpsc::UnboundedSender<Request>,
    /// Up to here all was seen.
    at: Option<Cursor>,
    size: Option<WindowSize>,
    echo: Option<bool>,
}

/// What a watcher has to do.
enum Next {
    See(Seen),
    Wait,
    AskForPicture,
    End,
}

impl Viewer {
    fn new(viewers: Viewers, mailbox: mpsc::UnboundedSender<Request>) -> Self {
        Self { viewers, mailbox, at: None, size: None, echo: None }
    }

    fn look(&mut self) -> Next {
        let shown = lock(&self.viewers.0.shown);
        if self.size != Some(shown.size) {
            self.size = Some(shown.size);
            return Next::See(Seen::Resized(shown.size));
        }
        if self.echo != Some(shown.echo) {
            self.echo = Some(shown.echo);
            return Next::See(Seen::Echo(shown.echo));
        }
        if let Some(at) = self.at.filter(|at| shown.goes_on(*at)) {
            if at.at == shown.ring.end {
                return if shown.ended { Next::End } else { Next::Wait };
            }
            let Some(output) = shown.ring.since(at.at) else { return Next::AskForPicture };
            self.at = Some(Cursor { at: shown.ring.end, ..at });
            return Next::See(Seen::Output(output));
        }
        match &shown.picture {
            Some(Picture { bytes, at }) if shown.goes_on(*at) => {
                self.at = Some(*at);
                Next::See(Seen::Picture(bytes.to_vec()))
            }
            _ => Next::AskForPicture,
        }
    }
}

#[async_trait]
impl Watcher for Viewer {
    async fn next(&mut self) -> Option<Seen> {
        loop {
            let viewers = self.viewers.clone();
            let news = viewers.0.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            match self.look() {
                Next::See(seen) => return Some(seen),
                Next::End => return None,
                Next::Wait => news.await,
                Next::AskForPicture => {
                    let (reply, painted) = oneshot::channel();
                    let asked = self.mailbox.send(Request::Picture { reply }).is_ok();
                    if (!asked || painted.await.is_err()) && self.is_over() {
                        return None;
                    }
                }
            }
        }
    }
}

impl Viewer {
    /// The session is gone, and no picture of its end is left.
    fn is_over(&self) -> bool {
        let shown = lock(&self.viewers.0.shown);
        !shown.picture.as_ref().is_some_and(|it| shown.goes_on(it.at))
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let mut shown = self.viewers.shown();
        shown.watchers -= 1;
        if shown.watchers == 0 {
            // The session notices later; what it costs ends now.
            shown.ring.kept = Vec::new();
            shown.picture = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_keeps_the_newest_bytes() {
        let mut ring = Ring::default();
        let all: Vec<u8> = (0..KEPT * 4).map(|it| u8::try_from(it % 251).unwrap()).collect();
        let mut from = 0;
        for size in [0, 1, 7, KEPT - 8, 1, 100, KEPT, KEPT + 5] {
            ring.push(&all[from..from + size]);
            from += size;
            let start = from.saturating_sub(KEPT);
            assert_eq!(ring.since(start as u64).as_deref(), Some(&all[start..from]), "{size}");
            let middle = start.midpoint(from);
            assert_eq!(ring.since(middle as u64).as_deref(), Some(&all[middle..from]));
            assert_eq!(ring.since(from as u64 + 1), None);
            assert!(start == 0 || ring.since(start as u64 - 1).is_none());
            assert!(ring.kept.len() <= KEPT);
        }
    }
}
