//! `ctx.tools`: the registry of tools and the pipeline that runs one call.
//!
//! Guarantees:
//! - a call always ends in a [`ToolResult`]; no failure of a tool or of a layer reaches the caller
//!   as anything else;
//! - the order is fixed: log `tool/call` → validation → [`PreLayer`]s → [`ExecuteLayer`]s around
//!   (validation of rewritten arguments → [`Guard`]s, which see the final arguments → body) →
//!   [`PostLayer`]s → the tool's `finalize_content`, once for every outcome →
//!   [`ResultObserver`]s → log `tool/result`;
//! - a body that started is awaited to its end: dropping the caller's future, or a layer that
//!   drops its `Next`, cancels it and lets it finish;
//! - an argument that no schema declares is logged by its name and size alone, and quoted nowhere;
//! - tools, layers, guards and observers vanish with the scope that contributed them; a tool
//!   leaves after its running calls have been cancelled and are over.

pub mod call;
pub mod dialect;
pub mod intent;
pub mod layer;
pub mod registry;
pub mod schema;
pub mod simple;
pub mod text;
pub mod tool;

mod core;
mod journal;
mod pipeline;
mod running;
mod withheld;

pub use call::{Content, ContentBlock, ErrorCode, ErrorInfo, ProgressSink, ToolCall, ToolResult};
pub use dialect::{DialectError, parameters_of, small_dialect};
pub use intent::{CallIntent, ResultIntent, ToolKind};
pub use layer::{
    ExecuteLayer, Guard, Next, Outcome, PostDecision, PostLayer, PreDecision, PreLayer,
    ResultObserver,
};
pub use registry::{ToolListing, ToolRegistry};
pub use tool::{Tool, ToolError, ToolOutput, ToolSpec};
pub use withheld::{withheld, withhold};

use std::sync::Arc;

use dsh_core::{Ctx, Deps, Plugin, Provided, Service, async_trait, plugin::NoConfig};
use session_log::SessionLog;

/// Service key of the tools.
pub struct Tools;

impl Service for Tools {
    type Api = ToolRegistry;
    const NAME: &'static str = "tools";
}

/// Provides [`Tools`]. The session log is optional: it is looked up with each call.
pub struct ToolsPlugin;

#[async_trait]
impl Plugin for ToolsPlugin {
    const NAME: &'static str = "tools";
    type Config = NoConfig;
    type Inject = (Option<SessionLog>,);
    type Provide = Tools;

    async fn setup(ctx: &Ctx, (log,): Deps<Self>, _: NoConfig) -> anyhow::Result<Provided<Self>> {
        Ok(Arc::new(ToolRegistry::new(ctx.scope(), move || log.get())?))
    }
}

dsh_core::register_plugin!(ToolsPlugin);
