//! The `terminal-bash` row.

use std::sync::Arc;

use dsh_core::{Claim, ConfigError, Ctx, Deps, Plugin, Provided, async_trait};
use sandbox_policy::{PID_NAMESPACE_SANDBOX, SandboxPolicy};
use subprocess::{Isolation, Subprocess};
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
        let mut claims = vec![Claim::takes(TERMINAL_BACKEND, &config.backend_type, "backendType")];
        if config.isolation == Isolation::PidNamespace {
            let without = "`isolation: pid-namespace` does not go with a sandbox of namespaces: use the \
                           row `sandbox-landlock`, or `isolation: none`";
            claims.push(Claim::needs(PID_NAMESPACE_SANDBOX, "isolation", without));
        }
        claims
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
