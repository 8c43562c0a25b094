//! `ctx.agents`: the live agents, the owners of everything that runs on somebody's behalf.
//!
//! Guarantees:
//! - identity is the instance ([`Arc`] or [`AgentInstance`]), never the id string: a new agent may
//!   take the id of a disposed one and is a stranger to what that one owned;
//! - an agent is live from its creation to the moment its disposal starts, whoever starts it;
//! - disposal is awaited and can be retried: until it succeeded the agent is still known, not
//!   live, and its id stays taken;
//! - agents end with the host: their scopes are children of the plugin's.

mod agent;
pub mod component;
pub mod inbox;
mod registry;

pub use agent::{Agent, AgentInstance, AgentSpec, AgentStatus, ToolFilter};
pub use inbox::{Inbox, Notice, Told};
pub use registry::{AgentError, AgentRegistry};

use dsh_core::{Ctx, Deps, Plugin, Provided, Service, async_trait, plugin::NoConfig};
use std::sync::Arc;

/// Service key of the agents.
pub struct Agents;

impl Service for Agents {
    type Api = AgentRegistry;
    const NAME: &'static str = "agents";
}

/// Provides [`Agents`].
pub struct AgentsPlugin;

#[async_trait]
impl Plugin for AgentsPlugin {
    const NAME: &'static str = "agents";
    type Config = NoConfig;
    type Inject = ();
    type Provide = Agents;

    async fn setup(ctx: &Ctx, (): Deps<Self>, _: NoConfig) -> anyhow::Result<Provided<Self>> {
        Ok(Arc::new(AgentRegistry::new(ctx.scope().clone())))
    }
}

dsh_core::register_plugin!(AgentsPlugin);
