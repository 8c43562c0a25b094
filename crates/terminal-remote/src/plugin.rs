//! The `terminal-remote` row.

use std::sync::Arc;

use dsh_core::{Claim, ConfigError, Ctx, Deps, Plugin, Provided, async_trait};
use sandbox_policy::SandboxPolicy;
use subprocess::Subprocess;
use terminal::{TERMINAL_BACKEND, Terminals};

use crate::{backend::RemoteBackend, config::Config};

/// Registers one remote shell backend.
pub struct TerminalRemotePlugin;

#[async_trait]
impl Plugin for TerminalRemotePlugin {
    const NAME: &'static str = "terminal-remote";
    type Config = Config;
    type Inject = (Terminals, SandboxPolicy, Subprocess);
    type Provide = ();

    fn check(config: &Config) -> Vec<ConfigError> {
        config.problems().into_iter().chain(config.launcher_problems()).collect()
    }

    fn claims(config: &Config) -> Vec<Claim> {
        vec![Claim::takes(TERMINAL_BACKEND, &config.backend_type, "backendType")]
    }

    async fn setup(
        ctx: &Ctx,
        (terminals, policy, host): Deps<Self>,
        mut config: Config,
    ) -> anyhow::Result<Provided<Self>> {
        let sessions = Arc::clone(&terminals);
        policy.add_activity_probe(ctx.scope(), move |owner| sessions.has_owner_activity(owner))?;
        // Without one there are no transcripts, which each read of older output says.
        config.home = dsh_core::home::folder(config.home.as_deref()).ok();
        let backend = RemoteBackend::new(config, policy, host);
        terminals.register_backend(ctx.scope(), Arc::new(backend))?;
        Ok(())
    }
}

dsh_core::register_plugin!(TerminalRemotePlugin);
