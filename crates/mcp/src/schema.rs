//! Output schemas and values as MCP wants them: every root is an object.
//!
//! Guarantee: a value that fits a schema fits it after both went through here.

use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};

/// The property that holds a root that is no object.
const RESULT: &str = "result";

/// The schema with an object at its root.
pub(crate) fn output(schema: &Value) -> JsonObject {
    if let Some(schema) = as_object(schema) {
        return schema;
    }
    let mut root = Map::new();
    root.insert("type".to_owned(), json!("object"));
    root.insert("properties".to_owned(), json!({ RESULT: schema }));
    root.insert("required".to_owned(), json!([RESULT]));
    root.insert("additionalProperties".to_owned(), json!(false));
    root
}

/// A value of that schema.
pub(crate) fn value(schema: &Value, value: Value) -> Value {
    if as_object(schema).is_some() { value } else { json!({ RESULT: value }) }
}

/// The parameters of a tool, which are those of an object in any case.
pub(crate) fn input(schema: &Value) -> JsonObject {
    let mut root = schema.as_object().cloned().unwrap_or_default();
    root.insert("type".to_owned(), json!("object"));
    root
}

/// The schema, if all its values are objects, with `type: object` said at the root.
fn as_object(schema: &Value) -> Option<JsonObject> {
    let schema = schema.as_object()?;
    if let Some(kind) = schema.get("type") {
        return (kind == "object").then(|| schema.clone());
    }
    let branches = schema.get("oneOf")?.as_array()?;
    if !branches.iter().all(|it| as_object(it).is_some()) {
        return None;
    }
    let mut root = Map::new();
    root.insert("type".to_owned(), json!("object"));
    root.extend(schema.clone());
    Some(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_become_objects() {
        let object = json!({ "type": "object", "properties": {} });
        let array = json!({ "type": "array", "items": { "type": "string" } });
        let either = json!({ "oneOf": [object, object] });
        let mixed = json!({ "oneOf": [object, { "type": "null" }] });
        let wrapped = |inner: &Value| {
            json!({
                "type": "object",
                "properties": { "result": inner },
                "required": ["result"],
                "additionalProperties": false,
            })
        };
        for (schema, expected) in [
            (&object, object.clone()),
            (&either, json!({ "type": "object", "oneOf": [object, object] })),
            (&array, wrapped(&array)),
            (&mixed, wrapped(&mixed)),
        ] {
            assert_eq!(Value::Object(output(schema)), expected);
        }
        assert_eq!(value(&object, json!({})), json!({}));
        assert_eq!(value(&either, json!({})), json!({}));
        assert_eq!(value(&array, json!([])), json!({ "result": [] }));
        assert_eq!(value(&mixed, Value::Null), json!({ "result": null }));
    }
}
