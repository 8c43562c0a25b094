//! What the registered plugins say of themselves: their declarations, and what they contribute to a
//! running composition.
//!
//! Each plugin that could show something to a model is started by itself, with the providers of what
//! it injects under it, so that what appears is its own.

use std::{collections::BTreeMap, path::Path, process::Command};

use anyhow::Context as _;
use dsh_core::{App, Composition, Plan, PluginEntry, Service as _, Vocabulary, plugin::Declared};
use serde_json::Value;
use system_prompt::{Section, SystemPrompt};
use tools::{ToolSpec, Tools};

/// All plugins, sorted by name.
pub(super) struct Facts {
    pub(super) plugins: Vec<PluginFacts>,
}

/// One plugin.
pub(super) struct PluginFacts {
    pub(super) name: &'static str,
    /// The crate's description; empty for a plugin without a crate of its name.
    pub(super) description: String,
    pub(super) inject: Vec<Declared>,
    pub(super) provide: Vec<&'static str>,
    /// JSON Schema of its configuration, with defaults.
    pub(super) config: Value,
    /// Its defaults alone are refused.
    pub(super) needs_configuration: bool,
    /// Tools it registers with its defaults.
    pub(super) tools: Vec<ToolSpec>,
    /// What it adds to the system prompt.
    pub(super) sections: Vec<Section>,
}

impl PluginFacts {
    /// Whether a model sees anything of it.
    pub(super) fn speaks(&self) -> bool {
        !self.tools.is_empty() || !self.sections.is_empty()
    }
}

/// Descriptions of the workspace's crates by name.
fn crates(root: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("cannot run cargo")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "cargo metadata failed: {errors}");
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(packages.iter().map(|it| (text(&it["name"]), text(&it["description"]))).collect())
}

/// Asks the plugins of the host. Each has a crate of its name; what else is linked here is for tests.
pub(super) fn of_the_host(root: &Path) -> anyhow::Result<Facts> {
    let crates = crates(root)?;
    let mut linked = PluginEntry::linked();
    linked.retain(|it| crates.contains_key(it.name));
    gather(&linked, &crates)
}

/// Asks the plugins `linked`, which are sorted by name.
pub(super) fn gather(
    linked: &[&'static PluginEntry],
    crates: &BTreeMap<String, String>,
) -> anyhow::Result<Facts> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let plugins = linked.iter().map(|entry| {
        let inject = (entry.inject)();
        let shows = |it: &Declared| [Tools::NAME, SystemPrompt::NAME].contains(&it.name);
        let (tools, sections) = if inject.iter().any(shows) {
            runtime
                .block_on(contributions(entry, linked))
                .with_context(|| format!("plugin `{}` shows nothing", entry.name))?
        } else {
            Default::default()
        };
        Ok(PluginFacts {
            name: entry.name,
            description: crates.get(entry.name).cloned().unwrap_or_default(),
            inject,
            provide: (entry.provide)(),
            config: (entry.config_schema)().to_value(),
            needs_configuration: !starts_by_itself(entry),
            tools,
            sections,
        })
    });
    Ok(Facts { plugins: plugins.collect::<anyhow::Result<_>>()? })
}

/// What `entry` contributes when it runs over what it injects.
async fn contributions(
    entry: &'static PluginEntry,
    linked: &[&'static PluginEntry],
) -> anyhow::Result<(Vec<ToolSpec>, Vec<Section>)> {
    let home = tempfile::tempdir()?;
    let rows = closure(entry, linked);
    let text: Vec<String> = rows.iter().map(|it| format!("- name: {}\n", it.name)).collect();
    let mut composition = Composition::parse("catalog", &text.concat(), &Vocabulary::default())?;
    for row in rows {
        // Whoever keeps files keeps them where they do not matter.
        if (row.config_schema)().pointer("/properties/home").is_some() {
            composition =
                composition.with_config(row.name, "home", home.path().display().to_string());
        }
    }
    let app = App::start(Plan::resolve(&composition, linked)?).await?;
    let tools = app.service::<Tools>().map(|it| it.list(None)).unwrap_or_default();
    let sections = app.service::<SystemPrompt>().map(|it| it.sections(None)).unwrap_or_default();
    app.dispose().await?;
    Ok((tools, sections))
}

/// `entry` and, for each service that one of them injects, its first provider. One that needs a
/// configuration is no choice.
fn closure(
    entry: &'static PluginEntry,
    linked: &[&'static PluginEntry],
) -> Vec<&'static PluginEntry> {
    let mut rows = vec![entry];
    let mut next = 0;
    while let Some(row) = rows.get(next).copied() {
        next += 1;
        for service in (row.inject)() {
            let provides = |it: &PluginEntry| (it.provide)().contains(&service.name);
            let starts = |it: &&&'static PluginEntry| provides(it) && starts_by_itself(it);
            if !rows.iter().any(|it| provides(it)) {
                rows.extend(linked.iter().find(starts).copied());
            }
        }
    }
    rows
}

/// Whether a row without a configuration is right.
fn starts_by_itself(entry: &PluginEntry) -> bool {
    (entry.fill_defaults)(serde_json::Map::new()).is_ok()
}
