//! A session of the engine whose signals and whose end are done on the far side.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use dsh_core::async_trait;
use terminal::{
    ByHand, CloseRequest, KeysRequest, ReadPage, ReadRequest, ScreenSnapshot, SearchPage,
    SearchRequest, SendOperation, SendRequest, SessionStatus, Signal, SignalReceipt, TerminalError,
    TerminalSession, WaitOutcome, WaitRequest, Watcher, WindowSize,
};

use terminal_bash::far::Far;

use crate::{
    launcher::{Launcher, printed},
    script::{self, Answer, read_answer},
};

/// A run of the launcher that only asks takes no longer.
const RUN: Duration = Duration::from_secs(10);
/// Nor one at the end of the owner or of the host, which wait for it.
const RUN_AT_ONCE: Duration = Duration::from_secs(3);

/// The far side of a session, as the launcher reaches it besides the session's own connection.
pub(crate) struct FarSide {
    pub(crate) control: Option<Launcher>,
    pub(crate) far: Far,
    pub(crate) pid: i32,
    pub(crate) grace: Duration,
    /// It could not be asked once.
    pub(crate) unreachable: AtomicBool,
}

impl FarSide {
    /// Ends every process there, or says who is left, and which are not known to be gone.
    ///
    /// Where the far side cannot be asked the first attempt fails; a further one gives it up.
    pub(crate) async fn end(&self, longest: Option<Duration>) -> Result<(), TerminalError> {
        let Some(control) = &self.control else { return Ok(()) };
        let grace = longest.map_or(self.grace, |longest| longest.min(self.grace));
        let line = script::close(self.far.token(), tenths(grace));
        let run = if longest.is_some() { RUN_AT_ONCE } else { RUN };
        let answer = self.ask(control, line, run + grace).await;
        let why = match answer {
            Ok(Answer::Done(_)) => {
                self.far.set_gone();
                return Ok(());
            }
            Ok(Answer::Left(processes)) => {
                return Err(TerminalError::CloseIncomplete(format!(
                    "processes survive on the far side, as pid:name: {processes}"
                )));
            }
            Ok(Answer::Blind) => "it has no /proc".to_owned(),
            Ok(other) => format!("it answers {other:?}"),
            Err(why) => why,
        };
        if self.unreachable.swap(true, Ordering::Relaxed) {
            tracing::warn!("processes on the far side are not known to be gone: {why}");
            return Ok(());
        }
        Err(TerminalError::CloseIncomplete(format!(
            "whether the processes on the far side are gone is not known, `{}` does not say: {why}; \
             close again to leave them to the far side, which ends them when the connection is lost",
            control.command()
        )))
    }

    async fn signal(&self, signal: Signal) -> Result<SignalReceipt, TerminalError> {
        let Some(control) = &self.control else {
            return Err(TerminalError::Backend(
                "no signal was sent: it takes a second connection, and the row of this backend has no \
                 `controlArgv`; a key can be typed instead, by terminal_send with `submit: false`: \
                 \\u0003 interrupts, \\u001a stops"
                    .to_owned(),
            ));
        };
        let line = script::signal(self.far.token(), self.pid, signal);
        match self.ask(control, line, RUN).await {
            Ok(Answer::Done(Some(target_pgid))) => Ok(SignalReceipt { target_pgid }),
            Ok(Answer::Shell) => Err(TerminalError::ShellKillRefused),
            Ok(Answer::None | Answer::Done(None)) => Err(TerminalError::NoForegroundGroup),
            Ok(other) => Err(TerminalError::Backend(format!(
                "no signal was sent: the far side answers {other:?}"
            ))),
            Err(why) => Err(TerminalError::Backend(format!(
                "no signal is known to be sent, `{}` failed: {why}",
                control.command()
            ))),
        }
    }

    async fn ask(
        &self,
        control: &Launcher,
        line: String,
        bound: Duration,
    ) -> Result<Answer, String> {
        let output = control.run(line, bound).await?;
        read_answer(self.far.token(), &output).ok_or_else(|| printed(&output))
    }
}

/// Tenths of a second, rounded up.
pub(crate) fn tenths(time: Duration) -> u64 {
    u64::try_from(time.as_millis().div_ceil(100)).unwrap_or(u64::MAX / 2).max(1)
}

/// A session behind a launcher.
pub(crate) struct RemoteSession {
    pub(crate) near: Arc<dyn TerminalSession>,
    pub(crate) far: FarSide,
}

#[async_trait]
impl TerminalSession for RemoteSession {
    fn pid(&self) -> Option<u32> {
        self.near.pid()
    }

    fn motd(&self) -> String {
        self.near.motd()
    }

    fn status(&self) -> SessionStatus {
        self.near.status()
    }

    fn limit(&self) -> Option<String> {
        self.near.limit()
    }

    fn start_send(&self, request: SendRequest) -> Result<Arc<dyn SendOperation>, TerminalError> {
        self.near.start_send(request)
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadPage, TerminalError> {
        self.near.read(request).await
    }

    async fn search(&self, request: SearchRequest) -> Result<SearchPage, TerminalError> {
        self.near.search(request).await
    }

    fn start_keys(&self, request: KeysRequest) -> Result<Arc<dyn SendOperation>, TerminalError> {
        self.near.start_keys(request)
    }

    async fn screen(&self) -> Result<ScreenSnapshot, TerminalError> {
        self.near.screen().await
    }

    async fn resize(&self, size: WindowSize) -> Result<(), TerminalError> {
        self.near.resize(size).await
    }

    async fn wait(&self, request: WaitRequest) -> Result<WaitOutcome, TerminalError> {
        self.near.wait(request).await
    }

    async fn watch(&self) -> Result<Box<dyn Watcher>, TerminalError> {
        self.near.watch().await
    }

    async fn type_by_hand(&self, input: ByHand) -> Result<(), TerminalError> {
        self.near.type_by_hand(input).await
    }

    async fn signal(&self, signal: Signal) -> Result<SignalReceipt, TerminalError> {
        self.far.signal(signal).await
    }

    async fn close(&self, request: CloseRequest) -> Result<(), TerminalError> {
        // The hang-up ends the far shell, and the far side what does not mind hang-ups. Once it says
        // that nothing is left there, the launcher has no time any more. The engine's close may be
        // repeated after a success, too.
        let grace = request.grace;
        let (near, far) = tokio::join!(self.near.close(request), self.far.end(grace));
        near.and(far)
    }
}
