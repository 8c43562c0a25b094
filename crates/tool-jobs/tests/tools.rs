//! The three tools and the notices through the whole pipeline, over jobs that do what the test says.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

use std::sync::{Arc, Mutex};

use agents::{Agent, Notice, ToolFilter};
use dsh_core::{Cancel, async_trait};
use futures_util::{FutureExt as _, poll};
use jobs::{Ending, JobCancel, JobEnd, JobKind, JobOutput, JobRequest, JobWork, Jobs};
use serde_json::{Value, json};
use system_prompt::SystemPrompt;
use testkit::{TestHost, guarded};
use tokio::sync::watch;
use tool_jobs as _;
use tools::{CallIntent, ErrorInfo, ResultIntent, ToolKind, ToolResult, Tools};

async fn boot(config: &str) -> (TestHost, Arc<Agent>) {
    let rows = format!("- name: jobs-local\n- name: tool-jobs\n  config: {config}\n");
    let host = TestHost::boot(&rows).await;
    let agent = host.agent("a");
    (host, agent)
}

/// Work that the test ends, unless a cancellation does.
#[derive(Default)]
struct Work {
    end: watch::Sender<Option<JobEnd>>,
    output: Mutex<String>,
    reasons: Mutex<Vec<String>>,
}

impl Work {
    fn put_out(&self, text: &str) {
        self.output.lock().unwrap().push_str(text);
    }

    fn end(&self, ending: Ending, detail: &str) {
        self.end.send_replace(Some(JobEnd::new(ending, detail)));
    }
}

#[async_trait]
impl JobWork for Work {
    async fn done(&self) -> JobEnd {
        self.end.subscribe().wait_for(Option::is_some).await.unwrap().clone().unwrap()
    }

    async fn read(&self) -> JobOutput {
        let text = std::mem::take(&mut *self.output.lock().unwrap());
        JobOutput { text, ..JobOutput::default() }
    }

    fn cancel(&self, cancel: &JobCancel) -> anyhow::Result<()> {
        self.reasons.lock().unwrap().push(cancel.reason.clone());
        self.end(Ending::Killed, "cancelled");
        Ok(())
    }
}

const KIND: JobKind = JobKind::new("pty-send");

fn start(host: &TestHost, owner: &Arc<Agent>, limit: Option<u64>) -> Arc<Work> {
    start_as(host, owner, limit, "pty-1: make")
}

fn start_as(host: &TestHost, owner: &Arc<Agent>, limit: Option<u64>, label: &str) -> Arc<Work> {
    let work = Arc::<Work>::default();
    let started = Arc::clone(&work);
    let request = JobRequest {
        kind: KIND,
        label: label.to_owned(),
        owner: Some(Arc::clone(owner)),
        output_limit_bytes: limit,
        run: Box::new(move || Ok(started)),
    };
    host.service::<Jobs>().start(request).unwrap();
    work
}

async fn ended(host: &TestHost, agent: &Arc<Agent>, id: &str) {
    let jobs = host.service::<Jobs>();
    testkit::wait_until("the end of the job", || {
        !jobs.get(Some(agent), id).unwrap().status.is_live()
    })
    .await;
}

#[track_caller]
fn error(result: ToolResult) -> (String, String) {
    let Some(ErrorInfo { message, info }) = result.error else { panic!("no error: {result:?}") };
    (info.code, message)
}

/// A value without the times in it.
fn timeless(mut value: Value) -> Value {
    let job = if value.get("job").is_some() { &mut value["job"] } else { &mut value };
    let job = job.as_object_mut().unwrap();
    assert!(job.remove("startedAt").unwrap().as_u64().unwrap() > 1_600_000_000_000);
    job.remove("finishedAt");
    value
}

fn id(id: &str) -> Value {
    json!({ "job_id": id })
}

#[tokio::test]
async fn a_job_from_its_start_to_its_end() {
    let (host, agent) = boot("{}").await;
    let listed = host.call(&agent, "job_list", json!({})).await;
    assert_eq!((listed.text().as_str(), listed.value), ("(no background jobs)", Some(json!([]))));
    let work = start(&host, &agent, None);
    work.put_out("compiling\n");
    let read = host.call(&agent, "job_output", id("pty-send-1")).await;
    assert_eq!(read.text(), "compiling\n[status: running]");
    let job = json!({ "id": "pty-send-1", "kind": "pty-send", "label": "pty-1: make", "status": "running" });
    let text = read.text();
    assert_eq!(timeless(read.value.unwrap()), json!({ "text": text, "job": job }));
    let read = host.call(&agent, "job_output", id("pty-send-1")).await;
    assert_eq!(read.text(), "(no new output)\n[status: running]");
    let listed = host.call(&agent, "job_list", json!({})).await;
    assert_eq!(listed.text(), "pty-send-1 [pty-send] running — pty-1: make");
    assert_eq!(timeless(listed.value.unwrap()[0].take()), job);

    let kill = json!({ "job_id": "pty-send-1", "reason": "too slow" });
    let killed = host.call(&agent, "job_kill", kill).await;
    assert_eq!(killed.text(), "requested cancellation of job pty-send-1");
    let value = timeless(killed.value.unwrap());
    assert_eq!(value["outcome"], "cancellation-requested");
    assert_eq!(*work.reasons.lock().unwrap(), ["too slow"]);
    let wait = json!({ "job_id": "pty-send-1", "wait": true });
    let read = host.call(&agent, "job_output", wait).await;
    assert_eq!(read.text(), "(no new output)\n[status: killed, cancelled]");
    assert!(read.value.unwrap()["job"]["finishedAt"].is_u64());
    let killed = host.call(&agent, "job_kill", id("pty-send-1")).await;
    assert_eq!(killed.text(), "job pty-send-1 had already finished [status: killed, cancelled]");
    let job = json!({
        "id": "pty-send-1", "kind": "pty-send", "label": "pty-1: make", "status": "killed",
        "detail": "cancelled",
    });
    let expected = json!({ "outcome": "already-finished", "job": job });
    assert_eq!(timeless(killed.value.unwrap()), expected);
    assert_eq!(agent.inbox().drain(), []);
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn a_wait_ends_with_the_job_or_with_its_time() {
    let (host, agent) = boot("{ waitTimeoutMs: 1, maxWaitTimeoutMs: 2 }").await;
    let work = start(&host, &agent, None);
    for timeout in [json!({}), json!({ "timeout_ms": 1 }), json!({ "timeout_ms": 9e15 })] {
        // The last is far more than allowed, and cut.
        let mut arguments = timeout;
        arguments["job_id"] = "pty-send-1".into();
        arguments["wait"] = true.into();
        let read = guarded("wait", host.call(&agent, "job_output", arguments)).await;
        assert_eq!(read.text(), "(no new output)\n[status: running]");
    }
    assert_eq!(*work.reasons.lock().unwrap(), [""; 0], "a wait ends no job");
    host.dispose().await.unwrap();

    let (host, agent) = boot("{}").await;
    let work = start(&host, &agent, None);
    let wait = json!({ "job_id": "pty-send-1", "wait": true, "timeout_ms": 600_000 });
    let mut waiting = Box::pin(host.call(&agent, "job_output", wait.clone()));
    assert!(poll!(&mut waiting).is_pending());
    work.put_out("built");
    work.end(Ending::Completed, "wait: stdin_read");
    let read = guarded("wait", waiting).await;
    assert_eq!(read.text(), "built\n[status: completed, wait: stdin_read]");

    let work = start(&host, &agent, None);
    work.put_out("kept");
    let (cancel, arguments) = (Cancel::new(), json!({ "job_id": "pty-send-2", "wait": true }));
    let waiting = host.call_with(&agent, "job_output", arguments, &cancel);
    let cancelling = async {
        tokio::task::yield_now().await;
        cancel.cancel("no time");
    };
    let (cancelled, ()) = guarded("wait", async { tokio::join!(waiting, cancelling) }).await;
    assert_eq!(error(cancelled), ("CANCELLED".to_owned(), "no time".to_owned()));
    let read = host.call(&agent, "job_output", id("pty-send-2")).await;
    assert_eq!(read.text(), "kept\n[status: running]", "what nobody read is still there");
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn bad_arguments_are_named() {
    let (host, agent) = boot("{}").await;
    start(&host, &agent, None);
    let other = host.agent("b");
    let cases = [
        (&agent, json!({}), "INVALID_ARGS", r#"missing required property "job_id""#),
        (&agent, id(""), "INVALID_ARGS", r#""job_id" is empty"#),
        (&agent, id("pty-send-9"), "UNKNOWN_JOB", "unknown job pty-send-9"),
        (&other, id("pty-send-1"), "UNKNOWN_JOB", "unknown job pty-send-1"),
    ];
    for (caller, arguments, code, part) in cases {
        for tool in ["job_output", "job_kill"] {
            let (its_code, text) = error(host.call(caller, tool, arguments.clone()).await);
            assert_eq!(its_code, code, "{tool}: {text}");
            assert!(text.contains(part), "{tool}: {text}");
        }
    }
    for timeout in [json!(0), json!(-1), json!(1.5), json!(9_007_199_254_740_992_u64)] {
        let arguments = json!({ "job_id": "pty-send-1", "timeout_ms": timeout });
        let (code, text) = error(host.call(&agent, "job_output", arguments).await);
        assert_eq!(code, "INVALID_ARGS");
        assert!(text.contains(r#""timeout_ms" must be a positive integer"#), "{text}");
    }
    let read = host.call(&agent, "job_output", id("pty-send-1")).await;
    assert!(!read.is_error(), "the job is as it was");
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn an_end_that_nobody_was_told_of_is_notified_to_the_owner() {
    let (host, agent) = boot("{}").await;
    let other = host.agent("b");
    let work = start(&host, &agent, None);
    work.end(Ending::Completed, "wait: stdin_read");
    guarded("a notice", agent.inbox().arrived()).await;
    assert_eq!(agent.inbox().wake().now_or_never(), Some(()), "an idle agent is woken");
    let texts: Vec<String> = agent.inbox().drain().into_iter().map(|it| it.text).collect();
    assert_eq!(
        texts,
        ["background job pty-send-1 (pty-send: pty-1: make) finished \
          [status: completed, wait: stdin_read]. Read its output with job_output."]
    );
    assert_eq!(other.inbox().drain(), []);
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn whoever_was_told_by_a_tool_gets_no_notice() {
    let (host, agent) = boot("{}").await;
    // Read before the notice was.
    start(&host, &agent, None).end(Ending::Completed, "done");
    guarded("a notice", agent.inbox().arrived()).await;
    host.call(&agent, "job_output", id("pty-send-1")).await;
    assert_eq!(agent.inbox().drain(), []);
    assert_eq!(agent.inbox().arrived().now_or_never(), None);
    // Killed.
    start(&host, &agent, None);
    host.call(&agent, "job_kill", id("pty-send-2")).await;
    ended(&host, &agent, "pty-send-2").await;
    // Waited for.
    let work = start(&host, &agent, None);
    let wait = json!({ "job_id": "pty-send-3", "wait": true });
    let mut waiting = Box::pin(host.call(&agent, "job_output", wait));
    assert!(poll!(&mut waiting).is_pending());
    work.end(Ending::Completed, "done");
    guarded("wait", waiting).await;
    // The next notice would come behind them.
    start(&host, &agent, None).end(Ending::Failed, "last");
    guarded("a notice", agent.inbox().arrived()).await;
    let notices = agent.inbox().drain();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].text.starts_with("background job pty-send-4 "), "{notices:?}");
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn how_often_an_idle_agent_is_woken_is_configured() {
    for (config, wakes) in [
        ("{}", 3),
        ("{ maxConsecutiveWakes: 1 }", 1),
        ("{ maxConsecutiveWakes: 0 }", 0),
        ("{ completionDelivery: quiet }", 0),
    ] {
        let (host, agent) = boot(config).await;
        for round in 0..5 {
            start(&host, &agent, None).end(Ending::Completed, "done");
            guarded("a notice", agent.inbox().arrived()).await;
            assert_eq!(agent.inbox().wake().now_or_never().is_some(), round < wakes, "{config}");
            assert_eq!(agent.inbox().drain().len(), 1);
        }
        host.dispose().await.unwrap();
    }
}

/// The row's bound holds for every tool, whatever a producer allows and whatever goes wrong.
#[tokio::test]
async fn every_text_keeps_the_bound_of_the_row() {
    let (host, agent) = boot("{ maxResultBytes: 100 }").await;
    for limit in [None, Some(1000), Some(64)] {
        let work = start(&host, &agent, limit);
        work.put_out(&"x".repeat(500));
    }
    let long = "no-such-job-".repeat(50);
    for (number, most) in [(1, 100), (2, 100), (3, 64)] {
        let read = host.call(&agent, "job_output", id(&format!("pty-send-{number}"))).await.text();
        assert_eq!(read.len(), most, "{read}");
    }
    for (tool, arguments) in
        [("job_list", json!({})), ("job_output", id(&long)), ("job_kill", id(&long))]
    {
        let text = host.call(&agent, tool, arguments).await.text();
        assert!(text.len() <= 100 && text.ends_with("\n[output truncated]"), "{tool}: {text}");
    }
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn at_the_smallest_bound_every_id_survives() {
    let (host, agent) = boot("{}").await;
    let work = start(&host, &agent, Some(64));
    work.put_out(&"x".repeat(500));
    let read = host.call(&agent, "job_output", id("pty-send-1")).await;
    let value = read.value.as_ref().unwrap();
    assert_eq!(read.text().len(), 64);
    assert!(read.text().ends_with("x\n[status: running]\n[output truncated]"), "{}", read.text());
    assert_eq!(value["job"]["id"], "pty-send-1");
    assert_eq!(value["job"]["label"], "", "the text has taken all there is");
    work.end(Ending::Completed, "wait: stdin_read");
    guarded("a notice", agent.inbox().arrived()).await;
    let notice = Notice::new("job pty-send-1 finished. Read its output with job_output.");
    assert_eq!(agent.inbox().drain()[0].text, notice.text);
    let killed = host.call(&agent, "job_kill", id("pty-send-1")).await;
    assert_eq!(killed.text(), "job pty-send-1 had already finished [status: completed]");
    // With a label that has no room.
    let work = start_as(&host, &agent, Some(64), &"é".repeat(100));
    let listed = host.call(&agent, "job_list", json!({})).await;
    let line = listed.text().lines().last().unwrap().to_owned();
    assert!(line.starts_with("pty-send-2 [pty-send] running — é"), "{line}");
    assert_within(&listed.value.as_ref().unwrap()[1], 64);
    let killed = host.call(&agent, "job_kill", id("pty-send-2")).await;
    assert_eq!(killed.text(), "requested cancellation of job pty-send-2");
    assert_eq!(killed.value.as_ref().unwrap()["job"]["id"], "pty-send-2");
    assert_within(&killed.value.unwrap()["job"], 64);
    ended(&host, &agent, "pty-send-2").await;
    drop(work);
    for tool in ["job_list", "job_kill"] {
        for detail in ["wait: stdin_read".to_owned(), "d".repeat(64), "d".repeat(65)] {
            let work = start_as(&host, &agent, Some(64), &"é".repeat(100));
            work.end(Ending::Completed, &detail);
            let jobs = host.service::<Jobs>();
            let newest = jobs.list(Some(&agent)).last().unwrap().id.to_string();
            ended(&host, &agent, &newest).await;
            let arguments = if tool == "job_list" { json!({}) } else { id(&newest) };
            let result = host.call(&agent, tool, arguments).await;
            assert!(result.text().contains(&newest), "{}", result.text());
            let value = result.value.unwrap();
            let job = value.get("job").or_else(|| value.as_array()?.last()).unwrap();
            assert_eq!(job["id"], newest.as_str());
            // The answer to a kill has all of the value in its text, and here no room for it.
            let kept = tool == "job_list" && detail.len() <= 64;
            assert_eq!(job.get("detail").is_some(), kept, "{job}");
            assert_within(job, 64);
        }
    }
    host.dispose().await.unwrap();
}

/// The free texts of a job have at most so many bytes.
#[track_caller]
fn assert_within(job: &Value, most: usize) {
    let bytes = |name: &str| job[name].as_str().map_or(0, str::len);
    let sum = bytes("label") + bytes("detail");
    assert!(sum <= most, "{sum} bytes: {job}");
}

#[tokio::test]
async fn who_cannot_use_the_tools_cannot_start_jobs() {
    let (host, agent) = boot("{}").await;
    let try_start = || {
        let request = JobRequest {
            kind: JobKind::new("pty-send"),
            label: "never".to_owned(),
            owner: Some(Arc::clone(&agent)),
            output_limit_bytes: None,
            run: Box::new(|| Ok(Arc::<Work>::default())),
        };
        host.service::<Jobs>().start(request).map_err(|error| error.code())
    };
    agent.set_tool_filter(Some(ToolFilter::Except(["job_kill".to_owned()].into())));
    assert_eq!(try_start().unwrap_err(), "NO_JOBS");
    agent.set_tool_filter(None);
    try_start().unwrap();
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn how_calls_are_shown_and_what_guides_their_use() {
    let (host, _) = boot("{}").await;
    let tools = host.service::<Tools>();
    for (tool, kind) in [
        ("job_output", ToolKind::Read),
        ("job_list", ToolKind::Read),
        ("job_kill", ToolKind::Execute),
    ] {
        assert_eq!(tools.present_call(tool, &json!({})), Some(CallIntent::Generic { kind }));
        let good = ToolResult { content: Vec::new(), value: Some(json!({})), error: None };
        let shown = tools.present_result(tool, &json!({}), &good);
        assert_eq!(shown, Some(ResultIntent::Generic { kind }));
    }
    insta::assert_snapshot!(host.service::<SystemPrompt>().render(None));
    let listed = tools
        .list(None)
        .into_iter()
        .map(|it| format!("{}\n{}\n{:#}\n", it.name, it.description, it.parameters));
    insta::assert_snapshot!(listed.collect::<Vec<_>>().join("\n"));
    host.dispose().await.unwrap();
}

#[tokio::test]
async fn the_default_wait_is_no_longer_than_the_longest() {
    let rows = |config| format!("- name: jobs\n- name: tool-jobs\n  config: {config}\n");
    let wrong = TestHost::try_boot(&rows("{ waitTimeoutMs: 2, maxWaitTimeoutMs: 1 }")).await;
    let text = wrong.err().unwrap().to_string();
    assert!(text.contains("waitTimeoutMs") && text.contains("maxWaitTimeoutMs"), "{text}");
    let wrong = TestHost::try_boot(&rows("{ completionDelivery: loud, waitTimeoutMs: 0 }")).await;
    let text = wrong.err().unwrap().to_string();
    assert!(text.contains("completionDelivery") && text.contains("waitTimeoutMs"), "{text}");
    let wrong =
        TestHost::try_boot("- name: jobs\n  config: { maxConcurrentJobsPerOwner: 0 }\n").await;
    assert!(wrong.err().unwrap().to_string().contains("maxConcurrentJobsPerOwner"));
}
