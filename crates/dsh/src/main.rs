//! The host: command line → composition → running plugins → exit status.
//!
//! Guarantees:
//! - what is wrong with the command line or the composition ends with a message, a hint and exit
//!   status 2, and nothing has been started then;
//! - however a run ends, every plugin has been disposed and awaited before the process exits,
//!   unless a second signal asks for the exit at once;
//! - logs go to stderr; nothing but this crate prints.

mod cli;
mod composition;
mod demo;
mod failure;
mod host;
mod plugins;
mod signals;

use std::process::ExitCode;

use clap::Parser as _;

use crate::{
    cli::{Cli, Command},
    failure::Failure,
};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = start(cli);
    done.unwrap_or_else(|failure| failure.report(&mut std::io::stderr()))
}

fn start(cli: Cli) -> Result<ExitCode, Failure> {
    init_logs()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(async move {
        match cli.command {
            Command::Run(run) => host::run(run).await,
            Command::Mcp(mcp) => host::mcp(mcp).await,
        }
    });
    // A read of stdin that is still pending would hold a plain drop up for ever.
    runtime.shutdown_background();
    done
}

/// Logs to stderr, as far as `DSH_LOG` asks for them.
fn init_logs() -> Result<(), Failure> {
    use std::io::IsTerminal as _;
    use tracing_subscriber::EnvFilter;

    const VARIABLE: &str = "DSH_LOG";
    let wanted = std::env::var(VARIABLE).unwrap_or_default();
    let wanted = if wanted.is_empty() { "warn" } else { &wanted };
    let filter = EnvFilter::try_new(wanted).map_err(|error| {
        Failure::user(
            format!("{VARIABLE}={wanted} is no log filter: {error}"),
            "write a level (error, warn, info, debug, trace), or crate=level pairs with commas",
        )
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && !no_color())
        .init();
    Ok(())
}

/// Whether the user asked for no colours, as <https://no-color.org> has it.
fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty())
}
