//! One session: a text that grows, and at most one exchange that waits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dsh_core::async_trait;
use terminal::{
    CloseRequest, Lines, ReadPage, ReadRequest, SendOperation, SendOutcome, SendRequest,
    SessionStatus, Signal, SignalReceipt, TerminalError, TerminalSession, WaitReason,
};

use crate::exchange::Exchange;

/// A session of the echo.
pub(crate) struct EchoSession {
    prompt: String,
    text: Arc<Mutex<Text>>,
}

/// What was shown, and what goes on.
pub(crate) struct Text {
    pub(crate) shown: String,
    prompt: String,
    /// The line that is being typed.
    line: String,
    /// Where the last viewport ended.
    delivered: usize,
    status: SessionStatus,
    waiting: Option<Arc<Exchange>>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl EchoSession {
    pub(crate) fn new(prompt: &str) -> Self {
        let text = Text {
            shown: prompt.to_owned(),
            prompt: prompt.to_owned(),
            line: String::new(),
            delivered: prompt.len(),
            status: SessionStatus::Running,
            waiting: None,
        };
        Self { prompt: prompt.to_owned(), text: Arc::new(Mutex::new(text)) }
    }
}

impl Text {
    /// Types one line without its end.
    fn type_text(&mut self, text: &str) {
        self.line.push_str(text);
        self.shown.push_str(text);
    }

    /// Takes Enter; true when the session waits for the next line.
    fn enter(&mut self) -> bool {
        let line = std::mem::take(&mut self.line);
        self.shown.push('\n');
        match line.trim() {
            "wait" => return false,
            line => match line.strip_prefix("exit ").and_then(|code| code.parse().ok()) {
                Some(code) => {
                    self.status = SessionStatus::Exited { exit_code: Some(code), signal: None };
                    return true;
                }
                None if !line.is_empty() => self.shown.push_str(&format!("{line}\n")),
                None => {}
            },
        }
        self.shown.push_str(&self.prompt);
        true
    }

    /// Settles the exchange that waits: it gets everything from where the last one ended.
    fn settle(&mut self, wait_reason: WaitReason) {
        let Some(waiting) = self.waiting.take() else { return };
        let viewport = self.shown[self.delivered..].to_owned();
        self.delivered = self.shown.len();
        let reason = match self.status {
            SessionStatus::Running => wait_reason,
            SessionStatus::Exited { .. } => WaitReason::SessionExit,
        };
        waiting.settle(SendOutcome {
            viewport,
            wait_reason: reason,
            session_status: self.status.clone(),
            truncated: false,
            limit: None,
            unpressed: 0,
            missing: None,
            last_command: None,
            state: None,
            input: None,
            repaired: Vec::new(),
            left: Vec::new(),
            echoed: true,
        });
    }

    /// Whoever waits is interrupted.
    pub(crate) fn interrupt(&mut self) {
        if self.waiting.is_some() {
            self.shown.push_str(&format!("^C\n{}", self.prompt));
            self.settle(WaitReason::StdinRead);
        }
    }
}

#[async_trait]
impl TerminalSession for EchoSession {
    fn pid(&self) -> Option<u32> {
        None
    }

    fn motd(&self) -> String {
        self.prompt.clone()
    }

    fn status(&self) -> SessionStatus {
        lock(&self.text).status.clone()
    }

    fn start_send(&self, request: SendRequest) -> Result<Arc<dyn SendOperation>, TerminalError> {
        let mut text = lock(&self.text);
        let exchange = Arc::new(Exchange::new(&self.text, text.delivered));
        text.waiting = Some(Arc::clone(&exchange));
        let mut lines = request.text.split('\n').peekable();
        let mut ready = true;
        while let Some(line) = lines.next() {
            text.type_text(line);
            if lines.peek().is_some() || request.submit {
                ready = text.enter();
            }
        }
        if ready {
            text.settle(WaitReason::StdinRead);
        } else {
            let waiting = Arc::clone(&exchange);
            tokio::spawn(async move { waiting.follow(request.cancel).await });
        }
        Ok(exchange)
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadPage, TerminalError> {
        let text = lock(&self.text);
        let lines: Vec<&str> = text.shown.split('\n').collect();
        let (total, count) = (lines.len() as u64, request.count);
        // Counted from the newest line: the first of the page that is left out, and its oldest.
        let (begin, end) = match request.lines {
            Lines::Newest(offset) => (offset, offset.saturating_add(count).min(total)),
            Lines::From(line) => {
                let from_newest = |line: u64| total.saturating_sub(line);
                (from_newest(line.saturating_add(count)), from_newest(line))
            }
        };
        let at = |line: u64| usize::try_from(total.saturating_sub(line)).unwrap_or_default();
        let page = lines.get(at(end)..at(begin)).unwrap_or_default();
        Ok(ReadPage {
            text: page.join("\n"),
            total_lines: total,
            line_begin: begin,
            line_end: end.max(begin),
            truncated: false,
            first_line: (!page.is_empty()).then(|| total - end),
            lost: None,
        })
    }

    async fn signal(&self, _: Signal) -> Result<SignalReceipt, TerminalError> {
        // There is no process to signal, and a cancellation does not need one.
        Err(TerminalError::NoForegroundGroup)
    }

    async fn close(&self, _: CloseRequest) -> Result<(), TerminalError> {
        let mut text = lock(&self.text);
        if text.status == SessionStatus::Running {
            text.status = SessionStatus::Exited { exit_code: None, signal: None };
        }
        text.settle(WaitReason::SessionExit);
        Ok(())
    }
}
