//! What a person sees of a session, and what is typed by hand.

use std::fmt;

use dsh_core::async_trait;
use secrecy::SecretString;

use crate::backend::WindowSize;

/// What a watcher gets next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Bytes for a terminal emulator of the window's size that paint everything, in place of all that
    /// came before.
    Picture(Vec<u8>),
    /// Bytes for it that follow all that came before.
    Output(Vec<u8>),
    /// False while a program asks for something that shall not be seen: the terminal is in line mode
    /// and does not echo.
    Echo(bool),
    /// The window has this size now; a picture follows.
    Resized(WindowSize),
}

/// A view of one session. Dropping it ends what it costs.
#[async_trait]
pub trait Watcher: Send {
    /// Waits for what is new; none once the session has ended and all of it was seen. The first are
    /// the size, the echo and a picture. Whoever asks too seldom to get all output gets a picture
    /// instead. Cancel-safe.
    ///
    /// The bytes are valid UTF-8 and hold neither questions to the terminal, which the session
    /// answers itself, nor any string sequence (`OSC`, `DCS`, `APC`, `PM`, `SOS`), so that they set no
    /// title, no clipboard and no link. A character or sequence is never cut.
    async fn next(&mut self) -> Option<Seen>;
}

/// What is typed by hand.
pub struct ByHand {
    /// What the terminal gets, as it is.
    pub text: SecretString,
    /// It is typed only if the terminal is not seen to show it, and is told by its length alone.
    pub secret: bool,
    /// Called once when it was typed, before anything that comes of it is settled.
    pub typed: Box<dyn FnOnce(TypedByHand) + Send>,
}

/// How something was typed by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypedByHand {
    /// The terminal was not known to show it: it may be a secret.
    pub hidden: bool,
}

impl fmt::Debug for ByHand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByHand").field("secret", &self.secret).finish_non_exhaustive()
    }
}
