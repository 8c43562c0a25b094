//! `ctx.systemPrompt`: ordered sections of the system prompt.
//!
//! Guarantees: the text depends on the sections alone, not on the order of their contribution; a
//! section vanishes with the scope, or the agent, that it was contributed for; names are unique
//! within the global layer and within each agent's.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use agents::{Agent, AgentInstance};
use dsh_core::{
    Ctx, Deps, Plugin, Provided, Scope, ScopedMap, Service, async_trait, lock, plugin::NoConfig,
};

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
    /// The text. White space around it is left out.
    pub text: String,
}

/// The sections, global and per agent.
pub struct PromptRegistry {
    global: ScopedMap<Section>,
    agents: Layers,
}

type Layers = Arc<Mutex<BTreeMap<AgentInstance, Arc<ScopedMap<Section>>>>>;

impl PromptRegistry {
    /// No sections.
    pub fn new() -> Self {
        Self { global: ScopedMap::new("prompt section"), agents: Layers::default() }
    }

    /// Adds a section for every agent, for as long as `scope` lives.
    ///
    /// Fails when another global section has the name.
    pub fn contribute(&self, scope: &Scope, section: Section) -> anyhow::Result<()> {
        let name = section.name.clone();
        self.global.contribute(scope, &name, section)?;
        Ok(())
    }

    /// Adds a section for one agent, for as long as it lives. It shadows a global one of the
    /// same name.
    ///
    /// Fails when another section of this agent has the name.
    pub fn contribute_for(&self, agent: &Agent, section: Section) -> anyhow::Result<()> {
        let name = section.name.clone();
        self.layer(agent)?.contribute(agent.scope(), &name, section)?;
        Ok(())
    }

    /// The text an agent gets: its sections, joined by blank lines. Without an agent the global
    /// ones.
    pub fn render(&self, agent: Option<&Agent>) -> String {
        let sections = self.sections(agent);
        let texts: Vec<&str> = sections.iter().map(|section| section.text.trim()).collect();
        texts.join("\n\n")
    }

    /// The sections of that text, in its order.
    pub fn sections(&self, agent: Option<&Agent>) -> Vec<Section> {
        let mut sections: BTreeMap<String, Section> =
            self.global.values().into_iter().map(|it| (it.name.clone(), it)).collect();
        let own = agent.and_then(|agent| lock(&self.agents).get(&agent.instance()).cloned());
        if let Some(own) = own {
            sections.extend(own.values().into_iter().map(|it| (it.name.clone(), it)));
        }
        let mut sections: Vec<Section> = sections.into_values().collect();
        // Stable, so that names decide among equals.
        sections.sort_by_key(|section| section.order);
        sections
    }

    /// The agent's layer, which ends with it.
    fn layer(&self, agent: &Agent) -> anyhow::Result<Arc<ScopedMap<Section>>> {
        let instance = agent.instance();
        let mut agents = lock(&self.agents);
        if let Some(layer) = agents.get(&instance) {
            return Ok(Arc::clone(layer));
        }
        let layers = Arc::clone(&self.agents);
        agent.scope().defer("prompt sections", move || {
            lock(&layers).remove(&instance);
            async { Ok(()) }
        })?;
        let layer = Arc::new(ScopedMap::new("prompt section of this agent"));
        agents.insert(instance, Arc::clone(&layer));
        Ok(layer)
    }
}

impl Default for PromptRegistry {
    fn default() -> Self {
        Self::new()
    }
}

/// Provides [`SystemPrompt`].
pub struct SystemPromptPlugin;

#[async_trait]
impl Plugin for SystemPromptPlugin {
    const NAME: &'static str = "system-prompt";
    type Config = NoConfig;
    type Inject = ();
    type Provide = SystemPrompt;

    async fn setup(_: &Ctx, (): Deps<Self>, _: NoConfig) -> anyhow::Result<Provided<Self>> {
        Ok(Arc::new(PromptRegistry::new()))
    }
}

dsh_core::register_plugin!(SystemPromptPlugin);

#[cfg(test)]
mod tests {
    use agents::{AgentRegistry, AgentSpec};

    use super::*;

    fn section(name: &str, order: i32, text: &str) -> Section {
        Section { name: name.into(), order, text: text.into() }
    }

    #[tokio::test]
    async fn sections_are_ordered_and_shadowed() {
        let scope = Scope::root("test");
        let agents = AgentRegistry::new(scope.clone());
        let agent = || AgentSpec { id: None, workspace_root: "/tmp".into() };
        let (one, two) = (agents.create(agent()).unwrap(), agents.create(agent()).unwrap());
        let prompt = PromptRegistry::new();
        let plugin = scope.child("plugin").unwrap();

        assert_eq!(prompt.render(None), "");
        prompt.contribute(&plugin, section("b", 2, "B\n")).unwrap();
        prompt.contribute(&plugin, section("c", 1, "C")).unwrap();
        prompt.contribute(&scope, section("a", 2, "A")).unwrap();
        assert_eq!(prompt.render(None), "C\n\nA\n\nB");

        prompt.contribute_for(&one, section("c", 3, "own C")).unwrap();
        prompt.contribute_for(&one, section("d", -1, "D")).unwrap();
        assert_eq!(prompt.render(Some(&one)), "D\n\nA\n\nB\n\nown C");
        assert_eq!(prompt.render(Some(&two)), "C\n\nA\n\nB");

        let error = prompt.contribute(&scope, section("a", 9, "")).unwrap_err().to_string();
        assert_eq!(error, "prompt section `a` is already registered");
        prompt.contribute_for(&one, section("d", 9, "")).unwrap_err();

        plugin.dispose().await.unwrap();
        assert_eq!(prompt.render(Some(&two)), "A");
        agents.dispose(&one).await.unwrap();
        assert_eq!(prompt.render(Some(&one)), "A");
        assert!(lock(&prompt.agents).is_empty());
        prompt.contribute_for(&one, section("e", 1, "")).unwrap_err();
        scope.dispose().await.unwrap();
        assert_eq!(prompt.render(None), "");
    }
}
