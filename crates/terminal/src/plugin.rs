//! The plugin `terminal`: provides [`Terminals`].

use std::sync::Arc;

use agents::Agents;
use dsh_core::{Ctx, Deps, Plugin, Provided, async_trait, plugin::NoConfig};

use crate::{Terminals, registry::TerminalRegistry};

/// Provides [`Terminals`]. Stopping it closes every session.
pub struct TerminalPlugin;

#[async_trait]
impl Plugin for TerminalPlugin {
    const NAME: &'static str = "terminal";
    type Config = NoConfig;
    type Inject = (Agents,);
    type Provide = Terminals;

    async fn setup(
        ctx: &Ctx,
        (agents,): Deps<Self>,
        _: NoConfig,
    ) -> anyhow::Result<Provided<Self>> {
        Ok(Arc::new(TerminalRegistry::new(ctx.scope(), agents)?))
    }
}

dsh_core::register_plugin!(TerminalPlugin);
