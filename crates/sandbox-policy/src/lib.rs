//! `ctx.sandboxPolicy`: what an agent's processes may touch, and where its workspace is.
//!
//! Guarantees:
//! - a mode that confines is never silently ignored: [`PolicyRegistry::require_enforceable`], which
//!   every backend asks before it starts a process, fails for a mode that nothing here enforces;
//! - an agent's mode does not change under its sessions: [`PolicyRegistry::set_mode`] asks every
//!   activity probe, and no policy is handed out while it decides.
//!
//! Nothing enforces a confined mode yet. A provider belongs behind `require_enforceable`, which is
//! the one place that decides; a registry of providers would be asked there.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use agents::{Agent, AgentInstance, Agents};
use dsh_core::{
    Ctx, Deps, Plugin, Provided, Scope, ScopedMap, Service, async_trait, lock,
    scoped_map::ContributeError,
};

/// Service key of the sandbox policy.
pub struct SandboxPolicy;

impl Service for SandboxPolicy {
    type Api = PolicyRegistry;
    const NAME: &'static str = "sandboxPolicy";
}

/// How far an agent's processes are confined. Names are the wire's.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Not at all.
    #[default]
    DangerFullAccess,
    /// Writes only to the workspace and to temporary folders.
    WorkspaceWrite,
    /// No writes.
    ReadOnly,
}

impl SandboxMode {
    /// Its name in configuration and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::DangerFullAccess => "danger-full-access",
            Self::WorkspaceWrite => "workspace-write",
            Self::ReadOnly => "read-only",
        }
    }
}

/// What holds for one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The mode.
    pub mode: SandboxMode,
    /// Absolute path of the workspace root.
    pub workspace_root: PathBuf,
}

/// The policy could not be applied.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields are named after the placeholders in the message")]
pub enum PolicyError {
    #[error(
        "sandbox mode `{mode}` needs a sandbox provider, and none is mounted: use `danger-full-access` or mount one"
    )]
    NoProvider { mode: &'static str },
    #[error(
        "the sandbox mode cannot change while agent `{agent}` has terminal sessions: close them first"
    )]
    OwnerActive { agent: String },
    #[error("agent `{agent}` has ended: its sandbox mode cannot change any more")]
    OwnerEnded { agent: String },
}

/// Says whether an agent owns something that was started under its present policy.
pub type ActivityProbe = Arc<dyn Fn(&Agent) -> bool + Send + Sync>;

/// Policies by agent.
pub struct PolicyRegistry {
    default_mode: SandboxMode,
    modes: Modes,
    probes: ScopedMap<ActivityProbe>,
    next_probe: AtomicU64,
}

/// Modes of the agents that do not have the default one.
type Modes = Arc<Mutex<BTreeMap<AgentInstance, SandboxMode>>>;

impl PolicyRegistry {
    /// Every agent has `default_mode` until told otherwise.
    pub fn new(default_mode: SandboxMode) -> Self {
        Self {
            default_mode,
            modes: Modes::default(),
            probes: ScopedMap::new("activity probe"),
            next_probe: AtomicU64::new(0),
        }
    }

    /// The agent's policy.
    pub fn policy(&self, agent: &Agent) -> Policy {
        let mode = self.mode(&lock(&self.modes), agent);
        Policy { mode, workspace_root: agent.workspace_root().into() }
    }

    /// Fails when the agent's policy cannot be enforced here.
    ///
    /// Ask it after the activity that [`PolicyRegistry::add_activity_probe`] reports has begun: a
    /// change of mode is then either seen here or refused.
    pub fn require_enforceable(&self, agent: &Agent) -> Result<Policy, PolicyError> {
        let policy = self.policy(agent);
        match policy.mode {
            SandboxMode::DangerFullAccess => Ok(policy),
            confined => Err(PolicyError::NoProvider { mode: confined.name() }),
        }
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

/// Configuration of [`SandboxPolicyPlugin`].
#[derive(Debug, Default, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxPolicyConfig {
    /// The mode of every agent that is not told otherwise.
    pub mode: SandboxMode,
}

/// Provides [`SandboxPolicy`].
pub struct SandboxPolicyPlugin;

#[async_trait]
impl Plugin for SandboxPolicyPlugin {
    const NAME: &'static str = "sandbox-policy";
    type Config = SandboxPolicyConfig;
    type Inject = (Agents,);
    type Provide = SandboxPolicy;

    async fn setup(
        _: &Ctx,
        _: Deps<Self>,
        config: SandboxPolicyConfig,
    ) -> anyhow::Result<Provided<Self>> {
        Ok(Arc::new(PolicyRegistry::new(config.mode)))
    }
}

dsh_core::register_plugin!(SandboxPolicyPlugin);

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use agents::{AgentRegistry, AgentSpec};

    use super::*;

    #[tokio::test]
    async fn a_confined_mode_is_refused_and_a_change_waits_for_the_sessions() {
        let scope = Scope::root("test");
        let agents = AgentRegistry::new(scope.clone());
        let agent = || AgentSpec { id: Some("a".into()), workspace_root: "/w".into() };
        let owner = agents.create(agent()).unwrap();
        let policies = PolicyRegistry::new(SandboxMode::default());
        let busy = Arc::new(AtomicBool::new(true));
        let probe = Arc::clone(&busy);
        let plugin = scope.child("plugin").unwrap();
        policies.add_activity_probe(&plugin, move |_| probe.load(Ordering::SeqCst)).unwrap();

        let full = policies.require_enforceable(&owner).unwrap();
        assert_eq!(
            full,
            Policy { mode: SandboxMode::DangerFullAccess, workspace_root: "/w".into() }
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
            let error = PolicyRegistry::new(mode).require_enforceable(&owner).unwrap_err();
            assert!(error.to_string().contains(mode.name()), "{error}");
        }
        scope.dispose().await.unwrap();
    }
}
