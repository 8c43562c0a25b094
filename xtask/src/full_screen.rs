//! What full-screen programs cost: memory, snapshots, keys.

use std::{
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use agents::Agent;
use terminal::{KeyPress, NamedKey, ScreenSnapshot};
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
        writeln!(out, "| keys to the settled screen of vim | vim is not installed |")?;
        return Ok(());
    }
    vim(host, agent, out).await
}

/// Keys of vim: one that moves, one that edits, and Escape, which vim itself tells from the beginning
/// of a sequence by waiting for the rest of one.
async fn vim(
    host: &TestHost,
    agent: &Arc<Agent>,
    out: &mut impl std::io::Write,
) -> anyhow::Result<()> {
    let session = Session::open(host, agent).await?;
    session.send("seq 1 1000 > lines; vim -N -u NONE -i NONE lines").await?;
    let last = u16::try_from(session.screen().await?.rows.len())?.saturating_sub(2);
    let mut moves = Vec::new();
    for line in 1..=200_u16 {
        let (taken, shown) = pressed(&session, vec![KeyPress::text("j")]).await?;
        anyhow::ensure!(shown.cursor.row == line.min(last), "{:?}", shown.cursor);
        moves.push(taken);
    }
    session.press(vec![KeyPress::text("gg")]).await?;
    let mut edits = Vec::new();
    for line in 1..=200_u16 {
        let (taken, shown) = pressed(&session, vec![KeyPress::text("dd")]).await?;
        let first = (line + 1).to_string();
        anyhow::ensure!(shown.rows.first() == Some(&first), "{:?}", shown.rows);
        edits.push(taken);
    }
    let patience = KeyPress::text(":set ttimeout ttimeoutlen=100");
    session.press(vec![patience, NamedKey::Enter.into()]).await?;
    let mut escapes = Vec::new();
    for insertions in 1..=20 {
        session.press(vec![KeyPress::text("ix")]).await?;
        let (taken, shown) = pressed(&session, vec![NamedKey::Escape.into()]).await?;
        let begins = shown.rows.first().is_some_and(|it| it.starts_with(&"x".repeat(insertions)));
        let inserts = shown.rows.last().is_some_and(|it| it.contains("INSERT"));
        anyhow::ensure!(begins && !inserts, "{:?}", shown.rows);
        escapes.push(taken);
    }
    for (keys, mut times) in
        [("`j`", moves), ("`dd`", edits), ("Escape, for which vim waits 100 ms,", escapes)]
    {
        times.sort();
        let slowest = times.get(times.len() * 95 / 100).copied().unwrap_or_default();
        writeln!(
            out,
            "| {keys} to the settled screen of vim | {:.2} ms, 95 % within {:.2} ms |",
            median(&times) * 1e3,
            slowest.as_secs_f64() * 1e3
        )?;
    }
    session.press(vec![KeyPress::text(":q!"), NamedKey::Enter.into()]).await?;
    session.close().await?;
    Ok(())
}

/// Presses keys and looks at what they changed: how long both took.
async fn pressed(
    session: &Session,
    keys: Vec<KeyPress>,
) -> anyhow::Result<(Duration, ScreenSnapshot)> {
    let start = Instant::now();
    session.press(keys).await?;
    let shown = session.screen().await?;
    Ok((start.elapsed(), shown))
}
