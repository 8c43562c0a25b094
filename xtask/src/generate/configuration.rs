//! `docs/catalog/configuration.md`: the row of each plugin, its keys, and what it needs.

use std::fmt::Write as _;

use dsh::VOCABULARY;

use super::{
    Page,
    facts::{Facts, PluginFacts},
    markdown::{NOTE, names, table},
    schema::{self, Setting},
};

const HEAD: &str = "
# Configuration

The row of each plugin: its names, the services it provides and needs, and the keys of its `config` with
their types, defaults and bounds. Integers go up to 2^53-1 where no other bound is named. Bounds between two
keys, and everything else that can be checked before a start, are checked by `dsh check FILE`;
`--dump-config` of each command shows what a composition comes to. For editors there are JSON Schemas of
[compositions](../schema/composition.json) and [overlays](../schema/overlay.json).
";

/// The page.
pub(super) fn page(facts: &Facts) -> Page {
    let mut text = format!("{NOTE}{HEAD}");
    for plugin in &facts.plugins {
        // Writing to a string cannot fail.
        write!(text, "\n{}", section(plugin)).ok();
    }
    Page::new("docs/catalog/configuration.md", text)
}

fn section(plugin: &PluginFacts) -> String {
    let services = |required: bool| {
        let all = plugin.inject.iter();
        names(all.filter(|it| it.required == required).map(|it| it.name))
    };
    let facts = table(
        ["names", "provides", "needs", "uses if there"],
        [[names(spellings(plugin.name)), names(&plugin.provide), services(true), services(false)]],
    );
    let needed = if plugin.needs_configuration {
        "\nA row without `config` is refused: there is no default for all of it.\n"
    } else {
        ""
    };
    format!("## `{}`\n\n{}.\n\n{facts}{needed}\n{}", plugin.name, plugin.description, keys(plugin))
}

/// How a row may be named, without the prefix that DSH writes.
fn spellings(plugin: &'static str) -> impl Iterator<Item = &'static str> {
    let aliases = VOCABULARY.aliases.iter().filter(move |(_, it)| *it == plugin);
    std::iter::once(plugin).chain(aliases.map(|(alias, _)| *alias))
}

fn keys(plugin: &PluginFacts) -> String {
    let settings = schema::settings(&plugin.config);
    if settings.is_empty() {
        return "No configuration.\n".to_owned();
    }
    let rows = settings.into_iter().map(|it| {
        let Setting { path, kind, required, alternative, default, bounds, description } = it;
        let default = match default {
            Some(default) => format!("`{default}`"),
            None if alternative => "one of these".to_owned(),
            None if required => "required".to_owned(),
            None => "none".to_owned(),
        };
        [format!("`{path}`"), kind, default, bounds, description]
    });
    table(["key", "type", "default", "bounds", "meaning"], rows)
}
