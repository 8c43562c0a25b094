//! `model-openai`: service `model` over the chat completions API of OpenAI, which DeepSeek and many
//! other servers speak too.
//!
//! Guarantees, besides those of [`model`]:
//! - the key is in a header of the request and nowhere else: in no error, no event, no debug print
//!   and no log of this crate, not even where a server repeats it. The client library `async_openai`
//!   logs a piece of an answer that it cannot read as it came, so a host leaves that log out;
//! - a request goes to the configured server alone: redirects are not followed;
//! - a reply counts as whole only when the server said why it ended; one with a piece that cannot be
//!   read is an error, so that no command is run of which a part is missing;
//! - what a server says about a failure is shown on one line, cut to a bound, without control
//!   characters.
//!
//! Reading order: [`config`] → `endpoint` → `provider` (the attempts) → `request`, `transport` →
//! `chunk` → `assembly`; beside them `failure` and `refusal`, what can go wrong.

mod assembly;
mod chunk;
pub mod config;
mod endpoint;
mod failure;
mod provider;
mod refusal;
mod request;
mod transport;

pub use config::Config;
pub use provider::OpenAi;

use std::sync::Arc;

use dsh_core::{ConfigError, Ctx, Deps, Plugin, Provided, async_trait};
use model::Model;

/// The `model-openai` row.
pub struct ModelOpenAiPlugin;

#[async_trait]
impl Plugin for ModelOpenAiPlugin {
    const NAME: &'static str = "model-openai";
    type Config = Config;
    type Inject = ();
    type Provide = Model;

    fn check(config: &Config) -> Vec<ConfigError> {
        config.problems()
    }

    async fn setup(_: &Ctx, (): Deps<Self>, config: Config) -> anyhow::Result<Provided<Self>> {
        let variable = |name: &str| std::env::var(name).ok();
        Ok(Arc::new(OpenAi::new(&config, variable)?))
    }
}

dsh_core::register_plugin!(ModelOpenAiPlugin);
