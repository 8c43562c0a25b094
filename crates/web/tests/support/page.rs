//! A page that watches, as far as the wire goes.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use testkit::guarded;
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{
        Error, Message,
        client::IntoClientRequest as _,
        http::{HeaderName, HeaderValue, StatusCode},
        protocol::CloseFrame,
    },
};

use super::Site;

pub(crate) struct Page {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// The newest world.
    pub(crate) world: Value,
    /// What was shown since the last picture, picture included.
    pub(crate) shown: String,
    /// Pictures so far.
    pub(crate) pictures: usize,
}

/// What came.
pub(crate) enum Frame {
    Text(Value),
    Output,
    Closed(Option<CloseFrame>),
}

impl Page {
    pub(crate) async fn open(site: &Site) -> Self {
        let bearer = format!("Bearer {}", site.token);
        match Self::try_open(site, &[("authorization", &bearer)]).await {
            Ok(page) => page,
            Err(status) => panic!("refused: {status}"),
        }
    }

    /// With these headers, or the status with which it was refused.
    pub(crate) async fn try_open(
        site: &Site,
        headers: &[(&'static str, &str)],
    ) -> Result<Self, StatusCode> {
        let mut request = format!("ws://{}/live", site.address).into_client_request().unwrap();
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).unwrap();
            request.headers_mut().insert(HeaderName::from_static(name), value);
        }
        match guarded("an answer", connect_async(request)).await {
            Ok((socket, _)) => {
                Ok(Self { socket, world: Value::Null, shown: String::new(), pictures: 0 })
            }
            Err(Error::Http(response)) => Err(response.status()),
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn send(&mut self, request: Value) {
        self.send_raw(Message::text(request.to_string())).await;
    }

    /// A server that closes meanwhile is no error.
    pub(crate) async fn send_raw(&mut self, message: Message) {
        guarded("a frame to go", self.socket.send(message)).await.ok();
    }

    pub(crate) async fn next(&mut self) -> Frame {
        loop {
            match guarded("a frame", self.socket.next()).await {
                Some(Ok(Message::Text(text))) => {
                    let frame: Value = serde_json::from_str(&text).unwrap();
                    if frame["type"] == "world" {
                        self.world = frame.clone();
                    }
                    return Frame::Text(frame);
                }
                Some(Ok(Message::Binary(frame))) => {
                    let (replaces, length) = (frame[0], usize::from(frame[1]));
                    assert!(frame[2..2 + length].starts_with(b"pty-"));
                    if replaces == 1 {
                        self.shown.clear();
                        self.pictures += 1;
                    }
                    self.shown.push_str(std::str::from_utf8(&frame[2 + length..]).unwrap());
                    return Frame::Output;
                }
                Some(Ok(Message::Close(frame))) => return Frame::Closed(frame),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Frame::Closed(None),
            }
        }
    }

    /// The next frame of this type.
    pub(crate) async fn frame(&mut self, kind: &str) -> Value {
        loop {
            match self.next().await {
                Frame::Text(frame) if frame["type"] == kind => return frame,
                Frame::Text(_) | Frame::Output => {}
                Frame::Closed(frame) => panic!("closed before `{kind}`: {frame:?}"),
            }
        }
    }

    /// Waits until the world holds.
    pub(crate) async fn world_with(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        while !holds(&self.world) {
            self.frame("world").await;
        }
        self.world.clone()
    }

    /// Waits until `text` was shown since the last picture.
    pub(crate) async fn sees(&mut self, text: &str) {
        while !self.shown.contains(text) {
            if let Frame::Closed(frame) = self.next().await {
                panic!("closed before {text:?} in {:?}: {frame:?}", self.shown);
            }
        }
    }

    /// Reads up to the end, and says how it was told.
    pub(crate) async fn closed(&mut self) -> Option<CloseFrame> {
        loop {
            if let Frame::Closed(frame) = self.next().await {
                return frame;
            }
        }
    }

    /// Watches a session up to its first picture.
    pub(crate) async fn watch(&mut self, session: &str) {
        let pictures = self.pictures;
        self.send(json!({ "type": "watch", "session": session })).await;
        while self.pictures == pictures {
            match self.next().await {
                Frame::Text(frame) => assert_ne!(frame["type"], "error", "{frame}"),
                Frame::Output => {}
                Frame::Closed(frame) => panic!("closed before a picture: {frame:?}"),
            }
        }
    }
}
