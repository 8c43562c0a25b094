//! Exit statuses and messages of the binary.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

mod support;

use std::{
    collections::BTreeSet,
    fs,
    process::{Command, Output},
};

use serde_json::Value;
use support::{Server, dsh, processes};
use tempfile::TempDir;

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
        (vec!["run"], vec!["error: nothing to run", "hint: ", "`dsh run --agent-terminal-demo`"]),
        (vec!["run", "  "], vec!["error: the task is empty", "hint: "]),
        (vec!["run", "tidy up"], vec!["error: there is no key for ", "DEEPSEEK_API_KEY"]),
        (vec!["run", "x", "--base-url", "nowhere"], vec!["baseUrl", "nowhere"]),
        (vec!["run", "x", "--agent-terminal-demo"], vec!["cannot be used with"]),
        (vec!["run", "--resume", "x", "--model", "m"], vec!["cannot be used with"]),
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
    assert!(text.contains("Every step gave what it should.\n\n* logged as session "), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");

    // The same from the log.
    let id = text.rsplit_once("--resume ").unwrap().1.split_once('`').unwrap().0.to_owned();
    let again = dsh(folder.path(), &["run", "--resume", &id]);
    assert_eq!(again.status.code(), Some(0));
    let again = String::from_utf8(again.stdout).unwrap();
    let (played, _) = text.rsplit_once("* logged as session").unwrap();
    let title = "Show what one interactive terminal session can do.\n\n";
    let (header, replayed) = again.split_once(title).unwrap();
    assert_eq!(replayed, played);
    assert_eq!(header, format!("* session {id} in {}\n", folder.path().display()));
    let events = dsh(folder.path(), &["run", "--resume", &id, "--json"]);
    let events = json_lines(&events.stdout);
    assert_eq!(events[0]["type"], "session");
    assert_eq!(events.last().unwrap()["type"], "agent/end");
}

/// Runs the demonstration in a terminal of 60 columns and copies what it shows.
const IN_A_TERMINAL: &str = "
import fcntl, os, pty, struct, sys, termios
child, terminal = pty.fork()
if child == 0:
    os.environ['TERM'] = 'xterm'
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 60, 0, 0))
    os.execv(sys.argv[1], sys.argv[1:])
while True:
    try:
        shown = os.read(terminal, 65536)
    except OSError:
        break
    os.write(1, shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
";

#[test]
fn in_a_terminal_the_demonstration_has_colours_and_a_spinner() {
    let folder = TempDir::new().unwrap();
    let run = |no_color: &str| {
        let output = Command::new("python3")
            .args(["-c", IN_A_TERMINAL, env!("CARGO_BIN_EXE_dsh"), "run", "--agent-terminal-demo"])
            .env("DSH_HOME", folder.path())
            .env("NO_COLOR", no_color)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{text}");
        text
    };
    let text = run("");
    assert!(text.contains("\u{1b}[2m[exit: 1]\u{1b}[0m"), "{text}");
    assert!(text.contains("\r\u{1b}[2K\u{1b}[2m⠋ 0 s · "), "{text}");
    assert!(!run("1").contains("\u{1b}[2m"));
}

fn json_lines(text: &[u8]) -> Vec<Value> {
    let lines = std::str::from_utf8(text).unwrap().lines();
    lines.map(|it| serde_json::from_str(it).unwrap()).collect()
}

#[test]
fn events_are_the_lines_of_the_log() {
    let folder = TempDir::new().unwrap();
    let shown = dsh(folder.path(), &["run", "--agent-terminal-demo", "--json"]);
    assert_eq!((shown.status.code(), shown.stderr.len()), (Some(0), 0));
    let lines = json_lines(&shown.stdout);
    let id = lines[0]["id"].as_str().unwrap();
    let again = dsh(folder.path(), &["run", "--resume", id, "--json"]);
    assert_eq!(String::from_utf8(again.stdout), String::from_utf8(shown.stdout));
    let types: BTreeSet<&str> = lines.iter().map(|it| it["type"].as_str().unwrap()).collect();
    let expected =
        ["agent/end", "assistant/message", "session", "tool/call", "tool/result", "user/message"];
    assert_eq!(types.into_iter().collect::<Vec<_>>(), expected);
    let seqs: Vec<_> = lines[1..].iter().map(|it| it["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..lines.len() as u64).collect::<Vec<_>>());
}

#[test]
fn what_cannot_be_resumed_is_said() {
    let folder = TempDir::new().unwrap();
    for id in ["nobody", "../../etc", ""] {
        let parts = [&format!("error: there is no log of a session {id:?}"), "hint: "];
        refused(&dsh(folder.path(), &["run", "--resume", id]), &parts);
    }
}

#[test]
fn the_demonstration_runs_beside_the_rows_of_front_ends() {
    let folder = TempDir::new().unwrap();
    let rows = "- name: mcp\n- name: web\n- name: agent-loop\n\
                - name: jobs\n- name: tool-jobs\n\
                - name: terminal\n- name: terminal-bash\n- name: tool-terminal\n";
    fs::write(folder.path().join("c.yml"), rows).unwrap();
    let shown = dsh(folder.path(), &["run", "--agent-terminal-demo", "--composition", "c.yml"]);
    let errors = String::from_utf8_lossy(&shown.stderr);
    assert_eq!((shown.status.code(), &*errors), (Some(0), ""));
}

#[test]
fn a_run_without_a_log_does_not_name_one() {
    let folder = TempDir::new().unwrap();
    let rows = "- name: jobs\n- name: tool-jobs\n\
                - name: terminal\n- name: terminal-bash\n- name: tool-terminal\n\
                - name: session-log\n  disabled: true\n";
    fs::write(folder.path().join("c.yml"), rows).unwrap();
    let shown = dsh(folder.path(), &["run", "--agent-terminal-demo", "--composition", "c.yml"]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert_eq!(shown.status.code(), Some(0), "{text}");
    assert!(!text.contains("logged as") && !text.contains("--resume"), "{text}");
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
    assert!(text.contains("> terminal_send · Terminal pty-1 · cd / && export"), "{text}");
    assert!(!text.contains("hello from"), "{text}");
    let errors = String::from_utf8(shown.stderr).unwrap();
    let wrong =
        "error: step 2 of the script, terminal_send: expected the line \"[exit: 0]\", got \"cd / ";
    assert!(errors.starts_with(wrong), "{errors}");
}

/// A composition with a script for a model.
fn scripted(steps: &str) -> String {
    format!(
        "- name: terminal\n- name: terminal-bash\n- name: tool-terminal\n\
         - name: model-script\n  config:\n    steps:\n{steps}"
    )
}

#[test]
fn a_task_runs_with_the_model_of_the_composition() {
    let folder = TempDir::new().unwrap();
    let steps = "    - say: I look.\n      calls:\n\
                 \x20     - { tool: shell, expect: [{ text: 'the tools are terminal_close' }] }\n\
                 \x20     - { tool: terminal_open, arguments: '{broken', expect: [{ text: no JSON }] }\n\
                 \x20     - { tool: terminal_open, arguments: { type: shell } }\n\
                 \x20     - { tool: terminal_send, arguments: { sessionId: pty-1, text: 'echo $((6*7))' }, expect: [{ line: '42' }] }\n\
                 \x20   - say: It is 42.\n";
    fs::write(folder.path().join("c.yml"), scripted(steps)).unwrap();
    let shown = dsh(folder.path(), &["run", "What is it?", "--composition", "c.yml"]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert_eq!(shown.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&shown.stderr));
    assert!(text.contains("  42\n  dsh> \n  [exit: 0]\n"), "{text}");
    assert!(text.contains("\n\nIt is 42.\n\n* logged as session "), "{text}");
    // Flags are for another model.
    let arguments = ["run", "x", "--model", "m", "--composition", "c.yml"];
    refused(&dsh(folder.path(), &arguments), &["command line: ", "model-openai"]);
}

/// The control group of version 2 that a process is in.
fn group(process: &str) -> Option<String> {
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap();
    groups.lines().find_map(|it| it.strip_prefix("0::")).map(str::to_owned)
}

#[tokio::test]
async fn the_doctor_says_what_works_here() {
    let folder = TempDir::new().unwrap();
    let output = dsh(folder.path(), &["doctor", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(i32::from(report["works"] != true)), "{report:#}");
    let findings = report["findings"].as_array().unwrap();
    let about = |topic: &str| {
        let of_topic = findings.iter().find(|it| it["topic"] == topic);
        of_topic.unwrap_or_else(|| panic!("nothing about {topic}: {report:#}"))
    };
    for topic in ["terminals", "supervisor", "orphans", "shells", "home"] {
        assert_eq!(about(topic)["grade"], "good", "{topic}: {report:#}");
    }
    let sandbox = about("sandbox")["found"].as_str().unwrap();
    let by_default = "without --sandbox sessions have every right of the user (danger-full-access)";
    assert!(sandbox.contains(by_default), "{sandbox}");
    // A session is where it says.
    let mut server = Server::start(&[]);
    server.open();
    let shells = processes(&server.tag).into_iter().filter(|it| it.command == "bash");
    let apart: Vec<_> = shells.map(|it| group(&it.pid.to_string()) != group("self")).collect();
    assert_eq!(apart, [about("control group")["grade"] == "good"], "{report:#}");
    server.write = None;
    assert_eq!(server.ended().await, Some(0));
    for finding in findings {
        assert_eq!(finding["advice"].is_string(), finding["grade"] != "good", "{finding}");
    }
    let output = dsh(folder.path(), &["doctor"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Sessions work here"), "{text}");
    for finding in findings {
        assert!(text.contains(finding["topic"].as_str().unwrap()), "{text}");
    }

    // A home that cannot be made is told, and does not keep sessions from working.
    fs::write(folder.path().join("file"), "").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_dsh"))
        .arg("doctor")
        .env("DSH_HOME", folder.path().join("file/below"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8(output.stdout).unwrap().contains("set DSH_HOME to a folder"));
}
