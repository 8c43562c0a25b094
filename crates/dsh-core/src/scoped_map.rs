//! A registry whose entries live exactly as long as the scope that contributed them.
//!
//! Guarantees: entries are listed in the order of their registration; a name is taken until its
//! entry is gone; an entry is visible exactly while its scope holds the cleanup that removes it.

use std::sync::{Arc, Mutex};

use crate::{
    scope::{Effect, Scope, ScopeClosed},
    unwind::lock,
};

/// Name → value registry with scoped contributions.
pub struct ScopedMap<V> {
    what: &'static str,
    entries: Entries<V>,
}

type Entries<V> = Arc<Mutex<Vec<(String, V)>>>;

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

    /// Adds an entry that disappears when `scope` is disposed, or when the effect is undone.
    pub fn contribute(
        &self,
        scope: &Scope,
        name: &str,
        value: V,
    ) -> Result<Effect, ContributeError> {
        let shared = Arc::clone(&self.entries);
        let key = name.to_owned();
        let remove = move || {
            let gone = take(&mut lock(&shared), &key);
            // Outside the lock: the value's own drop may look into the registry.
            drop(gone);
            async { Ok(()) }
        };
        // Held over both steps: a disposal in between waits here until there is something to remove.
        let mut entries = lock(&self.entries);
        if entries.iter().any(|(taken, _)| taken == name) {
            return Err(ContributeError::Duplicate { what: self.what, name: name.to_owned() });
        }
        let effect = scope.defer(format!("{} `{name}`", self.what), remove)?;
        entries.push((name.to_owned(), value));
        Ok(effect)
    }

    /// Looks an entry up.
    pub fn get(&self, name: &str) -> Option<V> {
        let entries = lock(&self.entries);
        entries.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
    }

    /// Registered names, in order of registration.
    pub fn names(&self) -> Vec<String> {
        lock(&self.entries).iter().map(|(name, _)| name.clone()).collect()
    }

    /// Registered values, in order of registration.
    pub fn values(&self) -> Vec<V> {
        lock(&self.entries).iter().map(|(_, value)| value.clone()).collect()
    }
}

fn take<V>(entries: &mut Vec<(String, V)>, name: &str) -> Option<(String, V)> {
    let position = entries.iter().position(|(key, _)| key == name)?;
    Some(entries.remove(position))
}
