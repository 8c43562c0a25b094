//! `cargo xtask soak`: many sessions that do anything at random, for as long as asked.
//!
//! Each session has an *actor* ([`actor`]) that does one random thing after another: commands, programs
//! that ask, signals, cancellations, sends in the background, reads, ends and new beginnings. After each
//! it checks every promise that the thing touches ([`reply`]): the reply is its own, the status right,
//! and what was called done is done, by the program's own account in a file. Processes that compute come
//! and go meanwhile. Descriptors, terminals, processes, threads and memory are compared twice: when all
//! sessions are closed with those before the first, while the host goes on; and at the end with those
//! after a short first round.
//!
//! The run fails with what was broken. A seed gives each actor the same things to do.

mod actor;
mod holdings;
mod reply;

use std::{
    collections::BTreeMap,
    io::Write as _,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use testkit::host::TestHost;
use tokio::task::JoinSet;

use self::{
    actor::{Actor, Stage},
    holdings::Holdings,
};

// Only what is mentioned is linked.
use terminal_bash as _;
use tool_jobs as _;
use tool_terminal as _;

/// Bound of every text, small enough to be met.
const MAX_RESULT_BYTES: usize = 16_384;

/// Generous: with many sessions on few cores a reply takes its time.
const COMPOSITION: &str = "
- name: terminal
- name: terminal-bash
  config: { timeoutMs: 120000, scrollbackLines: 2000, transcriptMaxBytes: 1048576, disposeGraceMs: 1000 }
- name: tool-terminal
  config: { maxResultBytes: 16384 }
- name: jobs
- name: tool-jobs
";

/// Sessions of one agent: it may have ten jobs at once, and each session has one at most.
const PER_AGENT: usize = 10;

/// After so many broken promises a run is over.
const MOST_FAULTS: usize = 10;

/// How much to play.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// For how long.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// How many sessions at once.
    #[arg(long, default_value_t = 100)]
    sessions: usize,
    /// Makes the same actors again; random when not given.
    #[arg(long)]
    seed: Option<u64>,
}

/// What went on.
#[derive(Default)]
struct Tally {
    /// How often each thing was done, and the longest time that it took.
    done: BTreeMap<&'static str, (usize, Duration)>,
    faults: Vec<String>,
}

/// Plays, prints, and fails as the module says.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    ensure!(options.sessions > 0 && options.minutes > 0.0, "nothing to play");
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    say(&format!("seed {seed}, {} sessions, {} minutes", options.sessions, options.minutes))?;
    let time = Duration::from_secs_f64(options.minutes * 60.0);
    // As `dsh` does, first: sessions then have control groups, where there may be any.
    subprocess::start_supervisor(subprocess::Reach::Everything)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // On a worker of the runtime, where a host's calls run too.
    let sessions = options.sessions;
    let tally = runtime.block_on(async move {
        tokio::spawn(async move {
            // What a process keeps once it has had it is no leak.
            round(sessions, Duration::from_secs(5).min(time / 4), seed, false).await?;
            let before = Holdings::settled().await;
            let tally = round(sessions, time, seed, true).await?;
            let after = Holdings::settled_like(&before).await;
            say(&format!("before  {before}\nafter   {after}"))?;
            after.compare(&before)?;
            anyhow::Ok(tally)
        })
        .await
    })??;
    say("\n| thing | times | longest ms |\n|---|---|---|")?;
    for (thing, (times, longest)) in &tally.done {
        say(&format!("| {thing} | {times} | {} |", longest.as_millis()))?;
    }
    let things: usize = tally.done.values().map(|it| it.0).sum();
    for fault in &tally.faults {
        say(&format!("\nBROKEN {fault}"))?;
    }
    let faults = tally.faults.len();
    ensure!(faults == 0, "{faults} promises broken in {things} things; seed {seed}");
    say(&format!("\n{things} things, no promise broken"))
}

/// A host with its actors, from boot to disposal.
async fn round(
    sessions: usize,
    time: Duration,
    seed: u64,
    with_load: bool,
) -> anyhow::Result<Tally> {
    let host = Arc::new(TestHost::boot(COMPOSITION).await);
    let tally = Arc::new(Mutex::new(Tally::default()));
    let end = Instant::now() + time;
    let stages: Vec<_> = (0..sessions.div_ceil(PER_AGENT))
        .map(|number| {
            let agent = host.agent(&format!("soak-{}-{number}", std::process::id()));
            Arc::new(Stage { host: Arc::clone(&host), agent, open: Mutex::default() })
        })
        .collect();
    for stage in &stages {
        stage.begin().await;
    }
    let before = Holdings::take();
    let mut actors = JoinSet::new();
    for number in 0..sessions {
        let stage = Arc::clone(&stages[number / PER_AGENT]);
        let stranger = Arc::clone(&stages[(number / PER_AGENT + 1) % stages.len()]);
        let actor = Actor::new(number, seed + number as u64, stage, stranger);
        actors.spawn(play(actor, end, Arc::clone(&tally)));
    }
    let load = tokio::spawn(load(end, with_load));
    while let Some(ended) = actors.join_next().await {
        ended.context("an actor failed")?;
    }
    load.await.context("the load failed")??;
    // What a process keeps once it has had it is no leak, nor what a broken session still has.
    if with_load && dsh_core::lock(&tally).faults.is_empty() {
        let after = Holdings::settled_like(&before).await;
        say(&format!("no session yet  {before}\nall are closed  {after}"))?;
        after.compare(&before).context("in a host that goes on")?;
    }
    host.dispose().await.context("the end of the host")?;
    let mut tally = dsh_core::lock(&tally);
    Ok(std::mem::take(&mut *tally))
}

async fn play(mut actor: Actor, end: Instant, tally: Arc<Mutex<Tally>>) {
    while Instant::now() < end {
        let start = Instant::now();
        let (thing, played) = actor.step().await;
        let mut tally = dsh_core::lock(&tally);
        let entry = tally.done.entry(thing).or_default();
        entry.0 += 1;
        entry.1 = entry.1.max(start.elapsed());
        if let Err(fault) = played {
            tally.faults.push(format!("{thing}, {}: {fault:#}", actor.name()));
            // Nobody knows what its session does after that.
            return;
        }
        if tally.faults.len() >= MOST_FAULTS {
            return;
        }
    }
    if let Err(fault) = actor.leave().await {
        dsh_core::lock(&tally).faults.push(format!("the last close, {}: {fault:#}", actor.name()));
    }
}

/// Processes that compute, for a while, and again after a while.
async fn load(end: Instant, with_load: bool) -> anyhow::Result<()> {
    let mut random = fastrand::Rng::new();
    while with_load && Instant::now() < end {
        let pause = Duration::from_millis(random.u64(1000..8000)).min(end - Instant::now());
        tokio::time::sleep(pause).await;
        let busy = Busy::start(random.usize(1..4))?;
        let pause = Duration::from_millis(random.u64(500..4000));
        tokio::time::sleep(pause).await;
        drop(busy);
    }
    Ok(())
}

/// Computing processes, for as long as this lives.
struct Busy(Vec<Child>);

impl Busy {
    fn start(processes: usize) -> anyhow::Result<Self> {
        let mut busy = Self(Vec::new());
        for _ in 0..processes {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
            busy.0.push(command.spawn()?);
        }
        Ok(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for process in &mut self.0 {
            // What is gone already needs no signal, and its status says nothing.
            if process.kill().is_ok() {
                drop(process.wait());
            }
        }
    }
}

fn say(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout().lock(), "{line}").context("cannot print")
}
