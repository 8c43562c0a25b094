//! The port in use: connections, each on a task of its own.
//!
//! Guarantees:
//! - every connection has ended when [`Door::serve`] returns; those that do not end by themselves
//!   within moments are cut;
//! - a client that begins a request or a handshake and does not go on is dropped; there are at most
//!   [`MOST`] connections, and further ones wait.

use std::{io, path::PathBuf, time::Duration};

use axum::{
    Router,
    http::{HeaderValue, header},
    response::Response,
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::{
    access::{Access, Place, Token},
    listen::reachable,
};

/// Most connections at a time.
pub const MOST: usize = 512;

/// How long a client may take for a handshake, and for the head of a request.
const BEGINNING: Duration = Duration::from_secs(10);
/// How long answers under way have once the server ends.
const LAST_ANSWERS: Duration = Duration::from_millis(500);
/// Before another attempt to take a connection, where there is no descriptor for it.
const PAUSE: Duration = Duration::from_millis(100);

/// What every answer says to a browser: nothing from elsewhere is loaded, run, or may show this.
const HEADERS: [(header::HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
         img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// A port that is listened on, and who may come in.
pub struct Door {
    pub(crate) listener: TcpListener,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) place: Place,
    pub(crate) access: Access,
    pub(crate) token: Token,
    pub(crate) token_file: Option<PathBuf>,
}

impl Door {
    /// Where it is. The port is the real one.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The checks before everything.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// The address of `path` here.
    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.place.scheme(), reachable(self.place.address))
    }

    /// The token, if it was made now: nobody else knows it.
    pub fn new_token(&self) -> Option<&str> {
        self.token_file.is_none().then(|| self.token.expose())
    }

    /// Serves `public` to whoever belongs here and `private` to whoever has the token, until `stop`.
    pub async fn serve(self, public: Router, private: Router, stop: CancellationToken) {
        let routes = self.access.around(public, private);
        let routes = routes.layer(axum::middleware::map_response(with_headers));
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Some(ended) = connections.join_next() => tell(ended),
                stream = accept(&self.listener), if connections.len() < MOST => {
                    let (tls, routes, stop) = (self.tls.clone(), routes.clone(), stop.clone());
                    connections.spawn(begin(stream, tls, routes, stop));
                }
            }
        }
        drop(self.listener);
        let ending = async {
            while let Some(ended) = connections.join_next().await {
                tell(ended);
            }
        };
        if tokio::time::timeout(LAST_ANSWERS, ending).await.is_err() {
            connections.shutdown().await;
        }
    }
}

fn tell(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection's task failed");
    }
}

async fn with_headers(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                stream.set_nodelay(true).ok();
                return stream;
            }
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be taken");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn begin(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    routes: Router,
    stop: CancellationToken,
) {
    let ended = match tls {
        None => converse(stream, routes, &stop).await,
        Some(tls) => {
            let shaken = tokio::select! {
                shaken = tokio::time::timeout(BEGINNING, tls.accept(stream)) => shaken,
                () = stop.cancelled() => return,
            };
            match shaken {
                Ok(Ok(stream)) => converse(stream, routes, &stop).await,
                Ok(Err(error)) => Err(error.into()),
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    routes: Router,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(BEGINNING)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes))
        .with_upgrades();
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    Ok(ended?)
}
