//! `ctx.sandboxPolicy`: what an agent's processes may touch, and where its workspace is.

use std::path::PathBuf;

use agents::Agent;
use dsh_core::Service;

/// Service key of the sandbox policy.
pub struct SandboxPolicy;

impl Service for SandboxPolicy {
    type Api = PolicyRegistry;
    const NAME: &'static str = "sandboxPolicy";
}

/// How far an agent's processes are confined. Names are the wire's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Not at all.
    DangerFullAccess,
    /// Writes only to the workspace and to temporary folders.
    WorkspaceWrite,
    /// No writes.
    ReadOnly,
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
    #[error("sandbox mode `{mode}` needs a sandbox provider, and none is mounted: use `danger-full-access` or mount one")]
    NoProvider { mode: &'static str },
    #[error("the sandbox mode cannot change while agent `{agent}` has terminal sessions: close them first")]
    OwnerActive { agent: String },
}

/// Policies by agent.
pub struct PolicyRegistry {}

#[expect(clippy::unused_self, reason = "signatures first")]
impl PolicyRegistry {
    /// The agent's policy.
    pub fn policy(&self, agent: &Agent) -> Policy {
        Policy { mode: SandboxMode::DangerFullAccess, workspace_root: agent.workspace_root().into() }
    }

    /// Fails when the agent's policy cannot be enforced here.
    pub fn require_enforceable(&self, agent: &Agent) -> Result<Policy, PolicyError> {
        Ok(self.policy(agent))
    }
}
