//! What was typed where the terminal would not show it, so that no card shows it either.
//!
//! Holds hashes under a key of this process, never a text. Bounded: the oldest knowledge goes.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, Mutex, Weak},
};

use dsh_core::lock;
use terminal::{SendOperation, Shown};

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
    /// What is being typed into a session that nobody waits for, and the hash of its text.
    sending: HashMap<String, (u64, Weak<dyn SendOperation>)>,
}

impl Typed {
    /// Takes note of a send that goes on in the background. How it is typed is asked of it for as
    /// long as it is there.
    pub(crate) fn follow(&self, session: &str, text: &str, operation: &Arc<dyn SendOperation>) {
        let sending = (self.hash(session, text), Arc::downgrade(operation));
        let mut state = lock(&self.state);
        state.sending.retain(|_, (_, operation)| operation.strong_count() > 0);
        state.sending.insert(session.to_owned(), sending);
    }

    /// Takes note of a finished send: whether its text was shown, and whether the session now
    /// reads without echo.
    pub(crate) fn note(&self, session: &str, text: &str, echoed: bool, asks_unseen: bool) {
        self.note_text(session, text, echoed);
        let mut state = lock(&self.state);
        if !asks_unseen {
            state.asking.remove(session);
        } else if state.asking.len() < MOST {
            state.asking.insert(session.to_owned());
        }
    }

    /// Takes note of a send without an outcome. A text that is not known to have been shown may
    /// have been typed unseen.
    pub(crate) fn note_failure(&self, session: &str, text: &str, shown: Shown) {
        self.note_text(session, text, !shown.hidden && shown.bytes >= text.len());
    }

    fn note_text(&self, session: &str, text: &str, echoed: bool) {
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
    }

    /// Whether this text was typed unseen, or is being so in the background.
    pub(crate) fn was_unseen(&self, session: &str, text: &str) -> bool {
        let hash = self.hash(session, text);
        let state = lock(&self.state);
        let sending = state.sending.get(session).filter(|(of, _)| *of == hash);
        let operation = sending.and_then(|(_, operation)| operation.upgrade());
        let known = state.unseen.contains(&hash);
        drop(state);
        known || operation.is_some_and(|it| it.shown().hidden)
    }

    /// Whether the session was reading without echo when its last send ended.
    pub(crate) fn asks_unseen(&self, session: &str) -> bool {
        lock(&self.state).asking.contains(session)
    }

    fn hash(&self, session: &str, text: &str) -> u64 {
        self.hasher.hash_one((session, text))
    }
}
