//! The demonstration: one interactive session, played through `ctx.tools` by an agent.
//!
//! A front end like the others, with a row of its own. `script` is the list of calls and of what
//! each must give; `play` runs them; `print` shows them. The script needs bash and python3.

mod play;
mod print;
mod script;

pub(crate) use play::Stage;
pub(crate) use print::Printer;

use std::sync::Arc;

use agents::Agents;
use dsh_core::{
    Ctx, Deps, Plugin, Provided, Service, async_trait, plugin::NoConfig, register_plugin,
};
use tools::Tools;

/// Service key of the demonstration.
pub(crate) struct Demo;

impl Service for Demo {
    type Api = Stage;
    const NAME: &'static str = "demo";
}

/// Row `demo`: the front end of `dsh run --agent-terminal-demo`.
struct DemoPlugin;

register_plugin!(DemoPlugin);

#[async_trait]
impl Plugin for DemoPlugin {
    const NAME: &'static str = "demo";
    type Config = NoConfig;
    type Inject = (Tools, Agents);
    type Provide = Demo;

    async fn setup(
        _ctx: &Ctx,
        (tools, agents): Deps<Self>,
        _config: NoConfig,
    ) -> anyhow::Result<Provided<Self>> {
        Ok(Arc::new(Stage { tools, agents }))
    }
}
