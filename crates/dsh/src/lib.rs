//! The host: command line → composition → running plugins → exit status.
//!
//! Guarantees:
//! - what is wrong with the command line or the composition ends with a message, a hint and exit
//!   status 2, and nothing has been started then;
//! - however a run ends, every plugin has been disposed and awaited before the process exits; when
//!   a second signal asks for the exit at once, the processes of all sessions are killed instead;
//! - when the host itself is killed, its supervisor ends them;
//! - neither a reader of stdout that does not read nor one that has gone delays that;
//! - logs go to stderr; nothing but this crate prints.
//!
//! A library, so that a host with plugins of its own is a binary of a few lines:
//!
//! ```no_run
//! // use my_backend as _; // links the crate, whose plugin a composition then names
//! fn main() -> std::process::ExitCode {
//!     dsh::main()
//! }
//! ```

mod cli;
mod composition;
mod doctor;
mod failure;
mod host;
mod logs;
mod plugins;
mod print;
mod recording;
mod run;
mod signals;
mod stdout;

use std::process::ExitCode;

use clap::Parser as _;

pub use crate::plugins::VOCABULARY;
use crate::{
    cli::{Cli, Command},
    failure::Failure,
};

/// The host's `main`: everything that is linked into the binary can be mounted.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = start(cli);
    done.unwrap_or_else(|failure| failure.report(&mut std::io::stderr()))
}

fn start(cli: Cli) -> Result<ExitCode, Failure> {
    logs::init()?;
    raise_descriptor_limit();
    // Before the first thread.
    let supervisor = match &cli.command {
        Command::Doctor(_) => Some(doctor::supervisor()),
        command if command.starts_sessions() => {
            if let Err(error) = subprocess::start_supervisor(subprocess::Reach::Everything) {
                tracing::warn!("{error}");
            }
            if command.names_a_task()
                && let Err(error) = subprocess::set_command_line("dsh run")
            {
                tracing::debug!(%error, "the task stays in the command line");
            }
            None
        }
        _ => None,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(async move {
        match cli.command {
            Command::Run(run) => run::run(run).await,
            Command::Mcp(mcp) => host::mcp(mcp).await,
            Command::Web(web) => host::web(web).await,
            Command::Check(check) => host::check(check),
            Command::Replay(replay) => recording::replay(replay).await,
            Command::Screenshot(screenshot) => recording::screenshot(&screenshot),
            Command::Doctor(args) => doctor::run(&args, supervisor),
        }
    });
    // A read of stdin or a write to stdout that is still pending would hold a plain drop up for ever.
    runtime.shutdown_background();
    done
}

/// Every session holds some descriptors, and the usual limit is soft.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::debug!(%error, "the limit on open files stays");
    }
}

/// The command line, for manual pages and completions.
pub fn command_line() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

/// Whether the user asked for no colours, as <https://no-color.org> has it.
fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty())
}
