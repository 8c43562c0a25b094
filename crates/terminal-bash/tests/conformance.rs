//! The backend keeps what every backend promises.

use testkit::conformance::{Profile, check};

// Only what is mentioned is linked.
use terminal_bash as _;

#[tokio::test(flavor = "multi_thread")]
async fn the_shell_backend_conforms() {
    let rows = "- name: terminal-bash\n  config: \
                { maxReadBytes: 2000, maxInputBytes: 5000, disposeGraceMs: 300 }";
    let report = check(Profile {
        say_slowly: Some(|word| format!("sleep 0.3; echo {word}")),
        say_later: Some(|word| format!("(sleep 0.3; echo {word}) &")),
        count: Some(|last| format!("seq {last}")),
        wait: Some("sleep 1000"),
        exit: Some(("exit 3", 3)),
        fail: Some(("(exit 4)", 4)),
        directory: Some("pwd"),
        leave: Some(|word| {
            format!("nohup setsid sh -c 'trap : TERM HUP; sleep 1000; : {word}' >/dev/null 2>&1 &")
        }),
        process: true,
        signals: true,
        search: true,
        max_read_bytes: Some(2_000),
        max_input_bytes: Some(5_000),
        ..Profile::new("shell", rows, |word| format!("echo {word}"))
    })
    .await;
    report.assert();
    let skipped: Vec<&str> = report.skipped.iter().map(|(_, field)| *field).collect();
    assert_eq!(skipped, ["stubborn"], "{report}");
}
