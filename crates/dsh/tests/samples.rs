//! Samples of compositions and overlays: the host and the generated schemas agree on each.
//!
//! `valid`: both accept it. `invalid`: both refuse it. `host`: the host alone refuses it, for what no
//! schema of one file can say. What is refused begins with a comment that says what the host says.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use boon::{Compiler, SchemaIndex, Schemas};
use dsh_core::PluginEntry;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

// Its plugins are linked.
use dsh as _;

/// Relative to this crate.
const SAMPLES: &str = "tests/samples";
const COMPOSITIONS: &str = "../../compositions";
const SCHEMAS: &str = "../../docs/schema";

struct Schema(Schemas, SchemaIndex);

impl Schema {
    fn read(name: &str) -> Self {
        let file = here(&format!("{SCHEMAS}/{name}.json"));
        Self::of(serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap())
    }

    fn of(schema: Value) -> Self {
        let mut compiler = Compiler::new();
        let mut schemas = Schemas::new();
        compiler.add_resource("sample.json", schema).unwrap();
        let root = compiler.compile("sample.json", &mut schemas).unwrap();
        Self(schemas, root)
    }

    /// Whether an editor that goes by the schema would accept the file; it says nothing about what
    /// is no YAML.
    fn accepts(&self, file: &Path) -> bool {
        let text = fs::read_to_string(file).unwrap();
        let options = serde_saphyr::options! { strict_booleans: true };
        let value: Result<Value, _> = serde_saphyr::from_str_with_options(&text, options);
        value.is_ok_and(|value| self.0.validate(&value, self.1).is_ok())
    }
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn files(folder: &str) -> Vec<PathBuf> {
    let listing = fs::read_dir(here(folder)).unwrap();
    let mut files: Vec<PathBuf> = listing.map(|it| it.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 1, "{folder}");
    files
}

/// What the host says about a file: nothing if it would start.
fn host(arguments: &[&str], file: &Path) -> Option<String> {
    let home = TempDir::new().unwrap();
    // What the compositions name, whether or not it is on this machine.
    let programs = home.path().join("bin");
    fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink("/bin/true", programs.join("ssh")).unwrap();
    let path = env::join_paths(
        [programs].into_iter().chain(env::split_paths(&env::var_os("PATH").unwrap_or_default())),
    )
    .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_dsh"))
        .args(arguments)
        .arg(file)
        .env("DSH_HOME", home.path())
        .env("PATH", path)
        .env_remove("DSH_LOG")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    match output.status.code() {
        Some(0) => None,
        Some(2) => Some(said),
        other => panic!("{}: {other:?} {said}", file.display()),
    }
}

/// What the first line of a sample says that the host says.
fn says(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("# says: ").unwrap_or_else(|| panic!("{}", file.display())).to_owned()
}

#[track_caller]
fn agree(kind: &str, schema: &str, arguments: &[&str]) {
    let schema = Schema::read(schema);
    let folder = |name: &str| format!("{SAMPLES}/{kind}/{name}");
    let mut valid = files(&folder("valid"));
    if kind == "compositions" {
        valid.extend(files(COMPOSITIONS));
    }
    for file in valid {
        assert_eq!(host(arguments, &file), None, "{}", file.display());
        assert!(schema.accepts(&file), "the schema refuses {}", file.display());
    }
    for name in ["invalid", "host"] {
        for file in files(&folder(name)) {
            let said = host(arguments, &file);
            let said = said.unwrap_or_else(|| panic!("the host accepts {}", file.display()));
            let says = says(&file);
            assert!(said.contains(&says), "{}: {says}\n{said}", file.display());
            if name == "invalid" {
                assert!(said.contains(file.file_name().unwrap().to_str().unwrap()), "{said}");
                assert!(!schema.accepts(&file), "the schema accepts {}", file.display());
            }
        }
    }
    // Some of what only the host sees is no YAML, or loses a tag on the way to the schema.
    let beyond = files(&folder("host"));
    assert!(beyond.iter().any(|it| schema.accepts(it)), "the schema refuses all of {beyond:?}");
}

#[test]
fn the_host_and_the_schema_agree_on_compositions() {
    agree("compositions", "composition", &["check", "--no-home-patch"]);
}

#[test]
fn the_host_and_the_schema_agree_on_overlays() {
    agree("overlays", "overlay", &["mcp", "--no-home-patch", "--dump-config", "--patch"]);
}

/// One key of one plugin at a time, each with values of every kind: what the host refuses for the value
/// alone the schema refuses too, and nothing else.
#[test]
fn the_host_and_the_schema_agree_on_each_key() {
    // What no schema of one key says: what is on this machine, what another key bounds, what makes a URL
    // or a name that is not empty.
    const BEYOND: [(&str, &str); 14] = [
        ("model-openai", "apiKeyEnv"),
        ("model-openai", "baseUrl"),
        ("model-openai", "model"),
        ("model-openai", "reasoningEffort"),
        ("sandbox-policy", "writableFolders"),
        ("terminal-bash", "isolation"),
        ("terminal-bash", "maxReadBytes"),
        ("terminal-bash", "scrollbackMaxBytes"),
        ("terminal-bash", "shellPath"),
        ("terminal-remote", "argv"),
        ("terminal-remote", "controlArgv"),
        ("terminal-remote", "maxReadBytes"),
        ("terminal-remote", "scrollbackMaxBytes"),
        ("tool-jobs", "waitTimeoutMs"),
    ];
    let values = [
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(-1),
        json!(1.5),
        json!(300),
        json!(70_000),
        json!(9_007_199_254_740_991_u64),
        json!(9_007_199_254_740_992_u64),
        json!(""),
        json!(" "),
        json!("x"),
        json!("/x"),
        json!("022"),
        json!("0022"),
        json!("999"),
        json!("+22"),
        json!("A=b"),
        json!([]),
        json!([""]),
        json!(["x"]),
        json!([1]),
        json!({}),
        json!({ "x": 1 }),
    ];
    let (mut compared, mut differ) = (0, Vec::new());
    for entry in PluginEntry::linked() {
        let schema = (entry.config_schema)().to_value();
        let Some(keys) = schema.get("properties").and_then(Value::as_object) else { continue };
        for key in keys.keys().filter(|key| !BEYOND.contains(&(entry.name, key))) {
            let schema = Schema::of(json!({
                "$defs": schema.get("$defs").unwrap_or(&json!({})),
                "properties": { key: keys[key] },
            }));
            for value in &values {
                let written = Map::from_iter([(key.clone(), value.clone())]);
                let said = (entry.fill_defaults)(written.clone()).err().unwrap_or_default();
                let refuses = said.iter().any(|it| it.path.starts_with(key.as_str()));
                let accepts = schema.0.validate(&Value::Object(written), schema.1).is_ok();
                if refuses == accepts {
                    differ.push(format!("{}: {key}: {value}: {said:?}", entry.name));
                }
                compared += 1;
            }
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    assert!(compared > 1_000, "{compared}");
}

#[test]
fn the_rows_of_dsh_boot_unchanged() {
    let rows = here(&format!("{SAMPLES}/compositions/valid/dsh.yml"));
    // The client ends its input at once, and so the host ends.
    assert_eq!(host(&["mcp", "--no-home-patch", "--composition"], &rows), None);
}
