//! `dsh run`: an agent at work in this terminal, or a run of the past.
//!
//! Guarantees: the agent, and all that runs on its behalf, has ended before the run has; a reader
//! of stdout that has gone ends it.

mod resume;

use std::{io::IsTerminal as _, path::Path, process::ExitCode, sync::Arc};

use agent_loop::{AgentLoop, Loop, LoopEvent, LoopObserver, TurnEnd};
use agents::{Agent, AgentRegistry, AgentSpec, Agents};
use anyhow::Context as _;
use dsh_core::{App, Cancel, Composition, Scope};
use model::ModelError;
use session_log::SessionLog;
use tokio_util::sync::CancellationToken;

use crate::{
    cli, composition,
    failure::Failure,
    host::{current_folder, service, supervised},
    plugins::{AGENT_LOOP, MODEL_OPENAI, SHELLS},
    print::{FRAME, Live, Look, Printer},
    stdout::{self, Printing, Stdout},
};

/// What the scripted model of the demonstration says and calls.
const DEMONSTRATION: &str = include_str!("demo.yml");
const DEMONSTRATION_TASK: &str = "Show what one interactive terminal session can do.";

/// `dsh run`.
pub(crate) async fn run(args: cli::Run) -> Result<ExitCode, Failure> {
    if let Some(id) = &args.resume {
        return resume::show(id, args.json, &args.composition).await;
    }
    let (task, composition) = composed(&args)?;
    let composition = recorded(composition, args.record.as_deref())?;
    let Some(plan) = composition::plan(&args.composition, &composition)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let workspace_root = current_folder()?;
    supervised(plan, async |app, stop| {
        let work = Work { looping: service::<Loop>(app)?, agents: service::<Agents>(app)? };
        work.looping.ready().map_err(|error| Failure::user(error.to_string(), ""))?;
        let agent = work.agents.create(AgentSpec { id: None, workspace_root })?;
        let (out, printing) = stdout::open();
        let view = View::open(app, args.json, out)?;
        let worked = work.on(&agent, &task, &view, &stop, &printing).await;
        let ended = work.agents.dispose(&agent).await;
        let logged = app.service::<SessionLog>().map(|_| agent.id());
        let shown = match view.close(&worked, logged).await {
            Ok(()) => printing.over(&stop).await.context("cannot print"),
            failed => failed,
        };
        let end = worked?;
        ended?;
        shown?;
        Ok(if end == TurnEnd::Done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
    .await
}

/// What to do, and the composition of the host that does it.
fn composed(args: &cli::Run) -> Result<(String, Composition), Failure> {
    if args.agent_terminal_demo {
        let steps: serde_json::Value =
            serde_saphyr::from_str(DEMONSTRATION).context("the demonstration's script")?;
        let composition = composition::compose(&args.composition, |it| {
            composition::scripted(composition::front_end(it, AGENT_LOOP), steps.clone())
        })?;
        return Ok((DEMONSTRATION_TASK.to_owned(), composition));
    }
    let hint = "say what the agent shall do: `dsh run \"How many tests are there?\"`; \
                `dsh run --agent-terminal-demo` shows a session without any model";
    let task = match args.task.as_deref().map(str::trim) {
        // Nothing is done then.
        None if args.composition.dump_config => String::new(),
        None => return Err(Failure::user("nothing to run", hint)),
        Some("") => return Err(Failure::user("the task is empty", hint)),
        Some(task) => task.to_owned(),
    };
    let mut composition = composition::compose(&args.composition, |it| {
        composition::with_model(composition::front_end(it, AGENT_LOOP))
    })?;
    for (key, value) in [("baseUrl", &args.base_url), ("model", &args.model)] {
        if let Some(value) = value {
            composition = composition.with_config(MODEL_OPENAI, key, value.as_str());
        }
    }
    Ok((task, composition))
}

/// Makes every shell record its sessions in `folder`.
fn recorded(composition: Composition, folder: Option<&Path>) -> Result<Composition, Failure> {
    let Some(folder) = folder else { return Ok(composition) };
    let folder = std::path::absolute(folder).context("the folder for recordings")?;
    let Some(folder) = folder.to_str() else {
        let message = format!("the folder for recordings {} is not UTF-8", folder.display());
        return Err(Failure::user(message, "give --record another folder"));
    };
    let there = |plugin: &&str| composition.rows().iter().any(|row| row.plugin == *plugin);
    let mut shells: Vec<&str> = SHELLS.into_iter().filter(there).collect();
    if shells.is_empty() {
        // The flag is then reported, and asks for the usual one.
        shells.push(SHELLS[0]);
    }
    Ok(shells.into_iter().fold(composition, |it, plugin| {
        it.with_config(plugin, "record", true).with_config(plugin, "recordFolder", folder)
    }))
}

/// How output looks on this standard output.
fn look() -> Look {
    let terminal = std::io::stdout().is_terminal();
    let moves = terminal && std::env::var_os("TERM").is_none_or(|it| it != "dumb");
    Look { color: terminal && !crate::no_color(), live: moves.then_some(columns) }
}

/// Columns of the terminal that standard output is.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.ok().map(|it| usize::from(it.ws_col)).filter(|it| *it > 0).unwrap_or(80)
}

struct Work {
    looping: Arc<AgentLoop>,
    agents: Arc<AgentRegistry>,
}

impl Work {
    /// Works on the task until it is done or `stop` says so.
    async fn on(
        &self,
        agent: &Arc<Agent>,
        task: &str,
        view: &View,
        stop: &CancellationToken,
        printing: &Printing,
    ) -> Result<TurnEnd, ModelError> {
        let cancel = Cancel::new();
        let running = self.looping.run(agent, task, view.observer(), &cancel);
        tokio::pin!(running);
        let broken = printing.broken();
        let mut frames = tokio::time::interval(FRAME);
        let reason = loop {
            tokio::select! {
                end = &mut running => return end,
                () = stop.cancelled() => break "the user interrupted",
                () = broken.cancelled() => break "nobody reads the output any more",
                // What nobody reads yet is not the place for a spinner.
                _ = frames.tick() => if printing.keeps_up() { view.tick() },
            }
        };
        cancel.cancel(reason);
        // A program that does not mind the interrupt goes with its session; the caller disposes too
        // and hears of failures.
        tokio::join!(running, self.agents.dispose(agent)).0
    }
}

/// What shows the run.
enum View {
    Live(Arc<Live<Stdout>>),
    /// Lines of the log, for as long as the scope lives.
    Json(Scope),
}

/// The log tells it all.
struct Silent;

impl LoopObserver for Silent {
    fn event(&self, _: LoopEvent<'_>) {}
}

impl View {
    fn open(app: &App, json: bool, out: Stdout) -> Result<Self, Failure> {
        if !json {
            return Ok(Self::Live(Arc::new(Live::new(Printer::new(out, look())))));
        }
        let log = app.service::<SessionLog>().ok_or_else(|| {
            let hint = "`--json` prints its lines: let the composition have the row `session-log`";
            Failure::user("no session log is mounted", hint)
        })?;
        let scope = app.scope().child("printed events")?;
        let tap = move |_, line: &str| out.line(line);
        log.tap(&scope, Arc::new(tap))?;
        Ok(Self::Json(scope))
    }

    fn observer(&self) -> Arc<dyn LoopObserver> {
        match self {
            Self::Live(live) => Arc::clone(live) as _,
            Self::Json(_) => Arc::new(Silent),
        }
    }

    fn tick(&self) {
        if let Self::Live(live) = self {
            live.tick();
        }
    }

    /// Says how it went, and which session of the log keeps it. After this nothing is printed.
    async fn close(
        self,
        worked: &Result<TurnEnd, ModelError>,
        logged: Option<&str>,
    ) -> anyhow::Result<()> {
        match self {
            Self::Live(live) => {
                let remark = worked.as_ref().ok().and_then(remark);
                live.end(remark.as_deref(), logged).context("cannot print")
            }
            Self::Json(scope) => Ok(scope.dispose().await?),
        }
    }
}

fn remark(end: &TurnEnd) -> Option<String> {
    match end {
        TurnEnd::Done => None,
        TurnEnd::Cancelled => Some("interrupted".to_owned()),
        TurnEnd::Length => {
            Some("the reply was cut: it is as long as this model's replies can be".to_owned())
        }
        TurnEnd::Other(word) => Some(format!("the model's server ended the reply: {word}")),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_demonstration_is_a_script() {
        let steps: serde_json::Value = serde_saphyr::from_str(super::DEMONSTRATION).unwrap();
        let config = serde_json::json!({ "steps": steps });
        let config: model_script::Config = serde_json::from_value(config).unwrap();
        assert!(config.steps.last().unwrap().calls.is_empty());
    }
}
