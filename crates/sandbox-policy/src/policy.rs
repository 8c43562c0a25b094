//! The terms: what may be written and reached.

use std::{
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
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
    /// Absolute path of the folder in which the host keeps files of its own, where it has one: no
    /// confined process may write there, wherever it is. What the host reads at its next start is in it.
    pub home: Option<PathBuf>,
}

/// The host's own folder where it is among what may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposed {
    /// The folder.
    pub home: PathBuf,
    /// Those between it and the folder that may be written, outermost first: by another name of one of
    /// them the host's would be another one.
    pub between: Vec<PathBuf>,
    /// The folder that may be written.
    pub writable: PathBuf,
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

    /// Where the host's own folder is below one that may be written, without links; it is made then if it
    /// is not there.
    pub fn exposed(&self) -> Result<Option<Exposed>, Refusal> {
        let Some(home) = &self.home else { return Ok(None) };
        let writable = self.writable()?;
        let real: Vec<_> = writable.iter().filter_map(|it| it.canonicalize().ok()).collect();
        // The outermost one, so that all between are named.
        let around = |path: &Path| {
            let found = real.iter().filter(|it| path.starts_with(it));
            found.min_by_key(|it| it.as_os_str().len()).cloned()
        };
        let nearest = home.ancestors().find_map(|it| it.canonicalize().ok());
        if nearest.is_none_or(|it| around(&it).is_none()) {
            return Ok(None);
        }
        let refused = |error| Refusal(format!("the host's folder `{}`: {error}", home.display()));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(home).map_err(refused)?;
        let home = home.canonicalize().map_err(refused)?;
        Ok(around(&home).map(|writable| {
            let ancestors = home.ancestors().skip(1);
            let mut between: Vec<_> = ancestors
                .take_while(|it| it.starts_with(&writable) && *it != writable)
                .map(PathBuf::from)
                .collect();
            between.reverse();
            Exposed { home, between, writable }
        }))
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

    #[test]
    fn the_hosts_folder_is_found_below_what_may_be_written() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (work, other) = (root.join("work"), root.join("other"));
        std::fs::create_dir_all(work.join("a/b")).unwrap();
        std::fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(work.join("a"), other.join("link")).unwrap();
        let policy = |mode, home: &Path| Policy {
            mode,
            workspace_root: work.clone(),
            network: Network::Full,
            writable_folders: vec![work.join("a")],
            home: Some(home.to_owned()),
        };
        let exposed = |home: &Path| policy(SandboxMode::WorkspaceWrite, home).exposed().unwrap();
        assert_eq!(exposed(&other), None);
        let read_only = policy(SandboxMode::ReadOnly, &work.join("not-made"));
        assert_eq!(read_only.exposed(), Ok(None));
        for (home, real, between) in [
            (work.join(".dsh"), work.join(".dsh"), vec![]),
            (work.clone(), work.clone(), vec![]),
            (other.join("link/b/c"), work.join("a/b/c"), vec![work.join("a"), work.join("a/b")]),
        ] {
            let writable = work.clone();
            let expected = Exposed { home: real, between, writable };
            assert_eq!(exposed(&home), Some(expected), "{}", home.display());
        }
    }
}
