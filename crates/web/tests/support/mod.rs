//! A server in this process, on a port of its own, and clients of it.

#![allow(dead_code, reason = "each test binary uses a part")]
#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

pub(crate) mod page;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use agents::Agent;
use axum::{Router, routing::any};
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use testkit::{TestHost, guarded};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use web::{Web, WebServer};

// Only what is mentioned is linked.
use jobs as _;
use terminal as _;
use terminal_bash as _;
use tool_jobs as _;
use tool_terminal as _;

/// All that agents need for sessions and jobs.
pub(crate) const ROWS: &str = "- name: terminal\n- name: terminal-bash\n- name: tool-terminal\n\
                               - name: jobs\n- name: tool-jobs\n";

pub(crate) struct Site {
    pub(crate) host: TestHost,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    pub(crate) http: Client,
    /// How often something behind the checks ran.
    pub(crate) ran: Arc<AtomicUsize>,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    tls: bool,
}

impl Site {
    pub(crate) async fn open() -> Self {
        Self::open_with("", Client::builder).await
    }

    /// With `config` besides the address in the row, and a client that `http` begins.
    pub(crate) async fn open_with(config: &str, http: impl FnOnce() -> ClientBuilder) -> Self {
        let row = format!("- name: web\n  config: {{ listen: '127.0.0.1:0'{config} }}\n");
        let host = TestHost::boot(&format!("{ROWS}{row}")).await;
        let web: Arc<WebServer> = host.service::<Web>();
        let door = web.open().await.unwrap();
        let (address, tls) = (door.place().address, door.place().tls);
        let token = door.new_token().unwrap_or_default().to_owned();
        let ran = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&ran);
        let count = any(async move || {
            counted.fetch_add(1, Ordering::SeqCst);
            "it ran"
        });
        let others = Router::new().route("/mcp", count);
        let stop = CancellationToken::new();
        let stopping = stop.clone();
        let serving = tokio::spawn(async move { web.serve(door, others, stopping).await });
        rustls::crypto::ring::default_provider().install_default().ok();
        let http = http().no_proxy().build().unwrap();
        Self { host, address, token, http, ran, stop, serving, tls }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.address)
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.http.get(self.url(path))
    }

    /// The answer to a request with the token.
    pub(crate) async fn fetch(&self, path: &str) -> Response {
        send(self.get(path).bearer_auth(&self.token)).await
    }

    /// Asks to be let in.
    pub(crate) async fn log_in(&self, token: &str) -> Response {
        let body = json!({ "token": token }).to_string();
        let request = self.http.post(self.url("/login")).header("content-type", "application/json");
        send(request.body(body)).await
    }

    /// Ends the server, and checks that it does; then the host.
    pub(crate) async fn close(self) {
        self.stop.cancel();
        guarded("the end of the server", self.serving).await.unwrap();
        guarded("the end of the host", self.host.dispose()).await.unwrap();
    }

    /// Ends the server alone.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }
}

pub(crate) async fn send(request: RequestBuilder) -> Response {
    guarded("an answer", request.send()).await.unwrap()
}

pub(crate) async fn status(request: RequestBuilder) -> StatusCode {
    send(request).await.status()
}

/// The first session of an agent in the world, if there is one.
pub(crate) fn session_of<'w>(world: &'w Value, agent: &str) -> &'w Value {
    let agents = world["agents"].as_array();
    let found = agents.into_iter().flatten().find(|it| it["id"] == agent);
    found.map_or(&Value::Null, |it| &it["sessions"][0])
}

/// A session of an agent.
pub(crate) async fn opened(site: &Site, agent: &str) -> (Arc<Agent>, String) {
    let agent = site.host.agent(agent);
    let opened = site.host.call(&agent, "terminal_open", json!({ "type": "shell" })).await;
    let id = opened.value.unwrap()["sessionId"].as_str().unwrap().to_owned();
    (agent, id)
}

/// The text of a send, errors included.
pub(crate) async fn typed(site: &Site, agent: &Arc<Agent>, session: &str, text: &str) -> String {
    let arguments = json!({ "sessionId": session, "text": text });
    site.host.call(agent, "terminal_send", arguments).await.text()
}

/// The code of an error.
pub(crate) fn code(frame: &Value) -> &str {
    frame["code"].as_str().unwrap()
}
