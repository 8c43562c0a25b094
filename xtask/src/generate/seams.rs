//! `docs/catalog/seams.md`: who provides which service, and who uses it.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{
    Page,
    facts::Facts,
    markdown::{NOTE, fenced, names, table},
};

const HEAD: &str = "
# Seams

The services of the host. A plugin receives those it declares and no others; start order follows them. Of
several providers of one service a composition mounts one.
";

/// Plugins around one service.
#[derive(Default)]
struct Seam {
    providers: Vec<&'static str>,
    required_by: Vec<&'static str>,
    used_by: Vec<&'static str>,
}

/// The page.
pub(super) fn page(facts: &Facts) -> Page {
    let seams = seams(facts);
    let rows = seams.iter().map(|(service, seam)| {
        [
            format!("`{service}`"),
            names(&seam.providers),
            names(&seam.required_by),
            names(&seam.used_by),
        ]
    });
    let table = table(["service", "provided by", "required by", "used if there by"], rows);
    let others = facts.plugins.iter().filter(|it| it.provide.is_empty() && it.inject.is_empty());
    let mut text = format!("{NOTE}{HEAD}\n{table}\n{}", fenced("mermaid", &graph(&seams)));
    let others = names(others.map(|it| it.name));
    if others != "–" {
        // Writing to a string cannot fail.
        write!(text, "\nPlugins without services: {others}.\n").ok();
    }
    Page::new("docs/catalog/seams.md", text)
}

fn seams(facts: &Facts) -> BTreeMap<&'static str, Seam> {
    let mut seams: BTreeMap<&'static str, Seam> = BTreeMap::new();
    for plugin in &facts.plugins {
        for service in &plugin.provide {
            seams.entry(service).or_default().providers.push(plugin.name);
        }
        for service in &plugin.inject {
            let seam = seams.entry(service.name).or_default();
            let users = if service.required { &mut seam.required_by } else { &mut seam.used_by };
            users.push(plugin.name);
        }
    }
    seams
}

/// Providers on the left, users on the right; a dotted line is an optional use.
fn graph(seams: &BTreeMap<&'static str, Seam>) -> String {
    let mut text = "flowchart LR\n".to_owned();
    let id = |name: &str| name.replace('-', "_");
    let mut line = |line: String| {
        text.push_str("  ");
        text.push_str(&line);
        text.push('\n');
    };
    for (service, seam) in seams {
        line(format!("service_{service}([{service}])"));
        for name in &seam.providers {
            line(format!("{}[{name}] --> service_{service}", id(name)));
        }
        for name in &seam.required_by {
            line(format!("service_{service} --> {}[{name}]", id(name)));
        }
        for name in &seam.used_by {
            line(format!("service_{service} -.-> {}[{name}]", id(name)));
        }
    }
    text
}
