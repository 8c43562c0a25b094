//! Enforces sandbox modes by Landlock, the access control of Linux that needs no privilege.
//!
//! Guarantees:
//! - what a confined program starts is confined like it, whatever it does with its session, its
//!   parents or its environment: the kernel attaches the rules to the process;
//! - files are written, created, removed, renamed, linked and cut only below the folders that the
//!   policy names; reading and running programs is free everywhere;
//! - terminals and the devices without content (`/dev/null` and its kind) can be written;
//! - what this kernel cannot enforce is refused before anything is started, and never left out;
//! - the program gains no privileges (`sudo` does not work), and root has no capability left that
//!   reaches around the rules, such as loading modules or making device nodes.
//!
//! Open on every kernel so far: mode, owner, times and extended attributes of files that the user
//! owns, requests to daemons through sockets with a path in the file system, and protocols other
//! than TCP.
//!
//! On other systems the row can be mounted and refuses everything.

#[cfg(target_os = "linux")]
mod rules;

use std::sync::Arc;

use dsh_core::{Claim, Ctx, Deps, Finding, Plugin, Provided, async_trait, plugin::NoConfig};
use sandbox_policy::{
    Network, PID_NAMESPACE_SANDBOX, Policy, Refusal, SANDBOX_PROVIDER, SandboxMode, SandboxPolicy,
    SandboxProvider,
};
use subprocess::Confinement;

/// The provider.
#[derive(Clone, Copy, Debug)]
pub struct Landlock;

#[cfg(target_os = "linux")]
impl SandboxProvider for Landlock {
    fn name(&self) -> &'static str {
        SandboxLandlockPlugin::NAME
    }

    fn supports(&self, _: SandboxMode, network: Network) -> Result<(), Refusal> {
        rules::supported(network)
    }

    fn confine(&self, policy: &Policy) -> Result<Confinement, Refusal> {
        Ok(Confinement::Landlock(Arc::new(rules::ruleset(policy)?)))
    }

    fn limits(&self) -> Vec<String> {
        rules::limits().into_iter().map(str::to_owned).collect()
    }
}

#[cfg(not(target_os = "linux"))]
impl SandboxProvider for Landlock {
    fn name(&self) -> &'static str {
        SandboxLandlockPlugin::NAME
    }

    fn supports(&self, _: SandboxMode, _: Network) -> Result<(), Refusal> {
        Err(Refusal("Landlock is a part of Linux, and this is another system".to_owned()))
    }

    fn confine(&self, policy: &Policy) -> Result<Confinement, Refusal> {
        self.supports(policy.mode, policy.network).map(|()| Confinement::None)
    }

    fn limits(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What this machine lets the provider do, for people.
pub fn finding() -> Finding {
    const TOPIC: &str = "sandbox";
    let by_default = "without --sandbox sessions have every right of the user (danger-full-access)";
    match Landlock.supports(SandboxMode::WorkspaceWrite, Network::Full) {
        Ok(()) => {
            let limits = Landlock.limits().join("; ");
            let found =
                format!("Landlock confines with --sandbox; {by_default}. Open even so: {limits}");
            Finding::good(TOPIC, found)
        }
        Err(refusal) => Finding::weaker(
            TOPIC,
            format!("--sandbox is refused: {refusal}; {by_default}"),
            "use a kernel of 6.2 or later with landlock among its `lsm=`, or confine the host itself",
        ),
    }
}

/// Row `sandbox-landlock`.
pub struct SandboxLandlockPlugin;

#[async_trait]
impl Plugin for SandboxLandlockPlugin {
    const NAME: &'static str = "sandbox-landlock";
    type Config = NoConfig;
    type Inject = (SandboxPolicy,);
    type Provide = ();

    fn claims(_: &NoConfig) -> Vec<Claim> {
        [SANDBOX_PROVIDER, PID_NAMESPACE_SANDBOX]
            .map(|it| Claim::takes(it, Self::NAME, ""))
            .to_vec()
    }

    async fn setup(
        ctx: &Ctx,
        (policy,): Deps<Self>,
        NoConfig {}: NoConfig,
    ) -> anyhow::Result<Provided<Self>> {
        policy.add_provider(ctx.scope(), Arc::new(Landlock))?;
        Ok(())
    }
}

dsh_core::register_plugin!(SandboxLandlockPlugin);
