//! What is asked of a session's task.

use std::time::Duration;

use terminal::{
    ByHand, Foreground, KeysRequest, OutputDelta, ReadPage, ReadRequest, ScreenSnapshot,
    SendRequest, Signal, SignalReceipt, TerminalError, WaitOutcome, WindowSize,
};
use tokio::sync::{mpsc, oneshot};

use crate::{
    retained::Retained,
    settler::{Follower, Settler},
    task::Wanted,
    viewers::Viewer,
};

/// What the holders of the mailbox ask of the task.
pub(crate) enum Request {
    Send { request: SendRequest, settler: Settler },
    Keys { request: KeysRequest, settler: Settler },
    Wait { wanted: Wanted, reply: oneshot::Sender<WaitOutcome> },
    View { mailbox: mpsc::UnboundedSender<Self>, reply: oneshot::Sender<Viewer> },
    Picture { reply: oneshot::Sender<()> },
    ByHand { input: ByHand, reply: oneshot::Sender<Result<(), TerminalError>> },
    Screen { reply: oneshot::Sender<ScreenSnapshot> },
    Resize { size: WindowSize, reply: oneshot::Sender<Result<(), TerminalError>> },
    Delta { exchange: u64, follower: Follower, reply: oneshot::Sender<Option<OutputDelta>> },
    Foreground { exchange: u64, reply: oneshot::Sender<Option<Foreground>> },
    Read { request: ReadRequest, reply: oneshot::Sender<Read> },
    Text { reply: oneshot::Sender<Retained> },
    Signal { signal: Signal, reply: oneshot::Sender<Result<SignalReceipt, TerminalError>> },
    Close { grace: Option<Duration>, reply: oneshot::Sender<Result<(), TerminalError>> },
}

impl Request {
    /// Whether it only looks on, which is no use of the session.
    pub(crate) fn only_watches(&self) -> bool {
        matches!(self, Self::View { .. } | Self::Picture { .. })
    }
}

/// A page, or what it has to be read from where that may block.
pub(crate) enum Read {
    Page(ReadPage),
    From(Retained),
}
