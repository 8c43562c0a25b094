//! The runs of the past, as far as their logs tell.
//!
//! Guarantee: an id is compared with those of the logs there are, and never becomes part of a path.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::Deserialize;

use crate::{LogError, path, read::visit_text};

/// One log: the run of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedRun {
    /// Short and opaque; the same for as long as the log stays where it is.
    pub id: String,
    /// Id of the agent.
    pub agent: String,
    /// When it began, in milliseconds since the epoch.
    pub created_at: u64,
    /// How many tools it called.
    pub calls: u64,
}

/// The first line of a log.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    id: String,
    created_at: u64,
}

/// Of an event, what says its type.
#[derive(Deserialize)]
struct Typed {
    #[serde(rename = "type")]
    kind: String,
}

/// The newest runs, newest first. A log that cannot be read as one is left out, and said to the log
/// of the host.
pub(crate) fn newest(home: &Path, most: usize) -> Result<Vec<LoggedRun>, LogError> {
    let mut logs: Vec<(SystemTime, PathBuf)> = Vec::new();
    for log in path::all(home)? {
        let written = fs::metadata(&log).and_then(|it| it.modified());
        logs.push((written.unwrap_or(SystemTime::UNIX_EPOCH), log));
    }
    logs.sort();
    let mut runs = Vec::new();
    for (_, log) in logs.iter().rev().take(most) {
        match run(home, log) {
            Ok(run) => runs.push(run),
            Err(error) => tracing::warn!(log = %log.display(), %error, "a log is left out"),
        }
    }
    runs.sort_by_key(|run| std::cmp::Reverse(run.created_at));
    Ok(runs)
}

/// The log with this id.
pub(crate) fn find(home: &Path, id: &str) -> Result<Option<PathBuf>, LogError> {
    Ok(path::all(home)?.into_iter().find(|log| path::short_name(home, log) == id))
}

fn run(home: &Path, log: &Path) -> io::Result<LoggedRun> {
    let mut header: Option<Header> = None;
    let mut calls = 0;
    visit_text(log, |line| {
        if header.is_none() {
            header = Some(serde_json::from_slice(line)?);
        } else if serde_json::from_slice::<Typed>(line)?.kind == "tool/call" {
            calls += 1;
        }
        Ok(())
    })?;
    let Header { id: agent, created_at } = header.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(LoggedRun { id: path::short_name(home, log), agent, created_at, calls })
}
