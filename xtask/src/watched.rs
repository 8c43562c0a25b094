//! What watchers cost a session that prints much.

use std::{io::Write, sync::Arc, time::Duration};

use agents::Agent;
use anyhow::Context as _;
use terminal::{Seen, Terminals, Watcher};
use testkit::host::TestHost;
use tokio::{
    task::{JoinError, JoinHandle},
    time::{MissedTickBehavior, interval},
};

use crate::{
    bench::{Session, median},
    output::Files,
};

/// Between two frames that a page gets at most.
const FRAME: Duration = Duration::from_millis(33);
/// Pages that take nothing.
const SLOW: usize = 100;

/// The same output unwatched, watched as a page watches, and with many watchers who read nothing; in turns.
pub(crate) async fn measure(
    host: &TestHost,
    agent: &Arc<Agent>,
    runs: usize,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let files = Files::create()?;
    let command = format!("cat {}", files.path("text").display());
    let terminals = host.service::<Terminals>();
    let session = Session::open(host, agent).await?;
    // Not counted: the first one fills the scrollback.
    session.send(&command).await?;
    let (mut alone, mut one, mut many) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..runs {
        alone.push(session.send(&command).await?.0);

        let page = follow(terminals.watch(session.id()).await?);
        one.push(session.send(&command).await?.0);
        page.abort();
        // It was just ended.
        page.await.err().filter(JoinError::is_cancelled).context("the page had left")?;

        let mut slow = Vec::new();
        for _ in 0..SLOW {
            let mut watcher = terminals.watch(session.id()).await?;
            while !matches!(watcher.next().await, Some(Seen::Picture(_))) {}
            slow.push(watcher);
        }
        many.push(session.send(&command).await?.0);
    }
    session.close().await?;
    let base = median(&alone);
    writeln!(out, "\n| 50 MiB of text | ms | beside unwatched | runs |\n|---|---|---|---|")?;
    for (name, times) in [
        ("nobody watches", &alone),
        ("a page watches", &one),
        ("100 pages watch and read nothing", &many),
    ] {
        let took = median(times);
        writeln!(out, "| {name} | {:.2} | {:.2} | {runs} |", took * 1e3, took / base)?;
    }
    Ok(())
}

/// Takes frames as the server does for a page.
fn follow(mut watcher: Box<dyn Watcher>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut pace = interval(FRAME);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while let Some(seen) = watcher.next().await {
            if matches!(seen, Seen::Picture(_) | Seen::Output(_)) {
                pace.tick().await;
            }
        }
    })
}
