//! What a part of the host finds out about the machine it runs on.

use serde::Serialize;

/// One fact, and what it means for sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at, in one or two words.
    pub topic: &'static str,
    /// How good it is.
    pub grade: Grade,
    /// What there is, and what was chosen, in a sentence.
    pub found: String,
    /// What to do for more; none where there is nothing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// How good something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// Nothing better is known.
    Good,
    /// Sessions work, and something about them is weaker than it could be.
    Weaker,
    /// Sessions do not work.
    Broken,
}

impl Finding {
    /// Nothing better is known.
    pub fn good(topic: &'static str, found: impl Into<String>) -> Self {
        Self { topic, grade: Grade::Good, found: found.into(), advice: None }
    }

    /// Sessions work, but `found`; `advice` would help.
    pub fn weaker(
        topic: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let advice = Some(advice.into());
        Self { topic, grade: Grade::Weaker, found: found.into(), advice }
    }

    /// Sessions do not work because `found`; `advice` would help.
    pub fn broken(
        topic: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { grade: Grade::Broken, ..Self::weaker(topic, found, advice) }
    }
}
