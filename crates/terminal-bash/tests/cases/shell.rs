//! A session under test: a host of its own, one agent, one shell, and a leak check at the end.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{path::PathBuf, sync::Arc};

use agents::Agent;
use dsh_core::Cancel;
use terminal::{
    Evidence, ReadRequest, SearchPage, SearchRequest, SendOperation, SendOutcome, SendRequest,
    Signal, SpawnRequest, Spawned, StateKind, TerminalError, TerminalRegistry, Terminals,
    WaitReason,
};
use testkit::{
    host::TestHost,
    leaks::{alone, processes_with_env},
    wait::wait_until,
};

// Only what is mentioned is linked.
use terminal_bash as _;

/// Short enough to be quick, long enough to be told from a pause.
const CONFIG: &str = "{ idleSilenceMs: 300, timeoutMs: 20000 }";

/// What programs of our own begin with: `done()` tells the test, by a file, that they have worked.
const PRELUDE: &str = "
import fcntl, os, pty, select, signal, socket, sys, termios, threading, time, tty
def say(text): os.write(1, text.encode())
def done(): open('done', 'w').close()
here, there = socket.socketpair()
";

/// A host with the shell backend.
pub(crate) struct Bench {
    pub(crate) host: TestHost,
    pub(crate) agent: Arc<Agent>,
}

/// One shell of a bench.
pub(crate) struct Shell<'a> {
    pub(crate) bench: &'a Bench,
    pub(crate) id: String,
    pub(crate) spawned: Spawned,
}

/// What a program reads until it is opened.
pub(crate) struct Gate(PathBuf);

impl Gate {
    /// Lets whoever reads it go on.
    pub(crate) async fn open(&self) {
        let path = self.0.clone();
        tokio::task::spawn_blocking(move || std::fs::write(path, "")).await.unwrap().unwrap();
    }
}

/// Runs `test` with a bench, alone in this process, and checks that it leaves nothing.
pub(crate) fn bench(config: &str, test: impl AsyncFnOnce(&Bench)) {
    alone(async {
        let composition = format!("- name: terminal\n- name: terminal-bash\n  config: {config}\n");
        let host = TestHost::boot(&composition).await;
        let agent = host.agent(&format!("agent-{}", std::process::id()));
        let bench = Bench { host, agent };
        test(&bench).await;
        bench.host.dispose().await.unwrap();
    });
}

/// The same with one shell.
pub(crate) fn shell(test: impl AsyncFnOnce(&Shell<'_>)) {
    bench(CONFIG, async |bench| {
        let shell = bench.open().await;
        test(&shell).await;
    });
}

impl Bench {
    pub(crate) fn terminals(&self) -> Arc<TerminalRegistry> {
        self.host.service::<Terminals>()
    }

    pub(crate) async fn open(&self) -> Shell<'_> {
        self.try_open(SpawnRequest::default()).await.unwrap()
    }

    pub(crate) async fn try_open(&self, request: SpawnRequest) -> Result<Shell<'_>, TerminalError> {
        let request = SpawnRequest { kind: "shell".to_owned(), ..request };
        let spawned = self.terminals().spawn(&self.agent, request, &Cancel::new()).await?;
        let id = spawned.session.session_id.to_string();
        Ok(Shell { bench: self, id, spawned })
    }
}

impl Shell<'_> {
    pub(crate) fn terminals(&self) -> Arc<TerminalRegistry> {
        self.bench.terminals()
    }

    pub(crate) fn start(
        &self,
        text: &str,
        submit: bool,
    ) -> Result<Arc<dyn SendOperation>, TerminalError> {
        let request =
            SendRequest { text: text.to_owned(), submit, background: false, cancel: Cancel::new() };
        self.terminals().start_send(&self.bench.agent, &self.id, request)
    }

    /// Types `text` and Enter, and waits.
    pub(crate) async fn send(&self, text: &str) -> SendOutcome {
        self.start(text, true).unwrap().done().await.unwrap()
    }

    /// Types `text` alone, and waits.
    pub(crate) async fn type_only(&self, text: &str) -> SendOutcome {
        self.start(text, false).unwrap().done().await.unwrap()
    }

    /// Runs a python script, which finds [`PRELUDE`] in front of it.
    pub(crate) async fn python(&self, script: &str) -> SendOutcome {
        std::fs::write(self.path("victim.py"), format!("{PRELUDE}{script}")).unwrap();
        self.send("python3 victim.py").await
    }

    /// Whether the script called `done()` since this was asked last.
    pub(crate) fn is_done(&self) -> bool {
        std::fs::remove_file(self.path("done")).is_ok()
    }

    /// Sends a command that ends at the prompt with this status; what it printed.
    pub(crate) async fn run(&self, command: &str, status: i32) -> String {
        let outcome = self.send(command).await;
        assert_prompt(&outcome, Some(status));
        let echoed = outcome.viewport.strip_prefix(command).unwrap_or_else(|| {
            panic!("{:?} does not begin with the echo", outcome.viewport);
        });
        let body = echoed.strip_suffix("dsh> ").unwrap();
        body.strip_prefix('\n').unwrap_or(body).to_owned()
    }

    pub(crate) async fn read(&self, offset: u64, count: u64) -> terminal::ReadPage {
        self.read_page(ReadRequest::newest(offset, count)).await
    }

    pub(crate) async fn read_page(&self, request: ReadRequest) -> terminal::ReadPage {
        self.terminals().read(&self.bench.agent, &self.id, request).await.unwrap()
    }

    pub(crate) async fn search(&self, request: SearchRequest) -> SearchPage {
        self.terminals().search(&self.bench.agent, &self.id, request).await.unwrap()
    }

    pub(crate) async fn signal(&self, signal: Signal) -> Result<i32, TerminalError> {
        let receipt = self.terminals().signal(&self.bench.agent, &self.id, signal).await?;
        Ok(receipt.target_pgid)
    }

    pub(crate) async fn close(&self) -> Result<bool, TerminalError> {
        self.terminals().kill(&self.bench.agent, &self.id, "test").await
    }

    /// A path in the workspace, where every shell starts.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.bench.agent.workspace_root().join(name)
    }

    /// Makes `gate`, which a program reads until it is opened.
    pub(crate) fn gate(&self) -> Gate {
        let path = self.path("gate");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        Gate(path)
    }

    /// Waits until `command` runs in the foreground of this session. That it was announced is not
    /// enough: the shell announces before it starts.
    pub(crate) async fn in_front(&self, command: &str) {
        let in_front = || {
            processes_with_env("DSH_SESSION_ID", self.bench.agent.id()).iter().any(|it| {
                let stat = std::fs::read_to_string(format!("/proc/{}/stat", it.pid));
                let stat = stat.unwrap_or_default();
                // After the name in parentheses: state, parent, group, session, terminal, its group.
                let fields: Vec<&str> =
                    stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
                it.command == command && fields.get(2).is_some_and(|it| Some(it) == fields.get(5))
            })
        };
        wait_until(format!("`{command}` in front"), in_front).await;
    }
}

/// The shell is back at its prompt, proven, with this status.
#[track_caller]
pub(crate) fn assert_prompt(outcome: &SendOutcome, status: Option<i32>) {
    let state = outcome.state.as_ref().unwrap();
    assert_eq!(
        (outcome.wait_reason, state.kind, state.evidence),
        (WaitReason::StdinRead, StateKind::Prompt, Evidence::Exact),
        "{outcome:#?}"
    );
    assert_eq!(outcome.last_command.as_ref().and_then(|it| it.exit_code), status, "{outcome:#?}");
    assert!(outcome.viewport.ends_with("dsh> "), "{outcome:#?}");
    assert!(state.output_complete && state.echo, "{outcome:#?}");
}

/// A program waits for input, proven.
#[track_caller]
pub(crate) fn assert_waits(outcome: &SendOutcome, kind: StateKind) {
    let state = outcome.state.as_ref().unwrap();
    assert_eq!(
        (outcome.wait_reason, state.kind, state.evidence),
        (WaitReason::StdinRead, kind, Evidence::Exact),
        "{outcome:#?}"
    );
}

/// Found waiting behind a relay, which is likely and never proven.
#[track_caller]
pub(crate) fn assert_behind(outcome: &SendOutcome, kind: StateKind, command: &str) {
    let state = outcome.state.as_ref().unwrap();
    assert_eq!(
        (outcome.wait_reason, state.kind, state.evidence),
        (WaitReason::StdinRead, kind, Evidence::Relay),
        "{outcome:#?}"
    );
    assert_eq!(state.foreground.as_ref().unwrap().command, command);
}
