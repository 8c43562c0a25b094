//! What was typed where no terminal showed it, so that no message in the log shows it either.
//!
//! Guarantee: a text of at least [`LEAST`] bytes that a tool has called a secret stands in no line
//! that is hidden afterwards. Shorter ones are words of any sentence.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::Value;

/// Bytes of the shortest secret that is looked for.
const LEAST: usize = 4;

/// The secrets of one conversation. In memory alone.
#[derive(Default)]
pub(crate) struct Secrets(BTreeSet<String>);

impl Secrets {
    pub(crate) fn extend(&mut self, texts: impl IntoIterator<Item = String>) {
        for text in texts {
            let lines = text.lines().map(str::trim).filter(|it| it.len() >= LEAST);
            self.0.extend(lines.map(str::to_owned));
        }
    }

    /// The text as it may be logged.
    pub(crate) fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // The longest first: one secret may be a part of another.
        let mut found: Vec<&String> = self.0.iter().filter(|it| text.contains(*it)).collect();
        found.sort_by_key(|it| std::cmp::Reverse(it.len()));
        found.into_iter().fold(Cow::Borrowed(text), |text, secret| {
            Cow::Owned(text.replace(secret, &format!("({} bytes, echo off)", secret.len())))
        })
    }

    /// The value as it may be logged. Names of properties are the tools' own.
    pub(crate) fn hide_in(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.hide(&text).into_owned()),
            Value::Array(items) => items.into_iter().map(|it| self.hide_in(it)).collect(),
            Value::Object(named) => {
                named.into_iter().map(|(name, value)| (name, self.hide_in(value))).collect()
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_by_their_size() {
        let mut secrets = Secrets::default();
        secrets.extend(["hunter2\n".to_owned(), "hunter2 and more".to_owned(), "y".to_owned()]);
        for (text, hidden) in [
            (
                "I typed hunter2, twice: hunter2.",
                "I typed (7 bytes, echo off), twice: (7 bytes, echo off).",
            ),
            ("hunter2 and more", "(16 bytes, echo off)"),
            ("yes, hunter", "yes, hunter"),
        ] {
            assert_eq!(secrets.hide(text), hidden);
        }
    }
}
