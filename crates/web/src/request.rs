//! What a page may ask for: one JSON object a frame.

use secrecy::SecretString;
use serde::Deserialize;
use terminal::Signal;

/// Longest frame.
pub(crate) const MOST: usize = 64 << 10;

/// A request.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Request {
    Watch { session: String },
    Unwatch { session: String },
    Take { session: String },
    Give { session: String },
    Type { session: String, text: SecretString },
    Secret { session: String, text: SecretString },
    Signal { session: String, signal: Signal },
    Kill { job: String, agent: String },
    Cards { agent: String },
}

/// Why a frame is no request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// A type that nobody knows.
    Unknown(String),
    /// No request at all.
    Malformed(&'static str),
}

#[derive(Deserialize)]
struct Typed {
    #[serde(rename = "type")]
    kind: String,
}

const KNOWN: [&str; 9] =
    ["watch", "unwatch", "take", "give", "type", "secret", "signal", "kill", "cards"];

impl Request {
    /// Reads a frame. What is said of a malformed one repeats nothing of it: it may hold a secret.
    pub(crate) fn read(text: &str) -> Result<Self, Unfit> {
        let Ok(Typed { kind }) = serde_json::from_str(text) else {
            return Err(Unfit::Malformed("a frame must be a JSON object with a `type`"));
        };
        if !KNOWN.contains(&kind.as_str()) {
            return Err(Unfit::Unknown(kind));
        }
        serde_json::from_str(text).map_err(|_| {
            Unfit::Malformed("a frame lacks a field of its type, or has one of another kind")
        })
    }

    /// Its type.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Watch { .. } => "watch",
            Self::Unwatch { .. } => "unwatch",
            Self::Take { .. } => "take",
            Self::Give { .. } => "give",
            Self::Type { .. } => "type",
            Self::Secret { .. } => "secret",
            Self::Signal { .. } => "signal",
            Self::Kill { .. } => "kill",
            Self::Cards { .. } => "cards",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames() {
        let watch = Request::read(r#"{"type":"watch","session":"pty-1"}"#).unwrap();
        assert!(matches!(&watch, Request::Watch { session } if session == "pty-1"));
        assert_eq!(watch.kind(), "watch");
        let secret = Request::read(r#"{"type":"secret","session":"a","text":"hush"}"#).unwrap();
        assert!(!format!("{secret:?}").contains("hush"));
        assert_eq!(
            Request::read(r#"{"type":"shout"}"#).unwrap_err(),
            Unfit::Unknown("shout".to_owned())
        );
        for malformed in [
            "",
            "[]",
            "null",
            "{}",
            r#"{"type":1}"#,
            r#"{"type":"watch"}"#,
            r#"{"type":"watch","session":1}"#,
            r#"{"type":"watch","session":"a","more":1}"#,
            r#"{"type":"signal","session":"a","signal":"SIGSEGV"}"#,
            r#"{"type":"type","session":"a","text":["hush"]}"#,
        ] {
            let unfit = Request::read(malformed).unwrap_err();
            assert!(matches!(unfit, Unfit::Malformed(_)), "{malformed}: {unfit:?}");
        }
    }
}
