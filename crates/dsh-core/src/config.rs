//! Turning the configuration of a row, as written, into a plugin's own type.
//!
//! Guarantee: one pass reports every wrong key, not only the first that serde stumbles over, and
//! leaves what can be checked of the rest.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::Segment;

use crate::shape;

/// One thing wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Path such as `limits.rows` or `shellArgs[0]`; empty for the whole.
    pub path: String,
    /// What is wrong and what would be right.
    pub message: String,
    /// Paths of other values that this is about.
    others: Vec<String>,
}

impl ConfigError {
    /// For [`Plugin::check`](crate::Plugin::check). `path` as in the file, without `config.`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), others: Vec::new() }
    }

    /// Names another value that this problem rests on: it is not reported when that one is wrong by
    /// itself, for then only its default was compared.
    #[must_use]
    pub fn and_about(mut self, path: impl Into<String>) -> Self {
        self.others.push(path.into());
        self
    }

    /// Whether one of `removed` is, holds or belongs to a value that this is about.
    pub(crate) fn rests_on(&self, removed: &[String]) -> bool {
        let mut about = std::iter::once(&self.path).chain(&self.others);
        about.any(|path| removed.iter().any(|it| holds(it, path) || holds(path, it)))
    }

    /// The key that was probably meant, if this is about an unknown one.
    pub(crate) fn similar(&self) -> Option<String> {
        // Serde says which keys there are only in its message: "unknown field `a`, expected one of
        // `b`, `c`" (or "expected `b`"): every second piece between backticks is a key.
        let mut names = self.message.strip_prefix(UNKNOWN)?.split('`').skip(1).step_by(2);
        let written = names.next()?;
        crate::problem::nearest(written, names).map(str::to_owned)
    }

    /// The key that this says is missing.
    fn missing(&self) -> Option<&str> {
        self.message.strip_prefix("missing field `")?.strip_suffix('`')
    }
}

/// How serde begins to say that there is no such key.
const UNKNOWN: &str = "unknown field ";

/// Whether the value at `outer` is or contains the one at `inner`.
fn holds(outer: &str, inner: &str) -> bool {
    let rest = inner.strip_prefix(outer);
    outer.is_empty() || rest.is_some_and(|it| it.is_empty() || it.starts_with(['.', '[']))
}

/// A configuration as far as it could be read.
pub(crate) struct Salvaged<T> {
    /// From the keys that fit, the others at their defaults. None where a required key is missing
    /// or does not fit.
    pub(crate) value: Option<T>,
    /// All that is wrong.
    pub(crate) errors: Vec<ConfigError>,
    /// Paths of the keys that were written and that `value` does without. Keys that do not exist
    /// are not among them: nothing rests on them.
    pub(crate) removed: Vec<String>,
}

/// Deserializes `written` and says everything that is wrong with it. `left_out` are keys that were
/// taken out of it already, for faults that have been reported.
///
/// Serde stops at the first error; so what it rejects is taken out and the rest tried again.
pub(crate) fn deserialize<T: DeserializeOwned + JsonSchema>(
    written: Map<String, Value>,
    left_out: &[String],
) -> Salvaged<T> {
    let mut rest = Value::Object(written);
    let mut errors: Vec<ConfigError> = Vec::new();
    let mut removed = left_out.to_vec();
    if shape::has_list(&rest) {
        for path in shape::lists_for_mappings(schemars::schema_for!(T).as_value(), &rest) {
            let segments: Vec<&Segment> = path.iter().collect();
            let message = "invalid type: sequence, expected a mapping";
            errors.push(ConfigError::new(written_as(&segments), message));
            let taken = remove(&mut rest, &segments);
            removed.extend(taken.map(|depth| written_as(&segments[..depth])));
        }
    }
    let value = loop {
        let error = match serde_path_to_error::deserialize::<_, T>(rest.clone()) {
            Ok(config) => break Some(config),
            Err(error) => error,
        };
        let segments: Vec<&Segment> = error.path().iter().collect();
        let found = ConfigError::new(written_as(&segments), plain(error.inner().to_string()));
        let taken = remove(&mut rest, &segments).map(|depth| written_as(&segments[..depth]));
        let known = !found.message.starts_with(UNKNOWN);
        match found.missing() {
            // Serde names one of them.
            Some(key) if taken.is_none() => {
                errors.extend(missing::<T>(key, &rest, &removed));
                break None;
            }
            // A required key that was wrong and therefore taken out is not missing.
            Some(key) if removed.contains(&format!("{}.{key}", found.path)) => {}
            _ => errors.push(found),
        }
        match taken {
            Some(path) if known => removed.push(path),
            Some(_) => {}
            None => break None,
        }
    };
    Salvaged { value, errors, removed }
}

/// Required keys of the whole that are neither there nor removed: `first`, and all others that the
/// schema knows of.
fn missing<T: JsonSchema>(first: &str, rest: &Value, removed: &[String]) -> Vec<ConfigError> {
    let schema = schemars::schema_for!(T);
    let required = schema.get("required").and_then(Value::as_array);
    let mut keys = vec![first];
    keys.extend(required.into_iter().flatten().filter_map(Value::as_str).filter(|it| *it != first));
    keys.retain(|key| rest.get(key).is_none() && !removed.iter().any(|it| it == key));
    keys.into_iter().map(|key| ConfigError::new("", format!("missing field `{key}`"))).collect()
}

/// A path as in the file.
fn written_as(path: &[&Segment]) -> String {
    let mut text = String::new();
    for segment in path {
        let separator =
            if text.is_empty() || matches!(segment, Segment::Seq { .. }) { "" } else { "." };
        // Writing to a string cannot fail.
        write!(text, "{separator}{segment}").ok();
    }
    text
}

/// Takes the value at `path` out of the mapping it is in; of an element of a list, the whole list.
/// Returns how much of `path` leads to what was taken.
fn remove(value: &mut Value, path: &[&Segment]) -> Option<usize> {
    let (Segment::Map { key }, rest) = path.split_first().map(|(first, rest)| (*first, rest))?
    else {
        return None;
    };
    let map = value.as_object_mut()?;
    if !rest.is_empty()
        && let Some(depth) = map.get_mut(key).and_then(|inner| remove(inner, rest))
    {
        return Some(depth + 1);
    }
    map.shift_remove(key).map(|_| 1)
}

/// Serde's message with what was expected in words that a composition's author knows.
fn plain(message: String) -> String {
    let Some((wrong, expected)) = message.rsplit_once(", expected ") else { return message };
    let expected = match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number, 0 or more",
        "a nonzero u16" => "a whole number from 1 to 65535",
        "a nonzero u32" | "a nonzero u64" | "a nonzero usize" => "a whole number, 1 or more",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a mapping",
        _ => return message,
    };
    format!("{wrong}, expected {expected}")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    #[expect(dead_code, reason = "only the errors are read")]
    struct Outer {
        required: u32,
        #[serde(default)]
        limits: Inner,
        #[serde(default)]
        args: Vec<String>,
    }

    #[derive(Debug, Default, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, rename_all = "camelCase", default)]
    struct Inner {
        rows: u16,
        cols: u16,
    }

    fn errors(value: Value) -> Vec<(String, String)> {
        errors_of::<Outer>(value)
    }

    fn errors_of<T: DeserializeOwned + JsonSchema>(value: Value) -> Vec<(String, String)> {
        let Value::Object(written) = value else { panic!("not a mapping") };
        let errors = deserialize::<T>(written, &[]).errors;
        errors.into_iter().map(|error| (error.path, error.message)).collect()
    }

    #[test]
    fn every_wrong_key_is_found_in_one_pass() {
        let found = errors(json!({
            "requried": 1,
            "required": "x",
            "limits": { "rows": -1, "colls": 2, "cols": 70_000 },
            "args": ["a", 3],
        }));
        let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(
            paths,
            ["requried", "required", "limits.rows", "limits.colls", "limits.cols", "args[1]"]
        );
    }

    #[test]
    fn a_list_is_no_mapping() {
        let found = errors(json!({ "required": 1, "limits": [1], "args": 3 }));
        let (path, message) = &found[0];
        assert_eq!(
            (path.as_str(), message.as_str()),
            ("limits", "invalid type: sequence, expected a mapping")
        );
        assert_eq!(found[1].0, "args");
    }

    #[test]
    fn a_missing_key_is_reported_once_and_only_if_it_is_missing() {
        assert_eq!(errors(json!({})), [(String::new(), "missing field `required`".to_owned())]);
        assert_eq!(errors(json!({ "required": -1 })).len(), 1);
    }

    #[test]
    fn every_missing_key_is_reported() {
        #[derive(Debug, Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only the errors are read")]
        struct Needs {
            one: u32,
            #[serde(rename = "second")]
            two: Inner,
            three: Option<u32>,
        }
        let found = errors_of::<Needs>(json!({ "three": "x" }));
        let messages: Vec<&str> = found.iter().map(|(_, message)| message.as_str()).collect();
        assert_eq!(
            messages[1..],
            ["missing field `one`", "missing field `second`"],
            "{messages:?}"
        );
        assert_eq!(found[0].0, "three");
    }

    #[test]
    fn a_required_key_of_a_section_hides_nothing_after_it() {
        #[derive(Debug, Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only the errors are read")]
        struct Section {
            need: u32,
        }
        #[derive(Debug, Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only the errors are read")]
        struct Whole {
            section: Option<Section>,
            other: Option<u32>,
        }
        let found = errors_of::<Whole>(json!({ "section": { "need": "x" }, "other": "y" }));
        let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["section.need", "other"]);
    }

    #[test]
    fn the_nearest_key_is_named() {
        let similar = |message: &str| ConfigError::new("", message).similar();
        let message = "unknown field `colls`, expected `rows` or `cols`";
        assert_eq!(similar(message).as_deref(), Some("cols"));
        assert_eq!(similar("unknown field `zzz`, expected `rows`"), None);
        assert_eq!(similar("unknown field `a`, there are no fields"), None);
        assert_eq!(similar("invalid type: string, expected u32"), None);
    }
}
