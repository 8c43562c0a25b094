//! `ctx.systemPrompt`: ordered sections of the system prompt.

use agents::Agent;
use dsh_core::{Scope, Service};

/// Service key of the system prompt.
pub struct SystemPrompt;

impl Service for SystemPrompt {
    type Api = PromptRegistry;
    const NAME: &'static str = "systemPrompt";
}

/// One section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Unique in its layer.
    pub name: String,
    /// Sections are sorted by it, then by name.
    pub order: i32,
    /// The text.
    pub text: String,
}

/// The sections, global and per agent.
pub struct PromptRegistry {}

#[expect(clippy::unused_self, reason = "signatures first")]
impl PromptRegistry {
    /// Adds a section for every agent, for as long as `scope` lives.
    pub fn contribute(&self, scope: &Scope, section: Section) -> anyhow::Result<()> {
        let _ = (scope, section);
        anyhow::bail!("")
    }

    /// Adds a section for one agent, for as long as it lives. It shadows a global one of the
    /// same name.
    pub fn contribute_for(&self, agent: &Agent, section: Section) -> anyhow::Result<()> {
        let _ = (agent, section);
        anyhow::bail!("")
    }

    /// The text an agent gets: its sections, joined by blank lines.
    pub fn render(&self, agent: Option<&Agent>) -> String {
        let _ = agent;
        String::new()
    }
}
