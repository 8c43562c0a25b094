//! The backend keeps what every backend promises.

use testkit::conformance::{Profile, check};

// Only what is mentioned is linked.
use terminal_bash as _;

#[tokio::test(flavor = "multi_thread")]
async fn the_shell_backend_conforms() {
    let rows = "- name: terminal-bash\n  config: \
                { maxReadBytes: 2000, maxInputBytes: 5000, disposeGraceMs: 300 }";
    let report = check(Profile {
        max_read_bytes: Some(2_000),
        max_input_bytes: Some(5_000),
        ..Profile::bash("shell", rows)
    })
    .await;
    report.assert();
    let skipped: Vec<&str> = report.skipped.iter().map(|(_, field)| *field).collect();
    assert_eq!(skipped, ["stubborn"], "{report}");
}
