//! Every command of the documentation is run.
//!
//! Each `sh` block of the Markdown files is a script for bash, run as a reader would run it: in the root of
//! the repository, with a home of its own. An HTML comment in the line before a block says
//! otherwise:
//!
//! - `<!-- sh: in .ci/run -->`: it builds or takes minutes; each of its commands is a line of
//!   `.ci/run`, with further arguments or not;
//! - `<!-- sh: not run: WHY -->`: nobody runs it.
//!
//! A model is asked on this machine instead of its own, `ID` stands for a session in the log, and
//! `claude` and `codex` are stand-ins that drive the server they are told of.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;
use testkit::chat::{Server, hello};

/// The only reasons not to run a block.
const REASONS: [&str; 2] = ["it takes ten minutes", "it needs Chromium"];

/// A client that is told of a server: it begins a session and asks for the tools.
const CLIENT: &str = r#"#!/usr/bin/env python3
import json, subprocess, sys
command = sys.argv[sys.argv.index("--") + 1:]
def request(number, method, params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"
hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
begun = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n"
asked = request(0, "initialize", hello) + begun + request(1, "tools/list", {})
said = subprocess.run(command, input=asked, capture_output=True, text=True, check=True).stdout
tools = [json.loads(line) for line in said.splitlines()][-1]["result"]["tools"]
assert "terminal_send" in [tool["name"] for tool in tools], said
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The documentation: Markdown at the root, in `docs` and at the root of each crate.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![];
    let mut folders = vec![root(), root().join("docs")];
    let children =
        |folder: &str| fs::read_dir(root().join(folder)).unwrap().map(|it| it.unwrap().path());
    folders.extend(children("docs").filter(|it| it.is_dir()));
    folders.extend(children("crates"));
    folders.extend(
        root().join("examples").exists().then(|| children("examples")).into_iter().flatten(),
    );
    for folder in folders {
        let files = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
        pages.extend(files.filter(|it| it.extension().is_some_and(|it| it == "md")));
    }
    pages.sort();
    pages
}

/// A block, where it begins, and what the comment before it says.
struct Block {
    place: String,
    directive: Option<String>,
    script: String,
}

fn blocks(page: &Path) -> Vec<Block> {
    let text = fs::read_to_string(page).unwrap();
    let name = page.strip_prefix(root()).unwrap().display().to_string();
    let mut blocks = Vec::new();
    let mut before = "";
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if line.trim_start().starts_with("```") {
            let inside: Vec<&str> = lines
                .by_ref()
                .map(|(_, it)| it)
                .take_while(|it| !it.trim().starts_with("```"))
                .collect();
            if line.trim() == "```sh" {
                let directive =
                    before.strip_prefix("<!-- sh: ").and_then(|it| it.strip_suffix(" -->"));
                blocks.push(Block {
                    place: format!("{name}:{}", number + 1),
                    directive: directive.map(str::to_owned),
                    script: inside.join("\n"),
                });
            }
            // Another spelling would be no block of this test.
            assert!(
                !["```bash", "```shell", "```console"].contains(&line.trim()),
                "{name}:{number}"
            );
        }
        before = line;
    }
    blocks
}

/// Where the documentation's commands run.
struct Place {
    folder: TempDir,
    session: String,
}

impl Place {
    fn new(model: &Server) -> Self {
        let folder = TempDir::new().unwrap();
        let programs = folder.path().join("bin");
        fs::create_dir(&programs).unwrap();
        for client in ["claude", "codex"] {
            fs::write(programs.join(client), CLIENT).unwrap();
            fs::set_permissions(programs.join(client), fs::Permissions::from_mode(0o755)).unwrap();
        }
        // Where the model is; its key is the block's.
        let home = folder.path().join(".dsh");
        fs::create_dir(&home).unwrap();
        let patch = format!(
            "- id: model-openai\n  config: {{ baseUrl: 'http://{}/v1', model: m }}\n",
            model.address
        );
        fs::write(home.join("patch.yml"), patch).unwrap();
        fs::write(
            folder.path().join("script.yml"),
            "- name: model-script\n  config: { steps: [{ say: done }] }\n",
        )
        .unwrap();
        let mut place = Self { folder, session: String::new() };
        let script = place.folder.path().join("script.yml");
        let run =
            format!("dsh run --json --no-home-patch --composition {} hello", script.display());
        let events = place.run(&run);
        let said = String::from_utf8(events.stdout).unwrap();
        let first: Value = serde_json::from_str(said.lines().next().unwrap_or_default())
            .unwrap_or_else(|_| panic!("{said}{}", String::from_utf8_lossy(&events.stderr)));
        first["id"].as_str().unwrap().clone_into(&mut place.session);
        place
    }

    fn run(&self, script: &str) -> Output {
        let programs = Path::new(env!("CARGO_BIN_EXE_dsh")).parent().unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = [self.folder.path().join("bin"), programs.to_owned()];
        let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path)));
        Command::new("bash")
            .args([
                "-euo",
                "pipefail",
                "-c",
                &script.replace(" ID ", &format!(" {} ", self.session)),
            ])
            .current_dir(root())
            .env("PATH", path.unwrap())
            .env("HOME", self.folder.path())
            .env("TMPDIR", self.folder.path())
            .env_remove("DSH_HOME")
            .env_remove("DSH_LOG")
            .env_remove("OPENAI_API_KEY")
            .env_remove("DEEPSEEK_API_KEY")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }
}

/// Whether `.ci/run` has every command of a script.
fn in_ci(script: &str) -> Result<(), String> {
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    let commands = script.lines().map(|it| it.split(" # ").next().unwrap_or_default().trim());
    for command in commands.filter(|it| !it.is_empty() && !it.starts_with('#')) {
        // What is optional stands in brackets.
        let command = command.split(" [").next().unwrap_or_default().trim();
        let further = format!("{command} ");
        if !ci.lines().map(str::trim).any(|it| it == command || it.starts_with(&further)) {
            return Err(format!("`{command}` is no line of .ci/run"));
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_documentation_is_run() {
    let model = Server::play(std::iter::repeat_with(hello).take(20)).await;
    let place = Place::new(&model);
    let mut run = 0;
    let mut wrong = Vec::new();
    for Block { place: at, directive, script } in pages().iter().flat_map(|it| blocks(it)) {
        match directive.as_deref() {
            Some("in .ci/run") => {
                wrong.extend(in_ci(&script).err().map(|it| format!("{at}: {it}")));
            }
            Some(other) => {
                let why =
                    other.strip_prefix("not run: ").unwrap_or_else(|| panic!("{at}: {other}"));
                assert!(REASONS.contains(&why), "{at}: {why}");
            }
            None => {
                run += 1;
                let output = place.run(&script);
                if !output.status.success() {
                    let [said, errors] = [output.stdout, output.stderr]
                        .map(|it| String::from_utf8_lossy(&it).into_owned());
                    wrong.push(format!("{at}: {}\n{script}\n--\n{said}{errors}", output.status));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(run > 0, "no block was found");
    assert!(!model.requests().is_empty(), "no command asked the model");
}

#[test]
fn the_clients_configuration_in_the_documentation_names_a_command_that_serves() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let configurations: Vec<Value> = readme
        .split("```json\n")
        .skip(1)
        .map(|it| serde_json::from_str(it.split("```").next().unwrap()).unwrap())
        .collect();
    let servers = configurations.iter().filter_map(|it| it.get("mcpServers")?.as_object());
    let servers = servers.flat_map(|it| it.values());
    let servers: Vec<&Value> = servers.filter(|it| it.get("command").is_some()).collect();
    assert!(!servers.is_empty());
    for server in servers {
        let arguments = server["args"].as_array().unwrap().iter().map(|it| it.as_str().unwrap());
        let output = Command::new(env!("CARGO_BIN_EXE_dsh"))
            .args(arguments)
            .env("DSH_HOME", TempDir::new().unwrap().path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{server}");
    }
}
