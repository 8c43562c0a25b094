//! One page that watches: a WebSocket.
//!
//! Guarantees:
//! - nothing is queued for a page but a few frames: whoever is slow gets the newest state, and whoever
//!   takes nothing for [`PATIENCE`] is dropped;
//! - a watched session is asked for the next frame at most thirty times a second;
//! - what a page sends that is no request ends it, and nobody else;
//! - its leases end with it, and every task that it started has ended before it has.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use agents::{Agent, AgentRegistry, Notice};
use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use dsh_core::Lookup;
use jobs::{Jobs, Kill};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use terminal::{Lease, Seen, SessionStatus, TerminalError, TerminalRegistry, Watcher, WindowSize};
use tokio::{
    sync::{mpsc, watch},
    task::{AbortHandle, JoinSet},
    time::{MissedTickBehavior, interval, interval_at, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    logs::Logs,
    request::{Request, Unfit},
    world::World,
};

/// How long a page may take nothing, and may not answer the question whether it is there.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long the last word to a page may take.
const LAST_WORD: Duration = Duration::from_millis(200);
/// Between two frames of one session.
const FRAME: Duration = Duration::from_millis(33);
/// Frames that wait for a page, besides one for each session that it watches.
const AHEAD: usize = 1;
/// Most sessions that one page watches, and most agents whose cards it follows.
const MOST: usize = 32;

/// What pages are told of, and what they ask for things.
pub(crate) struct Live {
    pub(crate) agents: Arc<AgentRegistry>,
    pub(crate) terminals: Arc<TerminalRegistry>,
    pub(crate) jobs: Lookup<Jobs>,
    pub(crate) logs: Arc<Logs>,
    pub(crate) world: watch::Receiver<World>,
    /// When the host began.
    pub(crate) started: SystemTime,
}

/// Why a page is left.
enum Leave {
    /// It has gone, or takes nothing.
    Gone,
    /// With a last word.
    Close(u16, &'static str),
}

/// The end of all pages.
const ENDING: Leave = Leave::Close(close_code::AWAY, "the server ends");

/// The end of one that keeps the server waiting. It may read the reason later.
const SLOW: Leave = Leave::Close(close_code::AGAIN, "nothing came back for 20 seconds");

/// A refusal of a request: its message and code.
struct Refused(String, &'static str);

impl From<TerminalError> for Refused {
    fn from(error: TerminalError) -> Self {
        Self(error.to_string(), error.code())
    }
}

/// What a page has asked for so far.
struct Page<'a> {
    live: &'a Live,
    frames: mpsc::Sender<Message>,
    tasks: JoinSet<()>,
    watches: BTreeMap<String, AbortHandle>,
    leases: BTreeMap<String, Lease>,
    /// What was last said of the lease of each watched session: held by anybody, and by this page.
    told: BTreeMap<String, (bool, bool)>,
    /// The agents whose cards are followed, and up to which change they are told.
    followed: BTreeMap<String, (Arc<Agent>, u64)>,
}

impl Live {
    /// Serves a page until it goes, breaks the rules, or `stop`.
    pub(crate) async fn serve(&self, mut socket: WebSocket, stop: CancellationToken) {
        let (frames, mut produced) = mpsc::channel(AHEAD);
        let mut page = Page {
            live: self,
            frames,
            tasks: JoinSet::new(),
            watches: BTreeMap::new(),
            leases: BTreeMap::new(),
            told: BTreeMap::new(),
            followed: BTreeMap::new(),
        };
        let leave = page.converse(&mut socket, &mut produced, &stop).await;
        page.leases.clear();
        page.tasks.shutdown().await;
        if let Leave::Close(code, reason) = leave {
            let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
            let last = async {
                socket.send(close).await?;
                // Until the page has answered, so that it reads the reason before the end.
                while socket.recv().await.transpose()?.is_some() {}
                Ok::<_, axum::Error>(())
            };
            timeout(LAST_WORD, last).await.ok();
        }
    }

    fn hello(&self) -> Value {
        let start = self.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let start = u64::try_from(start.as_millis()).unwrap_or(u64::MAX);
        let host = json!({ "pid": std::process::id(), "start": start });
        json!({ "type": "hello", "version": env!("CARGO_PKG_VERSION"), "host": host })
    }
}

impl Page<'_> {
    async fn converse(
        &mut self,
        socket: &mut WebSocket,
        produced: &mut mpsc::Receiver<Message>,
        stop: &CancellationToken,
    ) -> Leave {
        let mut world = self.live.world.clone();
        let mut logs = self.live.logs.changes();
        let mut question = interval_at(tokio::time::Instant::now() + PATIENCE, PATIENCE);
        let mut answered = true;
        // What was there before comes first.
        world.mark_changed();
        let mut out = vec![text(&self.live.hello())];
        loop {
            for message in out.drain(..) {
                let sent = tokio::select! {
                    sent = timeout(PATIENCE, socket.send(message)) => sent,
                    () = stop.cancelled() => return ENDING,
                };
                match sent {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return Leave::Gone,
                    Err(_) => return SLOW,
                }
            }
            tokio::select! {
                () = stop.cancelled() => return ENDING,
                received = socket.recv() => {
                    answered = true;
                    match received {
                        Some(Ok(Message::Text(frame))) => match self.take(&frame).await {
                            Ok(replies) => out.extend(replies),
                            Err(leave) => return leave,
                        },
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                        Some(Ok(Message::Binary(_))) => {
                            return Leave::Close(close_code::POLICY, "a frame must be text");
                        }
                        Some(Ok(Message::Close(_))) | None => return Leave::Gone,
                        Some(Err(error)) => return broken(&error),
                    }
                }
                Some(message) = produced.recv() => out.push(message),
                Some(_) = self.tasks.join_next() => {}
                changed = world.changed() => {
                    if changed.is_err() {
                        return ENDING;
                    }
                    let world = world.borrow_and_update().clone();
                    out.push(Message::text(&*world.text));
                    out.extend(self.leases_of(&world));
                }
                Ok(()) = logs.changed() => out.extend(self.new_cards()),
                _ = question.tick() => {
                    if !std::mem::replace(&mut answered, false) {
                        return SLOW;
                    }
                    out.push(Message::Ping(axum::body::Bytes::new()));
                }
            }
        }
    }

    /// Does what a frame asks for.
    async fn take(&mut self, frame: &str) -> Result<Vec<Message>, Leave> {
        let request = match Request::read(frame) {
            Ok(request) => request,
            Err(Unfit::Malformed(why)) => return Err(Leave::Close(close_code::POLICY, why)),
            Err(Unfit::Unknown(kind)) => {
                let kind: String = kind.chars().take(32).collect();
                let message = "this server knows no such request";
                return Ok(vec![error(&kind, message, "UNKNOWN_REQUEST")]);
            }
        };
        let kind = request.kind();
        Ok(match self.answer(request).await {
            Ok(replies) => replies,
            Err(Refused(message, code)) => vec![error(kind, &message, code)],
        })
    }

    async fn answer(&mut self, request: Request) -> Result<Vec<Message>, Refused> {
        match request {
            Request::Watch { session } => return self.watch(session).await,
            Request::Unwatch { session } => self.unwatch(&session),
            Request::Take { session } => {
                if !self.leases.contains_key(&session) {
                    let lease = self.live.terminals.take_over(&session)?;
                    self.leases.insert(session.clone(), lease);
                }
                return Ok(vec![self.lease(session, true, true)]);
            }
            Request::Give { session } => {
                self.leases.remove(&session).ok_or_else(not_taken)?.give_back();
                return Ok(vec![self.lease(session, false, false)]);
            }
            Request::Type { session, text } => {
                self.leased(&session)?.type_text(text.expose_secret()).await?;
            }
            Request::Secret { session, text } => self.leased(&session)?.enter_secret(text).await?,
            Request::Signal { session, signal } => {
                self.leased(&session)?.signal(signal).await?;
            }
            Request::Kill { job, agent } => self.kill(&agent, &job)?,
            Request::Cards { agent } => return Ok(vec![self.cards(agent)?]),
        }
        Ok(Vec::new())
    }

    async fn watch(&mut self, session: String) -> Result<Vec<Message>, Refused> {
        self.unwatch(&session);
        self.watches.retain(|_, watch| !watch.is_finished());
        if self.watches.len() >= MOST {
            return Err(too_many("watches", "sessions", "unwatch one first"));
        }
        let watcher = self.live.terminals.watch(&session).await?;
        let frames = self.frames.clone();
        let (id, terminals) = (session.clone(), Arc::clone(&self.live.terminals));
        let handle = self.tasks.spawn(async move {
            // An error: the page has gone.
            if follow(&id, watcher, &frames).await.is_ok() {
                let reason = end_of(&terminals, &id);
                let ended = json!({ "type": "ended", "session": id, "reason": reason });
                frames.send(text(&ended)).await.ok();
            }
        });
        self.watches.insert(session.clone(), handle);
        let mine = self.leases.contains_key(&session);
        let held = mine || self.live.world.borrow().taken_over.get(&session) == Some(&true);
        Ok(vec![self.lease(session, held, mine)])
    }

    fn unwatch(&mut self, session: &str) {
        self.told.remove(session);
        if let Some(handle) = self.watches.remove(session) {
            handle.abort();
        }
    }

    fn leased(&self, session: &str) -> Result<&Lease, Refused> {
        self.leases.get(session).ok_or_else(not_taken)
    }

    /// What is said of a lease.
    fn lease(&mut self, session: String, held: bool, mine: bool) -> Message {
        let message = json!({ "type": "lease", "session": session, "held": held, "mine": mine });
        self.told.insert(session, (held, mine));
        text(&message)
    }

    /// What is to be said of leases that others took or gave back.
    fn leases_of(&mut self, world: &World) -> Vec<Message> {
        // A session that is gone, or has ended, is nobody's.
        self.leases.retain(|session, _| world.taken_over.contains_key(session));
        let mut new = Vec::new();
        for (session, told) in &self.told {
            let mine = self.leases.contains_key(session);
            let held = mine || world.taken_over.get(session) == Some(&true);
            if *told != (held, mine) {
                new.push((session.clone(), held, mine));
            }
        }
        new.into_iter().map(|(session, held, mine)| self.lease(session, held, mine)).collect()
    }

    /// Ends a job. Its owner, who is not told by the job then, is told of it here.
    fn kill(&self, agent: &str, job: &str) -> Result<(), Refused> {
        let agent = self.agent(agent)?;
        let jobs = self.live.jobs.get();
        let jobs = jobs.ok_or_else(|| Refused("there are no jobs".to_owned(), "NO_JOBS"))?;
        let refused = |error: jobs::JobError| Refused(error.to_string(), error.code());
        match jobs.kill(Some(&agent), job, "a person ended it").map_err(refused)? {
            Kill::Requested(job) => {
                let notice = format!(
                    "[a person asked for the end of background job {} ({}: {})]",
                    job.id, job.kind, job.label
                );
                agent.inbox().push(Notice::new(notice));
                Ok(())
            }
            Kill::AlreadyFinished(_) => {
                Err(Refused(format!("job {job} has finished already"), "ALREADY_FINISHED"))
            }
        }
    }

    fn cards(&mut self, id: String) -> Result<Message, Refused> {
        let agent = self.agent(&id)?;
        self.followed.retain(|_, (agent, _)| !agent.is_ending());
        if self.followed.len() >= MOST && !self.followed.contains_key(&id) {
            return Err(too_many("follows", "agents", "open another page for more"));
        }
        let (cards, told) = self.live.logs.all(agent.instance());
        let message = json!({ "type": "cards", "agent": id, "cards": cards });
        self.followed.insert(id, (agent, told));
        Ok(text(&message))
    }

    /// The cards that changed since they were last told.
    fn new_cards(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        for (id, (agent, told)) in &mut self.followed {
            let (cards, now) = self.live.logs.since(agent.instance(), *told);
            *told = now;
            messages.extend(cards.into_iter().map(|it| {
                let (seq, time, card) = (it.seq, it.time, it.card);
                let message =
                    json!({ "type": "card", "agent": id, "seq": seq, "time": time, "card": card });
                text(&message)
            }));
        }
        messages
    }

    fn agent(&self, id: &str) -> Result<Arc<Agent>, Refused> {
        let unknown = || Refused(format!("there is no agent {id:?}"), "NO_AGENT");
        self.live.agents.get(id).ok_or_else(unknown)
    }
}

/// Hands out what a session shows until it has ended.
async fn follow(
    id: &str,
    mut watcher: Box<dyn Watcher>,
    frames: &mpsc::Sender<Message>,
) -> Result<(), mpsc::error::SendError<Message>> {
    let mut pace = interval(FRAME);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while let Some(seen) = watcher.next().await {
        let message = match seen {
            Seen::Picture(bytes) => output(1, id, &bytes),
            Seen::Output(bytes) => output(0, id, &bytes),
            Seen::Echo(on) => text(&json!({ "type": "echo", "session": id, "on": on })),
            Seen::Resized(WindowSize { rows, columns }) => {
                text(&json!({ "type": "size", "session": id, "columns": columns, "rows": rows }))
            }
        };
        let shows = matches!(message, Message::Binary(_));
        frames.send(message).await?;
        if shows {
            pace.tick().await;
        }
    }
    Ok(())
}

/// What a session has shown: what to do with it, the length of the id, the id, the bytes.
fn output(replaces: u8, id: &str, bytes: &[u8]) -> Message {
    let mut frame = Vec::with_capacity(2 + id.len() + bytes.len());
    // Ids are minted here and short.
    frame.extend([replaces, u8::try_from(id.len()).unwrap_or(u8::MAX)]);
    frame.extend_from_slice(id.as_bytes());
    frame.extend_from_slice(bytes);
    Message::binary(frame)
}

/// How a session ended.
fn end_of(terminals: &TerminalRegistry, id: &str) -> String {
    let sessions = terminals.sessions().into_iter().map(|(_, it, _)| it);
    match sessions.filter(|it| it.session_id.as_str() == id).map(|it| it.status).next() {
        None | Some(SessionStatus::Running) => "it was closed".to_owned(),
        Some(SessionStatus::Exited { exit_code: Some(code), .. }) => {
            format!("its shell ended with status {code}")
        }
        Some(SessionStatus::Exited { signal: Some(signal), .. }) => {
            format!("its shell was ended by {signal}")
        }
        Some(SessionStatus::Exited { .. }) => "its shell ended".to_owned(),
    }
}

/// What a page whose frame cannot be read is left with.
fn broken(error: &axum::Error) -> Leave {
    let inner = std::error::Error::source(error);
    let wire = inner.and_then(|it| it.downcast_ref::<tungstenite::Error>());
    match wire {
        Some(tungstenite::Error::Capacity(_)) => {
            Leave::Close(close_code::SIZE, "a frame may have 64 KiB")
        }
        Some(tungstenite::Error::Utf8(_)) => {
            Leave::Close(close_code::INVALID, "a frame of text must be UTF-8")
        }
        Some(tungstenite::Error::Protocol(_)) => {
            Leave::Close(close_code::PROTOCOL, "this is no WebSocket")
        }
        _ => Leave::Gone,
    }
}

fn text(message: &Value) -> Message {
    Message::text(message.to_string())
}

fn error(of: &str, message: &str, code: &str) -> Message {
    text(&json!({ "type": "error", "of": of, "message": message, "code": code }))
}

fn not_taken() -> Refused {
    Refused("take the session over first: it is its agent's".to_owned(), "NO_LEASE")
}

fn too_many(does: &str, what: &str, next: &str) -> Refused {
    Refused(format!("this page {does} {MOST} {what} already: {next}"), "TOO_MANY")
}
