//! The protocol's requests, answered from `ctx.tools`.

#![expect(deprecated, reason = "logging is on its way out of MCP, and today's clients use it")]

use std::sync::{Arc, Mutex};

use agents::Agent;
use dsh_core::lock;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CancelledNotificationParam,
        ContentBlock, Implementation, ListToolsResult, LoggingLevel,
        LoggingMessageNotificationParam, MetaObject, PaginatedRequestParams, ServerCapabilities,
        ServerConfig, SetLevelRequestParams, Tool,
    },
    service::{NotificationContext, Peer, RequestContext},
};
use serde_json::{Value, json};
use tools::{ProgressSink, ToolCall, ToolRegistry, ToolResult};

use crate::{connection::Connection, progress::Progress, schema};

/// One connection's handler.
pub(crate) struct Handler {
    tools: Arc<ToolRegistry>,
    connection: Arc<Connection>,
    structured: bool,
    notices: Arc<Notices>,
}

/// Tells the client of notices.
struct Notices {
    connection: Arc<Connection>,
    /// The least severe level the client wants.
    level: Mutex<LoggingLevel>,
}

impl Handler {
    pub(crate) fn new(
        tools: Arc<ToolRegistry>,
        connection: Arc<Connection>,
        structured: bool,
    ) -> Self {
        let notices =
            Notices { connection: Arc::clone(&connection), level: Mutex::new(LoggingLevel::Info) };
        Self { tools, connection, structured, notices: Arc::new(notices) }
    }

    async fn agent(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Agent>, ErrorData> {
        let first = |agent: &Arc<Agent>| self.follow(agent, context.peer.clone());
        self.connection
            .agent(&context.peer, context.client_capabilities(), first)
            .await
            .map_err(|error| ErrorData::internal_error(format!("{error:#}"), None))
    }

    /// Tells the client of notices as they arrive, while the agent lives.
    fn follow(&self, agent: &Arc<Agent>, peer: Peer<RoleServer>) {
        let notices = Arc::clone(&self.notices);
        let follower = Arc::clone(agent);
        let spawned = agent.scope().spawn("MCP notices", move |ended| async move {
            loop {
                tokio::select! {
                    () = follower.inbox().arrived() => notices.tell(&peer).await,
                    () = ended.cancelled() => return Ok(()),
                }
            }
        });
        if let Err(error) = spawned {
            tracing::debug!(%error, "the agent ended before it began");
        }
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let running = self.connection.begin(&context.id, context.ct.is_cancelled());
        let agent = self.agent(&context).await?;
        let token = context.meta.get_progress_token();
        let progress = token.as_ref().map(|_| Arc::new(Progress::default()));
        let call = ToolCall {
            call_id: running.call_id(),
            name: request.name.clone().into_owned(),
            arguments: Value::Object(request.arguments.unwrap_or_default()),
            agent: Some(Arc::clone(&agent)),
            cancel: running.cancel.clone(),
            progress: progress.clone().map(|it| it as Arc<dyn ProgressSink>),
        };
        let calling = async {
            let result = self.tools.call(call).await;
            if let Some(progress) = &progress {
                progress.finish();
            }
            result
        };
        let result = match (&progress, &token) {
            (Some(progress), Some(token)) => {
                let pumping = progress.pump(&context.peer, token, &self.connection.ends.silent);
                tokio::join!(calling, pumping).0
            }
            _ => calling.await,
        };
        let schema = (self.structured && !result.is_error())
            .then(|| self.tools.list(Some(&agent)).into_iter().find(|it| it.name == request.name))
            .flatten()
            .map(|it| it.output);
        let mut reply = reply(result, schema.as_ref());
        let cancelled = || running.cancel.is_cancelled() || context.ct.is_cancelled();
        if !cancelled() {
            self.notices.tell(&context.peer).await;
        }
        // A cancelled request gets no reply, so its notices wait for the next one.
        if !cancelled() {
            let untold = self.connection.take_untold();
            reply.content.extend(untold.into_iter().map(ContentBlock::text));
        }
        Ok(reply)
    }
}

/// What a call hears when the client gave no reason.
const CANCELLED: &str = "cancelled by the client";

fn reply(result: ToolResult, schema: Option<&Value>) -> CallToolResult {
    let content = result
        .content
        .into_iter()
        .map(|tools::ContentBlock::Text { text }| ContentBlock::text(text))
        .collect();
    if let Some(error) = result.error {
        let mut reply = CallToolResult::error(content);
        let mut meta = MetaObject::new();
        meta.insert("dsh/error".to_owned(), json!({ "code": error.info.code }));
        reply.meta = Some(meta);
        return reply;
    }
    let mut reply = CallToolResult::success(content);
    reply.structured_content =
        schema.zip(result.value).map(|(schema, value)| schema::value(schema, value));
    reply
}

impl Notices {
    /// Sends what has arrived as logging messages, unless the client wants less.
    async fn tell(&self, peer: &Peer<RoleServer>) {
        for notice in self.connection.collect_notices() {
            if !self.wanted() {
                continue;
            }
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, notice.into())
                .with_logger("dsh");
            let sending = peer.notify_logging_message(message);
            tokio::select! {
                sent = sending => {
                    if let Err(error) = sent {
                        tracing::debug!(%error, "a notice was not sent");
                    }
                }
                () = self.connection.ends.silent.cancelled() => return,
            }
        }
    }

    fn wanted(&self) -> bool {
        let level = lock(&self.level);
        matches!(*level, LoggingLevel::Debug | LoggingLevel::Info)
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_logging().build();
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("dsh", env!("CARGO_PKG_VERSION"))
                    .with_title("Persistent terminal sessions"),
            )
            .with_instructions(self.connection.instructions.clone())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let agent = self.agent(&context).await?;
        let tools = self.tools.list(Some(&agent)).into_iter().map(|spec| {
            let mut tool = Tool::new(spec.name, spec.description, schema::input(&spec.parameters));
            tool.output_schema = self.structured.then(|| Arc::new(schema::output(&spec.output)));
            tool
        });
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(request, context).await.map(CallToolResponse::from)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *lock(&self.notices.level) = request.level;
        Ok(())
    }

    async fn on_cancelled(
        &self,
        notification: CancelledNotificationParam,
        _context: NotificationContext<RoleServer>,
    ) {
        if let Some(id) = &notification.request_id {
            let reason = notification.reason.as_deref().unwrap_or(CANCELLED);
            self.connection.cancel(id, reason);
        }
    }
}
