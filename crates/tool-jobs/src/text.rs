//! Model text: how a job is put into words and lines, and how they are cut to their bound.
//!
//! Guarantees:
//! - no text is longer than its bound, and none is cut inside a character;
//! - a reading that lost something ends with [`TRUNCATED`]; its body gives way first, its oldest
//!   part first, then the lines about it, the last one first; the status stays;
//! - a notice keeps the job's id and says how to collect its output.
//!
//! Pure: no clock, no service.

use jobs::{JobOutput, JobSnapshot};
use tools::text::{TRUNCATED, escape, head, tail};

/// Most bytes of a text about this job, where `most` is the bound of any.
pub fn cap(job: &JobSnapshot, most: usize) -> usize {
    job.output_limit_bytes.map_or(most, |it| it.min(most))
}

/// `completed, wait: stdin_read`, or `running`.
fn status(job: &JobSnapshot) -> String {
    match &job.detail {
        Some(detail) => format!("[status: {}, {}]", job.status.as_str(), escape(detail)),
        None => short_status(job),
    }
}

fn short_status(job: &JobSnapshot) -> String {
    format!("[status: {}]", job.status.as_str())
}

/// A reading: the output, the lines about it, the status.
pub fn output(job: &JobSnapshot, output: &JobOutput, cap: usize) -> String {
    let status = status(job);
    let compose = |body: Option<&str>, lines: &[String], truncated: bool| {
        let body = body.map(|it| it.trim_end_matches('\n'));
        let lines = lines.iter().map(String::as_str).chain([status.as_str()]);
        let marker = truncated.then_some(TRUNCATED);
        body.into_iter().chain(lines).chain(marker).collect::<Vec<_>>().join("\n")
    };
    let JobOutput { text, truncated, lines } = output;
    let body = if text.is_empty() { "(no new output)" } else { text };
    let whole = compose(Some(body), lines, *truncated);
    if whole.len() <= cap {
        return whole;
    }
    // The placeholder is no output: without it nothing is missing.
    let truncated = *truncated || !text.is_empty();
    let around = compose(None, lines, truncated).len();
    let kept = tail(text.trim_end_matches('\n'), cap.saturating_sub(around + 1));
    if !kept.is_empty() {
        return compose(Some(kept), lines, truncated);
    }
    for kept in (0..=lines.len()).rev() {
        let shorter = compose(None, &lines[..kept], truncated || kept < lines.len());
        if shorter.len() <= cap {
            return shorter;
        }
    }
    let short = short_status(job);
    let marked = format!("{short}\n{TRUNCATED}");
    if marked.len() <= cap { marked } else { head(&short, cap).to_owned() }
}

/// `job_list`.
pub fn list(jobs: &[JobSnapshot]) -> String {
    if jobs.is_empty() {
        return "(no background jobs)".to_owned();
    }
    let line = |job: &JobSnapshot| {
        let JobSnapshot { id, kind, label, status, .. } = job;
        format!("{id} [{kind}] {} — {}", status.as_str(), escape(label))
    };
    jobs.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The answer to a kill of a live job.
pub fn kill_requested(job: &JobSnapshot) -> String {
    format!("requested cancellation of job {}", job.id)
}

/// The answer to a kill that came too late.
pub fn already_finished(job: &JobSnapshot) -> String {
    format!("job {} had already finished {}", job.id, status(job))
}

/// The notice of an end.
pub fn notice(job: &JobSnapshot, cap: usize) -> String {
    const COLLECT: &str = "Read its output with job_output.";
    let JobSnapshot { id, kind, .. } = job;
    let named = |label: &str, status: &str| {
        format!("background job {id} ({kind}: {label}) finished {status}. {COLLECT}")
    };
    let label = escape(&job.label);
    let whole = named(&label, &status(job));
    if whole.len() <= cap {
        return whole;
    }
    let around = named("…", &status(job)).len();
    if around < cap {
        return named(&format!("{}…", head(&label, cap - around)), &status(job));
    }
    let shorter = [
        format!("background job {id} finished {}. {COLLECT}", status(job)),
        format!("background job {id} finished {}. {COLLECT}", short_status(job)),
        format!("job {id} finished. {COLLECT}"),
        format!("job {id}: job_output"),
    ];
    let fitting = shorter.iter().find(|it| it.len() <= cap);
    fitting.cloned().unwrap_or_else(|| head(id.as_str(), cap).to_owned())
}

/// Bounds the free texts of a job in a structured value: the detail goes where it has no room, and
/// the label is cut to what is left.
pub fn shorten(mut job: JobSnapshot, room: usize) -> JobSnapshot {
    job.detail = job.detail.filter(|it| it.len() <= room);
    let detail = job.detail.as_ref().map_or(0, String::len);
    shorten_label(&mut job, room - detail);
    job
}

/// Cuts the label of a structured value to what its other texts leave of the bound.
pub fn shorten_label(job: &mut JobSnapshot, room: usize) {
    if job.label.len() <= room {
        return;
    }
    let kept = room.checked_sub('…'.len_utf8()).map(|room| head(&job.label, room));
    job.label = kept.map_or_else(String::new, |kept| format!("{kept}…"));
}
