//! Exit statuses and messages of the binary.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

fn dsh(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dsh"))
        .args(arguments)
        .current_dir(folder)
        .env("DSH_HOME", folder.join("home"))
        .env_remove("DSH_LOG")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[track_caller]
fn refused(output: &Output, parts: &[&str]) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    for part in parts {
        assert!(errors.contains(part), "{part:?} is missing in:\n{errors}");
    }
    for noise in ["backtrace", "panicked", "RUST_BACKTRACE"] {
        assert!(!errors.contains(noise), "{errors}");
    }
}

#[test]
fn broken_command_lines() {
    let folder = TempDir::new().unwrap();
    for (arguments, parts) in [
        (vec![], vec!["Usage: dsh <COMMAND>", "dsh run --agent-terminal-demo"]),
        (vec!["serve"], vec!["unrecognized subcommand 'serve'"]),
        (vec!["run"], vec!["error: nothing to run", "hint: try `dsh run --agent-terminal-demo`"]),
        (vec!["run", "tidy up"], vec!["no model loop yet", "hint: "]),
        (vec!["run", "--agent-terminal-demos"], vec!["--agent-terminal-demo"]),
        (vec!["mcp", "--composition"], vec!["a value is required for '--composition <FILE>'"]),
        (
            vec!["mcp", "--composition", "no.yml"],
            vec!["cannot read the composition no.yml: No such file", "hint: "],
        ),
        (vec!["mcp", "--composition", "."], vec!["cannot read the composition .: Is a directory"]),
    ] {
        refused(&dsh(folder.path(), &arguments), &parts);
    }
    assert!(!folder.path().join("home").exists());
}

#[test]
fn help_and_version() {
    let folder = TempDir::new().unwrap();
    let version = dsh(folder.path(), &["--version"]);
    assert_eq!(version.status.code(), Some(0));
    assert_eq!(
        String::from_utf8(version.stdout).unwrap(),
        concat!("dsh ", env!("CARGO_PKG_VERSION"), "\n")
    );
    for arguments in [&["--help"][..], &["run", "--help"], &["mcp", "--help"]] {
        let help = dsh(folder.path(), arguments);
        assert_eq!(help.status.code(), Some(0));
        assert!(String::from_utf8(help.stdout).unwrap().contains("Example"), "{arguments:?}");
    }
}

#[test]
fn broken_compositions_start_nothing() {
    let folder = TempDir::new().unwrap();
    let rows = "- name: terminal\n- name: terminal-bash\n- name: tool-terminal\n";
    for (text, parts) in [
        // What is reported alone.
        (
            "- name: terminal\n  name: terminal\n".to_owned(),
            vec!["c.yml:2", "the key `name` is already there"],
        ),
        ("- name: [terminal\n".to_owned(), vec!["c.yml"]),
        ("plugins: []\n".to_owned(), vec!["c.yml:1", "list of rows"]),
        (String::new(), vec!["c.yml", "empty"]),
        // What is reported together.
        (
            "- name: termnal\n\
             - name: tool-terminal\n\
             \x20 config: { maxResultBytes: 63, reportstate: true }\n\
             - name: '@deepseek-ai/dsh-web-search'\n"
                .to_owned(),
            vec![
                "c.yml:1: no plugin is named `termnal`",
                "did you mean `terminal`?",
                "c.yml:2",
                "config.maxResultBytes: 63 is out of range: at least 64",
                "reportState",
                "needs service `terminals`",
                "c.yml:4",
                "`@deepseek-ai/dsh-web-search` is a DSH row that this host does not provide",
            ],
        ),
        (
            format!("{rows}- name: terminal\n  id: second\n"),
            vec!["c.yml:4: row `second` provides service `terminals`", "c.yml:1"],
        ),
        (format!("{rows}- name: terminal\n"), vec!["c.yml:4", "`terminal` is already used"]),
        (
            "- name: terminal\n  config: !!js '1'\n".to_owned(),
            vec!["c.yml:1", "write the value itself"],
        ),
        (
            format!("- name: agents\n  disabled: true\n{rows}"),
            vec!["needs service `agents`", "is disabled"],
        ),
    ] {
        fs::write(folder.path().join("c.yml"), &text).unwrap();
        for command in [&["mcp"][..], &["run", "--agent-terminal-demo"]] {
            let mut arguments = command.to_vec();
            arguments.extend(["--composition", "c.yml"]);
            refused(&dsh(folder.path(), &arguments), &parts);
        }
    }
    assert!(!folder.path().join("home").exists());
}

#[test]
fn the_demonstration_runs_in_a_pipe_from_any_folder() {
    let folder = TempDir::new().unwrap();
    let shown = dsh(folder.path(), &["run", "--agent-terminal-demo"]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert_eq!(shown.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&shown.stderr));
    assert_eq!(String::from_utf8_lossy(&shown.stderr), "");
    assert!(text.contains("> terminal_send · Terminal pty-1 · print(2+2)"), "{text}");
    assert!(text.contains("  print(2+2)\n  4\n  >>> \n"), "{text}");
    assert!(text.contains("14 steps, each as expected (logged as session "), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn the_demonstration_runs_beside_the_rows_of_front_ends() {
    let folder = TempDir::new().unwrap();
    let rows = "- name: mcp\n- name: web\n- name: agent-loop\n\
                - name: terminal\n- name: terminal-bash\n- name: tool-terminal\n";
    fs::write(folder.path().join("c.yml"), rows).unwrap();
    let shown = dsh(folder.path(), &["run", "--agent-terminal-demo", "--composition", "c.yml"]);
    let errors = String::from_utf8_lossy(&shown.stderr);
    assert_eq!((shown.status.code(), &*errors), (Some(0), ""));
}

#[test]
fn the_demonstration_says_which_step_went_wrong() {
    let folder = TempDir::new().unwrap();
    let rows = "- name: terminal\n\
                - name: terminal-bash\n\
                - name: tool-terminal\n\
                \x20 config: { reportState: false }\n";
    fs::write(folder.path().join("c.yml"), rows).unwrap();
    let shown = dsh(folder.path(), &["run", "--agent-terminal-demo", "--composition", "c.yml"]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert_eq!(shown.status.code(), Some(1), "{text}");
    let wrong = "step 2 (Change the shell's state) went wrong: terminal_send: expected 0 at \
                 \"/lastCommand/exitCode\" of the value, got nothing\n";
    assert!(text.ends_with(wrong), "{text}");
}
