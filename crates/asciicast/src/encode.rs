//! Events → lines.
//!
//! Guarantees: each line is whole JSON; a character that output cuts is written with its last byte;
//! the intervals add up to the time that passed, whatever their number.

use std::time::Duration;

use serde_json::json;

use crate::{EventKind, Header, VERSION};

/// Writes one recording.
#[derive(Debug, Default)]
pub struct Encoder {
    /// What the intervals so far add up to, in microseconds.
    written: u128,
    /// The beginning of a character whose end has not come.
    partial: Vec<u8>,
}

impl Encoder {
    /// The first line.
    pub fn header(header: &Header) -> String {
        let Header { columns, rows, term, timestamp, title } = header;
        let line = json!({
            "version": VERSION,
            "term": { "cols": columns, "rows": rows, "type": term },
            "timestamp": timestamp,
            "title": title,
        });
        format!("{line}\n")
    }

    /// The line of an event `at` this time since the beginning.
    pub fn event(&mut self, at: Duration, kind: &EventKind) -> String {
        let (code, data) = match kind {
            EventKind::Output(text) => ("o", text.clone()),
            EventKind::Input(text) => ("i", text.clone()),
            EventKind::Resize { columns, rows } => ("r", format!("{columns}x{rows}")),
            EventKind::Marker(label) => ("m", label.clone()),
            EventKind::Exit(status) => ("x", status.clone()),
            EventKind::Other => return String::new(),
        };
        let now = at.as_micros().max(self.written);
        let interval = now - self.written;
        self.written = now;
        let (seconds, rest) = (interval / 1_000_000, interval % 1_000_000);
        format!("[{seconds}.{rest:06}, {}, {}]\n", json!(code), json!(data))
    }

    /// The line of output that came `at` this time; none as long as it is only the beginning of a
    /// character. Malformed UTF-8 becomes U+FFFD.
    pub fn output(&mut self, at: Duration, bytes: &[u8]) -> Option<String> {
        self.partial.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.partial) {
            Ok(_) => self.partial.len(),
            Err(_) => self.partial.len() - cut(&self.partial),
        };
        if whole == 0 {
            return None;
        }
        let rest = self.partial.split_off(whole);
        let text = String::from_utf8_lossy(&self.partial).into_owned();
        self.partial = rest;
        Some(self.event(at, &EventKind::Output(text)))
    }
}

/// How many bytes at the end may be the beginning of a character.
fn cut(bytes: &[u8]) -> usize {
    let last = bytes.len().saturating_sub(3);
    let may_go_on = |at: &usize| {
        std::str::from_utf8(&bytes[*at..])
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    (last..bytes.len()).find(may_go_on).map_or(0, |at| bytes.len() - at)
}
