//! `ctx.agentLoop`: a model, its tools, and the turns between them.
//!
//! A *turn* begins with a message of the user, or with notices that wake the idle agent. It is a
//! sequence of *steps*: the notices that have arrived, one reply of the model, and the calls of that
//! reply, one after another. A reply without calls ends it.
//!
//! Guarantees:
//! - system prompt and tool schemas are those of the moment of the step;
//! - each call of a reply is answered by one result, in order: also a call of an unknown tool, one
//!   with broken arguments, one of a reply that was cut, and one that a cancellation came before;
//! - a cancelled turn ends when its running call has come to its end;
//! - what the model reads and says is in the session log once, but for secrets: of the arguments of
//!   a call stands there what the tool allows to be logged, and what a tool is known to have typed
//!   unseen, or to be about to, stands in no message of the model either;
//! - what is sent to the model has at most `maxHistoryBytes` bytes, the task and the last reply
//!   apart, and the schemas and the system prompt not counted.
//!
//! Reading order: `conversation` → `reply`, `history`, `background` → `event` (what can be watched).

mod background;
mod conversation;
mod event;
mod history;
mod reply;
mod secrets;

pub use conversation::{Conversation, TurnEnd};
pub use event::{LoopEvent, LoopObserver};
pub use history::Trimmed;

use std::sync::Arc;

use agents::Agent;
use dsh_core::{
    Cancel, Ctx, Deps, Lookup, Plugin, Provided, SafeInteger, Service, async_trait, register_plugin,
};
use jobs::Jobs;
use model::{Model, ModelAdapter, ModelError};
use sandbox_policy::SandboxPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use session_log::SessionLog;
use system_prompt::{PromptRegistry, Section, SystemPrompt};
use tools::{ToolRegistry, Tools};

const ROLE: &str = "You are an agent that works on its user's machine with the tools below. Work \
until the task is done, or until you know that it cannot be, without asking back where you can find \
out yourself. Then answer in a few plain sentences: what you did, what came of it, and what is left \
undone. Report what the tools showed; never claim a success that they did not.";

const NO_ONE_SHOT_TOOLS: &str = "No one-shot shell, file or edit tools are mounted here: what the \
guidance says of them does not apply, so do that work in a terminal session too.";

/// Service key of the loop.
pub struct Loop;

impl Service for Loop {
    type Api = AgentLoop;
    const NAME: &'static str = "agentLoop";
}

/// Row `agent-loop`: the front end that brings its own model.
pub struct AgentLoopPlugin;

register_plugin!(AgentLoopPlugin);

/// Configuration of the row.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// Most bytes of messages in one request. Of more, older tool results are left out first.
    pub max_history_bytes: SafeInteger<4096>,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_history_bytes: SafeInteger::of::<262_144>() }
    }
}

#[async_trait]
impl Plugin for AgentLoopPlugin {
    const NAME: &'static str = "agent-loop";
    type Config = Config;
    type Inject =
        (Tools, SystemPrompt, Model, Option<SessionLog>, Option<Jobs>, Option<SandboxPolicy>);
    type Provide = Loop;

    async fn setup(
        ctx: &Ctx,
        (tools, prompt, model, log, jobs, policy): Deps<Self>,
        config: Config,
    ) -> anyhow::Result<Provided<Self>> {
        for (name, order, text) in [("host:role", 0, ROLE), ("host:run", 200, NO_ONE_SHOT_TOOLS)] {
            let section = Section { name: name.to_owned(), order, text: text.to_owned() };
            prompt.contribute(ctx.scope(), section)?;
        }
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
        let max_history_bytes = config.max_history_bytes.as_len();
        Ok(Arc::new(AgentLoop { tools, prompt, model, log, jobs, max_history_bytes }))
    }
}

/// Starts conversations.
#[derive(Clone)]
pub struct AgentLoop {
    tools: Arc<ToolRegistry>,
    prompt: Arc<PromptRegistry>,
    model: Arc<dyn ModelAdapter>,
    log: Lookup<SessionLog>,
    jobs: Lookup<Jobs>,
    max_history_bytes: usize,
}

impl AgentLoop {
    /// Whether the model can be asked at all; see [`ModelAdapter::ready`].
    pub fn ready(&self) -> Result<(), ModelError> {
        self.model.ready()
    }

    /// A conversation of the model with the user of `agent`, which whoever calls this owns and ends.
    /// An agent has one conversation at a time.
    pub fn converse(&self, agent: &Arc<Agent>, observer: Arc<dyn LoopObserver>) -> Conversation {
        Conversation::new(self.clone(), Arc::clone(agent), observer)
    }

    /// Works on one task: the turn of the task, and those that notices wake the agent for. While
    /// jobs of the agent run, their notices are waited for, as long as one could wake it.
    ///
    /// # Errors
    /// The model failed for good. What runs on the agent's behalf goes on until the agent ends.
    pub async fn run(
        &self,
        agent: &Arc<Agent>,
        task: &str,
        observer: Arc<dyn LoopObserver>,
        cancel: &Cancel,
    ) -> Result<TurnEnd, ModelError> {
        let mut conversation = self.converse(agent, observer);
        let mut end = conversation.say(task, cancel).await?;
        while end == TurnEnd::Done && conversation.woken(cancel).await {
            end = conversation.heed(cancel).await?;
        }
        Ok(end)
    }
}
