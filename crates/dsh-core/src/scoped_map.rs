//! A registry whose entries live exactly as long as the scope that contributed them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::scope::{Effect, Scope, ScopeClosed};

/// Name → value registry with scoped contributions.
pub struct ScopedMap<V> {
    what: &'static str,
    entries: Arc<Mutex<BTreeMap<String, V>>>,
}

/// Why a contribution was refused.
#[derive(Debug, thiserror::Error)]
pub enum ContributeError {
    /// The name is taken.
    #[error("{what} `{name}` is already registered")]
    Duplicate {
        /// What the registry holds.
        what: &'static str,
        /// The contested name.
        name: String,
    },
    /// The contributing scope is closing.
    #[error(transparent)]
    Closed(#[from] ScopeClosed),
}

impl<V: Clone + Send + 'static> ScopedMap<V> {
    /// Creates an empty registry; `what` names its entries in diagnostics.
    pub fn new(what: &'static str) -> Self {
        Self { what, entries: Arc::default() }
    }

    /// Adds an entry that disappears when `scope` is disposed.
    pub fn contribute(
        &self,
        scope: &Scope,
        name: &str,
        value: V,
    ) -> Result<Effect, ContributeError> {
        {
            let mut entries = self.lock();
            if entries.contains_key(name) {
                return Err(ContributeError::Duplicate { what: self.what, name: name.to_owned() });
            }
            entries.insert(name.to_owned(), value);
        }
        let entries = Arc::clone(&self.entries);
        let key = name.to_owned();
        let undo = move || {
            entries.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
            async { Ok(()) }
        };
        scope.defer(format!("{} `{name}`", self.what), undo).map_err(|closed| {
            self.lock().remove(name);
            closed.into()
        })
    }

    /// Looks an entry up.
    pub fn get(&self, name: &str) -> Option<V> {
        self.lock().get(name).cloned()
    }

    /// Registered names, sorted.
    pub fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, V>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
