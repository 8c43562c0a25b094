//! Writes a run to `W`.

use std::{
    io::{self, Write},
    time::Instant,
};

use serde_json::Value;
use tools::{CallIntent, ResultIntent, ToolResult};

use super::{
    card::{self, Line},
    spinner, visible,
};

/// How it shall look.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Look {
    /// With colours.
    pub(crate) color: bool,
    /// Text as it comes, and a spinner, in a terminal that wide. Without it: whole lines alone.
    pub(crate) live: Option<fn() -> usize>,
}

/// Writes in order. A failure to write is kept for [`Printer::finish`].
pub(crate) struct Printer<W> {
    out: W,
    look: Look,
    /// Text of the model on a line that has not ended. Where nothing is live it is not written yet.
    line: String,
    /// What is awaited, if anything.
    awaited: Option<Awaited>,
    failed: Option<io::Error>,
}

struct Awaited {
    what: String,
    /// Since the first look at it.
    since: Option<Instant>,
    /// The spinner stands on the last line.
    drawn: bool,
}

#[derive(Clone, Copy)]
enum Ink {
    Bold,
    Dim,
    Red,
}

impl<W: Write> Printer<W> {
    pub(crate) fn new(out: W, look: Look) -> Self {
        Self { out, look, line: String::new(), awaited: None, failed: None }
    }

    /// A message of the user.
    pub(crate) fn user(&mut self, text: &str) {
        self.over();
        for line in text.lines() {
            let line: String = line.chars().map(visible).collect();
            self.inked(Ink::Bold, &line);
        }
        self.blank();
    }

    /// A piece of what the model says.
    pub(crate) fn text(&mut self, text: &str) {
        self.over();
        for piece in text.split_inclusive('\n') {
            let (piece, ended) = piece.strip_suffix('\n').map_or((piece, false), |it| (it, true));
            let piece: String = piece.trim_end_matches('\r').chars().map(visible).collect();
            if self.look.live.is_some() {
                self.write(&piece);
            }
            self.line.push_str(&piece);
            if ended {
                self.end_line();
            }
        }
    }

    /// The model has said it.
    pub(crate) fn said(&mut self, anything: bool) {
        self.over();
        if !self.line.is_empty() {
            self.end_line();
        }
        if anything {
            self.blank();
        }
    }

    /// A call that begins.
    pub(crate) fn call(&mut self, name: &str, arguments: &Value, intent: Option<&CallIntent>) {
        self.over();
        self.write(&format!("> {}\n", card::heading(name, arguments, intent)));
    }

    /// The result of the call printed last.
    pub(crate) fn result(&mut self, result: &ToolResult, intent: Option<&ResultIntent>) {
        self.over();
        for line in card::body(result, intent) {
            self.write("  ");
            match line {
                Line::Body(line) => self.write(&format!("{line}\n")),
                Line::Fact(line) => self.inked(Ink::Dim, &line),
                Line::Error(line) => self.inked(Ink::Red, &line),
            }
        }
        self.blank();
    }

    /// Something about the run, on a line of its own.
    pub(crate) fn note(&mut self, text: &str) {
        self.said(false);
        let text: String =
            text.lines().collect::<Vec<_>>().join(" ").chars().map(visible).collect();
        self.inked(Ink::Dim, &format!("* {text}"));
    }

    /// From now on `what` is awaited, until something is printed.
    pub(crate) fn wait(&mut self, what: &str) {
        self.over();
        self.awaited = Some(Awaited { what: what.to_owned(), since: None, drawn: false });
    }

    /// What is awaited has shown this line.
    pub(crate) fn waiting_shows(&mut self, line: &str) {
        if let Some(awaited) = &mut self.awaited {
            line.clone_into(&mut awaited.what);
        }
    }

    /// Moves the spinner.
    pub(crate) fn tick(&mut self, now: Instant) {
        let (Some(width), Some(awaited)) = (self.look.live, &mut self.awaited) else { return };
        let since = *awaited.since.get_or_insert(now);
        let line = spinner::line(now.duration_since(since), &awaited.what, width());
        awaited.drawn = true;
        let line = self.ink(Ink::Dim, &line);
        self.write(&format!("{WIPE}{line}"));
    }

    /// Ends what has not ended; the first failure to write, if there was one.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.said(false);
        let flushed = self.out.flush();
        self.failed.take().map_or(flushed, Err)
    }

    /// Whatever was awaited has come.
    fn over(&mut self) {
        if self.awaited.take().is_some_and(|it| it.drawn) {
            self.write(WIPE);
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if self.look.live.is_none() {
            self.write(&line);
        }
        self.write("\n");
    }

    fn blank(&mut self) {
        self.write("\n");
    }

    fn inked(&mut self, ink: Ink, line: &str) {
        let line = self.ink(ink, line);
        self.write(&format!("{line}\n"));
    }

    fn ink(&self, ink: Ink, text: &str) -> String {
        if !self.look.color {
            return text.to_owned();
        }
        let code = match ink {
            Ink::Bold => 1,
            Ink::Dim => 2,
            Ink::Red => 31,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    fn write(&mut self, text: &str) {
        if let Err(error) = self.out.write_all(text.as_bytes()) {
            self.failed.get_or_insert(error);
        }
    }
}

/// Back to the beginning of the line, which becomes empty.
const WIPE: &str = "\r\u{1b}[2K";
