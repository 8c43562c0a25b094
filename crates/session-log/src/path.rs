//! Where logs are: names that are one path component each.
//!
//! The names are stable over releases: other programs and later hosts find logs by them.

use std::{
    io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use agents::Agent;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::LogError;

/// Everything but letters, digits, `-`, `_` and `.`.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
/// Bytes of an encoded name, the hash apart.
const MAX_NAME: usize = 64;

/// The folder of an agent's logs.
pub(crate) fn folder(home: &Path, agent: &Agent) -> PathBuf {
    let root = agent.workspace_root().as_os_str().as_bytes();
    home.join("sessions").join(hashed(root)).join(agent_name(agent.id()))
}

/// The files of agents with this id, by workspace and number.
pub(crate) fn find(home: &Path, id: &str) -> Result<Vec<PathBuf>, LogError> {
    let mut found = Vec::new();
    for workspace in entries(&home.join("sessions"))? {
        let mut files = entries(&workspace.join(agent_name(id)))?;
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
    format!("{:016x}", fnv1a(below.as_os_str().as_bytes()))
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

/// The id itself where it is a harmless file name, else as [`hashed`].
fn agent_name(id: &str) -> String {
    let harmless = !id.starts_with('.')
        && id.len() <= MAX_NAME
        && percent_encode(id.as_bytes(), ESCAPED).eq([id]);
    if harmless { id.to_owned() } else { hashed(id.as_bytes()) }
}

/// Percent-encoded, cut to its end, which tells paths apart best, plus a hash of the whole. Never
/// a special or hidden name: it does not start with a dot.
fn hashed(bytes: &[u8]) -> String {
    let encoded = percent_encode(bytes, ESCAPED).to_string();
    let mut start = encoded.len().saturating_sub(MAX_NAME);
    // Not inside of a `%2F`.
    if start > 0 {
        for back in 1..=2 {
            if encoded.as_bytes().get(start - back) == Some(&b'%') {
                start += 3 - back;
                break;
            }
        }
    }
    let name = encoded.get(start..).unwrap_or_default();
    let (dot, name) = name.strip_prefix('.').map_or(("", name), |rest| ("%2E", rest));
    format!("{dot}{name}-{:016x}", fnv1a(bytes))
}

/// FNV-1a, 64 bits: fixed for ever, unlike the hashers of the standard library.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_component_and_never_change() {
        let table = [
            ("main", "main"),
            ("a-b_c.d", "a-b_c.d"),
            ("..", "%2E.-07da1a07b4a03f2d"),
            (".x", "%2Ex-07da4407b4a0868b"),
            ("a/b", "a%2Fb-e620c3190468cf61"),
            ("a%2Fb", "a%252Fb-f09212efbcdd6ebf"),
            ("é", "%C3%A9-0ac21707b7181e01"),
        ];
        for (id, name) in table {
            assert_eq!(agent_name(id), name, "{id}");
        }
        assert_eq!(hashed(b"/home/u/p"), "%2Fhome%2Fu%2Fp-7ca9541b13084e72");
    }

    #[test]
    fn long_names_are_cut_between_escapes() {
        for pad in 0..4 {
            let path = format!("{}{}", "x".repeat(pad), "/é".repeat(40));
            let name = hashed(path.as_bytes());
            let (shown, hash) = name.rsplit_once('-').unwrap();
            assert!(shown.len() <= MAX_NAME && shown.len() > MAX_NAME - 3, "{name}");
            assert_eq!(hash.len(), 16);
            let decoded: Vec<u8> = percent_encoding::percent_decode_str(shown).collect();
            assert!(path.as_bytes().ends_with(&decoded), "{name}");
        }
        let long = "a".repeat(300);
        assert_eq!(agent_name(&long).len(), MAX_NAME + 17);
        assert_ne!(agent_name(&long), agent_name(&"a".repeat(301)));
    }
}
