//! A terminal backend that does what the test says: the plugin `terminal-scripted`.
//!
//! Every step of every session asks its [`Script`] what to do: succeed, fail, panic, or wait at a
//! [`Gate`] that the test opens. What happened is recorded in order, as lines such as
//! `open pty-1`, `start_send pty-1 "ls"`, `close pty-1: reason`; [`Script::saw`] awaits one.
//! Without instructions every step succeeds and a send settles at once.
//!
//! ```yaml
//! - name: terminal-scripted
//!   config: { script: my-test, backendType: scripted }
//! ```

mod backend;
mod gate;
mod operation;
mod script;

pub use backend::{PID, ScriptedBackend, ScriptedSession};
pub use gate::{Act, Gate};
pub use operation::ScriptedOperation;
pub use script::{Script, Step, outcome};

use std::sync::Arc;

use dsh_core::{Ctx, Deps, Plugin, Provided, async_trait};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use terminal::Terminals;

/// Configuration of `terminal-scripted`.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// Type the backend registers under.
    pub backend_type: String,
    /// Name of the [`Script`] that directs it.
    pub script: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { backend_type: "scripted".to_owned(), script: "default".to_owned() }
    }
}

/// Registers a [`ScriptedBackend`].
pub struct ScriptedPlugin;

#[async_trait]
impl Plugin for ScriptedPlugin {
    const NAME: &'static str = "terminal-scripted";
    type Config = Config;
    type Inject = (Terminals,);
    type Provide = ();

    async fn setup(
        ctx: &Ctx,
        (terminals,): Deps<Self>,
        config: Config,
    ) -> anyhow::Result<Provided<Self>> {
        let backend = ScriptedBackend::new(&config.backend_type, &Script::named(&config.script));
        terminals.register_backend(ctx.scope(), Arc::new(backend))?;
        Ok(())
    }
}

dsh_core::register_plugin!(ScriptedPlugin);
