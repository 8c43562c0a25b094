//! Enforces sandbox modes by the namespaces that bubblewrap (`bwrap`) makes.
//!
//! Guarantees:
//! - what a confined program starts is confined like it: it cannot leave its namespaces;
//! - files are changed in any way only below the folders that the policy names; reading and running
//!   programs is free everywhere;
//! - the host's own folder is not, also where it is below one of these;
//! - terminals and the devices without content can be written, all other devices cannot be used;
//! - a confined network is the loopback interface of the sandbox alone;
//! - what cannot be enforced here is refused before anything is started;
//! - the program gains no privileges, and root has none outside of the sandbox.
//!
//! `bwrap` is not in front of the program: it makes the namespaces and ends, and the program's
//! process enters them between `clone` and `exec`. So it stays the leader of its session.
//!
//! Open: requests to daemons through sockets with a path in the file system, and signals to processes
//! of the same user.
//!
//! On other systems than Linux the row can be mounted and refuses everything.

#[cfg(target_os = "linux")]
mod namespaces;

use std::sync::Arc;

use dsh_core::{Claim, Ctx, Deps, Finding, Plugin, Provided, async_trait, plugin::NoConfig};
use sandbox_policy::{
    Network, Policy, Refusal, SANDBOX_PROVIDER, SandboxMode, SandboxPolicy, SandboxProvider,
};
use subprocess::Confinement;

/// The provider.
#[derive(Clone, Copy, Debug)]
pub struct Bubblewrap;

impl SandboxProvider for Bubblewrap {
    fn name(&self) -> &'static str {
        SandboxBubblewrapPlugin::NAME
    }

    fn supports(&self, _: SandboxMode, network: Network) -> Result<(), Refusal> {
        match network {
            Network::Full | Network::None => {}
            Network::NoTcp => {
                let reason =
                    "it leaves a sandbox all of the network or none of it: use `network: none`";
                return Err(Refusal(reason.to_owned()));
            }
        }
        #[cfg(target_os = "linux")]
        return namespaces::make(&[], None, network).map(|_| ());
        #[cfg(not(target_os = "linux"))]
        Err(Refusal("namespaces are a part of Linux, and this is another system".to_owned()))
    }

    fn confine(&self, policy: &Policy) -> Result<Confinement, Refusal> {
        #[cfg(target_os = "linux")]
        return Ok(Confinement::Namespaces(namespaces::of(policy)?));
        #[cfg(not(target_os = "linux"))]
        self.supports(policy.mode, policy.network).map(|()| Confinement::None)
    }

    fn limits(&self) -> Vec<String> {
        let limits = [
            "daemons can be asked through sockets in the file system",
            "processes of the same user outside can be signalled",
        ];
        limits.map(str::to_owned).to_vec()
    }
}

/// What this machine lets the provider do, for people.
pub fn finding() -> Finding {
    const TOPIC: &str = "bubblewrap";
    match Bubblewrap.supports(SandboxMode::WorkspaceWrite, Network::None) {
        Ok(()) => Finding::good(
            TOPIC,
            format!(
                "the row sandbox-bubblewrap confines too, the network included. Open even so: {}",
                Bubblewrap.limits().join("; ")
            ),
        ),
        Err(refusal) => Finding::weaker(
            TOPIC,
            format!("the row sandbox-bubblewrap is refused: {refusal}"),
            "nothing, unless a sandbox is to have no network at all",
        ),
    }
}

/// Row `sandbox-bubblewrap`.
pub struct SandboxBubblewrapPlugin;

#[async_trait]
impl Plugin for SandboxBubblewrapPlugin {
    const NAME: &'static str = "sandbox-bubblewrap";
    type Config = NoConfig;
    type Inject = (SandboxPolicy,);
    type Provide = ();

    fn claims(_: &NoConfig) -> Vec<Claim> {
        vec![Claim::takes(SANDBOX_PROVIDER, Self::NAME, "")]
    }

    async fn setup(
        ctx: &Ctx,
        (policy,): Deps<Self>,
        NoConfig {}: NoConfig,
    ) -> anyhow::Result<Provided<Self>> {
        policy.add_provider(ctx.scope(), Arc::new(Bubblewrap))?;
        Ok(())
    }
}

dsh_core::register_plugin!(SandboxBubblewrapPlugin);
