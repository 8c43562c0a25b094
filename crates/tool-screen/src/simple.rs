//! The skeleton of the tools that ask the session service and say what it answered.
//!
//! Guarantees: a call without an agent, or whose arguments do not fit, reaches no session; every text
//! keeps the bound, an error its beginning.

use std::{marker::PhantomData, sync::Arc};

use agents::Agent;
use dsh_core::{Cancel, async_trait};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tools::{
    CallIntent, Content, DialectError, ResultIntent, Tool, ToolCall, ToolError, ToolKind,
    ToolOutput, ToolResult, ToolSpec, parameters_of, text::Keep,
};

use crate::{
    Host,
    arguments::{agent, json, parse, typed},
};

/// What makes one of these tools.
pub(crate) trait Simple: Send + Sync + 'static {
    /// As the model writes it.
    const NAME: &'static str;
    /// For the model.
    const DESCRIPTION: &'static str;
    /// How its calls and results are shown.
    const KIND: ToolKind;
    /// What the model passes; the parameter schema comes from it.
    type Args: DeserializeOwned + JsonSchema + Send;
    /// The structured value.
    type Value: Serialize + DeserializeOwned;

    /// Schema of the value.
    fn output() -> Value;

    /// The work.
    fn run(
        host: &Host,
        owner: &Arc<Agent>,
        args: Self::Args,
        cancel: &Cancel,
    ) -> impl Future<Output = Result<Self::Value, ToolError>> + Send;

    /// The model text of a value, at most `cap` bytes.
    fn text(value: &Self::Value, cap: usize) -> String;
}

/// The tool made of these parts.
pub(crate) fn tool<T: Simple>(host: &Host) -> Result<Arc<dyn Tool>, DialectError> {
    let spec = ToolSpec {
        name: T::NAME.to_owned(),
        description: T::DESCRIPTION.to_owned(),
        parameters: parameters_of::<T::Args>()?,
        output: T::output(),
    };
    Ok(Arc::new(SimpleTool::<T> { host: host.clone(), spec, parts: PhantomData }))
}

struct SimpleTool<T> {
    host: Host,
    spec: ToolSpec,
    parts: PhantomData<T>,
}

#[async_trait]
impl<T: Simple> Tool for SimpleTool<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        let owner = agent(&call)?;
        let args = parse(&call.arguments)?;
        let value = T::run(&self.host, owner, args, &call.cancel).await?;
        json(&value).map(ToolOutput::from)
    }

    fn render(&self, _arguments: &Value, value: &Value) -> String {
        typed(value, |value| T::text(value, self.host.cap))
    }

    fn finalize_content(&self, _result: &ToolResult, content: Content) -> Content {
        self.host.bound(Keep::Head, content)
    }

    fn present_call(&self, _arguments: &Value) -> Option<CallIntent> {
        Some(CallIntent::Generic { kind: T::KIND })
    }

    fn present_result(&self, _arguments: &Value, result: &ToolResult) -> Option<ResultIntent> {
        (!result.is_error()).then_some(ResultIntent::Generic { kind: T::KIND })
    }
}
