//! A model that says and calls what a script tells it, and checks what comes back.
//!
//! ```yaml
//! - name: model-script
//!   config:
//!     steps:
//!       - say: Open a session.
//!         calls:
//!           - tool: terminal_open
//!             arguments: { type: shell }
//!             expect: [{ text: started terminal session pty-1 }]
//!       - say: It is open.
//! ```
//!
//! Guarantees: one step is one reply; what a step expects of its calls is checked when the next
//! reply is asked for, and the first thing that is not as expected is an error that says what came
//! instead. No clock, no network, no chance.

mod config;
mod player;

pub use config::{Call, Config, Expect, Step};

use std::sync::Arc;

use dsh_core::{Ctx, Deps, Plugin, Provided, async_trait, register_plugin};
use model::Model;

use crate::player::Player;

/// Row `model-script`. It plays its script once, to whoever asks.
pub struct ModelScript;

register_plugin!(ModelScript);

#[async_trait]
impl Plugin for ModelScript {
    const NAME: &'static str = "model-script";
    type Config = Config;
    type Inject = ();
    type Provide = Model;

    async fn setup(_: &Ctx, (): Deps<Self>, config: Config) -> anyhow::Result<Provided<Self>> {
        Ok(Arc::new(Player::new(config.steps)))
    }
}
