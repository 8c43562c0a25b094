//! Plays one scenario: a host with a shell session in this process, and one send for each step.
//!
//! A process of its own (`matrix-player`, not for people): it may run as another user than the
//! run, and what a scenario breaks is gone with it. An [`Assignment`] comes in on standard input as
//! JSON, what happened goes out on standard output. Steps are played as long as they go right.

use std::{
    io::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use dsh_core::Cancel;
use serde::{Deserialize, Serialize};
use terminal::{SendOperation, SendRequest, SpawnRequest, TerminalError, Terminals};
use testkit::host::TestHost;
use tokio::time::{sleep, timeout};

use super::{
    scenario::{Scenario, Step, Term},
    verdict::{Fault, Observation, judge},
};

// Only what is mentioned is linked.
use terminal_bash as _;

/// What to play.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Assignment {
    /// With every placeholder replaced.
    pub(crate) scenario: Scenario,
    /// The session's terminal.
    pub(crate) term: Term,
}

/// What became of one send.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Played {
    /// It settled.
    Settled(Box<Observation>),
    /// The send was refused or failed.
    Failed(String),
}

/// Plays what standard input assigns.
pub(crate) fn run() -> anyhow::Result<()> {
    let assignment: Assignment = serde_json::from_reader(std::io::stdin().lock())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // On a worker of the runtime, where a host's calls run too.
    let played = runtime.block_on(async { tokio::spawn(play(assignment)).await })??;
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, &played)?;
    out.flush()?;
    Ok(())
}

async fn play(assignment: Assignment) -> anyhow::Result<Vec<Played>> {
    let Assignment { scenario, term } = assignment;
    let host = TestHost::boot(&format!(
        "- name: terminal\n- name: terminal-bash\n  config: {{ timeoutMs: {}, term: {} }}\n",
        scenario.timeout_ms,
        term.as_str()
    ))
    .await;
    let agent = host.agent("matrix");
    let terminals = host.service::<Terminals>();
    let shell = SpawnRequest { kind: "shell".to_owned(), ..SpawnRequest::default() };
    let session = terminals.spawn(&agent, shell, &Cancel::new()).await?.session.session_id;
    let mut played = Vec::new();
    for step in scenario.sends() {
        sleep(Duration::from_millis(step.pause_ms)).await;
        let (text, submit) = step.input();
        let (text, cancel) = (text.to_owned(), Cancel::new());
        let request = SendRequest { text, submit, background: false, cancel };
        let start = Instant::now();
        let send = terminals.start_send(&agent, session.as_str(), request);
        let seen = match send {
            Ok(send) => observe(step, &send, start).await,
            Err(error) => Err(error),
        };
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) => {
                played.push(Played::Failed(error.to_string()));
                break;
            }
        };
        let goes_on = !judge(step, term, &seen).faults.iter().any(Fault::ends_scenario);
        played.push(Played::Settled(Box::new(seen)));
        if !goes_on {
            break;
        }
    }
    terminals.kill(&agent, session.as_str(), "the scenario is over").await?;
    host.dispose().await?;
    Ok(played)
}

async fn observe(
    step: &Step,
    send: &Arc<dyn SendOperation>,
    start: Instant,
) -> Result<Observation, TerminalError> {
    let mut interrupted = false;
    if let Some(wait) = step.interrupt_ms {
        let left = Duration::from_millis(wait).saturating_sub(start.elapsed());
        if timeout(left, send.done()).await.is_err() {
            interrupted = send.cancel("the step has seen enough");
        }
    }
    let outcome = send.done().await?;
    Ok(Observation {
        took_us: u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX),
        reason: outcome.wait_reason,
        state: outcome.state,
        last_command: outcome.last_command,
        interrupted,
        viewport: outcome.viewport,
    })
}
