//! A server of the chat completions API on the loopback interface, which plays a script.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use dsh_core::lock;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

/// What the server does with one request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A whole answer: status line, headers, body.
    Plain {
        /// Such as `200 OK`.
        status: &'static str,
        /// Whole lines.
        headers: String,
        /// The length is added.
        body: String,
    },
    /// These pieces of a body, each written on its own, then the end.
    Events {
        /// The bytes.
        pieces: Vec<Vec<u8>>,
        /// What comes after them.
        end: End,
    },
    /// Nothing: the connection is closed.
    Close,
    /// Nothing: the connection stays open.
    Silence,
}

/// How a stream of events ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// As it should.
    Whole,
    /// The connection is lost.
    Cut,
    /// Nothing more comes.
    Silence,
}

/// A request as it arrived.
pub struct Request {
    /// Request line and headers.
    pub head: String,
    /// The JSON of the body.
    pub body: Value,
}

/// The server. It answers one request after the other, and ends when it is dropped or the script
/// is over.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    /// A message for each client that left a connection on which the server was silent.
    pub left: tokio::sync::mpsc::UnboundedReceiver<()>,
    task: AbortHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Starts one that gives these answers, each to one request.
    ///
    /// # Panics
    ///
    /// When there is no port to listen on.
    pub async fn play(script: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (leave, left) = tokio::sync::mpsc::unbounded_channel();
        let script: Vec<Answer> = script.into_iter().collect();
        let seen = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            for answer in script {
                let (stream, _) = listener.accept().await.unwrap();
                let mut stream = BufReader::new(stream);
                let request = read(&mut stream).await;
                lock(&seen).push(request);
                write(&mut stream, answer, &leave).await;
            }
        });
        Self { address, requests, left, task: task.abort_handle() }
    }

    /// The requests since the last call of this.
    pub fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut lock(&self.requests))
    }
}

/// A stream of these chunks, as it should be.
pub fn stream(chunks: &[Value]) -> Answer {
    let pieces = chunks.iter().map(|it| event(it).into_bytes());
    let pieces = pieces.chain([b"data: [DONE]\n\n".to_vec()]).collect();
    Answer::Events { pieces, end: End::Whole }
}

/// A stream that ends with the last of these chunks.
pub fn broken(chunks: &[Value], end: End) -> Answer {
    let pieces = chunks.iter().map(|it| event(it).into_bytes()).collect();
    Answer::Events { pieces, end }
}

/// A chunk on the wire.
pub fn event(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}

/// A chunk with this change of the reply.
pub fn delta(delta: &Value) -> Value {
    json!({
        "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "tiny",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": null }],
    })
}

/// A chunk of text.
pub fn text(text: &str) -> Value {
    delta(&json!({ "content": text }))
}

/// The chunk that says why the reply ended.
pub fn finish(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

/// A short reply.
pub fn hello() -> Answer {
    stream(&[text("hello"), finish("stop")])
}

/// An answer that is no stream.
pub fn status(status: &'static str, body: impl Into<String>) -> Answer {
    let headers = "content-type: application/json\r\n".to_owned();
    Answer::Plain { status, headers, body: body.into() }
}

/// An error as OpenAI writes it.
pub fn refusal(line: &'static str, message: &str, code: &str) -> Answer {
    status(
        line,
        json!({ "error": { "message": message, "type": "x", "param": null, "code": code } })
            .to_string(),
    )
}

async fn read(stream: &mut BufReader<TcpStream>) -> Request {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(stream.read_line(&mut head).await.unwrap(), 0, "half a request: {head}");
    }
    let Some(length) = head
        .lines()
        .find_map(|it| it.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok())
    else {
        panic!("no length: {head}");
    };
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    Request { head, body: serde_json::from_slice(&body).unwrap() }
}

/// A client may leave at any time: what cannot be written is not.
async fn write(
    stream: &mut BufReader<TcpStream>,
    answer: Answer,
    leave: &tokio::sync::mpsc::UnboundedSender<()>,
) {
    match answer {
        Answer::Plain { status, headers, body } => {
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            stream.write_all(answer.as_bytes()).await.ok();
        }
        Answer::Events { pieces, end } => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                        transfer-encoding: chunked\r\nconnection: close\r\n\r\n";
            stream.write_all(head.as_bytes()).await.ok();
            for piece in pieces.into_iter().filter(|it| !it.is_empty()) {
                let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
                chunk.extend(piece);
                chunk.extend(b"\r\n");
                stream.write_all(&chunk).await.ok();
                stream.flush().await.ok();
            }
            match end {
                End::Whole => drop(stream.write_all(b"0\r\n\r\n").await),
                End::Cut => {}
                End::Silence => until_left(stream, leave).await,
            }
        }
        Answer::Close => {}
        Answer::Silence => until_left(stream, leave).await,
    }
}

async fn until_left(
    stream: &mut BufReader<TcpStream>,
    leave: &tokio::sync::mpsc::UnboundedSender<()>,
) {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.ok();
    leave.send(()).ok();
}
