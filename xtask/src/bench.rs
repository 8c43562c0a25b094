//! Sessions through `ctx.terminals` beside the bare shell, alternating in one run.
//!
//! Figures are medians and ratios of medians: single times on a shared machine say little.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use agents::Agent;
use dsh_core::Cancel;
use futures_util::future;
use terminal::{
    KeyPress, KeysRequest, ReadPage, ReadRequest, ScreenSnapshot, SearchPage, SearchRequest,
    SendOperation, SendOutcome, SendRequest, SpawnRequest, TerminalRegistry, Terminals, WaitReason,
    WindowSize,
};
use testkit::host::TestHost;

use crate::{bare::Bare, full_screen, kill, output, watched};

// Only what is mentioned is linked.
use terminal_bash as _;

pub(crate) const COMPOSITION: &str = "
- name: terminal
- name: terminal-bash
  config: { timeoutMs: 120000 }
";

/// What one operation took, bare and through a session.
pub(crate) struct Row {
    name: &'static str,
    pub(crate) bare: Vec<Duration>,
    pub(crate) ours: Vec<Duration>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Opening, closing, short commands.
    Quick,
    /// Many sessions at once.
    Crowd,
    /// Much output.
    Output,
    /// The screen alone.
    Screen,
    /// Memory and responsiveness.
    Costs,
    /// Full-screen programs.
    FullScreen,
    /// Much output that is watched.
    Watched,
}

/// Measures and prints tables.
pub(crate) fn run(parts: Vec<Part>, runs: usize, slow_runs: usize) -> anyhow::Result<()> {
    // As `dsh` does, first: sessions then have control groups, and these their cost.
    subprocess::start_supervisor(subprocess::Reach::Everything)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // On a worker of the runtime, where a host's calls run too.
    runtime.block_on(async { tokio::spawn(measure(parts, runs, slow_runs)).await })?
}

async fn measure(parts: Vec<Part>, runs: usize, slow_runs: usize) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    let host = TestHost::boot(COMPOSITION).await;
    let agent = host.agent("bench");
    let mut rows = Vec::new();
    // First, while this process is small.
    if parts.contains(&Part::Costs) {
        output::costs(&host, &agent, &mut out).await?;
    }
    if parts.contains(&Part::FullScreen) {
        full_screen::costs(&host, &agent, &mut out).await?;
    }
    if parts.contains(&Part::Quick) {
        rows.extend(quick(&host, &agent, runs).await?);
    }
    if parts.contains(&Part::Crowd) {
        rows.extend(crowd(&host, &agent, slow_runs).await?);
    }
    if parts.contains(&Part::Output) {
        let files = output::Files::create()?;
        let mut pair = Pair::open(&host, &agent).await?;
        rows.extend(output::beside_bare(&mut pair, &files, slow_runs).await?);
        pair.close().await?;
    }
    if !rows.is_empty() {
        print(&mut out, &rows)?;
    }
    if parts.contains(&Part::Watched) {
        watched::measure(&host, &agent, slow_runs, &mut out).await?;
    }
    if parts.contains(&Part::Screen) {
        output::screen(&mut out, slow_runs)?;
    }
    Ok(host.dispose().await?)
}

/// One session of ours.
pub(crate) struct Session {
    terminals: Arc<TerminalRegistry>,
    agent: Arc<Agent>,
    id: String,
}

impl Session {
    pub(crate) async fn open(host: &TestHost, agent: &Arc<Agent>) -> anyhow::Result<Self> {
        let terminals = host.service::<Terminals>();
        let request = SpawnRequest { kind: "shell".to_owned(), ..SpawnRequest::default() };
        let spawned = terminals.spawn(agent, request, &Cancel::new()).await?;
        let id = spawned.session.session_id.to_string();
        Ok(Self { terminals, agent: Arc::clone(agent), id })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Types a line and does not wait.
    pub(crate) fn start(&self, text: &str) -> anyhow::Result<Arc<dyn SendOperation>> {
        let request = SendRequest {
            text: text.to_owned(),
            submit: true,
            background: false,
            cancel: Cancel::new(),
        };
        Ok(self.terminals.start_send(&self.agent, &self.id, request)?)
    }

    /// Types a line and waits for the prompt.
    pub(crate) async fn send(&self, text: &str) -> anyhow::Result<(Duration, SendOutcome)> {
        let start = Instant::now();
        let outcome = self.start(text)?.done().await?;
        let taken = start.elapsed();
        anyhow::ensure!(
            outcome.wait_reason == WaitReason::StdinRead,
            "`{text}` ended as {:?}: {}",
            outcome.wait_reason,
            outcome.viewport
        );
        Ok((taken, outcome))
    }

    /// Presses keys and waits.
    pub(crate) async fn press(&self, keys: Vec<KeyPress>) -> anyhow::Result<SendOutcome> {
        let request = KeysRequest { keys, cancel: Cancel::new() };
        Ok(self.terminals.start_keys(&self.agent, &self.id, request)?.done().await?)
    }

    pub(crate) async fn screen(&self) -> anyhow::Result<ScreenSnapshot> {
        Ok(self.terminals.screen(&self.agent, &self.id).await?)
    }

    pub(crate) async fn resize(&self, rows: u16, columns: u16) -> anyhow::Result<()> {
        let size = WindowSize { rows, columns };
        Ok(self.terminals.resize(&self.agent, &self.id, size).await?)
    }

    pub(crate) async fn read(&self, request: ReadRequest) -> anyhow::Result<ReadPage> {
        Ok(self.terminals.read(&self.agent, &self.id, request).await?)
    }

    pub(crate) async fn search(&self, request: SearchRequest) -> anyhow::Result<SearchPage> {
        Ok(self.terminals.search(&self.agent, &self.id, request).await?)
    }

    pub(crate) async fn close(self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        self.terminals.kill(&self.agent, &self.id, "done").await?;
        Ok(start.elapsed())
    }
}

/// Lines go to so many pairs in turn: two processes of one program differ by a third, by the places
/// they got in memory and caches.
const PAIRS: usize = 10;

async fn quick(host: &TestHost, agent: &Arc<Agent>, runs: usize) -> anyhow::Result<Vec<Row>> {
    let mut open = Row::new("open");
    let mut close = Row::new("close, idle");
    for _ in 0..runs.min(30) {
        let start = Instant::now();
        let bare = blocking(Bare::open).await?;
        open.bare.push(start.elapsed());
        let start = Instant::now();
        let session = Session::open(host, agent).await?;
        open.ours.push(start.elapsed());
        close.bare.push(blocking(|| bare.close()).await?);
        close.ours.push(session.close().await?);
    }

    let mut quick = Row::new("`true`");
    let mut python = Row::new("a python line");
    for _ in 0..PAIRS {
        let runs = runs.div_ceil(PAIRS);
        let mut pair = Pair::open(host, agent).await?;
        quick.extend(pair.compare("`true`", runs, "true", "dsh> ").await?.0);
        pair.bare.line("python3 -q", ">>> ")?;
        pair.session.send("python3 -q").await?;
        python.extend(pair.compare("a python line", runs, "print(2+2)", ">>> ").await?.0);
        pair.close().await?;
    }
    let kill = kill::measure(runs.min(30)).await?;
    Ok(vec![open, quick, python, kill, close])
}

/// Opens 200 at once, and closes 50 idle ones at once.
async fn crowd(host: &TestHost, agent: &Arc<Agent>, runs: usize) -> anyhow::Result<Vec<Row>> {
    const OPENED: usize = 200;
    const CLOSED: usize = 50;
    let mut open = Row::new("200 opened at once");
    let mut close = Row::new("50 idle closed at once");
    for _ in 0..runs {
        let start = Instant::now();
        let bare: Vec<_> = (0..OPENED).map(|_| blocking(Bare::open)).collect();
        let mut bare = future::try_join_all(bare).await?;
        open.bare.push(start.elapsed());
        let some = bare.split_off(OPENED - CLOSED);
        let start = Instant::now();
        future::try_join_all(some.into_iter().map(|it| blocking(|| it.close()))).await?;
        close.bare.push(start.elapsed());
        future::try_join_all(bare.into_iter().map(|it| blocking(|| it.close()))).await?;

        let start = Instant::now();
        let sessions = (0..OPENED).map(|_| Session::open(host, agent));
        let mut ours = future::try_join_all(sessions).await?;
        open.ours.push(start.elapsed());
        future::try_join_all(ours.split_off(CLOSED).into_iter().map(Session::close)).await?;
        let start = Instant::now();
        future::try_join_all(ours.into_iter().map(Session::close)).await?;
        close.ours.push(start.elapsed());
    }
    Ok(vec![open, close])
}

/// Runs what blocks where it may.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work).await?
}

/// A bare shell and a session that get the same lines.
pub(crate) struct Pair {
    bare: Bare,
    pub(crate) session: Session,
}

impl Pair {
    async fn open(host: &TestHost, agent: &Arc<Agent>) -> anyhow::Result<Self> {
        Ok(Self { bare: blocking(Bare::open).await?, session: Session::open(host, agent).await? })
    }

    async fn close(self) -> anyhow::Result<()> {
        blocking(|| self.bare.close()).await?;
        self.session.close().await?;
        Ok(())
    }

    /// Sends the same line to both, in turn; the first of each is a warm-up. The last outcome, too. Both
    /// begin on this thread: one handed over to another leaves the runtime waking threads while the
    /// session's line runs.
    pub(crate) async fn compare(
        &mut self,
        name: &'static str,
        runs: usize,
        line: &'static str,
        prompt: &'static str,
    ) -> anyhow::Result<(Row, SendOutcome)> {
        let mut row = Row::new(name);
        let mut run = 0;
        loop {
            let bare = self.bare.line(line, prompt)?;
            let (ours, outcome) = self.session.send(line).await?;
            let shown = &outcome.viewport;
            anyhow::ensure!(shown.ends_with(prompt), "no prompt in {shown:?}");
            if run > 0 {
                row.bare.push(bare);
                row.ours.push(ours);
            }
            if run >= runs {
                return Ok((row, outcome));
            }
            run += 1;
        }
    }
}

impl Row {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, bare: Vec::new(), ours: Vec::new() }
    }

    fn extend(&mut self, other: Self) {
        self.bare.extend(other.bare);
        self.ours.extend(other.ours);
    }
}

pub(crate) fn median(times: &[Duration]) -> f64 {
    let mut sorted: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn print(out: &mut impl std::io::Write, rows: &[Row]) -> anyhow::Result<()> {
    writeln!(out, "\n| operation | bare PTY, median ms | session, median ms | ratio | runs |")?;
    writeln!(out, "|---|---|---|---|---|")?;
    for row in rows {
        let (bare, ours) = (median(&row.bare), median(&row.ours));
        writeln!(
            out,
            "| {} | {:.3} | {:.3} | {:.2} | {} |",
            row.name,
            bare * 1e3,
            ours * 1e3,
            ours / bare,
            row.ours.len()
        )?;
    }
    Ok(())
}
