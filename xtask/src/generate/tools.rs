//! `docs/catalog/tools.md`: every tool, and every text that guides its use.

use std::fmt::Write as _;

use serde_json::Value;
use tools::ToolSpec;

use super::{
    Page,
    facts::Facts,
    markdown::{NOTE, fenced, json, names, table},
    schema::{self, Setting},
};

const HEAD: &str = "
# Tools

What a model sees of each plugin, with the plugin's default configuration: the name, description and
parameters of each tool, and the sections that the plugin adds to the system prompt (over MCP: to the
instructions of the server), in the order of `order`. Output schemas are for programs: `dsh mcp
--structured` sends them.
";

/// The page.
pub(super) fn page(facts: &Facts) -> Page {
    let mut text = format!("{NOTE}{HEAD}");
    for plugin in facts.plugins.iter().filter(|it| it.speaks()) {
        // Writing to a string cannot fail.
        write!(text, "\n## `{}`\n\n{}.\n", plugin.name, plugin.description).ok();
        if !plugin.tools.is_empty() {
            write!(text, "\nTools: {}\n", names(plugin.tools.iter().map(|it| &it.name))).ok();
        }
        for tool in &plugin.tools {
            write!(text, "\n{}", section(tool)).ok();
        }
        for section in &plugin.sections {
            write!(
                text,
                "\n### Section `{}`, order {}\n\n{}",
                section.name,
                section.order,
                fenced("text", &section.text)
            )
            .ok();
        }
    }
    Page::new("docs/catalog/tools.md", text)
}

fn section(tool: &ToolSpec) -> String {
    format!(
        "### `{}`\n\n{}\n\n{}\nOutput:\n\n{}",
        tool.name,
        tool.description,
        parameters(&tool.parameters),
        json(&tool.output),
    )
}

/// The parameters as a table.
fn parameters(schema: &Value) -> String {
    let settings = schema::settings(schema);
    if settings.is_empty() {
        return "No parameters.\n".to_owned();
    }
    let rows = settings.into_iter().map(|it| {
        let Setting { path, kind, required, description, .. } = it;
        [format!("`{path}`"), kind, if required { "yes" } else { "no" }.to_owned(), description]
    });
    table(["parameter", "type", "required", "meaning"], rows)
}
