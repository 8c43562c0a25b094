//! Opening a session: policy, working directory, environment, shell.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use dsh_core::async_trait;
use sandbox_policy::PolicyRegistry;
use subprocess::{SpawnError, TerminalHost, TerminalSize, TerminalSpec};
use terminal::{OpenRequest, TerminalBackend, TerminalError, TerminalSession};

use crate::{
    config::{Config, ShellDialect},
    dialect::{self, Nonce},
    environment::{SessionVariables, environment},
    session,
};

/// Opens shells.
pub struct BashBackend {
    config: Arc<Config>,
    policy: Arc<PolicyRegistry>,
    host: Arc<dyn TerminalHost>,
}

impl BashBackend {
    /// A backend with a [resolved](Config::resolved) configuration.
    pub fn new(config: Config, policy: Arc<PolicyRegistry>, host: Arc<dyn TerminalHost>) -> Self {
        Self { config: Arc::new(config), policy, host }
    }
}

#[async_trait]
impl TerminalBackend for BashBackend {
    fn kind(&self) -> &str {
        &self.config.backend_type
    }

    async fn open(&self, request: OpenRequest) -> Result<Arc<dyn TerminalSession>, TerminalError> {
        let config = &self.config;
        let policy = self
            .policy
            .require_enforceable(&request.owner)
            .map_err(|error| TerminalError::ShellStartFailed(error.to_string()))?;
        let cwd = working_directory(&policy.workspace_root, request.cwd.as_deref())?;
        let nonce = Nonce::random().map_err(|error| {
            TerminalError::ShellStartFailed(format!("no random numbers from the system: {error}"))
        })?;
        let mut env = environment(
            // A name or value that is not UTF-8 cannot be passed on as text.
            std::env::vars_os().filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.into_string().ok()?))
            }),
            SessionVariables {
                term: &config.term,
                owner_id: request.owner.id(),
                session_id: request.session_id.as_str(),
            },
        );
        env.extend(match config.shell_dialect {
            ShellDialect::Bash => dialect::bash_hooks(&nonce),
        });
        let spec = TerminalSpec {
            program: config.shell_path.clone(),
            args: config.shell_args.clone(),
            env,
            cwd,
            size: TerminalSize { rows: config.rows, cols: config.cols },
        };
        let process = self.host.spawn(spec).await.map_err(spawn_error)?;
        let session =
            session::open(request.session_id, process, nonce, Arc::clone(config), request.cancel)
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

/// The folder that a session starts in. It exists.
fn working_directory(root: &Path, cwd: Option<&str>) -> Result<PathBuf, TerminalError> {
    let path = root.join(cwd.unwrap_or_default());
    let refused =
        |reason: String| TerminalError::InvalidCwd { cwd: path.display().to_string(), reason };
    let metadata = std::fs::metadata(&path).map_err(|error| {
        refused(match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such directory".to_owned(),
            _ => error.to_string(),
        })
    })?;
    if !metadata.is_dir() {
        return Err(refused("it is not a directory".to_owned()));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cwd_is_resolved_against_the_workspace() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("sub")).unwrap();
        std::fs::write(root.path().join("file"), "").unwrap();
        let resolve = |cwd| working_directory(root.path(), cwd).map_err(|error| error.to_string());
        assert_eq!(resolve(None), Ok(root.path().join("")));
        assert_eq!(resolve(Some("sub")), Ok(root.path().join("sub")));
        assert_eq!(resolve(Some("/")), Ok(PathBuf::from("/")));
        let at = |name: &str| root.path().join(name).display().to_string();
        assert_eq!(
            resolve(Some("file")),
            Err(format!("cannot start a shell in `{}`: it is not a directory", at("file")))
        );
        assert_eq!(
            resolve(Some("gone")),
            Err(format!("cannot start a shell in `{}`: there is no such directory", at("gone")))
        );
    }
}
