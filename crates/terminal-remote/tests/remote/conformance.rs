//! The backend keeps what every backend promises.

use testkit::{
    conformance::{Profile, check},
    leaks::alone_unguarded,
};

use crate::support::FarMachine;

/// What a far bash has and does, without the rows.
fn profile(rows: &str) -> Profile {
    Profile {
        say_slowly: Some(|word| format!("sleep 0.7; echo {word}")),
        max_read_bytes: Some(2_000),
        max_input_bytes: Some(5_000),
        ..Profile::bash("remote", rows)
    }
}

pub(crate) const BOUNDS: &str = "maxReadBytes: 2000, maxInputBytes: 5000, handoffGraceMs: 200, \
                                 idleSilenceMs: 5000";

#[test]
fn the_remote_backend_conforms() {
    alone_unguarded(async {
        let far = FarMachine::start();
        let rows = far.row(BOUNDS).replacen("idleSilenceMs: 3000, ", "", 1);
        conforms(&rows).await;
        far.idle().await;
    });
}

/// Every promise is kept, and none is skipped that a far shell can be asked for.
pub(crate) async fn conforms(rows: &str) {
    let report = check(profile(rows)).await;
    report.assert();
    let skipped: Vec<&str> = report.skipped.iter().map(|(_, field)| *field).collect();
    assert_eq!(skipped, ["stubborn"], "{report}");
}
