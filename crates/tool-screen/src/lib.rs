//! Model-facing tools for programs that draw a screen, for waits and for searches.
//!
//! Guarantees:
//! - every single-text outcome of a tool, errors included, has at most `maxResultBytes` bytes;
//! - keys that may be a secret are logged only after the terminal is known to have shown them.
//!
//! Reading order: [`keys`] (names → presses, pure) → [`value`], `schema` (what crosses the wire) →
//! [`text`] (pure) → one file per tool.

mod arguments;
pub mod keys;
mod lines;
mod press;
mod resize;
mod schema;
mod screen;
mod search;
mod seen;
pub mod text;
pub mod value;
mod wait;

use std::sync::Arc;

use agents::Agent;
use dsh_core::{Ctx, Deps, Plugin, Provided, SafeInteger, async_trait, register_plugin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use system_prompt::{Section, SystemPrompt};
use terminal::{TerminalRegistry, Terminals};
use tool_terminal::family;
use tools::{
    DialectError, Tool, ToolCall, ToolError, Tools,
    simple::{self, Family},
};

use crate::seen::Seen;

const GUIDANCE: &str = "Programs that draw a whole screen (editors, pagers, monitors, menus) are \
driven by keys: terminal_keys presses them and returns what changed on the screen, terminal_screen \
shows all of it. A session of the type screen, where there is one, has pagers, editors and colours \
as the user has them. Do not type commands into such a program; leave it first (q, C-c, or Escape \
and ':q!'). To wait for something without typing, use terminal_wait instead of sending empty text, and \
to find something in long output use terminal_search and terminal_lines instead of reading all.";

/// Row `tool-screen`: registers the tools and their guidance.
pub struct ToolScreen;

register_plugin!(ToolScreen);

/// Configuration of the row.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// Most bytes of one result, everything included.
    pub max_result_bytes: SafeInteger<256>,
    /// How long `terminal_wait` waits unless told otherwise, in milliseconds.
    pub wait_timeout_ms: SafeInteger<1>,
    /// How long it waits at most, whatever it is told.
    pub max_wait_timeout_ms: SafeInteger<1>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_result_bytes: SafeInteger::of::<262_144>(),
            wait_timeout_ms: SafeInteger::of::<30_000>(),
            max_wait_timeout_ms: SafeInteger::of::<600_000>(),
        }
    }
}

#[async_trait]
impl Plugin for ToolScreen {
    const NAME: &'static str = "tool-screen";
    type Config = Config;
    type Inject = (Terminals, Tools, SystemPrompt);
    type Provide = ();

    async fn setup(
        ctx: &Ctx,
        (terminals, tools, prompt): Deps<Self>,
        config: Self::Config,
    ) -> anyhow::Result<Provided<Self>> {
        for tool in six(&terminals, &config)? {
            tools.register(ctx.scope(), tool)?;
        }
        let section =
            Section { name: "tool:screen".to_owned(), order: 107, text: GUIDANCE.to_owned() };
        prompt.contribute(ctx.scope(), section)?;
        Ok(())
    }
}

/// The tools over a session service, in the order of their use.
///
/// # Errors
/// An argument type cannot be said in the dialect of parameter schemas, which is a bug.
pub fn six(
    terminals: &Arc<TerminalRegistry>,
    config: &Config,
) -> Result<[Arc<dyn Tool>; 6], DialectError> {
    let host = Host {
        terminals: Arc::clone(terminals),
        seen: Arc::default(),
        wait: config.wait_timeout_ms.get(),
        longest_wait: config.max_wait_timeout_ms.get(),
        cap: config.max_result_bytes.as_len(),
    };
    Ok([
        simple::tool::<screen::Screen>(&host)?,
        Arc::new(press::Keys::new(host.clone())?),
        simple::tool::<resize::Resize>(&host)?,
        simple::tool::<wait::Wait>(&host)?,
        simple::tool::<search::Search>(&host)?,
        simple::tool::<lines::Lines>(&host)?,
    ])
}

/// What every tool has at hand.
#[derive(Clone)]
struct Host {
    terminals: Arc<TerminalRegistry>,
    seen: Arc<Seen>,
    /// Milliseconds that a wait takes unless told otherwise, and at most.
    wait: u64,
    longest_wait: u64,
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
