//! The end of a background send: `job_kill` until the job is killed, beside an interrupt of a bare
//! shell's foreground until its prompt is back.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use agents::Agent;
use serde_json::{Value, json};
use testkit::{host::TestHost, leaks::processes_with_env};

use crate::{
    bare::Bare,
    bench::{Row, blocking},
};

// Only what is mentioned is linked.
use terminal_bash as _;
use tool_jobs as _;
use tool_terminal as _;

const COMPOSITION: &str = "
- name: terminal
- name: terminal-bash
- name: tool-terminal
- name: jobs
- name: tool-jobs
";

/// Measures through the tools, as a model calls them.
pub(crate) async fn measure(runs: usize) -> anyhow::Result<Row> {
    let mut row = Row::new("`job_kill` on `sleep 100`");
    let host = TestHost::boot(COMPOSITION).await;
    let agent = host.agent("bench-kill");
    call(&host, &agent, "terminal_open", json!({ "type": "shell" })).await?;
    let mut bare = blocking(Bare::open).await?;
    // The first of each is a warm-up.
    for run in 0..=runs {
        let (shell, took) = blocking(move || {
            let took = bare.interrupt("sleep 100", "sleep", "dsh> ")?;
            Ok((bare, took))
        })
        .await?;
        bare = shell;
        let ours = killed(&host, &agent).await?;
        if run > 0 {
            row.bare.push(took);
            row.ours.push(ours);
        }
    }
    blocking(|| bare.close()).await?;
    host.dispose().await?;
    Ok(row)
}

async fn killed(host: &TestHost, agent: &Arc<Agent>) -> anyhow::Result<Duration> {
    let send = json!({ "sessionId": "pty-1", "text": "sleep 100", "run_in_background": true });
    let started = call(host, agent, "terminal_send", send).await?;
    let job = started["jobId"].clone();
    while !processes_with_env("DSH_SESSION_ID", agent.id()).iter().any(|it| it.command == "sleep") {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let start = Instant::now();
    call(host, agent, "job_kill", json!({ "job_id": job })).await?;
    let end = call(host, agent, "job_output", json!({ "job_id": job, "wait": true })).await?;
    let took = start.elapsed();
    anyhow::ensure!(end["job"]["status"] == "killed", "it was not killed: {end}");
    Ok(took)
}

/// The value of a call that must succeed.
async fn call(
    host: &TestHost,
    agent: &Arc<Agent>,
    tool: &str,
    arguments: Value,
) -> anyhow::Result<Value> {
    let result = host.call(agent, tool, arguments).await;
    anyhow::ensure!(!result.is_error(), "{tool}: {}", result.text());
    Ok(result.value.unwrap_or_default())
}
