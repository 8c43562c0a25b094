//! `ctx.tools`: the registry of tools and the pipeline that runs one call.

pub mod call;
pub mod intent;
pub mod registry;
pub mod tool;

pub use call::{Content, ContentBlock, ErrorInfo, ProgressSink, ToolCall, ToolResult};
pub use intent::{CallIntent, ResultIntent, ToolKind};
pub use registry::{ToolListing, ToolRegistry};
pub use tool::{Tool, ToolError, ToolOutput, ToolSpec};

use dsh_core::Service;

/// Service key of the tools.
pub struct Tools;

impl Service for Tools {
    type Api = ToolRegistry;
    const NAME: &'static str = "tools";
}
