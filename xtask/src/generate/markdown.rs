//! Pieces of the Markdown that is generated.

use std::fmt::Write as _;

use serde_json::Value;

/// What stands at the head of every generated page.
pub(super) const NOTE: &str =
    "<!-- Generated from the registered plugins by `cargo xtask gen`; do not edit. -->\n";

/// A fenced block.
pub(super) fn fenced(language: &str, text: &str) -> String {
    format!("```{language}\n{}\n```\n", text.trim_end())
}

/// A fenced block of JSON.
pub(super) fn json(value: &Value) -> String {
    fenced("json", &format!("{value:#}"))
}

/// A table. Cells may hold anything but an unescaped line break.
pub(super) fn table<const COLUMNS: usize>(
    head: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> String {
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(COLUMNS));
    for row in rows {
        let cells = row.map(|it| cell(&it));
        // Writing to a string cannot fail.
        writeln!(text, "| {} |", cells.join(" | ")).ok();
    }
    text
}

/// Text in one line, with nothing that ends a cell.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Names as code, or a dash.
pub(super) fn names<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<_> = names.into_iter().map(|it| format!("`{}`", it.as_ref())).collect();
    if names.is_empty() { "–".to_owned() } else { names.join(", ") }
}
