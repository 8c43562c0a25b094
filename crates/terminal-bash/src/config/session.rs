//! The keys that the rows of all backends with this engine have, with their defaults.
//!
//! A macro, because a configuration that holds another one of the same level (`#[serde(flatten)]`)
//! can neither refuse unknown keys nor say which one is wrong.

use std::num::NonZeroU16;

/// Most that a number of a configuration can be.
pub const MOST: u64 = dsh_core::number::MAX_SAFE_INTEGER;
/// Rows and columns of a terminal, unless others are asked for.
pub const SIZE: (NonZeroU16, NonZeroU16) =
    (NonZeroU16::new(40).unwrap(), NonZeroU16::new(160).unwrap());

/// Declares the configuration of a backend: its own keys, each with its default, and behind them the
/// keys of a session. It has a `Default`, and `on_engine`, which puts the keys of a session in the
/// place of those of a [`Config`](crate::Config).
#[macro_export]
macro_rules! session_config {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$key_meta:meta])* pub $key:ident: $kind:ty = $default:expr,)*
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[$key_meta])* pub $key: $kind,)*
            /// `TERM` of the session.
            pub term: String,
            /// Rows of the terminal.
            pub rows: ::std::num::NonZeroU16,
            /// Columns of the terminal.
            pub cols: ::std::num::NonZeroU16,
            /// Most lines that can be read back.
            #[schemars(range(min = 1, max = $crate::config::session::MOST))]
            pub scrollback_lines: u64,
            /// Most bytes of text that can be read back.
            #[schemars(range(min = 1, max = $crate::config::session::MOST))]
            pub scrollback_max_bytes: u64,
            /// Most bytes of older text that are kept in a file; 0 for none.
            #[schemars(range(max = $crate::config::session::MOST))]
            pub transcript_max_bytes: u64,
            /// Folder of that file instead of `DSH_HOME`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub home: Option<::std::path::PathBuf>,
            /// Record what every session shows, for `dsh replay` and other players of asciicast v3.
            pub record: bool,
            /// Folder of the recordings instead of `recordings` in `DSH_HOME`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub record_folder: Option<::std::path::PathBuf>,
            /// Most bytes of one recording.
            #[schemars(range(min = 1, max = $crate::config::session::MOST))]
            pub record_max_bytes: u64,
            /// Most bytes of text that one send or read returns.
            #[schemars(range(min = 1, max = $crate::config::session::MOST))]
            pub max_read_bytes: u64,
            /// Most bytes that one send types.
            #[schemars(range(min = 1, max = $crate::config::session::MOST))]
            pub max_input_bytes: u64,
            /// Silence after which a program that is not seen to be busy counts as idle, in
            /// milliseconds.
            #[schemars(range(min = 1, max = $crate::config::session::MOST))]
            pub idle_silence_ms: u64,
            /// How long an unfinished line is given before a reader that leaves it alone counts as
            /// idle, in milliseconds.
            #[schemars(range(min = 1, max = $crate::config::session::MOST))]
            pub handoff_grace_ms: u64,
            /// Absolute bound of a foreground send and of the shell's start, in milliseconds.
            #[schemars(range(min = 1, max = $crate::config::session::MOST))]
            pub timeout_ms: u64,
            /// Absolute bound of a background send, in milliseconds; none by default.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(range(min = 1, max = $crate::config::session::MOST))]
            pub background_timeout_ms: Option<u64>,
            /// How long processes get to end by themselves when a session is closed, in
            /// milliseconds.
            #[schemars(range(min = 1, max = $crate::config::session::MOST))]
            pub dispose_grace_ms: u64,
            /// What ends a session, or keeps one from being opened.
            pub limits: $crate::Limits,
        }

        impl Default for $name {
            fn default() -> Self {
                let (rows, cols) = $crate::config::session::SIZE;
                Self {
                    $($key: $default,)*
                    term: "xterm-256color".to_owned(),
                    rows,
                    cols,
                    scrollback_lines: 10_000,
                    scrollback_max_bytes: 4_194_304,
                    transcript_max_bytes: 67_108_864,
                    home: None,
                    record: false,
                    record_folder: None,
                    record_max_bytes: 67_108_864,
                    max_read_bytes: 262_144,
                    max_input_bytes: 4_194_304,
                    idle_silence_ms: 3_000,
                    handoff_grace_ms: 500,
                    timeout_ms: 30_000,
                    background_timeout_ms: None,
                    dispose_grace_ms: 3_000,
                    limits: $crate::Limits::default(),
                }
            }
        }

        impl $name {
            /// `engine` with the keys of a session as they are here.
            #[must_use]
            pub fn on_engine(&self, engine: $crate::Config) -> $crate::Config {
                $crate::Config {
                    term: self.term.clone(),
                    rows: self.rows,
                    cols: self.cols,
                    scrollback_lines: self.scrollback_lines,
                    scrollback_max_bytes: self.scrollback_max_bytes,
                    transcript_max_bytes: self.transcript_max_bytes,
                    home: self.home.clone(),
                    record: self.record,
                    record_folder: self.record_folder.clone(),
                    record_max_bytes: self.record_max_bytes,
                    max_read_bytes: self.max_read_bytes,
                    max_input_bytes: self.max_input_bytes,
                    idle_silence_ms: self.idle_silence_ms,
                    handoff_grace_ms: self.handoff_grace_ms,
                    timeout_ms: self.timeout_ms,
                    background_timeout_ms: self.background_timeout_ms,
                    dispose_grace_ms: self.dispose_grace_ms,
                    limits: self.limits.clone(),
                    ..engine
                }
            }
        }
    };
}
