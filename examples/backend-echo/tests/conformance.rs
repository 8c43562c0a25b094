//! The backend keeps what every backend promises.

use testkit::conformance::{Profile, check};

// Only what is mentioned is linked.
use backend_echo as _;

#[tokio::test(flavor = "multi_thread")]
async fn the_echo_conforms() {
    let report = check(Profile {
        wait: Some("wait"),
        exit: Some(("exit 3", 3)),
        ..Profile::new("echo", "- name: terminal-echo", |word| format!(" {word}"))
    })
    .await;
    report.assert();
    // What an echo has not is not claimed to be checked.
    assert!(report.skipped.iter().any(|(_, field)| *field == "signals"), "{report}");
}
