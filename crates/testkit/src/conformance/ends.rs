//! Signals, exits, closes, disposals.

use std::sync::Arc;

use terminal::{ReadRequest, SessionStatus, Signal, WaitReason};

use super::{
    Failure, Promise,
    bench::{
        Bench, Live, failing, has_line, line, needs, needs_true, pause, processes_with_argument,
        refused, settled,
    },
    ensure, ensure_eq,
};

pub(super) const PROMISES: &[Promise] = &[
    Promise {
        name: "signal: it reaches the foreground, and never kills the shell",
        check: |it| Box::pin(signals(it)),
    },
    Promise {
        name: "exit: it settles the send, is told, and leaves the session readable",
        check: |it| Box::pin(exits(it)),
    },
    Promise {
        name: "close: one closes, and then there is no session",
        check: |it| Box::pin(closes(it)),
    },
    Promise {
        name: "close: a live send settles as the session's exit",
        check: |it| Box::pin(closes_under_a_send(it)),
    },
    Promise {
        name: "close: no process of the session outlives it",
        check: |it| Box::pin(leaves_nothing(it)),
    },
    Promise {
        name: "close: one that failed says so, and can be tried again",
        check: |it| Box::pin(retried(it)),
    },
    Promise {
        name: "disposal of the owner: closes its sessions, and nobody else's",
        check: |it| Box::pin(owner_ends(it)),
    },
    Promise {
        name: "disposal of the service: settles sends and closes everything",
        check: |it| Box::pin(service_ends(it)),
    },
];

async fn signals(it: Arc<Bench>) -> Result<(), Failure> {
    needs_true(it.profile.signals, "signals")?;
    let session = it.session().await?;
    let shell = it.terminals.signal(&session.agent, &session.id, Signal::Kill).await;
    refused("SIGKILL for the shell", shell, "SHELL_KILL_REFUSED")?;
    for name in [Signal::Terminate, Signal::Kill] {
        let operation = session.start_waiting()?;
        // Until it is in front the signal is for the shell, which ignores the one and is spared the
        // other.
        while !operation.is_settled() {
            match it.terminals.signal(&session.agent, &session.id, name).await {
                Ok(receipt) => {
                    let group = receipt.target_pgid;
                    ensure!(group > 0, "{name} went to process group {group}");
                }
                Err(error) if error.code() == "SHELL_KILL_REFUSED" => {}
                Err(error) => return Err(failing(name.name())(error)),
            }
            pause().await;
        }
        let reason = settled(&*operation).await?.wait_reason;
        ensure_eq!(format!("the wait reason after {name}"), reason, WaitReason::StdinRead);
        session.say("alpha").await?;
    }
    Ok(())
}

async fn exits(it: Arc<Bench>) -> Result<(), Failure> {
    let (text, status) = needs(it.profile.exit, "exit")?;
    let session = it.session().await?;
    session.say("alpha").await?;
    let outcome = session.send(text).await?;
    ensure_eq!("the wait reason", outcome.wait_reason, WaitReason::SessionExit);
    let exited = SessionStatus::Exited { exit_code: Some(status), signal: None };
    ensure_eq!("the status of the outcome", outcome.session_status, exited);
    let listed = it.terminals.list(&session.agent);
    let listed: Vec<_> = listed.into_iter().map(|it| it.status).collect();
    ensure_eq!("the listed status", listed, [exited]);
    let text = session.text().await?;
    ensure!(has_line(&text, "alpha"), "an exited session cannot be read: {text:?}");
    refused("a send to it", session.start_as(line("x")), "SESSION_EXITED")?;
    let signal = it.terminals.signal(&session.agent, &session.id, Signal::Interrupt).await;
    refused("a signal to it", signal, "SESSION_EXITED")?;
    ensure!(session.close().await?, "the one who closes it is told that another one does");
    it.nothing_left(&session.agent, "after the close of an exited session")
}

async fn closes(it: Arc<Bench>) -> Result<(), Failure> {
    let session = it.session().await?;
    session.say("alpha").await?;
    let kill = || it.terminals.kill(&session.agent, &session.id, "conformance");
    let (one, another) = tokio::join!(kill(), kill());
    ensure_eq!("the one who closes", one.map_err(failing("closing"))?, true);
    ensure_eq!("the one who joins", another.map_err(failing("joining a close"))?, false);
    it.nothing_left(&session.agent, "after the close")?;
    refused("a third close", kill().await, "NO_SESSION")?;
    let page = it.terminals.read(&session.agent, &session.id, ReadRequest::default()).await;
    refused("a read of a closed session", page, "NO_SESSION")?;
    Ok(())
}

async fn closes_under_a_send(it: Arc<Bench>) -> Result<(), Failure> {
    let session = it.session().await?;
    let operation = session.start_waiting()?;
    session.close().await?;
    let outcome = settled(&*operation).await?;
    ensure_eq!("the wait reason", outcome.wait_reason, WaitReason::SessionExit);
    ensure!(
        outcome.session_status != SessionStatus::Running,
        "the session of a send that its close has settled is said to run"
    );
    it.nothing_left(&session.agent, "after the close")
}

async fn leaves_nothing(it: Arc<Bench>) -> Result<(), Failure> {
    let session = it.session().await?;
    let word = leave(&it, &session).await?;
    session.close().await?;
    let left = processes_with_argument(&word);
    ensure!(left.is_empty(), "after the close its processes {left:?} are still there");
    it.nothing_left(&session.agent, "after the close")
}

/// Makes a session leave a process that has the returned word among its arguments.
async fn leave(it: &Arc<Bench>, session: &Live) -> Result<String, Failure> {
    let leave = needs(it.profile.leave, "leave")?;
    // Its end tells the first session's from the tenth's.
    let word = format!("left-by-{}-of-{}-end", session.id, session.agent.id());
    session.send(&leave(&word)).await?;
    while processes_with_argument(&word).is_empty() {
        pause().await;
    }
    Ok(word)
}

async fn retried(it: Arc<Bench>) -> Result<(), Failure> {
    let stubborn = needs(it.profile.stubborn, "stubborn")?;
    let session = it.session().await?;
    session.send(stubborn).await?;
    let kill = || it.terminals.kill(&session.agent, &session.id, "conformance");
    refused("the first close", kill().await, "CLOSE_INCOMPLETE")?;
    let listed = it.terminals.list(&session.agent).len();
    ensure_eq!("sessions that are listed after it", listed, 1);
    ensure!(it.terminals.has_owner_activity(&session.agent), "it is no activity of its owner");
    ensure_eq!("the second close", kill().await.map_err(failing("the second close"))?, true);
    it.nothing_left(&session.agent, "after the second close")
}

async fn owner_ends(it: Arc<Bench>) -> Result<(), Failure> {
    let (owner, other) = (it.agent(), it.agent());
    let sessions = [it.open(&owner).await?, it.open(&owner).await?];
    let unharmed = it.open(&other).await?;
    let word = match it.profile.leave {
        Some(_) => Some(leave(&it, &sessions[1]).await?),
        None => None,
    };
    let live = match it.profile.wait {
        Some(_) => Some(sessions[0].start_waiting()?),
        None => None,
    };
    it.host
        .dispose_agent(&owner)
        .await
        .map_err(|error| Failure::Broken(format!("the end of the owner fails: {error}")))?;
    it.nothing_left(&owner, "after the end of the owner")?;
    if let Some(word) = word {
        let left = processes_with_argument(&word);
        ensure!(left.is_empty(), "after the end of the owner its processes {left:?} are there");
    }
    if let Some(live) = live {
        let reason = settled(&*live).await?.wait_reason;
        ensure_eq!("the wait reason of its send", reason, WaitReason::SessionExit);
    }
    unharmed.say("alpha").await?;
    Ok(())
}

async fn service_ends(it: Arc<Bench>) -> Result<(), Failure> {
    let agents = [it.agent(), it.agent()];
    let mut live = Vec::new();
    for agent in &agents {
        let session = it.open(agent).await?;
        if it.profile.wait.is_some() {
            live.push(session.start_waiting()?);
        }
    }
    it.dispose().await?;
    for operation in live {
        let reason = settled(&*operation).await?.wait_reason;
        ensure_eq!("the wait reason of a send", reason, WaitReason::SessionExit);
    }
    for agent in &agents {
        it.nothing_left(agent, "after the disposal")?;
    }
    Ok(())
}
