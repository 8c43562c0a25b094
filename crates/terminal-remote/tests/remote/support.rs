//! A far machine of our own, and a session on it.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use agents::Agent;
use dsh_core::Cancel;
use tempfile::TempDir;
use terminal::{
    Evidence, SendOperation, SendOutcome, SendRequest, SpawnRequest, Spawned, StateKind,
    TerminalError, TerminalRegistry, Terminals, WaitReason,
};
use testkit::{
    host::TestHost,
    leaks::{Process, alone, processes_with_env},
    wait::wait_until,
};

// Only what is mentioned is linked.
use terminal_remote as _;

/// Short enough to be quick, long enough to be told from a pause.
const TIMES: &str = "idleSilenceMs: 3000, timeoutMs: 20000, disposeGraceMs: 300";

/// The interpreter itself: what the name leads to may be a script that takes longer than a session.
pub(crate) fn python() -> String {
    let asked = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    String::from_utf8(asked.stdout).unwrap().trim().to_owned()
}

/// A machine that can be reached by a socket. It is no descendant of any session.
pub(crate) struct FarMachine {
    folder: TempDir,
    python: String,
    server: Child,
}

impl FarMachine {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let python = python();
        let mut server = Command::new(&python)
            .args(["-IS", FAR, "serve"])
            .arg(folder.path().join("far"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n");
        Self { folder, python, server }
    }

    /// A launcher that reaches it, as a list of the composition's.
    pub(crate) fn argv(&self, tty: bool) -> String {
        let socket = self.folder.path().join("far");
        let flag = if tty { "--tty" } else { "--no-tty" };
        format!("[{}, -IS, {FAR}, connect, {flag}, {}]", self.python, socket.display())
    }

    /// A row with these keys besides, and with a second way to the far side.
    pub(crate) fn row(&self, keys: &str) -> String {
        self.row_alone(&format!("controlArgv: {}, {keys}", self.argv(false)))
    }

    /// The same without.
    pub(crate) fn row_alone(&self, keys: &str) -> String {
        format!(
            "- name: terminal-remote\n  config: {{ argv: {}, {TIMES}, {keys} }}",
            self.argv(true)
        )
    }

    /// Waits until nothing runs on it: what watched over a session ends a moment after it.
    pub(crate) async fn idle(&self) {
        let server = self.server.id();
        wait_until("the far machine is idle", || children(server).is_empty()).await;
    }

    /// Ends every connection that is open, as a network does.
    pub(crate) fn cut(&self) {
        for connection in children(self.server.id()) {
            kill(connection);
        }
    }
}

impl Drop for FarMachine {
    fn drop(&mut self) {
        self.server.kill().and_then(|()| self.server.wait()).unwrap();
    }
}

pub(crate) const FAR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/far.py");

pub(crate) fn kill(pid: u32) {
    let killed = Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
    assert!(killed.success());
}

/// Process ids of the children of a process.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let behind_name = stat.rsplit(") ").next().unwrap_or_default();
        let mut fields = behind_name.split(' ');
        fields.next() != Some("Z") && fields.next() == Some(&parent.to_string())
    })
    .collect()
}

/// A far machine, and a host with one remote backend.
pub(crate) struct Bench {
    pub(crate) far: Option<FarMachine>,
    pub(crate) host: TestHost,
    pub(crate) agent: Arc<Agent>,
}

pub(crate) struct Shell<'a> {
    pub(crate) bench: &'a Bench,
    pub(crate) id: String,
    pub(crate) spawned: Spawned,
}

/// Runs `test` with a bench of these rows, alone in this process, and checks that it leaves nothing.
pub(crate) fn bench(rows: impl FnOnce(&FarMachine) -> String, test: impl AsyncFnOnce(&Bench)) {
    alone(async {
        let far = FarMachine::start();
        let bench = Bench::boot(&rows(&far)).await;
        let bench = Bench { far: Some(far), ..bench };
        test(&bench).await;
        bench.end().await;
    });
}

/// The same with one session on a far machine.
pub(crate) fn shell(test: impl AsyncFnOnce(&Shell<'_>)) {
    bench(
        |far| far.row(""),
        async |bench| {
            let shell = bench.open().await;
            test(&shell).await;
        },
    );
}

impl Bench {
    pub(crate) async fn boot(rows: &str) -> Self {
        let host = TestHost::boot(&format!("- name: terminal\n{rows}\n")).await;
        let agent = host.agent(&format!("remote-{}", std::process::id()));
        Self { far: None, host, agent }
    }

    /// Ends the host; nothing is left on either side.
    pub(crate) async fn end(&self) {
        self.host.dispose().await.unwrap();
        // Where nobody asked the far side, it takes its time.
        wait_until("the far side has ended", || self.processes().is_empty()).await;
        if let Some(far) = &self.far {
            far.idle().await;
        }
    }

    pub(crate) fn terminals(&self) -> Arc<TerminalRegistry> {
        self.host.service::<Terminals>()
    }

    pub(crate) async fn open(&self) -> Shell<'_> {
        self.try_open(None).await.unwrap()
    }

    pub(crate) async fn try_open(&self, cwd: Option<&str>) -> Result<Shell<'_>, TerminalError> {
        let request = SpawnRequest {
            kind: "remote".to_owned(),
            cwd: cwd.map(str::to_owned),
            ..SpawnRequest::default()
        };
        let spawned = self.terminals().spawn(&self.agent, request, &Cancel::new()).await?;
        let id = spawned.session.session_id.to_string();
        Ok(Shell { bench: self, id, spawned })
    }

    /// The text of a refusal, after which nothing is left.
    pub(crate) async fn refused(&self, cwd: Option<&str>, code: &str) -> String {
        let Err(error) = self.try_open(cwd).await else { panic!("it opens") };
        assert_eq!(error.code(), code, "{error}");
        assert!(!self.terminals().has_owner_activity(&self.agent));
        assert_eq!(self.processes(), []);
        error.to_string()
    }

    /// Processes of this agent's sessions, on either side.
    pub(crate) fn processes(&self) -> Vec<Process> {
        processes_with_env("DSH_SESSION_ID", self.agent.id())
    }
}

impl Shell<'_> {
    pub(crate) fn start(&self, text: &str, submit: bool) -> Arc<dyn SendOperation> {
        let request =
            SendRequest { text: text.to_owned(), submit, background: false, cancel: Cancel::new() };
        self.bench.terminals().start_send(&self.bench.agent, &self.id, request).unwrap()
    }

    /// Types `text` and Enter, and waits.
    pub(crate) async fn send(&self, text: &str) -> SendOutcome {
        self.start(text, true).done().await.unwrap()
    }

    /// Sends a command that ends at the prompt with this status; what it printed.
    pub(crate) async fn run(&self, command: &str, status: i32) -> String {
        let outcome = self.send(command).await;
        assert_prompt(&outcome, Some(status));
        let body = outcome.viewport.strip_prefix(command).unwrap().strip_suffix("dsh> ").unwrap();
        body.trim_start_matches('\n').to_owned()
    }

    pub(crate) async fn close(&self) -> Result<bool, TerminalError> {
        self.bench.terminals().kill(&self.bench.agent, &self.id, "test").await
    }
}

/// The far shell is at its prompt, which is likely and never proven, with this status.
#[track_caller]
pub(crate) fn assert_prompt(outcome: &SendOutcome, status: Option<i32>) {
    assert_ready(outcome, StateKind::Prompt);
    assert_eq!(outcome.last_command.as_ref().and_then(|it| it.exit_code), status, "{outcome:#?}");
    assert!(outcome.viewport.ends_with("dsh> "), "{outcome:#?}");
    // What the far shell itself has switched on for its prompt is no damage.
    assert_eq!(outcome.repaired, [""; 0], "{outcome:#?}");
}

#[track_caller]
pub(crate) fn assert_ready(outcome: &SendOutcome, kind: StateKind) {
    let state = outcome.state.as_ref().unwrap();
    assert_eq!(
        (outcome.wait_reason, state.kind, state.evidence),
        (WaitReason::StdinRead, kind, Evidence::Relay),
        "{outcome:#?}"
    );
}
