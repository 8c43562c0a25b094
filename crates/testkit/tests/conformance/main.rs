//! The conformance kit: a backend that keeps every promise passes, and each of many that break one
//! fails by that one.

mod model;

use std::time::Duration;

use testkit::conformance::{Profile, Report, check};

use self::model::Fault;

fn profile(fault: Option<Fault>) -> Profile {
    let fault = fault.map_or("null".to_owned(), |it| format!("{it:?}"));
    let rows = format!("- name: terminal-model\n  config: {{ fault: {fault} }}");
    Profile {
        say_slowly: Some(|word| format!("slow {word}")),
        say_later: Some(|word| format!("later {word}")),
        count: Some(|last| format!("count {last}")),
        wait: Some("wait"),
        exit: Some(("exit 3", 3)),
        fail: Some(("fail 4", 4)),
        directory: Some("cwd"),
        leave: Some(|word| format!("leave {word}")),
        stubborn: Some("stubborn"),
        signals: true,
        search: true,
        max_read_bytes: Some(model::MAX_READ_BYTES),
        max_input_bytes: Some(model::MAX_INPUT_BYTES),
        ..Profile::new("model", &rows, |word| format!("say {word}"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_keeps_every_promise_passes() {
    let report = check(profile(None)).await;
    report.assert();
    assert_eq!(report.skipped, []);
}

/// The promises that a broken backend is said to break are these, and only these.
async fn breaks(fault: Fault, promises: &[&str]) -> Report {
    let report = check(profile(Some(fault))).await;
    if fault == Fault::LeavesProcesses {
        model::end_what_was_left();
    }
    let broken: Vec<&str> = report.broken.iter().map(|(promise, _)| *promise).collect();
    assert_eq!(broken, promises, "{fault:?}\n{report}");
    report
}

macro_rules! broken {
    ($($test:ident: $fault:ident => [$($promise:literal),+ $(,)?],)+) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $test() {
            breaks(Fault::$fault, &[$($promise),+]).await;
        }
    )+};
}

broken! {
    an_outcome_that_grows: SettlesAnew => [
        "send: it settles once, with one answer for everybody",
        "send: later output is the next send's, never the settled one's",
    ],
    a_viewport_without_what_a_job_took: JobsEatOutput => [
        "send: its viewport is all of its output, whoever followed it meanwhile",
    ],
    a_cancelled_send_that_keeps_the_slot: CancelledKeepsSlot => [
        "send: one is live at a time, and the next may start when it has settled",
        "cancel: it interrupts, settles, and leaves the session usable",
    ],
    a_settled_send_that_can_be_cancelled: CancelsSettled => [
        "send: it settles once, with one answer for everybody",
        "cancel: it interrupts, settles, and leaves the session usable",
    ],
    silence_taken_for_an_end: TrustsSilence => ["send: silence is not the end of a command"],
    an_enter_that_nobody_asked_for: PressesEnter => ["send: without submit no Enter is typed"],
    a_text_that_is_refused_in_part: TypesTooMuch => [
        "send: a text over the limit is refused whole",
    ],
    an_exit_that_nobody_is_told: HidesExit => [
        "exit: it settles the send, is told, and leaves the session readable",
        "close: a live send settles as the session's exit",
    ],
    output_that_gets_lost_between_sends: LosesLateOutput => [
        "send: later output is the next send's, never the settled one's",
    ],
    a_cut_that_is_not_told: CutsInSilence => [
        "bounds: what is cut loses its oldest part, and says so",
    ],
    pages_upside_down: NewestFirst => [
        "send: viewports go on where the last one ended",
        "read: pages join to the whole, oldest line first",
    ],
    lines_that_move: LinesMove => [
        "read: absolute lines do not move while output arrives",
        "search: newest first, or not supported",
    ],
    a_close_that_works_once: ClosesOnce => [
        "close: one that failed says so, and can be tried again",
    ],
    processes_that_stay: LeavesProcesses => [
        "close: no process of the session outlives it",
        "disposal of the owner: closes its sessions, and nobody else's",
    ],
    a_shell_that_can_be_killed: KillsShell => [
        "signal: it reaches the foreground, and never kills the shell",
    ],
    a_directory_that_does_not_matter: IgnoresDirectory => [
        "opening: in the directory that was asked for, or not at all",
    ],
}

/// Of what hangs the report says that it hangs.
#[tokio::test(flavor = "multi_thread")]
async fn what_hangs_is_broken() {
    for (fault, hanging) in [
        (
            Fault::CloseForgetsSend,
            &[
                "close: a live send settles as the session's exit",
                "disposal of the owner: closes its sessions, and nobody else's",
                "disposal of the service: settles sends and closes everything",
            ][..],
        ),
        (
            Fault::DeafToCancellation,
            &[
                "send: one is live at a time, and the next may start when it has settled",
                "cancel: it interrupts, settles, and leaves the session usable",
            ],
        ),
    ] {
        let profile = Profile { patience: Duration::from_secs(1), ..profile(Some(fault)) };
        let report = check(profile).await;
        for promise in hanging {
            let seen = report.broken.iter().find(|(broken, _)| broken == promise);
            assert!(seen.is_some_and(|(_, seen)| seen.starts_with("hangs: ")), "{report}");
        }
    }
}

/// What a backend's author reads.
#[test]
fn a_report_names_promise_and_sight() {
    let report = Report {
        kept: vec!["opening: ids count up and are not used twice"],
        broken: vec![("read: pages", "the lines there are: 3 instead of 4".to_owned())],
        skipped: vec![("exit: told", "exit")],
    };
    assert_eq!(
        report.to_string(),
        "BROKEN   read: pages\n           the lines there are: 3 instead of 4\n\
         skipped  exit: told (the profile has no `exit`)\n\
         kept     opening: ids count up and are not used twice\n"
    );
}
