//! Recordings of remote sessions.

use std::fs;

use crate::support::bench;

#[test]
fn a_recording_has_what_was_shown_and_nothing_that_proves_the_far_side() {
    bench(
        |far| far.row("record: true"),
        async |bench| {
            let shell = bench.open().await;
            shell.run("echo recorded", 0).await;
            assert!(shell.close().await.unwrap());
            let folder = bench.host.home().join("recordings");
            let files: Vec<_> =
                fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
            let [path] = files.as_slice() else { panic!("{files:?}") };
            let text = fs::read_to_string(path).unwrap();
            assert!(text.contains("recorded") && text.contains("dsh> "), "{text}");
            assert!(!text.contains("133;") && !text.contains("dsh="), "{text}");
        },
    );
}
