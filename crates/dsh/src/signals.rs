//! The signals that ask a host to end: SIGINT, SIGTERM and SIGHUP.
//!
//! Guarantee: a second signal ends the host at once, whatever the host is doing, and no process of
//! a session survives it.

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

/// Watches for them from its creation on.
pub(crate) struct Watch {
    first: watch::Receiver<Option<Caught>>,
    task: JoinHandle<()>,
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    /// A file that may not grow further is an error of the write, and not the end of the host.
    _file_size: Signal,
}

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caught {
    name: &'static str,
    number: u8,
}

impl Caught {
    /// What a shell reports for a process that died of the signal.
    pub(crate) const fn status(self) -> u8 {
        128 + self.number
    }
}

impl Watch {
    /// The first signal cancels `stop`, the second exits.
    pub(crate) fn begin(stop: CancellationToken) -> std::io::Result<Self> {
        let mut signals = Signals::listen()?;
        let (caught, first) = watch::channel(None);
        let task = tokio::spawn(async move {
            let signal = signals.next().await;
            tracing::info!(signal = signal.name, "ending");
            caught.send_replace(Some(signal));
            stop.cancel();
            exit_now(signals.next().await)
        });
        Ok(Self { first, task })
    }

    /// Stops watching. The signal that came, if one did.
    pub(crate) async fn end(self) -> Option<Caught> {
        self.task.abort();
        if let Err(error) = self.task.await
            && error.is_panic()
        {
            tracing::error!(%error, "the watch for signals failed");
        }
        *self.first.borrow()
    }
}

#[expect(clippy::exit, reason = "a second signal does not wait for anything")]
fn exit_now(signal: Caught) -> ! {
    subprocess::kill_all_at_once();
    std::process::exit(i32::from(signal.status()))
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            _file_size: signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    /// The next one.
    async fn next(&mut self) -> Caught {
        tokio::select! {
            // Of two that came together the same one is always first.
            biased;
            _ = self.interrupt.recv() => Caught { name: "SIGINT", number: 2 },
            _ = self.terminate.recv() => Caught { name: "SIGTERM", number: 15 },
            _ = self.hang_up.recv() => Caught { name: "SIGHUP", number: 1 },
        }
    }
}
