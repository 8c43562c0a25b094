//! What a session says to its client, as streams of events: one for each request, and a general one.
//!
//! Guarantees:
//! - an answer waits for nobody, and is kept until a reader has taken it; of answers that nobody
//!   took, the oldest is given up when a session has [`MOST`] streams;
//! - everything else waits for a reader that is slow, and not for one that has gone: then the newest
//!   [`KEPT`] bytes are kept;
//! - a reader that comes back says which event it had last, and goes on behind it;
//! - of two readers of a stream, the later one gets all that comes.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
};

use dsh_core::lock;
use rmcp::{
    RoleServer,
    model::{
        GetExtensions as _, JsonRpcMessage, ProgressToken, RequestId, ServerNotification,
        ServerRequest,
    },
    service::{OriginatingRequestId, TxJsonRpcMessage},
};
use tokio::sync::{Notify, futures::OwnedNotified};
use tokio_util::sync::CancellationToken;

/// Most streams of requests; those that ended lately count too.
pub(super) const MOST: usize = 64;

/// Answered requests that are kept: their answers may have been lost on the way.
const KEPT_ANSWERED: usize = 4;

/// Bytes of a stream that are kept for a reader that comes back.
const KEPT: usize = 65_536;

/// Key of the stream of what belongs to no request.
const GENERAL: u64 = 0;

/// All streams of a session.
pub(super) struct Streams {
    state: Mutex<State>,
}

struct State {
    /// The general one first, then by age.
    streams: VecDeque<Stream>,
    next_key: u64,
    next_reader: u64,
    closed: bool,
}

struct Stream {
    key: u64,
    request: Option<(RequestId, Option<ProgressToken>)>,
    /// Without gaps.
    events: VecDeque<Event>,
    bytes: usize,
    next: u64,
    /// The first event that no reader has taken.
    read: u64,
    /// Whose the events are.
    reader: Option<u64>,
    /// Nothing more is said here.
    over: bool,
    changed: Arc<Notify>,
}

struct Event {
    index: u64,
    text: Arc<str>,
    failed: bool,
}

/// Where a message belongs.
enum Route {
    General,
    /// With this request, or else to the general stream.
    Beside(RequestId),
    Progress(ProgressToken),
    /// Ends the stream of this request.
    Answer(RequestId),
    Nowhere,
}

/// One event.
pub(super) struct Said {
    pub(super) id: String,
    pub(super) text: Arc<str>,
    /// It is an error response.
    pub(super) failed: bool,
}

/// Reads one stream.
pub(super) struct Reader {
    streams: Arc<Streams>,
    key: u64,
    number: u64,
    next: u64,
}

impl Streams {
    pub(super) fn new() -> Self {
        let general = Stream::new(GENERAL, None);
        let streams = VecDeque::from([general]);
        let state = State { streams, next_key: GENERAL + 1, next_reader: 0, closed: false };
        Self { state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The stream of a new request, unless too many of them are still unanswered.
    pub(super) fn open(
        self: &Arc<Self>,
        request: RequestId,
        progress: Option<ProgressToken>,
    ) -> Option<Reader> {
        let mut state = self.state();
        state.forget_answered();
        if state.streams.len() > MOST {
            let oldest = state.streams.iter().position(|it| it.over)?;
            state.streams.remove(oldest);
        }
        let key = state.next_key;
        state.next_key += 1;
        state.streams.push_back(Stream::new(key, Some((request, progress))));
        self.attach(&mut state, key, None)
    }

    /// The general stream, from what nobody has read.
    pub(super) fn general(self: &Arc<Self>) -> Option<Reader> {
        self.attach(&mut self.state(), GENERAL, None)
    }

    /// A stream from behind this event; nothing if it is not kept any more.
    pub(super) fn resume(self: &Arc<Self>, event: &str) -> Option<Reader> {
        let (key, index) = event.split_once('-')?;
        let (key, index): (u64, u64) = (key.parse().ok()?, index.parse().ok()?);
        self.attach(&mut self.state(), key, Some(index.checked_add(1)?))
    }

    fn attach(self: &Arc<Self>, state: &mut State, key: u64, from: Option<u64>) -> Option<Reader> {
        let number = state.next_reader;
        let stream = state.find(key)?;
        let next = from.unwrap_or(stream.read);
        if next > stream.next {
            return None;
        }
        stream.reader = Some(number);
        stream.changed.notify_waiters();
        state.next_reader += 1;
        Some(Reader { streams: Arc::clone(self), key, number, next })
    }

    /// Says something. What is no answer waits for a slow reader until `silent`.
    pub(super) async fn say(
        &self,
        message: TxJsonRpcMessage<RoleServer>,
        silent: &CancellationToken,
    ) {
        let text: Arc<str> = match serde_json::to_string(&message) {
            Ok(text) => text.into(),
            Err(error) => {
                tracing::error!(%error, "a message cannot be written as JSON");
                return;
            }
        };
        let failed = matches!(message, JsonRpcMessage::Error(_));
        let route = Route::of(&message);
        loop {
            let changed = {
                let mut state = self.state();
                let Some(stream) = state.target(&route) else {
                    tracing::debug!("nobody waits for a message");
                    return;
                };
                let answers = matches!(route, Route::Answer(_));
                if answers || !stream.is_full() {
                    stream.push(text, failed);
                    stream.over |= answers;
                    return;
                }
                stream.change()
            };
            tokio::select! {
                () = changed => {}
                () = silent.cancelled() => return,
            }
        }
    }

    /// Ends the stream of a request that will not be answered.
    pub(super) fn cancel(&self, request: &RequestId) {
        if let Some(stream) = self.state().waiting_for(request) {
            stream.over = true;
            stream.changed.notify_waiters();
        }
    }

    /// Nothing more is said: readers end once they have read what there is.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        for stream in &state.streams {
            stream.changed.notify_waiters();
        }
    }
}

impl State {
    fn find(&mut self, key: u64) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|it| it.key == key)
    }

    fn waiting_for(&mut self, request: &RequestId) -> Option<&mut Stream> {
        let waits = |it: &Stream| it.request.as_ref().is_some_and(|(id, _)| id == request);
        self.streams.iter_mut().find(|it| !it.over && waits(it))
    }

    fn target(&mut self, route: &Route) -> Option<&mut Stream> {
        match route {
            Route::General => self.find(GENERAL),
            Route::Beside(request) => {
                let key = self.waiting_for(request).map_or(GENERAL, |it| it.key);
                self.find(key)
            }
            Route::Progress(token) => {
                let its = |it: &Stream| {
                    it.request.as_ref().is_some_and(|(_, its)| its.as_ref() == Some(token))
                };
                self.streams.iter_mut().find(|it| !it.over && its(it))
            }
            Route::Answer(request) => self.waiting_for(request),
            Route::Nowhere => None,
        }
    }

    /// Forgets all but the newest of the streams that ended and were read.
    fn forget_answered(&mut self) {
        let answered = |it: &Stream| it.over && it.read == it.next;
        let mut extra = self.streams.iter().filter(|it| answered(it)).count();
        self.streams.retain(|it| {
            let forget = answered(it) && extra > KEPT_ANSWERED;
            extra -= usize::from(forget);
            !forget
        });
    }
}

impl Stream {
    fn new(key: u64, request: Option<(RequestId, Option<ProgressToken>)>) -> Self {
        Self {
            key,
            request,
            events: VecDeque::new(),
            bytes: 0,
            // What is before the first one is said when a stream begins.
            next: 1,
            read: 1,
            reader: None,
            over: false,
            changed: Arc::default(),
        }
    }

    fn change(&self) -> OwnedNotified {
        Arc::clone(&self.changed).notified_owned()
    }

    /// Whether somebody is there who has much to read.
    fn is_full(&self) -> bool {
        let unread = self.events.iter().rev().take_while(|it| it.index >= self.read);
        self.reader.is_some() && unread.map(|it| it.text.len()).sum::<usize>() >= KEPT
    }

    fn push(&mut self, text: Arc<str>, failed: bool) {
        self.bytes += text.len();
        self.events.push_back(Event { index: self.next, text, failed });
        self.next += 1;
        // The newest one stays, since it may be the answer.
        while self.bytes > KEPT
            && self.events.len() > 1
            && let Some(oldest) = self.events.front()
            && (self.reader.is_none() || oldest.index < self.read)
        {
            self.bytes -= oldest.text.len();
            self.events.pop_front();
        }
        self.changed.notify_waiters();
    }

    /// The first kept event from this one on.
    fn from(&self, index: u64) -> Option<&Event> {
        let first = self.events.front()?.index;
        self.events.get(usize::try_from(index.saturating_sub(first)).ok()?)
    }
}

impl Reader {
    /// The id of what was read last, to begin with the one before the first.
    pub(super) fn last_id(&self) -> String {
        id(self.key, self.next - 1)
    }

    /// The next event; none once nothing more will be said.
    pub(super) async fn next(&mut self) -> Option<Said> {
        loop {
            let changed = {
                let mut state = self.streams.state();
                let closed = state.closed;
                let stream = state.find(self.key)?;
                if stream.reader == Some(self.number)
                    && let Some(event) = stream.from(self.next)
                {
                    let said = Said {
                        id: id(self.key, event.index),
                        text: Arc::clone(&event.text),
                        failed: event.failed,
                    };
                    self.next = event.index + 1;
                    stream.read = stream.read.max(self.next);
                    stream.changed.notify_waiters();
                    return Some(said);
                }
                if closed || stream.over {
                    return None;
                }
                stream.change()
            };
            changed.await;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(stream) = self.streams.state().find(self.key)
            && stream.reader == Some(self.number)
        {
            stream.reader = None;
            stream.changed.notify_waiters();
        }
    }
}

impl Route {
    fn of(message: &TxJsonRpcMessage<RoleServer>) -> Self {
        match message {
            JsonRpcMessage::Response(it) => Self::Answer(it.id.clone()),
            JsonRpcMessage::Error(it) => it.id.clone().map_or(Self::Nowhere, Self::Answer),
            JsonRpcMessage::Request(it) => beside(&it.request),
            JsonRpcMessage::Notification(it) => match &it.notification {
                ServerNotification::ProgressNotification(it) => {
                    Self::Progress(it.params.progress_token.clone())
                }
                _ => Self::General,
            },
        }
    }
}

fn beside(request: &ServerRequest) -> Route {
    match request.extensions().get::<OriginatingRequestId>() {
        Some(OriginatingRequestId(id)) => Route::Beside(id.clone()),
        None => Route::General,
    }
}

fn id(key: u64, index: u64) -> String {
    format!("{key}-{index}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use testkit::guarded;

    use super::*;

    fn message(message: Value) -> TxJsonRpcMessage<RoleServer> {
        serde_json::from_value(message).unwrap()
    }

    async fn read(reader: &mut Reader) -> Option<Said> {
        guarded("an event", reader.next()).await
    }

    async fn progress(streams: &Streams, token: u32, text: &str) {
        let params = json!({ "progressToken": token, "progress": 1.0, "message": text });
        let method = "notifications/progress";
        let said = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        streams.say(message(said), &CancellationToken::new()).await;
    }

    async fn answer(streams: &Streams, id: u32) {
        let said = message(json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
        streams.say(said, &CancellationToken::new()).await;
    }

    fn open(streams: &Arc<Streams>, id: u32) -> Option<Reader> {
        let token = ProgressToken(RequestId::Number(i64::from(id)));
        streams.open(RequestId::Number(i64::from(id)), Some(token))
    }

    #[tokio::test]
    async fn who_has_gone_is_not_waited_for_and_gets_the_newest() {
        let streams = Arc::new(Streams::new());
        let mut reader = open(&streams, 1).unwrap();
        progress(&streams, 1, "first").await;
        let first = read(&mut reader).await.unwrap();
        assert!(first.text.contains("first"));
        drop(reader);
        let long = "x".repeat(KEPT / 4);
        for _ in 0..20 {
            progress(&streams, 1, &long).await;
        }
        answer(&streams, 1).await;
        // Nothing belongs to it any more.
        progress(&streams, 1, "late").await;
        let mut resumed = streams.resume(&first.id).unwrap();
        let mut texts = Vec::new();
        while let Some(said) = read(&mut resumed).await {
            texts.push(said.text);
        }
        assert!((2..6).contains(&texts.len()), "{}", texts.len());
        assert!(texts.last().unwrap().contains("result"));
    }

    #[tokio::test]
    async fn a_slow_reader_is_waited_for_until_it_reads_or_goes() {
        let streams = Arc::new(Streams::new());
        for goes in [false, true] {
            let mut reader = open(&streams, 1).unwrap();
            progress(&streams, 1, &"x".repeat(KEPT)).await;
            let mut waiting = tokio::spawn({
                let streams = Arc::clone(&streams);
                async move { progress(&streams, 1, "second").await }
            });
            // An answer does not wait with it.
            tokio::task::yield_now().await;
            assert!(futures_util::poll!(&mut waiting).is_pending());
            if goes {
                drop(reader);
                guarded("a message", waiting).await.unwrap();
            } else {
                read(&mut reader).await.unwrap();
                guarded("a message", waiting).await.unwrap();
                assert!(read(&mut reader).await.unwrap().text.contains("second"));
            }
            answer(&streams, 1).await;
        }
    }

    #[tokio::test]
    async fn streams_are_bounded_and_unanswered_ones_stay() {
        let streams = Arc::new(Streams::new());
        let most = u32::try_from(MOST).unwrap();
        let mut readers: Vec<_> = (0..most).map(|id| open(&streams, id).unwrap()).collect();
        assert!(open(&streams, most).is_none());
        answer(&streams, 3).await;
        assert!(read(&mut readers[3]).await.is_some());
        let mut last = open(&streams, most).unwrap();
        answer(&streams, 0).await;
        answer(&streams, most).await;
        assert!(read(&mut readers[0]).await.is_some());
        assert!(read(&mut last).await.is_some());
        streams.cancel(&RequestId::Number(7));
        assert!(read(&mut readers[7]).await.is_none());
        streams.close();
        assert!(read(&mut readers[8]).await.is_none());
    }
}
