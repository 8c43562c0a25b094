//! `setup` takes a service that `Inject` does not declare.

use std::sync::Arc;

use dsh_core::{Ctx, Deps, Plugin, Provided, Service, async_trait, plugin::NoConfig};

struct Clock;
impl Service for Clock {
    type Api = u64;
    const NAME: &'static str = "clock";
}

struct Needy;
#[async_trait]
impl Plugin for Needy {
    const NAME: &'static str = "needy";
    type Config = NoConfig;
    type Inject = ();
    type Provide = ();
    async fn setup(_: &Ctx, deps: Deps<Self>, _: NoConfig) -> anyhow::Result<Provided<Self>> {
        let (_clock,): (Arc<u64>,) = deps;
        Ok(())
    }
}

fn main() {}
