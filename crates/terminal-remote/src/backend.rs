//! Opening a session: policy, launcher, the far side's line.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use dsh_core::async_trait;
use sandbox_policy::PolicyRegistry;
use subprocess::{TerminalHost, TerminalSize};
use terminal::{DISPOSAL_GRACE, OpenRequest, TerminalBackend, TerminalError, TerminalSession};
use terminal_bash::{
    environment::{Passing, SessionVariables, environment},
    far::{Far, FarShells},
};

use crate::{
    config::Config,
    launcher::Launcher,
    script,
    session::{FarSide, RemoteSession, tenths},
};

/// Opens shells on the far side of a launcher.
pub struct RemoteBackend {
    config: Config,
    shells: FarShells,
    policy: Arc<PolicyRegistry>,
    host: Arc<dyn TerminalHost>,
}

impl RemoteBackend {
    /// A backend with a configuration without problems.
    pub fn new(config: Config, policy: Arc<PolicyRegistry>, host: Arc<dyn TerminalHost>) -> Self {
        Self { shells: FarShells::new(config.engine()), config, policy, host }
    }

    fn launcher(&self, argv: &[String], request: &OpenRequest) -> Result<Launcher, TerminalError> {
        let policy = self.policy.policy(&request.owner);
        if policy.mode.is_confined() {
            return Err(TerminalError::ShellStartFailed(format!(
                "sandbox mode `{}` does not reach the far side of `{}`: open a session of this \
                 machine, or use `danger-full-access`",
                policy.mode.name(),
                argv.join(" ")
            )));
        }
        let env = environment(
            // A name or value that is not UTF-8 cannot be passed on as text.
            std::env::vars_os().filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.into_string().ok()?))
            }),
            Passing { allow: &self.config.environment_allow, deny: &self.config.environment_deny },
            SessionVariables {
                term: &self.shells.config().term,
                owner_id: request.owner.id(),
                session_id: request.session_id.as_str(),
                plain: true,
            },
            subprocess::has_locale,
        );
        Ok(Launcher {
            host: Arc::clone(&self.host),
            argv: argv.to_vec(),
            env,
            cwd: policy.workspace_root,
            size: TerminalSize { rows: self.config.rows, cols: self.config.cols },
        })
    }
}

#[async_trait]
impl TerminalBackend for RemoteBackend {
    fn kind(&self) -> &str {
        &self.config.backend_type
    }

    async fn open(&self, request: OpenRequest) -> Result<Arc<dyn TerminalSession>, TerminalError> {
        let config = &self.config;
        let admitted = self.shells.admit(&request.owner)?;
        let launcher = self.launcher(&config.argv, &request)?;
        let control = match config.control_argv.as_slice() {
            [] => None,
            argv => Some(Launcher { argv: argv.to_vec(), ..launcher.clone() }),
        };
        let far = Far::new(launcher.command())?;
        let grace = Duration::from_millis(config.dispose_grace_ms);
        let line = script::session(&script::Session {
            token: far.token(),
            cwd: request.cwd.as_deref(),
            shell: &config.shell_path,
            variables: &[
                ("TERM", &self.shells.config().term),
                ("NO_COLOR", "1"),
                ("PAGER", "cat"),
                ("GIT_PAGER", "cat"),
                ("DSH_SHELL", "1"),
                ("HISTFILE", ""),
                ("DSH_SESSION_ID", request.owner.id()),
                ("DSH_PTY_SESSION_ID", request.session_id.as_str()),
                // Nothing is shown before the hooks are there.
                ("PS1", ""),
            ],
            grace: tenths(grace),
        });
        let process = launcher.start(line).await?;
        let opened = self.shells.open(admitted, request, process, far.clone()).await;
        // Until it was reached there is nothing on the far side but what the hang-up ends.
        let Some(pid) = far.pid() else { return opened };
        let far = FarSide { control, far, pid, grace, unreachable: AtomicBool::new(false) };
        match opened {
            Ok(near) => Ok(Arc::new(RemoteSession { near, far })),
            Err(error) => match far.end(Some(DISPOSAL_GRACE)).await {
                Ok(()) => Err(error),
                Err(left) => Err(TerminalError::CloseIncomplete(format!("{error}; and {left}"))),
            },
        }
    }
}
