//! What a server means by an answer that is no reply.
//!
//! Servers agree on little here: the same thing comes with different statuses, and the body is an
//! object in an object, an object, or text. Statuses are looked at first, and words where a status
//! means several things or none is given.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode, header::RETRY_AFTER};
use model::ModelError;
use serde_json::Value;

use crate::failure::{Account, Again, Failure};

/// The longest wait that a server may ask for.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

impl Account {
    /// An answer with a status other than success.
    pub(crate) fn refused(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Failure {
        if status.is_redirection() {
            let to = headers.get(http::header::LOCATION).and_then(|it| it.to_str().ok());
            let to = self.foreign(to.unwrap_or("elsewhere"));
            return Failure::never(ModelError::NotFound(format!(
                "{} redirects to {to} ({status}), where neither the key nor the conversation is sent \
                 unasked; set `baseUrl` (--base-url) to the final address",
                self.endpoint.url()
            )));
        }
        let text = String::from_utf8_lossy(body);
        let complaint = match serde_json::from_str(&text) {
            Ok(json) => Complaint::of(&json),
            // A web page says nothing to the reader of an error.
            Err(_) if text.trim_start().starts_with('<') => Complaint::default(),
            Err(_) => Complaint { message: text.into_owned(), ..Complaint::default() },
        };
        self.failure(Some(status), wait(headers), &complaint)
    }

    /// An error in the place of a piece of the reply.
    pub(crate) fn failed_midway(&self, error: &Value) -> Failure {
        let complaint = Complaint::of(error);
        let status = complaint.code.parse().ok().and_then(|code| StatusCode::from_u16(code).ok());
        let status = status.filter(|it| it.is_client_error() || it.is_server_error());
        self.failure(status, None, &complaint)
    }

    /// What an answer means; where no status came with it, the words alone tell.
    fn failure(
        &self,
        status: Option<StatusCode>,
        wait: Option<Duration>,
        said: &Complaint,
    ) -> Failure {
        let url = &self.endpoint.base_url;
        let model = &self.endpoint.model;
        let variable = self.key.variable();
        let answer = match (status, self.foreign(&said.message)) {
            (Some(status), message) if message.is_empty() => status.to_string(),
            (Some(status), message) => format!("{status}: {message}"),
            (None, message) if message.is_empty() => "it does not say why".to_owned(),
            (None, message) => message,
        };
        if said.is_about_length(status) {
            return Failure::never(ModelError::ContextTooLong(format!(
                "the conversation is too long for {model} at {url} ({answer}); begin a new one, or \
                 take a model with a larger context"
            )));
        }
        if said.is_about_money(status) {
            return Failure::never(ModelError::Refused(format!(
                "{url} does not answer before it is paid ({answer}); top up the account of the key in \
                 {variable}, or use another key"
            )));
        }
        if said.is_about_the_model(status) {
            return Failure::never(ModelError::NotFound(format!(
                "{url} has no model `{model}` ({answer}); set `model` (--model) to one it has"
            )));
        }
        let Some(status) = status else {
            return self.unavailable("is in trouble", &answer, wait);
        };
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Failure::never(ModelError::KeyRefused(format!(
                    "{url} refused the key in {variable} ({answer}); check that it belongs to this \
                     server and is still valid"
                )))
            }
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
                Failure::never(ModelError::NotFound(format!(
                    "there is nothing at {} ({answer}); check `baseUrl` (--base-url): many servers \
                     want it to end in /v1",
                    self.endpoint.url()
                )))
            }
            StatusCode::TOO_MANY_REQUESTS => self.unavailable("is asked too often", &answer, wait),
            StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT => {
                self.unavailable("gave up the request", &answer, wait)
            }
            status if status.is_server_error() => self.unavailable("is in trouble", &answer, wait),
            _ => Failure::never(ModelError::Refused(format!(
                "{url} refused the request ({answer}); if the model has no tools, take another with \
                 `model` (--model)"
            ))),
        }
    }

    fn unavailable(&self, how: &str, answer: &str, wait: Option<Duration>) -> Failure {
        let url = &self.endpoint.base_url;
        match wait {
            Some(wait) if wait > LONGEST_WAIT => Failure::never(ModelError::Unavailable(format!(
                "{url} {how} ({answer}) and wants {wait:?} of patience; try again then"
            ))),
            wait => Failure {
                error: ModelError::Unavailable(format!("{url} {how} ({answer}); try again later")),
                again: wait.map_or(Again::Soon, Again::After),
            },
        }
    }
}

/// What a server says is wrong.
#[derive(Debug, Default)]
struct Complaint {
    message: String,
    code: String,
}

impl Complaint {
    /// From `{"error": {…}}`, `{"error": "…"}`, or either without the outer object or in a list.
    fn of(json: &Value) -> Self {
        let json = json.get(0).unwrap_or(json);
        let error = json.get("error").filter(|it| !it.is_null()).unwrap_or(json);
        let message = ["message", "detail", "msg"].iter().find_map(|key| error.get(key));
        let code = [error.get("code"), error.get("type")].into_iter().flatten();
        let mut code = code.filter(|it| !it.is_null());
        Self {
            message: plain(message.unwrap_or(error)),
            code: code.next().map(plain).unwrap_or_default(),
        }
    }

    fn says(&self, words: &[&str]) -> bool {
        let said = format!("{} {}", self.message, self.code).to_lowercase();
        words.iter().any(|word| said.contains(word))
    }

    fn is_about_length(&self, status: Option<StatusCode>) -> bool {
        status == Some(StatusCode::PAYLOAD_TOO_LARGE)
            || status.is_none_or(|it| it.is_client_error() && it != StatusCode::TOO_MANY_REQUESTS)
                && self.says(&[
                    "context_length",
                    "context length",
                    "context window",
                    "context size",
                    "maximum context",
                    "prompt is too long",
                    "too many tokens",
                    "input is too long",
                ])
    }

    fn is_about_money(&self, status: Option<StatusCode>) -> bool {
        status == Some(StatusCode::PAYMENT_REQUIRED)
            || status.is_none_or(|it| it.is_client_error())
                && self.says(&["insufficient_quota", "insufficient balance", "billing"])
    }

    fn is_about_the_model(&self, status: Option<StatusCode>) -> bool {
        const MEANT: [StatusCode; 3] =
            [StatusCode::NOT_FOUND, StatusCode::BAD_REQUEST, StatusCode::FORBIDDEN];
        status.is_none_or(|it| MEANT.contains(&it))
            && (self.code == "model_not_found"
                || self.says(&["model"])
                    && self.says(&["not exist", "not found", "no such", "unknown model"]))
    }
}

/// A string as it is, anything else as JSON.
fn plain(json: &Value) -> String {
    json.as_str().map_or_else(|| json.to_string(), str::to_owned)
}

/// How long the server asks to wait: seconds or a date.
fn wait(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = httpdate::parse_http_date(text).ok()?;
    Some(at.duration_since(SystemTime::now()).unwrap_or_default())
}
