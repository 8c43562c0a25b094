//! A host with the backend under test, its agents, and their sessions.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use agents::Agent;
use dsh_core::Cancel;
use terminal::{
    ReadPage, ReadRequest, SendOperation, SendOutcome, SendRequest, SessionSnapshot, SpawnRequest,
    TerminalError, TerminalRegistry, Terminals,
};

use super::{Failure, Profile, ensure};
use crate::{host::TestHost, leaks::processes_with_env};

/// Between two looks at what announces nothing.
const LOOK: Duration = Duration::from_millis(5);

/// A host with the backend.
pub(super) struct Bench {
    pub(super) profile: Arc<Profile>,
    pub(super) host: TestHost,
    pub(super) terminals: Arc<TerminalRegistry>,
}

/// A session of an agent.
pub(super) struct Live {
    pub(super) profile: Arc<Profile>,
    pub(super) terminals: Arc<TerminalRegistry>,
    pub(super) agent: Arc<Agent>,
    pub(super) id: String,
    pub(super) snapshot: SessionSnapshot,
    pub(super) motd: String,
}

impl Bench {
    pub(super) async fn boot(profile: Arc<Profile>) -> Result<Self, Failure> {
        let composition = format!("- name: terminal\n{}\n", profile.rows);
        let host = TestHost::try_boot(&composition).await.map_err(|error| {
            Failure::Broken(format!("the composition does not boot: {error:#}"))
        })?;
        let terminals = host.service::<Terminals>();
        Ok(Self { profile, host, terminals })
    }

    pub(super) async fn dispose(&self) -> Result<(), Failure> {
        let disposed = self.host.dispose().await;
        disposed
            .map_err(|error| Failure::Broken(format!("the disposal of the host fails: {error}")))
    }

    /// An agent with an id that no other one of this machine has.
    pub(super) fn agent(&self) -> Arc<Agent> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.host.agent(&format!("conformance-{}-{number}", std::process::id()))
    }

    pub(super) fn request(&self) -> SpawnRequest {
        SpawnRequest { kind: self.profile.kind.clone(), ..SpawnRequest::default() }
    }

    pub(super) async fn open(&self, agent: &Arc<Agent>) -> Result<Live, Failure> {
        self.open_as(agent, self.request()).await
    }

    pub(super) async fn open_as(
        &self,
        agent: &Arc<Agent>,
        request: SpawnRequest,
    ) -> Result<Live, Failure> {
        let spawned = self.terminals.spawn(agent, request, &Cancel::new()).await;
        let spawned = spawned.map_err(failing("opening a session"))?;
        Ok(Live {
            profile: Arc::clone(&self.profile),
            terminals: Arc::clone(&self.terminals),
            agent: Arc::clone(agent),
            id: spawned.session.session_id.to_string(),
            snapshot: spawned.session,
            motd: spawned.motd,
        })
    }

    /// One session of a fresh agent.
    pub(super) async fn session(&self) -> Result<Live, Failure> {
        self.open(&self.agent()).await
    }

    /// Nothing of an agent is left: no session, no activity, and no process that has its id.
    pub(super) fn nothing_left(&self, agent: &Arc<Agent>, when: &str) -> Result<(), Failure> {
        let sessions = self.terminals.list(agent).len();
        ensure!(sessions == 0, "{when} {sessions} sessions are listed");
        ensure!(!self.terminals.has_owner_activity(agent), "{when} the owner still has activity");
        let processes = processes_with_env("DSH_SESSION_ID", agent.id());
        ensure!(processes.is_empty(), "{when} processes are left: {processes:?}");
        Ok(())
    }
}

impl Live {
    pub(super) fn start_as(
        &self,
        request: SendRequest,
    ) -> Result<Arc<dyn SendOperation>, TerminalError> {
        self.terminals.start_send(&self.agent, &self.id, request)
    }

    pub(super) fn start(&self, text: &str) -> Result<Arc<dyn SendOperation>, Failure> {
        self.start_as(line(text)).map_err(failing(&format!("starting a send of {text:?}")))
    }

    /// Types a line, and waits.
    pub(super) async fn send(&self, text: &str) -> Result<SendOutcome, Failure> {
        settled(&*self.start(text)?).await
    }

    /// Types what shows a word, waits, and makes sure that it was shown.
    pub(super) async fn say(&self, word: &str) -> Result<SendOutcome, Failure> {
        let outcome = self.send(&(self.profile.say)(word)).await?;
        shows(&outcome, word)?;
        Ok(outcome)
    }

    /// Starts what waits without end. A backend that refuses, or settles at once, breaks more than
    /// the promise that needs it.
    pub(super) fn start_waiting(&self) -> Result<Arc<dyn SendOperation>, Failure> {
        self.start(needs(self.profile.wait, "wait")?)
    }

    pub(super) async fn read(&self, request: ReadRequest) -> Result<ReadPage, Failure> {
        let page = self.terminals.read(&self.agent, &self.id, request).await;
        page.map_err(failing(&format!("reading {request:?}")))
    }

    /// All that can be read.
    pub(super) async fn text(&self) -> Result<String, Failure> {
        Ok(self.read(ReadRequest::newest(0, 1_000_000)).await?.text)
    }

    pub(super) async fn close(&self) -> Result<bool, Failure> {
        self.terminals
            .kill(&self.agent, &self.id, "conformance")
            .await
            .map_err(failing("closing the session"))
    }
}

/// A line with Enter.
pub(super) fn line(text: &str) -> SendRequest {
    SendRequest { text: text.to_owned(), submit: true, background: false, cancel: Cancel::new() }
}

pub(super) async fn settled(operation: &dyn SendOperation) -> Result<SendOutcome, Failure> {
    operation.done().await.map_err(failing("a send"))
}

/// A line of the viewport is this word.
pub(super) fn shows(outcome: &SendOutcome, word: &str) -> Result<(), Failure> {
    let viewport = &outcome.viewport;
    ensure!(has_line(viewport, word), "no line {word:?} is in the viewport {viewport:?}");
    Ok(())
}

pub(super) fn has_line(text: &str, word: &str) -> bool {
    text.lines().any(|line| line == word)
}

/// What the profile has, or that it has it not.
pub(super) fn needs<T>(field: Option<T>, name: &'static str) -> Result<T, Failure> {
    field.ok_or(Failure::Lacks(name))
}

pub(super) fn needs_true(field: bool, name: &'static str) -> Result<(), Failure> {
    if field { Ok(()) } else { Err(Failure::Lacks(name)) }
}

/// An operation that must work.
pub(super) fn failing(doing: &str) -> impl FnOnce(TerminalError) -> Failure {
    move |error| Failure::Broken(format!("{doing} fails with {}: {error}", error.code()))
}

/// An operation that must be refused with this code; the text of the refusal.
pub(super) fn refused<T>(
    doing: &str,
    result: Result<T, TerminalError>,
    code: &str,
) -> Result<String, Failure> {
    match result {
        Err(error) if error.code() == code => Ok(error.to_string()),
        Err(error) => Err(Failure::Broken(format!(
            "{doing} is refused with {} instead of {code}: {error}",
            error.code()
        ))),
        Ok(_) => Err(Failure::Broken(format!("{doing} is not refused, {code} is due"))),
    }
}

/// Before the next look at what announces nothing; the guard of the promise ends what never comes.
pub(super) async fn pause() {
    tokio::time::sleep(LOOK).await;
}

/// Process ids of this machine that have `word` among their arguments, ours and zombies excluded.
pub(super) fn processes_with_argument(word: &str) -> Vec<u32> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| *pid != std::process::id())
        .filter(|pid| {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&arguments).contains(word)
        })
        .collect()
}
