//! Why there is no reply, or only a part of one.

/// A request that failed for good. The text says what was wrong, with what, and what to do next;
/// it holds no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// No key was given.
    #[error("{0}")]
    MissingKey(String),
    /// The key was refused.
    #[error("{0}")]
    KeyRefused(String),
    /// There is no such model or no such endpoint.
    #[error("{0}")]
    NotFound(String),
    /// The conversation is longer than the model takes: with less of it the request may succeed.
    #[error("{0}")]
    ContextTooLong(String),
    /// The server was reached and is too busy or broken, however often it was asked.
    #[error("{0}")]
    Unavailable(String),
    /// The server was not reached.
    #[error("{0}")]
    Unreachable(String),
    /// Nothing came for too long.
    #[error("{0}")]
    TimedOut(String),
    /// The connection was lost in the middle of the reply.
    #[error("{0}")]
    Cut(String),
    /// The server refused the request for another reason.
    #[error("{0}")]
    Refused(String),
    /// The server's answer makes no sense.
    #[error("{0}")]
    Malformed(String),
    /// A script that stands for a model expected something else.
    #[error("{0}")]
    Unexpected(String),
}

impl ModelError {
    /// A stable name.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::MissingKey(_) => "MISSING_KEY",
            Self::KeyRefused(_) => "KEY_REFUSED",
            Self::NotFound(_) => "MODEL_NOT_FOUND",
            Self::ContextTooLong(_) => "CONTEXT_TOO_LONG",
            Self::Unavailable(_) => "MODEL_UNAVAILABLE",
            Self::Unreachable(_) => "MODEL_UNREACHABLE",
            Self::TimedOut(_) => "MODEL_TIMED_OUT",
            Self::Cut(_) => "REPLY_CUT",
            Self::Refused(_) => "REQUEST_REFUSED",
            Self::Malformed(_) => "MALFORMED_REPLY",
            Self::Unexpected(_) => "UNEXPECTED",
        }
    }
}
