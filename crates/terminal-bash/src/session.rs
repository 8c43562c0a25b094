//! One session: a task that owns the process on its terminal, the screen, and the live exchange.
//!
//! Everybody else holds a mailbox. The task handles one thing at a time, so there is no lock and
//! no order to get wrong: what a request sees is what all events before it left.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use dsh_core::{Cancel, async_trait};
use subprocess::{Depth, Event, ExitStatus, SignalError, TerminalProcess};
use terminal::{
    CloseRequest, DISPOSAL_GRACE, InputReceipt, LastCommand, OutputDelta, ReadPage, ReadRequest,
    SendOperation, SendOutcome, SendRequest, SendState, SessionId, SessionStatus, Signal,
    SignalReceipt, StateKind, TerminalError, TerminalSession, WaitReason,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
};

use crate::{
    config::Config,
    dialect::Nonce,
    input,
    operation::{Follower, Operation, Settled, Shared},
    readiness::{
        Exchange, InputFacts, Judge, Limits, Moment, ScreenFacts, Settlement, ShellMarks, Step,
        judge::Context, marks::Finished,
    },
    screen::{Position, Screen, ScreenConfig, ScreenEvent},
};

/// What the holders of the mailbox ask of the task.
pub(crate) enum Request {
    Send { request: SendRequest, shared: Arc<Shared> },
    Delta { exchange: u64, follower: Follower, reply: oneshot::Sender<Option<OutputDelta>> },
    Read { request: ReadRequest, reply: oneshot::Sender<ReadPage> },
    Signal { signal: Signal, reply: oneshot::Sender<Result<SignalReceipt, TerminalError>> },
    Close { grace: Option<Duration>, reply: oneshot::Sender<Result<(), TerminalError>> },
}

/// A session, for the registry.
pub(crate) struct BashSession {
    id: SessionId,
    pid: u32,
    motd: String,
    max_input_bytes: u64,
    status: watch::Receiver<SessionStatus>,
    mailbox: mpsc::UnboundedSender<Request>,
    next_exchange: AtomicU64,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// A session whose shell is ready, or why there is none.
pub(crate) async fn open(
    id: SessionId,
    process: Box<dyn TerminalProcess>,
    nonce: Nonce,
    config: Arc<Config>,
    cancel: Cancel,
) -> Result<BashSession, TerminalError> {
    let pid = process.pid();
    let (mailbox, requests) = mpsc::unbounded_channel();
    let (status, watched) = watch::channel(SessionStatus::Running);
    let max_input_bytes = config.max_input_bytes;
    let task = Task::new(id.clone(), process, nonce, config, status);
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
        mailbox,
        next_exchange: AtomicU64::new(1),
        task: Mutex::new(Some(handle)),
    })
}

impl BashSession {
    /// Asks the task, which answers everything until the session is closed.
    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> Request,
    ) -> Result<T, TerminalError> {
        let (reply, answer) = oneshot::channel();
        let gone = || TerminalError::NoSession { id: self.id.to_string() };
        self.mailbox.send(request(reply)).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
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
        self.status.borrow().clone()
    }

    fn start_send(&self, request: SendRequest) -> Result<Arc<dyn SendOperation>, TerminalError> {
        if self.status() != SessionStatus::Running {
            return Err(TerminalError::SessionExited { id: self.id.to_string() });
        }
        let bytes = request.text.len() as u64;
        if bytes > self.max_input_bytes {
            return Err(TerminalError::InputTooLarge { bytes, limit: self.max_input_bytes });
        }
        let number = self.next_exchange.fetch_add(1, Ordering::Relaxed);
        let shared = Shared::new(number, request.cancel.clone());
        let operation = Operation::new(Arc::clone(&shared), self.mailbox.clone());
        self.mailbox
            .send(Request::Send { request, shared })
            .map_err(|_| TerminalError::NoSession { id: self.id.to_string() })?;
        Ok(Arc::new(operation))
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadPage, TerminalError> {
        self.ask(|reply| Request::Read { request, reply }).await
    }

    async fn signal(&self, signal: Signal) -> Result<SignalReceipt, TerminalError> {
        if self.status() != SessionStatus::Running {
            return Err(TerminalError::SessionExited { id: self.id.to_string() });
        }
        self.ask(|reply| Request::Signal { signal, reply }).await?
    }

    async fn close(&self, request: CloseRequest) -> Result<(), TerminalError> {
        self.ask(|reply| Request::Close { grace: request.grace, reply }).await??;
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task
            && let Err(error) = task.await
        {
            return Err(TerminalError::Backend(format!("the session's task failed: {error}")));
        }
        Ok(())
    }
}

/// The one owner of a session.
struct Task {
    id: SessionId,
    process: Box<dyn TerminalProcess>,
    screen: Screen,
    marks: ShellMarks,
    nonce: Nonce,
    judge: Judge,
    config: Arc<Config>,
    status: watch::Sender<SessionStatus>,
    born: Instant,
    /// Where the text ends that was delivered last.
    delivered: Position,
    live: Option<Live>,
    /// The shell has ended and its output has not.
    exit: Option<SessionStatus>,
    output_ended: bool,
    /// Whether bracketed paste was switched on, and how often it was switched at all.
    editor_switches: u64,
    output: Vec<u8>,
    events: Vec<ScreenEvent>,
}

/// The exchange that runs.
struct Live {
    exchange: Exchange,
    shared: Option<Arc<Shared>>,
    start: Position,
    followers: BTreeMap<Follower, Position>,
    before: Before,
    text: String,
    total: usize,
    echoed: bool,
    cancelled: bool,
}

/// What the terminal looked like when the input was written.
#[derive(Clone, Copy)]
struct Before {
    line_feeds: u64,
    editor_switches: u64,
    alternate: bool,
    canonical: Option<bool>,
    /// The shell itself was reading a command line.
    shell_edits: bool,
    /// An answer is only worth something if the program shows that it acted upon the input.
    must_act: bool,
}

impl Task {
    fn new(
        id: SessionId,
        process: Box<dyn TerminalProcess>,
        nonce: Nonce,
        config: Arc<Config>,
        status: watch::Sender<SessionStatus>,
    ) -> Self {
        let screen = Screen::new(ScreenConfig {
            rows: config.rows.get(),
            cols: config.cols.get(),
            max_lines: usize::try_from(config.scrollback_lines).unwrap_or(usize::MAX),
            max_bytes: usize::try_from(config.scrollback_max_bytes).unwrap_or(usize::MAX),
        });
        Self {
            id,
            judge: Judge::new(process.pid()),
            process,
            delivered: screen.end(),
            screen,
            marks: ShellMarks::default(),
            nonce,
            config,
            status,
            born: Instant::now(),
            live: None,
            exit: None,
            output_ended: false,
            editor_switches: 0,
            output: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Starts the shell, then serves until the session is closed or nobody can close it any more.
    async fn run(
        mut self,
        requests: mpsc::UnboundedReceiver<Request>,
        cancel: Cancel,
        ready: oneshot::Sender<Result<String, TerminalError>>,
    ) {
        match self.start(cancel).await {
            // A caller that has gone meanwhile holds no mailbox either, so serving ends at once.
            Ok(motd) => {
                ready.send(Ok(motd)).ok();
                self.serve(requests).await;
            }
            Err(error) => {
                ready.send(Err(self.undo(error).await)).ok();
            }
        }
    }

    /// Waits until the shell reads its first command.
    async fn start(&mut self, cancel: Cancel) -> Result<String, TerminalError> {
        self.begin_exchange(None, String::new(), InputFacts::default(), false);
        let settled = loop {
            tokio::select! {
                () = cancel.cancelled() => {
                    let reason = cancel.reason().unwrap_or("cancelled").to_owned();
                    return Err(TerminalError::Cancelled { reason });
                }
                settled = self.advance() => if let Some(settled) = settled { break settled },
            }
        };
        self.live = None;
        let slice = self.screen.since(&self.delivered, self.max_read());
        let shown = slice.text;
        let failed = |what: String| {
            let shown = shown.trim();
            let shown = if shown.is_empty() { "it printed nothing" } else { shown };
            Err(TerminalError::ShellStartFailed(format!("{what}: {shown}")))
        };
        match settled.reason {
            WaitReason::SessionExit => {
                let how = describe_exit(self.exit.as_ref());
                failed(format!(
                    "`{}` {how} before its first prompt",
                    self.config.shell_path.display()
                ))
            }
            WaitReason::Timeout => failed(format!(
                "`{}` showed no prompt within {} ms",
                self.config.shell_path.display(),
                self.config.timeout_ms
            )),
            WaitReason::StdinRead | WaitReason::InferredIdle => {
                self.delivered = self.screen.end();
                Ok(shown)
            }
        }
    }

    /// Ends what a failed start left; the error says if that failed too.
    async fn undo(&mut self, error: TerminalError) -> TerminalError {
        match self.end(Some(DISPOSAL_GRACE)).await {
            Ok(()) => error,
            Err(survivors) => TerminalError::CloseIncomplete(format!("{error}; and {survivors}")),
        }
    }

    /// Handles events and requests until the session is closed, or nobody holds the mailbox.
    async fn serve(&mut self, mut requests: mpsc::UnboundedReceiver<Request>) {
        loop {
            // A program that never pauses must not keep the others of this thread waiting.
            tokio::task::consume_budget().await;
            let cancel = self.cancel_signal();
            tokio::select! {
                request = requests.recv() => {
                    let Some(request) = request else {
                        if let Err(error) = self.end(None).await {
                            tracing::error!("abandoned session {}: {error}", self.id);
                        }
                        return;
                    };
                    if self.handle(request).await.is_break() {
                        return;
                    }
                }
                () = cancelled(cancel) => self.cancel_live(),
                settled = self.advance() => if let Some(settled) = settled {
                    self.settle(&settled);
                },
            }
        }
    }

    async fn handle(&mut self, request: Request) -> ControlFlow<()> {
        // Whatever arrived while the mailbox was served first.
        self.take_output();
        match request {
            Request::Send { request, shared } => self.send(&request, shared),
            Request::Delta { exchange, follower, reply } => {
                reply.send(self.delta(exchange, follower)).ok();
            }
            Request::Read { request, reply } => {
                self.drain();
                let page = self.screen.page(request.offset, request.count, self.max_read());
                reply
                    .send(ReadPage {
                        text: page.text,
                        total_lines: page.total_lines,
                        line_begin: page.line_begin,
                        line_end: page.line_end,
                        truncated: page.truncated,
                        first_line: Some(page.first_line),
                    })
                    .ok();
            }
            Request::Signal { signal, reply } => {
                reply.send(self.signal(signal)).ok();
            }
            Request::Close { grace, reply } => {
                let closed = self.close(grace).await;
                let flow =
                    if closed.is_ok() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
                reply.send(closed).ok();
                return flow;
            }
        }
        ControlFlow::Continue(())
    }

    // ---- exchange -------------------------------------------------------------------------

    /// Waits for the next event and lets the exchange act on it. Cancel-safe: an event that was
    /// taken is handled before the next await.
    async fn advance(&mut self) -> Option<Settlement> {
        if let Some(settled) = self.ended() {
            return Some(settled);
        }
        let deadline = match &self.live {
            // Of a shell that has ended only the rest of its output is waited for.
            _ if self.exit.is_some() => None,
            None => None,
            Some(live) => match live.exchange.step(self.now()) {
                Step::Wait(until) => Some(self.born + until),
                Step::Settled(settled) => return Some(settled),
                Step::Look(depth) => {
                    return if self.drain() { None } else { self.look(depth).await };
                }
                Step::LastLook => return self.look(Depth::Full).await,
            },
        };
        if self.output_ended && deadline.is_none() {
            // Nothing will ever come; only the mailbox can end this.
            return std::future::pending().await;
        }
        let event = self.process.next(deadline, &mut self.output).await;
        self.take_output();
        let now = self.now();
        match event {
            Event::Output | Event::Deadline | Event::Written => {}
            Event::Activity => {
                if let Some(live) = &mut self.live {
                    live.exchange.stirred(now);
                }
            }
            Event::Exited(status) => self.exited(status),
            Event::OutputEnd => self.output_ended = true,
        }
        self.ended()
    }

    /// The settlement of a live exchange whose shell has ended.
    fn ended(&self) -> Option<Settlement> {
        let ended = self.exit.is_some() && self.output_ended;
        self.live.as_ref().filter(|_| ended).map(|live| live.exchange.exited())
    }

    async fn look(&mut self, depth: Depth) -> Option<Settlement> {
        let evidence = self.process.probe(depth).await;
        let now = self.now();
        let context = self.context(&evidence);
        let live = self.live.as_mut()?;
        match live.exchange.look(now, &evidence, &context, &mut self.judge) {
            Step::Settled(settled) => Some(settled),
            Step::Wait(_) | Step::Look(_) | Step::LastLook => None,
        }
    }

    fn context(&self, evidence: &subprocess::Evidence) -> Context {
        let Some(live) = &self.live else { return Context::default() };
        let before = &live.before;
        let canonical = evidence.modes.map(|it| it.canonical);
        let switched = self.editor_switches != before.editor_switches;
        let bracketed_paste = self.screen.bracketed_paste();
        Context {
            screen: ScreenFacts {
                alternate: self.screen.alternate(),
                bracketed_paste,
                editor_opened: bracketed_paste
                    && switched
                    && !input::is_echoed(&live.text, &self.screen.cursor_line()),
                text_before_cursor: self.screen.cursor_column() > 0,
                acted_upon: !before.must_act
                    || switched
                    || self.screen.line_feeds() != before.line_feeds
                    || self.screen.alternate() != before.alternate
                    || canonical != before.canonical,
            },
            prompt: self.marks.prompt(),
            unfinished: live.exchange.unfinished(),
        }
    }

    fn send(&mut self, request: &SendRequest, shared: Arc<Shared>) {
        self.drain();
        if self.exit.is_some() {
            let error = TerminalError::SessionExited { id: self.id.to_string() };
            return shared.settle(Err(error), BTreeMap::new());
        }
        let modes = self.process.modes();
        if modes.is_some_and(|it| it.canonical)
            && let Some(error) = input::too_long_for_a_line(&request.text)
        {
            return shared.settle(Err(error), BTreeMap::new());
        }
        let bytes = input::bytes(&request.text, request.submit, self.marks.prompt().is_some());
        let facts = InputFacts { unfinished: input::is_unfinished(&bytes) };
        self.begin_exchange(Some(shared), request.text.clone(), facts, request.background);
        if let Some(live) = &mut self.live {
            live.total = bytes.len();
            live.echoed = modes.is_none_or(|it| it.echo || !it.canonical);
            live.before.must_act =
                request.submit && !self.screen.alternate() && modes.is_some_and(|it| !it.canonical);
        }
        self.process.write(&bytes);
    }

    fn begin_exchange(
        &mut self,
        shared: Option<Arc<Shared>>,
        text: String,
        input: InputFacts,
        background: bool,
    ) {
        let now = self.now();
        let limits = Limits {
            longest_gap: Duration::from_millis(self.config.poll_interval_ms),
            idle_silence: Duration::from_millis(self.config.idle_silence_ms),
            handoff_grace: Duration::from_millis(self.config.handoff_grace_ms),
            timeout: self.config.bound(background),
        };
        let before = Before {
            line_feeds: self.screen.line_feeds(),
            editor_switches: self.editor_switches,
            alternate: self.screen.alternate(),
            canonical: self.process.modes().map(|it| it.canonical),
            shell_edits: self.marks.prompt().is_none() && self.screen.bracketed_paste(),
            must_act: false,
        };
        self.marks.begin();
        self.live = Some(Live {
            exchange: Exchange::begin(now, limits, input),
            shared,
            start: self.delivered.clone(),
            followers: BTreeMap::new(),
            before,
            text,
            total: 0,
            echoed: true,
            cancelled: false,
        });
    }

    fn settle(&mut self, settled: &Settlement) {
        let Some(live) = self.live.take() else { return };
        let Some(shared) = &live.shared else { return };
        let slice = self.screen.since(&live.start, self.max_read());
        self.delivered = self.screen.end();
        let unwritten = self.process.unwritten();
        let outcome = SendOutcome {
            viewport: slice.text,
            wait_reason: settled.reason,
            session_status: self.exit.clone().unwrap_or(SessionStatus::Running),
            truncated: slice.truncated,
            last_command: self.last_command(&live, settled),
            state: Some(self.state(settled)),
            input: Some(InputReceipt {
                accepted: (live.total - unwritten.min(live.total)) as u64,
                unread: (unwritten as u64) + self.process.unread_bytes().unwrap_or(0),
            }),
            repaired: Vec::new(),
            echoed: live.echoed,
        };
        self.finish(&live, Ok(outcome));
        debug_assert!(shared.is_settled(), "an exchange settles when it is taken");
    }

    /// Hands the outcome over, with what each follower has not taken.
    fn finish(&mut self, live: &Live, outcome: Settled) {
        let Some(shared) = &live.shared else { return };
        let mut leftovers = BTreeMap::new();
        for (&follower, position) in &live.followers {
            let mut position = position.clone();
            let slice = self.screen.delta(&mut position, self.max_read());
            leftovers
                .insert(follower, OutputDelta { text: slice.text, truncated: slice.truncated });
        }
        shared.settle(outcome, leftovers);
    }

    fn state(&self, settled: &Settlement) -> SendState {
        let judgement = settled.judgement.as_ref();
        let modes = self.process.modes();
        let silent = modes.is_some_and(|it| it.canonical && !it.echo);
        let running = matches!(settled.kind, StateKind::Running | StateKind::Relay);
        SendState {
            kind: settled.kind,
            evidence: settled.evidence,
            echo: settled.kind != StateKind::Password && !(silent && !running),
            alternate_screen: self.screen.alternate(),
            foreground: judgement.and_then(|it| it.foreground.clone()),
            busy: judgement.filter(|_| running).and_then(|it| it.busy),
            output_complete: settled.output_complete,
        }
    }

    /// The shell command that ended in this exchange: told by the shell's marks, or, where they
    /// are gone, known only to have ended.
    fn last_command(&mut self, live: &Live, settled: &Settlement) -> Option<LastCommand> {
        let shell = self.process.pid();
        let shell_waits = settled.reason == WaitReason::StdinRead
            && settled
                .judgement
                .as_ref()
                .and_then(|it| it.foreground.as_ref())
                .is_some_and(|it| it.pid == shell);
        let finished = if settled.kind == StateKind::Prompt {
            self.marks.finished().or_else(|| self.syntax_error(live))
        } else if shell_waits && settled.kind == StateKind::LineEditor {
            let typed_a_command = live.before.shell_edits && !live.text.trim().is_empty();
            self.marks.take_untold(self.now()).or_else(|| {
                typed_a_command.then_some(Finished { status: None, duration: Moment::ZERO })
            })
        } else {
            // A command that ended earlier in this exchange, while another one runs now.
            self.marks.finished()
        }?;
        Some(LastCommand {
            exit_code: finished.status,
            duration_ms: u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
            cwd: self.process.cwd(),
        })
    }

    /// bash runs nothing after a syntax error, and says so only by the status 2.
    fn syntax_error(&self, live: &Live) -> Option<Finished> {
        let text = live.text.trim();
        let typed = !text.is_empty() && !text.starts_with('#') && !live.cancelled;
        let interrupted = text.contains('\u{3}');
        let status = self.marks.status_without_command().filter(|status| *status == 2)?;
        (typed && !interrupted).then_some(Finished { status: Some(status), duration: Moment::ZERO })
    }

    fn delta(&mut self, exchange: u64, follower: Follower) -> Option<OutputDelta> {
        let max = self.max_read();
        let live = self.live.as_mut()?;
        if live.shared.as_ref()?.number != exchange {
            return None;
        }
        let position = live.followers.entry(follower).or_insert_with(|| live.start.clone());
        let slice = self.screen.delta(position, max);
        Some(OutputDelta { text: slice.text, truncated: slice.truncated })
    }

    // ---- cancel, signal, close ------------------------------------------------------------

    /// The live exchange's cancellation, as long as it was not acted upon.
    fn cancel_signal(&self) -> Option<Cancel> {
        let live = self.live.as_ref().filter(|live| !live.cancelled)?;
        live.shared.as_ref().map(|shared| shared.cancel.clone())
    }

    /// Interrupts the foreground for real. The exchange goes on until it settles by itself, so no
    /// later one can receive its bytes or its signal.
    fn cancel_live(&mut self) {
        self.process.discard_unwritten();
        let now = self.now();
        if let Some(live) = &mut self.live {
            live.cancelled = true;
            live.exchange.stirred(now);
        }
        match self.process.signal_foreground(Signal::Interrupt.name()) {
            // Nobody is in front: then nobody has to be interrupted.
            Ok(_) | Err(SignalError::NoForegroundGroup) => {}
            Err(error) => tracing::warn!("cancelling a send: {error}"),
        }
    }

    fn signal(&mut self, signal: Signal) -> Result<SignalReceipt, TerminalError> {
        if signal == Signal::Kill && self.process.foreground() == Some(self.process.pid()) {
            return Err(TerminalError::ShellKillRefused);
        }
        let target_pgid =
            self.process.signal_foreground(signal.name()).map_err(|error| match error {
                SignalError::NoForegroundGroup => TerminalError::NoForegroundGroup,
                failed @ SignalError::Failed { .. } => TerminalError::Backend(failed.to_string()),
            })?;
        let now = self.now();
        if let Some(live) = &mut self.live {
            live.exchange.stirred(now);
        }
        Ok(SignalReceipt { target_pgid })
    }

    /// Ends the session, and a live send with it, whose outcome then has the shell's end.
    async fn close(&mut self, grace: Option<Duration>) -> Result<(), TerminalError> {
        let ended = self.end(grace).await;
        if let Some(settled) = self.live.as_ref().map(|live| live.exchange.exited()) {
            self.settle(&settled);
        }
        ended.map_err(TerminalError::CloseIncomplete)
    }

    /// Ends every process of the session, within the configured grace or a shorter one.
    async fn end(&mut self, longest: Option<Duration>) -> Result<(), String> {
        let configured = Duration::from_millis(self.config.dispose_grace_ms);
        let grace = longest.map_or(configured, |longest| longest.min(configured));
        let ended = self.process.terminate(grace, &mut self.output).await;
        self.take_output();
        if let Some(status) = self.process.exit_status() {
            self.exited(status);
        }
        ended.map_err(|error| error.to_string())
    }

    fn exited(&mut self, status: ExitStatus) {
        let status = session_status(status);
        self.exit = Some(status.clone());
        self.status.send_replace(status);
    }

    // ---- output ---------------------------------------------------------------------------

    /// Reads what is there now; false if there was nothing.
    fn drain(&mut self) -> bool {
        let any = self.process.drain(&mut self.output);
        self.take_output();
        any
    }

    /// Applies the bytes that were read.
    fn take_output(&mut self) {
        if self.output.is_empty() {
            return;
        }
        let now = self.now();
        let bytes = self.output.len();
        self.screen.feed(&self.output, &mut self.events);
        self.output.clear();
        let mut marked = false;
        for event in self.events.drain(..) {
            match event {
                ScreenEvent::Osc133 { payload, .. } => {
                    if let Some(mark) = self.nonce.read_mark(&payload) {
                        self.marks.mark(mark, now);
                        marked = true;
                    }
                }
                ScreenEvent::BracketedPaste { .. } => self.editor_switches += 1,
                ScreenEvent::AlternateScreen { .. } | ScreenEvent::Query { .. } => {}
            }
        }
        if let Some(live) = &mut self.live {
            live.exchange.output(now, bytes, self.screen.cursor_column() > 0);
            if marked && self.marks.prompt().is_none() {
                live.exchange.command_started(now);
            }
            if let Some(shared) = &live.shared {
                shared.announce_output();
            }
        }
    }

    fn now(&self) -> Moment {
        self.born.elapsed()
    }

    fn max_read(&self) -> usize {
        usize::try_from(self.config.max_read_bytes).unwrap_or(usize::MAX)
    }
}

async fn cancelled(cancel: Option<Cancel>) {
    match cancel {
        Some(cancel) => cancel.cancelled().await,
        None => std::future::pending().await,
    }
}

fn session_status(status: ExitStatus) -> SessionStatus {
    match status {
        ExitStatus::Code(code) => SessionStatus::Exited { exit_code: Some(code), signal: None },
        ExitStatus::Signal(name) => SessionStatus::Exited { exit_code: None, signal: Some(name) },
        ExitStatus::Unknown => SessionStatus::Exited { exit_code: None, signal: None },
    }
}

fn describe_exit(status: Option<&SessionStatus>) -> String {
    match status {
        Some(SessionStatus::Exited { exit_code: Some(code), .. }) => {
            format!("exited with status {code}")
        }
        Some(SessionStatus::Exited { signal: Some(signal), .. }) => {
            format!("was ended by {signal}")
        }
        _ => "ended".to_owned(),
    }
}
