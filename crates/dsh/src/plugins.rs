//! What this host is made of: the linked plugins, their names, and the rows it adds.

use dsh_core::Vocabulary;

// The link list: a plugin that nothing mentions is not linked. One line for each plugin crate;
// `tests/plugins.rs` compares it with the workspace.
use agent_loop as _;
use agents as _;
use jobs as _;
use mcp as _;
use model_openai as _;
use model_script as _;
use sandbox_bubblewrap as _;
use sandbox_landlock as _;
use sandbox_policy as _;
use session_log as _;
use subprocess as _;
use system_prompt as _;
use terminal as _;
use terminal_bash as _;
use terminal_remote as _;
use tool_jobs as _;
use tool_screen as _;
use tool_terminal as _;
use tools as _;
use web as _;

/// Names of rows as DSH writes them.
pub const VOCABULARY: Vocabulary = Vocabulary {
    prefix: "@deepseek-ai/dsh-",
    aliases: &[
        ("agent", "agents"),
        ("subprocess-local", "subprocess"),
        ("jobs-local", "jobs"),
        ("session-persistence-jsonl", "session-log"),
    ],
    not_provided: &[],
};

/// Rows the host adds unless the composition has them or another provider of their service.
pub(crate) const BASE: [&str; 6] =
    ["agents", "tools", "system-prompt", "session-log", SANDBOX_POLICY, "subprocess"];

/// The row that `--sandbox` sets the mode of.
pub(crate) const SANDBOX_POLICY: &str = "sandbox-policy";

/// What enforces that mode, unless the composition has a row of it. A disabled one stays so.
pub(crate) const SANDBOX: &str = "sandbox-landlock";

/// What enforces it where a composition chose that instead.
pub(crate) const OTHER_SANDBOX: &str = "sandbox-bubblewrap";

/// The front end of `dsh mcp`.
pub(crate) const MCP: &str = "mcp";

/// The front end of `dsh run`.
pub(crate) const AGENT_LOOP: &str = "agent-loop";

/// The front end of `dsh web`.
pub(crate) const WEB: &str = "web";

/// All front ends. One runs, the rows of the others stay idle; that of MCP serves clients of
/// `dsh web` too.
pub(crate) const FRONT_ENDS: [&str; 3] = [MCP, AGENT_LOOP, WEB];

/// The model of `dsh run TASK`, unless the composition has one.
pub(crate) const MODEL_OPENAI: &str = "model-openai";

/// The model of `dsh run --agent-terminal-demo`.
pub(crate) const MODEL_SCRIPT: &str = "model-script";

/// The shells, whose sessions can be recorded.
pub(crate) const SHELLS: [&str; 2] = ["terminal-bash", "terminal-remote"];
