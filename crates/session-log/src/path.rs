//! Where logs are: names that are one path component each.
//!
//! The names are stable over releases: other programs and later hosts find logs by them.

use std::{
    io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use agents::{Agent, component};

use crate::LogError;

/// The folder of an agent's logs.
pub(crate) fn folder(home: &Path, agent: &Agent) -> PathBuf {
    let root = agent.workspace_root();
    home.join("sessions").join(component::of_path(root)).join(component::of_id(agent.id()))
}

/// The files of agents with this id, by workspace and number.
pub(crate) fn find(home: &Path, id: &str) -> Result<Vec<PathBuf>, LogError> {
    let mut found = Vec::new();
    for workspace in entries(&home.join("sessions"))? {
        let mut files = entries(&workspace.join(component::of_id(id)))?;
        files.retain(|it| number(it).is_some());
        files.sort_by_key(|it| number(it));
        found.extend(files);
    }
    Ok(found)
}

/// The files of all agents, in no particular order.
pub(crate) fn all(home: &Path) -> Result<Vec<PathBuf>, LogError> {
    let mut found = Vec::new();
    for workspace in entries(&home.join("sessions"))? {
        for agent in entries(&workspace)? {
            found.extend(entries(&agent)?.into_iter().filter(|it| number(it).is_some()));
        }
    }
    Ok(found)
}

/// A short name of a log, which tells nothing of the path.
pub(crate) fn short_name(home: &Path, log: &Path) -> String {
    let below = log.strip_prefix(home).unwrap_or(log);
    format!("{:016x}", component::hash(below.as_os_str().as_bytes()))
}

/// What is in a folder, sorted by name; nothing where there is no folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, LogError> {
    let read = |folder: &Path| -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            paths.push(entry?.path());
        }
        paths.sort();
        Ok(paths)
    };
    match read(folder) {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(Vec::new())
        }
        read => read.map_err(|source| LogError { path: folder.to_owned(), source }),
    }
}

/// The name of an agent's first, second … log.
pub(crate) fn file_name(number: u32) -> String {
    match number {
        1 => "session.jsonl.zstd".to_owned(),
        number => format!("session-{number}.jsonl.zstd"),
    }
}

/// Which log of its agent a file is, if it is one.
fn number(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let number = match name.strip_prefix("session")?.strip_suffix(".jsonl.zstd")? {
        "" => 1,
        rest => rest.strip_prefix('-')?.parse().ok()?,
    };
    (file_name(number) == name).then_some(number)
}
