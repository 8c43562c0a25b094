//! Clients nobody here wrote drive the binary: the official MCP SDKs.
#![expect(clippy::unwrap_used, reason = "a helper of tests")]

use std::{ffi::OsString, path::Path, process::Command};

const DSH: &str = env!("CARGO_BIN_EXE_dsh");

/// Runs a client script of `tests/sdk` against the binary, with a home and a folder of its own.
fn drive(interpreter: OsString, script: &str, flags: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk").join(script);
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(interpreter)
        .arg(script)
        .arg(DSH)
        .args(flags)
        .current_dir(home.path())
        .env("DSH_HOME", home.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.ends_with("ok\n"), "{text}\n{errors}");
}

fn python() -> OsString {
    std::env::var_os("MCP_SDK_PYTHON").unwrap_or_else(|| "python3".into())
}

#[test]
#[ignore = "needs the Python MCP SDK (PyPI `mcp`), for the interpreter in MCP_SDK_PYTHON"]
fn the_python_sdk_runs_a_whole_session() {
    drive(python(), "client.py", &[]);
}

#[test]
#[ignore = "needs the Python MCP SDK (PyPI `mcp`), for the interpreter in MCP_SDK_PYTHON"]
fn the_python_sdk_gets_structured_values() {
    drive(python(), "client.py", &["--structured"]);
}

#[test]
#[ignore = "needs the Python MCP SDK (PyPI `mcp`), for the interpreter in MCP_SDK_PYTHON"]
fn the_python_sdk_runs_a_whole_session_over_http() {
    drive(python(), "client.py", &["--http"]);
}

#[test]
#[ignore = "needs the Python MCP SDK, vim, less, git, top, htop, fzf, nano and tmux"]
fn the_python_sdk_drives_full_screen_programs() {
    drive(python(), "screen.py", &[]);
}

#[test]
#[ignore = "needs node and the TypeScript MCP SDK (npm `@modelcontextprotocol/sdk`), in the folder MCP_SDK_NODE_MODULES"]
fn the_typescript_sdk_lists_the_tools_and_runs_a_command() {
    drive("node".into(), "client.mjs", &[]);
}

#[test]
#[ignore = "needs node and the TypeScript MCP SDK (npm `@modelcontextprotocol/sdk`), in the folder MCP_SDK_NODE_MODULES"]
fn the_typescript_sdk_gets_structured_values() {
    drive("node".into(), "client.mjs", &["--structured"]);
}

#[test]
#[ignore = "needs node and the TypeScript MCP SDK (npm `@modelcontextprotocol/sdk`), in the folder MCP_SDK_NODE_MODULES"]
fn the_typescript_sdk_runs_a_command_over_http() {
    drive("node".into(), "client.mjs", &["--http"]);
}
