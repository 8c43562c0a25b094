//! The provider for Linux: processes of this machine, seen through `/proc`.
//!
//! One file a concern: [`pty`] the terminal, [`spawn`] the start, [`isolation`] its PID namespace, [`process`] bytes and events ([`arrivals`]),
//! [`probe`] evidence (with [`decode`] and [`descriptor`]), [`teardown`] the end (of whom:
//! [`members`], of each: [`target`], without `/proc`: [`blind`]), [`at_once`] the end without an
//! order, [`supervisor`] and [`record`] the end after the host's own (of whom: [`remains`], [`cgroup`]),
//! [`holds`] the bounds of a session (by [`controllers`]),
//! [`reaper`] orphans, [`inherited`] what the host does not hand on, [`sys`] every line of `unsafe`.

mod arrivals;
mod at_once;
mod blind;
mod cgroup;
mod command_line;
mod controllers;
mod decode;
mod descriptor;
mod findings;
mod holds;
mod inherited;
mod isolation;
mod mark;
mod members;
mod probe;
mod process;
mod procfs;
mod pty;
mod reaper;
mod record;
mod remains;
mod settings;
mod signals;
mod spawn;
mod supervisor;
mod sys;
mod target;
mod teardown;
mod tree;
mod usage;

use std::{path::PathBuf, sync::Arc};

use anyhow::Context as _;
use dsh_core::{Ctx, Deps, Plugin, Provided, async_trait};

pub use self::{
    at_once::kill_all_at_once,
    command_line::set_command_line,
    findings::findings,
    holds::bounds_hold,
    isolation::pid_namespaces_work,
    supervisor::{Reach, SupervisorError, start_supervisor},
    sys::has_locale,
    usage::capacity,
};
use self::{process::LocalProcess, procfs::Proc, record::Word};
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
    /// To be left before the first session.
    word: Option<Arc<Word>>,
}

impl LocalHost {
    /// A host that sees processes where `/proc` can be read.
    pub fn new() -> Self {
        Self { proc: Proc::open().map(Arc::new), word: None }
    }

    /// A host whose probes never look at processes, only at the terminal: what is left on a system
    /// without `/proc`. The end of a session still looks everywhere.
    pub fn blind() -> Self {
        Self { proc: None, word: None }
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
        let (proc, word) = (self.proc.clone(), self.word.clone());
        // If the caller goes away meanwhile, the result is dropped there and kills what it started.
        let started = tokio::task::spawn_blocking(move || {
            if let Some(word) = word {
                word.leave();
            }
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

/// Configuration of the row `subprocess`.
#[derive(Debug, Default, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Config {
    /// Folder for the record of this host instead of `DSH_HOME`.
    #[serde(skip_serializing_if = "Option::is_none")]
    home: Option<PathBuf>,
}

/// The plugin row `subprocess`.
struct SubprocessPlugin;

#[async_trait]
impl Plugin for SubprocessPlugin {
    const NAME: &'static str = "subprocess";
    type Config = Config;
    type Inject = ();
    type Provide = Subprocess;

    async fn setup(ctx: &Ctx, (): Deps<Self>, config: Config) -> anyhow::Result<Provided<Self>> {
        ctx.scope().spawn("reaper of orphans", reaper::run).context("start the reaper")?;
        let mut host = LocalHost::new();
        match dsh_core::home::folder(config.home.as_deref()) {
            Ok(home) => host.word = Some(keep_word(ctx, home.join("hosts"))?),
            Err(error) => tracing::warn!("a killed host is not swept up after: {error}"),
        }
        Ok(Arc::new(host))
    }
}

/// Word of this host for later ones, kept in `folder` from the first session until the end; and the
/// search for what dead hosts left.
fn keep_word(ctx: &Ctx, folder: PathBuf) -> anyhow::Result<Arc<Word>> {
    let word = Arc::new(Word::new(folder.clone()));
    let kept = Arc::clone(&word);
    let take_back = move || {
        let kept = Arc::clone(&kept);
        async move { Ok(tokio::task::spawn_blocking(move || kept.take_back()).await??) }
    };
    ctx.scope().defer("record of this host", take_back)?;
    let sweep = async move |_| {
        let swept = tokio::task::spawn_blocking(move || record::sweep(&folder)).await?;
        if let Err(error) = swept {
            tracing::warn!("what killed hosts left was not looked for: {error}");
        }
        Ok(())
    };
    ctx.scope().spawn("sweep after killed hosts", sweep)?;
    Ok(word)
}

dsh_core::register_plugin!(SubprocessPlugin);
