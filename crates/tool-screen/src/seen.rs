//! Screens that a model was shown, by their hashes, so that it can be told what has changed since.
//!
//! Bounded: of all sessions together the newest are kept.

use std::{collections::VecDeque, sync::Mutex};

use dsh_core::lock;
use terminal::ScreenSnapshot;

/// Most screens remembered.
const MOST: usize = 256;

/// Hashes of a screen's rows, by session and hash of the whole.
#[derive(Default)]
pub(crate) struct Seen(Mutex<VecDeque<(String, String, Vec<u64>)>>);

impl Seen {
    /// Takes note of a screen that is shown.
    pub(crate) fn note(&self, session: &str, shown: &ScreenSnapshot) {
        let hash = format!("{:016x}", shown.hash());
        let mut seen = lock(&self.0);
        seen.retain(|it| (it.0.as_str(), it.1.as_str()) != (session, hash.as_str()));
        if seen.len() == MOST {
            seen.pop_front();
        }
        seen.push_back((session.to_owned(), hash, shown.row_hashes()));
    }

    /// The rows of the screen that had this hash; none when it is not known any more.
    pub(crate) fn rows(&self, session: &str, hash: &str) -> Option<Vec<u64>> {
        let seen = lock(&self.0);
        let found = seen.iter().find(|it| (it.0.as_str(), it.1.as_str()) == (session, hash));
        found.map(|it| it.2.clone())
    }
}
