//! The six model-facing terminal tools: their schemas, model texts and the bound on them.
//!
//! Guarantees:
//! - every single-text outcome of a tool, errors and denials included, has at most
//!   `maxResultBytes` bytes, and so has the sum of the free texts of its structured value;
//! - a session or job id is whole in the text that issues it, however small the bound;
//! - what a send types is logged only after the terminal is known to have shown it.
//!
//! Reading order: [`text`] (pure) → `value`, `schema` (what crosses the wire) → one file per
//! tool, on the skeleton of [`tools::simple`] all but `send` → `background`.

mod arguments;
mod background;
mod close;
pub mod family;
mod list;
mod open;
mod read;
pub mod schema;
mod send;
mod signal;
pub mod text;
mod typed;
pub mod value;

use std::sync::Arc;

pub use crate::send::settled;
use agents::Agent;
use dsh_core::{Ctx, Deps, Lookup, Plugin, Provided, SafeInteger, async_trait, register_plugin};
use jobs::Jobs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use system_prompt::{Section, SystemPrompt};
use terminal::{TerminalRegistry, Terminals};
use tools::{
    DialectError, Tool, ToolCall, ToolError, Tools,
    simple::{self, Family},
};

use crate::{close::Close, list::List, open::Open, read::Read, signal::Signal};

const GUIDANCE: &str = "Use a terminal session only when work needs persistent terminal state or \
interactive stdin; prefer shell/read/write/edit for bounded one-shot operations. Track every \
terminal session id and close sessions that no longer matter. An inferred_idle or timeout result \
does not prove the foreground command exited.";

/// Row `tool-terminal`: registers the tools and their guidance.
pub struct ToolTerminal;

register_plugin!(ToolTerminal);

/// Configuration of the row.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// Say after each send which command ended and how, and what the terminal is doing now.
    pub report_state: bool,
    /// Offer `run_in_background`.
    pub enable_run_in_background: bool,
    /// Most bytes of one result, everything included. At the least an acknowledgement with its id
    /// still fits.
    pub max_result_bytes: SafeInteger<64>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            report_state: true,
            enable_run_in_background: true,
            max_result_bytes: SafeInteger::of::<262_144>(),
        }
    }
}

#[async_trait]
impl Plugin for ToolTerminal {
    const NAME: &'static str = "tool-terminal";
    type Config = Config;
    type Inject = (Terminals, Tools, SystemPrompt, Option<Jobs>);
    type Provide = ();

    async fn setup(
        ctx: &Ctx,
        (terminals, tools, prompt, jobs): Deps<Self>,
        config: Self::Config,
    ) -> anyhow::Result<Provided<Self>> {
        for tool in six(&terminals, jobs, &config)? {
            tools.register(ctx.scope(), tool)?;
        }
        let section =
            Section { name: "tool:pty".to_owned(), order: 106, text: GUIDANCE.to_owned() };
        prompt.contribute(ctx.scope(), section)?;
        Ok(())
    }
}

/// The tools over a session service, in the order of their use. The jobs are looked up with each
/// send that goes to the background.
///
/// # Errors
/// An argument type cannot be said in the dialect of parameter schemas, which is a bug.
pub fn six(
    terminals: &Arc<TerminalRegistry>,
    jobs: Lookup<Jobs>,
    config: &Config,
) -> Result<[Arc<dyn Tool>; 6], DialectError> {
    let host = Host {
        terminals: Arc::clone(terminals),
        jobs,
        report_state: config.report_state,
        background: config.enable_run_in_background,
        cap: config.max_result_bytes.as_len(),
    };
    Ok([
        simple::tool::<Open>(&host)?,
        Arc::new(send::Send::new(host.clone())?),
        simple::tool::<Read>(&host)?,
        simple::tool::<Signal>(&host)?,
        simple::tool::<Close>(&host)?,
        simple::tool::<List>(&host)?,
    ])
}

/// What every tool has at hand.
#[derive(Clone)]
struct Host {
    terminals: Arc<TerminalRegistry>,
    jobs: Lookup<Jobs>,
    report_state: bool,
    background: bool,
    /// Most bytes of one result.
    cap: usize,
}

impl Family for Host {
    const ERROR: &'static str = family::ERROR;
    type Caller = Arc<Agent>;

    fn caller(call: &ToolCall) -> Result<Arc<Agent>, ToolError> {
        family::agent(call).cloned()
    }

    fn cap(&self) -> usize {
        self.cap
    }
}
