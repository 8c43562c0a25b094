//! `ctx.sandboxPolicy`: what an agent's processes may touch, and where its workspace is.
//!
//! Guarantees:
//! - a mode that confines is never silently ignored: [`PolicyRegistry::require_enforceable`], which
//!   every backend asks before it starts a process, fails for a policy that no mounted
//!   [`SandboxProvider`] enforces as a whole, and so does the start of a host with such a default;
//! - a confined process does not write to the host's own folder, wherever that is: what the host reads
//!   there at its next start is nothing that a session has written;
//! - an agent's mode does not change under its sessions: [`PolicyRegistry::set_mode`] asks every
//!   activity probe, and no policy is handed out while it decides.
//!
//! How a mode is enforced is the business of providers, which are asked at each start in the order of
//! their registration. What they answer is a [`subprocess::Confinement`], plain data for whoever
//! starts the process, so that another system's mechanism is another provider.

mod plugin;
mod policy;
mod provider;
mod registry;

use dsh_core::Service;

pub use crate::{
    plugin::{SandboxPolicyConfig, SandboxPolicyPlugin},
    policy::{DEVICES, Exposed, Network, Policy, SandboxMode},
    provider::{PID_NAMESPACE_SANDBOX, Refusal, SANDBOX_PROVIDER, SandboxProvider},
    registry::{ActivityProbe, Enforced, PolicyError, PolicyRegistry},
};

/// Service key of the sandbox policy.
pub struct SandboxPolicy;

impl Service for SandboxPolicy {
    type Api = PolicyRegistry;
    const NAME: &'static str = "sandboxPolicy";
}
