//! The small dialect of JSON Schema that models know: `type, properties, required, description,
//! enum, items`, and nothing else.

use schemars::JsonSchema;
use serde_json::{Map, Value};

/// What a parameter schema may say.
const KEYWORDS: [&str; 6] = ["type", "description", "properties", "required", "enum", "items"];
/// Keywords that cannot be left out without letting other values in or keeping good ones out.
const INEXPRESSIBLE: [&str; 9] = [
    "not",
    "if",
    "prefixItems",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "contains",
    "unevaluatedProperties",
];

/// A schema cannot be said in the small dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}, which the small dialect ({}) cannot say", place(.path), KEYWORDS.join(", "))]
pub struct DialectError {
    /// Where, such as `steps[].name`; empty for the root.
    pub path: String,
    /// What is there.
    pub what: String,
}

fn place(path: &str) -> String {
    if path.is_empty() { "it has ".to_owned() } else { format!("`{path}` has ") }
}

fn error(path: &str, what: impl Into<String>) -> DialectError {
    DialectError { path: path.to_owned(), what: what.into() }
}

/// The parameters described by a type, in the small dialect. An `Option` is an optional property;
/// an integer type gives `integer`, a float type `number`. The type's own description is left out.
pub fn parameters_of<T: JsonSchema>() -> Result<Value, DialectError> {
    let schema = schemars::SchemaGenerator::default().into_root_schema_for::<T>();
    let mut parameters = small_dialect(schema.as_value())?;
    if let Some(root) = parameters.as_object_mut() {
        root.shift_remove("description");
        root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    Ok(parameters)
}

/// Says `schema` in the small dialect: references are put in place, null alternatives dropped,
/// constants become enums, bounds, formats, titles and defaults are left out.
///
/// Fails for what would then mean something else: unions, maps, tuples, recursive types.
pub fn small_dialect(schema: &Value) -> Result<Value, DialectError> {
    let definitions = schema.get("$defs").unwrap_or(&Value::Null);
    Reducer { definitions, open: Vec::new() }.reduce(schema, "")
}

/// Fails unless `schema` is in the small dialect (`additionalProperties: false` may be said) and
/// describes an object.
pub(crate) fn check(schema: &Value) -> Result<(), DialectError> {
    if schema.get("type").is_none_or(|it| it != "object") {
        return Err(error("", "another type than `object`"));
    }
    check_node(schema, "")
}

fn check_node(schema: &Value, path: &str) -> Result<(), DialectError> {
    let Some(node) = schema.as_object() else { return Err(error(path, "no object as its schema")) };
    for (keyword, value) in node {
        let closed = keyword == "additionalProperties" && *value == Value::Bool(false);
        if !closed && !KEYWORDS.contains(&keyword.as_str()) {
            return Err(error(path, format!("the keyword `{keyword}`")));
        }
    }
    if node.get("type").is_some_and(Value::is_array) {
        return Err(error(path, "several types"));
    }
    if let Some(properties) = node.get("properties").and_then(Value::as_object) {
        for (name, property) in properties {
            check_node(property, &join(path, name))?;
        }
    }
    node.get("items").map_or(Ok(()), |items| check_node(items, &format!("{path}[]")))
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

struct Reducer<'a> {
    definitions: &'a Value,
    /// Names of the definitions being put in place.
    open: Vec<String>,
}

impl Reducer<'_> {
    fn reduce(&mut self, schema: &Value, path: &str) -> Result<Value, DialectError> {
        let node = match schema {
            Value::Bool(true) => return Ok(Value::Object(Map::new())),
            Value::Object(node) => node,
            _ => return Err(error(path, "a schema that nothing fits")),
        };
        if let Some(keyword) = INEXPRESSIBLE.iter().find(|it| node.contains_key(**it)) {
            return Err(error(path, format!("the keyword `{keyword}`")));
        }
        let mut out = Map::new();
        self.reduce_reference(node, path, &mut out)?;
        self.reduce_unions(node, path, &mut out)?;
        reduce_type(node, path, &mut out)?;
        reduce_values(node, &mut out);
        self.reduce_members(node, path, &mut out)?;
        if let Some(description) = node.get("description").and_then(Value::as_str) {
            out.insert("description".into(), unwrap_lines(description).into());
        }
        Ok(Value::Object(sorted(out)))
    }

    fn reduce_reference(
        &mut self,
        node: &Map<String, Value>,
        path: &str,
        out: &mut Map<String, Value>,
    ) -> Result<(), DialectError> {
        let Some(reference) = node.get("$ref").and_then(Value::as_str) else { return Ok(()) };
        let name = reference.strip_prefix("#/$defs/").unwrap_or(reference).to_owned();
        let Some(target) = self.definitions.get(&name).cloned() else {
            return Err(error(path, format!("the unknown reference `{reference}`")));
        };
        if self.open.contains(&name) {
            return Err(error(path, format!("the recursive type `{name}`")));
        }
        self.open.push(name);
        let reduced = self.reduce(&target, path)?;
        self.open.pop();
        merge(out, reduced);
        Ok(())
    }

    /// `allOf` of one, and unions that are one thing or nothing, or a choice of constants.
    fn reduce_unions(
        &mut self,
        node: &Map<String, Value>,
        path: &str,
        out: &mut Map<String, Value>,
    ) -> Result<(), DialectError> {
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let Some(parts) = node.get(keyword).and_then(Value::as_array) else { continue };
            let mut reduced = Vec::new();
            for part in parts.iter().filter(|part| !is_null(part)) {
                reduced.push(self.reduce(part, path)?);
            }
            let is_choice =
                |part: &Value| part.get("enum").is_some() && part.get("properties").is_none();
            if keyword != "allOf" && reduced.len() > 1 && reduced.iter().all(is_choice) {
                merge(out, choice(reduced, path)?);
            } else if let (1, Some(only)) = (reduced.len(), reduced.pop()) {
                merge(out, only);
            } else {
                return Err(error(path, format!("a union (`{keyword}`)")));
            }
        }
        Ok(())
    }

    fn reduce_members(
        &mut self,
        node: &Map<String, Value>,
        path: &str,
        out: &mut Map<String, Value>,
    ) -> Result<(), DialectError> {
        if node.get("additionalProperties").is_some_and(|it| *it != Value::Bool(false)) {
            return Err(error(path, "properties of any name"));
        }
        if let Some(properties) = node.get("properties").and_then(Value::as_object) {
            let mut reduced = Map::new();
            for (name, property) in properties {
                reduced.insert(name.clone(), self.reduce(property, &join(path, name))?);
            }
            out.insert("properties".into(), Value::Object(reduced));
        }
        if let Some(required) = node.get("required") {
            out.insert("required".into(), required.clone());
        }
        if let Some(items) = node.get("items") {
            out.insert("items".into(), self.reduce(items, &format!("{path}[]"))?);
        }
        Ok(())
    }
}

/// One enum of the alternatives' values. Descriptions of single values have no place in the
/// dialect.
fn choice(parts: Vec<Value>, path: &str) -> Result<Value, DialectError> {
    let mut out = Map::new();
    let mut values = Vec::new();
    for part in parts {
        if let Some(kind) = part.get("type") {
            let first = out.entry("type").or_insert_with(|| kind.clone());
            if first != kind {
                return Err(error(path, "values of several types"));
            }
        }
        values.extend(part.get("enum").and_then(Value::as_array).cloned().unwrap_or_default());
    }
    out.insert("enum".into(), Value::Array(values));
    Ok(Value::Object(out))
}

fn reduce_type(
    node: &Map<String, Value>,
    path: &str,
    out: &mut Map<String, Value>,
) -> Result<(), DialectError> {
    match node.get("type") {
        Some(Value::Array(kinds)) => {
            let mut kinds = kinds.iter().filter(|kind| **kind != "null");
            match (kinds.next(), kinds.next()) {
                (Some(kind), None) => out.insert("type".into(), kind.clone()),
                _ => return Err(error(path, "several types")),
            };
        }
        Some(kind) => {
            out.insert("type".into(), kind.clone());
        }
        None => {}
    }
    Ok(())
}

fn reduce_values(node: &Map<String, Value>, out: &mut Map<String, Value>) {
    let constant = node.get("const").map(|value| vec![value.clone()]);
    let values = node.get("enum").and_then(Value::as_array).cloned().or(constant);
    let Some(mut values) = values else { return };
    values.retain(|value| !value.is_null());
    if !out.contains_key("type") && values.iter().all(Value::is_string) {
        out.insert("type".into(), "string".into());
    }
    out.insert("enum".into(), Value::Array(values));
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "null")
        || schema.get("const").is_some_and(Value::is_null)
}

fn merge(out: &mut Map<String, Value>, part: Value) {
    if let Value::Object(part) = part {
        out.extend(part);
    }
}

fn sorted(mut node: Map<String, Value>) -> Map<String, Value> {
    KEYWORDS.iter().filter_map(|keyword| node.shift_remove_entry(*keyword)).collect()
}

/// Undoes the line breaks of a source file; blank lines stay.
fn unwrap_lines(text: &str) -> String {
    let paragraphs: Vec<String> = text
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    paragraphs.join("\n\n")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_type_becomes_parameters() {
        /// How loud.
        #[derive(Deserialize, JsonSchema)]
        enum Level {
            #[serde(rename = "low")]
            Low,
            /// Not always.
            #[serde(rename = "high")]
            High,
        }
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema matters")]
        struct Step {
            name: String,
            again: Option<Box<[u32]>>,
        }
        /// Left out.
        #[derive(Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        #[expect(dead_code, reason = "only its schema matters")]
        struct Parameters {
            /// Which
            /// session.
            session_id: String,
            #[serde(default)]
            offset: Option<f64>,
            /// Its own words.
            level: Option<Level>,
            bare: Level,
            steps: Vec<Step>,
            #[schemars(range(min = 1))]
            #[serde(default)]
            lines: u16,
            any: Value,
        }
        let expected = json!({
            "type": "object",
            "properties": {
                "sessionId": { "type": "string", "description": "Which session." },
                "offset": { "type": "number" },
                "level": {
                    "type": "string", "description": "Its own words.", "enum": ["low", "high"],
                },
                "bare": { "type": "string", "description": "How loud.", "enum": ["low", "high"] },
                "steps": { "type": "array", "items": {
                    "type": "object",
                    "properties": {
                        "name": { "type": "string" },
                        "again": { "type": "array", "items": { "type": "integer" } },
                    },
                    "required": ["name"],
                } },
                "lines": { "type": "integer" },
                "any": {},
            },
            "required": ["sessionId", "bare", "steps", "any"],
        });
        let parameters = parameters_of::<Parameters>().unwrap();
        assert_eq!(parameters, expected);
        check(&parameters).unwrap();
    }

    #[test]
    fn no_parameters_are_an_empty_object() {
        #[derive(JsonSchema)]
        struct Nothing {}
        let parameters = parameters_of::<Nothing>().unwrap();
        assert_eq!(parameters, json!({ "type": "object", "properties": {} }));
    }

    #[test]
    fn what_would_change_its_meaning_is_refused() {
        let wrap = |schema: Value| json!({ "type": "object", "properties": { "x": schema } });
        let table = [
            (wrap(json!({ "type": ["string", "integer"] })), "`x` has several types, "),
            (
                wrap(json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] })),
                "`x` has a union (`anyOf`), ",
            ),
            (
                wrap(json!({ "oneOf": [{ "const": 1, "type": "integer" }, { "const": "a" }] })),
                "`x` has values of several types, ",
            ),
            (
                wrap(json!({ "type": "object", "additionalProperties": { "type": "string" } })),
                "`x` has properties of any name, ",
            ),
            (
                wrap(json!({ "type": "array", "items": { "not": {} } })),
                "`x[]` has the keyword `not`, ",
            ),
            (wrap(json!({ "$ref": "#/$defs/y" })), "`x` has the unknown reference `#/$defs/y`, "),
            (wrap(json!(false)), "`x` has a schema that nothing fits, "),
        ];
        for (schema, problem) in table {
            let error = small_dialect(&schema).unwrap_err().to_string();
            assert!(error.starts_with(problem), "{error}");
        }
        let mut recursive = wrap(json!({ "$ref": "#/$defs/y" }));
        recursive["$defs"] = json!({ "y": { "type": "array", "items": { "$ref": "#/$defs/y" } } });
        let error = small_dialect(&recursive).unwrap_err();
        assert_eq!((error.path.as_str(), error.what.as_str()), ("x[]", "the recursive type `y`"));
    }

    #[test]
    fn single_alternatives_and_constants_are_kept() {
        let table = [
            (json!({ "allOf": [{ "type": "string", "title": "T" }] }), json!({ "type": "string" })),
            (json!({ "type": "string", "const": "a" }), json!({ "type": "string", "enum": ["a"] })),
            (
                json!({ "type": ["string", "null"], "enum": ["a", null], "default": null }),
                json!({ "type": "string", "enum": ["a"] }),
            ),
        ];
        for (schema, expected) in table {
            assert_eq!(small_dialect(&schema).unwrap(), expected);
        }
    }

    #[test]
    fn parameters_outside_of_the_dialect_are_found() {
        let nested = json!({ "type": "object", "properties": {
            "a": { "type": "array", "items": { "type": "string", "minLength": 1 } },
        } });
        assert_eq!(check(&nested).unwrap_err().path, "a[]");
        check(&json!({ "type": "object", "additionalProperties": false })).unwrap();
        check(&json!({ "type": "object", "additionalProperties": true })).unwrap_err();
        check(&json!({ "properties": {} })).unwrap_err();
    }
}
