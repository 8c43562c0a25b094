//! A host: start the plan, do the work, dispose everything, whatever happens in between.

use std::{
    io::{IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::Context as _;
use axum::Router;
use dsh_core::{App, Composition, Plan, Service};
use mcp::Mcp;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use web::{Door, Web, WebServer};

use crate::{
    cli, composition,
    failure::Failure,
    plugins::{MCP, WEB},
    signals::Watch,
};

/// Where MCP clients ask.
const MCP_PATH: &str = "/mcp";

/// `dsh mcp`.
pub(crate) async fn mcp(args: cli::Mcp) -> Result<ExitCode, Failure> {
    if args.listening.listen.is_some() {
        return mcp_over_http(args).await;
    }
    let workspace_root = current_folder()?;
    let mut composition =
        composition::compose(&args.composition, |it| composition::front_end(it, MCP))?;
    if args.structured {
        composition = composition.with_config(MCP, "structuredContent", true);
    }
    let Some(plan) = composition::plan(&args.composition, &composition)? else {
        return Ok(ExitCode::SUCCESS);
    };
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

/// `dsh mcp --listen`: the port is that of the row `web`, without the page.
async fn mcp_over_http(args: cli::Mcp) -> Result<ExitCode, Failure> {
    let mut composition =
        composition::compose(&args.composition, |it| composition::front_end(it, WEB))?;
    composition = listening(composition, &args.listening)?;
    if args.structured {
        composition = composition.with_config(MCP, "structuredContent", true);
    }
    on_port(&args.composition, composition, async |_, door, clients, stop| {
        let mut err = std::io::stderr();
        writeln!(err, "{}", door.url(MCP_PATH)).ok();
        if let Some(token) = door.new_token() {
            writeln!(err, "Authorization: Bearer {token}").ok();
        }
        door.serve(Router::new(), clients, stop).await;
    })
    .await
}

/// `dsh web`.
pub(crate) async fn web(args: cli::Web) -> Result<ExitCode, Failure> {
    let composition =
        composition::compose(&args.composition, |it| composition::front_end(it, WEB))?;
    let composition = listening(composition, &args.listening)?;
    on_port(&args.composition, composition, async |web, door, clients, stop| {
        let token = door.new_token().map(|it| format!("#token={it}"));
        let mut err = std::io::stderr();
        writeln!(err, "{}{}", door.url("/"), token.unwrap_or_default()).ok();
        web.serve(door, clients, stop).await;
    })
    .await
}

/// Takes the port, and does `serve` with the routes of MCP clients. Their sessions end with it.
async fn on_port(
    args: &cli::CompositionArgs,
    composition: Composition,
    serve: impl AsyncFnOnce(&WebServer, Door, Router, CancellationToken),
) -> Result<ExitCode, Failure> {
    let workspace_root = current_folder()?;
    let Some(plan) = composition::plan(args, &composition)? else {
        return Ok(ExitCode::SUCCESS);
    };
    supervised(plan, async |app, stop| {
        let web = service::<Web>(app)?;
        let (clients, sessions) = service::<Mcp>(app)?.http(workspace_root, stop.clone());
        let door = web.open().await.map_err(|error| Failure::user(error.to_string(), ""))?;
        let clients = Router::new().nest(MCP_PATH, clients);
        tokio::join!(serve(&web, door, clients, stop), sessions.ended());
        Ok(ExitCode::SUCCESS)
    })
    .await
}

/// What the command line says of the row `web`.
fn listening(composition: Composition, args: &cli::ListeningArgs) -> Result<Composition, Failure> {
    let mut composition = composition;
    if let Some(address) = args.listen {
        composition = composition.with_config(WEB, "listen", String::from(address));
    }
    if let Some(file) = &args.token_file {
        composition = composition.with_config(WEB, "tokenFile", utf8(file)?);
    }
    if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
        let tls = json!({ "certificate": utf8(certificate)?, "key": utf8(key)? });
        composition = composition.with_config(WEB, "tls", tls);
    }
    if args.insecure_listen {
        composition = composition.with_config(WEB, "insecureListen", true);
    }
    Ok(composition)
}

fn utf8(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| {
        Failure::user(format!("the path {} is not UTF-8", path.display()), "give another path")
    })
}

/// `dsh check`.
pub(crate) fn check(args: cli::Check) -> Result<ExitCode, Failure> {
    let name = args.file.display().to_string();
    let args = cli::CompositionArgs {
        file: Some(args.file),
        patches: args.patches,
        sandbox: None,
        dump_config: false,
    };
    let rows = composition::check(&args)?;
    let mut out = std::io::stdout();
    writeln!(out, "{name}: nothing wrong; rows: {}", rows.join(", ")).context("cannot print")?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn current_folder() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| {
        Failure::user(
            format!("cannot tell the current folder: {error}"),
            "it is the workspace root of the agent: start from a folder that exists",
        )
    })
}

/// A service that the plan of this run provides.
pub(crate) fn service<K: Service>(app: &App) -> anyhow::Result<Arc<K::Api>> {
    app.service::<K>().with_context(|| format!("no row provides `{}`", K::NAME))
}

/// Starts the plan, does `work`, disposes everything. The first signal asks `work` to stop through
/// its token and decides the exit status; the second kills what runs and exits at once.
pub(crate) async fn supervised(
    plan: Plan,
    work: impl AsyncFnOnce(&App, CancellationToken) -> Result<ExitCode, Failure>,
) -> Result<ExitCode, Failure> {
    let stop = CancellationToken::new();
    let watch = Watch::begin(stop.clone())?;
    // On the heap: it is large.
    let done = Box::pin(async {
        let app = App::start(plan).await?;
        let done = if stop.is_cancelled() {
            Ok(ExitCode::SUCCESS)
        } else {
            work(&app, stop.clone()).await
        };
        let disposed = app.dispose().await.context("not everything could be ended");
        // The work's own failure comes first; the other one is not lost.
        match (done, disposed) {
            (Ok(code), Ok(())) => Ok(code),
            (Ok(_), Err(error)) => Err(error.into()),
            (Err(error), Ok(())) => Err(error),
            (Err(error), Err(after)) => {
                tracing::error!("{after:#}");
                Err(error)
            }
        }
    })
    .await;
    match (watch.end().await, done) {
        (None, done) => done,
        (Some(signal), Ok(_)) => Ok(ExitCode::from(signal.status())),
        (Some(signal), Err(error)) => {
            error.report(&mut std::io::stderr());
            Ok(ExitCode::from(signal.status()))
        }
    }
}
