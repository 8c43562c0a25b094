//! An input that says when it has ended, before its reader has acted on that.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

/// Cancels a token at the end of the input, or at its first error.
pub(crate) struct Watched<R> {
    input: R,
    gone: CancellationToken,
}

impl<R> Watched<R> {
    pub(crate) fn new(input: R, gone: CancellationToken) -> Self {
        Self { input, gone }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let (before, room) = (buffer.filled().len(), buffer.remaining());
        let read = ready!(Pin::new(&mut this.input).poll_read(cx, buffer));
        if read.is_err() || (room > 0 && buffer.filled().len() == before) {
            this.gone.cancel();
        }
        Poll::Ready(read)
    }
}
