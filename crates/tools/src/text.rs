//! Cutting texts to a bound, and keeping them in one line.
//!
//! Guarantees: no text is cut inside a character; one that was cut ends with [`TRUNCATED`] on a line
//! of its own; none is longer than its bound. Pure.

use std::{borrow::Cow, fmt::Write as _};

/// The last line of a text that lost something.
pub const TRUNCATED: &str = "[output truncated]";

/// Which end of a text matters more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The beginning, as in an error.
    Head,
    /// The end, as in the output of a program.
    Tail,
}

/// Cuts a finished text to `cap` bytes, the marker included. One that fits is left alone.
pub fn bound(keep: Keep, text: &str, cap: usize) -> String {
    if text.len() <= cap {
        return text.to_owned();
    }
    match keep {
        Keep::Head => marked(text, cap),
        Keep::Tail => {
            let text = text.strip_suffix(TRUNCATED).unwrap_or(text).trim_end_matches('\n');
            marked(tail(text, cap.saturating_sub(TRUNCATED.len() + 1)), cap)
        }
    }
}

/// The text and the marker below it, where need be with the end of the text cut.
pub fn marked(text: &str, cap: usize) -> String {
    let room = cap.saturating_sub(TRUNCATED.len() + 1);
    let mut out = head(text, room).trim_end_matches('\n').to_owned();
    out.push('\n');
    out.push_str(TRUNCATED);
    out.truncate(out.floor_char_boundary(cap));
    out
}

/// The longest beginning of `text` with at most `bytes` bytes.
pub fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The longest end of `text` with at most `bytes` bytes.
pub fn tail(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}

/// Control characters spelled out, so that a name cannot draw lines of its own.
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                write!(out, "\\x{:02x}", u32::from(c)).ok();
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}
