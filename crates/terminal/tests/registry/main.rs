//! The registry's rules, raced with a scripted backend in a real host.

mod closing;
mod disposal;
mod fences;
mod leases;
mod sends;
mod spawning;

use std::sync::Arc;

use agents::Agent;
use dsh_core::Cancel;
use terminal::{SendRequest, SpawnRequest, Spawned, TerminalError, TerminalRegistry, Terminals};
use testkit::{Script, TestHost};

/// A host with the terminal service and a scripted backend of type `scripted`.
struct Fixture {
    host: TestHost,
    script: Script,
    terminals: Arc<TerminalRegistry>,
}

impl Fixture {
    async fn boot() -> Self {
        let script = Script::new();
        let host = TestHost::boot(&script.composition()).await;
        let terminals = host.service::<Terminals>();
        Self { host, script, terminals }
    }

    /// Opens a session without a name.
    async fn open(&self, owner: &Arc<Agent>) -> Spawned {
        match self.terminals.spawn(owner, request(None), &Cancel::new()).await {
            Ok(spawned) => spawned,
            Err(error) => panic!("it does not open: {error}"),
        }
    }

    /// Starts a spawn on a task of its own.
    fn spawning(&self, owner: &Arc<Agent>, cancel: &Cancel) -> Spawning {
        let (terminals, owner, cancel) =
            (Arc::clone(&self.terminals), Arc::clone(owner), cancel.clone());
        tokio::spawn(async move { terminals.spawn(&owner, request(None), &cancel).await })
    }

    /// Starts a close on a task of its own.
    fn killing(&self, owner: &Arc<Agent>, id: &str) -> Killing {
        let (terminals, owner, id) =
            (Arc::clone(&self.terminals), Arc::clone(owner), id.to_owned());
        tokio::spawn(async move { terminals.kill(&owner, &id, "asked to").await })
    }

    /// Ids of the owner's sessions.
    fn ids(&self, owner: &Arc<Agent>) -> Vec<String> {
        self.terminals.list(owner).iter().map(|it| it.session_id.to_string()).collect()
    }
}

type Spawning = tokio::task::JoinHandle<Result<Spawned, TerminalError>>;
type Killing = tokio::task::JoinHandle<Result<bool, TerminalError>>;

fn request(name: Option<&str>) -> SpawnRequest {
    SpawnRequest { kind: "scripted".to_owned(), name: name.map(str::to_owned), cwd: None }
}

fn line(text: &str) -> SendRequest {
    SendRequest { text: text.to_owned(), submit: true, background: false, cancel: Cancel::new() }
}

/// The error of a result, which must be one.
fn refusal<T>(result: Result<T, TerminalError>) -> TerminalError {
    match result {
        Ok(_) => panic!("it is not refused"),
        Err(error) => error,
    }
}
