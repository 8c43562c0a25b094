//! The signals that ask a host to end.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens to SIGINT, SIGTERM and SIGHUP from its creation on.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caught {
    pub(crate) name: &'static str,
    number: u8,
}

impl Caught {
    /// What a shell reports for a process that died of the signal.
    pub(crate) const fn status(self) -> u8 {
        128 + self.number
    }
}

impl Signals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Caught {
        tokio::select! {
            _ = self.interrupt.recv() => Caught { name: "SIGINT", number: 2 },
            _ = self.terminate.recv() => Caught { name: "SIGTERM", number: 15 },
            _ = self.hang_up.recv() => Caught { name: "SIGHUP", number: 1 },
        }
    }
}
