//! How soon a wait is found after the program has blocked, and what waiting costs.
//!
//! The victim notes the time in a file right before it blocks, so a latency holds the note, the system
//! call and all of ours. Who reads a bare pseudo-terminal sees the prompt, and never that somebody
//! waits.

use std::{io::Write as _, path::Path, sync::Arc, time::Duration};

use agents::Agent;
use anyhow::Context as _;
use futures_util::future::try_join_all;
use rustix::time::{ClockId, clock_gettime};
use testkit::host::TestHost;

use crate::{
    bare::Bare,
    bench::{COMPOSITION, Session, blocking},
};

const VICTIM: &str = r"
import os, random, select, socket, struct, sys, time, tty
how, log, pause = sys.argv[1], os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT), float(sys.argv[3])
here, there = socket.socketpair()
if how == 'select': tty.setcbreak(0)
while True:
    os.write(1, b'victim> ')
    if pause: time.sleep(random.uniform(pause / 2, pause))
    os.pwrite(log, struct.pack('q', time.monotonic_ns()), 0)
    if how == 'select': select.select([0, here], [], [])
    if not os.read(0, 999): break
    if how == 'select': os.write(1, b'\r\n')
";

/// A way to wait.
struct Class {
    name: &'static str,
    how: &'static str,
    /// Longest silence between the prompt and the wait, in seconds.
    silence: f64,
    /// Behind a relay.
    relayed: bool,
    /// Each silent run takes as long as its silence.
    runs_divided_by: usize,
}

const CLASSES: [Class; 5] = [
    Class {
        name: "exact, at a prompt",
        how: "read",
        silence: 0.0,
        relayed: false,
        runs_divided_by: 1,
    },
    Class {
        name: "exact, silent for < 1 s",
        how: "read",
        silence: 1.0,
        relayed: false,
        runs_divided_by: 2,
    },
    Class {
        name: "exact, silent for 2 to 4 s",
        how: "read",
        silence: 4.0,
        relayed: false,
        runs_divided_by: 10,
    },
    Class { name: "known", how: "select", silence: 0.0, relayed: false, runs_divided_by: 1 },
    Class { name: "relay", how: "read", silence: 0.0, relayed: true, runs_divided_by: 1 },
];

/// Measures and prints both tables.
pub(crate) fn run(runs: usize, sessions: usize, seconds: u64) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async { tokio::spawn(measure(runs, sessions, seconds)).await })?
}

async fn measure(runs: usize, sessions: usize, seconds: u64) -> anyhow::Result<()> {
    let host = TestHost::boot(COMPOSITION).await;
    let agent = host.agent("waiting");
    let folder = agent.workspace_root().to_owned();
    std::fs::write(folder.join("victim.py"), VICTIM)?;
    let mut out = std::io::stdout();
    writeln!(
        out,
        "| found after it blocked | bare PTY sees the prompt, median ms | session, median ms | p90 | p99 | runs |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|")?;
    for class in &CLASSES {
        let runs = (runs / class.runs_divided_by).max(10);
        let ours = latencies(&host, &agent, &folder, class, runs).await?;
        let bare = if class.relayed || class.silence > 0.0 {
            "–".to_owned()
        } else {
            format!("{:.2}", at(&bare_latencies(&folder, class, runs).await?, 50))
        };
        let (median, p90, p99) = (at(&ours, 50), at(&ours, 90), at(&ours, 99));
        writeln!(out, "| {} | {bare} | {median:.2} | {p90:.2} | {p99:.2} | {runs} |", class.name)?;
    }
    writeln!(
        out,
        "\n| waiting in `sleep {seconds}` | bare PTY, % of a core | sessions, % of a core |"
    )?;
    writeln!(out, "|---|---|---|")?;
    for count in [1, sessions] {
        let bare = bare_cost(count, seconds).await?;
        let ours = cost(&host, &agent, count, seconds).await?;
        writeln!(out, "| {count} | {bare:.2} | {ours:.2} |")?;
    }
    host.dispose().await?;
    Ok(())
}

fn command(folder: &Path, class: &Class) -> String {
    let folder = folder.display();
    let victim =
        format!("python3 {folder}/victim.py {} {folder}/stamp {}", class.how, class.silence);
    if class.relayed { format!("script -qc '{victim}' /dev/null") } else { victim }
}

/// Milliseconds from the victim's note to the verdict, sorted. The first is a warm-up.
async fn latencies(
    host: &TestHost,
    agent: &Arc<Agent>,
    folder: &Path,
    class: &Class,
    runs: usize,
) -> anyhow::Result<Vec<f64>> {
    let session = Session::open(host, agent).await?;
    session.send(&command(folder, class)).await?;
    let mut found = Vec::new();
    for _ in 0..runs {
        let (_, outcome) = session.send("x").await?;
        found.push(since_stamp(folder)?);
        anyhow::ensure!(outcome.viewport.ends_with("victim> "), "{:?}", outcome.viewport);
    }
    session.close().await?;
    found.sort_by(f64::total_cmp);
    Ok(found)
}

async fn bare_latencies(folder: &Path, class: &Class, runs: usize) -> anyhow::Result<Vec<f64>> {
    let (folder, command) = (folder.to_owned(), command(folder, class));
    blocking(move || {
        let mut bare = Bare::open()?;
        bare.line(&command, "victim> ")?;
        let mut seen = Vec::new();
        for _ in 0..runs {
            bare.line("x", "victim> ")?;
            seen.push(since_stamp(&folder)?);
        }
        bare.close()?;
        seen.sort_by(f64::total_cmp);
        Ok(seen)
    })
    .await
}

/// Milliseconds since the victim's last note; less than nothing where it has yet to write it.
fn since_stamp(folder: &Path) -> anyhow::Result<f64> {
    let now = nanoseconds(ClockId::Monotonic);
    let stamp = std::fs::read(folder.join("stamp"))?;
    let stamp = i64::from_ne_bytes(*stamp.first_chunk().context("the victim noted no time")?);
    let stamp = u64::try_from(stamp)?;
    let since = if now >= stamp { millis(now - stamp) } else { -millis(stamp - now) };
    // The note of the round before: this one's is still to come.
    Ok(since.clamp(-1.0, 10_000.0))
}

async fn cost(
    host: &TestHost,
    agent: &Arc<Agent>,
    count: usize,
    seconds: u64,
) -> anyhow::Result<f64> {
    let mut sessions = Vec::new();
    for _ in 0..count {
        sessions.push(Session::open(host, agent).await?);
    }
    let line = format!("sleep {seconds}");
    let (cpu, start) = (nanoseconds(ClockId::ProcessCPUTime), nanoseconds(ClockId::Monotonic));
    try_join_all(sessions.iter().map(|session| session.send(&line))).await?;
    let used = share(cpu, start);
    try_join_all(sessions.into_iter().map(Session::close)).await?;
    Ok(used)
}

async fn bare_cost(count: usize, seconds: u64) -> anyhow::Result<f64> {
    let opened = (0..count).map(|_| blocking(Bare::open));
    let shells = try_join_all(opened).await?;
    let (cpu, start) = (nanoseconds(ClockId::ProcessCPUTime), nanoseconds(ClockId::Monotonic));
    let waits = shells.into_iter().map(|mut bare| {
        blocking(move || {
            bare.line(&format!("sleep {seconds}"), "dsh> ")?;
            Ok(bare)
        })
    });
    let shells = try_join_all(waits).await?;
    let used = share(cpu, start);
    try_join_all(shells.into_iter().map(|bare| blocking(|| bare.close()))).await?;
    Ok(used)
}

/// Per cent of a core that this process has used since.
fn share(cpu: u64, start: u64) -> f64 {
    let used = millis(nanoseconds(ClockId::ProcessCPUTime) - cpu);
    100.0 * used / millis(nanoseconds(ClockId::Monotonic) - start)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    let time = seconds + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0));
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn millis(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64() * 1e3
}

/// The value below which so many per cent of the sorted values lie.
fn at(sorted: &[f64], percent: usize) -> f64 {
    sorted.get(sorted.len().saturating_sub(1) * percent / 100).copied().unwrap_or(f64::NAN)
}
