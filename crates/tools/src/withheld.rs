//! What stands in the log for an argument that is not logged.
//!
//! Guarantee: nothing of a withheld value but its size is shown.

use serde_json::{Value, json};

/// `{"bytes": N}`: the size of a text in UTF-8, of anything else that of its JSON.
pub fn withheld(value: &Value) -> Value {
    let bytes = value.as_str().map_or_else(|| value.to_string().len(), str::len);
    json!({ "bytes": bytes })
}

/// Arguments with every value withheld that `shown(name, value)` is false for. Arguments that are no
/// object are withheld whole.
pub fn withhold(arguments: &Value, shown: impl Fn(&str, &Value) -> bool) -> Value {
    let Some(named) = arguments.as_object() else { return withheld(arguments) };
    named
        .iter()
        .map(|(name, value)| {
            let value = if shown(name, value) { value.clone() } else { withheld(value) };
            (name.clone(), value)
        })
        .collect()
}

/// Withholds from `logged`, which a tool made of its `arguments`, what the tool's schema does not
/// declare and the tool left as it was: nobody has thought about whether it is a secret.
pub(crate) fn withhold_undeclared(schema: &Value, arguments: &Value, logged: &mut Value) {
    if arguments.is_object() {
        declared(schema, arguments, logged);
    } else if arguments == logged {
        *logged = withheld(arguments);
    }
}

fn declared(schema: &Value, arguments: &Value, logged: &mut Value) {
    match (arguments, logged) {
        (Value::Object(arguments), Value::Object(logged)) => {
            let Some(properties) = schema.get("properties") else { return };
            for (name, logged) in logged {
                match (arguments.get(name), properties.get(name)) {
                    (Some(value), Some(property)) => declared(property, value, logged),
                    (Some(value), None) if value == logged => *logged = withheld(value),
                    _ => {}
                }
            }
        }
        (Value::Array(arguments), Value::Array(logged)) => {
            let Some(items) = schema.get("items") else { return };
            for (value, logged) in arguments.iter().zip(logged) {
                declared(items, value, logged);
            }
        }
        _ => {}
    }
}
