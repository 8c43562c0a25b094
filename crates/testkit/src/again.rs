//! A test of the running binary once more, by itself: in another place, or as another user.

#![expect(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "a helper of a test fails it as the test would"
)]

use std::{
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

/// A copy of the running tests: where they were built another user may not come.
pub fn copy_of_tests(folder: &Path) -> PathBuf {
    let tests = folder.join("tests");
    fs::copy(env::current_exe().unwrap(), &tests).unwrap();
    tests
}

/// The test of this name as an ordinary user, from `folder`, which everybody may read then. Needs root.
pub fn as_an_ordinary_user(folder: &Path, name: &str) -> Command {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"])
        .arg(copy_of_tests(folder))
        .args(["--exact", name, "--nocapture"]);
    command
}

/// Runs a command that plays one test, which has to pass.
#[track_caller]
pub fn assert_passes(command: &mut Command) {
    let output = command.current_dir("/").output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && report.contains("1 passed"), "{report}\n{errors}");
}
