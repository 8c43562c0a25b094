//! How a shell is made to tell when it prompts, runs, and with which status it is done.
//!
//! The marks are OSC 133 with a random nonce of the session. They travel with the prompt, wherever
//! the shell writes it, and with nothing else: a command's output cannot forge them without the
//! nonce, and redirecting the shell's output does not write them into a file.

use std::{fmt, path::Path};

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

    /// The mark that `payload`, the text of an OSC 133 sequence after `133;`, carries; none for a
    /// mark that somebody else made.
    pub fn read_mark(&self, payload: &str) -> Option<Mark> {
        let rest = payload.strip_suffix(self.0.as_str())?.strip_suffix(";dsh=")?;
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

/// The line that installs the hooks of bash, typed once at its first prompt.
///
/// - It runs as a command, not from the environment: a `PROMPT_COMMAND` that runs before any
///   command leaves bash without `PIPESTATUS` for good, and what is in the environment can be read
///   by every program.
/// - The status is expanded by the prompt itself, where bash has restored `$?`: whatever else runs
///   before the prompt cannot change it.
/// - Nothing of it is exported, so no program inherits the nonce. It forgets itself in the history.
/// - Tracing (`set -x`) of the hook goes nowhere, and neither `set -eu` nor a prompt that was made
///   read-only can end the shell in it.
/// - A history file that a start-up file has named is let go.
pub fn bash_install(nonce: &Nonce) -> String {
    let mark = |body: &str| format!("\\e]133;{body};dsh={}\\a", nonce.0);
    let prompt = |text: &str, body: &str| format!("{text}\\[{}\\]", mark(body));
    let (ps0, ps1, ps2) = (mark("C"), prompt(PROMPT, "B;$?;\\!"), prompt("> ", "B;k=s"));
    format!(
        " {{ __dsh_prompt() {{ local -; set +e; PS0='{ps0}' PS1='{ps1}' PS2='{ps2}'; }}; \
         export -n PROMPT_COMMAND PS0 PS1 PS2; set +o histexpand; \
         PROMPT_COMMAND=\"${{PROMPT_COMMAND:+$PROMPT_COMMAND; }}{{ __dsh_prompt; }} 2>&-\"; \
         HISTFILE=; history -c; }} 2>/dev/null"
    )
}

/// Whether the shell at this path takes [`bash_install`].
pub fn is_bash(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().contains("bash"))
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
