//! What can go wrong between the request and the end of the reply, told to people.
//!
//! Guarantee: the key is in none of it, and what others say (a server, the system's library) is one
//! bounded line of printable text.

use std::{error::Error, time::Duration};

use model::ModelError;

use crate::{
    config::Config,
    endpoint::{Endpoint, Key},
};

/// An attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub(crate) struct Failure {
    pub(crate) error: ModelError,
    pub(crate) again: Again,
}

/// Whether another attempt makes sense while nothing of the reply was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    Never,
    Soon,
    /// The server said when.
    After(Duration),
}

impl Failure {
    pub(crate) fn never(error: ModelError) -> Self {
        Self { error, again: Again::Never }
    }

    pub(crate) fn soon(error: ModelError) -> Self {
        Self { error, again: Again::Soon }
    }
}

/// What the texts need.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) endpoint: Endpoint,
    pub(crate) key: Key,
    pub(crate) idle: Duration,
}

impl Account {
    pub(crate) fn new(config: &Config, endpoint: Endpoint, key: Key) -> Self {
        Self { endpoint, key, idle: config.idle_timeout() }
    }

    /// A request that got no answer.
    pub(crate) fn unanswered(&self, error: &reqwest::Error) -> Failure {
        let url = &self.endpoint.base_url;
        let why = self.foreign(&cause(error));
        if error.is_connect() {
            return Failure::soon(ModelError::Unreachable(format!(
                "cannot reach {url}: {why}; check that the server runs and that `baseUrl` \
                 (--base-url) is right"
            )));
        }
        if error.is_timeout() {
            return Failure::never(self.silent("sent no answer"));
        }
        Failure::soon(ModelError::Unreachable(format!(
            "{url} gave no answer: {why}; check that `baseUrl` (--base-url) is the address of an \
             OpenAI-compatible server"
        )))
    }

    /// An answer that broke off.
    pub(crate) fn lost(&self, error: &reqwest::Error) -> Failure {
        if error.is_timeout() {
            return Failure::never(self.silent("sent nothing more of its answer"));
        }
        self.cut(&cause(error))
    }

    pub(crate) fn cut(&self, why: &str) -> Failure {
        Failure::soon(ModelError::Cut(format!(
            "the answer of {} was cut in the middle: {}; what came of it is not complete, ask again",
            self.endpoint.base_url,
            self.foreign(why)
        )))
    }

    fn silent(&self, what: &str) -> ModelError {
        ModelError::TimedOut(format!(
            "{} {what} for {:?}; try again, or allow more with `idleTimeoutMs` of the row \
             `model-openai`",
            self.endpoint.base_url, self.idle
        ))
    }

    pub(crate) fn malformed(&self, what: &str) -> Failure {
        Failure::never(ModelError::Malformed(format!(
            "{} sent {}; check that `baseUrl` (--base-url) is the API of an OpenAI-compatible server",
            self.endpoint.base_url,
            self.foreign(what)
        )))
    }

    /// Text of others, fit to be shown.
    pub(crate) fn foreign(&self, text: &str) -> String {
        const MOST: usize = 400;
        let hidden = self.key.hide(text);
        let printable = hidden.replace(|it: char| it.is_control(), " ");
        let mut line = printable.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.len() > MOST {
            line.truncate(line.floor_char_boundary(MOST));
            line.push('…');
        }
        line
    }
}

/// What lies at the bottom of an error; what is above it repeats it or names the address, which the
/// texts do themselves.
fn cause(error: &reqwest::Error) -> String {
    let mut bottom: &dyn Error = error;
    while let Some(next) = bottom.source() {
        bottom = next;
    }
    bottom.to_string()
}
