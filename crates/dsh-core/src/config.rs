//! Turning the configuration of a row, as written, into a plugin's own type.
//!
//! Guarantee: one pass reports every wrong key, not only the first that serde stumbles over.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::Segment;

/// One thing wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Path such as `limits.rows` or `shellArgs[0]`; empty for the whole.
    pub path: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl ConfigError {
    /// For [`Plugin::check`](crate::Plugin::check). `path` as in the file, without `config.`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }

    /// The key that was probably meant, if this is about an unknown one.
    pub(crate) fn similar(&self) -> Option<String> {
        // Serde says which keys there are only in its message: "unknown field `a`, expected one of
        // `b`, `c`" (or "expected `b`"): every second piece between backticks is a key.
        let mut names = self.message.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
        let written = names.next()?;
        crate::problem::nearest(written, names).map(str::to_owned)
    }

    /// The key that this says is missing.
    pub(crate) fn missing(&self) -> Option<&str> {
        self.message.strip_prefix("missing field `")?.strip_suffix('`')
    }
}

/// Deserializes `written`, or says everything that is wrong with it.
///
/// Serde stops at the first error; so what it rejects is taken out and the rest tried again.
pub(crate) fn deserialize<T: DeserializeOwned>(
    written: Map<String, Value>,
) -> Result<T, Vec<ConfigError>> {
    let mut rest = Value::Object(written);
    let mut errors: Vec<ConfigError> = Vec::new();
    let mut removed: Vec<String> = Vec::new();
    loop {
        let error = match serde_path_to_error::deserialize::<_, T>(rest.clone()) {
            Ok(config) if errors.is_empty() => return Ok(config),
            Ok(_) => return Err(errors),
            Err(error) => error,
        };
        let found = ConfigError::new(
            match error.path().to_string() {
                path if path == "." => String::new(),
                path => path,
            },
            error.inner().to_string(),
        );
        // A required key that was wrong and therefore taken out is not missing.
        if found.missing().is_some_and(|key| removed.iter().any(|it| it == key)) {
            return Err(errors);
        }
        let path: Vec<&Segment> = error.path().iter().collect();
        let taken = remove(&mut rest, &path);
        errors.push(found);
        match taken {
            Some(key) => removed.push(key),
            None => return Err(errors),
        }
    }
}

/// Takes the value at `path` out of the mapping it is in; of an element of a list, the whole list.
fn remove(value: &mut Value, path: &[&Segment]) -> Option<String> {
    let (Segment::Map { key }, rest) = path.split_first().map(|(first, rest)| (*first, rest))?
    else {
        return None;
    };
    let map = value.as_object_mut()?;
    if !rest.is_empty()
        && let Some(taken) = map.get_mut(key).and_then(|inner| remove(inner, rest))
    {
        return Some(taken);
    }
    map.shift_remove(key).map(|_| key.clone())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    #[expect(dead_code, reason = "only the errors are read")]
    struct Outer {
        required: u32,
        #[serde(default)]
        limits: Inner,
        #[serde(default)]
        args: Vec<String>,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase", default)]
    struct Inner {
        rows: u16,
        cols: u16,
    }

    fn errors(value: Value) -> Vec<(String, String)> {
        let Value::Object(written) = value else { panic!("not a mapping") };
        deserialize::<Outer>(written)
            .unwrap_err()
            .into_iter()
            .map(|error| (error.path, error.message))
            .collect()
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
    fn a_missing_key_is_reported_once_and_only_if_it_is_missing() {
        assert_eq!(errors(json!({})), [(String::new(), "missing field `required`".to_owned())]);
        assert_eq!(errors(json!({ "required": -1 })).len(), 1);
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
