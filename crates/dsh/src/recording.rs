//! `dsh replay` and `dsh screenshot`: recordings of sessions.
//!
//! Guarantees: what is no recording is told before anything is printed; a replay leaves the user's
//! terminal in order, however it ends.

use std::{
    io::{IsTerminal as _, Write as _},
    path::Path,
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use asciicast::{EventKind, Recording, picture};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::{cli, failure::Failure, signals::Watch, stdout};

/// Puts right what a recording may leave of a terminal: modes, mouse, paste, both screens, colours.
const ORDER: &str = "\x1b[!p\x1b[?1049l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\
                     \x1b[?25h\x1b[0m\r\n";

/// `dsh replay`.
pub(crate) async fn replay(args: cli::Replay) -> Result<ExitCode, Failure> {
    let recording = load(&args.file)?;
    let stop = CancellationToken::new();
    let watch = Watch::begin(stop.clone())?;
    let (mut out, printing) = stdout::open();
    let (mut before, mut due) = (Duration::ZERO, Instant::now());
    for event in &recording.events {
        let idle = event.at.saturating_sub(before);
        before = event.at;
        due += args.max_idle.map_or(idle, |most| idle.min(most)).div_f64(args.speed);
        let EventKind::Output(text) = &event.kind else { continue };
        tokio::select! {
            () = sleep_until(due) => {}
            () = stop.cancelled() => break,
        }
        if !printing.wants_more(&stop).await {
            break;
        }
        out.write_all(text.as_bytes()).context("cannot print")?;
    }
    if std::io::stdout().is_terminal() {
        out.write_all(ORDER.as_bytes()).context("cannot print")?;
    }
    drop(out);
    printing.over(&stop).await.context("cannot print")?;
    Ok(match watch.end().await {
        None => ExitCode::SUCCESS,
        Some(signal) => ExitCode::from(signal.status()),
    })
}

/// `dsh screenshot`.
pub(crate) fn screenshot(args: &cli::Screenshot) -> Result<ExitCode, Failure> {
    let recording = load(&args.file)?;
    let at = args.at.unwrap_or(recording.length());
    let svg = picture(&recording, at);
    match &args.output {
        Some(path) => std::fs::write(path, svg).map_err(|error| {
            let message = format!("cannot write the picture {}: {error}", path.display());
            Failure::user(message, "give --output a file in a folder that exists")
        })?,
        None => std::io::stdout().write_all(svg.as_bytes()).context("cannot print")?,
    }
    Ok(ExitCode::SUCCESS)
}

fn load(path: &Path) -> Result<Recording, Failure> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let hint = "sessions are recorded with `dsh run --record DIR`, or `record: true` in the \
                    config of `terminal-bash`";
        Failure::user(format!("cannot read the recording {name}: {error}"), hint)
    })?;
    Recording::parse(&text).map_err(|error| Failure::user(format!("{name}: {error}"), ""))
}
