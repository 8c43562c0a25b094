//! What a row says of itself before anything starts, so that rows can be compared.
//!
//! Plugins meet in registries: one contributes to it, another cannot do without a contribution, and no
//! two may have one name. A registry shows that at the start; what can be known from the
//! configuration alone is said here, and [`Plan::resolve`](crate::Plan::resolve) holds the rows
//! against each other.

/// What a row will contribute to a registry, or will need there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What the registry calls its entries, such as `terminal backend`.
    pub(crate) registry: &'static str,
    /// The key that says so, without `config.`; empty where none does.
    pub(crate) path: &'static str,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It contributes an entry of this name, which no other row may.
    Takes(String),
    /// It is of no use unless some row contributes an entry; says what is wrong without one.
    Needs(String),
}

impl Claim {
    /// The row contributes an entry of this name to a registry, where no two entries have one name.
    /// `path` is the key that gives the name.
    pub fn takes(registry: &'static str, name: impl Into<String>, path: &'static str) -> Self {
        Self { registry, path, kind: Kind::Takes(name.into()) }
    }

    /// The row needs some entry in a registry, for what the key at `path` asks; `without` says what is
    /// wrong, and what to do, where no row contributes any.
    pub fn needs(registry: &'static str, path: &'static str, without: impl Into<String>) -> Self {
        Self { registry, path, kind: Kind::Needs(without.into()) }
    }
}
