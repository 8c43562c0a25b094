//! The files in the repository are fresh, and a change of anything a plugin says makes them stale.

use std::{collections::BTreeMap, sync::Arc};

use dsh_core::{Ctx, Deps, Plugin, PluginEntry, Provided, async_trait};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use system_prompt::{Section, SystemPrompt};
use tempfile::TempDir;
use tools::{Tool, ToolCall, ToolError, ToolOutput, ToolSpec, Tools};

use super::{check, differences, facts, pages, root, write};

#[test]
fn the_files_in_the_repository_are_fresh() {
    let pages = pages(&facts::of_the_host(root()).unwrap(), root()).unwrap();
    check(&pages, root()).unwrap();
}

/// What of the plugin `probe` is other than usual.
const USUAL: u8 = 0;
const DESCRIPTION: u8 = 1;
const PARAMETERS: u8 = 2;
const OUTPUT: u8 = 3;
const GUIDANCE: u8 = 4;

struct Probe<const CHANGE: u8>;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Config {
    /// How deep it probes.
    depth: u8,
}

impl Default for Config {
    fn default() -> Self {
        Self { depth: 41 }
    }
}

struct Look(ToolSpec);

#[async_trait]
impl Tool for Look {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn execute(&self, _: ToolCall) -> Result<ToolOutput, ToolError> {
        Ok(Value::Null.into())
    }

    fn render(&self, _: &Value, _: &Value) -> String {
        String::new()
    }
}

#[async_trait]
impl<const CHANGE: u8> Plugin for Probe<CHANGE> {
    const NAME: &'static str = "probe";
    type Config = Config;
    type Inject = (Tools, SystemPrompt);
    type Provide = ();

    async fn setup(
        ctx: &Ctx,
        (tools, prompt): Deps<Self>,
        _: Config,
    ) -> anyhow::Result<Provided<Self>> {
        let other = |change: u8, usual: &str| {
            if CHANGE == change { format!("{usual}, changed") } else { usual.to_owned() }
        };
        let spec = ToolSpec {
            name: "probe_look".to_owned(),
            description: other(DESCRIPTION, "Looks around"),
            parameters: json!({
                "type": "object",
                "properties": { "where": { "type": "string", "description": other(PARAMETERS, "The place") } },
                "required": ["where"],
            }),
            output: json!({ "const": other(OUTPUT, "seen") }),
        };
        tools.register(ctx.scope(), Arc::new(Look(spec)))?;
        let text = other(GUIDANCE, "Look before you leap");
        prompt.contribute(ctx.scope(), Section { name: "probe".to_owned(), order: 1, text })?;
        Ok(())
    }
}

/// Catalogs of the host with the plugin `probe`.
fn with(probe: PluginEntry) -> facts::Facts {
    let mut linked = PluginEntry::linked();
    // Only what it stands on: the other plugins need not start for this.
    linked.retain(|it| ["agents", "tools", "system-prompt", "session-log"].contains(&it.name));
    linked.push(Box::leak(Box::new(probe)));
    facts::gather(&linked, &BTreeMap::new()).unwrap()
}

fn usual() -> PluginEntry {
    PluginEntry::of::<Probe<USUAL>>()
}

#[test]
fn whatever_a_plugin_says_differently_makes_its_files_stale() {
    let folder = TempDir::new().unwrap();
    let fresh = pages(&with(usual()), folder.path()).unwrap();
    for page in &fresh {
        write(folder.path(), &page.path, Some(&page.text)).unwrap();
    }
    check(&fresh, folder.path()).unwrap();

    let mut default = usual();
    default.config_schema = || {
        let mut schema = (usual().config_schema)();
        schema.as_object_mut().unwrap()["properties"]["depth"]["default"] = 42.into();
        schema
    };
    let mut bound = usual();
    bound.config_schema = || {
        let mut schema = (usual().config_schema)();
        schema.as_object_mut().unwrap()["properties"]["depth"]["maximum"] = 43.into();
        schema
    };
    let mut service = usual();
    service.provide = || vec!["sight"];
    let tools = "docs/catalog/tools.md";
    let configuration = "docs/catalog/configuration.md";
    for (changed, file, was, is) in [
        (PluginEntry::of::<Probe<DESCRIPTION>>(), tools, "-Looks around", "+Looks around, changed"),
        (PluginEntry::of::<Probe<PARAMETERS>>(), tools, "| The place |", "| The place, changed |"),
        (PluginEntry::of::<Probe<OUTPUT>>(), tools, "\"seen\"", "\"seen, changed\""),
        (
            PluginEntry::of::<Probe<GUIDANCE>>(),
            tools,
            "-Look before",
            "+Look before you leap, changed",
        ),
        (default, configuration, "| `41` |", "| `42` |"),
        (bound, configuration, "at most 255", "at most 43"),
        (service, "docs/catalog/seams.md", "", "+| `sight` | `probe` |"),
    ] {
        let stale = pages(&with(changed), folder.path()).unwrap();
        let error = check(&stale, folder.path()).unwrap_err().to_string();
        for part in [file, was, is, "hint: run `cargo xtask gen`"] {
            assert!(error.contains(part), "{part}\n{error}");
        }
    }
}

#[test]
fn a_file_that_nothing_generates_any_more_is_stale() {
    let folder = TempDir::new().unwrap();
    let fresh = pages(&with(usual()), folder.path()).unwrap();
    for page in &fresh {
        write(folder.path(), &page.path, Some(&page.text)).unwrap();
    }
    write(folder.path(), "docs/man/dsh-fly.1".as_ref(), Some("Up.\n")).unwrap();
    let stale = differences(&fresh, folder.path()).unwrap();
    let [stale] = &stale[..] else { panic!("{stale:?}") };
    assert_eq!((stale.path.to_str(), stale.text.as_deref()), (Some("docs/man/dsh-fly.1"), None));
    assert!(stale.diff.contains("-Up."), "{}", stale.diff);
}

#[test]
fn schemas_have_the_bounds_that_plugins_check() {
    for entry in PluginEntry::linked() {
        let schema = (entry.config_schema)().to_value();
        let properties = schema["properties"].as_object().cloned().unwrap_or_default();
        let integer = |it: &Value| it["type"].to_string().contains("\"integer\"");
        for (key, property) in properties.iter().filter(|(_, it)| integer(it)) {
            for number in [0, 1 << 53] {
                let written = [(key.clone(), Value::from(number))].into_iter().collect();
                let errors = (entry.fill_defaults)(written).err().unwrap_or_default();
                let accepted = !errors.iter().any(|it| it.path == *key);
                let bound = |name: &str| property[name].as_u64();
                let within = bound("minimum").is_none_or(|it| number >= it)
                    && bound("maximum").is_none_or(|it| number <= it);
                assert_eq!(within, accepted, "{}: {key}: {number}", entry.name);
            }
        }
    }
}
