//! How fast the screen takes bytes, in MB/s, for several kinds of output.
//!
//! `cargo run --release -p terminal-bash --example screen_throughput`

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};
use terminal_bash::screen::{Screen, ScreenConfig};

const CONFIG: ScreenConfig =
    ScreenConfig { rows: 40, cols: 160, max_lines: 10_000, max_bytes: 4 << 20 };

/// Bytes of one read from a terminal.
const READ: usize = 16 * 1024;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for (name, bytes) in streams() {
        let rate = throughput(bytes.as_bytes());
        writeln!(out, "{name:<28} {rate:>7.0} MB/s")?;
    }
    Ok(())
}

fn streams() -> Vec<(&'static str, String)> {
    let mut numbers = String::new();
    let mut text = String::new();
    let mut colours = String::new();
    for n in 0..400_000 {
        let _ = write!(numbers, "{n}\r\n");
    }
    for n in 0..100_000 {
        let _ = write!(
            text,
            "{n:>6} a line of plain text as a build or a log prints it, of usual length\r\n"
        );
        let _ = write!(
            colours,
            "\x1b[0m\x1b[1m\x1b[33mwarning\x1b[0m\x1b[1m: unused variable `x{n}`\x1b[0m\r\n \x1b[1m\x1b[34m--> \
             \x1b[0msrc/main.rs:{n}:9\x1b[K\r\n"
        );
    }
    let mut progress = String::new();
    for n in 0..400_000 {
        let _ = write!(progress, "\r\x1b[Kprogress {}%", n % 101);
    }
    vec![
        ("numbers", numbers),
        ("plain text", text),
        ("coloured text", colours),
        ("one endless line", "abcdefghijklmnopqrstuvwxyz0123456789".repeat(250_000)),
        ("latin text", "Äpfel, Öl und Übermut für größere Flöße\r\n".repeat(100_000)),
        ("wide text", "端末の画面に表示される文字列です\r\n".repeat(100_000)),
        ("progress", progress),
    ]
}

fn throughput(bytes: &[u8]) -> f64 {
    let mut screen = Screen::new(CONFIG);
    let mut events = Vec::new();
    let (mut fed, begin) = (0, Instant::now());
    while begin.elapsed() < Duration::from_millis(500) {
        for read in bytes.chunks(READ) {
            screen.feed(read, &mut events);
        }
        events.clear();
        fed += bytes.len();
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate to look at")]
    let megabytes = fed as f64 / 1e6;
    megabytes / begin.elapsed().as_secs_f64()
}
