//! The script.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Configuration of the row.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The replies, in order.
    pub steps: Vec<Step>,
}

/// One reply.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// Its text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub say: String,
    /// Its calls. A step without any ends the turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
}

/// One call of a tool.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Its name.
    pub tool: String,
    /// The arguments; a text is sent as it is, be it JSON or not.
    #[serde(default)]
    pub arguments: Value,
    /// What must hold of the result's text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<Expect>,
}

/// A condition on the text of a result.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Expect {
    /// One of its lines is this.
    Line(String),
    /// It contains this.
    Text(String),
    /// It does not contain this.
    Without(String),
}
