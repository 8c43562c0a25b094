//! A person's browser, watching the binary at work: headless Chromium, an agent over HTTP, a real shell.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

mod support;

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use session_log::read_log;
use tempfile::TempDir;

use crate::support::{TAG, kill, nothing_left};

/// What must stand nowhere afterwards.
const SECRET: &str = "correct horse battery";

/// `dsh web` in a folder of its own.
struct Web {
    child: Child,
    address: String,
    said: BufReader<std::process::ChildStderr>,
    home: TempDir,
    tag: String,
}

impl Web {
    fn start() -> Self {
        let home = TempDir::new().unwrap();
        let tag = home.path().display().to_string();
        let mut child = Command::new(env!("CARGO_BIN_EXE_dsh"))
            .args(["web", "--listen", "127.0.0.1:0", "--no-home-patch"])
            .current_dir(home.path())
            .env("DSH_HOME", home.path().join("home"))
            .env(TAG, &tag)
            .env_remove("DSH_LOG")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("#token=") {
            line.clear();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "it ended without an address");
        }
        let address = line.split_whitespace().find(|it| it.contains("#token=")).unwrap().to_owned();
        Self { child, address, said, home, tag }
    }

    /// Runs a script of `tests/browser` against it, then ends it: nothing is left, and all it wrote is returned.
    async fn script(mut self, name: &str) -> Vec<String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser").join(name);
        let output = Command::new("node")
            .arg(script)
            .args([&self.address, SECRET])
            .current_dir(self.home.path())
            .env_remove(TAG)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.ends_with("ok\n"), "{text}\n{errors}");
        kill("TERM", self.child.id());
        assert_eq!(self.child.wait().unwrap().code(), Some(143), "ended by SIGTERM");
        nothing_left(&self.tag).await;
        let mut written = files(&self.home.path().join("home"));
        written.push(std::io::read_to_string(&mut self.said).unwrap());
        written
    }
}

impl Drop for Web {
    /// A test that fails leaves no host.
    fn drop(&mut self) {
        if self.child.try_wait().unwrap().is_none() {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }
}

/// What is in every file below `folder`; logs decompressed.
fn files(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else if path.extension().is_some_and(|it| it == "zstd") {
            all.push(format!("{:?}", read_log(&path).unwrap()));
        } else {
            all.push(String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned());
        }
    }
    all
}

#[tokio::test]
#[ignore = "needs chromium, node, and the npm packages playwright-core and @modelcontextprotocol/sdk"]
async fn a_person_watches_and_steps_in() {
    Web::start().script("steps_in.mjs").await;
}

#[tokio::test]
#[ignore = "needs chromium, node, and the npm packages playwright-core and @modelcontextprotocol/sdk"]
async fn a_password_that_a_person_enters_is_told_nowhere() {
    let written = Web::start().script("secret.mjs").await;
    assert!(written.iter().any(|it| it.contains("Password: ")), "the log has what was shown");
    for text in written {
        assert!(!text.contains(SECRET), "{text}");
    }
}

#[tokio::test]
#[ignore = "needs chromium, node, and the npm packages playwright-core and @modelcontextprotocol/sdk"]
async fn what_programs_print_is_nothing_but_text() {
    Web::start().script("untrusted.mjs").await;
}

#[tokio::test]
#[ignore = "needs chromium, node, and the npm packages playwright-core and @modelcontextprotocol/sdk"]
async fn the_keyboard_and_a_narrow_window_suffice() {
    Web::start().script("keyboard.mjs").await;
}

#[tokio::test]
#[ignore = "needs chromium, node, and the npm packages playwright-core and @modelcontextprotocol/sdk"]
async fn jobs_runs_floods_and_a_lost_connection() {
    Web::start().script("runs_on.mjs").await;
}

#[tokio::test]
#[ignore = "needs chromium, node, and the npm packages playwright-core and @modelcontextprotocol/sdk"]
async fn the_picture_of_the_readme() {
    Web::start().script("picture.mjs").await;
}
