//! Runs that are recorded, played and drawn by the binary.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

mod support;

use std::{fs, os::unix::fs::PermissionsExt as _, process::Output};

use asciicast::{EventKind, Recording};
use support::dsh;
use tempfile::TempDir;

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn the_demonstration_is_recorded_played_and_drawn() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    text(&dsh(folder, &["run", "--agent-terminal-demo", "--record", "casts"]));
    let files: Vec<_> = fs::read_dir(folder.join("casts")).unwrap().map(Result::unwrap).collect();
    let [file] = files.as_slice() else { panic!("{files:?}") };
    assert!(file.file_name().to_string_lossy().ends_with("-pty-1.cast"), "{file:?}");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let file = file.path();
    let path = file.to_str().unwrap();

    let cast = fs::read_to_string(&file).unwrap();
    // Nothing of how the shell tells its status.
    assert!(!cast.contains("133;") && !cast.contains("PROMPT_COMMAND"), "{cast}");
    let recording = Recording::parse(&cast).unwrap();
    assert_eq!((recording.header.rows, recording.header.columns), (40, 160));
    let typed = recording.events.iter().filter_map(|event| match &event.kind {
        EventKind::Input(text) => Some(text.as_str()),
        _ => None,
    });
    assert!(typed.collect::<String>().contains("python3"), "{cast}");

    let played = text(&dsh(folder, &["replay", path, "--speed", "1000"]));
    for part in ["dsh> ", "print(2+2)\r\n", "\n4\r\n"] {
        assert!(played.contains(part), "{part:?} is not in {played:?}");
    }

    let drawn = text(&dsh(folder, &["screenshot", path]));
    assert!(drawn.starts_with("<svg width=\"1364px\" height=\"740px\""), "{drawn}");
    assert!(drawn.contains("print(2+2)"), "{drawn}");
    let output = ["screenshot", path, "--at", "0", "--output", "begin.svg"];
    assert_eq!(text(&dsh(folder, &output)), "");
    let begin = fs::read_to_string(folder.join("begin.svg")).unwrap();
    assert!(begin.ends_with("</svg>\n") && !begin.contains("print(2+2)"), "{begin}");
}

#[test]
fn what_is_no_recording_is_told_before_anything_is_printed() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    fs::write(folder.join("text.cast"), "hello\n").unwrap();
    fs::write(folder.join("two.cast"), "{\"version\":2,\"width\":80,\"height\":24}\n").unwrap();
    for (arguments, expected) in [
        (&["replay", "none.cast"][..], "cannot read the recording none.cast"),
        (&["replay", "text.cast"], "text.cast: it is no asciicast"),
        (&["screenshot", "two.cast"], "two.cast: it is an asciicast of version 2"),
        (&["screenshot", "text.cast", "--at", "-1"], "give a number from 0"),
        (&["screenshot", "text.cast", "--at", "soon"], "give a number of seconds"),
        (&["replay", "text.cast", "--speed", "0"], "give a number from 0.01 to 1000"),
        (&["run", "--resume", "x", "--record", "casts"], "cannot be used with"),
    ] {
        let output = dsh(folder, arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(output.stdout.is_empty() && errors.contains(expected), "{arguments:?}: {errors}");
    }
}
