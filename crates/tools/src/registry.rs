//! Registered tools.

use std::sync::Arc;

use agents::Agent;
use dsh_core::Scope;
use serde_json::Value;

use crate::{
    call::{ToolCall, ToolResult},
    intent::{CallIntent, ResultIntent},
    tool::{Tool, ToolSpec},
};

/// The registry and the way into the pipeline.
pub struct ToolRegistry {}

/// One tool as an agent sees it.
pub type ToolListing = ToolSpec;

#[expect(clippy::unused_async, clippy::unused_self, reason = "signatures first")]
impl ToolRegistry {
    /// Registers a tool for as long as `scope` lives.
    pub fn register(&self, scope: &Scope, tool: Arc<dyn Tool>) -> anyhow::Result<()> {
        let _ = (scope, tool);
        anyhow::bail!("")
    }

    /// The tools an agent sees, sorted by name.
    pub fn list(&self, agent: Option<&Agent>) -> Vec<ToolListing> {
        let _ = agent;
        Vec::new()
    }

    /// Runs one call through the whole pipeline. Dropping the future cancels the call; its body
    /// is awaited in the background all the same.
    pub async fn call(&self, call: ToolCall) -> ToolResult {
        let _ = call;
        ToolResult { content: Vec::new(), value: None, error: None }
    }

    /// How to show a call.
    pub fn present_call(&self, name: &str, arguments: &Value) -> Option<CallIntent> {
        let _ = (name, arguments);
        None
    }

    /// How to show its result.
    pub fn present_result(
        &self,
        name: &str,
        arguments: &Value,
        result: &ToolResult,
    ) -> Option<ResultIntent> {
        let _ = (name, arguments, result);
        None
    }
}
