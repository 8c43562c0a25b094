//! What enforces a confined mode, and the registry of those that can.

use std::sync::Arc;

use dsh_core::{Scope, ScopedMap, scoped_map::ContributeError};
use subprocess::Confinement;

use crate::{Network, Policy, SandboxMode};

/// A mechanism that confines processes, such as Landlock.
///
/// It enforces all of a policy or refuses it. What it leaves open on every system (Landlock: the
/// mode, owner and times of files) stands in its crate's documentation and in
/// [`limits`](Self::limits).
///
/// ```
/// use sandbox_policy::{Network, Policy, Refusal, SandboxMode, SandboxProvider};
/// use subprocess::Confinement;
///
/// /// Refuses everything.
/// struct Never;
///
/// impl SandboxProvider for Never {
///     fn name(&self) -> &'static str {
///         "sandbox-never"
///     }
///     fn supports(&self, _: SandboxMode, _: Network) -> Result<(), Refusal> {
///         Err(Refusal("it can do nothing here".to_owned()))
///     }
///     fn confine(&self, policy: &Policy) -> Result<Confinement, Refusal> {
///         self.supports(policy.mode, policy.network)?;
///         Ok(Confinement::None)
///     }
///     fn limits(&self) -> Vec<String> {
///         Vec::new()
///     }
/// }
/// ```
pub trait SandboxProvider: Send + Sync {
    /// The name of its row, for messages.
    fn name(&self) -> &'static str;

    /// Whether a policy of this kind can be enforced on this system as a whole. Asked at load.
    fn supports(&self, mode: SandboxMode, network: Network) -> Result<(), Refusal>;

    /// What a program is to be started with so that `policy`, a confined one, holds for it and for
    /// everything it starts. Asked for each start; looks at the file system, and may block for some
    /// milliseconds.
    fn confine(&self, policy: &Policy) -> Result<Confinement, Refusal>;

    /// What it leaves open on this system, a sentence each, for people.
    fn limits(&self) -> Vec<String>;
}

/// Why a provider does not enforce a policy, in words that follow its name and a colon.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// What an entry of the registry of providers is called. A plugin that adds one claims its name under
/// this one.
pub const SANDBOX_PROVIDER: &str = "sandbox provider";

/// What lets a session have a PID namespace of its own. A plugin whose provider can confine such a session
/// claims its name under this one besides; a backend that is to start such sessions needs one.
pub const PID_NAMESPACE_SANDBOX: &str = "sandbox of PID namespaces";

/// The providers of this host, in the order of their registration.
pub(crate) struct Providers(ScopedMap<Arc<dyn SandboxProvider>>);

impl Providers {
    pub(crate) fn new() -> Self {
        Self(ScopedMap::new(SANDBOX_PROVIDER))
    }

    pub(crate) fn add(
        &self,
        scope: &Scope,
        provider: Arc<dyn SandboxProvider>,
    ) -> Result<(), ContributeError> {
        let name = provider.name();
        self.0.contribute(scope, name, provider)?;
        Ok(())
    }

    pub(crate) fn list(&self) -> Vec<Arc<dyn SandboxProvider>> {
        self.0.values()
    }

    /// The answer of the first provider that does not refuse; else all refusals, by name.
    pub(crate) fn first<T>(
        &self,
        ask: impl Fn(&dyn SandboxProvider) -> Result<T, Refusal>,
    ) -> Result<T, Vec<String>> {
        let mut refusals = Vec::new();
        for provider in self.list() {
            match ask(&*provider) {
                Ok(answer) => return Ok(answer),
                Err(refusal) => refusals.push(format!("{}: {refusal}", provider.name())),
            }
        }
        Err(refusals)
    }
}
