//! The client's first root as a path.

#![expect(deprecated, reason = "roots are on their way out of MCP, and today's clients offer them")]

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use percent_encoding::percent_decode_str;
use rmcp::{RoleServer, service::Peer};
use tokio_util::sync::CancellationToken;

/// Longest wait for the client's answer: its first tool call waits for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks the client for its roots and takes the first one that is a local folder. A client that
/// does not answer in time, or whose roots are elsewhere, gets none.
pub(crate) async fn first(peer: &Peer<RoleServer>, silent: &CancellationToken) -> Option<PathBuf> {
    let asked = peer.list_roots();
    let answer = tokio::select! {
        answer = tokio::time::timeout(PATIENCE, asked) => answer,
        () = silent.cancelled() => return None,
    };
    match answer {
        Ok(Ok(answer)) => {
            let path = answer.roots.iter().find_map(|root| path(&root.uri));
            if path.is_none() {
                tracing::warn!("none of the client's roots is a folder here");
            }
            path
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, "the client did not say its roots");
            None
        }
        Err(_) => {
            tracing::warn!("the client did not answer the question for its roots in time");
            None
        }
    }
}

/// An existing local folder from a `file:` URI.
fn path(uri: &str) -> Option<PathBuf> {
    let path = decoded(uri)?;
    path.is_dir().then_some(path)
}

/// The absolute path a `file:` URI names on this machine.
fn decoded(uri: &str) -> Option<PathBuf> {
    let (scheme, rest) = uri.split_once(':')?;
    if !scheme.eq_ignore_ascii_case("file") {
        return None;
    }
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let (host, _) = rest.split_once('/')?;
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return None;
            }
            &rest[host.len()..]
        }
        None => rest,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let bytes: Vec<u8> = percent_decode_str(path).collect();
    let path = Path::new(OsStr::from_bytes(&bytes)).to_path_buf();
    (path.is_absolute() && !bytes.contains(&0)).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_uris() {
        for (uri, path) in [
            ("file:///tmp", Some("/tmp")),
            ("file:///tmp/a%20b/%C3%A9", Some("/tmp/a b/é")),
            ("FILE:///tmp", Some("/tmp")),
            ("file://localhost/tmp", Some("/tmp")),
            ("file:/tmp", Some("/tmp")),
            ("file:///tmp?x#y", Some("/tmp")),
            ("file:///a%23b", Some("/a#b")),
            ("file://elsewhere/tmp", None),
            ("file:tmp", None),
            ("file:///a%00b", None),
            ("https://example.org/tmp", None),
            ("tmp", None),
            ("", None),
        ] {
            assert_eq!(decoded(uri).as_deref(), path.map(Path::new), "{uri}");
        }
    }
}
