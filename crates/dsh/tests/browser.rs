//! A person's browser, watching the binary at work: headless Chromium, an agent over HTTP, a real shell.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

mod support;

use std::{path::Path, process::Command};

use crate::support::{Listening, TAG, files, kill};

/// What must stand nowhere afterwards.
const SECRET: &str = "correct horse battery";

/// Runs a script of `tests/browser` against `dsh web`, then ends that: nothing is left, and all it
/// wrote is returned.
async fn script(name: &str) -> Vec<String> {
    let mut web = Listening::start(&["web", "--no-home-patch"], |_| {});
    let address = format!("http://{}", web.told("http://"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser").join(name);
    let output = Command::new("node")
        .arg(script)
        .args([&address, SECRET])
        .current_dir(web.home.path())
        .env_remove(TAG)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.ends_with("ok\n"), "{text}\n{errors}");
    kill("TERM", web.child.id());
    assert_eq!(web.ended().await, Some(143), "ended by SIGTERM");
    let written = files(&web.home.path().join("home")).into_iter().map(|(_, text)| text);
    written.chain([web.rest().join("\n")]).collect()
}

#[tokio::test]
#[ignore = "needs chromium, node, and the npm packages playwright-core and @modelcontextprotocol/sdk"]
async fn a_person_watches_and_steps_in() {
    script("steps_in.mjs").await;
}

#[tokio::test]
#[ignore = "needs chromium, node, and the npm packages playwright-core and @modelcontextprotocol/sdk"]
async fn a_password_that_a_person_enters_is_told_nowhere() {
    let written = script("secret.mjs").await;
    assert!(written.iter().any(|it| it.contains("Password: ")), "the log has what was shown");
    for text in written {
        assert!(!text.contains(SECRET), "{text}");
    }
}

#[tokio::test]
#[ignore = "needs chromium, node, and the npm packages playwright-core and @modelcontextprotocol/sdk"]
async fn what_programs_print_is_nothing_but_text() {
    script("untrusted.mjs").await;
}

#[tokio::test]
#[ignore = "needs chromium, node, and the npm packages playwright-core and @modelcontextprotocol/sdk"]
async fn the_keyboard_and_a_narrow_window_suffice() {
    script("keyboard.mjs").await;
}

#[tokio::test]
#[ignore = "needs chromium, node, and the npm packages playwright-core and @modelcontextprotocol/sdk"]
async fn jobs_runs_floods_and_a_lost_connection() {
    script("runs_on.mjs").await;
}

#[tokio::test]
#[ignore = "needs chromium, node, and the npm packages playwright-core and @modelcontextprotocol/sdk"]
async fn the_picture_of_the_readme() {
    script("picture.mjs").await;
}
