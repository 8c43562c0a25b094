//! Why a run failed, and the exit status that says so.

use std::{io::Write, process::ExitCode};

/// A run that failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something the user wrote: exit status 2.
    User {
        /// What is wrong, with what.
        message: String,
        /// What to do next; empty where the message says it.
        hint: String,
    },
    /// Anything else: exit status 1.
    Internal(anyhow::Error),
}

impl Failure {
    pub(crate) fn user(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::User { message: message.into(), hint: hint.into() }
    }

    /// Writes the message and gives the exit status.
    pub(crate) fn report(&self, out: &mut impl Write) -> ExitCode {
        let (written, code) = match self {
            Self::User { message, hint } if hint.is_empty() => {
                (writeln!(out, "error: {message}"), 2)
            }
            Self::User { message, hint } => (writeln!(out, "error: {message}\n  hint: {hint}"), 2),
            Self::Internal(error) => (writeln!(out, "error: {error:#}"), 1),
        };
        // Where stderr is closed, the status has to do.
        written.ok();
        ExitCode::from(code)
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Internal(error.into())
    }
}
