//! What cannot be confined here is refused, with the reason. What can be is shown beside Landlock, by the
//! tests of its crate.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

use std::{io::Write as _, process::Command};

use sandbox_bubblewrap::Bubblewrap;
use sandbox_policy::{Network, SandboxMode, SandboxProvider as _};

/// Set in the run of a test behind a command that takes something away.
const INSIDE: &str = "TEST_WITHOUT_BWRAP";

/// What the provider says where the command `wrapper` has taken something away; empty in that run,
/// which prints it.
fn refusal_behind(wrapper: &[&str], name: &str) -> String {
    if std::env::var_os(INSIDE).is_some() {
        let refusal = Bubblewrap.supports(SandboxMode::ReadOnly, Network::Full).unwrap_err();
        let mut output = std::io::stdout();
        writeln!(output, "refused: {refusal}").unwrap();
        return String::new();
    }
    let output = Command::new(wrapper[0])
        .args(&wrapper[1..])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--include-ignored", "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    text.lines().find_map(|it| it.split_once("refused: ")).unwrap().1.to_owned()
}

#[test]
fn without_bwrap() {
    let refusal = refusal_behind(&["env", "PATH=/no/such/folder"], "without_bwrap");
    if !refusal.is_empty() {
        assert_eq!(refusal, "there is no program `bwrap` (install bubblewrap)");
    }
}

#[test]
#[ignore = "needs bwrap"]
fn where_no_namespace_may_be_made() {
    let script = "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$@\"";
    let wrapper = ["unshare", "--user", "--map-root-user", "bash", "-euc", script, "bash"];
    let refusal = refusal_behind(&wrapper, "where_no_namespace_may_be_made");
    if !refusal.is_empty() {
        assert!(refusal.starts_with("no sandbox can be made here (bwrap: "), "{refusal}");
    }
}

#[test]
fn a_part_of_the_network() {
    let refusal = Bubblewrap.supports(SandboxMode::ReadOnly, Network::NoTcp).unwrap_err();
    assert!(refusal.to_string().contains("use `network: none`"), "{refusal}");
}
