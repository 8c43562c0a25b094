//! What much output costs: wall time beside the bare shell, throughput of the screen, memory.
//!
//! Memory is the resident size of this process, which holds all sessions.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use agents::Agent;
use anyhow::Context as _;
use rustix::time::{ClockId, clock_gettime};
use terminal::{ReadRequest, SearchRequest, SendOutcome};
use terminal_bash::screen::{Screen, ScreenConfig};
use testkit::host::TestHost;

use crate::bench::{Pair, Row, Session, median};

const MIB: usize = 1 << 20;
/// Size of the window and of the scrollback: the defaults.
const CONFIG: ScreenConfig =
    ScreenConfig { rows: 40, cols: 160, max_lines: 10_000, max_bytes: 4 * MIB };

/// Files to print.
pub(crate) struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    pub(crate) fn create() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("folder for what is printed")?;
        let files = Self { folder };
        for (name, bytes) in
            [("text", text(50 * MIB)), ("colours", colours(50 * MIB)), ("line", line(8 * MIB))]
        {
            fs::write(files.path(name), bytes)?;
        }
        Ok(files)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Lines of prose.
fn text(bytes: usize) -> Vec<u8> {
    repeated(bytes, |n| {
        format!("{n}: the quick brown fox jumps over the lazy dog, again and again\n")
    })
}

/// The same, mostly beyond ASCII.
fn unicode(bytes: usize) -> Vec<u8> {
    repeated(bytes, |n| {
        format!("{n}: Zwölf Boxkämpfer jagen Eva über den Sylter Deich, größer — 日本語\n")
    })
}

/// What a compiler prints on a terminal.
fn colours(bytes: usize) -> Vec<u8> {
    repeated(bytes, |n| {
        format!(
            "\x1b[0m\x1b[1m\x1b[33mwarning\x1b[0m\x1b[0m\x1b[1m: unused variable: `it{n}`\x1b[0m\n\
             \x1b[0m  \x1b[0m\x1b[0m\x1b[1m\x1b[38;5;12m--> \x1b[0m\x1b[0msrc/module/file.rs:{n}:9\x1b[0m\n\
             \x1b[0m   \x1b[0m\x1b[0m\x1b[1m\x1b[38;5;12m|\x1b[0m\n"
        )
    })
}

/// One line.
fn line(bytes: usize) -> Vec<u8> {
    let mut line = b"abcdefghijklmnopqrstuvwxyz012345".repeat(bytes / 32);
    line.push(b'\n');
    line
}

fn repeated(bytes: usize, piece: impl Fn(usize) -> String) -> Vec<u8> {
    let mut all = Vec::with_capacity(bytes + 512);
    for n in 0.. {
        if all.len() >= bytes {
            break;
        }
        all.extend_from_slice(piece(n).as_bytes());
    }
    all
}

/// Wall time beside the bare shell.
pub(crate) async fn beside_bare(
    pair: &mut Pair,
    files: &Files,
    runs: usize,
) -> anyhow::Result<Vec<Row>> {
    let cat = |name: &str| format!("cat {}", files.path(name).display());
    let shown = |name: &str| fs::read_to_string(files.path(name)).map(|text| uncoloured(&text));
    let numbers: Vec<String> = (1..=1_000_000).map(|n| format!("{n}\n")).collect();
    let frames = "for n in {1..10000}; do printf '\\rprogress %d' $n; done; echo";
    let work: [(&'static str, String, String); 5] = [
        ("`seq 1 1000000`", "seq 1 1000000".to_owned(), numbers.concat()),
        ("50 MiB of text", cat("text"), shown("text")?),
        ("50 MiB in colours", cat("colours"), shown("colours")?),
        ("8 MiB in one line", cat("line"), shown("line")?),
        ("10,000 progress frames", frames.to_owned(), "progress 10000\n".to_owned()),
    ];
    let mut rows = Vec::new();
    for (name, command, output) in work {
        let begin = end_line(&pair.session).await?;
        let (row, last) = pair.compare(name, runs, command.clone().leak(), "dsh> ").await?;
        rows.push(row);
        // Each run has the command's own line, and one that is not shown warms up.
        let shown = end_line(&pair.session).await? - begin;
        let expected = (output.lines().count() as u64 + 1) * (runs as u64 + 1);
        anyhow::ensure!(shown == expected, "{name}: {shown} lines shown instead of {expected}");
        nothing_lost(&pair.session, &command, &output, &last).await.context(name)?;
    }
    Ok(rows)
}

/// The text without what colours it.
fn uncoloured(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out.push_str(piece.split_once('m').map_or(piece, |(_, text)| text));
    }
    out
}

/// What was typed and printed last is in the reply, or counted by it, and can be read.
async fn nothing_lost(
    session: &Session,
    command: &str,
    output: &str,
    last: &SendOutcome,
) -> anyhow::Result<()> {
    let most = usize::try_from(terminal_bash::Config::default().max_read_bytes)?;
    let all = format!("{command}\n{output}dsh> ");
    let (viewport, missing) = (&last.viewport, last.missing.context("a reply counts")?);
    anyhow::ensure!(last.truncated == (all.len() > most), "truncated: {}", last.truncated);
    anyhow::ensure!(all.ends_with(viewport), "the reply is not the end of what was shown");
    let counted = missing.bytes + viewport.len() as u64;
    anyhow::ensure!(counted == all.len() as u64, "{counted} of {} bytes counted", all.len());

    let lines: Vec<&str> = output.lines().collect();
    let middle = lines.len() / 2;
    // The prompt's line follows the last one.
    let number = end_line(session).await? - 1 - (lines.len() - middle) as u64;
    let line = *lines.get(middle).context("a line in the middle")?;
    let page = session.read(ReadRequest::from_line(number, 1)).await?;
    let expected = line.get(..most).unwrap_or(line);
    anyhow::ensure!(
        page.text == expected && page.truncated == (expected != line),
        "line {number} is {:?}, truncated: {}, lost: {:?}",
        page.text.get(..100).unwrap_or(&page.text),
        page.truncated,
        page.lost
    );
    Ok(())
}

/// Number of the line after the newest one.
async fn end_line(session: &Session) -> anyhow::Result<u64> {
    let page = session.read(ReadRequest::newest(0, 1)).await?;
    Ok(page.first_line.context("a page has a number")? + page.line_end)
}

/// Throughput of the screen alone, in MB per second of processor time, in reads of 64 KiB. Other
/// programs may run meanwhile.
pub(crate) fn screen(out: &mut impl std::io::Write, runs: usize) -> anyhow::Result<()> {
    writeln!(out, "\n| screen alone | MB a second of processor time |\n|---|---|")?;
    let crlf = |text: Vec<u8>| {
        let mut out = Vec::with_capacity(text.len() + text.len() / 16);
        for byte in text {
            if byte == b'\n' {
                out.push(b'\r');
            }
            out.push(byte);
        }
        out
    };
    for (name, bytes) in [
        ("plain text", crlf(text(50 * MIB))),
        ("text beyond ASCII", crlf(unicode(50 * MIB))),
        ("coloured text", crlf(colours(50 * MIB))),
        ("one line", line(50 * MIB)),
    ] {
        let mut times = Vec::new();
        for _ in 0..=runs {
            let mut screen = Screen::new(CONFIG);
            let mut events = Vec::new();
            let start = processor_time()?;
            for read in bytes.chunks(1 << 16) {
                screen.feed(read, &mut events);
            }
            times.push(processor_time()?.saturating_sub(start));
        }
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let rate = bytes.len() as f64 / 1e6 / median(&times);
        writeln!(out, "| {name} | {rate:.0} |")?;
    }
    Ok(())
}

/// What this thread has used.
fn processor_time() -> anyhow::Result<Duration> {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Ok(Duration::new(time.tv_sec.try_into()?, time.tv_nsec.try_into()?))
}

/// Memory, responsiveness, reading and searching.
pub(crate) async fn costs(
    host: &TestHost,
    agent: &Arc<Agent>,
    out: &mut impl std::io::Write,
) -> anyhow::Result<()> {
    writeln!(out, "\n| what | figure |\n|---|---|")?;
    let warm = Session::open(host, agent).await?;
    warm.close().await?;

    let before = resident()?;
    let mut sessions = Vec::new();
    for _ in 0..100 {
        sessions.push(Session::open(host, agent).await?);
    }
    let each = resident()?.saturating_sub(before) / sessions.len();
    writeln!(out, "| an idle session | {} KiB |", each >> 10)?;
    for session in sessions {
        session.close().await?;
    }

    let session = Session::open(host, agent).await?;
    let before = resident()?;
    // 400 bytes a line: both bounds of the scrollback are reached.
    let line = "x".repeat(400);
    session.send(&format!("for n in {{1..11000}}; do echo {line}; done")).await?;
    let full = resident()?.saturating_sub(before);
    writeln!(out, "| a full scrollback of 4 MiB | {:.2} MiB |", mib(full))?;

    let mut times = Vec::new();
    for _ in 0..200 {
        let start = Instant::now();
        session.read(ReadRequest::newest(5000, 500)).await?;
        times.push(start.elapsed());
    }
    writeln!(out, "| a page of 500 lines | {:.2} ms |", median(&times) * 1e3)?;
    let mut times = Vec::new();
    for _ in 0..50 {
        let start = Instant::now();
        let found = session.search(SearchRequest::new("no (such|other) line")).await?;
        anyhow::ensure!(found.matches.is_empty());
        times.push(start.elapsed());
    }
    writeln!(
        out,
        "| a search without a match, full scrollback | {:.2} ms |",
        median(&times) * 1e3
    )?;

    for command in [
        "timeout 10 yes",
        "timeout 5 cat /dev/urandom | base64 -w0",
        "head -c 1G /dev/zero | tr '\\0' x",
    ] {
        let before = resident()?;
        fs::write("/proc/self/clear_refs", "5").context("reset the peak")?;
        let (took, _) = session.send(command).await?;
        let growth = peak()?.saturating_sub(before);
        let (growth, took) = (mib(growth), took.as_secs_f64());
        writeln!(out, "| `{command}`, growth at its peak | {growth:.1} MiB, in {took:.1} s |")?;
        anyhow::ensure!(growth < 16.0, "`{command}` grew the host by {growth} MiB");
        let (_, next) = session.send("echo next").await?;
        anyhow::ensure!(next.viewport.ends_with("echo next\nnext\ndsh> "), "{}", next.viewport);
    }
    lines_to_a_reader(&session, out).await?;
    responsiveness(host, agent, &session, out).await?;
    session.close().await?;
    Ok(())
}

/// A text of many lines for a program that takes one after the other.
async fn lines_to_a_reader(session: &Session, out: &mut impl std::io::Write) -> anyhow::Result<()> {
    const LINES: u32 = 20_000;
    let folder = tempfile::tempdir().context("folder for what is typed")?;
    let file = folder.path().join("lines");
    let lines: Vec<String> = (0..LINES).map(|n| format!("{n:06} {}", "x".repeat(43))).collect();
    let text = lines.join("\n");
    session.send(&format!("cat > {}", file.display())).await?;
    let (took, _) = session.send(&text).await?;
    session.send("\u{4}").await?;
    anyhow::ensure!(fs::read_to_string(&file)?.trim_end() == text, "lines were lost");
    let (each, took) = ((took / LINES).as_micros(), took.as_secs_f64());
    writeln!(out, "| 20,000 lines typed to `cat` | {took:.2} s, {each} µs each |")?;
    Ok(())
}

/// How long a `true` takes while 200 other sessions print.
async fn responsiveness(
    host: &TestHost,
    agent: &Arc<Agent>,
    session: &Session,
    out: &mut impl std::io::Write,
) -> anyhow::Result<()> {
    let quick = async |runs| -> anyhow::Result<f64> {
        let mut times = Vec::new();
        for _ in 0..runs {
            times.push(session.send("true").await?.0);
        }
        Ok(median(&times))
    };
    let idle = quick(50).await?;
    let mut printing = Vec::new();
    for _ in 0..200 {
        let other = Session::open(host, agent).await?;
        let line = "x".repeat(60);
        let command = format!(
            "exec 9<> <(:); while :; do for n in {{1..20}}; do echo {line}; done; read -t .1 -u 9; done"
        );
        let operation = other.start(&command)?;
        printing.push((other, operation));
    }
    let busy = quick(50).await?;
    writeln!(
        out,
        "| `true` while 200 sessions print 200 lines a second each | {:.2} ms, {:.1} times idle |",
        busy * 1e3,
        busy / idle
    )?;
    for (other, _) in printing {
        other.close().await?;
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn mib(bytes: usize) -> f64 {
    bytes as f64 / MIB as f64
}

pub(crate) fn resident() -> anyhow::Result<usize> {
    status("VmRSS:")
}

fn peak() -> anyhow::Result<usize> {
    status("VmHWM:")
}

fn status(name: &str) -> anyhow::Result<usize> {
    let status = fs::read_to_string(Path::new("/proc/self/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no such field")?;
    let kib: usize = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib << 10)
}
