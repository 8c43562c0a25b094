//! The skeleton of the tools: they ask the jobs service one thing and say what it answered.
//!
//! Guarantee: a call whose arguments do not fit reaches no job.

use std::{marker::PhantomData, sync::Arc};

use agents::Agent;
use dsh_core::{Cancel, async_trait};
use schemars::JsonSchema;
use serde::{Deserialize as _, Serialize, de::DeserializeOwned};
use serde_json::Value;
use tools::{
    CallIntent, Content, ContentBlock, DialectError, ResultIntent, Tool, ToolCall, ToolError,
    ToolKind, ToolOutput, ToolResult, ToolSpec, parameters_of,
    text::{Keep, bound},
};

use crate::{
    Host, MOST_BYTES,
    arguments::{failure, parse},
};

/// What makes one of these tools.
pub(crate) trait Simple: Send + Sync + 'static {
    /// As the model writes it.
    const NAME: &'static str;
    /// For the model.
    const DESCRIPTION: &'static str;
    /// How its calls and results are shown.
    const KIND: ToolKind;
    /// Which end of its text matters more.
    const KEEP: Keep;
    /// What the model passes; the parameter schema comes from it.
    type Args: DeserializeOwned + JsonSchema + Send;
    /// The structured value.
    type Value: Serialize + DeserializeOwned;

    /// Schema of the value.
    fn output() -> Value;

    /// The work.
    fn run(
        host: &Host,
        caller: Option<&Arc<Agent>>,
        args: Self::Args,
        cancel: &Cancel,
    ) -> impl Future<Output = Result<Self::Value, ToolError>> + Send;

    /// The model text of a value.
    fn text(value: &Self::Value) -> String;
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
        let args = parse(&call.arguments)?;
        let value = T::run(&self.host, call.agent.as_ref(), args, &call.cancel).await?;
        let value = serde_json::to_value(value)
            .map_err(|error| failure("JOBS_FAILED", format!("no JSON form: {error}")))?;
        Ok(value.into())
    }

    /// A value that a layer put in place of the tool's own, and that does not have its shape, is
    /// shown as it is.
    fn render(&self, _arguments: &Value, value: &Value) -> String {
        T::Value::deserialize(value).map_or_else(|_| value.to_string(), |it| T::text(&it))
    }

    fn finalize_content(&self, result: &ToolResult, mut content: Content) -> Content {
        let keep = if result.is_error() { Keep::Head } else { T::KEEP };
        if let [ContentBlock::Text { text }] = content.as_mut_slice()
            && text.len() > MOST_BYTES
        {
            *text = bound(keep, text, MOST_BYTES);
        }
        content
    }

    fn present_call(&self, _arguments: &Value) -> Option<CallIntent> {
        Some(CallIntent::Generic { kind: T::KIND })
    }

    fn present_result(&self, _arguments: &Value, result: &ToolResult) -> Option<ResultIntent> {
        (!result.is_error()).then_some(ResultIntent::Generic { kind: T::KIND })
    }
}
