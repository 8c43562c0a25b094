//! The `terminal-bash` row.

use std::sync::Arc;

use agents::Agents;
use dsh_core::{Ctx, Deps, Plugin, Provided, async_trait};
use sandbox_policy::SandboxPolicy;
use subprocess::Subprocess;
use terminal::Terminals;

use crate::{backend::BashBackend, config::Config};

/// Registers one shell backend.
pub struct TerminalBashPlugin;

#[async_trait]
impl Plugin for TerminalBashPlugin {
    const NAME: &'static str = "terminal-bash";
    type Config = Config;
    type Inject = (Terminals, Agents, SandboxPolicy, Subprocess);
    type Provide = ();

    async fn setup(
        ctx: &Ctx,
        (terminals, agents, policy, host): Deps<Self>,
        config: Config,
    ) -> anyhow::Result<Provided<Self>> {
        let backend = BashBackend::new(config.resolved(), agents, policy, host);
        terminals.register_backend(ctx.scope(), Arc::new(backend))?;
        Ok(())
    }
}

dsh_core::register_plugin!(TerminalBashPlugin);
