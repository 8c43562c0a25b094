//! Lines → events.
//!
//! Guarantee: a recording that was cut off, as by a crash, is read up to its last whole line.

use std::time::Duration;

use serde::Deserialize;

use crate::{Event, EventKind, Header, VERSION};

/// A whole recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// About the terminal.
    pub header: Header,
    /// What happened, in order.
    pub events: Vec<Event>,
}

/// A text that is no recording.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The first line is not the header of one.
    #[error("it is no asciicast: its first line is no header ({0})")]
    NoHeader(String),
    /// It has another version.
    #[error(
        "it is an asciicast of version {0}, and version 3 is read here: `asciinema convert` makes one of it"
    )]
    Version(u64),
    /// A line in the middle is no event.
    #[error("line {line} is no event of an asciicast: {reason}")]
    NoEvent {
        /// Counted from 1.
        line: usize,
        /// Why.
        reason: String,
    },
}

#[derive(Deserialize)]
struct WrittenHeader {
    version: u64,
    #[serde(default)]
    term: Term,
    #[serde(default)]
    timestamp: u64,
    #[serde(default)]
    title: String,
}

#[derive(Default, Deserialize)]
struct Term {
    cols: u16,
    rows: u16,
    #[serde(default, rename = "type")]
    kind: String,
}

impl Recording {
    /// Reads a recording.
    pub fn parse(text: &str) -> Result<Self, ReadError> {
        let mut lines = text.lines().enumerate();
        let first = lines.next().map(|(_, line)| line).unwrap_or_default();
        let written: WrittenHeader =
            serde_json::from_str(first).map_err(|error| ReadError::NoHeader(error.to_string()))?;
        if written.version != u64::from(VERSION) {
            return Err(ReadError::Version(written.version));
        }
        let Term { cols, rows, kind } = written.term;
        if cols == 0 || rows == 0 {
            return Err(ReadError::NoHeader("the terminal has no size".to_owned()));
        }
        let header = Header {
            columns: cols,
            rows,
            term: kind,
            timestamp: written.timestamp,
            title: written.title,
        };
        let mut at = Duration::ZERO;
        let mut events = Vec::new();
        let whole = text.ends_with('\n');
        let mut lines = lines.peekable();
        while let Some((index, line)) = lines.next() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match event(line, at) {
                Ok(event) => {
                    at = event.at;
                    events.push(event);
                }
                Err(_) if lines.peek().is_none() && !whole => break,
                Err(reason) => return Err(ReadError::NoEvent { line: index + 1, reason }),
            }
        }
        Ok(Self { header, events })
    }

    /// When the last event happened.
    pub fn length(&self) -> Duration {
        self.events.last().map_or(Duration::ZERO, |event| event.at)
    }
}

fn event(line: &str, before: Duration) -> Result<Event, String> {
    let (interval, code, data): (f64, String, String) =
        serde_json::from_str(line).map_err(|error| error.to_string())?;
    let interval = Duration::try_from_secs_f64(interval).map_err(|error| error.to_string())?;
    let kind = match code.as_str() {
        "o" => EventKind::Output(data),
        "i" => EventKind::Input(data),
        "m" => EventKind::Marker(data),
        "x" => EventKind::Exit(data),
        "r" => {
            let size = data
                .split_once('x')
                .and_then(|(columns, rows)| Some((columns.parse().ok()?, rows.parse().ok()?)));
            let (columns, rows) = size.ok_or_else(|| format!("{data:?} is no size"))?;
            EventKind::Resize { columns, rows }
        }
        _ => EventKind::Other,
    };
    let at = before.checked_add(interval).ok_or("it is too late")?;
    Ok(Event { at, kind })
}
