//! The `terminal-bash` row.

use std::sync::Arc;

use dsh_core::{Claim, ConfigError, Ctx, Deps, Plugin, Provided, async_trait};
use sandbox_policy::SandboxPolicy;
use subprocess::Subprocess;
use terminal::{TERMINAL_BACKEND, Terminals};

use crate::{backend::BashBackend, config::Config};

/// Registers one shell backend.
pub struct TerminalBashPlugin;

#[async_trait]
impl Plugin for TerminalBashPlugin {
    const NAME: &'static str = "terminal-bash";
    type Config = Config;
    type Inject = (Terminals, SandboxPolicy, Subprocess);
    type Provide = ();

    fn check(config: &Config) -> Vec<ConfigError> {
        config.problems().into_iter().chain(config.shell_problem()).collect()
    }

    fn claims(config: &Config) -> Vec<Claim> {
        vec![Claim::takes(TERMINAL_BACKEND, &config.backend_type, "backendType")]
    }

    async fn setup(
        ctx: &Ctx,
        (terminals, policy, host): Deps<Self>,
        config: Config,
    ) -> anyhow::Result<Provided<Self>> {
        let sessions = Arc::clone(&terminals);
        policy.add_activity_probe(ctx.scope(), move |owner| sessions.has_owner_activity(owner))?;
        let mut config = config.resolved();
        // Without one there are no transcripts, which each read of older output says.
        config.home = dsh_core::home::folder(config.home.as_deref()).ok();
        let backend = BashBackend::new(config, policy, host);
        terminals.register_backend(ctx.scope(), Arc::new(backend))?;
        Ok(())
    }
}

dsh_core::register_plugin!(TerminalBashPlugin);
