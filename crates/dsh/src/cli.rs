//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};
use sandbox_policy::SandboxMode;
use web::Address;

const EXAMPLES: &str = "\
Examples:
  dsh run --agent-terminal-demo             see one interactive session, no key and no network
  dsh run \"Why does the build fail?\"        work on a task, with the model of DEEPSEEK_API_KEY
                                            or OPENAI_API_KEY
  dsh mcp                                   serve the terminal tools to an MCP client over stdio
  dsh mcp --listen 127.0.0.1:7171           the same to many clients over HTTP
  dsh mcp --composition my.yml              the same with your own composition
  dsh mcp --sandbox workspace-write         the same, writing to the current folder alone
  dsh web                                   watch agents in a browser, and step in
  dsh check my.yml                          say all that is wrong with it
  dsh replay casts/*-pty-1.cast             play what `dsh run --record casts` recorded
  dsh doctor                                say what this machine allows

Environment:
  DEEPSEEK_API_KEY, OPENAI_API_KEY
             the key of the model of `dsh run TASK`
  DSH_HOME   folder of session logs, transcripts and patch.yml (default ~/.dsh)
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
    /// Serve the tools to an MCP client over stdin and stdout, or to many over HTTP.
    Mcp(Mcp),
    /// Watch agents in a browser, and step in; serve the tools to MCP clients over HTTP.
    Web(Web),
    /// Say all that is wrong with a composition, and start nothing.
    Check(Check),
    /// Play the recording of a session in this terminal.
    Replay(Replay),
    /// Draw what a recording shows at one moment, as SVG.
    Screenshot(Screenshot),
    /// Say what this machine allows, what is chosen, and what would help.
    Doctor(Doctor),
}

impl Command {
    /// Whether its arguments say what an agent shall do.
    pub(crate) fn names_a_task(&self) -> bool {
        matches!(self, Self::Run(run) if run.task.is_some())
    }

    /// Whether it starts processes for an agent.
    pub(crate) fn starts_sessions(&self) -> bool {
        match self {
            Self::Run(run) => run.resume.is_none() && !run.composition.dump_config,
            Self::Mcp(mcp) => !mcp.composition.dump_config,
            Self::Web(web) => !web.composition.dump_config,
            Self::Check(_) | Self::Doctor(_) | Self::Replay(_) | Self::Screenshot(_) => false,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dsh run --agent-terminal-demo
  dsh run \"How many tests does this project have?\"
  dsh run --base-url http://localhost:8000/v1 --model qwen3 \"...\"
  dsh run --json \"...\" | jq .type
  dsh run --resume ID

Ctrl-C cancels what the agent does and ends the run in order; a second one ends it at once.")]
pub(crate) struct Run {
    /// What the agent shall do.
    #[arg(value_name = "TASK", conflicts_with_all = ["agent_terminal_demo", "resume"])]
    pub(crate) task: Option<String>,
    /// Show one interactive terminal session: a scripted model, real tools, a real shell.
    #[arg(long, conflicts_with_all = ["resume", "base_url", "model"])]
    pub(crate) agent_terminal_demo: bool,
    /// Show a run of the past from its log, and run nothing.
    #[arg(long, value_name = "ID", conflicts_with_all = ["base_url", "model"])]
    pub(crate) resume: Option<String>,
    /// Print the events of the session log, one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Record every terminal session in this folder, for `dsh replay`.
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub(crate) record: Option<PathBuf>,
    #[arg(long, value_name = "URL", help = "Where the model is: any OpenAI-compatible endpoint")]
    pub(crate) base_url: Option<String>,
    /// Which model.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) composition: CompositionArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example, as the entry of a client's configuration:
  { \"mcpServers\": { \"terminal\": { \"command\": \"dsh\", \"args\": [\"mcp\"] } } }

Over HTTP, for clients that are elsewhere, or for many:
  dsh mcp --listen 127.0.0.1:7171           prints the address and the header that lets in
  dsh mcp --listen 0.0.0.0:7171 --tls-cert cert.pem --tls-key key.pem --token-file token
Each session of MCP has terminals of its own. They are closed when it ends, or when its client has
had no request and no stream open for a minute (`sessionGraceSeconds` of the row `mcp`).")]
#[command(mut_arg("listen", |it| it.help("Serve over HTTP here, at /mcp, and not on stdin and \
    stdout; port 0 is a free one. Addresses that others can reach want TLS")))]
#[command(mut_arg("token_file", |it| it.requires("listen")))]
#[command(mut_arg("tls_cert", |it| it.requires("listen")))]
#[command(mut_arg("insecure_listen", |it| it.requires("listen")))]
pub(crate) struct Mcp {
    #[command(flatten)]
    pub(crate) listening: ListeningArgs,
    #[command(flatten)]
    pub(crate) composition: CompositionArgs,
    /// Send outputSchema and structuredContent too (many clients then hide the text).
    #[arg(long)]
    pub(crate) structured: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dsh web                                   open the address that it prints in a browser
  dsh web --listen 127.0.0.1:0              on a free port
  dsh web --listen 0.0.0.0:7171 --tls-cert cert.pem --tls-key key.pem --token-file token

MCP clients connect to /mcp with the header `Authorization: Bearer TOKEN`.")]
pub(crate) struct Web {
    #[command(flatten)]
    pub(crate) listening: ListeningArgs,
    #[command(flatten)]
    pub(crate) composition: CompositionArgs,
}

/// Where to listen, and who is let in.
#[derive(Debug, Args)]
pub(crate) struct ListeningArgs {
    /// Where to listen; port 0 is a free one. Addresses that others can reach want TLS
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<Address>,
    /// A file with the token in one line [default: a new token, printed]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Speak TLS, with this certificate in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Listen where others can reach it, also without TLS: who listens in can read the token then.
    #[arg(long)]
    pub(crate) insecure_listen: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  dsh check my.yml --patch laptop.yml")]
pub(crate) struct Check {
    /// YAML list of plugin rows.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) patches: Patches,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dsh run --agent-terminal-demo --record casts
  dsh replay casts/*-pty-1.cast --speed 2 --max-idle 1")]
pub(crate) struct Replay {
    /// A recording in the format asciicast v3.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// How often as fast as it was.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = factor)]
    pub(crate) speed: f64,
    /// Longest pause.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) max_idle: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  dsh screenshot pty-1.cast --at 2.5 --output shown.svg")]
pub(crate) struct Screenshot {
    /// A recording in the format asciicast v3.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The moment, counted from the beginning [default: the end]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) at: Option<Duration>,
    /// Where to write the picture [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map_err(|_| "give a number of seconds, such as 2.5".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "give a number from 0".to_owned())
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|it: &f64| (0.01..=1_000.0).contains(it));
    factor.ok_or_else(|| "give a number from 0.01 to 1000".to_owned())
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit status 0 if sessions work here, also where something is weaker than it could be; else 1.")]
pub(crate) struct Doctor {
    /// Print one JSON object instead of lines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompositionArgs {
    /// YAML list of plugin rows [default: the built-in compositions/terminal.yml]
    #[arg(long = "composition", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) patches: Patches,
    /// What sessions may do: danger-full-access confines nothing and is the default, workspace-write
    /// lets them write to the current folder and temporary ones, read-only to nothing
    #[arg(long, value_name = "MODE", value_parser = sandbox_mode())]
    pub(crate) sandbox: Option<String>,
    /// Print the composed rows as YAML, with defaults filled in, and start nothing.
    #[arg(long)]
    pub(crate) dump_config: bool,
}

/// The names of the modes.
fn sandbox_mode() -> clap::builder::PossibleValuesParser {
    SandboxMode::ALL.map(SandboxMode::name).into()
}

/// Overlays on the composition.
#[derive(Debug, Args)]
pub(crate) struct Patches {
    /// Changes of the composition, after those of `$DSH_HOME/patch.yml`; may be given several times
    #[arg(long = "patch", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Leave `$DSH_HOME/patch.yml` out.
    #[arg(long)]
    pub(crate) no_home_patch: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
