//! Taking over a session: while a person holds its lease, the agent's own input is refused.

use std::{fmt, sync::Arc};

use secrecy::{ExposeSecret as _, SecretString};

use crate::{
    backend::{SessionId, Signal, SignalReceipt},
    error::TerminalError,
    session::Session,
};

/// The right to type into a session in place of its owner, who reads what was typed in a notice.
///
/// It ends with [`Self::give_back`] or when it is dropped. A send that ran when it was taken goes on.
/// When the session has ended, everything here fails as it does for the owner.
pub struct Lease {
    session: Arc<Session>,
}

impl Lease {
    /// Takes over a session, unless another person has.
    pub(crate) fn take(session: Arc<Session>) -> Result<Self, TerminalError> {
        session.take_over()?;
        Ok(Self { session })
    }

    /// Of which session.
    pub fn session_id(&self) -> &SessionId {
        &self.session.id
    }

    /// Types a text as it is, keys included (Enter is `\r`). Its owner is told; of what the terminal
    /// does not show, only how long it was.
    pub async fn type_text(&self, text: &str) -> Result<(), TerminalError> {
        self.session.type_by_hand(SecretString::from(text), false).await
    }

    /// Types a secret and Enter, if the terminal is not seen to show what is typed (`SECRET_SHOWN`
    /// otherwise). It is neither kept nor logged; its owner is told its length.
    pub async fn enter_secret(&self, secret: SecretString) -> Result<(), TerminalError> {
        let line = SecretString::from(format!("{}\r", secret.expose_secret()));
        self.session.type_by_hand(line, true).await
    }

    /// Signals the foreground process group; its owner is told.
    pub async fn signal(&self, signal: Signal) -> Result<SignalReceipt, TerminalError> {
        self.session.signal_by_hand(signal).await
    }

    /// Gives the session back to its owner.
    pub fn give_back(self) {}
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.session.give_back();
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lease").field(&self.session.id).finish()
    }
}
