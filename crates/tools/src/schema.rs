//! Schemas compiled once per tool, and what a model is told about a value that does not fit.
//!
//! Guarantees: problems come in a stable order (missing, undeclared, then the rest by place); a
//! value is quoted only where the caller says that it may be shown.

use std::fmt::Write as _;

use anyhow::Context as _;
use boon::{Compiler, ErrorKind, InstanceLocation, InstanceToken, SchemaIndex, Schemas, UrlLoader};
use serde_json::{Value, json};

use crate::dialect;

/// Name of the schema inside its own compiler.
const LOCATION: &str = "tool:///schema.json";
/// Problems named in one message.
const MAX_PROBLEMS: usize = 5;
/// Characters of a quoted value.
const MAX_QUOTED: usize = 60;

struct Compiled {
    schemas: Schemas,
    root: SchemaIndex,
}

/// The parameters of a tool: strict, whatever the schema itself says.
pub(crate) struct ParameterSchema {
    schema: Value,
    compiled: Compiled,
}

/// The values of a tool.
pub(crate) struct OutputSchema(Compiled);

/// References lead nowhere: a schema is complete in itself.
struct NoLoader;

impl UrlLoader for NoLoader {
    fn load(&self, url: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err(format!("a tool schema may not refer to {url}").into())
    }
}

impl Compiled {
    fn new(schema: Value) -> anyhow::Result<Self> {
        let mut compiler = Compiler::new();
        compiler.use_loader(Box::new(NoLoader));
        let mut schemas = Schemas::new();
        // Its errors borrow nothing but are not `Sync`; their text is all that matters.
        let invalid = |error: boon::CompileError| anyhow::anyhow!("{error:#}");
        compiler.add_resource(LOCATION, schema).map_err(invalid)?;
        let root = compiler.compile(LOCATION, &mut schemas).map_err(invalid)?;
        Ok(Self { schemas, root })
    }

    /// The problems of `value`, joined; `shown` is what of it may be quoted.
    fn check(&self, value: &Value, what: &str, shown: &Value) -> Result<(), String> {
        let Err(error) = self.schemas.validate(value, self.root) else { return Ok(()) };
        let mut problems = Vec::new();
        collect(&error, what, value, shown, &mut problems);
        problems.sort();
        problems.dedup();
        let more = problems.len().saturating_sub(MAX_PROBLEMS);
        problems.truncate(MAX_PROBLEMS);
        let texts: Vec<String> = problems.into_iter().map(|(_, text)| text).collect();
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        Err(texts.join("; ") + &more)
    }
}

impl ParameterSchema {
    pub(crate) fn compile(schema: &Value) -> anyhow::Result<Self> {
        dialect::check(schema)?;
        let mut strict = schema.clone();
        let root = strict.as_object_mut().context("it is not an object")?;
        root.entry("properties").or_insert_with(|| json!({}));
        close(&mut strict);
        Ok(Self { schema: schema.clone(), compiled: Compiled::new(strict)? })
    }

    /// The arguments without the nulls of optional properties, or what is wrong with them.
    pub(crate) fn check(&self, mut arguments: Value, logged: &Value) -> Result<Value, String> {
        drop_nulls(&self.schema, &mut arguments);
        self.compiled.check(&arguments, "arguments", logged)?;
        Ok(arguments)
    }
}

impl OutputSchema {
    pub(crate) fn compile(schema: &Value) -> anyhow::Result<Self> {
        Ok(Self(Compiled::new(schema.clone())?))
    }

    /// What is wrong with a value. Quotes nothing of it.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        self.0.check(value, "the value", &Value::Null)
    }
}

/// Refuses undeclared properties wherever properties are declared.
fn close(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else { return };
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(close);
        schema.insert("additionalProperties".into(), Value::Bool(false));
    }
    if let Some(items) = schema.get_mut("items") {
        close(items);
    }
}

/// Removes null where an optional property is meant to be absent.
fn drop_nulls(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(values) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
                return;
            };
            let required = |name: &str| {
                let names = schema.get("required").and_then(Value::as_array);
                names.is_some_and(|names| names.iter().any(|it| it == name))
            };
            values.retain(|name, value| {
                !value.is_null() || !properties.contains_key(name) || required(name)
            });
            for (name, value) in values {
                if let Some(property) = properties.get(name) {
                    drop_nulls(property, value);
                }
            }
        }
        Value::Array(values) => {
            if let Some(items) = schema.get("items") {
                for value in values {
                    drop_nulls(items, value);
                }
            }
        }
        _ => {}
    }
}

/// A problem: its rank among the others, and its text.
type Problem = (u8, String);

fn collect(
    error: &boon::ValidationError<'_, '_>,
    what: &str,
    value: &Value,
    shown: &Value,
    problems: &mut Vec<Problem>,
) {
    let place = &error.instance_location;
    let subject = || match path(place, None) {
        path if path.is_empty() => what.to_owned(),
        path => format!("property {path:?}"),
    };
    let got = || quote(at(value, place), at(shown, place));
    match &error.kind {
        ErrorKind::Required { want } => {
            let name = |name| format!("missing required property {:?}", path(place, Some(name)));
            problems.extend(want.iter().map(|it| (0, name(it))));
        }
        ErrorKind::AdditionalProperties { got } => {
            let name = |name| format!("unknown property {:?}", path(place, Some(name)));
            problems.extend(got.iter().map(|it| (1, name(it))));
        }
        ErrorKind::Type { want, .. } => {
            let want: Vec<&str> = want.iter().map(article).collect();
            problems
                .push((2, format!("{} must be {}, got {}", subject(), want.join(" or "), got())));
        }
        ErrorKind::Enum { want } => {
            let want: Vec<String> = want.iter().map(Value::to_string).collect();
            let text = format!("{} must be one of {}, got {}", subject(), want.join(", "), got());
            problems.push((2, text));
        }
        ErrorKind::Const { want } => {
            problems.push((2, format!("{} must be {want}, got {}", subject(), got())));
        }
        ErrorKind::OneOf(_) | ErrorKind::AnyOf => {
            let text = format!("{} fits none of its alternatives, got {}", subject(), got());
            problems.push((2, text));
        }
        _ if error.causes.is_empty() => {
            problems.push((2, format!("{} does not fit its schema", subject())));
        }
        _ => {
            for cause in &error.causes {
                collect(cause, what, value, shown, problems);
            }
        }
    }
}

fn article(kind: boon::Type) -> &'static str {
    match kind {
        boon::Type::Null => "null",
        boon::Type::Boolean => "a boolean",
        boon::Type::Number => "a number",
        boon::Type::Integer => "an integer",
        boon::Type::String => "a string",
        boon::Type::Array => "an array",
        boon::Type::Object => "an object",
    }
}

/// A place such as `steps[0].name`, empty for the root.
fn path(place: &InstanceLocation<'_>, last: Option<&str>) -> String {
    let mut path = String::new();
    let dot = |path: &mut String, name: &str| {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
    };
    for token in &place.tokens {
        match token {
            InstanceToken::Prop(name) => dot(&mut path, name),
            InstanceToken::Item(index) => {
                // Writing to a string cannot fail.
                write!(path, "[{index}]").ok();
            }
        }
    }
    if let Some(last) = last {
        dot(&mut path, last);
    }
    path
}

fn at<'v>(value: &'v Value, place: &InstanceLocation<'_>) -> Option<&'v Value> {
    place.tokens.iter().try_fold(value, |value, token| match token {
        InstanceToken::Prop(name) => value.get(name.as_ref()),
        InstanceToken::Item(index) => value.get(index),
    })
}

/// The value, cut, when all of it may be shown; else what kind of value it is.
fn quote(value: Option<&Value>, shown: Option<&Value>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(value) if Some(value) == shown => {
            let text = value.to_string();
            match text.char_indices().nth(MAX_QUOTED) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        }
        Some(Value::Null) => "null".to_owned(),
        Some(Value::Bool(_)) => "a boolean".to_owned(),
        Some(Value::Number(_)) => "a number".to_owned(),
        Some(Value::String(_)) => "a string".to_owned(),
        Some(Value::Array(_)) => "an array".to_owned(),
        Some(Value::Object(_)) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> ParameterSchema {
        let schema = json!({
            "type": "object",
            "properties": {
                "type": { "type": "string" },
                "count": { "type": "number" },
                "lines": { "type": "integer" },
                "submit": { "type": "boolean" },
                "signal": { "type": "string", "enum": ["SIGINT", "SIGTERM"] },
                "steps": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": { "name": { "type": "string" }, "at": { "type": "number" } },
                        "required": ["name"],
                    },
                },
            },
            "required": ["type"],
        });
        ParameterSchema::compile(&schema).unwrap()
    }

    #[test]
    fn violations_name_the_property() {
        let schema = parameters();
        let table = [
            (json!({}), r#"missing required property "type""#),
            (json!({ "type": null }), r#"property "type" must be a string, got null"#),
            (json!({ "type": "x", "foo": 1 }), r#"unknown property "foo""#),
            (json!({ "type": "x", "foo": null }), r#"unknown property "foo""#),
            (
                json!({ "type": "x", "count": "many" }),
                r#"property "count" must be a number, got "many""#,
            ),
            (
                json!({ "type": "x", "lines": 1.5 }),
                r#"property "lines" must be an integer, got 1.5"#,
            ),
            (
                json!({ "type": "x", "submit": "true" }),
                r#"property "submit" must be a boolean, got "true""#,
            ),
            (json!({ "type": ["x"] }), r#"property "type" must be a string, got ["x"]"#),
            (
                json!({ "type": "x", "signal": "SIGFOO" }),
                r#"property "signal" must be one of "SIGINT", "SIGTERM", got "SIGFOO""#,
            ),
            (
                json!({ "type": "x", "steps": [{ "name": "a" }, { "nmae": "b" }] }),
                r#"missing required property "steps[1].name"; unknown property "steps[1].nmae""#,
            ),
            (json!({ "type": "x", "steps": {} }), r#"property "steps" must be an array, got {}"#),
            (
                json!({ "b": 1, "a": 1 }),
                concat!(
                    r#"missing required property "type"; unknown property "a"; "#,
                    r#"unknown property "b""#
                ),
            ),
            (json!("ls"), r#"arguments must be an object, got "ls""#),
            (json!(null), "arguments must be an object, got null"),
            (json!([1]), "arguments must be an object, got [1]"),
            (
                json!({ "type": "x", "a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1 }),
                concat!(
                    r#"unknown property "a"; unknown property "b"; unknown property "c"; "#,
                    r#"unknown property "d"; unknown property "e"; and 2 more"#
                ),
            ),
        ];
        for (arguments, expected) in table {
            let problems = schema.check(arguments.clone(), &arguments).unwrap_err();
            assert_eq!(problems, expected, "{arguments}");
        }
    }

    #[test]
    fn null_counts_as_absent_where_a_property_is_optional() {
        let schema = parameters();
        let table = [
            (json!({ "type": "x", "count": null }), json!({ "type": "x" })),
            (
                json!({ "type": "x", "steps": [{ "name": "a", "at": null }] }),
                json!({ "type": "x", "steps": [{ "name": "a" }] }),
            ),
            (json!({ "type": "x", "lines": 2.0 }), json!({ "type": "x", "lines": 2.0 })),
        ];
        for (arguments, expected) in table {
            assert_eq!(schema.check(arguments.clone(), &arguments).unwrap(), expected);
        }
    }

    #[test]
    fn only_what_may_be_logged_is_quoted_and_not_all_of_it() {
        let schema = parameters();
        let arguments = json!({ "type": 4711, "count": "many" });
        let logged = json!({ "type": { "bytes": 4 }, "count": "many" });
        assert_eq!(
            schema.check(arguments, &logged).unwrap_err(),
            concat!(
                r#"property "count" must be a number, got "many"; "#,
                r#"property "type" must be a string, got a number"#
            )
        );
        let long = json!({ "type": "x", "count": "é".repeat(1000) });
        let problem = schema.check(long.clone(), &long).unwrap_err();
        assert!(problem.ends_with("é…") && problem.chars().count() < 120, "{problem}");
    }

    #[test]
    fn a_tool_without_parameters_takes_none() {
        for schema in [json!({ "type": "object" }), json!({ "type": "object", "properties": {} })] {
            let schema = ParameterSchema::compile(&schema).unwrap();
            schema.check(json!({}), &Value::Null).unwrap();
            let problems = schema.check(json!({ "x": 1 }), &Value::Null).unwrap_err();
            assert_eq!(problems, r#"unknown property "x""#);
        }
    }

    #[test]
    fn values_are_checked_by_the_whole_language_and_never_quoted() {
        let schema = json!({
            "type": "object",
            "properties": {
                "status": { "oneOf": [
                    { "type": "object", "properties": { "kind": { "const": "running" } },
                      "required": ["kind"], "additionalProperties": false },
                    { "type": "null" },
                ] },
                "kind": { "const": "x" },
                "n": { "type": "integer", "minimum": 1 },
            },
            "additionalProperties": false,
        });
        let schema = OutputSchema::compile(&schema).unwrap();
        for value in
            [json!({}), json!({ "status": null }), json!({ "status": { "kind": "running" } })]
        {
            schema.check(&value).unwrap();
        }
        let table = [
            (json!([]), "the value must be an object, got an array"),
            (
                json!({ "status": { "kind": "s3cret" } }),
                r#"property "status" fits none of its alternatives, got an object"#,
            ),
            (json!({ "kind": "s3cret" }), r#"property "kind" must be "x", got a string"#),
            (json!({ "s3cret": 1 }), r#"unknown property "s3cret""#),
            (json!({ "n": 0 }), r#"property "n" does not fit its schema"#),
        ];
        for (value, expected) in table {
            assert_eq!(schema.check(&value).unwrap_err(), expected, "{value}");
        }
    }
}
