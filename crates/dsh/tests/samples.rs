//! Samples of compositions and overlays: the host and the generated schemas agree on each.
//!
//! `valid`: both accept it. `invalid`: both refuse it. `host`: the host alone refuses it, for what no
//! schema of one file can say. What is refused begins with a comment that says what the host says.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;
use tempfile::TempDir;

/// Relative to this crate.
const SAMPLES: &str = "tests/samples";
const COMPOSITIONS: &str = "../../compositions";
const SCHEMAS: &str = "../../docs/schema";

struct Schema(Schemas, SchemaIndex);

impl Schema {
    fn read(name: &str) -> Self {
        let file = here(&format!("{SCHEMAS}/{name}.json"));
        let schema = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
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
    let output = Command::new(env!("CARGO_BIN_EXE_dsh"))
        .args(arguments)
        .arg(file)
        .env("DSH_HOME", home.path())
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

#[test]
fn the_rows_of_dsh_boot_unchanged() {
    let rows = here(&format!("{SAMPLES}/compositions/valid/dsh.yml"));
    // The client ends its input at once, and so the host ends.
    assert_eq!(host(&["mcp", "--no-home-patch", "--composition"], &rows), None);
}
