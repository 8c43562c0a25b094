//! One session, for its holders: a mailbox of the task that owns it.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use dsh_core::{Cancel, async_trait, lock};
use subprocess::TerminalProcess;
use terminal::{
    ByHand, Changes, CloseRequest, KeysRequest, ReadPage, ReadRequest, ScreenSnapshot, SearchPage,
    SearchRequest, SendOperation, SendRequest, SessionId, SessionStatus, Signal, SignalReceipt,
    TerminalError, TerminalSession, WaitOutcome, WaitRequest, Watcher, WindowSize,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
};

use crate::{
    config::Config,
    dialect::Nonce,
    far::FarSide,
    limits::{PlaceTaken, Reached},
    operation,
    request::{Read, Request},
    search,
    settler::Settler,
    task::{Task, Wanted},
};

/// A session, for the registry.
pub(crate) struct BashSession {
    id: SessionId,
    pid: u32,
    motd: String,
    max_input_bytes: u64,
    status: watch::Receiver<SessionStatus>,
    /// The task has ended all, and so ends; one that ends without has failed.
    closed: Arc<AtomicBool>,
    reached: Reached,
    mailbox: mpsc::UnboundedSender<Request>,
    changes: Changes,
    next_exchange: AtomicU64,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// A process that is a shell, or brings one that is on its far side.
pub(crate) struct Shell {
    pub(crate) process: Box<dyn TerminalProcess>,
    pub(crate) nonce: Nonce,
    pub(crate) far: Option<FarSide>,
}

/// A session whose shell is ready, or why there is none.
pub(crate) async fn open(
    id: SessionId,
    owner: &str,
    shell: Shell,
    config: Arc<Config>,
    place: PlaceTaken,
    (cancel, changes): (Cancel, Changes),
) -> Result<BashSession, TerminalError> {
    let pid = shell.process.pid();
    let (mailbox, requests) = mpsc::unbounded_channel();
    let (status, watched) = watch::channel(SessionStatus::Running);
    let closed = Arc::<AtomicBool>::default();
    let max_input_bytes = config.max_input_bytes;
    let reached = Reached::default();
    let limits = (Arc::clone(&reached), place);
    let name = format!("{}-{id}", agents::component::of_id(owner));
    let told = (status, Arc::clone(&closed), changes.clone());
    let task = Task::new(id.clone(), name, shell, config, told, limits);
    let (ready, started) = oneshot::channel();
    let handle = tokio::spawn(task.run(requests, cancel, ready));
    let motd = match started.await {
        Ok(Ok(motd)) => motd,
        failure => {
            let joined = handle.await;
            return Err(match failure {
                Ok(Err(error)) => error,
                _ => {
                    TerminalError::ShellStartFailed(format!("the session's task ended: {joined:?}"))
                }
            });
        }
    };
    Ok(BashSession {
        id,
        pid: pid.unsigned_abs(),
        motd,
        max_input_bytes,
        status: watched,
        closed,
        reached,
        mailbox,
        changes,
        next_exchange: AtomicU64::new(1),
        task: Mutex::new(Some(handle)),
    })
}

/// What is told of a session whose task has failed.
pub(crate) fn failed(id: &SessionId) -> TerminalError {
    TerminalError::Backend(format!(
        "the host's own task for terminal session {id} failed, and its processes were killed: close \
         it and open another one"
    ))
}

impl BashSession {
    fn has_failed(&self) -> bool {
        self.mailbox.is_closed() && !self.closed.load(Ordering::Acquire)
    }

    /// Why nobody answers any more.
    fn gone(&self) -> TerminalError {
        if self.has_failed() {
            return failed(&self.id);
        }
        TerminalError::NoSession { id: self.id.to_string() }
    }

    fn require_running(&self) -> Result<(), TerminalError> {
        if self.status() == SessionStatus::Running {
            return Ok(());
        }
        Err(TerminalError::SessionExited { id: self.id.to_string() })
    }

    /// Starts an exchange.
    fn exchange(
        &self,
        cancel: Cancel,
        request: impl FnOnce(Settler) -> Request,
    ) -> Result<Arc<dyn SendOperation>, TerminalError> {
        let number = self.next_exchange.fetch_add(1, Ordering::Relaxed);
        let (operation, settler) = operation::exchange(
            self.id.clone(),
            number,
            cancel,
            self.mailbox.clone(),
            self.changes.clone(),
        );
        self.mailbox.send(request(settler)).map_err(|_| self.gone())?;
        Ok(Arc::new(operation))
    }

    /// Asks the task, which answers everything until the session is closed.
    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> Request,
    ) -> Result<T, TerminalError> {
        let (reply, answer) = oneshot::channel();
        self.mailbox.send(request(reply)).map_err(|_| self.gone())?;
        if let Ok(answer) = answer.await {
            return Ok(answer);
        }
        // A request is dropped a moment before the mailbox.
        self.mailbox.closed().await;
        Err(self.gone())
    }
}

#[async_trait]
impl TerminalSession for BashSession {
    fn pid(&self) -> Option<u32> {
        Some(self.pid)
    }

    fn motd(&self) -> String {
        self.motd.clone()
    }

    fn status(&self) -> SessionStatus {
        let status = self.status.borrow().clone();
        if status == SessionStatus::Running && self.has_failed() {
            return SessionStatus::Exited { exit_code: None, signal: None };
        }
        status
    }

    fn limit(&self) -> Option<String> {
        self.reached.get().cloned()
    }

    fn start_send(&self, request: SendRequest) -> Result<Arc<dyn SendOperation>, TerminalError> {
        self.require_running()?;
        let bytes = request.text.len() as u64;
        if bytes > self.max_input_bytes {
            return Err(TerminalError::InputTooLarge { bytes, limit: self.max_input_bytes });
        }
        let cancel = request.cancel.clone();
        self.exchange(cancel, |settler| Request::Send { request, settler })
    }

    fn start_keys(&self, request: KeysRequest) -> Result<Arc<dyn SendOperation>, TerminalError> {
        self.require_running()?;
        let cancel = request.cancel.clone();
        self.exchange(cancel, |settler| Request::Keys { request, settler })
    }

    async fn screen(&self) -> Result<ScreenSnapshot, TerminalError> {
        self.ask(|reply| Request::Screen { reply }).await
    }

    async fn resize(&self, size: WindowSize) -> Result<(), TerminalError> {
        self.ask(|reply| Request::Resize { size, reply }).await?
    }

    async fn wait(&self, request: WaitRequest) -> Result<WaitOutcome, TerminalError> {
        let wanted = Wanted::new(request)?;
        self.ask(|reply| Request::Wait { wanted, reply }).await
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadPage, TerminalError> {
        match self.ask(|reply| Request::Read { request, reply }).await? {
            Read::Page(page) => Ok(page),
            Read::From(mut text) => blocking(move || text.page(request)).await,
        }
    }

    async fn search(&self, request: SearchRequest) -> Result<SearchPage, TerminalError> {
        let regex = search::compile(&request)?;
        let mut text = self.ask(|reply| Request::Text { reply }).await?;
        blocking(move || search::search(&mut text, &regex, &request)).await
    }

    async fn watch(&self) -> Result<Box<dyn Watcher>, TerminalError> {
        let mailbox = self.mailbox.clone();
        let viewer = self.ask(|reply| Request::View { mailbox, reply }).await?;
        Ok(Box::new(viewer))
    }

    async fn type_by_hand(&self, input: ByHand) -> Result<(), TerminalError> {
        self.require_running()?;
        self.ask(|reply| Request::ByHand { input, reply }).await?
    }

    async fn signal(&self, signal: Signal) -> Result<SignalReceipt, TerminalError> {
        self.require_running()?;
        self.ask(|reply| Request::Signal { signal, reply }).await?
    }

    async fn close(&self, request: CloseRequest) -> Result<(), TerminalError> {
        let closed = self.ask(|reply| Request::Close { grace: request.grace, reply }).await;
        if let Ok(Err(refused)) = closed {
            return Err(refused);
        }
        // The task ends with the close. One that ended before, by a panic, has dropped the process,
        // which kills what can be killed at once; that is reported once, and then there is no more.
        let task = lock(&self.task).take();
        match task {
            Some(task) => task.await.map_err(|error| {
                TerminalError::Backend(format!("the task of session {} failed: {error}", self.id))
            }),
            None => Ok(()),
        }
    }
}

/// Reads from files where that delays nobody.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, TerminalError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| TerminalError::Backend(format!("reading older output failed: {error}")))
}
