//! Opening a session: policy, working directory, environment, shell.

use std::sync::Arc;

use dsh_core::async_trait;
use sandbox_policy::{Enforced, PolicyRegistry};
use subprocess::{SpawnError, TerminalHost, TerminalSize, TerminalSpec};
use terminal::{OpenRequest, TerminalBackend, TerminalError, TerminalSession};
use tokio::task::spawn_blocking;

use crate::{
    config::Config,
    dialect::Nonce,
    environment::{Passing, SessionVariables, environment},
    limits::Places,
    session::{self, Shell},
};

/// Opens shells.
pub struct BashBackend {
    config: Arc<Config>,
    policy: Arc<PolicyRegistry>,
    host: Arc<dyn TerminalHost>,
    places: Places,
}

impl BashBackend {
    /// A backend with a [resolved](Config::resolved) configuration.
    pub fn new(config: Config, policy: Arc<PolicyRegistry>, host: Arc<dyn TerminalHost>) -> Self {
        Self { config: Arc::new(config), policy, host, places: Places::default() }
    }
}

#[async_trait]
impl TerminalBackend for BashBackend {
    fn kind(&self) -> &str {
        &self.config.backend_type
    }

    async fn open(&self, request: OpenRequest) -> Result<Arc<dyn TerminalSession>, TerminalError> {
        let config = &self.config;
        let place = self.places.take(request.owner.instance(), &config.limits)?;
        let (policies, owner) = (Arc::clone(&self.policy), Arc::clone(&request.owner));
        // A provider may have to wait for a program.
        let enforced = spawn_blocking(move || policies.require_enforceable(&owner)).await;
        let Enforced { policy, confinement } = enforced
            .map_err(|error| TerminalError::Backend(format!("asking for the sandbox: {error}")))?
            .map_err(|error| TerminalError::ShellStartFailed(error.to_string()))?;
        // Whether it exists is the host's to say, where the shell will run.
        let cwd = match &request.cwd {
            Some(cwd) => policy.workspace_root.join(cwd),
            None => policy.workspace_root,
        };
        let nonce = Nonce::random().map_err(|error| {
            TerminalError::ShellStartFailed(format!("no random numbers from the system: {error}"))
        })?;
        let mut env = environment(
            // A name or value that is not UTF-8 cannot be passed on as text.
            std::env::vars_os().filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.into_string().ok()?))
            }),
            Passing { allow: &config.environment_allow, deny: &config.environment_deny },
            SessionVariables {
                term: &config.term,
                owner_id: request.owner.id(),
                session_id: request.session_id.as_str(),
                plain: config.plain_output,
            },
            subprocess::has_locale,
        );
        if config.shell_dialect.speaks(&config.shell_path) {
            let (name, value) = config.shell_dialect.environment();
            env.push((name.to_owned(), value.to_owned()));
        }
        let spec = TerminalSpec {
            program: config.shell_path.clone(),
            args: config.shell_args.clone(),
            env,
            cwd,
            size: TerminalSize { rows: config.rows, cols: config.cols },
            isolation: config.isolation,
            umask: config.umask.mode(),
            confinement,
            bounds: config.limits.bounds(),
        };
        let process = self.host.spawn(spec).await.map_err(spawn_error)?;
        let OpenRequest { session_id, owner, cancel, changes, .. } = request;
        let shell = Shell { process, nonce, far: None };
        let session = session::open(
            session_id,
            owner.id(),
            shell,
            Arc::clone(config),
            place,
            (cancel, changes),
        )
        .await?;
        Ok(Arc::new(session))
    }
}

fn spawn_error(error: SpawnError) -> TerminalError {
    match error {
        SpawnError::Cwd { path, reason } => {
            TerminalError::InvalidCwd { cwd: path.display().to_string(), reason }
        }
        error => TerminalError::ShellStartFailed(error.to_string()),
    }
}
