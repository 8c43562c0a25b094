//! The model-facing job tools, and the notices of finished jobs.
//!
//! Guarantees:
//! - every single-text outcome of a tool, errors and denials included, has at most `maxResultBytes`
//!   bytes; a reading, the answer to a kill and a notice have at most as many as the job's producer
//!   allows besides, and so have text and label of a structured reading, and detail and label of a
//!   job in any other structured value, together;
//! - the id of a job is whole in the notice and in the answer to a kill, however small the bound;
//! - an end that nobody was told of by these tools is told by a notice, once, to exactly the owner.
//!
//! Reading order: [`text`] (pure) → `schema` (what crosses the wire) → one file per tool, on the
//! skeleton of [`tools::simple`] → `notice`.

mod arguments;
mod kill;
mod list;
mod notice;
mod output;
mod schema;
pub mod text;

use std::{sync::Arc, time::Duration};

use agents::Agent;
use dsh_core::{ConfigError, Ctx, Deps, Plugin, Provided, SafeInteger, async_trait};
use jobs::{JobRegistry, Jobs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use system_prompt::{Section, SystemPrompt};
use tools::{
    DialectError, Tool, ToolCall, ToolError, Tools,
    simple::{self, Family, Simple as _},
};

use crate::{kill::Kill, list::List, notice::Notifier, output::Output};

const GUIDANCE: &str = "Track the id of every background job you start. You are told when a job \
finishes, so do not poll: go on with other work, and where nothing else is left to do, wait for it \
with job_output. Before your final answer collect the output of jobs that still matters, and end \
with job_kill what no longer does.";

/// Row `tool-jobs`: registers the tools, their guidance, and the notices.
pub struct ToolJobs;

dsh_core::register_plugin!(ToolJobs);

/// Configuration of the row.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// Whether the end of a job wakes an idle agent.
    pub completion_delivery: CompletionDelivery,
    /// How often an agent is woken at most between two messages of its user.
    pub max_consecutive_wakes: SafeInteger<0>,
    /// How long `job_output` waits unless told otherwise, in milliseconds.
    pub wait_timeout_ms: SafeInteger<1>,
    /// How long it waits at most, whatever it is told.
    pub max_wait_timeout_ms: SafeInteger<1>,
    /// Most bytes of one result or notice, everything included.
    pub max_result_bytes: SafeInteger<64>,
}

/// How the end of a job reaches its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CompletionDelivery {
    /// In its next step, and if it is idle, there is one.
    Wakeup,
    /// In its next step, whenever that is.
    Quiet,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            completion_delivery: CompletionDelivery::Wakeup,
            max_consecutive_wakes: SafeInteger::of::<3>(),
            wait_timeout_ms: SafeInteger::of::<30_000>(),
            max_wait_timeout_ms: SafeInteger::of::<600_000>(),
            max_result_bytes: SafeInteger::of::<262_144>(),
        }
    }
}

#[async_trait]
impl Plugin for ToolJobs {
    const NAME: &'static str = "tool-jobs";
    type Config = Config;
    type Inject = (Jobs, Tools, SystemPrompt);
    type Provide = ();

    fn check(config: &Config) -> Vec<ConfigError> {
        let (wait, most) = (config.wait_timeout_ms.get(), config.max_wait_timeout_ms.get());
        if wait <= most {
            return Vec::new();
        }
        let message = format!("must not be greater than maxWaitTimeoutMs ({most}), got {wait}");
        vec![ConfigError::new("waitTimeoutMs", message).and_about("maxWaitTimeoutMs")]
    }

    async fn setup(
        ctx: &Ctx,
        (jobs, tools, prompt): Deps<Self>,
        config: Config,
    ) -> anyhow::Result<Provided<Self>> {
        for tool in three(&jobs, &config)? {
            tools.register(ctx.scope(), tool)?;
        }
        let section =
            Section { name: "tool:jobs".to_owned(), order: 106, text: GUIDANCE.to_owned() };
        prompt.contribute(ctx.scope(), section)?;
        let notifier = Arc::new(Notifier::new(&config));
        let expecting = Arc::clone(&notifier);
        let changed = Arc::new(move |owner: Option<&Arc<Agent>>| expecting.expect(owner));
        jobs.on_jobs_changed(ctx.scope(), "tool-jobs", changed)?;
        let told = Arc::new(move |done: &jobs::JobDone| notifier.job_done(done));
        jobs.on_job_done(ctx.scope(), "tool-jobs", told)?;
        jobs.attach_controller(ctx.scope(), "tool-jobs", Arc::new(serves))?;
        Ok(())
    }
}

/// Whether an agent has the tools to read and to stop its jobs.
fn serves(owner: Option<&Arc<Agent>>) -> bool {
    owner.is_none_or(|it| it.sees_tool(Output::NAME) && it.sees_tool(Kill::NAME))
}

/// The tools over a jobs service.
fn three(jobs: &Arc<dyn JobRegistry>, config: &Config) -> Result<[Arc<dyn Tool>; 3], DialectError> {
    let host = Host {
        jobs: Arc::clone(jobs),
        wait: Duration::from_millis(config.wait_timeout_ms.get()),
        longest_wait: Duration::from_millis(config.max_wait_timeout_ms.get()),
        cap: config.max_result_bytes.as_len(),
    };
    Ok([simple::tool::<Output>(&host)?, simple::tool::<List>(&host)?, simple::tool::<Kill>(&host)?])
}

/// What every tool has at hand.
#[derive(Clone)]
struct Host {
    jobs: Arc<dyn JobRegistry>,
    /// How long to wait unless told otherwise.
    wait: Duration,
    /// How long to wait at most.
    longest_wait: Duration,
    /// Most bytes of one result.
    cap: usize,
}

/// Who calls: without an agent, whoever may see the jobs that nobody owns.
struct Caller(Option<Arc<Agent>>);

impl Family for Host {
    const ERROR: &'static str = arguments::ERROR;
    type Caller = Caller;

    fn caller(call: &ToolCall) -> Result<Caller, ToolError> {
        Ok(Caller(call.agent.clone()))
    }

    fn cap(&self) -> usize {
        self.cap
    }
}
