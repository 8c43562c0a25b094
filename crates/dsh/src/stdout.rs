//! Standard output that nobody waits for.
//!
//! Guarantees: what is written comes in order; a writer never blocks, however slow the reader is;
//! what is not printed yet is bounded; a reader that has gone, or is too far behind, is an error of
//! the next write.

use std::{
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::{mpsc, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

/// How long a reader has for the last lines of a run that was told to stop.
const LAST_LINES: Duration = Duration::from_millis(100);

/// Most bytes that wait for the reader: more than a run prints in hours.
const MOST_UNREAD: usize = 16 << 20;

/// Bytes that may wait before more is fetched to be printed.
const AHEAD: usize = 64 << 10;

/// The way to standard output.
pub(crate) struct Stdout {
    texts: mpsc::UnboundedSender<Vec<u8>>,
    backlog: Arc<Backlog>,
}

/// The other end of it.
pub(crate) struct Printing {
    task: JoinHandle<io::Result<()>>,
    over: CancellationToken,
    backlog: Arc<Backlog>,
}

/// What is not printed yet.
struct Backlog {
    bytes: watch::Sender<usize>,
    too_long: CancellationToken,
}

/// Opens it. What is written has been printed only when [`Printing::over`] returns.
pub(crate) fn open() -> (Stdout, Printing) {
    open_on(tokio::io::stdout())
}

fn open_on(mut out: impl AsyncWrite + Unpin + Send + 'static) -> (Stdout, Printing) {
    let (texts, mut receiver) = mpsc::unbounded_channel::<Vec<u8>>();
    let over = CancellationToken::new();
    let end = over.clone().drop_guard();
    let backlog = Backlog { bytes: watch::Sender::new(0), too_long: CancellationToken::new() };
    let backlog = Arc::new(backlog);
    let printed = Arc::clone(&backlog);
    let task = tokio::spawn(async move {
        let _end = end;
        let print = async {
            while let Some(text) = receiver.recv().await {
                out.write_all(&text).await?;
                out.flush().await?;
                printed.bytes.send_modify(|it| *it -= text.len());
            }
            Ok(())
        };
        tokio::select! {
            done = print => done,
            () = printed.too_long.cancelled() => Err(too_far_behind()),
        }
    });
    (Stdout { texts, backlog: Arc::clone(&backlog) }, Printing { task, over, backlog })
}

fn too_far_behind() -> io::Error {
    io::Error::other(format!(
        "{} MiB of output wait for a reader that does not read; let it read, or print to a file",
        MOST_UNREAD >> 20
    ))
}

impl Stdout {
    /// Writes one line. Without a reader it is lost; see [`Printing::broken`].
    pub(crate) fn line(&self, line: &str) {
        self.send(format!("{line}\n").into_bytes()).ok();
    }

    fn send(&self, text: Vec<u8>) -> io::Result<()> {
        // A text of any length goes to a reader that keeps up.
        let fits = self.backlog.bytes.send_if_modified(|it| {
            let fits = *it == 0 || *it + text.len() <= MOST_UNREAD;
            *it += if fits { text.len() } else { 0 };
            fits
        });
        if !fits {
            self.backlog.too_long.cancel();
        }
        if self.backlog.too_long.is_cancelled() {
            return Err(too_far_behind());
        }
        self.texts.send(text).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for Stdout {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.send(text.to_vec()).map(|()| text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Printing {
    /// Cancelled when nothing is printed any more: the reader has gone or is too far behind, if the
    /// [`Stdout`] is alive.
    pub(crate) fn broken(&self) -> CancellationToken {
        self.over.clone()
    }

    /// Everything written so far has been printed.
    pub(crate) fn keeps_up(&self) -> bool {
        *self.backlog.bytes.borrow() == 0
    }

    /// Waits until there is room for more, and says whether it is still wanted: not after `stop`,
    /// nor when the reader has gone.
    pub(crate) async fn wants_more(&self, stop: &CancellationToken) -> bool {
        let mut bytes = self.backlog.bytes.subscribe();
        tokio::select! {
            biased;
            () = stop.cancelled() => false,
            () = self.over.cancelled() => false,
            room = bytes.wait_for(|it| *it <= AHEAD) => room.is_ok(),
        }
    }

    /// Waits until everything has been printed, and not much longer than `stop`. The [`Stdout`]
    /// must have been dropped.
    pub(crate) async fn over(mut self, stop: &CancellationToken) -> io::Result<()> {
        let unread = async {
            stop.cancelled().await;
            tokio::time::sleep(LAST_LINES).await;
        };
        tokio::select! {
            printed = &mut self.task => printed?,
            () = unread => {
                self.task.abort();
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use testkit::{guarded, wait_until};
    use tokio::io::{AsyncReadExt as _, DuplexStream, duplex};

    use super::*;

    /// With a reader that has room for one byte.
    fn opened() -> (Stdout, Printing, DuplexStream) {
        let (ours, reader) = duplex(1);
        let (out, printing) = open_on(ours);
        (out, printing, reader)
    }

    #[tokio::test]
    async fn frames_are_for_a_reader_that_keeps_up() {
        let (out, printing, mut reader) = opened();
        assert!(printing.keeps_up());
        out.line("one");
        out.line("two");
        assert!(!printing.keeps_up());
        let mut text = [0; 8];
        guarded("the lines", reader.read_exact(&mut text)).await.unwrap();
        assert_eq!(&text, b"one\ntwo\n");
        wait_until("all is printed", || printing.keeps_up()).await;
    }

    #[tokio::test]
    async fn who_does_not_read_has_gone_in_the_end() {
        let (mut out, printing, _reader) = opened();
        let text = vec![b'x'; MOST_UNREAD / 2];
        out.write_all(&text).unwrap();
        out.write_all(&text).unwrap();
        assert!(!printing.broken().is_cancelled());
        let error = out.write_all(b"x").unwrap_err();
        assert!(error.to_string().starts_with("16 MiB of output wait"), "{error}");
        guarded("the end", printing.broken().cancelled_owned()).await;
        let error = printing.over(&CancellationToken::new()).await.unwrap_err();
        assert!(error.to_string().starts_with("16 MiB of output wait"), "{error}");
        out.write_all(b"x").unwrap_err();
    }

    #[tokio::test]
    async fn more_is_wanted_when_it_was_read() {
        let (out, printing, mut reader) = opened();
        let stop = CancellationToken::new();
        assert!(printing.wants_more(&stop).await);
        out.line(&"x".repeat(AHEAD));
        assert_eq!(printing.wants_more(&stop).now_or_never(), None);
        reader.read_u8().await.unwrap();
        let rest =
            tokio::spawn(async move { tokio::io::copy(&mut reader, &mut tokio::io::sink()).await });
        assert!(guarded("room", printing.wants_more(&stop)).await);
        out.line(&"x".repeat(AHEAD));
        stop.cancel();
        assert!(!printing.wants_more(&stop).await);
        rest.abort();
        assert!(
            !guarded("the reader has gone", async {
                rest.await.ok();
                printing.wants_more(&CancellationToken::new()).await
            })
            .await
        );
    }
}
