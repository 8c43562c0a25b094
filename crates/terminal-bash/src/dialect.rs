//! How a shell is made to tell when it prompts, runs, and with which status it is done.
//!
//! The marks are OSC 133 with a random nonce of the session. They travel with the prompt, wherever
//! the shell writes it, and with nothing else: a command's output cannot forge them without the
//! nonce, and redirecting the shell's output does not write them into a file.

mod bash;
mod fish;
mod zsh;

use std::{fmt, path::Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Proof that a mark is this session's own.
#[derive(Clone, PartialEq, Eq)]
pub struct Nonce(String);

impl Nonce {
    /// A fresh one, 64 bits from the system's generator: every byte of a prompt costs the shell
    /// time, and a forger has one guess at a prompt that is a moment old.
    pub fn random() -> Result<Self, getrandom::Error> {
        Ok(Self::from_bits(getrandom::u64()?))
    }

    fn from_bits(bits: u64) -> Self {
        Self(format!("{bits:016x}"))
    }

    /// Its text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// What stands in `payload`, the text of an OSC 133 sequence after `133;`, besides this nonce;
    /// none for a mark that somebody else made.
    pub(crate) fn strip<'a>(&self, payload: &'a str) -> Option<&'a str> {
        payload.strip_suffix(self.0.as_str())?.strip_suffix(";dsh=")
    }

    /// The mark that `payload`, the text of an OSC 133 sequence after `133;`, carries; none for a
    /// mark that somebody else made.
    pub fn read_mark(&self, payload: &str) -> Option<Mark> {
        let rest = self.strip(payload)?;
        match rest.split_once(';').unwrap_or((rest, "")) {
            ("B", "k=s") => Some(Mark::Continuation),
            ("B", told) => {
                let (status, history) = told.split_once(';').unwrap_or((told, ""));
                Some(Mark::Prompt { status: status.parse().ok(), history: history.parse().ok() })
            }
            ("C", "") => Some(Mark::CommandStart),
            _ => None,
        }
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce(..)")
    }
}

/// What the shell tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The prompt for a new command was shown.
    Prompt {
        /// What stood in `$?`; none when the shell did not expand it.
        status: Option<i32>,
        /// Number in the shell's history that the next line will get: it goes up with every line
        /// that was taken, also with one that could not be parsed.
        history: Option<u64>,
    },
    /// The prompt for the rest of an unfinished command was shown.
    Continuation,
    /// A command was read and is about to run.
    CommandStart,
}

/// Shells whose prompt hooks are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ShellDialect {
    /// GNU bash, 4.4 or newer.
    #[default]
    Bash,
    /// zsh, 5.0 or newer.
    Zsh,
    /// fish, 3.2 or newer.
    Fish,
}

impl ShellDialect {
    /// Where the shell is usually found.
    pub fn default_path(self) -> &'static str {
        match self {
            Self::Bash => "/bin/bash",
            Self::Zsh => "/usr/bin/zsh",
            Self::Fish => "/usr/bin/fish",
        }
    }

    /// Arguments with which it is interactive and reads no start-up files of the user.
    pub fn default_args(self) -> &'static [&'static str] {
        match self {
            Self::Bash => &["--noprofile", "--norc", "-i"],
            Self::Zsh => &["-f", "-i"],
            Self::Fish => &["--no-config", "-i"],
        }
    }

    /// Whether the shell at this path takes the hooks of this dialect.
    pub(crate) fn speaks(self, path: &Path) -> bool {
        let name = match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
        };
        path.file_name().is_some_and(|it| it.to_string_lossy().contains(name))
    }

    /// What the shell needs in its environment before the hooks are there.
    pub(crate) fn environment(self) -> (&'static str, &'static str) {
        match self {
            // Empty, not unset: the shell's own would be shown until the hooks are there.
            Self::Bash | Self::Zsh => ("PS1", ""),
            // What `HISTFILE` is to others.
            Self::Fish => ("fish_history", ""),
        }
    }

    /// The line that installs the hooks, typed once at the first prompt. It forgets itself in the
    /// history, leaves nothing in the exported environment, and lets go of a history file that a
    /// start-up file has named. With `far`, which bash alone knows, each prompt tells the working
    /// directory, too.
    pub(crate) fn install(self, nonce: &Nonce, far: bool) -> String {
        match self {
            Self::Bash => bash::install(nonce, far),
            Self::Zsh => zsh::install(nonce),
            Self::Fish => fish::install(nonce),
        }
    }

    /// Whether the first prompt, before the hooks are there, is the shell's own.
    pub(crate) fn prompts_at_first(self) -> bool {
        self == Self::Fish
    }

    /// What the shell gives as the status of a line that it could not parse and did not run; none
    /// where such a line is marked like a command.
    pub(crate) fn syntax_error(self) -> Option<i32> {
        match self {
            Self::Bash => Some(2),
            Self::Zsh => Some(1),
            Self::Fish => None,
        }
    }

    /// A job that was stopped gives the prompt back with a status of its own.
    pub(crate) fn tells_stops(self) -> bool {
        self != Self::Fish
    }

    /// An unfinished command is edited further at the same prompt; there is none for its rest.
    pub(crate) fn edits_on(self) -> bool {
        self == Self::Fish
    }

    /// The line editor itself asks the terminal what it can.
    pub(crate) fn asks(self) -> bool {
        self == Self::Fish
    }

    /// Keys that make a tab a character of the line.
    pub(crate) fn literal_tab(self) -> &'static str {
        match self {
            Self::Bash | Self::Zsh => "\u{16}\t",
            Self::Fish => "\u{1b}[133~",
        }
    }

    /// Keys that empty the line.
    pub(crate) fn discard_line(self) -> &'static str {
        match self {
            // The first leaves a search that some key may have begun.
            Self::Bash => "\u{7}\u{15}",
            Self::Zsh | Self::Fish => "\u{15}",
        }
    }
}

/// What the model sees of the prompt.
pub const PROMPT: &str = "dsh> ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marks_with_the_nonce_count() {
        let nonce = Nonce::from_bits(7);
        let own = |body: &str| nonce.read_mark(&format!("{body};dsh={}", nonce.0));
        let told = |status, history| Some(Mark::Prompt { status, history });
        assert_eq!(own("B;130;7"), told(Some(130), Some(7)));
        assert_eq!(own("B;$?;\\!"), told(None, None));
        assert_eq!(own("B;0"), told(Some(0), None));
        assert_eq!(own("B;k=s"), Some(Mark::Continuation));
        assert_eq!(own("C"), Some(Mark::CommandStart));
        assert_eq!(own("E"), None);
        for forged in ["B", "B;0", "B;0;dsh=", "B;0;dsh=0000000000000000", "D;0"] {
            assert_eq!(nonce.read_mark(forged), None, "{forged}");
        }
    }

    #[test]
    fn a_nonce_is_never_shown() {
        let nonce = Nonce::random().unwrap();
        assert!(!format!("{nonce:?}").contains(&nonce.0));
        assert_ne!(nonce, Nonce::random().unwrap());
    }
}
