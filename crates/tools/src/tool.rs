//! What a tool is.

use dsh_core::async_trait;
use serde_json::Value;

use crate::{
    call::{Content, ErrorCode, ToolCall, ToolResult},
    intent::{CallIntent, ResultIntent},
};

/// What the registry knows of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Unique name.
    pub name: String,
    /// For the model.
    pub description: String,
    /// Parameter schema in the small dialect: `type, properties, required, description, enum, items`.
    pub parameters: Value,
    /// Schema of a successful value; also `oneOf`, `const`, `additionalProperties`, null.
    pub output: Value,
}

/// A tool.
///
/// ```
/// use std::sync::Arc;
/// use dsh_core::{Cancel, Scope, async_trait};
/// use serde_json::{Value, json};
/// use tools::{Tool, ToolCall, ToolError, ToolOutput, ToolRegistry, ToolSpec, parameters_of};
///
/// /// The parameters: documentation becomes the description of each.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Arguments {
///     /// What to count in.
///     text: String,
/// }
///
/// struct CountWords(ToolSpec);
///
/// #[async_trait]
/// impl Tool for CountWords {
///     fn spec(&self) -> &ToolSpec {
///         &self.0
///     }
///
///     async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
///         let Arguments { text } = serde_json::from_value(call.arguments)
///             .map_err(|error| ToolError::new("CountError", "INVALID_ARGS", error.to_string()))?;
///         Ok(json!({ "words": text.split_whitespace().count() }).into())
///     }
///
///     fn render(&self, _: &Value, value: &Value) -> String {
///         format!("{} words", value["words"])
///     }
/// }
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let tool = CountWords(ToolSpec {
///     name: "count_words".to_owned(),
///     description: "Counts the words of a text.".to_owned(),
///     parameters: parameters_of::<Arguments>()?,
///     output: json!({ "type": "object", "properties": { "words": { "type": "integer" } } }),
/// });
/// // A plugin registers it with the service it injects and its own scope.
/// let scope = Scope::root("example");
/// let tools = ToolRegistry::new(&scope, || None)?;
/// tools.register(&scope, Arc::new(tool))?;
///
/// let call = |arguments| ToolCall {
///     call_id: "1".to_owned(),
///     name: "count_words".to_owned(),
///     arguments,
///     agent: None,
///     cancel: Cancel::new(),
///     progress: None,
/// };
/// let result = tools.call(call(json!({ "text": "to be or not" }))).await;
/// assert_eq!(result.content, [tools::ContentBlock::text("4 words")]);
/// let result = tools.call(call(json!({}))).await;
/// assert_eq!(result.error.map(|it| it.info.code).as_deref(), Some("INVALID_ARGS"));
/// scope.dispose().await?;
/// # anyhow::Ok(())
/// # })?;
/// # anyhow::Ok(())
/// ```
#[async_trait]
pub trait Tool: Send + Sync {
    /// Name, description and schemas.
    fn spec(&self) -> &ToolSpec;

    /// Runs one call whose arguments fit the schema (absent and null optional ones alike are
    /// gone). It is always awaited to its end: on cancellation it must come to one by itself.
    ///
    /// It must not await the disposal of the calling agent or of its own plugin: both await it.
    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolError>;

    /// The model text of a successful value. Pure.
    fn render(&self, arguments: &Value, value: &Value) -> String;

    /// Last say over the content of **every** outcome, once: bounding belongs here.
    fn finalize_content(&self, _result: &ToolResult, content: Content) -> Content {
        content
    }

    /// How to show a call with these arguments.
    fn present_call(&self, _arguments: &Value) -> Option<CallIntent> {
        None
    }

    /// How to show its result.
    fn present_result(&self, _arguments: &Value, _result: &ToolResult) -> Option<ResultIntent> {
        None
    }

    /// Texts in the arguments of a call, made or to be made, that nothing else may show either, as
    /// far as the tool knows now: what was or will be typed unseen.
    fn secrets(&self, _arguments: &Value) -> Vec<String> {
        Vec::new()
    }

    /// What of the arguments may be logged with the call, and quoted in an error. They are as the
    /// caller wrote them: they may be no object, miss required properties and hold undeclared ones.
    /// Undeclared ones that it leaves in place are withheld by the pipeline; see
    /// [`withhold`](crate::withhold) for how to do the same with declared ones.
    fn log_arguments(&self, arguments: &Value) -> Value {
        arguments.clone()
    }
}

/// A body that succeeded.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    /// The value.
    pub value: Value,
    /// Arguments to log with the result, for a tool that held them back with the call.
    pub log_arguments: Option<Value>,
}

impl From<Value> for ToolOutput {
    fn from(value: Value) -> Self {
        Self { value, log_arguments: None }
    }
}

/// A body that failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// What was wrong, with what, and what to do next.
    pub message: String,
    /// For programs.
    pub info: ErrorCode,
    /// Arguments to log with the result, for a tool that held them back with the call.
    pub log_arguments: Option<Box<Value>>,
}

impl ToolError {
    /// An error of the kind `name` (such as `TerminalError`) with a stable `code`.
    pub fn new(
        name: impl Into<String>,
        code: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            message: message.into(),
            info: ErrorCode { name: name.into(), code: code.into() },
            log_arguments: None,
        }
    }

    /// The same with arguments to log.
    #[must_use]
    pub fn with_log_arguments(self, arguments: Value) -> Self {
        Self { log_arguments: Some(Box::new(arguments)), ..self }
    }
}
