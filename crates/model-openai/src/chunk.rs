//! One event of a reply on the wire.
//!
//! The library's own type insists on fields that servers other than OpenAI's leave out, and drops
//! the reasoning; this one takes what is there.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An event: pieces of the reply, its cost, or an error.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Chunk {
    pub(crate) choices: Option<Vec<Choice>>,
    pub(crate) usage: Option<Tokens>,
    pub(crate) error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Choice {
    pub(crate) index: Option<u64>,
    pub(crate) delta: Option<Delta>,
    pub(crate) finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Delta {
    pub(crate) content: Option<String>,
    /// What the model says instead of an answer when it does not want to give one.
    pub(crate) refusal: Option<String>,
    /// DeepSeek's name for it.
    pub(crate) reasoning_content: Option<String>,
    /// The name that other servers use, some of them beside the first.
    pub(crate) reasoning: Option<String>,
    pub(crate) tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CallDelta {
    pub(crate) index: Option<u64>,
    pub(crate) id: Option<String>,
    pub(crate) function: Option<FunctionDelta>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FunctionDelta {
    pub(crate) name: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(crate) arguments: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Tokens {
    pub(crate) prompt_tokens: Option<u64>,
    pub(crate) completion_tokens: Option<u64>,
}

/// Arguments are JSON in a string; some servers send the JSON itself.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => None,
        Value::String(text) => Some(text),
        json => Some(json.to_string()),
    })
}
