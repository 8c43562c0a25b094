//! The link list is complete: every plugin crate of the workspace is in it, and nothing else.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

use std::{collections::BTreeSet, fs, path::Path};

/// Registers plugins for tests alone.
const NOT_LINKED: [&str; 1] = ["testkit"];

#[test]
fn the_link_list_names_every_plugin_crate() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut plugins = BTreeSet::new();
    for entry in fs::read_dir(crates).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name != "dsh-core" && name != "dsh" && registers_a_plugin(&path.join("src")) {
            plugins.insert(name.replace('-', "_"));
        }
    }
    for name in NOT_LINKED {
        assert!(plugins.remove(name), "{name} registers no plugin: take it off the exceptions");
    }
    let list = fs::read_to_string(crates.join("dsh/src/plugins.rs")).unwrap();
    let linked: BTreeSet<String> = list
        .lines()
        .filter_map(|line| line.strip_prefix("use ")?.strip_suffix(" as _;"))
        .map(str::to_owned)
        .collect();
    assert_eq!(linked, plugins);
}

#[test]
fn a_plugin_has_the_name_of_its_crate() {
    assert_eq!(dsh::VOCABULARY.prefix, "@deepseek-ai/dsh-", "the host is linked");
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for plugin in dsh_core::PluginEntry::linked() {
        assert!(crates.join(plugin.name).is_dir(), "{}: catalogs would leave it out", plugin.name);
    }
}

fn registers_a_plugin(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return registers_a_plugin(&path);
        }
        // What is beside the sources need not be text.
        path.extension().is_some_and(|it| it == "rs")
            && fs::read_to_string(path).unwrap().contains("register_plugin!(")
    })
}
