//! The folder in which a host and its plugins keep files of the user.

use std::{
    env, io,
    path::{Path, PathBuf},
};

/// Nothing says where the folder is, or the current folder is gone and it is relative to that.
#[derive(Debug, thiserror::Error)]
#[error("there is no folder for files of the host: set DSH_HOME or HOME")]
pub struct NoHome(#[source] Option<io::Error>);

/// The `configured` folder, else `DSH_HOME`, else `~/.dsh`; absolute. It need not exist.
pub fn folder(configured: Option<&Path>) -> Result<PathBuf, NoHome> {
    let set = |name| env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let folder = configured
        .map(Path::to_owned)
        .or_else(|| set("DSH_HOME"))
        .or_else(|| set("HOME").map(|home| home.join(".dsh")))
        .ok_or(NoHome(None))?;
    std::path::absolute(folder).map_err(|error| NoHome(Some(error)))
}
