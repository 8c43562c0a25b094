//! A JSON Schema of settings, said in words.
//!
//! Guarantee: every property of the schema appears, nested ones by their path; a part that is
//! neither a plain type, an enumeration, a list nor a mapping is called `anything`.

use serde_json::{Map, Value};

/// One key.
pub(super) struct Setting {
    /// Such as `rows` or `steps[].say`.
    pub(super) path: String,
    /// Its type in words, values of an enumeration included.
    pub(super) kind: String,
    pub(super) required: bool,
    /// It belongs to one of several alternatives.
    pub(super) alternative: bool,
    /// As JSON; none where it has none, or where its default is to be absent.
    pub(super) default: Option<String>,
    /// Bounds in words; empty without.
    pub(super) bounds: String,
    pub(super) description: String,
}

/// The settings of a schema in its order, nested ones after the one they are in.
pub(super) fn settings(schema: &Value) -> Vec<Setting> {
    let mut settings = Vec::new();
    let definitions = schema.get("$defs").unwrap_or(&Value::Null);
    let mut walk = Walk { definitions, open: Vec::new(), settings: &mut settings };
    walk.mapping(schema, "", false);
    settings
}

struct Walk<'a> {
    definitions: &'a Value,
    /// Names of the definitions that are being walked.
    open: Vec<&'a str>,
    settings: &'a mut Vec<Setting>,
}

impl<'a> Walk<'a> {
    fn mapping(&mut self, schema: &'a Value, prefix: &str, alternative: bool) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
        let required = schema.get("required").and_then(Value::as_array);
        for (name, property) in properties {
            let path = format!("{prefix}{name}");
            let node = self.resolved(property);
            let default = property.get("default").filter(|it| !it.is_null());
            self.settings.push(Setting {
                kind: self.kind(node),
                required: required.is_some_and(|all| all.iter().any(|it| it == name)),
                alternative,
                default: default.map(Value::to_string),
                bounds: bounds(node),
                description: text(property, "description")
                    .or_else(|| text(node, "description"))
                    .unwrap_or_default(),
                path: path.clone(),
            });
            self.nested(property, &path, false);
        }
    }

    /// The settings within a value.
    fn nested(&mut self, schema: &'a Value, path: &str, alternative: bool) {
        let schema = without_null(schema);
        if let Some(name) = reference(schema) {
            // A type may hold itself.
            if !self.open.contains(&name) {
                self.open.push(name);
                self.nested(&self.definitions[name], path, alternative);
                self.open.pop();
            }
            return;
        }
        if let Some(items) = schema.get("items") {
            self.nested(items, &format!("{path}[]"), false);
        }
        for branch in alternatives(schema) {
            self.nested(branch, path, true);
        }
        self.mapping(schema, &format!("{path}."), alternative);
    }

    /// What a schema refers to, without its null.
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let schema = without_null(schema);
        match reference(schema) {
            Some(name) => &self.definitions[name],
            None => schema,
        }
    }

    fn kind(&self, schema: &'a Value) -> String {
        let schema = self.resolved(schema);
        if let Some(values) = values(schema) {
            let values: Vec<String> = values.iter().map(|it| format!("`{it}`")).collect();
            return values.join(", ");
        }
        let branches = alternatives(schema);
        if !branches.is_empty() {
            let mut kinds: Vec<String> = branches.iter().map(|it| self.kind(it)).collect();
            kinds.dedup();
            return kinds.join(" or ");
        }
        let single = match schema.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().find(|it| *it != "null"),
            single => single,
        };
        match single.and_then(Value::as_str) {
            Some("array") => match schema.get("items") {
                Some(items) => format!("list of {}", self.kind(items)),
                None => "list".to_owned(),
            },
            Some("object") => "mapping".to_owned(),
            Some("string") => "text".to_owned(),
            Some("integer") => "integer".to_owned(),
            Some("number") => "number".to_owned(),
            Some("boolean") => "boolean".to_owned(),
            _ => "anything".to_owned(),
        }
    }
}

fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

/// The alternatives of a union.
fn alternatives(schema: &Value) -> &[Value] {
    let union = schema.get("anyOf").or_else(|| schema.get("oneOf"));
    union.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The one alternative that is not null, if there is but one.
fn without_null(schema: &Value) -> &Value {
    let branches = alternatives(schema);
    let mut others = branches.iter().filter(|it| it.get("type").is_none_or(|it| it != "null"));
    match (branches.len(), others.next()) {
        (2, Some(only)) if others.next().is_none() => only,
        _ => schema,
    }
}

/// The values of an enumeration.
fn values(schema: &Value) -> Option<Vec<&Value>> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return Some(values.iter().filter(|it| !it.is_null()).collect());
    }
    if let Some(only) = schema.get("const") {
        return Some(vec![only]);
    }
    let branches = alternatives(schema);
    let all: Option<Vec<Vec<&Value>>> = branches.iter().map(values).collect();
    all.filter(|it| !it.is_empty()).map(|it| it.into_iter().flatten().collect())
}

fn bounds(schema: &Value) -> String {
    let bound = |key: &str, words: &str| Some(format!("{words} {}", schema.get(key)?));
    let all = [
        bound("minimum", "at least"),
        // What every number here is bounded by anyway says nothing.
        schema
            .get("maximum")
            .filter(|it| **it != dsh_core::number::MAX_SAFE_INTEGER)
            .map(|it| format!("at most {it}")),
        bound("minLength", "characters: at least"),
        bound("minItems", "elements: at least"),
        bound("maxItems", "elements: at most"),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn text(schema: &Value, key: &str) -> Option<String> {
    schema.get(key)?.as_str().map(str::to_owned)
}

/// A schema without what only matters at the root of a document, its definitions renamed to
/// `PREFIX.NAME` so that those of several schemas can stand side by side; and those definitions.
pub(super) fn embedded(schema: &Value, prefix: &str) -> (Value, Map<String, Value>) {
    let mut schema = schema.clone();
    let mut definitions = Map::new();
    if let Some(root) = schema.as_object_mut() {
        root.shift_remove("$schema");
        root.shift_remove("title");
        if let Some(Value::Object(found)) = root.shift_remove("$defs") {
            for (name, mut definition) in found {
                rename(&mut definition, prefix);
                definitions.insert(format!("{prefix}.{name}"), definition);
            }
        }
    }
    rename(&mut schema, prefix);
    (schema, definitions)
}

fn rename(schema: &mut Value, prefix: &str) {
    match schema {
        Value::Object(node) => {
            if let Some(Value::String(target)) = node.get_mut("$ref")
                && let Some(name) = target.strip_prefix("#/$defs/")
            {
                *target = format!("#/$defs/{prefix}.{name}");
            }
            node.values_mut().for_each(|it| rename(it, prefix));
        }
        Value::Array(nodes) => nodes.iter_mut().for_each(|it| rename(it, prefix)),
        _ => {}
    }
}
