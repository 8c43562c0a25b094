//! Who may ask: where a request says it comes from and goes to, and its token.
//!
//! Guarantees:
//! - what comes from elsewhere, or without the token, is refused before anything of it is read or
//!   runs;
//! - tokens are compared in a time that does not depend on where they differ, and stand in no log
//!   and no error;
//! - a browser gets a secret of its own, in a cookie that scripts do not see and other sites do not
//!   send. It is another one with each start.

use std::{
    fmt::Write as _,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::post,
};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use subtle::ConstantTimeEq as _;

/// Fewest characters of a token: what is shorter can be guessed.
const FEWEST: usize = 16;
/// Most bytes of the file of a token, and of a request to log in.
const MOST: usize = 4096;
/// Where a browser says from where it was sent.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What opens the door.
#[derive(Clone, Debug)]
pub struct Token(SecretString);

/// There is no token.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields are named after the placeholders in the message")]
pub enum TokenError {
    #[error("no random token: {0}")]
    NoRandomness(getrandom::Error),
    #[error("cannot read the token file {}: {source}", path.display())]
    Unread { path: PathBuf, source: std::io::Error },
    #[error(
        "the token file {} must hold one line of {FEWEST} to {MOST} printable ASCII characters \
         without spaces: write one with `openssl rand -hex 32`",
        path.display()
    )]
    Malformed { path: PathBuf },
}

impl Token {
    /// 256 random bits.
    pub fn random() -> Result<Self, TokenError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(TokenError::NoRandomness)?;
        let mut text = String::with_capacity(64);
        for byte in bytes {
            // Writing to a string cannot fail.
            write!(text, "{byte:02x}").ok();
        }
        Ok(Self(text.into()))
    }

    /// The one line of a file.
    pub fn from_file(path: &Path) -> Result<Self, TokenError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| TokenError::Unread { path: path.to_owned(), source })?;
        let line = text.trim_end_matches(['\r', '\n']);
        let fits = (FEWEST..=MOST).contains(&line.len());
        if !fits || !line.bytes().all(|it| it.is_ascii_graphic()) {
            return Err(TokenError::Malformed { path: path.to_owned() });
        }
        Ok(Self(line.into()))
    }

    /// Its text, to be told to whoever started the server.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    fn is(&self, other: &str) -> bool {
        self.expose().as_bytes().ct_eq(other.as_bytes()).into()
    }
}

/// The checks. Clones share one token.
#[derive(Clone)]
pub struct Access(Arc<Rules>);

struct Rules {
    token: Token,
    /// What a browser that had the token gets.
    cookie: Token,
    /// Cookies are for all ports of a host: two servers must not take each other's.
    cookie_name: String,
    place: Place,
}

/// Where the server is.
#[derive(Clone, Debug)]
pub struct Place {
    /// What is listened on.
    pub address: SocketAddr,
    /// Whether it speaks TLS.
    pub tls: bool,
    /// Other origins by which it is reached, such as that of a proxy.
    pub origins: Vec<String>,
}

impl Place {
    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

    /// Why a request does not belong here.
    fn refuses(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<&'static str> {
        let Some(host) = only(headers, &header::HOST) else {
            return Some("the header Host must be there once");
        };
        if uri.authority().is_some_and(|it| it.as_str() != host) || !self.is_ours(host) {
            return Some(
                "the header Host names another server; a name by which this one is reached can be \
                 configured (`origins`)",
            );
        }
        if headers.contains_key(header::ORIGIN) {
            let origin = only(headers, &header::ORIGIN);
            let same = |it: &str| it == format!("{}://{host}", self.scheme());
            if !origin.is_some_and(|it| same(it) || self.origins.iter().any(|own| own == it)) {
                return Some("the request comes from a page of another origin");
            }
        }
        // A page may be opened from anywhere: without the cookie it shows nothing.
        let opens_page = method == Method::GET && uri.path() == "/";
        let from_here = |it: &str| matches!(it, "same-origin" | "none");
        if headers.contains_key(FETCH_SITE)
            && !opens_page
            && !only(headers, &FETCH_SITE).is_some_and(from_here)
        {
            return Some("the request was sent by a page of another site");
        }
        None
    }

    /// Whether a `Host` means this server. The port may be another one, that of a tunnel: whoever
    /// made a name mean this machine cannot have made it one of these.
    fn is_ours(&self, host: &str) -> bool {
        let configured = |it: &String| it.split_once("://").is_some_and(|(_, own)| own == host);
        if self.origins.iter().any(configured) {
            return true;
        }
        let Ok(authority) = host.parse::<axum::http::uri::Authority>() else { return false };
        if authority.as_str().contains('@') {
            return false;
        }
        let name = authority.host();
        let literal = name.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(name);
        let here = self.address.ip();
        match literal.parse::<IpAddr>() {
            Ok(ip) if here.is_unspecified() => !ip.is_multicast(),
            Ok(ip) => ip == here || (ip.is_loopback() && here.is_loopback()),
            Err(_) => {
                name.eq_ignore_ascii_case("localhost")
                    && (here.is_loopback() || here.is_unspecified())
            }
        }
    }
}

/// The value of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// What a browser sends to be let in.
#[derive(Deserialize)]
struct Login {
    token: SecretString,
}

impl Access {
    /// The checks of a server at `place`.
    pub fn new(token: Token, place: Place) -> Result<Self, TokenError> {
        let cookie = Token::random()?;
        let cookie_name = format!("dsh-{}", place.address.port());
        Ok(Self(Arc::new(Rules { token, cookie, cookie_name, place })))
    }

    /// Puts all checks before `private`, those of the place before `public`, and what every answer
    /// says to a browser behind both. `POST /login` is added.
    pub fn around(&self, public: Router, private: Router) -> Router {
        let token = middleware::from_fn_with_state(self.clone(), check_token);
        let place = middleware::from_fn_with_state(self.clone(), check_place);
        let login = post(login).layer(DefaultBodyLimit::max(MOST)).with_state(self.clone());
        // Which paths there are is told to nobody else.
        let private =
            private.fallback(async || refusal(StatusCode::NOT_FOUND, "there is no such page"));
        private.layer(token).merge(public.route("/login", login)).layer(place)
    }

    /// Whether these headers have the token or the cookie.
    pub(crate) fn lets_in(&self, headers: &HeaderMap) -> bool {
        if headers.contains_key(header::AUTHORIZATION) {
            let given = only(headers, &header::AUTHORIZATION).and_then(|it| {
                let (scheme, token) = it.split_once(' ')?;
                scheme.eq_ignore_ascii_case("bearer").then_some(token)
            });
            return given.is_some_and(|it| self.0.token.is(it));
        }
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok());
        let mut pairs = cookies.flat_map(|it| it.split("; ")).filter_map(|it| it.split_once('='));
        pairs.any(|(name, value)| name == self.0.cookie_name && self.0.cookie.is(value))
    }

    fn set_cookie(&self) -> Option<HeaderValue> {
        let Rules { cookie, cookie_name, place, .. } = &*self.0;
        let secure = if place.tls { "; Secure" } else { "" };
        let value = cookie.expose();
        let text = format!("{cookie_name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}");
        let mut value = HeaderValue::try_from(text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

async fn check_place(State(access): State<Access>, request: Request, next: Next) -> Response {
    let place = &access.0.place;
    if let Some(why) = place.refuses(request.method(), request.uri(), request.headers()) {
        return refusal(StatusCode::FORBIDDEN, why);
    }
    next.run(request).await
}

async fn check_token(State(access): State<Access>, request: Request, next: Next) -> Response {
    if !access.lets_in(request.headers()) {
        let why = "this needs the token: send the header `Authorization: Bearer TOKEN`";
        let mut response = refusal(StatusCode::UNAUTHORIZED, why);
        let bearer = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
        return response;
    }
    next.run(request).await
}

/// Gives the cookie for the token. Only for JSON, which no form of another site sends.
async fn login(State(access): State<Access>, headers: HeaderMap, body: Bytes) -> Response {
    let kind = only(&headers, &header::CONTENT_TYPE).unwrap_or_default();
    if kind.split(';').next().map(str::trim) != Some("application/json") {
        let why = "send the token as JSON: {\"token\": \"...\"}";
        return refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
    }
    let Ok(Login { token }) = serde_json::from_slice(&body) else {
        return refusal(StatusCode::BAD_REQUEST, "send the token as JSON: {\"token\": \"...\"}");
    };
    if !access.0.token.is(token.expose_secret()) {
        return refusal(StatusCode::UNAUTHORIZED, "this is not the token");
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Some(cookie) = access.set_cookie() {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// An answer that says why not.
pub(crate) fn refusal(status: StatusCode, why: &str) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], format!("{why}\n"))
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(address: &str) -> Place {
        let origins = vec!["https://dsh.example.org".to_owned()];
        Place { address: address.parse().unwrap(), tls: false, origins }
    }

    #[test]
    fn names_of_this_server() {
        for (address, host, ours) in [
            ("127.0.0.1:7171", "127.0.0.1:7171", true),
            ("127.0.0.1:7171", "localhost:7171", true),
            ("127.0.0.1:7171", "LOCALHOST", true),
            ("127.0.0.1:7171", "[::1]:7171", true),
            ("127.0.0.1:7171", "127.0.0.1:8000", true),
            ("127.0.0.1:7171", "dsh.example.org", true),
            ("127.0.0.1:7171", "dsh.example.org:7171", false),
            ("127.0.0.1:7171", "evil.example:7171", false),
            ("127.0.0.1:7171", "127.0.0.1.evil.example", false),
            ("127.0.0.1:7171", "localhost.evil.example", false),
            ("127.0.0.1:7171", "127.0.0.1@evil.example", false),
            ("127.0.0.1:7171", "evil@127.0.0.1", false),
            ("127.0.0.1:7171", "192.0.2.1:7171", false),
            ("127.0.0.1:7171", "", false),
            ("127.0.0.1:7171", "a b", false),
            ("192.0.2.1:7171", "192.0.2.1:7171", true),
            ("192.0.2.1:7171", "127.0.0.1:7171", false),
            ("192.0.2.1:7171", "localhost:7171", false),
            ("0.0.0.0:7171", "192.0.2.7:7171", true),
            ("0.0.0.0:7171", "localhost:7171", true),
            ("0.0.0.0:7171", "evil.example:7171", false),
        ] {
            assert_eq!(place(address).is_ours(host), ours, "{host} at {address}");
        }
    }

    #[test]
    fn requests_that_belong_elsewhere() {
        let place = place("127.0.0.1:7171");
        let refused = |path: &str, pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, value.parse().unwrap());
            }
            place.refuses(&Method::GET, &path.parse().unwrap(), &headers).is_some()
        };
        let host = ("host", "127.0.0.1:7171");
        assert!(!refused("/runs", &[host]));
        assert!(refused("/runs", &[]));
        assert!(refused("/runs", &[host, host]));
        assert!(refused("http://evil.example/runs", &[host]));
        assert!(!refused("/runs", &[host, ("origin", "http://127.0.0.1:7171")]));
        assert!(!refused("/runs", &[host, ("origin", "https://dsh.example.org")]));
        for origin in
            ["http://127.0.0.1:3000", "https://127.0.0.1:7171", "null", "", "http://localhost:7171"]
        {
            assert!(refused("/runs", &[host, ("origin", origin)]), "{origin}");
        }
        assert!(!refused("/runs", &[host, ("sec-fetch-site", "same-origin")]));
        for site in ["same-site", "cross-site", "?"] {
            assert!(refused("/runs", &[host, ("sec-fetch-site", site)]), "{site}");
            assert!(!refused("/", &[host, ("sec-fetch-site", site)]), "{site}");
        }
    }

    #[test]
    fn the_token_or_the_cookie_lets_in() {
        let access = Access::new(Token::random().unwrap(), place("127.0.0.1:7171")).unwrap();
        let token = access.0.token.expose().to_owned();
        let cookie = access.0.cookie.expose().to_owned();
        let lets_in = |name: &'static str, value: String| {
            access.lets_in(&HeaderMap::from_iter([(
                HeaderName::from_static(name),
                value.parse().unwrap(),
            )]))
        };
        assert!(lets_in("authorization", format!("Bearer {token}")));
        assert!(lets_in("authorization", format!("bearer {token}")));
        assert!(lets_in("cookie", format!("a=b; dsh-7171={cookie}")));
        for wrong in [format!("Bearer {cookie}"), token.clone(), "Bearer ".into(), "Bearer".into()]
        {
            assert!(!lets_in("authorization", wrong.clone()), "{wrong}");
        }
        for wrong in [format!("dsh-7171={token}"), format!("dsh-1={cookie}"), cookie.clone()] {
            assert!(!lets_in("cookie", wrong.clone()), "{wrong}");
        }
        assert!(!access.lets_in(&HeaderMap::new()));
        assert!(!format!("{:?}", access.0.token).contains(&token));
        assert!(access.set_cookie().unwrap().is_sensitive());
    }

    #[test]
    fn a_token_file_has_one_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            Token::from_file(file.path())
        };
        assert!(read("0123456789abcdef\n").unwrap().is("0123456789abcdef"));
        for wrong in ["", "short\n", "0123456789 abcdef", "0123456789abcdef\nmore\n"] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains("openssl rand"), "{error}");
        }
        let error = Token::from_file(Path::new("/nowhere/token")).unwrap_err().to_string();
        assert!(error.starts_with("cannot read the token file /nowhere/token"), "{error}");
    }
}
