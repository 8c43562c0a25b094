//! A small backend that keeps every promise of the kit, and breaks one where it is told to.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use dsh_core::{Ctx, Deps, Plugin, Provided, async_trait};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use terminal::{
    CloseRequest, LastCommand, Lines, OpenRequest, OutputDelta, OutputSubscription, ReadPage,
    ReadRequest, SearchMatch, SearchPage, SearchRequest, SendOperation, SendOutcome, SendRequest,
    SessionStatus, Signal, SignalReceipt, TerminalBackend, TerminalError, TerminalSession,
    Terminals, WaitReason,
};
use tokio::sync::watch;

pub(crate) const MAX_READ_BYTES: usize = 400;
pub(crate) const MAX_INPUT_BYTES: usize = 300;
const PROMPT: &str = "> ";
const GROUP: i32 = 4711;

/// What a broken backend does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub(crate) enum Fault {
    /// The outcome of a settled send grows with later output.
    SettlesAnew,
    /// What a job has taken is missing in the viewport.
    JobsEatOutput,
    /// A send that was cancelled keeps the session's slot.
    CancelledKeepsSlot,
    /// A settled send can be cancelled.
    CancelsSettled,
    /// A cancellation does nothing.
    DeafToCancellation,
    /// A command is called done as soon as it is silent.
    TrustsSilence,
    /// Enter is typed where none was asked for.
    PressesEnter,
    /// A text over the limit is typed as far as it goes.
    TypesTooMuch,
    /// The end of the session is told to nobody.
    HidesExit,
    /// Output between two sends is in neither.
    LosesLateOutput,
    /// What is cut does not say so.
    CutsInSilence,
    /// Pages have their newest line first.
    NewestFirst,
    /// Absolute numbers are counted from the newest line.
    LinesMove,
    /// A close leaves its live send alone.
    CloseForgetsSend,
    /// After a close that failed every further one fails.
    ClosesOnce,
    /// Processes outlive the close.
    LeavesProcesses,
    /// SIGKILL for the shell itself is delivered.
    KillsShell,
    /// A missing directory does not matter.
    IgnoresDirectory,
}

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    fault: Option<Fault>,
}

pub(crate) struct ModelPlugin;

#[async_trait]
impl Plugin for ModelPlugin {
    const NAME: &'static str = "terminal-model";
    type Config = Config;
    type Inject = (Terminals,);
    type Provide = ();

    async fn setup(
        ctx: &Ctx,
        (terminals,): Deps<Self>,
        config: Config,
    ) -> anyhow::Result<Provided<Self>> {
        terminals.register_backend(ctx.scope(), Arc::new(Model { fault: config.fault }))?;
        Ok(())
    }
}

dsh_core::register_plugin!(ModelPlugin);

struct Model {
    fault: Option<Fault>,
}

#[async_trait]
impl TerminalBackend for Model {
    fn kind(&self) -> &'static str {
        "model"
    }

    async fn open(&self, request: OpenRequest) -> Result<Arc<dyn TerminalSession>, TerminalError> {
        let cwd = request.cwd.unwrap_or_else(|| "/".to_owned());
        if !std::path::Path::new(&cwd).is_dir() && self.fault != Some(Fault::IgnoresDirectory) {
            return Err(TerminalError::InvalidCwd { cwd, reason: "no directory".to_owned() });
        }
        tokio::task::yield_now().await;
        let state = State { text: PROMPT.to_owned(), cwd, ..State::default() };
        let shared =
            Shared { fault: self.fault, state: Mutex::new(state), grown: watch::Sender::default() };
        Ok(Arc::new(Session(Arc::new(shared))))
    }
}

struct Session(Arc<Shared>);

struct Shared {
    fault: Option<Fault>,
    state: Mutex<State>,
    grown: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    /// All that was shown.
    text: String,
    /// The line that is being typed.
    line: String,
    cwd: String,
    /// Where the last viewport ended.
    delivered: usize,
    live: Option<Arc<Exchange>>,
    exited: Option<SessionStatus>,
    last: Option<i32>,
    closes_that_fail: u32,
    children: Children,
}

/// What broken closes have left.
static LEFT: Mutex<Vec<Children>> = Mutex::new(Vec::new());

/// Ends it.
pub(crate) fn end_what_was_left() {
    lock(&LEFT).clear();
}

/// Processes of a session.
#[derive(Default)]
struct Children(Vec<Child>);

impl Children {
    fn end(&mut self) {
        for mut child in self.0.drain(..) {
            child.kill().and_then(|()| child.wait()).unwrap();
        }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.end();
    }
}

struct Exchange {
    shared: Arc<Shared>,
    start: Mutex<usize>,
    taken: Mutex<usize>,
    settled: watch::Sender<Option<(usize, SendOutcome)>>,
    cancelled: Mutex<bool>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn is(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn status(&self, state: &State) -> SessionStatus {
        let told = state.exited.clone().filter(|_| !self.is(Fault::HidesExit));
        told.unwrap_or(SessionStatus::Running)
    }

    /// Takes Enter.
    fn enter(self: &Arc<Self>, state: &mut State) {
        let line = std::mem::take(&mut state.line);
        state.text.push('\n');
        let (command, argument) = line.split_once(' ').unwrap_or((&line, ""));
        let number = || argument.parse::<u32>().unwrap();
        state.last = (!command.is_empty()).then_some(0);
        match command {
            "say" => state.text.extend([argument, "\n"]),
            "count" => state.text.extend((1..=number()).map(|n| format!("{n}\n"))),
            "cwd" => {
                let State { text, cwd, .. } = state;
                text.extend([cwd.as_str(), "\n"]);
            }
            "fail" => state.last = Some(number().cast_signed()),
            "stubborn" => state.closes_that_fail = 1,
            "leave" => {
                let mut waiting = Command::new("sh");
                waiting.args(["-c", "read forever; :", argument]).stdin(Stdio::piped());
                state.children.0.push(waiting.spawn().unwrap());
            }
            "exit" => {
                let exit_code = Some(number().cast_signed());
                state.exited = Some(SessionStatus::Exited { exit_code, signal: None });
                let told = !self.is(Fault::HidesExit);
                return self.settle(
                    state,
                    if told { WaitReason::SessionExit } else { WaitReason::StdinRead },
                );
            }
            "wait" => return,
            "slow" | "later" => {
                let word = argument.to_owned();
                let later = command == "later";
                let shared = Arc::clone(self);
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    let mut state = lock(&shared.state);
                    state.text.extend([&word, "\n"]);
                    if !later {
                        shared.prompt(&mut state);
                    } else if shared.is(Fault::LosesLateOutput) {
                        state.delivered = state.text.len();
                    }
                    shared.grown.send_replace(());
                });
                if !later && !self.is(Fault::TrustsSilence) {
                    return;
                }
            }
            _ => {}
        }
        self.prompt(state);
    }

    fn prompt(&self, state: &mut State) {
        state.text.push_str(PROMPT);
        self.settle(state, WaitReason::StdinRead);
    }

    fn settle(&self, state: &mut State, wait_reason: WaitReason) {
        let Some(live) = state.live.take() else { return };
        let (viewport, cut) = newest(&state.text[*lock(&live.start)..]);
        let last = state.last.take();
        let outcome = SendOutcome {
            last_command: last.map(|status| LastCommand {
                exit_code: Some(status),
                duration_ms: 0,
                cwd: None,
            }),
            session_status: self.status(state),
            truncated: cut && !self.is(Fault::CutsInSilence),
            ..testkit::scripted::outcome(viewport, wait_reason)
        };
        state.delivered = state.text.len();
        live.settled.send_replace(Some((state.text.len(), outcome)));
    }

    fn interrupt(&self) {
        let mut state = lock(&self.state);
        state.line.clear();
        state.text.push_str("^C\n");
        self.prompt(&mut state);
        self.grown.send_replace(());
    }
}

/// The newest part that fits into the bound, and whether that is not all.
fn newest(text: &str) -> (&str, bool) {
    let from = text.ceil_char_boundary(text.len().saturating_sub(MAX_READ_BYTES));
    (&text[from..], from > 0)
}

#[async_trait]
impl TerminalSession for Session {
    fn pid(&self) -> Option<u32> {
        None
    }

    fn motd(&self) -> String {
        PROMPT.to_owned()
    }

    fn status(&self) -> SessionStatus {
        self.0.status(&lock(&self.0.state))
    }

    fn start_send(&self, request: SendRequest) -> Result<Arc<dyn SendOperation>, TerminalError> {
        let (shared, bytes) = (&self.0, request.text.len());
        let mut state = lock(&shared.state);
        if state.delivered == 0 {
            state.delivered = PROMPT.len();
        }
        if bytes > MAX_INPUT_BYTES {
            if shared.is(Fault::TypesTooMuch) {
                state.text.push_str(&request.text[..MAX_INPUT_BYTES]);
            }
            let limit = MAX_INPUT_BYTES as u64;
            return Err(TerminalError::InputTooLarge { bytes: bytes as u64, limit });
        }
        let exchange = Arc::new(Exchange {
            shared: Arc::clone(shared),
            start: Mutex::new(state.delivered),
            taken: Mutex::new(state.delivered),
            settled: watch::Sender::default(),
            cancelled: Mutex::new(false),
        });
        state.live = Some(Arc::clone(&exchange));
        let mut lines = request.text.split('\n').peekable();
        while let Some(line) = lines.next() {
            state.line.push_str(line);
            state.text.push_str(line);
            if lines.peek().is_some() {
                // The live send goes on: only its last line may settle it.
                let live = state.live.take();
                shared.enter(&mut state);
                state.live = live;
            } else if request.submit || shared.is(Fault::PressesEnter) {
                shared.enter(&mut state);
            } else {
                shared.settle(&mut state, WaitReason::InferredIdle);
            }
        }
        drop(state);
        shared.grown.send_replace(());
        let (told, cancelled) = (Arc::clone(&exchange), request.cancel);
        tokio::spawn(async move {
            let mut settled = told.settled.subscribe();
            tokio::select! {
                _ = settled.wait_for(Option::is_some) => {}
                () = cancelled.cancelled() => drop(told.cancel("by its token")),
            }
        });
        Ok(exchange)
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadPage, TerminalError> {
        let state = lock(&self.0.state);
        let mut lines: Vec<&str> = state.text.split('\n').collect();
        let total = lines.len() as u64;
        let ReadRequest { lines: at, count } = request;
        let (offset, end) = match at {
            Lines::Newest(offset) => (offset, (offset + count).min(total)),
            Lines::From(line) if self.0.is(Fault::LinesMove) => (0, (line + count).min(total)),
            Lines::From(line) => (total.saturating_sub(line + count), total.saturating_sub(line)),
        };
        let at = |from_newest: u64| usize::try_from(total - from_newest.min(total)).unwrap();
        let (from, to) = (at(end), at(offset).max(at(end)));
        if self.0.is(Fault::NewestFirst) {
            lines[from..to].reverse();
        }
        let whole = lines[from..to].join("\n");
        let (text, cut) = newest(&whole);
        Ok(ReadPage {
            text: text.to_owned(),
            total_lines: total,
            line_begin: offset,
            line_end: end.max(offset),
            truncated: cut && !self.0.is(Fault::CutsInSilence),
            first_line: (to > from).then_some(from as u64),
            lost: None,
        })
    }

    async fn search(&self, request: SearchRequest) -> Result<SearchPage, TerminalError> {
        let Some(stem) = request.pattern.strip_prefix('^').and_then(|it| it.strip_suffix(".$"))
        else {
            return Err(TerminalError::InvalidArgs("a malformed pattern".to_owned()));
        };
        let state = lock(&self.0.state);
        let is_match = |text: &str| text.strip_suffix(char::is_alphanumeric) == Some(stem);
        let lines = (0..).zip(state.text.split('\n')).filter(|(_, text)| is_match(text));
        let found = |(line, text): (u64, &str)| SearchMatch {
            line,
            text: text.to_owned(),
            before: Vec::new(),
            after: Vec::new(),
        };
        let mut matches: Vec<_> = lines.map(found).collect();
        matches.reverse();
        Ok(SearchPage { matches, ..SearchPage::default() })
    }

    async fn signal(&self, signal: Signal) -> Result<SignalReceipt, TerminalError> {
        let busy = lock(&self.0.state).live.is_some();
        match (signal, busy) {
            (Signal::Kill, false) if !self.0.is(Fault::KillsShell) => {
                return Err(TerminalError::ShellKillRefused);
            }
            (_, true) => self.0.interrupt(),
            _ => {}
        }
        Ok(SignalReceipt { target_pgid: GROUP })
    }

    async fn close(&self, _: CloseRequest) -> Result<(), TerminalError> {
        tokio::task::yield_now().await;
        let mut state = lock(&self.0.state);
        if state.closes_that_fail > 0 {
            if !self.0.is(Fault::ClosesOnce) {
                state.closes_that_fail -= 1;
            }
            return Err(TerminalError::CloseIncomplete("somebody does not let go".to_owned()));
        }
        let hung_up = SessionStatus::Exited { exit_code: None, signal: Some("SIGHUP".to_owned()) };
        state.exited.get_or_insert(hung_up);
        if self.0.is(Fault::LeavesProcesses) {
            lock(&LEFT).push(std::mem::take(&mut state.children));
        } else {
            state.children.end();
        }
        if !self.0.is(Fault::CloseForgetsSend) {
            self.0.settle(&mut state, WaitReason::SessionExit);
        }
        drop(state);
        self.0.grown.send_replace(());
        Ok(())
    }
}

impl Exchange {
    /// Text from `from` on, up to the settlement.
    fn since(&self, from: usize) -> String {
        let end = self.settled.borrow().as_ref().map(|(end, _)| *end);
        let state = lock(&self.shared.state);
        state.text.get(from..end.unwrap_or(state.text.len())).unwrap_or_default().to_owned()
    }
}

#[async_trait]
impl SendOperation for Exchange {
    async fn done(&self) -> Result<SendOutcome, TerminalError> {
        let mut settled = self.settled.subscribe();
        let settled = settled.wait_for(Option::is_some).await.unwrap().clone();
        let (_, mut outcome) = settled.unwrap();
        if self.shared.is(Fault::SettlesAnew) {
            let state = lock(&self.shared.state);
            newest(&state.text[*lock(&self.start)..]).0.clone_into(&mut outcome.viewport);
        } else if self.shared.is(Fault::JobsEatOutput) {
            newest(&self.since(*lock(&self.start))).0.clone_into(&mut outcome.viewport);
        }
        Ok(outcome)
    }

    fn is_settled(&self) -> bool {
        let keeps = *lock(&self.cancelled) && self.shared.is(Fault::CancelledKeepsSlot);
        self.settled.borrow().is_some() && !keeps
    }

    async fn read_output(&self) -> OutputDelta {
        let mut taken = lock(&self.taken);
        let text = self.since(*taken);
        *taken += text.len();
        if self.shared.is(Fault::JobsEatOutput) && !text.is_empty() {
            *lock(&self.start) = *taken;
        }
        OutputDelta { text, truncated: false }
    }

    fn subscribe(&self) -> Box<dyn OutputSubscription> {
        let grown = self.shared.grown.subscribe();
        let given = *lock(&self.start);
        let settled = self.settled.subscribe();
        Box::new(Follower { shared: Arc::clone(&self.shared), grown, settled, given })
    }

    fn cancel(&self, _: &str) -> bool {
        if self.settled.borrow().is_some() {
            return self.shared.is(Fault::CancelsSettled);
        }
        *lock(&self.cancelled) = true;
        if !self.shared.is(Fault::DeafToCancellation) {
            self.shared.interrupt();
        }
        true
    }
}

struct Follower {
    shared: Arc<Shared>,
    grown: watch::Receiver<()>,
    settled: watch::Receiver<Option<(usize, SendOutcome)>>,
    given: usize,
}

#[async_trait]
impl OutputSubscription for Follower {
    async fn next(&mut self) -> Option<OutputDelta> {
        loop {
            self.grown.borrow_and_update();
            let end = self.settled.borrow().as_ref().map(|(end, _)| *end);
            let text = {
                let state = lock(&self.shared.state);
                state.text[self.given..end.unwrap_or(state.text.len())].to_owned()
            };
            self.given += text.len();
            if !text.is_empty() {
                return Some(OutputDelta { text, truncated: false });
            }
            if end.is_some() {
                return None;
            }
            tokio::select! {
                _ = self.grown.changed() => {}
                _ = self.settled.wait_for(Option::is_some) => {}
            }
        }
    }
}
