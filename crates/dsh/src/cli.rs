//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  dsh run --agent-terminal-demo             see one interactive session, no key and no network
  dsh mcp                                   serve the terminal tools to an MCP client over stdio
  dsh mcp --composition my.yml              the same with your own composition

Environment:
  DSH_HOME   folder of session logs and transcripts (default ~/.dsh)
  DSH_LOG    what to log to stderr: error, warn (default), info, debug, trace, or crate=level
             pairs; whole requests, and so all that is typed, only where rmcp is named, as in
             DSH_LOG=info,rmcp=debug
  NO_COLOR   no colours";

/// Persistent terminal sessions for AI agents.
#[derive(Debug, Parser)]
#[command(name = "dsh", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an agent in this terminal.
    Run(Run),
    /// Serve the tools to an MCP client over stdin and stdout.
    Mcp(Mcp),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  dsh run --agent-terminal-demo")]
pub(crate) struct Run {
    /// What the agent shall do.
    #[arg(value_name = "TASK", conflicts_with = "agent_terminal_demo")]
    pub(crate) task: Option<String>,
    /// Show one interactive terminal session: a fixed script, real tools, a real shell.
    #[arg(long)]
    pub(crate) agent_terminal_demo: bool,
    #[command(flatten)]
    pub(crate) composition: CompositionArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example, as the entry of a client's configuration:
  { \"mcpServers\": { \"terminal\": { \"command\": \"dsh\", \"args\": [\"mcp\"] } } }")]
pub(crate) struct Mcp {
    #[command(flatten)]
    pub(crate) composition: CompositionArgs,
    /// Send outputSchema and structuredContent too (many clients then hide the text).
    #[arg(long)]
    pub(crate) structured: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompositionArgs {
    /// YAML list of plugin rows [default: the built-in compositions/terminal.yml]
    #[arg(long = "composition", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
