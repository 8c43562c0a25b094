//! Overlays, `--sandbox`, `--dump-config` and `dsh check`, through the binary.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

mod support;

use std::{fs, path::Path, process::Output};

use serde_json::json;
use support::{Link, Server, dsh, dsh_at, hello, processes};
use tempfile::TempDir;

#[track_caller]
fn printed(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*errors), (Some(0), ""));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The lines of the row `name` in a dump: its comment, and all up to the next row.
fn row<'d>(dump: &'d str, name: &str) -> &'d str {
    let start = format!("- name: {name}\n");
    let found = dump.split_inclusive("\n\n").find(|it| it.contains(&start));
    found.unwrap_or_else(|| panic!("{name}: {dump}"))
}

#[test]
fn every_front_end_shows_the_composition_with_its_defaults() {
    let folder = TempDir::new().unwrap();
    for command in ["mcp", "run", "web"] {
        let dump = printed(&dsh(folder.path(), &[command, "--dump-config"]));
        let bash = row(&dump, "terminal-bash");
        assert!(bash.starts_with("# compositions/terminal.yml (built in):"), "{bash}");
        assert!(bash.contains("\n    idleSilenceMs: 3000\n"), "{bash}");
        assert!(row(&dump, "tool-terminal").contains("maxResultBytes: 262144"), "{dump}");
        assert!(row(&dump, "agents").starts_with("# built in\n"), "{dump}");
    }
    let mcp = printed(&dsh(folder.path(), &["mcp", "--structured", "--dump-config"]));
    assert!(row(&mcp, "mcp").contains("structuredContent: true"), "{mcp}");
    let run = ["run", "--agent-terminal-demo", "--dump-config"];
    assert!(row(&printed(&dsh(folder.path(), &run)), "model-script").contains("steps:"));
    // What was printed is a composition, and the same one.
    fs::write(folder.path().join("again.yml"), &mcp).unwrap();
    let again =
        printed(&dsh(folder.path(), &["mcp", "--composition", "again.yml", "--dump-config"]));
    let bare =
        |text: &str| text.lines().filter(|it| !it.starts_with('#')).collect::<Vec<_>>().join("\n");
    assert_eq!(bare(&again), bare(&mcp));
    assert!(!folder.path().join("home").exists(), "nothing was started");
}

#[test]
fn overlays_of_the_home_come_before_those_of_the_command_line() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    fs::create_dir(folder.path().join("home")).unwrap();
    // Some of them are about rows that only other commands have.
    write(
        "home/patch.yml",
        "- id: terminal-bash\n  config: { rows: 10, cols: 90 }\n- id: mcp\n  disabled: true\n\
         - id: agent-loop\n  config: {}\n- id: model-openai\n  config: { model: small }\n",
    );
    write("one.yml", "- id: terminal-bash\n  config: { rows: 11 }\n");
    write(
        "two.yml",
        "- insert: after\n  id: terminal-bash\n  row: { name: terminal-bash, id: wide, config: { backendType: wide } }\n",
    );
    let dump = |arguments: &[&str]| {
        let all: Vec<&str> = ["mcp", "--dump-config"].iter().chain(arguments).copied().collect();
        printed(&dsh(folder.path(), &all))
    };
    let home = dump(&[]);
    assert!(row(&home, "terminal-bash").contains("rows: 10\n    cols: 90"), "{home}");
    assert!(row(&home, "terminal-bash").lines().next().unwrap().contains("home/patch.yml:1"));
    assert!(!row(&home, "mcp").contains("disabled"), "it was asked for: {home}");
    assert!(!home.contains("model-openai"), "{home}");
    let run = printed(&dsh(folder.path(), &["run", "--dump-config", "x"]));
    assert!(row(&run, "model-openai").contains("model: small"), "{run}");
    let both = dump(&["--patch", "one.yml", "--patch", "two.yml"]);
    assert!(row(&both, "terminal-bash").contains("rows: 11\n    cols: 160"), "{both}");
    assert!(row(&both, "terminal-bash\n  id: wide").starts_with("# two.yml:1\n"), "{both}");
    let without = dump(&["--no-home-patch"]);
    assert!(row(&without, "terminal-bash").contains("rows: 40\n    cols: 160"), "{without}");
}

#[test]
fn what_is_wrong_with_an_overlay_is_said_with_its_line() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write(
        "p.yml",
        "- id: terminal-bsh\n  disabled: true\n- id: terminal-bash\n  config: { rows: 0 }\n",
    );
    for command in
        [&["mcp"][..], &["web"], &["run", "--agent-terminal-demo"], &["mcp", "--dump-config"]]
    {
        let arguments: Vec<&str> = command.iter().chain(&["--patch", "p.yml"]).copied().collect();
        let errors = refused(&dsh(folder.path(), &arguments));
        assert!(errors.contains("p.yml:1: no row has the id `terminal-bsh`"), "{errors}");
        assert!(errors.contains("did you mean `terminal-bash`?"), "{errors}");
        assert!(errors.contains("p.yml:3: row `terminal-bash`: config.rows"), "{errors}");
    }
    let missing = refused(&dsh(folder.path(), &["mcp", "--patch", "no.yml"]));
    assert!(missing.contains("cannot read the overlay no.yml: No such file"), "{missing}");
    write("p.yml", "id: x\n");
    let shape = refused(&dsh(folder.path(), &["mcp", "--patch", "p.yml"]));
    assert!(shape.contains("p.yml:1: an overlay is a list of changes"), "{shape}");
}

#[test]
fn a_check_says_all_that_is_wrong_and_starts_nothing() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("good.yml", "- name: terminal\n- name: terminal-bash\n- name: web\n");
    let good = printed(&dsh(folder.path(), &["check", "good.yml"]));
    assert!(good.starts_with("good.yml: nothing wrong; rows: agents, "), "{good}");
    // Rows of front ends are checked too, though a run leaves those of the others idle.
    write(
        "bad.yml",
        "- name: terminl\n- name: mcp\n  config: { structured: 1 }\n\
         - name: agent-loop\n  config: { maxHistoryBytes: -1 }\n- name: tool-terminal\n",
    );
    let bad = refused(&dsh(folder.path(), &["check", "bad.yml"]));
    for part in [
        "bad.yml:1: no plugin is named `terminl`",
        "bad.yml:2: row `mcp`: config.structured: ",
        "bad.yml:4: row `agent-loop`: config.maxHistoryBytes: ",
        "bad.yml:6: row `tool-terminal` needs service `terminals`",
    ] {
        assert_eq!(bad.matches(part).count(), 1, "{part}\n{bad}");
    }
    assert!(!folder.path().join("home").exists());
}

/// What only the start of the rows, or of a session, would find out otherwise.
#[test]
fn a_check_finds_what_rows_do_to_each_other_and_what_is_not_on_this_machine() {
    let folder = TempDir::new().unwrap();
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    let plain = plain.display();
    let rows = format!(
        "- name: terminal
- name: terminal-bash
- name: terminal-bash
  id: second
  config: {{ shellPath: '{plain}' }}
- name: terminal-remote
  config: {{ backendType: shell, argv: [no-such-launcher], controlArgv: ['{plain}', x] }}
- name: sandbox-policy
  config: {{ mode: read-only, writableFolders: [/no/such/folder] }}
- name: sandbox-landlock
  disabled: true
"
    );
    fs::write(folder.path().join("all.yml"), &rows).unwrap();
    let mended = rows.replace(", writableFolders: [/no/such/folder]", "");
    let mended: Vec<&str> = mended.split("- name: terminal-remote").collect();
    let policy = mended[1].split_once("- name: sandbox-policy").unwrap().1;
    let only = format!(
        "- name: terminal\n- name: terminal-bash\n- name: terminal-bash\n  id: second\n- name: sandbox-policy{policy}"
    );
    fs::write(folder.path().join("rows.yml"), only).unwrap();
    for start in [
        &["check"][..],
        &["mcp", "--composition"],
        &["run", "--agent-terminal-demo", "--composition"],
    ] {
        let said = |file: &str| refused(&dsh(folder.path(), &[start, &[file]].concat()));
        let all = said("all.yml");
        for part in [
            &format!("all.yml:3: row `second`: config.shellPath: `{plain}` is not executable"),
            "all.yml:6: row `terminal-remote`: config.argv: there is no program `no-such-launcher`",
            &format!(
                "all.yml:6: row `terminal-remote`: config.controlArgv: `{plain}` is not executable"
            ),
            "all.yml:8: row `sandbox-policy`: config.writableFolders[0]: there is no folder `/no/such/folder`",
        ] {
            assert_eq!(all.matches(part).count(), 1, "{part}\n{all}");
        }
        let between = said("rows.yml");
        for part in [
            "rows.yml:3: row `second`: config.backendType: `shell` is the terminal backend of row \
             `terminal-bash` (rows.yml:2) already",
            "rows.yml:5: row `sandbox-policy`: config.mode: sandbox mode `read-only` needs a \
             sandbox provider, and none is mounted",
        ] {
            assert_eq!(between.matches(part).count(), 1, "{part}\n{between}");
        }
    }
    assert!(!folder.path().join("home").exists());
}

#[test]
fn limits_of_nothing_and_of_more_than_there_is_are_refused() {
    let folder = TempDir::new().unwrap();
    // Of time a system has as much as can be written.
    let all = ["sessions", "memoryMib", "processes", "idleSeconds", "cpuSeconds"];
    for (value, refused_keys) in [("0", &all[..]), ("9007199254740991", &all[..3])] {
        let limits: Vec<String> = all.iter().map(|it| format!("{it}: {value}")).collect();
        let rows = format!(
            "- name: terminal\n- name: terminal-bash\n  config: {{ limits: {{ {} }} }}\n",
            limits.join(", ")
        );
        fs::write(folder.path().join("c.yml"), rows).unwrap();
        let said = refused(&dsh(folder.path(), &["check", "c.yml"]));
        for key in refused_keys {
            let says =
                format!("c.yml:2: row `terminal-bash`: config.limits.{key}: must be from 1 to ");
            assert_eq!(said.matches(&says).count(), 1, "{says}\n{said}");
        }
        assert_eq!(said.matches("must be from").count(), refused_keys.len(), "{said}");
    }
}

#[test]
fn what_is_said_of_files_fits_how_they_were_given() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("own.yml", "- name: terminal\n- name: terminal-bash\n");
    let check = |arguments: &[&str]| dsh(folder.path(), &[&["check"], arguments].concat());
    let missing = refused(&check(&["no.yml"]));
    assert!(missing.contains("cannot read the composition no.yml"), "{missing}");
    assert!(!missing.contains("--composition"), "{missing}");
    // Each front end has other rows to name.
    write(
        "patch.yml",
        "- id: '@deepseek-ai/dsh-terminal-bash'\n  disabled: true\n- id: zzz\n  disabled: true\n",
    );
    let unmatched = refused(&check(&["own.yml", "--patch", "patch.yml"]));
    assert_eq!(unmatched.matches("no row has the id `zzz`").count(), 1, "{unmatched}");
    assert_eq!(unmatched.matches("no row has the id").count(), 2, "{unmatched}");
    assert!(unmatched.contains("hint: did you mean `terminal-bash`?"), "{unmatched}");
    assert!(!unmatched.contains("--no-home-patch"), "{unmatched}");
    write("dsh.yml", "- name: dsh-terminal\n");
    let name = refused(&check(&["dsh.yml"]));
    assert!(name.contains("no plugin is named `dsh-terminal`"), "{name}");
    assert!(name.contains("hint: did you mean `terminal`?"), "{name}");
    let overlay = refused(&check(&["patch.yml"]));
    assert!(overlay.contains("patch.yml:1: this is an overlay"), "{overlay}");
    // One that nobody gave.
    fs::create_dir(folder.path().join("home")).unwrap();
    for (patch, says) in [
        ("- id: zzz\n  disabled: true\n", "home/patch.yml:1: no row has the id `zzz`"),
        ("- id: [\n", "home/patch.yml:1: column 7: the `[` that opens here is never closed"),
    ] {
        write("home/patch.yml", patch);
        for arguments in [&["check", "own.yml"][..], &["mcp", "--composition", "own.yml"]] {
            let said = refused(&dsh(folder.path(), arguments));
            assert!(said.contains(says), "{said}");
            assert!(said.contains("\n  hint: this overlay applies to every run"), "{said}");
            assert!(said.contains("--no-home-patch"), "{said}");
        }
        printed(&check(&["own.yml", "--no-home-patch"]));
    }
}

/// The modes, and what a session in them may write: anything, and in its workspace.
const MODES: [(&str, bool, bool); 3] = [
    ("danger-full-access", true, true),
    ("workspace-write", false, true),
    ("read-only", false, false),
];

/// Any other mode than `mode`.
fn another(mode: &str) -> &'static str {
    if mode == MODES[0].0 { MODES[2].0 } else { MODES[0].0 }
}

#[test]
fn the_flag_for_the_sandbox_beats_files_and_keeps_their_provider() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let rows = "- name: terminal\n- name: terminal-bash\n- name: tool-terminal\n";
    for command in [&["mcp"][..], &["web"], &["run", "--agent-terminal-demo"]] {
        let dump = |more: &[&str]| {
            printed(&dsh(folder.path(), &[command, &["--dump-config"], more].concat()))
        };
        write("c.yml", rows);
        let without = dump(&["--composition", "c.yml"]);
        assert!(!without.contains("- name: sandbox-landlock\n"), "{without}");
        assert!(row(&without, "sandbox-policy").contains("mode: danger-full-access\n"));
        for (mode, ..) in MODES {
            let policy = format!("sandbox-policy\n  config: {{ mode: {}", another(mode));
            write("c.yml", &format!("{rows}- name: {policy}, writableFolders: [/usr] }}\n"));
            write("b.yml", &format!("{rows}- name: sandbox-bubblewrap\n"));
            write("p.yml", &format!("- id: {policy} }}\n"));
            for more in [&[][..], &["--composition", "c.yml"], &["--patch", "p.yml"]] {
                let dump = dump(&[&["--sandbox", mode], more].concat());
                let policy = row(&dump, "sandbox-policy");
                assert!(policy.contains(&format!("mode: {mode}\n")), "{more:?}: {dump}");
                assert_eq!(policy.contains("- /usr\n"), more.contains(&"c.yml"), "{dump}");
                row(&dump, "sandbox-landlock");
            }
            let other = dump(&["--sandbox", mode, "--composition", "b.yml"]);
            assert!(row(&other, "sandbox-policy").contains(&format!("mode: {mode}\n")), "{other}");
            row(&other, "sandbox-bubblewrap");
            assert!(!other.contains("- name: sandbox-landlock\n"), "{other}");
        }
    }
    let wrong = dsh(folder.path(), &["mcp", "--sandbox", "none"]);
    assert_eq!(wrong.status.code(), Some(2));
}

/// What a session may write is asked of the files themselves.
#[track_caller]
fn assert_written(mode: &str, workspace: &Path, outside: &Path) {
    let (_, out, inside) = MODES.into_iter().find(|it| it.0 == mode).unwrap();
    assert_eq!(outside.join("new").exists(), out, "{mode}");
    assert_eq!(workspace.join("inside").exists(), inside, "{mode}");
}

/// Another mode, and temporary folders that are not where the tests have theirs.
fn against(mode: &str, folders: &Path) -> String {
    let (mode, folders) = (another(mode), folders.display());
    format!("sandbox-policy\n  config: {{ mode: {mode}, writableFolders: ['{folders}'] }}\n")
}

/// Plays `dsh mcp --sandbox MODE`, whose composition, if any, is `rows`, below a home that wants another mode.
async fn serve_confined(mode: &str, rows: Option<&str>) {
    let [outside, folders] = [(); 2].map(|()| TempDir::new().unwrap());
    let mut server = Server::connect(Link::Pipes, |command| {
        // Beside the host's own folder, since no confined session may write to that.
        let workspace = command.get_current_dir().unwrap().join("work");
        let home = workspace.with_file_name("home");
        fs::create_dir(&home).unwrap();
        fs::create_dir(&workspace).unwrap();
        let patch = format!("- id: {}", against(mode, folders.path()));
        fs::write(home.join("patch.yml"), patch).unwrap();
        command.args(["--sandbox", mode]).current_dir(&workspace);
        if let Some(rows) = rows {
            fs::write(workspace.join("c.yml"), rows).unwrap();
            command.args(["--composition", "c.yml"]);
        }
    });
    server.request(0, "initialize", &hello());
    let told = server.response(0)["instructions"].to_string();
    assert!(told.contains(&format!("Sandbox mode: {mode} (")), "{told}");
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    server.open();
    let text = format!("echo x > {}/new; echo x > inside", outside.path().display());
    server.call(2, "terminal_send", &json!({ "sessionId": "pty-1", "text": text }));
    assert_written(mode, &server.home.path().join("work"), outside.path());
    let shells = processes(&server.tag).into_iter().filter(|it| it.command == "bash");
    let mounts = |pid: i32| fs::read_link(format!("/proc/{pid}/ns/mnt")).unwrap();
    let own = mounts(server.child.id().cast_signed());
    let apart: Vec<_> = shells.map(|it| mounts(it.pid) != own).collect();
    // Bubblewrap gives a session mounts of its own, Landlock does not.
    assert_eq!(apart, [rows.is_some()], "{mode}");
    server.write = None;
    assert_eq!(server.ended().await, Some(0));
}

#[tokio::test]
async fn a_served_session_is_confined_as_the_flag_says() {
    for (mode, ..) in MODES {
        serve_confined(mode, None).await;
    }
}

#[tokio::test]
#[ignore = "needs bwrap"]
async fn bubblewrap_confines_as_the_flag_says() {
    let rows = "- name: terminal\n- name: terminal-bash\n- name: tool-terminal\n\
                - name: sandbox-bubblewrap\n";
    for (mode, ..) in &MODES[1..] {
        serve_confined(mode, Some(rows)).await;
    }
}

#[test]
fn the_session_of_a_run_is_confined_as_the_flag_says() {
    for (mode, ..) in MODES {
        let [folder, home, outside, folders] = [(); 4].map(|()| TempDir::new().unwrap());
        let rows = format!(
            "- name: terminal\n- name: terminal-bash\n- name: tool-terminal\n- name: {}\
             - name: model-script\n  config:\n    steps:\n\
             \x20   - calls:\n      - {{ tool: terminal_open, arguments: {{ type: shell }} }}\n\
             \x20     - tool: terminal_send\n        arguments:\n          sessionId: pty-1\n\
             \x20         text: 'echo x > {}/new; echo x > inside'\n    - say: I tried.\n",
            against(mode, folders.path()),
            outside.path().display(),
        );
        fs::write(folder.path().join("c.yml"), rows).unwrap();
        let arguments = ["run", "try", "--composition", "c.yml", "--sandbox", mode];
        let shown = printed(&dsh_at(folder.path(), home.path(), &arguments));
        assert!(shown.contains("I tried."), "{shown}");
        assert_written(mode, folder.path(), outside.path());
    }
}
