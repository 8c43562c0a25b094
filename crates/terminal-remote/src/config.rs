//! Configuration of a remote shell backend.

use std::{num::NonZeroU16, path::PathBuf};

use dsh_core::{ConfigError, number::MAX_SAFE_INTEGER};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One `terminal-remote` row. Keys that `terminal-bash` has, too, mean the same here.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// The type that `terminal_open` names.
    pub backend_type: String,
    /// The launcher with its arguments, such as `[ssh, -tt, host]`. It gets one more argument, a line
    /// for a POSIX shell that it is to run on the far side, on a terminal.
    pub argv: Vec<String>,
    /// The same without a terminal and without a question, such as
    /// `[ssh, -o, BatchMode=yes, host]`. Without it nothing can be signalled, and a close does not
    /// verify that the processes on the far side are gone.
    pub control_argv: Vec<String>,
    /// The shell on the far side, bash 4.4 or newer; a name is looked up there.
    pub shell_path: String,
    /// `TERM` of the session.
    pub term: String,
    /// Rows of the terminal.
    pub rows: NonZeroU16,
    /// Columns of the terminal.
    pub cols: NonZeroU16,
    /// Most lines that can be read back.
    #[schemars(range(min = 1, max = MAX_SAFE_INTEGER))]
    pub scrollback_lines: u64,
    /// Most bytes of text that can be read back.
    #[schemars(range(min = 1, max = MAX_SAFE_INTEGER))]
    pub scrollback_max_bytes: u64,
    /// Most bytes of older text that are kept in a file; 0 for none.
    #[schemars(range(max = MAX_SAFE_INTEGER))]
    pub transcript_max_bytes: u64,
    /// Folder of that file instead of `DSH_HOME`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home: Option<PathBuf>,
    /// Most bytes of text that one send or read returns.
    #[schemars(range(min = 1, max = MAX_SAFE_INTEGER))]
    pub max_read_bytes: u64,
    /// Most bytes that one send types.
    #[schemars(range(min = 1, max = MAX_SAFE_INTEGER))]
    pub max_input_bytes: u64,
    /// Silence after which what runs on the far side counts as idle, in milliseconds.
    #[schemars(range(min = 1, max = MAX_SAFE_INTEGER))]
    pub idle_silence_ms: u64,
    /// How long an unfinished line is given before it counts as left alone, in milliseconds.
    #[schemars(range(min = 1, max = MAX_SAFE_INTEGER))]
    pub handoff_grace_ms: u64,
    /// Absolute bound of a foreground send, and of reaching the far side, in milliseconds.
    #[schemars(range(min = 1, max = MAX_SAFE_INTEGER))]
    pub timeout_ms: u64,
    /// Absolute bound of a background send, in milliseconds; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_SAFE_INTEGER))]
    pub background_timeout_ms: Option<u64>,
    /// How long processes get to end by themselves when a session is closed, in milliseconds.
    #[schemars(range(min = 1, max = MAX_SAFE_INTEGER))]
    pub dispose_grace_ms: u64,
}

impl Default for Config {
    fn default() -> Self {
        let engine = terminal_bash::Config::default();
        Self {
            backend_type: "remote".to_owned(),
            argv: Vec::new(),
            control_argv: Vec::new(),
            shell_path: "bash".to_owned(),
            term: engine.term,
            rows: engine.rows,
            cols: engine.cols,
            scrollback_lines: engine.scrollback_lines,
            scrollback_max_bytes: engine.scrollback_max_bytes,
            transcript_max_bytes: engine.transcript_max_bytes,
            home: None,
            max_read_bytes: engine.max_read_bytes,
            max_input_bytes: engine.max_input_bytes,
            idle_silence_ms: engine.idle_silence_ms,
            handoff_grace_ms: engine.handoff_grace_ms,
            timeout_ms: engine.timeout_ms,
            background_timeout_ms: None,
            dispose_grace_ms: engine.dispose_grace_ms,
        }
    }
}

impl Config {
    /// The engine's own, for a shell on the far side.
    pub(crate) fn engine(&self) -> terminal_bash::Config {
        terminal_bash::Config {
            backend_type: self.backend_type.clone(),
            shell_path: PathBuf::from(&self.shell_path),
            term: self.term.clone(),
            rows: self.rows,
            cols: self.cols,
            scrollback_lines: self.scrollback_lines,
            scrollback_max_bytes: self.scrollback_max_bytes,
            transcript_max_bytes: self.transcript_max_bytes,
            home: self.home.clone(),
            max_read_bytes: self.max_read_bytes,
            max_input_bytes: self.max_input_bytes,
            idle_silence_ms: self.idle_silence_ms,
            handoff_grace_ms: self.handoff_grace_ms,
            timeout_ms: self.timeout_ms,
            background_timeout_ms: self.background_timeout_ms,
            dispose_grace_ms: self.dispose_grace_ms,
            ..terminal_bash::Config::default()
        }
    }

    /// What no single type shows: bounds, and what must not be empty.
    pub fn problems(&self) -> Vec<ConfigError> {
        let mut problems = self.engine().problems();
        let mut empty = |path: &str, message: &str| problems.push(ConfigError::new(path, message));
        match self.argv.first() {
            None => empty("argv", "must name a launcher, such as `[ssh, -tt, host]`"),
            Some(program) if program.is_empty() => {
                empty("argv", "must not begin with an empty name");
            }
            Some(_) => {}
        }
        if self.control_argv.first().is_some_and(String::is_empty) {
            empty("controlArgv", "must not begin with an empty name");
        }
        for (path, text) in [
            ("backendType", &self.backend_type),
            ("shellPath", &self.shell_path),
            ("term", &self.term),
        ] {
            if text.is_empty() {
                empty(path, "must not be empty");
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_has_to_be_named() {
        let paths = |config: Config| -> Vec<String> {
            config.problems().into_iter().map(|it| it.path).collect()
        };
        let argv = vec!["ssh".to_owned(), "host".to_owned()];
        assert_eq!(paths(Config::default()), ["argv"]);
        assert!(paths(Config { argv: argv.clone(), ..Config::default() }).is_empty());
        let config = Config {
            argv,
            control_argv: vec![String::new()],
            shell_path: String::new(),
            timeout_ms: 0,
            ..Config::default()
        };
        assert_eq!(paths(config), ["timeoutMs", "controlArgv", "shellPath"]);
    }
}
