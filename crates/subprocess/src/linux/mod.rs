//! The provider for Linux: processes of this machine, seen through `/proc`.
//!
//! One file a concern: [`pty`] the terminal, [`spawn`] the start, [`process`] bytes and events,
//! [`probe`] evidence (with [`decode`] and [`descriptor`]), [`teardown`] the end (of whom:
//! [`members`], of each: [`target`], without `/proc`: [`blind`]), [`at_once`] the end without an
//! order, [`reaper`] orphans, [`sys`] every line of `unsafe`.

mod at_once;
mod blind;
mod decode;
mod descriptor;
mod mark;
mod members;
mod probe;
mod process;
mod procfs;
mod pty;
mod reaper;
mod settings;
mod signals;
mod spawn;
mod sys;
mod target;
mod teardown;
mod tree;

use std::sync::Arc;

use anyhow::Context as _;
use dsh_core::{Ctx, Deps, Plugin, Provided, async_trait, plugin::NoConfig};

pub use self::at_once::kill_all_at_once;
use self::{process::LocalProcess, procfs::Proc};
use crate::{
    Subprocess,
    host::{SpawnError, TerminalHost, TerminalProcess, TerminalSpec},
};

/// Starts processes on terminals of this machine.
///
/// Works without an application: `LocalHost::new()` inside a tokio runtime is all a test or a
/// benchmark needs. Orphans that die between a session's start and end are then collected when
/// some session is terminated, instead of at once by the plugin's reaper.
#[derive(Clone, Debug)]
pub struct LocalHost {
    proc: Option<Arc<Proc>>,
}

impl LocalHost {
    /// A host that sees processes where `/proc` can be read.
    pub fn new() -> Self {
        Self { proc: Proc::open().map(Arc::new) }
    }

    /// A host whose probes never look at processes, only at the terminal: what is left on a system
    /// without `/proc`. The end of a session still looks everywhere.
    pub fn blind() -> Self {
        Self { proc: None }
    }
}

impl Default for LocalHost {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl TerminalHost for LocalHost {
    async fn spawn(&self, spec: TerminalSpec) -> Result<Box<dyn TerminalProcess>, SpawnError> {
        let proc = self.proc.clone();
        // If the caller goes away meanwhile, the result is dropped there and kills what it started.
        let started = tokio::task::spawn_blocking(move || {
            let reader_test = probe::reader_test_works();
            LocalProcess::start(&spec, proc, reader_test)
        });
        match started.await {
            Ok(process) => Ok(Box::new(process?)),
            Err(error) => Err(SpawnError::Terminal {
                step: "run on a thread that may block",
                source: std::io::Error::other(error),
            }),
        }
    }
}

/// The plugin row `subprocess`.
struct SubprocessPlugin;

#[async_trait]
impl Plugin for SubprocessPlugin {
    const NAME: &'static str = "subprocess";
    type Config = NoConfig;
    type Inject = ();
    type Provide = Subprocess;

    async fn setup(
        ctx: &Ctx,
        (): Deps<Self>,
        NoConfig {}: NoConfig,
    ) -> anyhow::Result<Provided<Self>> {
        ctx.scope().spawn("reaper of orphans", reaper::run).context("start the reaper")?;
        Ok(Arc::new(LocalHost::new()))
    }
}

dsh_core::register_plugin!(SubprocessPlugin);
