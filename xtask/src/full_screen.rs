//! What full-screen programs cost: memory, snapshots, keys.

use std::{
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use agents::Agent;
use terminal::{KeyPress, NamedKey};
use testkit::host::TestHost;

use crate::{
    bench::{Session, median},
    output::resident,
};

/// Fills the alternate screen, and waits.
const FILL: &str =
    "printf '\\e[?1049h\\e[H'; for n in {1..59}; do printf '%0150d\\n' $n; done; read -r x";

/// Measures and prints.
pub(crate) async fn costs(
    host: &TestHost,
    agent: &Arc<Agent>,
    out: &mut impl std::io::Write,
) -> anyhow::Result<()> {
    writeln!(out, "\n| what | figure |\n|---|---|")?;
    Session::open(host, agent).await?.close().await?;
    let before = resident()?;
    let mut sessions = Vec::new();
    for _ in 0..50 {
        let session = Session::open(host, agent).await?;
        session.send(FILL).await?;
        sessions.push(session);
    }
    let each = resident()?.saturating_sub(before) / sessions.len();
    writeln!(out, "| a session with a full screen of 40 × 160 | {} KiB |", each >> 10)?;
    for session in sessions {
        session.close().await?;
    }

    let session = Session::open(host, agent).await?;
    session.resize(60, 200).await?;
    session.send(FILL).await?;
    let mut times = Vec::new();
    for _ in 0..500 {
        let start = Instant::now();
        let shown = session.screen().await?;
        times.push(start.elapsed());
        anyhow::ensure!(shown.alternate && shown.rows.len() == 60);
    }
    writeln!(out, "| a snapshot of 60 rows and 200 columns | {:.3} ms |", median(&times) * 1e3)?;
    session.close().await?;

    if Command::new("vim").arg("--version").output().is_err() {
        writeln!(out, "| a key to the settled screen of vim | vim is not installed |")?;
        return Ok(());
    }
    let session = Session::open(host, agent).await?;
    session.send("seq 1 1000 > lines; vim -u NONE -i NONE lines").await?;
    let mut times: Vec<Duration> = Vec::new();
    for line in 1..=200_u16 {
        let start = Instant::now();
        session.press(vec![KeyPress::text("dd")]).await?;
        let shown = session.screen().await?;
        times.push(start.elapsed());
        let first = (line + 1).to_string();
        anyhow::ensure!(shown.rows.first() == Some(&first), "{:?}", shown.rows);
    }
    times.sort();
    let slowest = times.get(times.len() * 95 / 100).copied().unwrap_or_default();
    writeln!(
        out,
        "| a key to the settled screen of vim | {:.2} ms, 95 % within {:.2} ms |",
        median(&times) * 1e3,
        slowest.as_secs_f64() * 1e3
    )?;
    session.press(vec![KeyPress::text(":q!"), NamedKey::Enter.into()]).await?;
    session.close().await?;
    Ok(())
}
