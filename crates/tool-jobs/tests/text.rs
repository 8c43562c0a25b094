//! The model texts as a whole, and what their bound may never do.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

use jobs::{JobOutput, JobSnapshot, JobStatus};
use proptest::prelude::*;
use serde_json::json;
use tool_jobs::text;

fn job(status: JobStatus, detail: Option<&str>) -> JobSnapshot {
    let mut job: JobSnapshot = serde_json::from_value(json!({
        "id": "pty-send-1", "kind": "pty-send", "label": "pty-1: make", "status": "running",
        "startedAt": 1_000,
    }))
    .unwrap();
    job.status = status;
    job.detail = detail.map(str::to_owned);
    job
}

fn done() -> JobSnapshot {
    job(JobStatus::Completed, Some("wait: stdin_read"))
}

fn output(text: &str, truncated: bool, lines: &[&str]) -> JobOutput {
    let lines = lines.iter().map(|it| (*it).to_owned()).collect();
    JobOutput { text: text.to_owned(), truncated, lines }
}

#[test]
fn readings() {
    const STOPPING: &str =
        "[stopping: python3 (pid 4711) still runs; terminal_signal SIGTERM or SIGKILL is stronger]";
    let running = job(JobStatus::Running, None);
    let readings = [
        text::output(&running, &output("", false, &[]), 1_000),
        text::output(&running, &output("one\ntwo\n", false, &[]), 1_000),
        text::output(&done(), &output("one\ndsh> ", true, &["[exit: 0]"]), 1_000),
        text::output(&job(JobStatus::Stopping, None), &output("", false, &[STOPPING]), 1_000),
        text::output(&job(JobStatus::Failed, Some("it is\ngone")), &output("", false, &[]), 1_000),
    ];
    insta::assert_snapshot!(readings.join("\n---\n"), @r"
    (no new output)
    [status: running]
    ---
    one
    two
    [status: running]
    ---
    one
    dsh> 
    [exit: 0]
    [status: completed, wait: stdin_read]
    [output truncated]
    ---
    (no new output)
    [stopping: python3 (pid 4711) still runs; terminal_signal SIGTERM or SIGKILL is stronger]
    [status: stopping]
    ---
    (no new output)
    [status: failed, it is\ngone]
    ");
}

#[test]
fn a_reading_loses_its_oldest_part_then_its_lines_and_never_its_status() {
    let lines = ["[exit: 0]", "[state: waiting for input (python3)]"];
    let reading = |cap| {
        text::output(
            &done(),
            &output("the first line\nthe second line\nthe third line", false, &lines),
            cap,
        )
    };
    let texts = [129, 128, 120, 102, 70, 57, 40, 20].map(|cap| {
        let text = reading(cap);
        assert!(text.len() <= cap, "{cap}: {text}");
        format!("{cap}: {text}")
    });
    insta::assert_snapshot!(texts.join("\n---\n"));
    let empty = text::output(&done(), &output("", false, &[]), 40);
    assert_eq!(empty, "[status: completed, wait: stdin_read]", "nothing is missing");
}

#[test]
fn lists() {
    assert_eq!(text::list(&[]), "(no background jobs)");
    let mut other = job(JobStatus::Running, None);
    other.label = "pty-2: a\u{1b}\nb".to_owned();
    insta::assert_snapshot!(text::list(&[done(), other]), @r"
    pty-send-1 [pty-send] completed — pty-1: make
    pty-send-1 [pty-send] running — pty-2: a\x1b\nb
    ");
}

#[test]
fn answers_to_kills() {
    assert_eq!(text::kill_requested(&done()), "requested cancellation of job pty-send-1");
    assert_eq!(
        text::already_finished(&done()),
        "job pty-send-1 had already finished [status: completed, wait: stdin_read]"
    );
}

#[test]
fn a_notice_keeps_its_id_and_how_to_collect_the_output() {
    assert_eq!(
        text::notice(&done(), 1_000),
        "background job pty-send-1 (pty-send: pty-1: make) finished \
         [status: completed, wait: stdin_read]. Read its output with job_output."
    );
    for cap in 64..200 {
        let text = text::notice(&done(), cap);
        assert!(text.len() <= cap, "{cap}: {text}");
        assert!(text.contains("job pty-send-1") && text.contains("job_output"), "{cap}: {text}");
    }
    let texts = [140, 120, 100, 90, 64, 25, 10].map(|cap| text::notice(&done(), cap));
    insta::assert_snapshot!(texts.join("\n"));
}

proptest! {
    #[test]
    fn no_text_exceeds_its_bound(
        body in "(\\PC|\n){0,200}",
        lines in proptest::collection::vec("\\[[a-z: ]{1,30}\\]", 0..3),
        label in "\\PC{1,100}",
        detail in proptest::option::of("\\PC{1,60}"),
        truncated: bool,
        cap in 0usize..300,
    ) {
        let mut job = job(JobStatus::Completed, detail.as_deref());
        job.label = label;
        let output = JobOutput { text: body.clone(), truncated, lines };
        let text = text::output(&job, &output, cap);
        prop_assert!(text.len() <= cap);
        if cap >= 64 {
            prop_assert!(text.contains("[status: completed"));
        }
        let notice = text::notice(&job, cap);
        prop_assert!(notice.len() <= cap);
        if cap >= 64 {
            prop_assert!(notice.contains("pty-send-1") && notice.contains("job_output"));
        }
        text::shorten_label(&mut job, cap);
        prop_assert!(job.label.len() <= cap);
    }
}
