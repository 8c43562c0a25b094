//! The terms: what may be written and reached.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::Refusal;

/// How far an agent's processes are confined. Names are the wire's.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Not at all.
    #[default]
    DangerFullAccess,
    /// Writes only to the workspace and to temporary folders.
    WorkspaceWrite,
    /// No writes, except to terminals and devices without content.
    ReadOnly,
}

impl SandboxMode {
    /// Every mode, the weakest first.
    pub const ALL: [Self; 3] = [Self::DangerFullAccess, Self::WorkspaceWrite, Self::ReadOnly];

    /// Its name in configuration and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::DangerFullAccess => "danger-full-access",
            Self::WorkspaceWrite => "workspace-write",
            Self::ReadOnly => "read-only",
        }
    }

    /// Whether anything has to be enforced.
    pub fn is_confined(self) -> bool {
        self != Self::DangerFullAccess
    }

    /// What it means for whoever runs commands, in a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::DangerFullAccess => {
                "commands run with every right of the user who started this host, and nothing confines them"
            }
            Self::WorkspaceWrite => {
                "commands can read everything, and write only below the workspace root and to temporary folders"
            }
            Self::ReadOnly => "commands can read everything and write no file",
        }
    }
}

/// What a confined process may reach of the network.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// All of it.
    #[default]
    Full,
    /// No TCP, neither as client nor as server. Other protocols, such as UDP, stay.
    NoTcp,
    /// None of it, but for a loopback interface of the session's own.
    None,
}

impl Network {
    /// Its name in configuration and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::NoTcp => "no-tcp",
            Self::None => "none",
        }
    }
}

/// What holds for one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The mode.
    pub mode: SandboxMode,
    /// Absolute path of the workspace root.
    pub workspace_root: PathBuf,
    /// The network, where the mode confines at all.
    pub network: Network,
    /// Absolute paths of the folders besides the workspace that `workspace-write` may write to.
    /// They existed when the host started.
    pub writable_folders: Vec<PathBuf>,
}

/// Folders and devices that stay writable in every mode: what has no content of its own. A system may
/// lack some.
pub const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

impl Policy {
    /// The folders that may be written: there are all of them, and none is everything.
    pub fn writable(&self) -> Result<Vec<PathBuf>, Refusal> {
        if self.mode != SandboxMode::WorkspaceWrite {
            return Ok(Vec::new());
        }
        let folders = std::iter::once(&self.workspace_root).chain(&self.writable_folders);
        folders.map(|folder| check_writable(folder).map(|()| folder.clone())).collect()
    }
}

fn check_writable(folder: &Path) -> Result<(), Refusal> {
    let name = folder.display();
    let look = |path: &Path| {
        std::fs::metadata(path).map_err(|error| {
            Refusal(format!("`{name}`, which is to be writable, cannot be opened: {error}"))
        })
    };
    let (here, root) = (look(folder)?, look(Path::new("/"))?);
    if !here.is_dir() {
        return Err(Refusal(format!("`{name}`, which is to be writable, is not a folder")));
    }
    if (here.dev(), here.ino()) == (root.dev(), root.ino()) {
        return Err(Refusal(format!(
            "`{name}` is the whole file system, so nothing would be confined: start the host in the folder to work in"
        )));
    }
    Ok(())
}

/// The temporary folders of this system: the usual ones, shared memory, and `$TMPDIR` as `variable`.
///
/// The root of the file system is none, whatever the variable says.
pub(crate) fn temporary_folders(variable: Option<PathBuf>) -> Vec<PathBuf> {
    let usual = ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from);
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in usual.into_iter().chain(variable) {
        if is_folder_to_allow(&folder) && folder.is_dir() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// Whether a path names a folder whatever the working directory is, and not everything.
pub(crate) fn is_folder_to_allow(path: &Path) -> bool {
    path.is_absolute() && path.components().any(|it| matches!(it, std::path::Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_and_relative_paths_are_no_temporary_folders() {
        let usual = temporary_folders(None);
        assert!(usual.contains(&PathBuf::from("/tmp")), "{usual:?}");
        for nonsense in ["/", "//", "/.", "tmp", "", "/no/such/folder", "/tmp"] {
            assert_eq!(temporary_folders(Some(nonsense.into())), usual, "{nonsense}");
        }
        let own = tempfile::tempdir().unwrap();
        assert_eq!(temporary_folders(Some(own.path().into())).last().unwrap(), own.path());
    }
}
