//! Standard output that nobody waits for.
//!
//! Guarantees: what is written comes in order; a writer never blocks, however slow the reader is;
//! a reader that has gone is an error of the next write.

use std::{
    io::{self, Write},
    time::Duration,
};

use tokio::{io::AsyncWriteExt as _, sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// How long a reader has for the last lines of a run that was told to stop.
const LAST_LINES: Duration = Duration::from_millis(100);

/// The way to standard output.
pub(crate) struct Stdout(mpsc::UnboundedSender<Vec<u8>>);

/// The other end of it.
pub(crate) struct Printing {
    task: JoinHandle<io::Result<()>>,
    over: CancellationToken,
}

/// Opens it. What is written has been printed only when [`Printing::over`] returns.
pub(crate) fn open() -> (Stdout, Printing) {
    let (sender, mut receiver) = mpsc::unbounded_channel::<Vec<u8>>();
    let over = CancellationToken::new();
    let end = over.clone().drop_guard();
    let task = tokio::spawn(async move {
        let _end = end;
        let mut out = tokio::io::stdout();
        while let Some(text) = receiver.recv().await {
            out.write_all(&text).await?;
            out.flush().await?;
        }
        Ok(())
    });
    (Stdout(sender), Printing { task, over })
}

impl Stdout {
    /// Writes one line. Without a reader it is lost; see [`Printing::broken`].
    pub(crate) fn line(&self, line: &str) {
        self.0.send(format!("{line}\n").into_bytes()).ok();
    }
}

impl Write for Stdout {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        match self.0.send(text.to_vec()) {
            Ok(()) => Ok(text.len()),
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Printing {
    /// Cancelled when nothing is printed any more: the reader has gone, if the [`Stdout`] is alive.
    pub(crate) fn broken(&self) -> CancellationToken {
        self.over.clone()
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
