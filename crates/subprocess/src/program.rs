//! Which file a program's name stands for, and whether it can be run.

use std::{
    env, fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// No program can be started by this name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoProgram {
    /// There is no such file, or none in any folder of `PATH`.
    #[error("there is no program `{}`", .0.display())]
    Missing(PathBuf),
    /// There is a file, and nobody may run it.
    #[error("`{}` is not executable", .0.display())]
    NotExecutable(PathBuf),
    /// There is something else than a file.
    #[error("`{}` is not a program but a folder or a device", .0.display())]
    NoFile(PathBuf),
    /// It may be there, and cannot be looked at.
    #[error("`{}` cannot be looked at: {reason}", .path.display())]
    #[expect(missing_docs, reason = "fields are named after the placeholders in the message")]
    Unreadable { path: PathBuf, reason: String },
}

/// The file that `name` stands for: a path, or what the host's `PATH` has first that can be run.
///
/// # Errors
/// There is none that can be run. What is there but cannot be run is named.
pub fn find_program(name: &Path) -> Result<PathBuf, NoProgram> {
    if name.components().nth(1).is_some() || name.is_absolute() {
        let path = std::path::absolute(name).unwrap_or_else(|_| name.to_owned());
        return runs(&path).map(|()| path);
    }
    let mut found = NoProgram::Missing(name.to_owned());
    for folder in env::split_paths(&env::var_os("PATH").unwrap_or_default()) {
        let path = folder.join(name);
        match runs(&path) {
            Ok(()) => return Ok(path),
            Err(NoProgram::NotExecutable(path)) => found = NoProgram::NotExecutable(path),
            Err(_) => {}
        }
    }
    Err(found)
}

fn runs(path: &Path) -> Result<(), NoProgram> {
    match fs::metadata(path) {
        Ok(it) if !it.is_file() => Err(NoProgram::NoFile(path.to_owned())),
        Ok(it) if it.permissions().mode() & 0o111 == 0 => {
            Err(NoProgram::NotExecutable(path.to_owned()))
        }
        Ok(_) => Ok(()),
        Err(error) => Err(match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                NoProgram::Missing(path.to_owned())
            }
            _ => NoProgram::Unreadable { path: path.to_owned(), reason: error.to_string() },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name_and_by_path() {
        let find = find_program;
        let sh = find(Path::new("sh")).unwrap();
        assert!(sh.is_absolute());
        assert_eq!(find(&sh), Ok(sh.clone()));
        for missing in ["no-such-program", "/no/such/program", "/dev/null/program"] {
            assert_eq!(find(Path::new(missing)), Err(NoProgram::Missing(missing.into())));
        }
        for other in ["/dev/null", "/"] {
            assert_eq!(find(Path::new(other)), Err(NoProgram::NoFile(other.into())));
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path();
        assert_eq!(find(path), Err(NoProgram::NotExecutable(path.to_owned())));
        let said = find(path).unwrap_err().to_string();
        assert_eq!(said, format!("`{}` is not executable", path.display()));
    }
}
