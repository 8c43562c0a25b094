//! The scripted backend and its sessions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dsh_core::async_trait;
use terminal::{
    ByHand, CloseRequest, Lines, OpenRequest, ReadPage, ReadRequest, SendOperation, SendRequest,
    SessionStatus, Signal, SignalReceipt, TerminalBackend, TerminalError, TerminalSession,
    TypedByHand, WaitReason,
};

use super::{
    gate::Act,
    operation::ScriptedOperation,
    script::{Script, Step, decided},
};

/// Process id and process group of every scripted session.
pub const PID: u32 = 4711;

/// Opens sessions that follow a script.
pub struct ScriptedBackend {
    kind: String,
    script: Script,
}

impl ScriptedBackend {
    /// A backend of type `kind`.
    pub fn new(kind: &str, script: &Script) -> Self {
        Self { kind: kind.to_owned(), script: script.clone() }
    }
}

#[async_trait]
impl TerminalBackend for ScriptedBackend {
    fn kind(&self) -> &str {
        &self.kind
    }

    async fn open(&self, request: OpenRequest) -> Result<Arc<dyn TerminalSession>, TerminalError> {
        let (script, id) = (&self.script, request.session_id.as_str());
        script.add_request(&request);
        script.record(format!("open {id}"));
        let act = match script.take(Step::Open) {
            Act::Hold(gate) => {
                let passed = gate.pass();
                tokio::pin!(passed);
                tokio::select! {
                    biased;
                    act = &mut passed => act,
                    () = request.cancel.cancelled() => {
                        let reason = request.cancel.reason().unwrap_or_default().to_owned();
                        script.record(format!("open {id} cancelled: {reason}"));
                        if !script.is_deaf() {
                            return Err(TerminalError::Cancelled { reason });
                        }
                        passed.await
                    }
                }
            }
            act => act,
        };
        decided(Step::Open, act)?;
        let session = Arc::new(ScriptedSession {
            id: id.to_owned(),
            script: script.clone(),
            state: Mutex::new(State { status: SessionStatus::Running, screen: "dsh> ".to_owned() }),
            operations: Mutex::default(),
        });
        script.add_session(&session);
        script.record(format!("opened {id}"));
        Ok(session)
    }
}

/// One session of a [`ScriptedBackend`].
pub struct ScriptedSession {
    id: String,
    script: Script,
    state: Mutex<State>,
    operations: Mutex<Vec<Arc<ScriptedOperation>>>,
}

struct State {
    status: SessionStatus,
    screen: String,
}

impl ScriptedSession {
    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The top-level process ends; live sends settle as `session_exit`.
    pub fn exit(&self, exit_code: i32) {
        self.end(SessionStatus::Exited { exit_code: Some(exit_code), signal: None });
    }

    /// What [`TerminalSession::read`] pages through, lines separated by newlines.
    pub fn set_screen(&self, text: &str) {
        text.clone_into(&mut self.state().screen);
    }

    fn end(&self, status: SessionStatus) {
        let mut state = self.state();
        if state.status == SessionStatus::Running {
            state.status = status;
        }
        drop(state);
        let operations =
            std::mem::take(&mut *self.operations.lock().unwrap_or_else(PoisonError::into_inner));
        for operation in operations {
            operation.settle_as(WaitReason::SessionExit);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl TerminalSession for ScriptedSession {
    fn pid(&self) -> Option<u32> {
        Some(PID)
    }

    fn motd(&self) -> String {
        "dsh> ".to_owned()
    }

    fn status(&self) -> SessionStatus {
        self.state().status.clone()
    }

    fn start_send(&self, request: SendRequest) -> Result<Arc<dyn SendOperation>, TerminalError> {
        let line = format!("start_send {} {:?}", self.id, request.text);
        let act = self.script.take(Step::StartSend);
        // Whoever sees the line of one that goes on at once may ask for it.
        let at_once = matches!(act, Act::Succeed);
        if !at_once {
            self.script.record(line.clone());
        }
        let act = match act {
            Act::Hold(gate) => gate.pass_blocking(),
            act => act,
        };
        decided(Step::StartSend, act)?;
        let operation = Arc::new(ScriptedOperation::new(&self.id, &self.script, request));
        self.script.add_operation(&operation);
        if at_once {
            self.script.record(line);
        }
        match self.script.take(Step::Settle) {
            Act::Succeed => operation.settle_by_itself(),
            Act::Hold(gate) => {
                self.operations
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(Arc::clone(&operation));
                let held = Arc::clone(&operation);
                tokio::spawn(async move {
                    let following = Arc::clone(&held).follow_cancellation();
                    let opened = async {
                        match decided(Step::Settle, gate.pass().await) {
                            Ok(()) => held.settle_by_itself(),
                            Err(error) => drop(held.settle(Err(error))),
                        }
                    };
                    // A send that ignores its cancellation can still be let through.
                    tokio::pin!(opened);
                    tokio::select! {
                        () = &mut opened => return,
                        () = following => {}
                    }
                    if !held.is_settled() {
                        opened.await;
                    }
                });
            }
            act => {
                let settled = decided(Step::Settle, act);
                if let Err(error) = settled {
                    operation.settle(Err(error));
                }
            }
        }
        Ok(operation)
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadPage, TerminalError> {
        let ReadRequest { lines, count } = request;
        let at = match lines {
            Lines::Newest(offset) => offset.to_string(),
            Lines::From(line) => format!("from {line}"),
        };
        self.script.record(format!("read {} {at} {count}", self.id));
        self.script.perform(Step::Read).await?;
        let screen = self.state().screen.clone();
        Ok(page(&screen, lines, count))
    }

    async fn type_by_hand(&self, input: ByHand) -> Result<(), TerminalError> {
        self.script.record(format!("type_by_hand {}", self.id));
        (input.typed)(TypedByHand { hidden: input.secret });
        Ok(())
    }

    async fn signal(&self, signal: Signal) -> Result<SignalReceipt, TerminalError> {
        self.script.record(format!("signal {} {signal}", self.id));
        self.script.perform(Step::Signal).await?;
        Ok(SignalReceipt { target_pgid: PID.cast_signed() })
    }

    async fn close(&self, request: CloseRequest) -> Result<(), TerminalError> {
        self.script.record(format!("close {}: {}", self.id, request.reason));
        self.script.perform(Step::Close).await?;
        self.end(SessionStatus::Exited { exit_code: None, signal: Some("SIGHUP".to_owned()) });
        self.script.record(format!("closed {}", self.id));
        Ok(())
    }
}

fn page(screen: &str, at: Lines, count: u64) -> ReadPage {
    let lines: Vec<&str> =
        if screen.is_empty() { Vec::new() } else { screen.split('\n').collect() };
    let total = lines.len() as u64;
    let offset = match at {
        Lines::Newest(offset) => offset,
        Lines::From(line) => total.saturating_sub(line.saturating_add(count)),
    };
    let reach = match at {
        Lines::Newest(_) => offset.saturating_add(count),
        Lines::From(line) => total.saturating_sub(line),
    };
    let (begin, end) = (offset.min(total), reach.min(total));
    let at = |from_newest: u64| usize::try_from(total - from_newest).unwrap_or_default();
    let text = lines.get(at(end)..at(begin)).unwrap_or_default().join("\n");
    let first_line = (end > begin).then(|| total - end);
    ReadPage {
        text,
        total_lines: total,
        line_begin: offset,
        line_end: end.max(offset),
        truncated: false,
        first_line,
        lost: None,
    }
}
