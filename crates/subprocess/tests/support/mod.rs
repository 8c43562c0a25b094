//! A process on a terminal for tests, driven by events, with a check of what is left at the end.
#![allow(dead_code, reason = "every test binary uses its own part")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "test helpers")]

use std::{
    future::Future,
    num::NonZeroU16,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use subprocess::{
    Depth, Event, Evidence, ExitStatus, LocalHost, ProcessFacts, SpawnError, TerminalHost as _,
    TerminalProcess, TerminalSize, TerminalSpec, Wait,
};

/// A hang guard, not a measurement.
pub(crate) const GUARD: Duration = Duration::from_secs(30);

pub(crate) fn size() -> TerminalSize {
    TerminalSize { rows: NonZeroU16::new(40).unwrap(), cols: NonZeroU16::new(160).unwrap() }
}

pub(crate) fn spec(program: &str, args: &[&str]) -> TerminalSpec {
    TerminalSpec {
        program: program.into(),
        args: args.iter().map(|&it| it.to_owned()).collect(),
        env: [("PATH", "/usr/bin:/bin"), ("TERM", "dumb"), ("PS1", "dsh> "), ("LC_ALL", "C")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        cwd: "/".into(),
        size: size(),
        isolation: subprocess::Isolation::None,
        umask: 0o022,
        confinement: subprocess::Confinement::None,
        bounds: subprocess::Bounds::default(),
    }
}

pub(crate) fn bash() -> TerminalSpec {
    spec("/bin/bash", &["--noprofile", "--norc", "-i"])
}

pub(crate) fn sh(script: &str) -> TerminalSpec {
    spec("/bin/bash", &["-c", script])
}

pub(crate) fn python(script: &str) -> TerminalSpec {
    let python = ["/usr/bin/python3", "/usr/local/bin/python3"]
        .into_iter()
        .find(|it| Path::new(it).exists())
        .expect("python3 in one of the usual places");
    spec(python, &["-c", script])
}

/// Fails instead of hanging.
pub(crate) async fn guarded<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(GUARD, future).await.unwrap_or_else(|_| panic!("hangs: {what}"))
}

/// A process and everything it printed.
pub(crate) struct Session {
    pub(crate) process: Box<dyn TerminalProcess>,
    pub(crate) output: Vec<u8>,
    pub(crate) exit: Option<ExitStatus>,
    pub(crate) ended: bool,
}

impl Session {
    pub(crate) async fn start(spec: TerminalSpec) -> Self {
        Self::try_start(spec).await.expect("it starts")
    }

    pub(crate) async fn try_start(spec: TerminalSpec) -> Result<Self, SpawnError> {
        let process = guarded("spawn", LocalHost::new().spawn(spec)).await?;
        Ok(Self { process, output: Vec::new(), exit: None, ended: false })
    }

    /// An interactive bash at its first prompt.
    pub(crate) async fn shell() -> Self {
        let mut session = Self::start(bash()).await;
        session.until("dsh> ").await;
        session
    }

    pub(crate) async fn event(&mut self) -> Event {
        let event = guarded(
            &format!("next event after {:?}", String::from_utf8_lossy(&self.output)),
            self.process.next(None, &mut self.output),
        )
        .await;
        match &event {
            Event::Exited(status) => self.exit = Some(status.clone()),
            Event::OutputEnd => self.ended = true,
            _ => {}
        }
        event
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// Goes on until `text` was printed, and forgets the output up to its end.
    pub(crate) async fn until(&mut self, text: &str) -> String {
        loop {
            let found = self.output.windows(text.len()).position(|it| it == text.as_bytes());
            if let Some(at) = found {
                let taken: Vec<_> = self.output.drain(..at + text.len()).collect();
                return String::from_utf8_lossy(&taken).into_owned();
            }
            assert!(!self.ended, "ended without {text:?}: {:?}", self.text());
            self.event().await;
        }
    }

    pub(crate) fn type_line(&mut self, line: &str) {
        self.process.write(line.as_bytes());
        self.process.write(b"\r");
    }

    /// Types a command at a shell's prompt and waits for the next prompt.
    pub(crate) async fn command(&mut self, line: &str) -> String {
        self.type_line(line);
        // Past the echo.
        self.until("\n").await;
        self.until("dsh> ").await
    }

    pub(crate) async fn until_exit(&mut self) -> ExitStatus {
        while self.exit.is_none() || !self.ended {
            self.event().await;
        }
        self.exit.clone().unwrap()
    }

    /// Probes at every event, and every few milliseconds without one, until `accept` does.
    pub(crate) async fn until_evidence(
        &mut self,
        depth: Depth,
        what: &str,
        accept: impl Fn(&Evidence) -> bool,
    ) -> Evidence {
        let end = Instant::now() + GUARD;
        loop {
            let evidence = self.process.probe(depth).await;
            if accept(&evidence) {
                return evidence;
            }
            assert!(Instant::now() < end, "never {what}: {evidence:#?}");
            let soon = Some(Instant::now() + Duration::from_millis(2));
            self.process.next(soon, &mut self.output).await;
        }
    }

    /// Ends it and checks that nothing is left.
    pub(crate) async fn close(mut self) {
        let pid = self.process.pid();
        let ended = self.process.terminate(Duration::from_secs(3), &mut self.output);
        guarded("terminate", ended).await.expect("everything ends");
        drop(self);
        assert_gone(pid);
        assert_eq!(members_of_session(pid), Vec::<i32>::new(), "left of session {pid}");
    }
}

pub(crate) fn threads_of<'e>(evidence: &'e Evidence, command: &str) -> Vec<&'e Wait> {
    processes_of(evidence, command).flat_map(|it| it.threads.iter().map(|it| &it.wait)).collect()
}

pub(crate) fn processes_of<'e>(
    evidence: &'e Evidence,
    command: &str,
) -> impl Iterator<Item = &'e ProcessFacts> {
    evidence.processes.iter().filter(move |it| it.command.starts_with(command))
}

pub(crate) fn assert_gone(pid: i32) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    assert!(stat.is_err(), "process {pid} is still there: {stat:?}");
}

/// Living processes of a session, from the process table itself.
pub(crate) fn members_of_session(sid: i32) -> Vec<i32> {
    processes()
        .into_iter()
        .filter(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let rest = stat.rsplit_once(')').map_or("", |it| it.1);
            let fields: Vec<_> = rest.split_ascii_whitespace().collect();
            fields.get(3) == Some(&sid.to_string().as_str()) && fields[0] != "Z"
        })
        .collect()
}

/// Whether `pid` is a living process.
pub(crate) fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Open descriptors of this process.
pub(crate) fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Children of this process, dead ones included.
pub(crate) fn children() -> Vec<i32> {
    let own = std::process::id().to_string();
    processes()
        .into_iter()
        .filter(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let rest = stat.rsplit_once(')').map_or("", |it| it.1);
            rest.split_ascii_whitespace().nth(1) == Some(own.as_str())
        })
        .collect()
}

pub(crate) fn temp() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    (directory, path)
}

/// Every process of the machine.
pub(crate) fn processes() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

pub(crate) fn count(bytes: &[u8], wanted: u8) -> usize {
    bytes.split(|&it| it == wanted).count() - 1
}

/// A duration for `sleep` that no other process of the machine has: `number` is some process's.
pub(crate) fn unique(index: usize, number: u32) -> String {
    format!("{}.{number}", 900_000 + index)
}

/// Living processes with `argument` among their arguments.
pub(crate) fn with_argument(argument: &str) -> Vec<i32> {
    processes()
        .into_iter()
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|&b| b == 0).skip(1).any(|it| it == argument.as_bytes())
        })
        .collect()
}

/// Name of a process as the kernel keeps it.
pub(crate) fn command(pid: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

/// Waits until the world is as wanted.
pub(crate) async fn until(what: &str, world: impl Fn() -> bool) {
    guarded(what, async {
        while !world() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
