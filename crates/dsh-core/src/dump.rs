//! A composition as YAML again: what a host would run, and where each row comes from.
//!
//! Guarantees: reading the text gives the same rows with the same configuration; every setting that
//! has a default is there, and each row stands below a comment that names its file.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::{
    composition::{Composition, Row, RowState},
    plugin::PluginEntry,
};

impl Composition {
    /// The composed list of rows.
    ///
    /// Defaults are those of the `linked` plugins. A row of no such plugin, or one whose configuration
    /// does not fit, is shown as it was written: what is wrong with it says
    /// [`Plan::resolve`](crate::Plan::resolve).
    pub fn dump(&self, linked: &[&'static PluginEntry]) -> String {
        let rows: Vec<String> = self.rows.iter().map(|row| dumped(row, linked)).collect();
        rows.join("\n")
    }
}

fn dumped(row: &Row, linked: &[&'static PluginEntry]) -> String {
    let mut text = format!("# {}", row.place);
    for patch in &row.patches {
        // Writing to a string cannot fail.
        write!(text, ", changed by {patch}").ok();
    }
    if row.state == RowState::Idle {
        text.push_str(" (idle: the row of another front end)");
    }
    let mut fields = Map::new();
    fields.insert("name".to_owned(), row.plugin.clone().into());
    if row.id != row.plugin {
        fields.insert("id".to_owned(), row.id.clone().into());
    }
    if row.state == RowState::Disabled {
        fields.insert("disabled".to_owned(), true.into());
    }
    let entry = linked.iter().find(|it| it.name == row.plugin);
    let written = row.config.values.clone();
    let filled = entry.and_then(|it| (it.fill_defaults)(written.clone()).ok());
    let config = filled.unwrap_or(Value::Object(written));
    if config.as_object().is_some_and(|it| !it.is_empty()) {
        fields.insert("config".to_owned(), config);
    }
    // Text keys and plain values: nothing that YAML cannot express.
    let yaml = serde_saphyr::to_string(&[fields]).unwrap_or_default();
    format!("{text}\n{}\n", yaml.trim_end())
}
