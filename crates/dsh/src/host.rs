//! A run: start the plan, do the work, dispose everything, whatever happens in between.

use std::{
    io::{IsTerminal as _, Write as _},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use agents::Agents;
use anyhow::Context as _;
use dsh_core::{App, Plan, Service};
use mcp::Mcp;
use tokio_util::sync::CancellationToken;
use tools::Tools;

use crate::{
    cli, composition, demo,
    failure::Failure,
    plugins::{MCP, OTHER_FRONT_ENDS},
    signals::{Caught, Signals},
};

/// `dsh run`.
pub(crate) async fn run(args: cli::Run) -> Result<ExitCode, Failure> {
    if !args.agent_terminal_demo {
        let (message, hint) = match args.task {
            Some(_) => (
                "this build has no model loop yet, so `dsh run TASK` cannot work on the task",
                "`dsh run --agent-terminal-demo` shows the tools at work; `dsh mcp` serves them \
                 to an MCP client that has a model",
            ),
            None => ("nothing to run", "try `dsh run --agent-terminal-demo`"),
        };
        return Err(Failure::user(message, hint));
    }
    let workspace_root = current_folder()?;
    let plan = composition::plan(composition::load(args.composition.file.as_deref())?)?;
    supervised(plan, async |app, stop| {
        let out = std::io::stdout();
        let color = out.is_terminal() && !crate::no_color();
        let printer = demo::Printer::new(out, color);
        let (tools, agents) = (service::<Tools>(app)?, service::<Agents>(app)?);
        let stage = demo::Stage { tools, agents, workspace_root };
        let passed = stage.play(printer, &stop).await?;
        Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
    .await
}

/// `dsh mcp`.
pub(crate) async fn mcp(args: cli::Mcp) -> Result<ExitCode, Failure> {
    let workspace_root = current_folder()?;
    let mut composition =
        composition::load(args.composition.file.as_deref())?.with_front_end(MCP, &OTHER_FRONT_ENDS);
    if args.structured {
        composition = composition.with_config(MCP, "structuredContent", true);
    }
    let plan = composition::plan(composition)?;
    if std::io::stdin().is_terminal() {
        // Somebody tries it by hand; stdout is the protocol's.
        let mut err = std::io::stderr();
        writeln!(err, "serving MCP on stdin and stdout for a client; end with Ctrl-D").ok();
    }
    supervised(plan, async |app, stop| {
        service::<Mcp>(app)?.serve_stdio(workspace_root, stop).await?;
        Ok(ExitCode::SUCCESS)
    })
    .await
}

fn current_folder() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| {
        Failure::user(
            format!("cannot tell the current folder: {error}"),
            "it is the workspace root of the agent: start from a folder that exists",
        )
    })
}

/// A service that the plan of this run provides.
fn service<K: Service>(app: &App) -> anyhow::Result<Arc<K::Api>> {
    app.service::<K>().with_context(|| format!("no row provides `{}`", K::NAME))
}

/// Starts the plan, does `work`, disposes everything. The first signal asks `work` to stop through
/// its token and decides the exit status; the second exits at once.
async fn supervised(
    plan: Plan,
    work: impl AsyncFnOnce(&App, CancellationToken) -> anyhow::Result<ExitCode>,
) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen()?;
    let stop = CancellationToken::new();
    let whole = async {
        let app = App::start(plan).await?;
        let done = if stop.is_cancelled() {
            Ok(ExitCode::SUCCESS)
        } else {
            work(&app, stop.clone()).await
        };
        let disposed = app.dispose().await.context("not everything could be ended");
        // The work's own failure comes first; the other one is not lost.
        match (done, disposed) {
            (Ok(code), Ok(())) => anyhow::Ok(code),
            (Ok(_), Err(error)) | (Err(error), Ok(())) => Err(error),
            (Err(error), Err(after)) => {
                tracing::error!("{after:#}");
                Err(error)
            }
        }
    };
    let mut whole = Box::pin(whole);
    let mut caught: Option<Caught> = None;
    let done = loop {
        tokio::select! {
            done = &mut whole => break done,
            signal = signals.next() => {
                if caught.is_some() {
                    exit_now(signal);
                }
                tracing::info!(signal = signal.name, "ending");
                caught = Some(signal);
                stop.cancel();
            }
        }
    };
    match (caught, done) {
        (None, done) => Ok(done?),
        (Some(signal), Ok(_)) => Ok(ExitCode::from(signal.status())),
        (Some(signal), Err(error)) => {
            Failure::Internal(error).report(&mut std::io::stderr());
            Ok(ExitCode::from(signal.status()))
        }
    }
}

#[expect(clippy::exit, reason = "a second signal does not wait for anything")]
fn exit_now(signal: Caught) -> ! {
    std::process::exit(i32::from(signal.status()))
}
