//! The connection's two streams: a message is a line.
//!
//! Guarantees:
//! - reading never waits for writing, so the end of the input is seen even from a client that
//!   reads nothing;
//! - nothing waits for the output after it was cut, and nothing is written after a write that
//!   failed or was cut short;
//! - a failed write means that nobody reads: it cancels [`Ends::gone`], and no caller hears of it.

use std::{convert::Infallible, io, sync::Arc};

use rmcp::{
    RoleServer,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde::Serialize;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader},
    sync::Mutex,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::message::{self, Judged};

/// Longest message, in bytes: room for the longest input of a terminal with every byte escaped.
const LONGEST: usize = 64 << 20;

/// A line buffer of more than this is not kept for the next message.
const KEPT: usize = 1 << 20;

/// Most refusals that wait for the client; it gets no more until it reads.
const MOST_REFUSALS: usize = 64;

/// How far the connection has ended.
#[derive(Clone)]
pub(crate) struct Ends {
    /// The input has ended or the host stops: the client answers nothing more, and only results
    /// still reach it.
    pub(crate) silent: CancellationToken,
    /// Nobody waits for results any more.
    pub(crate) gone: CancellationToken,
    /// Nothing may wait for the output any more.
    pub(crate) cut: CancellationToken,
}

impl Ends {
    /// A connection that ends at the latest with `stop`.
    pub(crate) fn new(stop: &CancellationToken) -> Self {
        let (silent, gone) = (stop.child_token(), stop.child_token());
        Self { silent, gone, cut: CancellationToken::new() }
    }
}

/// Reads and writes messages.
pub(crate) struct Wire<R, W> {
    input: BufReader<R>,
    line: Vec<u8>,
    /// The line is too long, and its rest is dropped.
    dropping: bool,
    begun: bool,
    output: Output<W>,
    refusals: JoinSet<()>,
}

struct Output<W> {
    writer: Arc<Mutex<Option<W>>>,
    ends: Ends,
}

/// What has been read.
enum Read {
    Line,
    TooLong,
    End,
}

impl<R, W> Wire<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(crate) fn new(input: R, output: W, ends: Ends) -> Self {
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            dropping: false,
            begun: false,
            output: Output { writer: Arc::new(Mutex::new(Some(output))), ends },
            refusals: JoinSet::new(),
        }
    }

    /// Reads up to the next newline into `line`. A call that is dropped loses nothing: what it has
    /// taken stands in `line`. A last line without a newline is no message.
    async fn read_line(&mut self) -> io::Result<Read> {
        loop {
            let read = self.input.fill_buf().await?;
            if read.is_empty() {
                return Ok(Read::End);
            }
            let newline = read.iter().position(|byte| *byte == b'\n');
            let taken = newline.map_or(read.len(), |at| at + 1);
            let kept = if self.dropping { &[] } else { &read[..newline.unwrap_or(taken)] };
            if self.line.len() + kept.len() > LONGEST {
                self.line = Vec::new();
                self.dropping = true;
            } else {
                self.line.extend_from_slice(kept);
            }
            self.input.consume(taken);
            if newline.is_some() {
                let dropped = std::mem::take(&mut self.dropping);
                return Ok(if dropped { Read::TooLong } else { Read::Line });
            }
        }
    }

    fn judge_line(&mut self) -> Judged {
        let judged = match self.line.strip_suffix(b"\r").unwrap_or(&self.line) {
            [] => Judged::Ignored("it is empty"),
            line => message::judge(line, self.begun),
        };
        self.line.clear();
        self.line.shrink_to(KEPT);
        judged
    }

    fn refuse(&mut self, refusal: Value) {
        while self.refusals.try_join_next().is_some() {}
        if self.refusals.len() < MOST_REFUSALS {
            let output = self.output.clone();
            self.refusals.spawn(async move { output.write(&refusal).await });
        }
    }
}

impl<W> Clone for Output<W> {
    fn clone(&self) -> Self {
        Self { writer: Arc::clone(&self.writer), ends: self.ends.clone() }
    }
}

impl<W: AsyncWrite + Send + Unpin> Output<W> {
    /// Writes one message, unless nobody reads any more.
    async fn write(&self, message: &(impl Serialize + Sync)) {
        let mut slot = self.writer.lock().await;
        let Some(writer) = slot.as_mut() else { return };
        let written = match serde_json::to_vec(message) {
            Ok(mut line) => {
                line.push(b'\n');
                let writing = async {
                    writer.write_all(&line).await?;
                    writer.flush().await
                };
                tokio::select! {
                    written = writing => written,
                    () = self.ends.cut.cancelled() => Err(io::ErrorKind::TimedOut.into()),
                }
            }
            Err(error) => Err(error.into()),
        };
        if let Err(error) = written {
            tracing::debug!(%error, "the client does not take its messages");
            *slot = None;
            self.ends.silent.cancel();
            self.ends.gone.cancel();
        }
    }
}

impl<R, W> Transport<RoleServer> for Wire<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = Infallible;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        let output = self.output.clone();
        async move {
            output.write(&item).await;
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            match self.read_line().await {
                Ok(Read::Line) => match self.judge_line() {
                    Judged::Message(message) => {
                        self.begun = self.begun || message::begins(&message);
                        return Some(*message);
                    }
                    Judged::Refused(refusal) => self.refuse(refusal),
                    Judged::Ignored(why) => tracing::debug!(why, "a line is ignored"),
                },
                Ok(Read::TooLong) => self.refuse(message::too_long(LONGEST)),
                Ok(Read::End) => break,
                Err(error) => {
                    tracing::debug!(%error, "the input cannot be read");
                    break;
                }
            }
        }
        self.output.ends.silent.cancel();
        None
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        *self.output.writer.lock().await = None;
        Ok(())
    }
}
