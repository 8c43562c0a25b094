//! Lists that stand where a mapping is meant.
//!
//! Serde reads a struct from a list, too, field by field: what no schema allows, and nobody means.

use serde_json::Value;
use serde_path_to_error::Segment;

/// Whether there is a list anywhere in `value`.
pub(crate) fn has_list(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Object(map) => map.values().any(has_list),
        _ => false,
    }
}

/// Where `value` has a list although `schema` asks for a mapping: the paths.
pub(crate) fn lists_for_mappings(schema: &Value, value: &Value) -> Vec<Vec<Segment>> {
    let mut found = Vec::new();
    walk(schema, schema, value, &mut Vec::new(), &mut found);
    found
}

fn walk(
    root: &Value,
    schema: &Value,
    value: &Value,
    path: &mut Vec<Segment>,
    found: &mut Vec<Vec<Segment>>,
) {
    let schema = meant(root, schema);
    let mut inner = |schema: &Value, value: &Value, segment: Segment| {
        path.push(segment);
        walk(root, schema, value, path, found);
        path.pop();
    };
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if let Some(schema) = schema["properties"].get(key) {
                    inner(schema, value, Segment::Map { key: key.clone() });
                }
            }
        }
        Value::Array(_) if schema["type"] == "object" => found.push(path.clone()),
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                inner(&schema["items"], value, Segment::Seq { index });
            }
        }
        _ => {}
    }
}

/// The schema behind a reference, or the only one beside null.
fn meant<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    if let Some(name) = schema["$ref"].as_str() {
        return root.pointer(name.trim_start_matches('#')).map_or(schema, |it| meant(root, it));
    }
    let either = schema["anyOf"].as_array().map(Vec::as_slice).unwrap_or_default();
    match either {
        [only, null] if null["type"] == "null" => meant(root, only),
        _ => schema,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use schemars::JsonSchema;
    use serde_json::json;

    use super::*;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Outer {
        inner: Inner,
        maybe: Option<Inner>,
        many: Vec<Inner>,
        args: Vec<String>,
        named: BTreeMap<String, u8>,
        either: Either,
        any: Value,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Inner {
        rows: u16,
        pair: (u8, u8),
        deeper: Option<Box<Inner>>,
    }

    #[derive(JsonSchema)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only its schema is used")]
    enum Either {
        Rows(Vec<u16>),
        Inner(Inner),
    }

    #[test]
    fn a_list_is_no_mapping() {
        let schema = schemars::schema_for!(Outer).to_value();
        let found = |value: Value| {
            let text = |path: Vec<Segment>| {
                path.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
            };
            lists_for_mappings(&schema, &value).into_iter().map(text).collect::<Vec<_>>()
        };
        for (value, paths) in [
            (json!({ "inner": [1] }), vec!["inner"]),
            (json!({ "maybe": [], "named": [] }), vec!["maybe", "named"]),
            (json!({ "inner": { "deeper": [1], "pair": [1, 2] } }), vec!["inner deeper"]),
            (
                json!({ "many": [{ "rows": 1 }, [1], { "deeper": [] }] }),
                vec!["many [1]", "many [2] deeper"],
            ),
            (json!({ "args": ["a"], "either": [1], "any": [[]], "unknown": [1] }), vec![]),
            (json!({ "inner": 1, "maybe": null, "many": [] }), vec![]),
            (json!([1]), vec![""]),
        ] {
            assert_eq!(found(value.clone()), paths, "{value}");
        }
    }
}
