//! The `sandbox-policy` row.

use std::{path::PathBuf, sync::Arc};

use agents::Agents;
use dsh_core::{Claim, ConfigError, Ctx, Deps, Plugin, Provided, async_trait};

use crate::{
    Network, PID_NAMESPACE_SANDBOX, PolicyError, PolicyRegistry, SANDBOX_PROVIDER, SandboxMode,
    SandboxPolicy,
    policy::{is_folder_to_allow, temporary_folders},
};

/// Configuration of [`SandboxPolicyPlugin`].
#[derive(Debug, Default, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SandboxPolicyConfig {
    /// The mode of every agent that is not told otherwise. A confined one needs a row such as
    /// `sandbox-landlock`.
    pub mode: SandboxMode,
    /// The network of confined agents: `no-tcp` needs `sandbox-landlock`, `none` `sandbox-bubblewrap`.
    pub network: Network,
    /// Folders besides the workspace that `workspace-write` may write to, as absolute paths; by
    /// default the temporary ones: /tmp, /var/tmp, /dev/shm and `$TMPDIR`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writable_folders: Option<Vec<PathBuf>>,
    /// Folder of the host, which no confined session may write to, instead of `DSH_HOME`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home: Option<PathBuf>,
}

/// Provides [`SandboxPolicy`].
pub struct SandboxPolicyPlugin;

#[async_trait]
impl Plugin for SandboxPolicyPlugin {
    const NAME: &'static str = "sandbox-policy";
    type Config = SandboxPolicyConfig;
    type Inject = (Agents,);
    type Provide = SandboxPolicy;

    fn check(config: &SandboxPolicyConfig) -> Vec<ConfigError> {
        let folders = config.writable_folders.iter().flatten().enumerate();
        let mut problems: Vec<_> = folders
            .filter_map(|(index, path)| {
                let message = if !is_folder_to_allow(path) {
                    format!(
                        "must be the absolute path of a folder other than /, got `{}`",
                        path.display()
                    )
                } else if !path.is_dir() {
                    format!("there is no folder `{}`: create it, or leave it out", path.display())
                } else {
                    return None;
                };
                Some(ConfigError::new(format!("writableFolders[{index}]"), message))
            })
            .collect();
        if config.network != Network::Full && !config.mode.is_confined() {
            let message = format!(
                "`{}` needs a confined mode, and `mode` is `{}`: nothing is enforced then",
                config.network.name(),
                config.mode.name()
            );
            problems.push(ConfigError::new("network", message).and_about("mode"));
        }
        problems
    }

    fn claims(config: &SandboxPolicyConfig) -> Vec<Claim> {
        let mode = config.mode;
        let without = PolicyError::NoProvider { mode: mode.name() }.to_string();
        let claim = Claim::needs(SANDBOX_PROVIDER, "mode", without);
        if mode.is_confined() {
            vec![claim]
        } else {
            // Nothing is in the way of a namespace.
            vec![Claim::takes(PID_NAMESPACE_SANDBOX, mode.name(), "mode")]
        }
    }

    async fn setup(
        ctx: &Ctx,
        _: Deps<Self>,
        config: SandboxPolicyConfig,
    ) -> anyhow::Result<Provided<Self>> {
        let folders = config
            .writable_folders
            .unwrap_or_else(|| temporary_folders(std::env::var_os("TMPDIR").map(PathBuf::from)));
        // Without one the host keeps no files.
        let home = dsh_core::home::folder(config.home.as_deref()).ok();
        let registry = Arc::new(PolicyRegistry::new(config.mode, config.network, folders, home));
        let to_check = Arc::clone(&registry);
        ctx.when_started(move || async move { Ok(to_check.check_mode(to_check.default_mode())?) });
        Ok(registry)
    }
}

dsh_core::register_plugin!(SandboxPolicyPlugin);
