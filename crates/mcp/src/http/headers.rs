//! What the headers of a request have to say.

use axum::http::{HeaderMap, StatusCode, header};
use rmcp::model::ProtocolVersion;

use super::refusal::Refusal;

pub(super) const JSON: &str = "application/json";
pub(super) const EVENTS: &str = "text/event-stream";

pub(super) const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
const LAST_EVENT: &str = "last-event-id";

/// The versions that have sessions.
pub(super) fn supported() -> &'static [ProtocolVersion] {
    ProtocolVersion::known_up_to(&ProtocolVersion::LATEST_WITH_INITIALIZE)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|it| it.to_str().ok())
}

/// The session that a request belongs to.
pub(super) fn session(headers: &HeaderMap) -> Option<&str> {
    text(headers, SESSION)
}

/// The event that a client had last.
pub(super) fn last_event(headers: &HeaderMap) -> Option<&str> {
    text(headers, LAST_EVENT)
}

/// The client takes each of these media types.
pub(super) fn check_accept(headers: &HeaderMap, types: &[&str]) -> Result<(), Refusal> {
    let lines = headers.get_all(header::ACCEPT);
    let takes = |media: &str| {
        let group = media.split('/').next().unwrap_or_default();
        let listed = lines.iter().filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(','));
        listed.map(|it| it.split(';').next().unwrap_or_default().trim()).any(|it| {
            it == "*/*"
                || it.eq_ignore_ascii_case(media)
                || it.strip_suffix("/*").is_some_and(|it| it.eq_ignore_ascii_case(group))
        })
    };
    if lines.iter().next().is_none() || types.iter().all(|it| takes(it)) {
        return Ok(());
    }
    let wanted = types.join(", ");
    Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, &format!("send `Accept: {wanted}`")))
}

/// The body is JSON.
pub(super) fn check_content(headers: &HeaderMap) -> Result<(), Refusal> {
    let said = headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let essence = said.and_then(|it| it.split(';').next()).unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case(JSON) {
        return Ok(());
    }
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    Err(Refusal::new(status, &format!("send the message with `Content-Type: {JSON}`")))
}

/// The version of MCP, where one is named, is served here.
pub(super) fn check_version(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers.get(VERSION) {
        None => Ok(()),
        Some(it) if supported().iter().any(|known| known.as_str().as_bytes() == it.as_bytes()) => {
            Ok(())
        }
        Some(it) => Err(Refusal::version(None, &String::from_utf8_lossy(it.as_bytes()))),
    }
}

/// Whether the client knows events without data.
pub(super) fn knows_empty_events(headers: &HeaderMap) -> bool {
    text(headers, VERSION) == Some(ProtocolVersion::V_2025_11_25.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_types() {
        for (lines, both) in [
            (&[][..], true),
            (&["*/*"][..], true),
            (&["application/json, text/event-stream"], true),
            (&["application/json", "TEXT/Event-Stream;q=0.5"], true),
            (&["application/*,text/*"], true),
            (&["application/json"], false),
            (&["text/event-stream"], false),
            (&["text/html"], false),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::ACCEPT, line.parse().unwrap());
            }
            assert_eq!(check_accept(&headers, &[JSON, EVENTS]).is_ok(), both, "{lines:?}");
        }
    }

    #[test]
    fn versions() {
        for (version, served) in [
            ("2024-11-05", true),
            ("2025-06-18", true),
            ("2025-11-25", true),
            ("2026-07-28", false),
            ("1", false),
        ] {
            let headers = HeaderMap::from_iter([(
                header::HeaderName::from_static(VERSION),
                version.parse().unwrap(),
            )]);
            assert_eq!(check_version(&headers).is_ok(), served, "{version}");
        }
    }
}
