//! Policies by agent.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use agents::{Agent, AgentInstance};
use dsh_core::{Scope, ScopedMap, lock, scoped_map::ContributeError};
use subprocess::Confinement;

use crate::{
    Network, Policy, SandboxMode,
    provider::{Providers, Refusal, SandboxProvider},
};

/// The policy could not be applied.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields are named after the placeholders in the message")]
pub enum PolicyError {
    #[error(
        "sandbox mode `{mode}` needs a sandbox provider, and none is mounted: add the row `sandbox-landlock` (or `sandbox-bubblewrap`), or use `danger-full-access`, which confines nothing"
    )]
    NoProvider { mode: &'static str },
    #[error(
        "sandbox mode `{mode}` cannot be enforced here ({}): mend that, or use `danger-full-access`, which confines nothing",
        .refusals.join("; ")
    )]
    NotEnforceable { mode: &'static str, refusals: Vec<String> },
    #[error(
        "the sandbox mode cannot change while agent `{agent}` has terminal sessions: close them first"
    )]
    OwnerActive { agent: String },
    #[error("agent `{agent}` has ended: its sandbox mode cannot change any more")]
    OwnerEnded { agent: String },
}

/// Says whether an agent owns something that was started under its present policy.
pub type ActivityProbe = Arc<dyn Fn(&Agent) -> bool + Send + Sync>;

/// A policy, and what to start a process with so that it holds.
#[derive(Clone, Debug)]
pub struct Enforced {
    /// The policy.
    pub policy: Policy,
    /// What enforces it.
    pub confinement: Confinement,
}

/// Policies by agent.
pub struct PolicyRegistry {
    default_mode: SandboxMode,
    network: Network,
    writable_folders: Vec<PathBuf>,
    home: Option<PathBuf>,
    modes: Modes,
    providers: Providers,
    probes: ScopedMap<ActivityProbe>,
    next_probe: AtomicU64,
}

/// Modes of the agents that do not have the default one.
type Modes = Arc<Mutex<BTreeMap<AgentInstance, SandboxMode>>>;

impl PolicyRegistry {
    /// Every agent has `default_mode` until told otherwise. The folders, which `workspace-write` may
    /// write to besides the workspace, must exist and be absolute paths. `home` is the folder of the
    /// host, as an absolute path.
    pub fn new(
        default_mode: SandboxMode,
        network: Network,
        writable_folders: Vec<PathBuf>,
        home: Option<PathBuf>,
    ) -> Self {
        Self {
            default_mode,
            network,
            writable_folders,
            home,
            modes: Modes::default(),
            providers: Providers::new(),
            probes: ScopedMap::new("activity probe"),
            next_probe: AtomicU64::new(0),
        }
    }

    /// The agent's policy.
    pub fn policy(&self, agent: &Agent) -> Policy {
        Policy {
            mode: self.mode(&lock(&self.modes), agent),
            workspace_root: agent.workspace_root().into(),
            network: self.network,
            writable_folders: self.writable_folders.clone(),
            home: self.home.clone(),
        }
    }

    /// The mode of every agent that was not told otherwise.
    pub fn default_mode(&self) -> SandboxMode {
        self.default_mode
    }

    /// What a process of this agent has to be started with. Fails when the agent's policy cannot be
    /// enforced here. Blocks, for a confined mode, while its provider looks at the file system or runs a
    /// program.
    ///
    /// Ask it after the activity that [`PolicyRegistry::add_activity_probe`] reports has begun: a
    /// change of mode is then either seen here or refused.
    pub fn require_enforceable(&self, agent: &Agent) -> Result<Enforced, PolicyError> {
        let policy = self.policy(agent);
        let confinement = if policy.mode.is_confined() {
            self.ask(policy.mode, |provider| provider.confine(&policy))?
        } else {
            Confinement::None
        };
        Ok(Enforced { policy, confinement })
    }

    /// Fails when a mode, with the network of this host, cannot be enforced on this system at all.
    pub fn check_mode(&self, mode: SandboxMode) -> Result<(), PolicyError> {
        if !mode.is_confined() {
            return Ok(());
        }
        self.ask(mode, |provider| provider.supports(mode, self.network))
    }

    /// Adds a provider for as long as `scope` lives. Of several, the first that can enforce a policy
    /// does.
    pub fn add_provider(
        &self,
        scope: &Scope,
        provider: Arc<dyn SandboxProvider>,
    ) -> Result<(), ContributeError> {
        self.providers.add(scope, provider)
    }

    /// The mounted providers, in the order in which they are asked.
    pub fn providers(&self) -> Vec<Arc<dyn SandboxProvider>> {
        self.providers.list()
    }

    fn ask<T>(
        &self,
        mode: SandboxMode,
        ask: impl Fn(&dyn SandboxProvider) -> Result<T, Refusal>,
    ) -> Result<T, PolicyError> {
        self.providers.first(ask).map_err(|refusals| match &refusals[..] {
            [] => PolicyError::NoProvider { mode: mode.name() },
            _ => PolicyError::NotEnforceable { mode: mode.name(), refusals },
        })
    }

    /// Changes the mode of one agent, for as long as it lives. Refused while a probe says that the
    /// agent is active; the same mode again is no change.
    pub fn set_mode(&self, agent: &Agent, mode: SandboxMode) -> Result<(), PolicyError> {
        // Held over the probes too, see the guarantees above.
        let mut modes = lock(&self.modes);
        if self.mode(&modes, agent) == mode {
            return Ok(());
        }
        if self.probes.values().iter().any(|active| active(agent)) {
            return Err(PolicyError::OwnerActive { agent: agent.id().to_owned() });
        }
        let instance = agent.instance();
        if !modes.contains_key(&instance) {
            let shared = Arc::clone(&self.modes);
            let forget = move || {
                lock(&shared).remove(&instance);
                async { Ok(()) }
            };
            agent
                .scope()
                .defer("sandbox mode", forget)
                .map_err(|_| PolicyError::OwnerEnded { agent: agent.id().to_owned() })?;
        }
        modes.insert(instance, mode);
        Ok(())
    }

    /// Adds a probe for as long as `scope` lives. It must answer at once and must not ask for a
    /// policy.
    pub fn add_activity_probe(
        &self,
        scope: &Scope,
        probe: impl Fn(&Agent) -> bool + Send + Sync + 'static,
    ) -> Result<(), ContributeError> {
        let number = self.next_probe.fetch_add(1, Ordering::Relaxed);
        self.probes.contribute(scope, &number.to_string(), Arc::new(probe))?;
        Ok(())
    }

    fn mode(&self, modes: &BTreeMap<AgentInstance, SandboxMode>, agent: &Agent) -> SandboxMode {
        modes.get(&agent.instance()).copied().unwrap_or(self.default_mode)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use agents::{AgentRegistry, AgentSpec};

    use super::*;

    /// Enforces one mode, and refuses the other one.
    struct Only(SandboxMode);

    impl SandboxProvider for Only {
        fn name(&self) -> &'static str {
            self.0.name()
        }
        fn supports(&self, mode: SandboxMode, _: Network) -> Result<(), Refusal> {
            if mode == self.0 { Ok(()) } else { Err(Refusal("not that".to_owned())) }
        }
        fn confine(&self, policy: &Policy) -> Result<Confinement, Refusal> {
            self.supports(policy.mode, policy.network)?;
            Ok(Confinement::None)
        }
        fn limits(&self) -> Vec<String> {
            Vec::new()
        }
    }

    fn registry(mode: SandboxMode) -> PolicyRegistry {
        PolicyRegistry::new(mode, Network::Full, vec!["/t".into()], None)
    }

    #[tokio::test]
    async fn a_confined_mode_is_refused_and_a_change_waits_for_the_sessions() {
        let scope = Scope::root("test");
        let agents = AgentRegistry::new(scope.clone());
        let agent = || AgentSpec { id: Some("a".into()), workspace_root: "/w".into() };
        let owner = agents.create(agent()).unwrap();
        let policies = registry(SandboxMode::default());
        let busy = Arc::new(AtomicBool::new(true));
        let probe = Arc::clone(&busy);
        let plugin = scope.child("plugin").unwrap();
        policies.add_activity_probe(&plugin, move |_| probe.load(Ordering::SeqCst)).unwrap();

        let full = policies.require_enforceable(&owner).unwrap();
        assert!(matches!(full.confinement, Confinement::None));
        assert_eq!(
            full.policy,
            Policy {
                mode: SandboxMode::DangerFullAccess,
                workspace_root: "/w".into(),
                network: Network::Full,
                writable_folders: vec!["/t".into()],
                home: None,
            }
        );
        policies.set_mode(&owner, SandboxMode::DangerFullAccess).unwrap();
        let error = policies.set_mode(&owner, SandboxMode::ReadOnly).unwrap_err();
        assert!(matches!(error, PolicyError::OwnerActive { agent } if agent == "a"));

        busy.store(false, Ordering::SeqCst);
        policies.set_mode(&owner, SandboxMode::ReadOnly).unwrap();
        assert_eq!(policies.policy(&owner).mode, SandboxMode::ReadOnly);
        let error = policies.require_enforceable(&owner).unwrap_err();
        assert!(matches!(error, PolicyError::NoProvider { mode: "read-only" }));

        busy.store(true, Ordering::SeqCst);
        plugin.dispose().await.unwrap();
        policies.set_mode(&owner, SandboxMode::WorkspaceWrite).unwrap();

        agents.dispose(&owner).await.unwrap();
        let error = policies.set_mode(&owner, SandboxMode::ReadOnly).unwrap_err();
        assert!(matches!(error, PolicyError::OwnerEnded { .. }));
        let next = agents.create(agent()).unwrap();
        assert_eq!(policies.policy(&next).mode, SandboxMode::DangerFullAccess);
        scope.dispose().await.unwrap();
    }

    #[tokio::test]
    async fn a_confined_default_holds_for_everyone() {
        let scope = Scope::root("test");
        let agents = AgentRegistry::new(scope.clone());
        let owner = agents.create(AgentSpec { id: None, workspace_root: "/w".into() }).unwrap();
        for mode in [SandboxMode::WorkspaceWrite, SandboxMode::ReadOnly] {
            let policies = registry(mode);
            let error = policies.require_enforceable(&owner).unwrap_err();
            assert!(error.to_string().contains(mode.name()), "{error}");
            assert!(policies.check_mode(policies.default_mode()).is_err());
        }
        scope.dispose().await.unwrap();
    }

    #[tokio::test]
    async fn the_first_provider_that_does_not_refuse_confines() {
        let scope = Scope::root("test");
        let agents = AgentRegistry::new(scope.clone());
        let owner = agents.create(AgentSpec { id: None, workspace_root: "/w".into() }).unwrap();
        let policies = registry(SandboxMode::ReadOnly);
        policies.add_provider(&scope, Arc::new(Only(SandboxMode::WorkspaceWrite))).unwrap();
        let error = policies.require_enforceable(&owner).unwrap_err().to_string();
        assert_eq!(
            error,
            "sandbox mode `read-only` cannot be enforced here (workspace-write: not that): mend \
             that, or use `danger-full-access`, which confines nothing"
        );
        let row = scope.child("row").unwrap();
        policies.add_provider(&row, Arc::new(Only(SandboxMode::ReadOnly))).unwrap();
        policies.require_enforceable(&owner).unwrap();
        policies.check_mode(SandboxMode::ReadOnly).unwrap();
        row.dispose().await.unwrap();
        assert!(policies.require_enforceable(&owner).is_err());
        scope.dispose().await.unwrap();
    }
}
