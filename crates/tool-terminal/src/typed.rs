//! What was typed where the terminal would not show it, so that no card shows it either.
//!
//! Holds hashes under a key of this process, never a text. Bounded: the oldest knowledge goes.

use std::{
    collections::{HashSet, VecDeque},
    hash::{BuildHasher as _, RandomState},
    sync::Mutex,
};

use dsh_core::lock;

/// Most texts remembered.
const MOST: usize = 4096;

/// Texts that were typed unseen, and sessions that ask for one.
#[derive(Default)]
pub(crate) struct Typed {
    hasher: RandomState,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    unseen: VecDeque<u64>,
    asking: HashSet<String>,
}

impl Typed {
    /// Takes note of a finished send: whether its text was shown, and whether the session now
    /// reads without echo.
    pub(crate) fn note(&self, session: &str, text: &str, echoed: bool, asks_unseen: bool) {
        let hash = self.hash(session, text);
        let mut state = lock(&self.state);
        if echoed {
            state.unseen.retain(|it| *it != hash);
        } else if !state.unseen.contains(&hash) {
            if state.unseen.len() == MOST {
                state.unseen.pop_front();
            }
            state.unseen.push_back(hash);
        }
        if !asks_unseen {
            state.asking.remove(session);
        } else if state.asking.len() < MOST {
            state.asking.insert(session.to_owned());
        }
    }

    /// Whether this text was typed unseen.
    pub(crate) fn was_unseen(&self, session: &str, text: &str) -> bool {
        let hash = self.hash(session, text);
        lock(&self.state).unseen.contains(&hash)
    }

    /// Whether the session was reading without echo when its last send ended.
    pub(crate) fn asks_unseen(&self, session: &str) -> bool {
        lock(&self.state).asking.contains(session)
    }

    fn hash(&self, session: &str, text: &str) -> u64 {
        self.hasher.hash_one((session, text))
    }
}
