//! Row `web`: the front end in a browser.

use std::sync::Arc;

use dsh_core::{ConfigError, Ctx, Deps, Plugin, Provided, async_trait, register_plugin};

use crate::{Web, listen::Listening, server::WebServer};

/// Provides [`Web`].
pub struct WebPlugin;

register_plugin!(WebPlugin);

#[async_trait]
impl Plugin for WebPlugin {
    const NAME: &'static str = "web";
    type Config = Listening;
    type Inject = ();
    type Provide = Web;

    fn check(config: &Listening) -> Vec<ConfigError> {
        config.problems()
    }

    async fn setup(_: &Ctx, (): Deps<Self>, config: Listening) -> anyhow::Result<Provided<Self>> {
        Ok(Arc::new(WebServer::new(config)))
    }
}
