//! A server on a port of its own, and a client that speaks the protocol by hand.

use std::{collections::VecDeque, sync::Arc};

use axum::Router;
use mcp::Mcp;
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use testkit::{TestHost, guarded};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

pub(crate) const VERSION: &str = "2025-11-25";

/// A server of the host's sessions.
pub(crate) struct Server {
    pub(crate) url: String,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(host: &TestHost) -> Self {
        let stop = CancellationToken::new();
        let mcp = host.service::<Mcp>();
        let (router, sessions) = Arc::clone(&mcp).http(host.workspace().to_owned(), stop.clone());
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let router = Router::new().nest("/mcp", router);
        let stopped = stop.clone().cancelled_owned();
        let serving = tokio::spawn(async move {
            let serving = axum::serve(listener, router).with_graceful_shutdown(stopped);
            let (served, ()) = tokio::join!(serving.into_future(), sessions.ended());
            served.unwrap();
        });
        Self { url, stop, serving }
    }

    /// Ends it and everything of its sessions.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        guarded("the server's end", self.serving).await.unwrap();
    }
}

/// One session.
pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
    pub(crate) session: String,
    pub(crate) welcome: Value,
}

/// A stream of messages.
pub(crate) struct Messages {
    response: Response,
    text: String,
    /// The event that was read last.
    pub(crate) last: String,
    stash: VecDeque<Value>,
}

/// A client without a session, and without connections to others.
pub(crate) fn http() -> reqwest::Client {
    // The client wants a provider even where nothing is encrypted.
    rustls::crypto::ring::default_provider().install_default().ok();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

pub(crate) fn hello(capabilities: &Value) -> Value {
    json!({
        "protocolVersion": VERSION, "capabilities": capabilities,
        "clientInfo": { "name": "test", "version": "1" },
    })
}

pub(crate) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub(crate) fn posted(
    http: &reqwest::Client,
    url: &str,
    body: impl Into<reqwest::Body>,
) -> RequestBuilder {
    http.post(url)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .body(body)
}

/// Status and error text of a refusal.
pub(crate) async fn refused(request: RequestBuilder) -> (u16, String) {
    let response = guarded("a refusal", request.send()).await.unwrap();
    let status = response.status().as_u16();
    let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    (status, body["error"]["message"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned())
}

impl Client {
    pub(crate) async fn begin(server: &Server, capabilities: Value) -> Self {
        let http = http();
        let message = request(0, "initialize", &hello(&capabilities));
        let sent = posted(&http, &server.url, message.to_string()).send();
        let response = guarded("initialize", sent).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        let welcome: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        let client = Self { http, url: server.url.clone(), session, welcome };
        client.notify("notifications/initialized", json!({})).await;
        client
    }

    fn addressed(&self, request: RequestBuilder) -> RequestBuilder {
        request.header("mcp-session-id", &self.session).header("mcp-protocol-version", VERSION)
    }

    pub(crate) fn post(&self, message: &Value) -> RequestBuilder {
        self.addressed(posted(&self.http, &self.url, message.to_string()))
    }

    pub(crate) fn get(&self) -> RequestBuilder {
        self.addressed(self.http.get(&self.url)).header("accept", "text/event-stream")
    }

    pub(crate) fn delete(&self) -> RequestBuilder {
        self.addressed(self.http.delete(&self.url))
    }

    /// Sends what is answered by nothing but a status.
    pub(crate) async fn send(&self, message: &Value) {
        let response = guarded("a message", self.post(message).send()).await.unwrap();
        assert_eq!(response.status(), StatusCode::ACCEPTED);
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// The stream that answers a request.
    pub(crate) async fn request(&self, id: u64, method: &str, params: Value) -> Messages {
        Messages::open(self.post(&request(id, method, &params))).await
    }

    pub(crate) async fn ask(&self, id: u64, tool: &str, arguments: Value) -> Messages {
        self.request(id, "tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    pub(crate) async fn call(&self, id: u64, tool: &str, arguments: Value) -> Value {
        self.ask(id, tool, arguments).await.response(id).await
    }

    /// The first text of a call's result.
    pub(crate) async fn text(&self, id: u64, tool: &str, arguments: Value) -> String {
        self.call(id, tool, arguments).await["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The general stream.
    pub(crate) async fn listen(&self) -> Messages {
        Messages::open(self.get()).await
    }

    /// What is said behind an event.
    pub(crate) async fn resume(&self, event: &str) -> Messages {
        Messages::open(self.get().header("last-event-id", event)).await
    }

    pub(crate) async fn end(&self) {
        let response = guarded("DELETE", self.delete().send()).await.unwrap();
        assert_eq!(response.status(), StatusCode::NO_CONTENT);
    }
}

impl Messages {
    async fn open(request: RequestBuilder) -> Self {
        let response = guarded("a stream", request.send()).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new(), last: String::new(), stash: VecDeque::new() }
    }

    /// The next message; none at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let Some((event, rest)) = self.text.split_once("\n\n") else {
                let chunk = guarded("a stream", self.response.chunk()).await.unwrap()?;
                self.text.push_str(std::str::from_utf8(&chunk).unwrap());
                continue;
            };
            let field = |name: &str| {
                event.lines().find_map(|it| Some(it.strip_prefix(name)?.trim_start().to_owned()))
            };
            let (id, data, rest) =
                (field("id:"), field("data:").unwrap_or_default(), rest.to_owned());
            self.text = rest;
            self.last = id.unwrap_or_else(|| std::mem::take(&mut self.last));
            if !data.is_empty() {
                return Some(serde_json::from_str(&data).unwrap());
            }
        }
    }

    pub(crate) async fn find(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.stash.iter().position(&wanted) {
            return self.stash.remove(at).unwrap();
        }
        loop {
            let message =
                self.next().await.unwrap_or_else(|| panic!("{what}: the stream has ended"));
            if wanted(&message) {
                return message;
            }
            self.stash.push_back(message);
        }
    }

    pub(crate) async fn response(&mut self, id: u64) -> Value {
        let what = format!("response {id}");
        let response = self.find(&what, |it| it["id"] == id && it.get("method").is_none()).await;
        response.get("result").unwrap_or_else(|| panic!("{response}")).clone()
    }

    pub(crate) async fn notification(&mut self, method: &str) -> Value {
        self.find(method, |it| it["method"] == method).await["params"].clone()
    }

    /// Reads to the end of the stream.
    pub(crate) async fn rest(mut self) -> Vec<Value> {
        let mut rest = Vec::from(std::mem::take(&mut self.stash));
        while let Some(message) = self.next().await {
            rest.push(message);
        }
        rest
    }
}
