//! A host inside the test: a composition with the built-in base layer, a private home and a
//! private workspace.
//!
//! The home reaches those who keep files there through their configuration, never through the
//! environment, which all tests of a process share.

use std::{path::Path, sync::Arc};

use agents::{Agent, AgentSpec, Agents};
use anyhow::Context as _;
use dsh_core::{
    App, Cancel, Composition, Plan, PluginEntry, Service, Vocabulary, scope::DisposeError,
};
use serde_json::Value;
use tempfile::TempDir;
use tools::{ToolCall, ToolResult, Tools};

// Only what is mentioned is linked.
use sandbox_policy as _;
use session_log as _;
use subprocess as _;
use system_prompt as _;

/// The rows a host adds unless the file has them.
const BASE: [&str; 6] =
    ["agents", "session-log", "tools", "system-prompt", "sandbox-policy", "subprocess"];

const VOCABULARY: Vocabulary = Vocabulary {
    prefix: "@deepseek-ai/dsh-",
    aliases: &[
        ("agent", "agents"),
        ("subprocess-local", "subprocess"),
        ("jobs-local", "jobs"),
        ("session-persistence-jsonl", "session-log"),
    ],
    not_provided: &[],
};

/// A running host.
pub struct TestHost {
    app: App,
    home: TempDir,
    workspace: TempDir,
}

impl TestHost {
    /// Boots `composition`, a YAML list of rows.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub async fn boot(composition: &str) -> Self {
        match Self::try_boot(composition).await {
            Ok(host) => host,
            Err(error) => panic!("the host does not start: {error:#}"),
        }
    }

    /// Boots `composition`; an error has undone all that was started.
    pub async fn try_boot(composition: &str) -> anyhow::Result<Self> {
        let home = tempfile::Builder::new().prefix("home-").tempdir().context("home")?;
        let workspace = tempfile::Builder::new().prefix("work-").tempdir().context("workspace")?;
        let app = App::start(plan(composition, home.path())?).await?;
        Ok(Self { app, home, workspace })
    }

    /// The application.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// What stands for `$DSH_HOME`.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Workspace root of the agents made by [`Self::agent`].
    pub fn workspace(&self) -> &Path {
        self.workspace.path()
    }

    /// A service of the host.
    ///
    /// # Panics
    ///
    /// When no row provides it.
    pub fn service<K: Service>(&self) -> Arc<K::Api> {
        let Some(service) = self.app.service::<K>() else {
            panic!("no row provides `{}`", K::NAME);
        };
        service
    }

    /// Creates an agent in the workspace.
    ///
    /// # Panics
    ///
    /// When the registry refuses.
    pub fn agent(&self, id: &str) -> Arc<Agent> {
        let workspace_root = self.workspace.path().to_owned();
        let spec = AgentSpec { id: Some(id.to_owned()), workspace_root };
        match self.service::<Agents>().create(spec) {
            Ok(agent) => agent,
            Err(error) => panic!("no agent `{id}`: {error}"),
        }
    }

    /// Runs one tool call of `agent` through the whole pipeline.
    pub async fn call(&self, agent: &Arc<Agent>, tool: &str, arguments: Value) -> ToolResult {
        self.call_with(agent, tool, arguments, &Cancel::new()).await
    }

    /// The same, with a cancellation of the test's.
    pub async fn call_with(
        &self,
        agent: &Arc<Agent>,
        tool: &str,
        arguments: Value,
        cancel: &Cancel,
    ) -> ToolResult {
        let call = ToolCall {
            call_id: next_call_id(),
            name: tool.to_owned(),
            arguments,
            agent: Some(Arc::clone(agent)),
            cancel: cancel.clone(),
            progress: None,
        };
        self.service::<Tools>().call(call).await
    }

    /// Ends an agent and all it owns.
    pub async fn dispose_agent(&self, agent: &Arc<Agent>) -> Result<(), Arc<DisposeError>> {
        self.service::<Agents>().dispose(agent).await
    }

    /// Ends the host. Can be repeated after a failure.
    pub async fn dispose(&self) -> Result<(), Arc<DisposeError>> {
        self.app.dispose().await
    }
}

/// The plan of `composition` over the base layer, with `home` for what keeps files there.
pub fn plan(composition: &str, home: &Path) -> anyhow::Result<Plan> {
    let linked = PluginEntry::linked();
    let base: Vec<_> =
        BASE.into_iter().filter(|name| linked.iter().any(|it| it.name == *name)).collect();
    let mut composition =
        Composition::parse("test.yml", composition, &VOCABULARY)?.with_base(&base, &linked);
    for keeper in ["session-log", "subprocess", "terminal-bash", "terminal-remote"] {
        if composition.rows().iter().any(|row| row.plugin == keeper) {
            composition = composition.with_config(keeper, "home", home.display().to_string());
        }
    }
    Ok(Plan::resolve(&composition, &linked)?)
}

fn next_call_id() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("call-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}
