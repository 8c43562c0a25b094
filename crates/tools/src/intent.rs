//! How a user interface may show a call and its result.

use serde::{Deserialize, Serialize};

/// How to show a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "card", rename_all = "lowercase")]
pub enum CallIntent {
    /// A terminal.
    Terminal {
        /// What was typed.
        title: String,
        /// In which terminal.
        description: String,
    },
    /// Anything else.
    Generic {
        /// What kind of thing it does.
        kind: ToolKind,
    },
}

/// How to show a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "card", rename_all = "lowercase")]
pub enum ResultIntent {
    /// A terminal.
    Terminal {
        /// What was typed.
        title: String,
        /// In which terminal.
        description: String,
        /// What it showed.
        output: String,
    },
    /// Anything else.
    Generic {
        /// What kind of thing it did.
        kind: ToolKind,
    },
}

/// Kinds of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ToolKind {
    Execute,
    Read,
    Delete,
}
