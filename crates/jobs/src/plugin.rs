//! The plugin `jobs`: provides [`Jobs`].

use std::sync::Arc;

use dsh_core::{Ctx, Deps, Plugin, Provided, SafeInteger, async_trait};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Jobs, local::LocalJobs};

/// Provides [`Jobs`] by a registry in this process. Stopping it ends every job.
pub struct JobsPlugin;

/// Configuration of the row.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// Most jobs of one agent that run, or are stopping, at the same time.
    pub max_concurrent_jobs_per_owner: SafeInteger<1>,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_concurrent_jobs_per_owner: SafeInteger::of::<10>() }
    }
}

#[async_trait]
impl Plugin for JobsPlugin {
    const NAME: &'static str = "jobs";
    type Config = Config;
    type Inject = ();
    type Provide = Jobs;

    async fn setup(ctx: &Ctx, (): Deps<Self>, config: Config) -> anyhow::Result<Provided<Self>> {
        let most_live = config.max_concurrent_jobs_per_owner.get();
        Ok(Arc::new(LocalJobs::new(ctx.scope(), most_live)?))
    }
}

dsh_core::register_plugin!(JobsPlugin);
