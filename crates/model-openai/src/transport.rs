//! One attempt on the wire: a request, and the events of its answer.
//!
//! Guarantees:
//! - dropping the future or the stream closes the connection;
//! - every answer but a stream of events is read here, so that its status counts and the library
//!   neither guesses what it means nor logs it.

use std::sync::{Arc, OnceLock};

use async_openai::{
    Client, config::Config as ClientConfig, error::OpenAIError, middleware::HttpRequestFactory,
};
use futures_util::{Stream, TryStreamExt as _};
use http::{
    HeaderMap,
    header::{CONTENT_TYPE, HeaderValue},
};
use reqwest::{Body, Certificate, Response, redirect::Policy};
use secrecy::SecretString;
use serde_json::Value;

use crate::{
    chunk::Chunk,
    config::Config,
    failure::{Account, Failure},
};

/// Most bytes that are read of an answer that is no reply.
const MOST_OF_A_REFUSAL: usize = 64 << 10;

/// A connection pool to one endpoint.
pub(crate) struct Transport {
    http: reqwest::Client,
    pub(crate) account: Account,
}

/// The error that ended the body of an answer. The library tells of it only in words.
type Lost = Arc<OnceLock<Failure>>;

impl Transport {
    pub(crate) fn new(config: &Config, account: Account) -> anyhow::Result<Self> {
        // Fails where one is installed already, which is as good.
        rustls::crypto::ring::default_provider().install_default().ok();
        // Besides the certificates of the system, which a small container does not have.
        let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
        let roots = roots.map(|it| Certificate::from_der(it)).collect::<Result<Vec<_>, _>>()?;
        let mut http = reqwest::Client::builder()
            .connect_timeout(config.connect_timeout())
            .read_timeout(config.idle_timeout())
            .redirect(Policy::none())
            .tls_certs_merge(roots)
            .user_agent(concat!("dsh/", env!("CARGO_PKG_VERSION")));
        if account.endpoint.is_local() {
            http = http.no_proxy();
        }
        Ok(Self { http: http.build()?, account })
    }

    /// Sends the request and waits until the answer begins.
    pub(crate) async fn open(
        &self,
        body: &Value,
    ) -> Result<impl Stream<Item = Result<Chunk, Failure>> + Unpin + use<>, Failure> {
        let lost = Lost::default();
        let client = Client::build(self.http.clone(), self.account.clone());
        let client = client.with_http_service(self.service(&lost));
        let account = self.account.clone();
        let explain = move |error| explained(&account, error, &lost);
        let chunks = client.chat().create_stream_byot(body).await;
        Ok(chunks.map_err(&explain)?.map_err(explain))
    }

    /// What the library sends its requests through.
    fn service(
        &self,
        lost: &Lost,
    ) -> impl tower::Service<HttpRequestFactory, Response = Response, Error = Failure, Future: Send>
    + Clone
    + Send
    + Sync
    + use<> {
        let (http, account, lost) = (self.http.clone(), self.account.clone(), Arc::clone(lost));
        tower::service_fn(move |request: HttpRequestFactory| {
            let (http, account, lost) = (http.clone(), account.clone(), Arc::clone(&lost));
            async move {
                let request = request.build().await;
                let request = request.map_err(|error| explained(&account, error, &lost))?;
                let response = http.execute(request).await;
                let response = response.map_err(|error| account.unanswered(&error))?;
                events(response, account, lost).await
            }
        })
    }
}

/// The answer, if it is a stream of events.
async fn events(response: Response, account: Account, lost: Lost) -> Result<Response, Failure> {
    let (status, headers) = (response.status(), response.headers().clone());
    if !status.is_success() {
        let body = beginning(response).await;
        return Err(account.refused(status, &headers, &body));
    }
    // Some servers send events under another type, but never under these.
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let kind = String::from_utf8_lossy(kind);
    if ["application/json", "text/html"].iter().any(|it| kind.starts_with(it)) {
        let body = beginning(response).await;
        let json: Option<Value> = serde_json::from_slice(&body).ok();
        return Err(match json.as_ref().and_then(|it| it.get("error")) {
            Some(error) => account.failed_midway(error),
            None => account.malformed(&format!("{kind} instead of a stream of events")),
        });
    }
    let body = response.bytes_stream().inspect_err(move |error| {
        lost.get_or_init(|| account.lost(error));
    });
    Ok(http::Response::new(Body::wrap_stream(body)).into())
}

/// The beginning of a body; what cannot be read of it is left out.
async fn beginning(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(bytes)) = response.chunk().await {
        body.extend_from_slice(&bytes);
        if body.len() >= MOST_OF_A_REFUSAL {
            body.truncate(MOST_OF_A_REFUSAL);
            break;
        }
    }
    body
}

fn explained(account: &Account, error: OpenAIError, lost: &Lost) -> Failure {
    match error {
        OpenAIError::Boxed(error) => match error.downcast::<Failure>() {
            Ok(failure) => *failure,
            Err(error) => account.malformed(&error.to_string()),
        },
        OpenAIError::Reqwest(error) => account.unanswered(&error),
        OpenAIError::StreamError(error) => match lost.get() {
            Some(failure) => failure.clone(),
            None => account.malformed(&format!("something else than events ({error})")),
        },
        OpenAIError::JSONDeserialize(error, _) => {
            account.malformed(&format!("a piece of its answer that cannot be read ({error})"))
        }
        error => account.malformed(&error.to_string()),
    }
}

impl From<Failure> for OpenAIError {
    fn from(failure: Failure) -> Self {
        Self::Boxed(Box::new(failure))
    }
}

impl ClientConfig for Account {
    fn headers(&self) -> HeaderMap {
        self.key.headers()
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.endpoint.base_url)
    }

    fn query(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }

    fn api_base(&self) -> &str {
        &self.endpoint.base_url
    }

    fn api_key(&self) -> &SecretString {
        self.key.secret()
    }
}
