//! `setup` does not return a service that `Provide` declares.

use dsh_core::{Ctx, Deps, Plugin, Provided, Service, async_trait, plugin::NoConfig};

struct Clock;
impl Service for Clock {
    type Api = u64;
    const NAME: &'static str = "clock";
}

struct Forgetful;
#[async_trait]
impl Plugin for Forgetful {
    const NAME: &'static str = "forgetful";
    type Config = NoConfig;
    type Inject = ();
    type Provide = Clock;
    async fn setup(_: &Ctx, (): Deps<Self>, _: NoConfig) -> anyhow::Result<Provided<Self>> {
        let provided: Provided<Self> = ();
        Ok(provided)
    }
}

fn main() {}
