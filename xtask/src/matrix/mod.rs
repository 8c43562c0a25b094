//! `cargo xtask matrix`: real programs through `ctx.terminals`, and what is said about each wait.
//!
//! Scenarios are files (`xtask/scenarios/*.yml`, see [`scenario`]). Each is played by a process of
//! its own ([`player`]), judged by a pure function ([`verdict`]) and told by [`report`]. The run
//! fails when a verdict was premature, missing, or weaker than its scenario allows.

mod player;
mod report;
mod scenario;
mod tally;
mod verdict;
mod world;

use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use tokio::{io::AsyncWriteExt as _, process::Command, task::JoinSet, time::timeout};

pub(crate) use player::run as play;
use player::{Assignment, Played};
use report::{Run, RunResult, Summary};
use scenario::{Scenario, Term};
use world::World;
pub(crate) use world::{find, search_path};

/// Longest end of a session, and of the host that has it.
const LONGEST_END: Duration = Duration::from_secs(30);

/// Which scenarios to play, and what becomes of the result.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Options {
    /// A scenario whose programs are not installed is a failure.
    #[arg(long)]
    require_all: bool,
    /// The session's terminal; may be given twice.
    #[arg(long, value_enum, default_value = "xterm-256color")]
    term: Vec<Term>,
    /// How many scenarios are played at a time; more than one makes latencies worse.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Only those that guard main.
    #[arg(long)]
    ci: bool,
    /// A verdict may come so many times as late; for a machine that is slow or does other work.
    #[arg(long, default_value_t = 1)]
    patience: u64,
    /// Writes the result into docs/readiness.md.
    #[arg(long)]
    write: bool,
    /// Only lists what would be played.
    #[arg(long)]
    list: bool,
    /// Only those whose name or family contains this.
    filter: Option<String>,
}

/// A scenario under a terminal.
struct Item {
    family: String,
    scenario: Scenario,
    term: Term,
}

/// Plays, prints, and fails as the module says.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let items = select(options)?;
    let mut out = std::io::stdout().lock();
    if options.list {
        for Item { family, scenario, term } in &items {
            let steps = scenario.steps.len();
            writeln!(out, "{family}: {} ({}, {steps} steps)", scenario.name, term.as_str())?;
        }
        return Ok(());
    }
    drop(out);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let runs = runtime.block_on(play_all(items, options.jobs.max(1)))?;
    let summary = Summary::of(&runs);
    let text = format!("{}{}", summary.text(&runs)?, report::latencies(&runs));
    writeln!(std::io::stdout().lock(), "\n{text}")?;
    if options.write {
        let generated = format!("{}\n\n{text}\n{}", machine(), report::table(&runs)?);
        report::write_page(&root().join("docs/readiness.md"), &generated)?;
    }
    ensure!(summary.failures.is_empty(), "{} failures", summary.failures.len());
    let missing = summary.missing.len();
    ensure!(missing == 0 || !options.require_all, "{missing} scenarios are missing");
    Ok(())
}

fn select(options: &Options) -> anyhow::Result<Vec<Item>> {
    let mut items = Vec::new();
    for family in scenario::load(&root().join("xtask/scenarios"))? {
        for mut scenario in family.scenarios {
            for step in &mut scenario.steps {
                step.be_patient(options.patience);
            }
            let wanted = options.filter.as_ref().is_none_or(|filter| {
                scenario.name.contains(filter.as_str()) || family.title.contains(filter.as_str())
            });
            if !wanted {
                continue;
            }
            for &term in &options.term {
                if scenario.is_for(term, options.ci) {
                    let (family, scenario) = (family.title.clone(), scenario.clone());
                    items.push(Item { family, scenario, term });
                }
            }
        }
    }
    ensure!(!items.is_empty(), "no scenario fits: `--list` without a filter shows them all");
    Ok(items)
}

/// Plays what can be played, in a world that is gone when this returns.
async fn play_all(items: Vec<Item>, jobs: usize) -> anyhow::Result<Vec<Run>> {
    let path = world::search_path();
    let lacks: Vec<_> = items.iter().map(|it| lacking(&it.scenario, &path)).collect();
    let playable = items.iter().zip(&lacks).filter(|(_, lacks)| lacks.is_empty());
    let provisions: BTreeSet<_> =
        playable.flat_map(|(it, _)| it.scenario.with.iter().copied()).collect();
    let world = Arc::new(World::prepare(provisions).await?);
    let played = play_queue(items.into_iter().zip(lacks).collect(), jobs, &world).await;
    // Every worker is gone, so nobody else holds it.
    let closed = match Arc::into_inner(world) {
        Some(world) => world.close().await,
        None => Err(anyhow::anyhow!("users and servers of this run are still in use")),
    };
    let runs = played?;
    closed.context("the run left something behind")?;
    Ok(runs)
}

/// Plays in order, `jobs` at a time. Ctrl-C ends it; no player is left then.
async fn play_queue(
    items: Vec<(Item, Vec<String>)>,
    jobs: usize,
    world: &Arc<World>,
) -> anyhow::Result<Vec<Run>> {
    let count = items.len();
    let queue = Arc::new(Mutex::new(items.into_iter().enumerate()));
    let mut workers = JoinSet::new();
    for _ in 0..jobs {
        let (queue, world) = (Arc::clone(&queue), Arc::clone(world));
        workers.spawn(async move {
            let mut runs = Vec::new();
            loop {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((index, (item, lacks))) = next else { return runs };
                let start = Instant::now();
                let run = play_one(item, lacks, &world).await;
                announce(&run, index + 1, count, start.elapsed());
                runs.push((index, run));
            }
        });
    }
    let mut runs = Vec::new();
    loop {
        tokio::select! {
            worker = workers.join_next() => match worker {
                Some(worker) => runs.extend(worker?),
                None => break,
            },
            _ = tokio::signal::ctrl_c() => {
                // Their players are killed with them.
                workers.shutdown().await;
                bail!("interrupted");
            }
        }
    }
    runs.sort_by_key(|(index, _)| *index);
    Ok(runs.into_iter().map(|(_, run)| run).collect())
}

async fn play_one(item: Item, lacks: Vec<String>, world: &World) -> Run {
    let Item { family, scenario, term } = item;
    let scenario = world.fill(&scenario);
    if !lacks.is_empty() {
        return Run { family, scenario, term, result: RunResult::Missing(lacks) };
    }
    let result = match start_player(&scenario, term, world).await {
        Ok(played) => RunResult::Played(played),
        Err(error) => RunResult::Broken(format!("{error:#}")),
    };
    Run { family, scenario, term, result }
}

async fn start_player(
    scenario: &Scenario,
    term: Term,
    world: &World,
) -> anyhow::Result<Vec<Played>> {
    let mut command = if scenario.ordinary_user {
        let user = world.ordinary_user().context("this run has no users")?;
        let mut command = Command::new(world.program()?);
        command.uid(user.uid).gid(user.uid).current_dir(&user.home).env("HOME", &user.home);
        command.env("USER", &user.name).env("LOGNAME", &user.name);
        command
    } else {
        let mut command = Command::new("/proc/self/exe");
        command.env("HOME", world.home());
        command
    };
    command.arg("matrix-player").env("PATH", world.search_path()).env("LC_ALL", "C.UTF-8");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut process = command.spawn().context("cannot start a player")?;
    let assignment = Assignment { scenario: scenario.clone(), term };
    if let Some(mut stdin) = process.stdin.take() {
        stdin.write_all(&serde_json::to_vec(&assignment)?).await?;
    }
    let steps = u32::try_from(scenario.sends().count())?;
    let pauses: u64 = scenario.sends().map(|it| it.pause_ms).sum();
    let longest = Duration::from_millis(scenario.timeout_ms) * steps
        + Duration::from_millis(pauses)
        + LONGEST_END;
    let output = timeout(longest, process.wait_with_output())
        .await
        .with_context(|| format!("the player was not through after {longest:?}"))??;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the player failed: {}", said.trim());
    serde_json::from_slice(&output.stdout).context("the player's answer")
}

/// What a scenario needs and this machine or this user does not have.
fn lacking(scenario: &Scenario, path: &str) -> Vec<String> {
    let programs = scenario.needs.iter().filter(|it| world::find(it, path).is_none());
    let mut lacks: Vec<_> = programs.map(|it| format!("program {it}")).collect();
    if !scenario.with.is_empty() && !world::may_provide() {
        lacks.push("root, for users and servers".to_owned());
    }
    lacks
}

/// A line for each scenario as it ends, and what was seen at each failure.
fn announce(run: &Run, number: usize, count: usize, took: Duration) {
    let mut out = std::io::stdout().lock();
    let failures = run.failures();
    let word = match &run.result {
        RunResult::Missing(_) => "missing",
        _ if failures.is_empty() => "ok",
        _ => "FAILED",
    };
    let (name, term) = (&run.scenario.name, run.term.as_str());
    // Nobody reads it any more when this fails.
    drop(writeln!(
        out,
        "{number:>3}/{count} {word:<7} {name} ({term}), {:.1} s",
        took.as_secs_f64()
    ));
    for failure in &failures {
        drop(writeln!(out, "        {failure}"));
    }
    for judged in run.judged() {
        if let Played::Settled(seen) = judged.played
            && !judged.verdict.faults.is_empty()
        {
            drop(writeln!(out, "        state: {:?}", seen.state));
            drop(writeln!(out, "        shown: {:?}", tail(&seen.viewport)));
        }
    }
}

fn tail(viewport: &str) -> &str {
    const LONGEST: usize = 600;
    &viewport[viewport.ceil_char_boundary(viewport.len().saturating_sub(LONGEST))..]
}

/// The machine in words that name none.
fn machine() -> String {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let version: String =
        kernel.chars().take_while(|it| it.is_ascii_digit() || *it == '.').collect();
    let cores = thread::available_parallelism().map_or(0, usize::from);
    format!("Linux {version}, {cores} cores, user {}.", rustix::process::geteuid())
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}
