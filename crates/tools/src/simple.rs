//! The skeleton of tools that ask a service one thing and say what it answered.
//!
//! Guarantees: a call without the caller that the family wants, or whose arguments do not fit, reaches
//! no service; a result of one text keeps the family's bound, an error its beginning.

use std::{marker::PhantomData, sync::Arc};

use dsh_core::{Cancel, async_trait};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    CallIntent, Content, ContentBlock, DialectError, ResultIntent, Tool, ToolCall, ToolError,
    ToolKind, ToolOutput, ToolResult, ToolSpec, parameters_of,
    text::{Keep, bound},
};

/// What the tools of one crate share, and have at hand.
pub trait Family: Clone + Send + Sync + 'static {
    /// Under which name their errors go.
    const ERROR: &'static str;
    /// Who calls.
    type Caller: Send + Sync;

    /// Who makes a call; an error where the tools do not serve such a caller.
    fn caller(call: &ToolCall) -> Result<Self::Caller, ToolError>;

    /// Most bytes of one text.
    fn cap(&self) -> usize;

    /// Bounds a result of one text, whatever its origin. More blocks keep their shape.
    fn bound(&self, keep: Keep, mut content: Content) -> Content {
        if let [ContentBlock::Text { text }] = content.as_mut_slice()
            && text.len() > self.cap()
        {
            *text = bound(keep, text, self.cap());
        }
        content
    }
}

/// What makes one of these tools.
pub trait Simple: Send + Sync + 'static {
    /// As the model writes it.
    const NAME: &'static str;
    /// For the model.
    const DESCRIPTION: &'static str;
    /// How its calls and results are shown.
    const KIND: ToolKind;
    /// Which end of its text matters more.
    const KEEP: Keep = Keep::Head;
    /// What it has at hand.
    type Host: Family;
    /// What the model passes; the parameter schema comes from it.
    type Args: DeserializeOwned + JsonSchema + Send;
    /// The structured value.
    type Value: Serialize + DeserializeOwned;

    /// Schema of the value.
    fn output(host: &Self::Host) -> Value;

    /// The work.
    fn run(
        host: &Self::Host,
        caller: &<Self::Host as Family>::Caller,
        args: Self::Args,
        cancel: &Cancel,
    ) -> impl Future<Output = Result<Self::Value, ToolError>> + Send;

    /// The model text of a value, at most `cap` bytes.
    fn text(arguments: &Value, value: &Self::Value, cap: usize) -> String;
}

/// The tool made of these parts.
///
/// # Errors
/// The argument type cannot be said in the dialect of parameter schemas, which is a bug.
pub fn tool<T: Simple>(host: &T::Host) -> Result<Arc<dyn Tool>, DialectError> {
    let spec = ToolSpec {
        name: T::NAME.to_owned(),
        description: T::DESCRIPTION.to_owned(),
        parameters: parameters_of::<T::Args>()?,
        output: T::output(host),
    };
    Ok(Arc::new(SimpleTool::<T> { host: host.clone(), spec, parts: PhantomData }))
}

struct SimpleTool<T: Simple> {
    host: T::Host,
    spec: ToolSpec,
    parts: PhantomData<T>,
}

#[async_trait]
impl<T: Simple> Tool for SimpleTool<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        let caller = T::Host::caller(&call)?;
        let args = parse::<T::Host, _>(&call.arguments)?;
        let value = T::run(&self.host, &caller, args, &call.cancel).await?;
        json::<T::Host>(&value).map(ToolOutput::from)
    }

    fn render(&self, arguments: &Value, value: &Value) -> String {
        typed(value, |value| T::text(arguments, value, self.host.cap()))
    }

    fn finalize_content(&self, result: &ToolResult, content: Content) -> Content {
        self.host.bound(if result.is_error() { Keep::Head } else { T::KEEP }, content)
    }

    fn present_call(&self, _arguments: &Value) -> Option<CallIntent> {
        Some(CallIntent::Generic { kind: T::KIND })
    }

    fn present_result(&self, _arguments: &Value, result: &ToolResult) -> Option<ResultIntent> {
        (!result.is_error()).then_some(ResultIntent::Generic { kind: T::KIND })
    }
}

/// The arguments of a call as `T`.
pub fn parse<F: Family, T: DeserializeOwned>(arguments: &Value) -> Result<T, ToolError> {
    let invalid = |error| format!("invalid arguments: {error}");
    T::deserialize(arguments)
        .map_err(|error| ToolError::new(F::ERROR, "INVALID_ARGS", invalid(error)))
}

/// A value as it goes over the wire.
pub fn json<F: Family>(value: &impl Serialize) -> Result<Value, ToolError> {
    let no_form = |error| format!("the result has no JSON form: {error}");
    serde_json::to_value(value)
        .map_err(|error| ToolError::new(F::ERROR, "INVALID_OUTPUT", no_form(error)))
}

/// The text of a value of type `T`. A value that a layer put in place of the tool's own, and that
/// does not have its shape, is shown as it is.
pub fn typed<T: DeserializeOwned>(value: &Value, text: impl FnOnce(&T) -> String) -> String {
    T::deserialize(value).map_or_else(|_| value.to_string(), |it| text(&it))
}
