//! A shell on the far side of a launcher, such as `ssh -tt host`.
//!
//! The launcher is what runs on this machine; nothing that it does tells what the far shell does. So
//! a far session rests on what the far side says itself, by marks, and on bracketed paste:
//!
//! - before there is a shell, that it was reached, or why not, with a token that the launcher's
//!   arguments show to everybody on this machine;
//! - from then on with the session's nonce, which is typed and appears nowhere else: prompts and
//!   statuses as a shell of this machine, the working directory, and at last the shell's own end.
//!
//! A launcher that ends without the latter has lost its connection: the session then ended by
//! `SIGHUP`, which is what a hang-up is, and not with the launcher's exit status.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use agents::Agent;
use subprocess::TerminalProcess;
use terminal::{OpenRequest, SessionStatus, TerminalError, TerminalSession};
use tokio_util::sync::CancellationToken;

use crate::{
    config::Config,
    dialect::Nonce,
    limits::{PlaceTaken, Places},
    session::{self, Shell},
};

/// What is agreed upon with the far side of one session. Clones are the same.
#[derive(Clone, Debug)]
pub struct Far {
    launcher: String,
    token: Nonce,
    pid: Arc<OnceLock<i32>>,
    gone: CancellationToken,
}

impl Far {
    /// One behind `launcher`, the command as a person would type it.
    pub fn new(launcher: String) -> Result<Self, TerminalError> {
        let gone = CancellationToken::new();
        Ok(Self { launcher, token: random()?, pid: Arc::default(), gone })
    }

    /// The word by which the far side is recognised until it has the nonce: it shows
    /// `OSC 133;S;PID;dsh=TOKEN BEL` once it waits for the nonce, a line, or instead
    /// `OSC 133;E;cwd;dsh=TOKEN BEL` when there is no such directory and
    /// `OSC 133;E;shell;dsh=TOKEN BEL` when there is no such shell. When the shell that it starts then
    /// has ended, it shows `OSC 133;X;STATUS;dsh=NONCE BEL`.
    pub fn token(&self) -> &str {
        self.token.as_str()
    }

    /// Process id, on its own machine, of the process that holds the far shell; none until it was
    /// reached.
    pub fn pid(&self) -> Option<i32> {
        self.pid.get().copied()
    }

    /// Every process of the session on the far side is known to be gone: what the launcher still does
    /// is of no use to anybody, so a close gives it no time, not even one that has begun.
    pub fn set_gone(&self) {
        self.gone.cancel();
    }
}

/// The sessions of one backend whose shells are on far sides.
pub struct FarShells {
    config: Arc<Config>,
    places: Places,
}

/// Room for one session of an agent, as long as it is not dropped.
pub struct Admitted(PlaceTaken);

impl FarShells {
    /// With a [resolved](Config::resolved) configuration.
    pub fn new(config: Config) -> Self {
        Self { config: Arc::new(config), places: Places::default() }
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Takes room for a session of `owner`, before anything is started for it. Fails with
    /// `TOO_MANY_SESSIONS`.
    pub fn admit(&self, owner: &Agent) -> Result<Admitted, TerminalError> {
        self.places.take(owner.instance(), &self.config.limits).map(Admitted)
    }

    /// Opens a session with the shell behind `launcher`, a process that was just started. Its prompts
    /// are bash's.
    ///
    /// Fails as [`terminal::TerminalBackend::open`] does: with `SHELL_START_FAILED` when the launcher
    /// ends, asks something or is silent for too long, `INVALID_CWD` when the far side refuses the
    /// directory, and after the end of every process of this machine.
    pub async fn open(
        &self,
        Admitted(place): Admitted,
        request: OpenRequest,
        launcher: Box<dyn TerminalProcess>,
        far: Far,
    ) -> Result<Arc<dyn TerminalSession>, TerminalError> {
        let OpenRequest { session_id, owner, cwd, cancel, changes } = request;
        let side = FarSide { far, cwd, refused: None, directory: None, ended: None, pastes: false };
        let shell = Shell { process: launcher, nonce: random()?, far: Some(side) };
        let config = Arc::clone(&self.config);
        let session =
            session::open(session_id, owner.id(), shell, config, place, (cancel, changes)).await?;
        Ok(Arc::new(session))
    }
}

fn random() -> Result<Nonce, TerminalError> {
    Nonce::random().map_err(|error| {
        TerminalError::ShellStartFailed(format!("no random numbers from the system: {error}"))
    })
}

/// What the far side has said so far.
pub(crate) struct FarSide {
    far: Far,
    /// The directory that was asked for.
    cwd: Option<String>,
    refused: Option<String>,
    /// The shell's working directory.
    pub(crate) directory: Option<PathBuf>,
    /// The shell's exit status.
    ended: Option<i32>,
    /// Its line editor announces itself by bracketed paste.
    pub(crate) pastes: bool,
}

impl FarSide {
    /// Takes a mark; false for one that is not the far side's.
    pub(crate) fn hear(&mut self, payload: &str, nonce: &Nonce) -> bool {
        if let Some(said) = self.far.token.strip(payload) {
            // It has the nonce since.
            if self.is_decided() {
                return true;
            }
            match said.split_once(';') {
                Some(("S", pid)) => {
                    if let Ok(pid) = pid.parse() {
                        self.far.pid.set(pid).ok();
                    }
                }
                Some(("E", what)) => self.refused = Some(what.to_owned()),
                _ => {}
            }
            return true;
        }
        match nonce.strip(payload).and_then(|said| said.split_once(';')) {
            Some(("P", directory)) => self.directory = unquote(directory).map(PathBuf::from),
            Some(("X", status)) => self.ended = status.parse().ok(),
            _ => return false,
        }
        true
    }

    /// It was reached, or refuses.
    pub(crate) fn is_decided(&self) -> bool {
        self.far.pid().is_some() || self.refused.is_some()
    }

    /// It was reached.
    pub(crate) fn is_reached(&self) -> bool {
        self.far.pid().is_some()
    }

    pub(crate) fn launcher(&self) -> &str {
        &self.far.launcher
    }

    /// Why it refuses, with what it has shown besides.
    pub(crate) fn refusal(&self, shown: &str) -> Option<TerminalError> {
        Some(match (self.refused.as_deref()?, &self.cwd) {
            ("cwd", Some(cwd)) => TerminalError::InvalidCwd {
                cwd: cwd.clone(),
                reason: format!("the far side cannot enter it: {shown}"),
            },
            _ => TerminalError::ShellStartFailed(format!(
                "the far side of `{}` has no such shell: install bash there, or name it by `shellPath`",
                self.launcher()
            )),
        })
    }

    /// Resolves once nothing is known to be left there.
    pub(crate) fn gone(&self) -> impl Future<Output = ()> + use<> {
        self.far.gone.clone().cancelled_owned()
    }

    /// How the session ended, now that the launcher has.
    pub(crate) fn exit_status(&self) -> SessionStatus {
        let signal = self.ended.is_none().then(|| "SIGHUP".to_owned());
        SessionStatus::Exited { exit_code: self.ended, signal }
    }
}

/// A word as bash's `@Q` writes it; none where it needs escapes.
fn unquote(word: &str) -> Option<String> {
    let inner = word.strip_prefix('\'')?.strip_suffix('\'')?;
    Some(inner.replace("'\\''", "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side() -> FarSide {
        let far = Far::new("ssh host".to_owned()).unwrap();
        let cwd = Some("/nowhere".to_owned());
        FarSide { far, cwd, refused: None, directory: None, ended: None, pastes: false }
    }

    #[test]
    fn quoted_words() {
        for (quoted, word) in [
            ("'/tmp/a b'", Some("/tmp/a b")),
            ("'/it'\\''s'", Some("/it's")),
            ("'/gr\u{fc}n'", Some("/gr\u{fc}n")),
            ("$'/new\\nline'", None),
            ("", None),
        ] {
            assert_eq!(unquote(quoted).as_deref(), word, "{quoted}");
        }
    }

    #[test]
    fn the_token_counts_until_the_far_side_is_reached_and_the_nonce_always() {
        let (mut side, nonce) = (side(), Nonce::random().unwrap());
        let (token, own) = (side.far.token().to_owned(), nonce.as_str());
        assert!(!side.hear("S;5;dsh=0000000000000000", &nonce));
        assert!(!side.is_decided());
        assert!(side.hear(&format!("S;4711;dsh={token}"), &nonce));
        assert_eq!(side.far.pid(), Some(4711));
        side.hear(&format!("S;1;dsh={token}"), &nonce);
        side.hear(&format!("E;cwd;dsh={token}"), &nonce);
        assert_eq!((side.far.pid(), side.refused.as_deref()), (Some(4711), None));
        assert!(side.hear(&format!("P;'/usr';dsh={own}"), &nonce));
        assert_eq!(side.directory, Some(PathBuf::from("/usr")));
        assert!(!side.hear(&format!("B;0;7;dsh={own}"), &nonce), "the shell's own");
    }

    #[test]
    fn only_the_far_side_itself_ends_with_a_status() {
        let (mut side, nonce) = (side(), Nonce::random().unwrap());
        let (token, own) = (side.far.token().to_owned(), nonce.as_str());
        let hung_up = SessionStatus::Exited { exit_code: None, signal: Some("SIGHUP".to_owned()) };
        side.hear(&format!("X;0;dsh={token}"), &nonce);
        assert_eq!(side.exit_status(), hung_up);
        side.hear(&format!("X;3;dsh={own}"), &nonce);
        assert_eq!(side.exit_status(), SessionStatus::Exited { exit_code: Some(3), signal: None });
    }
}
