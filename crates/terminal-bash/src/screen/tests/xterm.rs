//! The same recordings beside another terminal still: the engine of xterm.js, without a browser.
//!
//! It keeps no line together that a program wrote over from its beginning, so of the recordings in which
//! that happens only the visible rows are compared.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::super::Screen;
use super::recorded::{RECORDINGS, lines};
use super::vttest::{self, Page};
use super::{config, text};

/// What is shown of some bytes.
struct Show<'a> {
    bytes: &'a [u8],
    rows: u16,
    columns: u16,
}

/// What the engine shows.
struct Shown {
    /// All lines.
    lines: Vec<String>,
    /// The visible rows.
    rows: Vec<String>,
}

/// Shows all of them, each in a terminal of its own.
fn xterm(shows: &[Show<'_>]) -> Vec<Shown> {
    let modules = std::env::var_os("XTERM_NODE_MODULES").unwrap_or_default();
    let folder = tempfile::tempdir().unwrap();
    let mut input = Vec::new();
    for (number, Show { bytes, rows, columns }) in shows.iter().enumerate() {
        let file = folder.path().join(number.to_string());
        std::fs::write(&file, bytes).unwrap();
        input.push(json!({ "file": file, "rows": rows, "columns": columns }));
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/screen/tests/xterm.cjs");
    let mut node = Command::new("node")
        .arg(script)
        .arg(modules)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It reads all of it before it writes anything.
    node.stdin.take().unwrap().write_all(Value::from(input).to_string().as_bytes()).unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let texts = |it: &Value| -> Vec<String> {
        let texts: Vec<_> =
            it.as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect();
        lines(&texts.join("\n"))
    };
    let answer = answer.as_array().unwrap();
    assert_eq!(answer.len(), shows.len());
    let answer = answer.iter();
    answer.map(|it| Shown { lines: texts(&it["lines"]), rows: texts(&it["rows"]) }).collect()
}

fn fed(show: &Show<'_>) -> Screen {
    let mut screen = Screen::new(config(show.rows, show.columns));
    screen.feed(show.bytes, &mut Vec::new());
    screen
}

fn rows(screen: &Screen) -> Vec<String> {
    lines(&screen.shown().rows.join("\n"))
}

#[test]
#[ignore = "needs node and xterm's headless engine (npm `@xterm/headless`), in the folder XTERM_NODE_MODULES"]
fn xterm_shows_the_same_lines() {
    let show = |it: &'static super::recorded::Recording| Show {
        bytes: it.bytes,
        rows: it.rows,
        columns: it.columns,
    };
    let shows: Vec<_> = RECORDINGS.iter().map(show).collect();
    for ((recording, show), theirs) in RECORDINGS.iter().zip(&shows).zip(xterm(&shows)) {
        let screen = fed(show);
        let name = format!("{}-{}", recording.name, recording.columns);
        assert_eq!(rows(&screen), theirs.rows, "{name}");
        if !matches!(recording.name, "edited" | "fuzzed") {
            assert_eq!(lines(&text(&screen)), theirs.lines, "{name}");
        }
    }
}

#[test]
#[ignore = "needs node and xterm's headless engine (npm `@xterm/headless`), in the folder XTERM_NODE_MODULES"]
fn xterm_shows_the_same_full_screens() {
    let shows: Vec<_> = RECORDINGS
        .iter()
        .flat_map(|recording| {
            let (rows, columns) = (recording.rows, recording.columns);
            let shows = recording.full_screens().into_iter();
            shows.map(move |bytes| Show { bytes, rows, columns })
        })
        .collect();
    assert!(shows.len() > 12, "{}", shows.len());
    for (show, theirs) in shows.iter().zip(xterm(&shows)) {
        assert_eq!(rows(&fed(show)), theirs.rows, "{} bytes", show.bytes.len());
    }
}

#[test]
#[ignore = "needs node and xterm's headless engine (npm `@xterm/headless`), in the folder XTERM_NODE_MODULES"]
fn xterm_shows_the_same_pages_of_vttest() {
    let pages = vttest::pages();
    let shows: Vec<_> =
        pages.iter().map(|it| Show { bytes: &it.bytes, rows: 24, columns: 80 }).collect();
    let mut different = Vec::new();
    for ((page, show), theirs) in pages.iter().zip(&shows).zip(xterm(&shows)) {
        let Page { name, number, alternate, .. } = page;
        let ours = lines(&vttest::as_utf8(&fed(show).shown().rows));
        // The national set of the United Kingdom has its pound sign in the place of another one.
        let theirs: Vec<_> = theirs.rows.iter().map(|it| it.replace("!\"£$", "!\"#$")).collect();
        if ours != theirs && !vttest::differs_by_right(&theirs, *alternate) {
            different.push(format!(
                "{name}, page {number}, alternate {alternate}:\n{ours:#?}\n{theirs:#?}"
            ));
        }
    }
    assert!(different.is_empty(), "{}: {}", different.len(), different.join("\n"));
}
