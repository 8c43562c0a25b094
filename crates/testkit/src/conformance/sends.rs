//! One exchange: its slot, its settlement, its output, its cancellation.

use std::sync::Arc;

use dsh_core::Cancel;
use terminal::{OutputDelta, SendOutcome, SendRequest, SessionStatus, WaitReason};

use super::{
    Failure, Promise,
    bench::{Bench, failing, has_line, line, needs, pause, refused, settled, shows},
    ensure, ensure_eq,
};

pub(super) const PROMISES: &[Promise] = &[
    Promise {
        name: "send: one is live at a time, and the next may start when it has settled",
        check: |it| Box::pin(one_live(it)),
    },
    Promise {
        name: "send: it settles once, with one answer for everybody",
        check: |it| Box::pin(settles_once(it)),
    },
    Promise {
        name: "send: its viewport is all of its output, whoever followed it meanwhile",
        check: |it| Box::pin(whole_viewport(it)),
    },
    Promise {
        name: "send: output is consumed once by a job, and ends for followers",
        check: |it| Box::pin(followers(it)),
    },
    Promise {
        name: "send: viewports go on where the last one ended",
        check: |it| Box::pin(continuity(it)),
    },
    Promise { name: "send: silence is not the end of a command", check: |it| Box::pin(slow(it)) },
    Promise {
        name: "send: later output is the next send's, never the settled one's",
        check: |it| Box::pin(later(it)),
    },
    Promise {
        name: "send: several lines settle after the last",
        check: |it| Box::pin(several_lines(it)),
    },
    Promise {
        name: "send: without submit no Enter is typed",
        check: |it| Box::pin(without_enter(it)),
    },
    Promise {
        name: "send: a text over the limit is refused whole",
        check: |it| Box::pin(too_large(it)),
    },
    Promise {
        name: "send: a command that ended has its exit status",
        check: |it| Box::pin(statuses(it)),
    },
    Promise {
        name: "cancel: it interrupts, settles, and leaves the session usable",
        check: |it| Box::pin(cancelling(it)),
    },
];

async fn one_live(it: Arc<Bench>) -> Result<(), Failure> {
    let session = it.session().await?;
    let operation = session.start_waiting()?;
    ensure!(!operation.is_settled(), "a send whose command works on says that it has settled");
    refused("a second send", session.start_as(line("x")), "SEND_ACTIVE")?;
    ensure!(operation.cancel("conformance"), "a live send cannot be cancelled");
    settled(&*operation).await?;
    session.say("alpha").await?;
    session.say("beta").await?;
    Ok(())
}

async fn settles_once(it: Arc<Bench>) -> Result<(), Failure> {
    let session = it.session().await?;
    let operation = session.start(&(it.profile.say)("alpha"))?;
    let (one, another) = tokio::join!(operation.done(), operation.done());
    let outcome = one.map_err(failing("a send"))?;
    let another = another.map_err(failing("a send that two wait for"))?;
    ensure_eq!("what the second caller is told", another, outcome);
    is_ready(&outcome)?;
    ensure!(operation.is_settled(), "a send that has told its outcome has not settled");
    ensure!(!operation.cancel("too late"), "a send that has settled says that it was cancelled");
    session.say("beta").await?;
    ensure_eq!("what it tells after the next send", settled(&*operation).await?, outcome);
    Ok(())
}

async fn whole_viewport(it: Arc<Bench>) -> Result<(), Failure> {
    let session = it.session().await?;
    let text = it.profile.count.map_or_else(|| (it.profile.say)("alpha"), |count| count(50));
    let alone = session.send(&text).await?;
    let operation = session.start(&text)?;
    let mut follower = operation.subscribe();
    while follower.next().await.is_some() {
        // A job takes output meanwhile, too.
        drop(operation.read_output().await);
    }
    let again = settled(&*operation).await?;
    ensure_eq!("the viewport of the same line with followers", again.viewport, alone.viewport);
    ensure!(!again.truncated, "a short viewport says that something of it is missing");
    Ok(())
}

async fn followers(it: Arc<Bench>) -> Result<(), Failure> {
    let session = it.session().await?;
    let operation = session.start(&(it.profile.say)("alpha"))?;
    let mut followers = [operation.subscribe(), operation.subscribe()];
    let outcome = settled(&*operation).await?;
    let taken = operation.read_output().await;
    ensure_eq!("what a job takes of a settled send", taken.text, outcome.viewport);
    let again = operation.read_output().await;
    ensure_eq!("what it takes then", again, OutputDelta::default());
    for follower in &mut followers {
        let mut all = String::new();
        while let Some(delta) = follower.next().await {
            all.push_str(&delta.text);
        }
        ensure!(has_line(&all, "alpha"), "a follower does not see the output: {all:?}");
        ensure!(follower.next().await.is_none(), "a follower gets more after the end");
    }
    Ok(())
}

async fn continuity(it: Arc<Bench>) -> Result<(), Failure> {
    let session = it.session().await?;
    let mut all = session.motd.clone();
    for word in ["alpha", "beta", "gamma"] {
        let outcome = session.say(word).await?;
        is_ready(&outcome)?;
        all.push_str(&outcome.viewport);
    }
    let text = session.text().await?;
    ensure_eq!(
        "startup output and viewports, beside what is read",
        all.trim_end(),
        text.trim_end()
    );
    Ok(())
}

async fn slow(it: Arc<Bench>) -> Result<(), Failure> {
    let say_slowly = needs(it.profile.say_slowly, "say_slowly")?;
    let session = it.session().await?;
    let outcome = session.send(&say_slowly("alpha")).await?;
    shows(&outcome, "alpha")?;
    is_ready(&outcome)
}

async fn later(it: Arc<Bench>) -> Result<(), Failure> {
    let say_later = needs(it.profile.say_later, "say_later")?;
    let session = it.session().await?;
    let typed = say_later("delayed");
    let shown = |text: &str| text.lines().filter(|line| line.ends_with("delayed")).count();
    // The line itself may end in the word.
    let echoed = shown(&typed);
    let operation = session.start(&typed)?;
    let outcome = settled(&*operation).await?;
    while shown(&session.text().await?) == echoed {
        pause().await;
    }
    let next = session.say("alpha").await?;
    ensure_eq!("the settled send", settled(&*operation).await?, outcome);
    let all = format!("{}{}", outcome.viewport, next.viewport);
    ensure!(shown(&all) > echoed, "output between two sends is in neither: {all:?}");
    Ok(())
}

async fn several_lines(it: Arc<Bench>) -> Result<(), Failure> {
    let session = it.session().await?;
    let (first, second) = ((it.profile.say)("alpha"), (it.profile.say)("beta"));
    let outcome = session.send(&format!("{first}\n{second}")).await?;
    shows(&outcome, "alpha")?;
    shows(&outcome, "beta")?;
    let next = session.say("gamma").await?;
    ensure!(!has_line(&next.viewport, "beta"), "the second line was answered after the settlement");
    Ok(())
}

async fn without_enter(it: Arc<Bench>) -> Result<(), Failure> {
    let session = it.session().await?;
    let request = SendRequest { submit: false, ..line(&(it.profile.say)("alpha")) };
    let started = session.start_as(request).map_err(failing("a send without Enter"))?;
    let typed = settled(&*started).await?;
    let viewport = &typed.viewport;
    ensure!(!has_line(viewport, "alpha"), "the line was entered all the same: {viewport:?}");
    shows(&session.send("").await?, "alpha")
}

async fn too_large(it: Arc<Bench>) -> Result<(), Failure> {
    let limit = needs(it.profile.max_input_bytes, "max_input_bytes")?;
    let session = it.session().await?;
    let before = session.text().await?;
    let sent = match session.start_as(line(&"x".repeat(limit + 1))) {
        Ok(operation) => operation.done().await.map(drop),
        Err(error) => Err(error),
    };
    refused("a text over the limit", sent, "INPUT_TOO_LARGE")?;
    ensure_eq!("what can be read after it", session.text().await?, before);
    session.say("alpha").await?;
    Ok(())
}

async fn statuses(it: Arc<Bench>) -> Result<(), Failure> {
    let (text, status) = needs(it.profile.fail, "fail")?;
    let session = it.session().await?;
    let exit_code =
        |outcome: SendOutcome| outcome.last_command.and_then(|command| command.exit_code);
    ensure_eq!("the exit status", exit_code(session.send(text).await?), Some(status));
    ensure_eq!("the one of a success", exit_code(session.say("alpha").await?), Some(0));
    Ok(())
}

async fn cancelling(it: Arc<Bench>) -> Result<(), Failure> {
    let session = it.session().await?;
    let operation = session.start_waiting()?;
    ensure!(operation.cancel("conformance"), "a live send cannot be cancelled");
    is_ready(&settled(&*operation).await?)?;
    ensure!(!operation.cancel("again"), "a settled send says that it was cancelled");
    session.say("alpha").await?;
    // The same by the caller's token.
    let cancel = Cancel::new();
    let wait = needs(it.profile.wait, "wait")?;
    let request = SendRequest { cancel: cancel.clone(), ..line(wait) };
    let operation = session.start_as(request).map_err(failing("a send"))?;
    cancel.cancel("conformance");
    settled(&*operation).await?;
    // A line that the cancellation kept from the terminal is not typed later.
    session.say("beta").await?;
    session.say("gamma").await?;
    Ok(())
}

/// The outcome of a session that waits for the next line.
fn is_ready(outcome: &SendOutcome) -> Result<(), Failure> {
    ensure_eq!("the wait reason", outcome.wait_reason, WaitReason::StdinRead);
    ensure_eq!("the status", outcome.session_status, SessionStatus::Running);
    Ok(())
}
