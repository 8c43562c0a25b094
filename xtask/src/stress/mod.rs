//! `cargo xtask stress`: programs that do anything at random and then wait, in every way there is.
//!
//! The program (`victim.py`) writes down when it goes to wait and what it printed ([`figures`]).
//! The run fails when a verdict came before a wait, a wait was not found, or output is missing. The
//! same seed makes the same programs.

mod figures;

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    thread,
};

use agents::Agent;
use anyhow::{Context as _, ensure};
use dsh_core::Cancel;
use rustix::time::{ClockId, clock_gettime};
use terminal::{SendRequest, SpawnRequest, TerminalRegistry, Terminals, WaitReason};
use testkit::host::TestHost;

use figures::{Answer, Cycle, Figures, Truth, judge};

// Only what is mentioned is linked.
use terminal_bash as _;

const VICTIM: &str = include_str!("victim.py");
const WAYS: [&str; 8] = ["read", "poll", "select", "epoll", "dup", "tty", "thread", "io_uring"];
const MODES: [&str; 2] = ["cooked", "raw"];
const COMPOSITION: &str = "
- name: terminal
- name: terminal-bash
  config: { timeoutMs: 20000 }
";

/// Waits that a victim may fail to be found in before it is given up.
const MOST_NOT_FOUND: usize = 5;

/// How much to play.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Waits over all ways and modes.
    #[arg(long, default_value_t = 1600)]
    cycles: usize,
    /// Two processes on each core compute meanwhile.
    #[arg(long)]
    load: bool,
    /// Makes the same programs again; random when not given.
    #[arg(long)]
    seed: Option<u32>,
    /// Only this way to wait.
    #[arg(long)]
    way: Option<String>,
}

/// A program to play.
struct Victim {
    way: &'static str,
    mode: &'static str,
    seed: u64,
    cycles: usize,
}

/// Plays, prints, and fails as the module says.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let seed = options.seed.unwrap_or_else(|| u32::try_from(now_ns() % 1_000_000).unwrap_or(1));
    let ways = WAYS.into_iter().filter(|it| options.way.as_deref().is_none_or(|way| way == *it));
    let kinds: Vec<_> = ways.flat_map(|way| MODES.map(|mode| (way, mode))).collect();
    ensure!(!kinds.is_empty(), "no such way: give one of {}", WAYS.join(", "));
    let cycles = options.cycles.div_ceil(kinds.len());
    let victims = kinds.into_iter().zip(u64::from(seed)..);
    let victims: Vec<_> =
        victims.map(|((way, mode), seed)| Victim { way, mode, seed, cycles }).collect();
    writeln!(std::io::stdout().lock(), "seed {seed}, {cycles} cycles for each program")?;
    let load = options.load.then(Load::start).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // On a worker of the runtime, where a host's calls run too.
    let figures = runtime.block_on(async { tokio::spawn(play(victims)).await })??;
    drop(load);
    print(&figures)?;
    let wrong: usize = figures.values().map(Figures::wrong).sum();
    let played: usize = figures.values().map(|it| it.cycles).sum();
    ensure!(wrong == 0, "{wrong} of {played} cycles went wrong; seed {seed} makes them again");
    Ok(())
}

async fn play(
    victims: Vec<Victim>,
) -> anyhow::Result<BTreeMap<(&'static str, &'static str), Figures>> {
    let host = TestHost::boot(COMPOSITION).await;
    let agent = host.agent("stress");
    let scratch = tempfile::tempdir()?;
    let script = scratch.path().join("victim.py");
    fs::write(&script, VICTIM)?;
    let mut all = BTreeMap::new();
    for victim in victims {
        let mut session = Session::open(&host, &agent).await?;
        let figures = session.play(&victim, &script).await;
        session.close().await?;
        let name = format!("{} {}, seed {}", victim.way, victim.mode, victim.seed);
        all.insert((victim.way, victim.mode), figures.context(name)?);
    }
    host.dispose().await?;
    Ok(all)
}

/// A session and the truth of the program in it.
struct Session {
    terminals: Arc<TerminalRegistry>,
    agent: Arc<Agent>,
    id: String,
    truth: Option<BufReader<fs::File>>,
}

impl Session {
    async fn open(host: &TestHost, agent: &Arc<Agent>) -> anyhow::Result<Self> {
        let terminals = host.service::<Terminals>();
        let request = SpawnRequest { kind: "shell".to_owned(), ..SpawnRequest::default() };
        let spawned = terminals.spawn(agent, request, &Cancel::new()).await?;
        let id = spawned.session.session_id.to_string();
        Ok(Self { terminals, agent: Arc::clone(agent), id, truth: None })
    }

    async fn close(self) -> anyhow::Result<()> {
        self.terminals.kill(&self.agent, &self.id, "the program is done").await?;
        Ok(())
    }

    async fn play(&mut self, victim: &Victim, script: &Path) -> anyhow::Result<Figures> {
        let Victim { way, mode, seed, cycles } = victim;
        let truth = script.with_file_name(format!("{way}-{mode}"));
        fs::write(&truth, "")?;
        self.truth = Some(BufReader::new(fs::File::open(&truth)?));
        let start = format!("python3 {} {way} {mode} {seed} {}", script.display(), truth.display());
        let mut figures = Figures::default();
        let mut answer = self.send(&start).await?;
        let mut said = self.read_truth()?;
        ensure!(said.is_some(), "it did not start: {}", answer.viewport);
        for number in 1..=*cycles {
            let typed = number.to_string();
            answer = self.send(&typed).await?;
            said = self.read_truth()?.filter(|it| it.after == number as u64);
            let cycle = judge(&typed, *mode == "cooked", &answer, said.as_ref());
            figures.add(&cycle, &answer.evidence);
            if matches!(cycle, Cycle::Found { .. }) {
                continue;
            }
            tell(victim, number, &cycle, &answer, said.as_ref())?;
            // Nobody knows what a program reads next that was called ready too early.
            if cycle == Cycle::Premature || figures.not_found >= MOST_NOT_FOUND {
                break;
            }
        }
        Ok(figures)
    }

    async fn send(&self, text: &str) -> anyhow::Result<Answer> {
        let request = SendRequest {
            text: text.to_owned(),
            submit: true,
            background: false,
            cancel: Cancel::new(),
        };
        let outcome = self.terminals.start_send(&self.agent, &self.id, request)?.done().await?;
        let at_ns = now_ns();
        ensure!(outcome.wait_reason != WaitReason::SessionExit, "the session ended");
        let evidence = outcome.state.map(|it| serde_json::to_value(it.evidence)).transpose()?;
        let evidence = evidence.as_ref().and_then(|it| it.as_str()).unwrap_or("unknown");
        Ok(Answer {
            reason: outcome.wait_reason,
            evidence: evidence.to_owned(),
            viewport: outcome.viewport,
            at_ns,
        })
    }

    /// The newest thing that the program said, when it said something since the last call.
    fn read_truth(&mut self) -> anyhow::Result<Option<Truth>> {
        let file = self.truth.as_mut().context("no truth")?;
        let (mut line, mut newest) = (String::new(), None);
        while file.read_line(&mut line)? > 0 {
            newest = Some(serde_json::from_str(&line)?);
            line.clear();
        }
        Ok(newest)
    }
}

/// What to look at when a cycle went wrong.
fn tell(
    victim: &Victim,
    number: usize,
    cycle: &Cycle,
    answer: &Answer,
    truth: Option<&Truth>,
) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{} {}, seed {}, cycle {number}: {cycle:?}, {} by {}",
        victim.way,
        victim.mode,
        victim.seed,
        answer.reason.as_str(),
        answer.evidence
    )?;
    let start = |text: &str| text.chars().take(200).collect::<String>();
    writeln!(out, "  shown   {:?}", start(&answer.viewport))?;
    writeln!(out, "  printed {:?}", truth.map(|it| start(&it.printed)))
}

fn print(figures: &BTreeMap<(&str, &str), Figures>) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "\n| way | mode | cycles | premature | not found | output lost | median ms | 99 % within ms | all within ms | evidence |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|---|---|")?;
    let mut sum = Figures::default();
    for ((way, mode), figures) in figures {
        row(&mut out, way, mode, figures)?;
        sum.merge(figures);
    }
    row(&mut out, "all", "", &sum)
}

fn row(
    out: &mut impl std::io::Write,
    way: &str,
    mode: &str,
    figures: &Figures,
) -> std::io::Result<()> {
    let evidence: Vec<_> =
        figures.evidence.iter().map(|(name, count)| format!("{name} {count}")).collect();
    writeln!(
        out,
        "| {way} | {mode} | {} | {} | {} | {} | {:.2} | {:.2} | {:.2} | {} |",
        figures.cycles,
        figures.premature,
        figures.not_found,
        figures.lost,
        figures.within(500),
        figures.within(990),
        figures.within(1000),
        evidence.join(", ")
    )
}

/// Processes that compute until this is dropped.
struct Load(Vec<Child>);

impl Load {
    fn start() -> anyhow::Result<Self> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let mut load = Self(Vec::new());
        for _ in 0..2 * cores {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
            load.0.push(command.spawn()?);
        }
        Ok(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for process in &mut self.0 {
            // What is gone already needs no signal, and its status says nothing.
            if process.kill().is_ok() {
                drop(process.wait());
            }
        }
    }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
