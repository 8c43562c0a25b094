//! Recordings of terminals in the format asciicast v3, which asciinema's programs play.
//!
//! A recording is a line of JSON about the terminal, then one line for each event, which has the
//! seconds since the event before it.
//!
//! Reading order: [`encode`] (events → lines) → [`read`] (lines → events) → [`mod@picture`] (what was
//! shown at one moment, as SVG). Pure: no clock, no file.

pub mod encode;
pub mod picture;
pub mod read;

use std::time::Duration;

pub use encode::Encoder;
pub use picture::picture;
pub use read::{ReadError, Recording};

/// The version that is written and read.
pub const VERSION: u32 = 3;

/// About the terminal that is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Columns at the beginning.
    pub columns: u16,
    /// Rows at the beginning.
    pub rows: u16,
    /// `TERM`.
    pub term: String,
    /// When it began, in seconds since 1970.
    pub timestamp: u64,
    /// What is recorded.
    pub title: String,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Since the beginning.
    pub at: Duration,
    /// What.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The program wrote this.
    Output(String),
    /// This was typed.
    Input(String),
    /// The window got another size.
    Resize {
        /// Columns.
        columns: u16,
        /// Rows.
        rows: u16,
    },
    /// Somebody marked the moment.
    Marker(String),
    /// The program ended with this status.
    Exit(String),
    /// Something that this version does not know.
    Other,
}
