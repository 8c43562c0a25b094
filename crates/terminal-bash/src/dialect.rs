//! How a shell is made to tell when it prompts, runs, and with which status it is done.
//!
//! The marks are OSC 133 with a random nonce of the session. They travel with the prompt, wherever
//! the shell writes it, and with nothing else: a command's output cannot forge them without the
//! nonce, and redirecting the shell's output does not write them into a file.

use std::fmt;

/// Proof that a mark is this session's own.
#[derive(Clone, PartialEq, Eq)]
pub struct Nonce(String);

impl Nonce {
    /// A fresh one, 128 bits from the system's generator.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self::from_bytes(bytes))
    }

    fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(format!("{:032x}", u128::from_be_bytes(bytes)))
    }

    /// The mark that `payload`, the text of an OSC 133 sequence after `133;`, carries; none for a
    /// mark that somebody else made.
    pub fn read_mark(&self, payload: &str) -> Option<Mark> {
        let rest = payload.strip_suffix(self.0.as_str())?.strip_suffix(";dsh=")?;
        match rest.split_once(';').unwrap_or((rest, "")) {
            ("A", "") => Some(Mark::PromptStart { continuation: false }),
            ("A", "k=s") => Some(Mark::PromptStart { continuation: true }),
            ("B", "") => Some(Mark::PromptEnd),
            ("C", "") => Some(Mark::CommandStart),
            ("D", status) => Some(Mark::CommandEnd { status: status.parse().ok() }),
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
    /// A prompt begins.
    PromptStart {
        /// It is the one that asks for the rest of an unfinished command.
        continuation: bool,
    },
    /// The prompt was shown.
    PromptEnd,
    /// A command was read and is about to run.
    CommandStart,
    /// The status that stands in `$?` as a prompt is shown.
    CommandEnd {
        /// The status; none when the shell did not expand it.
        status: Option<i32>,
    },
}

/// Variables that install the hooks of bash: a `PROMPT_COMMAND` that replaces itself before the
/// first prompt.
///
/// - The status is expanded by the prompt itself, where bash has restored `$?`: whatever else runs
///   before the prompt cannot change it.
/// - Every variable loses its export before the first command runs, so no program inherits the
///   nonce.
/// - Tracing (`set -x`) of the hook goes nowhere, and it assigns only: `set -eu` cannot end the
///   shell in it.
pub fn bash_hooks(nonce: &Nonce) -> Vec<(String, String)> {
    let mark = |body: &str| format!("\\e]133;{body};dsh={}\\a", nonce.0);
    let prompt = |before: &str, text: &str| {
        format!("\\[{before}\\]{text}\\[{}\\]", mark("B"))
    };
    let ps0 = mark("C");
    let ps1 = prompt(&(mark("D;$?") + &mark("A")), "dsh> ");
    let ps2 = prompt(&mark("A;k=s"), "> ");
    let install = format!(
        "{{ __dsh_prompt() {{ PS0='{ps0}' PS1='{ps1}' PS2='{ps2}'; }}; \
         export -n PROMPT_COMMAND PS0 PS1 PS2; set +o histexpand; \
         PROMPT_COMMAND='{{ __dsh_prompt; }} 2>/dev/null'; __dsh_prompt; }} 2>/dev/null"
    );
    vec![("PROMPT_COMMAND".to_owned(), install)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marks_with_the_nonce_count() {
        let nonce = Nonce::from_bytes([7; 16]);
        let own = |body: &str| nonce.read_mark(&format!("{body};dsh={}", nonce.0));
        assert_eq!(own("A"), Some(Mark::PromptStart { continuation: false }));
        assert_eq!(own("A;k=s"), Some(Mark::PromptStart { continuation: true }));
        assert_eq!(own("B"), Some(Mark::PromptEnd));
        assert_eq!(own("C"), Some(Mark::CommandStart));
        assert_eq!(own("D;130"), Some(Mark::CommandEnd { status: Some(130) }));
        assert_eq!(own("D;$?"), Some(Mark::CommandEnd { status: None }));
        assert_eq!(own("E"), None);
        for forged in ["B", "D;0", "D;0;dsh=", "D;0;dsh=00000000000000000000000000000000"] {
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
