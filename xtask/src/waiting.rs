//! How soon a wait is found after the program has blocked, and what waiting costs.
//!
//! The victim notes the time in a file right before it blocks, so a latency holds the note, the system
//! call and all of ours. A verdict before the note is an error, not a latency. Who reads a bare
//! pseudo-terminal sees the prompt, perhaps before the note, and never that somebody waits.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use agents::Agent;
use anyhow::{Context as _, ensure};
use futures_util::future::try_join_all;
use rustix::time::{ClockId, clock_gettime};
use testkit::host::TestHost;

use crate::{
    bare::Bare,
    bench::{COMPOSITION, Session, blocking},
    matrix::{find, search_path},
};

const VICTIM: &str = r"
import os, random, select, socket, struct, sys, time, tty
how, log = sys.argv[1], os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)
least, most = map(float, sys.argv[3:])
here, there = socket.socketpair()
if how == 'select': tty.setcbreak(0)
while True:
    os.write(1, b'victim> ')
    if most: time.sleep(random.uniform(least, most))
    os.pwrite(log, struct.pack('q', time.monotonic_ns()), 0)
    if how == 'select': select.select([0, here], [], [])
    if not os.read(0, 999): break
    if how == 'select': os.write(1, b'\r\n')
";

/// Longest time from a prompt to the note that comes with it.
const LONGEST_NOTE: Duration = Duration::from_secs(10);

/// A way to wait.
#[derive(Clone, Copy)]
struct Class {
    name: &'static str,
    how: &'static str,
    /// Silence between the prompt and the wait, in seconds: least and most.
    silence: (f64, f64),
    /// A program between the victim and the session, and how it is called.
    relay: Option<(&'static str, &'static str)>,
    /// Whether others wait meanwhile.
    beside: bool,
    /// Each silent run takes as long as its silence, and sessions at once would share their looks.
    most_runs: usize,
}

/// At a prompt, for a single reader.
const EXACT: Class = Class {
    name: "exact, at a prompt",
    how: "read",
    silence: (0.0, 0.0),
    relay: None,
    beside: false,
    most_runs: usize::MAX,
};

const fn silent(name: &'static str, least: f64, most: f64, most_runs: usize) -> Class {
    Class { name, silence: (least, most), most_runs, ..EXACT }
}

const fn behind(name: &'static str, program: &'static str, call: &'static str) -> Class {
    Class { name, relay: Some((program, call)), ..EXACT }
}

const CLASSES: [Class; 11] = [
    EXACT,
    Class { name: "exact, while others wait", beside: true, ..EXACT },
    silent("exact, after up to 1 s of silence", 0.2, 1.0, 100),
    silent("exact, after 1 to 2 s of silence", 1.0, 2.0, 100),
    silent("exact, after 2 to 4 s of silence", 2.0, 4.0, 10),
    Class { name: "known", how: "select", ..EXACT },
    behind("behind `script`", "script", "script -qc '{victim}' /dev/null"),
    behind(
        "behind tmux",
        "tmux",
        "tmux -S {folder}/tmux -f /dev/null new '{victim}' ';' set status off",
    ),
    behind(
        "behind GNU screen",
        "screen",
        "mkdir -m 700 {folder}/screen; SCREENDIR={folder}/screen screen -q -c /dev/null {victim}",
    ),
    behind("behind socat", "socat", "socat -,raw,echo=0 'EXEC:{victim},pty,setsid,ctty,stderr'"),
    behind("behind expect", "expect", "expect -c 'spawn -noecho {victim}; interact'"),
];

/// Measures and prints both tables.
pub(crate) fn run(runs: usize, sessions: usize, seconds: u64) -> anyhow::Result<()> {
    for (program, _) in CLASSES.iter().filter_map(|it| it.relay) {
        ensure!(find(program, &search_path()).is_some(), "{program} is not installed");
    }
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
        "| found after it blocked | bare PTY sees the prompt, median ms | session, median ms | 90 % | 99 % | worst | runs |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|")?;
    for class in CLASSES {
        let bench = Bench { host: &host, agent: &agent, folder: folder.clone(), class };
        let ours = bench.ours(runs, sessions).await.context(class.name)?;
        let bare = if class.relay.is_some() || class.silence.1 > 0.0 || class.beside {
            "–".to_owned()
        } else {
            format!("{:.2}", at(&bench.bare(runs).await.context(class.name)?, 50))
        };
        let (median, p90, worst) = (at(&ours, 50), at(&ours, 90), at(&ours, 100));
        // Of fewer, it would be the worst.
        let p99 = if ours.len() < 100 { "–".to_owned() } else { format!("{:.2}", at(&ours, 99)) };
        writeln!(
            out,
            "| {} | {bare} | {median:.2} | {p90:.2} | {p99} | {worst:.2} | {} |",
            class.name,
            ours.len()
        )?;
    }
    writeln!(
        out,
        "\n| waiting in `sleep {seconds}` | bare PTY, % of a core | sessions, % of a core |"
    )?;
    writeln!(out, "|---|---|---|")?;
    for count in [1, sessions] {
        // Hardly anything, so a part of the time tells as much.
        let bare = bare_cost(count, seconds.div_ceil(3)).await?;
        let ours = cost(&host, &agent, count, seconds).await?;
        writeln!(out, "| {count} | {bare:.2} | {ours:.2} |")?;
    }
    host.dispose().await?;
    Ok(())
}

/// What one class is measured with.
struct Bench<'a> {
    host: &'a TestHost,
    agent: &'a Arc<Agent>,
    folder: PathBuf,
    class: Class,
}

impl Bench<'_> {
    fn command(&self, stamp: &Path) -> String {
        let Class { how, silence: (least, most), relay, .. } = self.class;
        let (folder, stamp) = (self.folder.display(), stamp.display());
        let victim = format!("python3 {folder}/victim.py {how} {stamp} {least} {most}");
        let call = relay.map_or("{victim}", |(_, call)| call);
        call.replace("{victim}", &victim).replace("{folder}", &folder.to_string())
    }

    /// An empty file for notes.
    fn stamp(&self) -> anyhow::Result<PathBuf> {
        let stamp = self.folder.join("stamp");
        std::fs::write(&stamp, [])?;
        Ok(stamp)
    }

    /// Milliseconds from the victim's note to the verdict, sorted.
    async fn ours(&self, runs: usize, sessions: usize) -> anyhow::Result<Vec<f64>> {
        let mut others = Vec::new();
        for _ in 0..if self.class.beside { sessions } else { 0 } {
            let session = Session::open(self.host, self.agent).await?;
            let waits = session.start("sleep 100")?;
            others.push((session, waits));
        }
        let measured = self.latencies(runs.min(self.class.most_runs)).await;
        try_join_all(others.into_iter().map(|(session, _)| session.close())).await?;
        let mut found = measured?;
        found.sort_by(f64::total_cmp);
        Ok(found)
    }

    async fn latencies(&self, runs: usize) -> anyhow::Result<Vec<f64>> {
        let stamp = self.stamp()?;
        let session = Session::open(self.host, self.agent).await?;
        session.send(&self.command(&stamp)).await?;
        let mut found = Vec::new();
        for _ in 0..runs {
            let before = noted(&stamp)?;
            let (_, outcome) = session.send("x").await?;
            let verdict = nanoseconds(ClockId::Monotonic);
            let shown = outcome.viewport.trim_end();
            ensure!(shown.ends_with("victim>"), "no prompt at the end of {shown:?}");
            let note = noted(&stamp)?.filter(|it| Some(*it) != before && *it <= verdict);
            let note = note.context("premature: a verdict before the program went to wait")?;
            found.push(millis(verdict - note));
        }
        session.close().await?;
        Ok(found)
    }

    /// Milliseconds from the victim's note to the sight of its prompt, sorted; less than nothing
    /// where the prompt was seen before.
    async fn bare(&self, runs: usize) -> anyhow::Result<Vec<f64>> {
        let stamp = self.stamp()?;
        let command = self.command(&stamp);
        blocking(move || {
            let mut bare = Bare::open()?;
            bare.line(&command, "victim> ")?;
            let mut note = next_note(&stamp, None)?;
            let mut seen = Vec::new();
            for _ in 0..runs {
                bare.line("x", "victim> ")?;
                let prompt = nanoseconds(ClockId::Monotonic);
                note = next_note(&stamp, Some(note))?;
                let since = prompt.checked_sub(note).map(millis);
                seen.push(since.unwrap_or_else(|| -millis(note - prompt)));
            }
            bare.close()?;
            seen.sort_by(f64::total_cmp);
            Ok(seen)
        })
        .await
    }
}

/// The victim's last note, in nanoseconds.
fn noted(stamp: &Path) -> anyhow::Result<Option<u64>> {
    let note = std::fs::read(stamp)?;
    let note = note.first_chunk().map(|it| i64::from_ne_bytes(*it));
    Ok(note.map(u64::try_from).transpose()?)
}

/// The first note that is not `last`.
fn next_note(stamp: &Path, last: Option<u64>) -> anyhow::Result<u64> {
    let start = Instant::now();
    loop {
        match noted(stamp)? {
            Some(note) if Some(note) != last => return Ok(note),
            _ => ensure!(start.elapsed() < LONGEST_NOTE, "the program went never to wait"),
        }
        std::thread::sleep(Duration::from_micros(50));
    }
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

/// The least of the sorted values that so many per cent of them do not exceed.
fn at(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::at;

    #[test]
    fn so_many_per_cent_is_the_nearest_rank() {
        let to = |last: u32| (1..=last).map(f64::from).collect::<Vec<_>>();
        let ranks = |last| [50, 90, 99, 100].map(|percent| at(&to(last), percent).to_string());
        assert_eq!(ranks(10), ["5", "9", "10", "10"]);
        assert_eq!(ranks(100), ["50", "90", "99", "100"]);
        assert_eq!(ranks(1), ["1", "1", "1", "1"]);
        assert!(at(&[], 99).is_nan());
    }
}
