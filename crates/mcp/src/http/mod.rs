//! MCP over HTTP, as its specification calls streamable: each session is a connection of its own,
//! and so an agent of its own.
//!
//! Guarantees:
//! - a session is reached by its id alone, which nobody can guess, and reaches nothing of another;
//! - it ends with DELETE, with the server, or when its client has had no request and no stream open
//!   for the grace of the configuration; each way disposes the agent and everything it owns;
//! - [`Http::ended`] returns only when all of that is over;
//! - messages and sessions are bounded, and what is refused is told why;
//! - an answer is not lost when its stream breaks: the client takes the stream up again.
//!
//! It does not ask who a client is: that is for whoever mounts the router.
//!
//! Reading order: `mod` → `sessions` → `session` → `streams`; `headers`, `refusal`.

mod headers;
mod refusal;
mod session;
mod sessions;
mod streams;

use std::{convert::Infallible, path::PathBuf, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::post,
};
use futures_util::{StreamExt as _, stream};
use rmcp::model::{
    ClientNotification, ClientRequest, GetMeta as _, JsonRpcMessage, JsonRpcRequest, RequestId,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use self::{
    headers::{EVENTS, JSON},
    refusal::Refusal,
    session::{Present, Session},
    sessions::Sessions,
    streams::Reader,
};
use crate::{
    McpServer,
    message::{self, Judged},
};

/// Longest message, in bytes.
const LONGEST: usize = 4 << 20;

/// How often a stream without events shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The sessions of [`McpServer::http`].
pub struct Http(Arc<Sessions>);

impl McpServer {
    /// A router that serves MCP at its root, and the handle of its sessions, which all end when
    /// `stop` is cancelled.
    ///
    /// `workspace_root` is what it is for [`McpServer::serve`]. The router lets everybody in.
    pub fn http(
        self: Arc<Self>,
        workspace_root: PathBuf,
        stop: CancellationToken,
    ) -> (Router, Http) {
        let sessions = Arc::new(Sessions::new(self, workspace_root, stop));
        let methods = post(answer).get(listen).delete(end);
        let router = Router::new().route("/", methods).with_state(Arc::clone(&sessions));
        (router, Http(sessions))
    }
}

impl Http {
    /// Returns when the server has been stopped and every session, with its agent, has ended.
    pub async fn ended(self) {
        self.0.ended().await;
    }
}

/// A message of the client.
async fn answer(
    State(sessions): State<Arc<Sessions>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    headers::check_accept(&headers, &[JSON, EVENTS])?;
    headers::check_content(&headers)?;
    let Some(id) = headers::session(&headers) else {
        return begin(&sessions, &read(&sessions, body).await?).await;
    };
    let session = find(&sessions, id)?;
    headers::check_version(&headers)?;
    let present = session.enter();
    let body = read(&sessions, body).await?;
    let message = match message::judge(&body, true) {
        Judged::Message(message) => *message,
        // It has been answered if it says what it is.
        Judged::Refused(it) if it.get("id").is_some() => {
            return Err(Refusal::of(StatusCode::OK, it));
        }
        Judged::Refused(it) => return Err(Refusal::of(StatusCode::BAD_REQUEST, it)),
        Judged::Ignored(why) => return Err(Refusal::no_message(why)),
    };
    // Reserved first: from then on nothing is waited for.
    let Ok(place) = session.inbox.reserve().await else { return Err(unknown()) };
    match &message {
        JsonRpcMessage::Request(it) if is_initialize(&it.request) => {
            let text = "this session has begun: send `initialize` without an Mcp-Session-Id for \
                        another one";
            Err(Refusal::new(StatusCode::BAD_REQUEST, text))
        }
        JsonRpcMessage::Request(it) => {
            let progress = it.request.get_meta().get_progress_token();
            let Some(reader) = session.streams.open(it.id.clone(), progress) else {
                let text = format!(
                    "{} requests of this session are unanswered, the most there may be: wait for one",
                    streams::MOST
                );
                return Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, &text));
            };
            place.send(message);
            Ok(events(reader, present, headers::knows_empty_events(&headers)))
        }
        JsonRpcMessage::Notification(it) => {
            let cancelled = match &it.notification {
                ClientNotification::CancelledNotification(it) => it.params.request_id.clone(),
                _ => None,
            };
            place.send(message);
            // A cancelled request gets no answer.
            if let Some(request) = cancelled {
                session.streams.cancel(&request);
            }
            Ok(StatusCode::ACCEPTED.into_response())
        }
        JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {
            place.send(message);
            Ok(StatusCode::ACCEPTED.into_response())
        }
    }
}

/// The general stream, or one that broke.
async fn listen(
    State(sessions): State<Arc<Sessions>>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    headers::check_accept(&headers, &[EVENTS])?;
    let session = addressed(&sessions, &headers)?;
    let present = session.enter();
    let reader = match headers::last_event(&headers) {
        None => session.streams.general(),
        Some(event) => session.streams.resume(event),
    };
    let reader = reader.ok_or_else(|| {
        let text =
            "what came after this Last-Event-ID is not kept any more: send the request again";
        Refusal::new(StatusCode::BAD_REQUEST, text)
    })?;
    Ok(events(reader, present, false))
}

/// The client wants no more.
async fn end(
    State(sessions): State<Arc<Sessions>>,
    headers: HeaderMap,
) -> Result<StatusCode, Refusal> {
    let session = addressed(&sessions, &headers)?;
    session.end();
    session.over.cancelled().await;
    Ok(StatusCode::NO_CONTENT)
}

fn addressed(sessions: &Sessions, headers: &HeaderMap) -> Result<Arc<Session>, Refusal> {
    let Some(id) = headers::session(headers) else {
        let text = "a request names its session with the header Mcp-Session-Id";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, text));
    };
    let session = find(sessions, id)?;
    headers::check_version(headers)?;
    Ok(session)
}

fn find(sessions: &Sessions, id: &str) -> Result<Arc<Session>, Refusal> {
    sessions.find(id).ok_or_else(unknown)
}

fn unknown() -> Refusal {
    let text = "this Mcp-Session-Id names no session, or one that has ended: send `initialize` \
                without it";
    Refusal::new(StatusCode::NOT_FOUND, text)
}

/// The whole body. One that is too long is read to its end, since a client may not listen before.
async fn read(sessions: &Sessions, body: Body) -> Result<Vec<u8>, Refusal> {
    let mut body = body.into_data_stream();
    let mut read = Vec::new();
    let mut too_long = false;
    loop {
        let chunk = tokio::select! {
            chunk = body.next() => chunk,
            () = sessions.stopped() => {
                return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server stops"));
            }
        };
        match chunk {
            None if too_long => {
                let body = message::too_long(LONGEST);
                return Err(Refusal::of(StatusCode::PAYLOAD_TOO_LARGE, body));
            }
            None => return Ok(read),
            Some(Err(_)) => return Err(Refusal::no_message("it broke off")),
            Some(Ok(chunk)) if too_long || read.len() + chunk.len() > LONGEST => {
                too_long = true;
                read = Vec::new();
            }
            Some(Ok(chunk)) => read.extend_from_slice(&chunk),
        }
    }
}

fn is_initialize(request: &ClientRequest) -> bool {
    matches!(request, ClientRequest::InitializeRequest(_))
}

/// A message that names no session begins one.
async fn begin(sessions: &Arc<Sessions>, body: &[u8]) -> Result<Response, Refusal> {
    let message = match message::judge(body, false) {
        Judged::Message(message) => *message,
        Judged::Refused(it) => return Err(Refusal::of(StatusCode::BAD_REQUEST, it)),
        Judged::Ignored(why) => return Err(Refusal::no_message(why)),
    };
    let JsonRpcMessage::Request(request) = &message else { return Err(not_begun()) };
    if !is_initialize(&request.request) {
        return Err(without_session(request));
    }
    let (session, _present) = sessions.open()?;
    let reader = session.streams.open(request.id.clone(), None);
    let (Some(mut reader), Ok(())) = (reader, session.inbox.send(message).await) else {
        return Err(unknown());
    };
    let Some(said) = reader.next().await else {
        let text = "the session ended before it had begun";
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, text));
    };
    let mut response = ([(header::CONTENT_TYPE, JSON)], said.text.to_string()).into_response();
    if let (false, Ok(id)) = (said.failed, session.id.parse()) {
        response.headers_mut().insert(headers::SESSION, id);
    }
    Ok(response)
}

fn without_session(request: &JsonRpcRequest<ClientRequest>) -> Refusal {
    let meta = request.request.get_meta();
    match meta.protocol_version() {
        Some(version) => {
            let id = match &request.id {
                RequestId::Number(id) => Value::from(*id),
                RequestId::String(id) => Value::from(&**id),
            };
            Refusal::version(Some(id), version.as_str())
        }
        None => not_begun(),
    }
}

fn not_begun() -> Refusal {
    let text =
        "send `initialize` first, and then with each request the Mcp-Session-Id of its answer";
    Refusal::new(StatusCode::BAD_REQUEST, text)
}

/// A response that lasts as long as something is said. `announce`: begin with an event that says
/// where the client goes on if the stream breaks.
fn events(reader: Reader, present: Present, announce: bool) -> Response {
    let first = announce.then(|| Event::default().id(reader.last_id()).data(""));
    let said = stream::unfold((reader, present), |(mut reader, present)| async move {
        let said = reader.next().await?;
        let event = Event::default().id(said.id).data(said.text);
        Some((event, (reader, present)))
    });
    let events = stream::iter(first).chain(said).map(Ok::<_, Infallible>);
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    // For proxies that would wait for more.
    let unbuffered = [("x-accel-buffering", "no")];
    (unbuffered, Sse::new(events).keep_alive(keep_alive)).into_response()
}
