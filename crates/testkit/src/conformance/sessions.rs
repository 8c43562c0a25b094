//! Opening: identity, names, fences, directories, and setups that lose.

use std::{path::Path, sync::Arc};

use dsh_core::Cancel;
use terminal::{ReadRequest, SessionStatus, Signal, SpawnRequest};

use super::{
    Failure, Promise,
    bench::{Bench, failing, line, needs, refused, shows},
    ensure, ensure_eq,
};

pub(super) const PROMISES: &[Promise] = &[
    Promise {
        name: "opening: a session is published whole, and ready for a send",
        check: |it| Box::pin(opening(it)),
    },
    Promise { name: "opening: ids count up and are not used twice", check: |it| Box::pin(ids(it)) },
    Promise { name: "opening: names are unique per owner", check: |it| Box::pin(names(it)) },
    Promise {
        name: "opening: who may not open is refused by code",
        check: |it| Box::pin(refusals(it)),
    },
    Promise {
        name: "opening: in the directory that was asked for, or not at all",
        check: |it| Box::pin(directories(it)),
    },
    Promise {
        name: "opening: a cancelled setup keeps the caller's reason and leaves nothing",
        check: |it| Box::pin(cancelled(it)),
    },
    Promise {
        name: "fences: another's session is as unknown as one that never was",
        check: |it| Box::pin(fences(it)),
    },
];

async fn opening(it: Arc<Bench>) -> Result<(), Failure> {
    let kinds = it.terminals.list_backends();
    ensure!(kinds.contains(&it.profile.kind), "the registered types are {kinds:?}");
    let agent = it.agent();
    let session = it.open(&agent).await?;
    ensure_eq!("its id", session.id, "pty-1");
    ensure_eq!("its type", session.snapshot.kind, it.profile.kind);
    ensure_eq!("its name", session.snapshot.name, None);
    ensure_eq!("its status", session.snapshot.status, SessionStatus::Running);
    ensure_eq!("the list", it.terminals.list(&agent), std::slice::from_ref(&session.snapshot));
    ensure!(it.terminals.has_owner_activity(&agent), "an open session is no activity of its owner");
    match session.snapshot.pid {
        Some(pid) => {
            ensure!(it.profile.process, "pid {pid} is told, the profile says `process: false`");
            let there = Path::new(&format!("/proc/{pid}")).exists();
            ensure!(there, "there is no process with the pid {pid} that is told");
        }
        None => ensure!(!it.profile.process, "no pid is told, the profile says `process: true`"),
    }
    let text = session.text().await?;
    let motd = session.motd.trim_end();
    ensure!(text.contains(motd), "the startup output {motd:?} cannot be read back in {text:?}");
    session.say("alpha").await?;
    Ok(())
}

async fn ids(it: Arc<Bench>) -> Result<(), Failure> {
    let (agent, other) = (it.agent(), it.agent());
    let mut ids = Vec::new();
    for owner in [&agent, &other, &agent] {
        let session = it.open(owner).await?;
        session.close().await?;
        ids.push(session.id);
    }
    ensure_eq!("the ids", ids, ["pty-1", "pty-2", "pty-3"]);
    Ok(())
}

async fn names(it: Arc<Bench>) -> Result<(), Failure> {
    let named = || SpawnRequest { name: Some("main".to_owned()), ..it.request() };
    let (agent, other) = (it.agent(), it.agent());
    let first = it.open_as(&agent, named()).await?;
    ensure_eq!("the name", first.snapshot.name.as_deref(), Some("main"));
    let again = it.terminals.spawn(&agent, named(), &Cancel::new()).await;
    refused("a second session of one name", again, "DUPLICATE_NAME")?;
    it.open_as(&other, named()).await?;
    first.close().await?;
    it.open_as(&agent, named()).await?;
    Ok(())
}

async fn refusals(it: Arc<Bench>) -> Result<(), Failure> {
    let (agent, gone) = (it.agent(), it.agent());
    let unknown = SpawnRequest { kind: "no-such-type".to_owned(), ..SpawnRequest::default() };
    let opened = it.terminals.spawn(&agent, unknown, &Cancel::new()).await;
    refused("a session of an unknown type", opened, "NO_BACKEND")?;
    let nameless = SpawnRequest { name: Some(String::new()), ..it.request() };
    let opened = it.terminals.spawn(&agent, nameless, &Cancel::new()).await;
    refused("a session with an empty name", opened, "INVALID_ARGS")?;
    it.host
        .dispose_agent(&gone)
        .await
        .map_err(|error| Failure::Broken(format!("the end of an agent fails: {error}")))?;
    let opened = it.terminals.spawn(&gone, it.request(), &Cancel::new()).await;
    refused("a session of an agent that has ended", opened, "OWNER_NOT_LIVE")?;
    it.nothing_left(&agent, "after refusals")
}

async fn directories(it: Arc<Bench>) -> Result<(), Failure> {
    let directory = needs(it.profile.directory, "directory")?;
    let agent = it.agent();
    let within = |cwd: &str| SpawnRequest { cwd: Some(cwd.to_owned()), ..it.request() };
    let session = it.open_as(&agent, within("/usr")).await?;
    shows(&session.send(directory).await?, "/usr")?;
    session.close().await?;
    for missing in ["/no/such/directory", "/dev/null"] {
        let opened = it.terminals.spawn(&agent, within(missing), &Cancel::new()).await;
        let text = refused(&format!("a session in {missing}"), opened, "INVALID_CWD")?;
        ensure!(text.contains(missing), "the refusal does not name the directory: {text}");
    }
    it.nothing_left(&agent, "after the refusal of a directory")
}

async fn cancelled(it: Arc<Bench>) -> Result<(), Failure> {
    const REASON: &str = "the caller's very own reason";
    let agent = it.agent();
    // At different moments of the setup; the last one may as well be too late.
    for moments in [0, 1, 4, 16, 64, 256] {
        let cancel = Cancel::new();
        let setup = tokio::spawn({
            let (terminals, agent) = (Arc::clone(&it.terminals), Arc::clone(&agent));
            let (request, cancel) = (it.request(), cancel.clone());
            async move { terminals.spawn(&agent, request, &cancel).await }
        });
        for _ in 0..moments {
            tokio::task::yield_now().await;
        }
        cancel.cancel(REASON);
        let ended = setup.await;
        match ended.map_err(|error| Failure::Broken(format!("the setup panics: {error}")))? {
            Ok(spawned) => {
                let id = spawned.session.session_id.to_string();
                let closed = it.terminals.kill(&agent, &id, "conformance").await;
                closed.map_err(failing("closing a session that was cancelled too late"))?;
            }
            error => {
                let text = refused("a cancelled setup", error, "CANCELLED")?;
                ensure_eq!("the reason", text, REASON);
            }
        }
        it.nothing_left(&agent, "after a cancelled setup")?;
    }
    Ok(())
}

async fn fences(it: Arc<Bench>) -> Result<(), Failure> {
    let (owner, other) = (it.agent(), it.agent());
    let session = it.open(&owner).await?;
    let terminals = &it.terminals;
    for (who, id) in [(&other, session.id.as_str()), (&owner, "pty-99"), (&other, "pty-99")] {
        let expected = format!("unknown terminal session {id}");
        let page = ReadRequest::default();
        for (doing, text) in [
            ("a send", refused("a send", terminals.start_send(who, id, line("x")), "NO_SESSION")?),
            ("a read", refused("a read", terminals.read(who, id, page).await, "NO_SESSION")?),
            (
                "a signal",
                refused(
                    "a signal",
                    terminals.signal(who, id, Signal::Interrupt).await,
                    "NO_SESSION",
                )?,
            ),
            ("a close", refused("a close", terminals.kill(who, id, "x").await, "NO_SESSION")?),
        ] {
            ensure_eq!(format!("the refusal of {doing}"), text, expected);
        }
    }
    ensure!(terminals.list(&other).is_empty(), "another's session is listed");
    ensure!(!terminals.has_owner_activity(&other), "another's session is activity");
    session.say("unharmed").await?;
    Ok(())
}
