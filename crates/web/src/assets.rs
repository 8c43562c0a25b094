//! The page: files that are built into the binary.

use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};

use crate::access::{Access, refusal};

/// All files of the folder `page`, by name.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// What the question for the token needs. It tells nothing, so it needs no token.
const OPEN: [&str; 3] = ["icon.svg", "login.js", "style.css"];

/// `/`, which shows the page to whoever has the cookie and else asks for the token.
pub(crate) fn open(access: Access) -> Router {
    let router = Router::new().route("/", get(front).with_state(access));
    OPEN.into_iter().fold(router, |router, name| {
        router.route(&format!("/{name}"), get(move || async move { answer(name) }))
    })
}

/// The other files.
pub(crate) fn closed() -> Router {
    Router::new().route("/{file}", get(|Path(name): Path<String>| async move { answer(&name) }))
}

async fn front(State(access): State<Access>, headers: HeaderMap) -> Response {
    answer(if access.lets_in(&headers) { "index.html" } else { "login.html" })
}

fn answer(name: &str) -> Response {
    let Some((_, bytes)) = FILES.iter().find(|(it, _)| *it == name) else {
        return refusal(StatusCode::NOT_FOUND, "there is no such page");
    };
    ([(header::CONTENT_TYPE, kind(name))], *bytes).into_response()
}

/// The media type by the end of the name.
fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, end)| end) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}
