//! A terminal backend without a terminal: it shows what is typed, and answers each line with itself.
//!
//! - ` a line ` is answered with `a line`;
//! - `wait` is answered with nothing, until the send is cancelled or the session signalled;
//! - `exit 3` ends the session with status 3.
//!
//! ```yaml
//! - name: terminal
//! - name: terminal-echo
//!   config: { backendType: echo, prompt: '> ' }
//! - name: tool-terminal
//! ```

mod exchange;
mod session;

use std::sync::Arc;

use dsh_core::{Claim, Ctx, Deps, Plugin, Provided, async_trait};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use terminal::{
    OpenRequest, TERMINAL_BACKEND, TerminalBackend, TerminalError, TerminalSession, Terminals,
};

use crate::session::EchoSession;

/// One `terminal-echo` row.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// The type that `terminal_open` names.
    pub backend_type: String,
    /// What stands before each line that is typed.
    pub prompt: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { backend_type: "echo".to_owned(), prompt: "> ".to_owned() }
    }
}

/// Opens sessions that answer each line with itself.
pub struct EchoBackend {
    config: Config,
}

#[async_trait]
impl TerminalBackend for EchoBackend {
    fn kind(&self) -> &str {
        &self.config.backend_type
    }

    async fn open(&self, request: OpenRequest) -> Result<Arc<dyn TerminalSession>, TerminalError> {
        if let Some(cwd) = request.cwd {
            let reason = "an echo has no directory: leave it out".to_owned();
            return Err(TerminalError::InvalidCwd { cwd, reason });
        }
        Ok(Arc::new(EchoSession::new(&self.config.prompt)))
    }
}

/// Registers one [`EchoBackend`].
pub struct TerminalEchoPlugin;

#[async_trait]
impl Plugin for TerminalEchoPlugin {
    const NAME: &'static str = "terminal-echo";
    type Config = Config;
    type Inject = (Terminals,);
    type Provide = ();

    // So that a second row of the type is found before anything starts.
    fn claims(config: &Config) -> Vec<Claim> {
        vec![Claim::takes(TERMINAL_BACKEND, &config.backend_type, "backendType")]
    }

    async fn setup(
        ctx: &Ctx,
        (terminals,): Deps<Self>,
        config: Config,
    ) -> anyhow::Result<Provided<Self>> {
        terminals.register_backend(ctx.scope(), Arc::new(EchoBackend { config }))?;
        Ok(())
    }
}

dsh_core::register_plugin!(TerminalEchoPlugin);
