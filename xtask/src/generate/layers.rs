//! JSON Schemas of composition and overlay files, for editors.
//!
//! Guarantee: what these refuse the host refuses too. The host refuses more: what no schema of one
//! file can say, such as a service without a provider, two rows of one id, or bounds between keys.

use dsh::VOCABULARY;
use serde_json::{Map, Value, json};

use super::{
    Page,
    facts::{Facts, PluginFacts},
    schema::embedded,
};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Both files.
pub(super) fn pages(facts: &Facts) -> [Page; 2] {
    let page = |name: &str, schema: Value| {
        Page::new(format!("docs/schema/{name}.json"), format!("{schema:#}\n"))
    };
    [page("composition", composition(facts)), page("overlay", overlay(facts))]
}

/// A list of rows.
fn composition(facts: &Facts) -> Value {
    json!({
        "$schema": DIALECT,
        "title": "Composition of a dsh host",
        "description": "The plugins that run, and how they are configured. What is not written here is built in.",
        "type": "array",
        "items": { "$ref": "#/$defs/row" },
        "minItems": 1,
        "$defs": definitions(facts),
    })
}

/// A list of changes, or nothing.
fn overlay(facts: &Facts) -> Value {
    let known = facts.plugins.iter().map(|plugin| {
        let mut then = Map::new();
        then.insert("config".into(), configuration(plugin));
        json!({
            "if": { "properties": { "id": { "enum": names(plugin.name) } }, "required": ["id"] },
            "then": { "properties": then },
        })
    });
    let known: Vec<Value> = known.collect();
    json!({
        "$schema": DIALECT,
        "title": "Overlay on a composition of a dsh host",
        "description": "Changes of rows, each found by its id; a row's id is its name unless it says another.",
        "type": ["array", "null"],
        "items": { "anyOf": [
            {
                "description": "Replaces the whole configuration of a row, or turns it off or on.",
                "type": "object",
                "properties": { "id": id(), "config": { "type": ["object", "null"] }, "disabled": { "type": "boolean" } },
                "required": ["id"],
                "anyOf": [{ "required": ["config"] }, { "required": ["disabled"] }],
                "additionalProperties": false,
                // Nobody looks at the configuration of a row that is turned off.
                "if": { "properties": { "disabled": { "const": true } }, "required": ["disabled"] },
                "else": { "allOf": known },
            },
            {
                "description": "Adds a row before or after another one.",
                "type": "object",
                "properties": { "insert": { "enum": ["before", "after"] }, "id": id(), "row": { "$ref": "#/$defs/row" } },
                "required": ["insert", "id", "row"],
                "additionalProperties": false,
            },
        ] },
        "$defs": definitions(facts),
    })
}

/// The row, and the configuration of each plugin.
fn definitions(facts: &Facts) -> Map<String, Value> {
    let mut definitions = Map::new();
    definitions.insert("row".into(), row(facts));
    for plugin in &facts.plugins {
        let (config, nested) = embedded(&plugin.config, plugin.name);
        definitions.insert(plugin.name.into(), config);
        definitions.extend(nested);
    }
    definitions
}

fn row(facts: &Facts) -> Value {
    let all: Vec<String> = facts.plugins.iter().map(|it| it.name).flat_map(names).collect();
    let configurations: Vec<Value> = facts
        .plugins
        .iter()
        .map(|plugin| {
            let mut then = Map::new();
            then.insert("properties".into(), json!({ "config": configuration(plugin) }));
            if plugin.needs_configuration {
                then.insert("required".into(), json!(["config"]));
            }
            json!({
                "if": { "properties": { "name": { "enum": names(plugin.name) } }, "required": ["name"] },
                "then": then,
            })
        })
        .collect();
    json!({
        "description": "One plugin to run.",
        "type": "object",
        "properties": {
            "name": { "description": "The plugin; DSH's names work too.", "type": "string", "minLength": 1 },
            "id": id(),
            "disabled": { "description": "Whether the row is left out.", "type": "boolean" },
            "config": { "description": "Settings of the plugin.", "type": ["object", "null"] },
        },
        "required": ["name"],
        "additionalProperties": false,
        // Nobody looks at a row that is turned off, beyond its shape.
        "if": { "properties": { "disabled": { "const": true } }, "required": ["disabled"] },
        "else": { "properties": { "name": { "enum": all } }, "allOf": configurations },
    })
}

fn id() -> Value {
    json!({ "description": "The row's id; its name without the prefix unless given.", "type": "string", "minLength": 1 })
}

/// How a row of `plugin` may be named.
fn names(plugin: &'static str) -> Vec<String> {
    let aliases = VOCABULARY.aliases.iter().filter(|(_, it)| *it == plugin);
    let short = std::iter::once(plugin).chain(aliases.map(|(alias, _)| *alias));
    short.flat_map(|it| [it.to_owned(), format!("{}{it}", VOCABULARY.prefix)]).collect()
}

/// What the `config` of a plugin may be: nothing at all means its defaults.
fn configuration(plugin: &PluginFacts) -> Value {
    let written = json!({ "$ref": format!("#/$defs/{}", plugin.name) });
    if plugin.needs_configuration {
        return written;
    }
    json!({ "anyOf": [written, { "type": "null" }] })
}
