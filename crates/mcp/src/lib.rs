//! Serves `ctx.tools` to any MCP client over a pair of streams, or to many over HTTP.
//!
//! Guarantees:
//! - one connection is one agent: its end, whatever the reason, cancels the calls that still run
//!   (after the end of the input those that do not end at once) and disposes the agent, and
//!   [`McpServer::serve`] returns only when that is over;
//! - no client delays that end by more than moments: not one that reads nothing, and not one that
//!   never began a session;
//! - calls run side by side: a long one blocks no other;
//! - the text of a result is the tool's own, bounded by the tool; nothing is added to it but
//!   notices, each as a block of its own;
//! - nothing but the protocol is written to the output.
//!
//! Reading order: [`McpServer::serve`] → `wire`, `message` → `connection` → `handler` → `progress`,
//! `roots`, `schema`; [`McpServer::http`] → `http`.

mod connection;
mod handler;
mod http;
mod message;
mod progress;
mod roots;
mod schema;
mod wire;

use std::{num::NonZeroU64, path::PathBuf, sync::Arc, time::Duration};

use agents::{AgentRegistry, Agents};
use anyhow::Context as _;
use dsh_core::{Ctx, Deps, Lookup, Plugin, Provided, Service, async_trait, register_plugin};
use rmcp::{
    RoleServer,
    service::{ServerInitializeError, serve_server_with_ct},
    transport::Transport,
};
use sandbox_policy::SandboxPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use session_log::SessionLog;
use system_prompt::{PromptRegistry, Section, SystemPrompt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tools::{ToolRegistry, Tools};

pub use crate::http::Http;
use crate::{
    connection::Connection,
    handler::Handler,
    wire::{Ends, Wire},
};

/// Service key of the server.
pub struct Mcp;

impl Service for Mcp {
    type Api = McpServer;
    const NAME: &'static str = "mcp";
}

/// Row `mcp`: the front end that talks MCP.
pub struct McpPlugin;

register_plugin!(McpPlugin);

/// Configuration of the row.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// Send `outputSchema` and `structuredContent` too. Many clients show the model only one of
    /// text and structure.
    pub structured_content: bool,
    /// Over HTTP: how long a session of MCP, with its agent, outlives the last request and the last
    /// stream of its client, in seconds. A client that keeps no stream open needs more than it
    /// pauses between two requests.
    pub session_grace_seconds: NonZeroU64,
}

impl Default for Config {
    fn default() -> Self {
        Self { structured_content: false, session_grace_seconds: SESSION_GRACE }
    }
}

const SESSION_GRACE: NonZeroU64 = NonZeroU64::new(60).unwrap();

/// How long calls may go on after the end of the input.
const LAST_ANSWERS: Duration = Duration::from_millis(250);

/// How long the client has for reading the last answers, once everything else has ended.
const LAST_WRITES: Duration = Duration::from_millis(100);

/// What a client's model should know besides the tools' own guidance.
const NO_ONE_SHOT_TOOLS: &str = "This server mounts no one-shot shell, file or edit tools: what \
the guidance above says of them refers to tools that you may have from elsewhere. A notice about \
work that finished in the background is added to the result of your next tool call, as a block of \
its own.";

#[async_trait]
impl Plugin for McpPlugin {
    const NAME: &'static str = "mcp";
    type Config = Config;
    type Inject = (Tools, Agents, SystemPrompt, Option<SessionLog>, Option<SandboxPolicy>);
    type Provide = Mcp;

    async fn setup(
        ctx: &Ctx,
        (tools, agents, prompt, log, policy): Deps<Self>,
        config: Self::Config,
    ) -> anyhow::Result<Provided<Self>> {
        let section =
            Section { name: "host:mcp".to_owned(), order: 200, text: NO_ONE_SHOT_TOOLS.to_owned() };
        prompt.contribute(ctx.scope(), section)?;
        let (sections, scope) = (Arc::clone(&prompt), ctx.scope().clone());
        ctx.when_started(async move || match policy.get() {
            None => Ok(()),
            Some(policy) => {
                let mode = policy.default_mode();
                let text = format!("Sandbox mode: {} ({}).", mode.name(), mode.meaning());
                let section = Section { name: "host:sandbox".to_owned(), order: 201, text };
                sections.contribute(&scope, section)
            }
        });
        let structured = config.structured_content;
        let session_grace = Duration::from_secs(config.session_grace_seconds.get());
        Ok(Arc::new(McpServer { tools, agents, prompt, log, structured, session_grace }))
    }
}

/// Serves connections.
pub struct McpServer {
    tools: Arc<ToolRegistry>,
    agents: Arc<AgentRegistry>,
    prompt: Arc<PromptRegistry>,
    log: Lookup<SessionLog>,
    structured: bool,
    session_grace: Duration,
}

impl McpServer {
    /// [`Self::serve`] over the standard streams of this process.
    pub async fn serve_stdio(
        &self,
        workspace_root: PathBuf,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        let (input, output) = rmcp::transport::stdio_pipes();
        self.serve(input, output, workspace_root, stop).await
    }

    /// Serves one client until it ends its input, takes no more output, goes away, or `stop` is
    /// cancelled; then ends its agent and everything the agent owns, and returns.
    ///
    /// `workspace_root` (absolute) is the agent's unless the client offers roots: then it is the
    /// first of them.
    ///
    /// # Errors
    /// The client and this server have no version of MCP in common, or something of the agent
    /// could not be ended. A client that goes away is no error.
    pub async fn serve<R, W>(
        &self,
        input: R,
        output: W,
        workspace_root: PathBuf,
        stop: CancellationToken,
    ) -> anyhow::Result<()>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let ends = Ends::new(&stop);
        let wire = Wire::new(input, output, ends.clone());
        self.converse(wire, workspace_root, ends).await
    }

    /// Serves one client over `line` until `ends` say so, or `line` has no more messages.
    async fn converse<T>(&self, line: T, workspace_root: PathBuf, ends: Ends) -> anyhow::Result<()>
    where
        T: Transport<RoleServer> + 'static,
    {
        let connection = Arc::new(Connection::new(
            Arc::clone(&self.agents),
            self.log.clone(),
            workspace_root,
            self.prompt.render(None),
            ends.clone(),
        ));
        let handler =
            Handler::new(Arc::clone(&self.tools), Arc::clone(&connection), self.structured);
        let protocol = CancellationToken::new();
        // On the heap: it is large, and gone once the session has begun.
        let beginning = Box::pin(serve_server_with_ct(handler, line, protocol.clone()));
        let served = tokio::select! {
            served = beginning => served,
            () = ends.gone.cancelled() => return Ok(()),
        };
        let running = match served {
            Ok(running) => running,
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(error).context("the client did not begin an MCP session"),
        };
        let waiting = running.waiting();
        tokio::pin!(waiting);
        // After the end of the input rmcp waits for the calls that still run. Short ones may end:
        // whoever pipes requests in wants their answers. The others hear that nobody waits.
        let early = tokio::select! {
            reason = &mut waiting => Some(reason),
            () = async {
                ends.silent.cancelled().await;
                tokio::time::timeout(LAST_ANSWERS, ends.gone.cancelled()).await.ok();
            } => None,
        };
        ends.gone.cancel();
        let ended = connection.end().await;
        protocol.cancel();
        let over = match early {
            Some(over) => over,
            None => {
                if let Ok(over) = tokio::time::timeout(LAST_WRITES, &mut waiting).await {
                    over
                } else {
                    ends.cut.cancel();
                    waiting.await
                }
            }
        };
        if let Err(error) = over {
            tracing::error!(%error, "the protocol's task failed");
        }
        ended
    }
}
