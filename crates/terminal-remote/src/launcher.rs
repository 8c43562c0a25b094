//! The launcher: its program, and runs of it that answer.

use std::{
    env,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use subprocess::{
    Confinement, Event, Isolation, TerminalHost, TerminalProcess, TerminalSize, TerminalSpec,
};
use terminal::TerminalError;

/// More than an answer has, banners included.
const LONGEST: usize = 1 << 20;

/// Of what the launcher itself writes here, such as known hosts.
const UMASK: u16 = 0o022;

/// Starts a launcher on terminals of this machine.
#[derive(Clone)]
pub(crate) struct Launcher {
    pub(crate) host: Arc<dyn TerminalHost>,
    pub(crate) argv: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: PathBuf,
    pub(crate) size: TerminalSize,
}

impl Launcher {
    /// The command as a person would type it, without what the far side runs.
    pub(crate) fn command(&self) -> String {
        self.argv.join(" ")
    }

    /// Starts it with a line for the far side.
    pub(crate) async fn start(
        &self,
        line: String,
    ) -> Result<Box<dyn TerminalProcess>, TerminalError> {
        let failed = |reason: String| {
            TerminalError::ShellStartFailed(format!(
                "`{}` cannot be started: {reason}",
                self.command()
            ))
        };
        let Some((name, args)) = self.argv.split_first() else {
            return Err(failed("no launcher is named, set `argv`".to_owned()));
        };
        let Some(program) = find(name) else {
            return Err(failed(format!(
                "there is no program `{name}`: install it, or give its path in the row of this backend"
            )));
        };
        let spec = TerminalSpec {
            program,
            args: args.iter().cloned().chain([line]).collect(),
            env: self.env.clone(),
            cwd: self.cwd.clone(),
            size: self.size,
            isolation: Isolation::None,
            umask: UMASK,
            confinement: Confinement::None,
        };
        self.host.spawn(spec).await.map_err(|error| failed(error.to_string()))
    }

    /// Runs it with a line for the far side, and gives what it printed, within a bound. Nothing of it
    /// is left then.
    pub(crate) async fn run(&self, line: String, bound: Duration) -> Result<String, String> {
        let deadline = Instant::now() + bound;
        let mut process = self.start(line).await.map_err(|error| error.to_string())?;
        let mut output = Vec::new();
        let ended = loop {
            match process.next(Some(deadline), &mut output).await {
                Event::OutputEnd => break Ok(()),
                Event::Deadline => break Err(format!("no end within {} ms", bound.as_millis())),
                Event::Output | Event::Activity | Event::Exited(_) => {}
            }
            if output.len() > LONGEST {
                break Err("it prints without end".to_owned());
            }
        };
        let mut rest = Vec::new();
        let terminated = process.terminate(Duration::ZERO, &mut rest).await;
        terminated.map_err(|error| error.to_string())?;
        let output = String::from_utf8_lossy(&output).into_owned();
        ended.map(|()| output.clone()).map_err(|why| format!("{why}: {}", output.trim()))
    }
}

/// The program of this name: a path, or what the host's `PATH` has first.
fn find(name: &str) -> Option<PathBuf> {
    let runs = |path: &Path| {
        path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return std::path::absolute(name).ok().filter(|path| runs(path));
    }
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| runs(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name_and_by_path() {
        let sh = find("sh").unwrap();
        assert!(sh.is_absolute());
        assert_eq!(find(sh.to_str().unwrap()), Some(sh));
        for missing in ["no-such-program", "/no/such/program", "/dev/null"] {
            assert_eq!(find(missing), None);
        }
    }
}
