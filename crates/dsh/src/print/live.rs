//! A run while it goes on.

use std::{io::Write, sync::Mutex, time::Instant};

use agent_loop::{LoopEvent, LoopObserver};
use dsh_core::lock;
use model::Usage;

use super::printer::Printer;

/// Prints what the loop does.
pub(crate) struct Live<W>(Mutex<State<W>>);

struct State<W> {
    printer: Printer<W>,
    /// The model has said something in this reply.
    talked: bool,
    /// The last line of output of the running call.
    last: String,
    /// That line has ended.
    ended: bool,
    usage: Usage,
}

impl<W: Write> Live<W> {
    pub(crate) fn new(printer: Printer<W>) -> Self {
        let (talked, last, ended, usage) = (false, String::new(), false, Usage::default());
        Self(Mutex::new(State { printer, talked, last, ended, usage }))
    }

    /// Moves the spinner.
    pub(crate) fn tick(&self) {
        lock(&self.0).printer.tick(Instant::now());
    }

    /// The end of a run: what became of it, and the session of the log that keeps it, if one does.
    pub(crate) fn end(&self, remark: Option<&str>, logged: Option<&str>) -> std::io::Result<()> {
        let mut state = lock(&self.0);
        if let Some(remark) = remark {
            state.printer.note(remark);
        }
        let Usage { input_tokens, output_tokens } = state.usage;
        let tokens = (input_tokens + output_tokens > 0)
            .then(|| format!("{input_tokens} tokens read and {output_tokens} written"));
        match (logged, tokens) {
            (Some(id), tokens) => {
                let tokens = tokens.map(|it| format!(", {it}")).unwrap_or_default();
                let again = format!("`dsh run --resume {id}` shows it again");
                state.printer.note(&format!("logged as session {id}{tokens}; {again}"));
            }
            (None, Some(tokens)) => state.printer.note(&tokens),
            (None, None) => {}
        }
        state.printer.finish()
    }
}

impl<W: Write> State<W> {
    /// Keeps the last line of output that holds something.
    fn output(&mut self, text: &str) {
        for (index, piece) in text.split('\n').enumerate() {
            self.ended |= index > 0;
            if piece.trim().is_empty() {
                continue;
            }
            if std::mem::take(&mut self.ended) {
                self.last.clear();
            }
            if self.last.len() < MOST_SHOWN {
                self.last.push_str(piece);
            }
        }
        self.printer.waiting_shows(&self.last);
    }
}

/// Bytes of a line that are worth keeping: more than any terminal is wide.
const MOST_SHOWN: usize = 2000;

impl<W: Write + Send> LoopObserver for Live<W> {
    fn event(&self, event: LoopEvent<'_>) {
        let state = &mut *lock(&self.0);
        let printer = &mut state.printer;
        match event {
            LoopEvent::Asking => {
                state.talked = false;
                printer.wait("waiting for the model");
            }
            LoopEvent::Text(text) => {
                state.talked |= !text.is_empty();
                printer.text(text);
            }
            LoopEvent::Replied(usage) => {
                printer.said(state.talked);
                let usage = usage.unwrap_or_default();
                state.usage.input_tokens += usage.input_tokens;
                state.usage.output_tokens += usage.output_tokens;
            }
            LoopEvent::Retry { reason, delay } => {
                let when = match delay.as_secs() {
                    0 => "at once".to_owned(),
                    seconds => format!("in {seconds} s"),
                };
                printer.note(&format!("{reason}; the next attempt comes {when}"));
                state.talked = false;
                printer.wait("waiting for the model");
            }
            LoopEvent::Trimmed(trimmed) => printer.note(&format!(
                "the history was cut from {} to {} bytes: {} tool results, {} older messages",
                trimmed.before, trimmed.after, trimmed.results, trimmed.messages
            )),
            LoopEvent::CallBegan { name, arguments, intent } => {
                printer.call(name, arguments, intent.as_ref());
                state.last.clear();
                printer.wait("running");
            }
            LoopEvent::CallOutput(text) => state.output(text),
            LoopEvent::CallEnded { result, intent } => printer.result(result, intent.as_ref()),
            LoopEvent::Notice(text) => printer.note(text),
            LoopEvent::Waiting => {
                printer.note("waiting for what runs in the background; Ctrl-C leaves");
                printer.wait("waiting");
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Arc, Mutex},
        time::Duration,
    };

    use serde_json::json;
    use tools::{CallIntent, ContentBlock, ErrorCode, ResultIntent, ToolResult};

    use super::*;
    use crate::print::Look;

    /// What was written, for a test to look at while more comes.
    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
            lock(&self.0).extend_from_slice(text);
            Ok(text.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn result(text: &str) -> ToolResult {
        ToolResult { content: vec![ContentBlock::text(text)], value: None, error: None }
    }

    /// A run in which everything happens, and what is on paper then. Escapes are made visible.
    fn run(look: Look) -> String {
        let paper = Paper::default();
        let live = Live::new(Printer::new(paper.clone(), look));
        let start = Instant::now();
        let tick = |seconds| lock(&live.0).printer.tick(start + Duration::from_secs(seconds));
        let typed = |title: &str| ("Terminal pty-1".to_owned(), title.to_owned());
        live.event(LoopEvent::Asking);
        tick(0);
        tick(2);
        live.event(LoopEvent::Text("I run "));
        live.event(LoopEvent::Text("the build.\nIt may\u{1b}[2J take long."));
        live.event(LoopEvent::Replied(Some(Usage { input_tokens: 900, output_tokens: 20 })));
        let (description, title) = typed("make");
        live.event(LoopEvent::CallBegan {
            name: "terminal_send",
            arguments: &json!({ "sessionId": "pty-1", "text": { "bytes": 4 } }),
            intent: Some(CallIntent::Terminal { title, description }),
        });
        tick(3);
        live.event(LoopEvent::CallOutput("compiling a\ncompi"));
        live.event(LoopEvent::CallOutput("ling b\n"));
        tick(70);
        live.event(LoopEvent::CallOutput("linking\n"));
        tick(71);
        let (description, title) = typed("make");
        let text = "make\ncompiling a\ncompiling b\nlinking\ndsh> \n[exit: 0]\n[wait: stdin_read]";
        live.event(LoopEvent::CallEnded {
            result: &result(text),
            intent: Some(ResultIntent::Terminal { title, description, output: text.to_owned() }),
        });
        let arguments = json!({ "type": "shell", "name": "two words" });
        live.event(LoopEvent::CallBegan {
            name: "terminal_open",
            arguments: &arguments,
            intent: None,
        });
        let code = ErrorCode { name: "TerminalError".into(), code: "NO_BACKEND".into() };
        let failed = ToolResult::failure("there is no backend", code);
        live.event(LoopEvent::CallEnded { result: &failed, intent: None });
        live.event(LoopEvent::Notice("background job pty-send-1 finished"));
        live.event(LoopEvent::Trimmed(agent_loop::Trimmed {
            results: 2,
            messages: 0,
            before: 9000,
            after: 5000,
        }));
        live.event(LoopEvent::Asking);
        live.event(LoopEvent::Retry { reason: "429: too busy", delay: Duration::from_secs(2) });
        tick(80);
        live.event(LoopEvent::Text("I w"));
        live.event(LoopEvent::Retry { reason: "the connection was lost", delay: Duration::ZERO });
        live.event(LoopEvent::Text("It is built."));
        live.event(LoopEvent::Replied(Some(Usage { input_tokens: 1000, output_tokens: 5 })));
        live.event(LoopEvent::Waiting);
        tick(90);
        live.end(Some("interrupted"), Some("4711")).unwrap();
        let shown = String::from_utf8(lock(&paper.0).clone()).unwrap();
        shown.replace('\r', "␍").replace('\u{1b}', "␛")
    }

    #[test]
    fn in_a_pipe_it_is_plain_lines() {
        insta::assert_snapshot!(run(Look::default()));
    }

    #[test]
    fn what_no_log_keeps_is_not_said_to_be_kept() {
        for (usage, end) in [
            (None, ""),
            (Some(Usage { input_tokens: 9, output_tokens: 2 }), "* 9 tokens read and 2 written\n"),
        ] {
            let paper = Paper::default();
            let live = Live::new(Printer::new(paper.clone(), Look::default()));
            live.event(LoopEvent::Text("Done."));
            live.event(LoopEvent::Replied(usage));
            live.end(None, None).unwrap();
            let shown = String::from_utf8(lock(&paper.0).clone()).unwrap();
            assert_eq!(shown, format!("Done.\n\n{end}"));
        }
    }

    #[test]
    fn in_a_terminal_it_moves() {
        insta::assert_snapshot!(run(Look { color: true, live: Some(|| 60) }));
    }
}
