//! Row `web`: the front end in a browser.

use std::{sync::Arc, time::SystemTime};

use agents::Agents;
use dsh_core::{ConfigError, Ctx, Deps, Plugin, Provided, async_trait, register_plugin};
use jobs::Jobs;
use session_log::SessionLog;
use terminal::Terminals;
use tokio::sync::watch;
use tools::Tools;

use crate::{
    Web,
    listen::Listening,
    live::Live,
    logs::Logs,
    past::Past,
    server::WebServer,
    world::{Observer, World},
};

/// Provides [`Web`].
pub struct WebPlugin;

register_plugin!(WebPlugin);

#[async_trait]
impl Plugin for WebPlugin {
    const NAME: &'static str = "web";
    type Config = Listening;
    type Inject = (Agents, Tools, Terminals, Option<Jobs>, Option<SessionLog>);
    type Provide = Web;

    fn check(config: &Listening) -> Vec<ConfigError> {
        config.problems()
    }

    async fn setup(
        ctx: &Ctx,
        (agents, tools, terminals, jobs, log): Deps<Self>,
        config: Listening,
    ) -> anyhow::Result<Provided<Self>> {
        let logs = Arc::new(Logs::new(Arc::clone(&tools)));
        let (world, shown) = watch::channel(World::default());
        let observer = Observer {
            agents: Arc::clone(&agents),
            terminals: Arc::clone(&terminals),
            jobs: jobs.clone(),
            logs: Arc::clone(&logs),
            jobs_changed: watch::Sender::default(),
            world,
        };
        follow_others(ctx, &observer, jobs.clone(), log.clone());
        ctx.scope().spawn("what a page shows", async move |ended| {
            observer.follow(ended).await;
            Ok(())
        })?;
        let live = Live { agents, terminals, jobs, logs, world: shown, started: SystemTime::now() };
        Ok(Arc::new(WebServer::new(config, live, Past::new(log, tools))))
    }
}

/// Listens to services that there need not be, once all are there.
fn follow_others(
    ctx: &Ctx,
    observer: &Observer,
    jobs: dsh_core::Lookup<Jobs>,
    log: dsh_core::Lookup<SessionLog>,
) {
    let (scope, changed) = (ctx.scope().clone(), observer.jobs_changed.clone());
    let logs = Arc::clone(&observer.logs);
    ctx.when_started(async move || {
        if let Some(jobs) = jobs.get() {
            let tell = Arc::new(move |_: Option<&_>| changed.send_modify(|count| *count += 1));
            jobs.on_jobs_changed(&scope, "web", tell)?;
        }
        if let Some(log) = log.get() {
            log.tap(&scope, Arc::new(move |agent, line: &str| logs.line(agent, line)))?;
        }
        Ok(())
    });
}
