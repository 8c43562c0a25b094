//! The launcher: its program, and runs of it that answer.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use subprocess::{
    Bounds, Confinement, Event, Isolation, TerminalHost, TerminalProcess, TerminalSize,
    TerminalSpec, find_program,
};
use terminal::TerminalError;

use crate::config::NEXT;

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
        let program = find_program(Path::new(name))
            .map_err(|missing| failed(format!("{missing}: {NEXT}")))?;
        let spec = TerminalSpec {
            program,
            args: args.iter().cloned().chain([line]).collect(),
            env: self.env.clone(),
            cwd: self.cwd.clone(),
            size: self.size,
            isolation: Isolation::None,
            umask: UMASK,
            confinement: Confinement::None,
            bounds: Bounds::default(),
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
        match ended {
            Ok(()) => Ok(output),
            Err(why) => Err(format!("{why}; {}", printed(&output))),
        }
    }
}

/// What a launcher has printed, for a message about it.
pub(crate) fn printed(output: &str) -> String {
    match output.trim() {
        "" => "it printed nothing".to_owned(),
        text => format!("it printed: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use subprocess::LocalHost;

    use super::*;

    #[tokio::test]
    async fn what_a_run_that_hangs_has_printed_is_told() {
        for (line, says) in [
            ("exec sleep 1000", "no end within 300 ms; it printed nothing"),
            ("echo; exec sleep 1000", "no end within 300 ms; it printed nothing"),
        ] {
            let side = NonZeroU16::new(80).unwrap();
            let launcher = Launcher {
                host: Arc::new(LocalHost::new()),
                argv: vec!["sh".to_owned(), "-c".to_owned()],
                env: Vec::new(),
                cwd: "/".into(),
                size: TerminalSize { rows: side, cols: side },
            };
            let ran = launcher.run(line.to_owned(), Duration::from_millis(300)).await;
            assert_eq!(ran, Err(says.to_owned()));
        }
        assert_eq!(printed(" no route\n"), "it printed: no route");
    }
}
