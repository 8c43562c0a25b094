//! A run of the past, from its log.

use std::{io::Write as _, process::ExitCode};

use anyhow::Context as _;
use session_log::{SessionLog, read_log};
use tools::Tools;

use super::look;
use crate::{
    cli::CompositionArgs,
    composition,
    failure::Failure,
    host::{service, supervised},
    print::{Look, Printer, Replay},
    stdout,
};

/// Shows the logs of the agents with this id, oldest first within a workspace. Nothing is run: the
/// composition only says how the calls of its tools look, and where logs are.
pub(crate) async fn show(
    id: &str,
    json: bool,
    args: &CompositionArgs,
) -> Result<ExitCode, Failure> {
    let composition = composition::compose(args, composition::without_front_end)?;
    let Some(plan) = composition::plan(args, &composition)? else {
        return Ok(ExitCode::SUCCESS);
    };
    supervised(plan, async |app, stop| {
        let log = app.service::<SessionLog>().ok_or_else(|| {
            Failure::user("no session log is mounted", "let the composition have `session-log`")
        })?;
        let found = log.find(id)?;
        if found.is_empty() {
            let message = format!("there is no log of a session {id:?}");
            let hint = "a run says its id at its end; the folders below $DSH_HOME/sessions/* are \
                        named after the ids";
            return Err(Failure::user(message, hint));
        }
        let (mut out, printing) = stdout::open();
        let mut logs = Vec::new();
        for path in &found {
            logs.push(read_log(path)?);
        }
        if json {
            for line in logs.iter().flatten() {
                if !printing.wants_more(&stop).await {
                    break;
                }
                writeln!(out, "{line}").context("cannot print")?;
            }
            drop(out);
        } else {
            let tools = service::<Tools>(app)?;
            let mut printer = Printer::new(out, Look { live: None, ..look() });
            'logs: for lines in &logs {
                let mut replay = Replay::default();
                for line in lines {
                    if !printing.wants_more(&stop).await {
                        break 'logs;
                    }
                    replay.line(line, &tools, &mut printer);
                }
                replay.end(&tools, &mut printer);
            }
            printer.finish().context("cannot print")?;
            drop(printer);
        }
        printing.over(&stop).await.context("cannot print")?;
        Ok(ExitCode::SUCCESS)
    })
    .await
}
