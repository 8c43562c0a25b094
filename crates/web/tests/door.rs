//! Who is let in, and who is not before anything runs.

mod support;

use std::sync::atomic::Ordering;

use reqwest::{Certificate, Client, Method, StatusCode};
use support::{Site, send, status};
use testkit::{alone, guarded};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// What there is behind the token.
const CLOSED: [&str; 6] = ["/app.js", "/runs", "/runs/x", "/live", "/mcp", "/nothing"];

#[test]
fn nothing_runs_without_the_token() {
    alone(async {
        let site = Site::open().await;
        let wrong = "0".repeat(64);
        for path in CLOSED {
            for method in [Method::GET, Method::POST, Method::DELETE, Method::OPTIONS] {
                let request = || site.http.request(method.clone(), site.url(path));
                let bearer = |token: &str| format!("Bearer {token}");
                for refused in [
                    request(),
                    request().header("authorization", bearer(&wrong)),
                    request().header("authorization", bearer("")),
                    request().header("authorization", &site.token),
                    request()
                        .header("cookie", format!("dsh-{}={}", site.address.port(), site.token)),
                    request().query(&[("token", &site.token)]),
                    request()
                        .header("authorization", bearer(&site.token))
                        .header("authorization", bearer(&wrong)),
                ] {
                    let answer = send(refused).await;
                    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{method} {path}");
                    assert_eq!(answer.headers()["www-authenticate"], "Bearer");
                    assert!(!answer.text().await.unwrap().contains(&site.token));
                }
            }
        }
        assert_eq!(site.ran.load(Ordering::SeqCst), 0);
        assert_eq!(site.fetch("/mcp").await.status(), StatusCode::OK);
        assert_eq!(site.ran.load(Ordering::SeqCst), 1);
        assert_eq!(site.fetch("/nothing").await.status(), StatusCode::NOT_FOUND);
        site.close().await;
    });
}

#[test]
fn nothing_runs_for_pages_of_others() {
    alone(async {
        let site = Site::open().await;
        let port = site.address.port();
        let elsewhere = [
            ("host", "evil.example".to_owned()),
            ("host", format!("evil.example:{port}")),
            ("host", format!("127.0.0.1.evil.example:{port}")),
            ("origin", "http://evil.example".to_owned()),
            ("origin", format!("http://127.0.0.1:{}", port ^ 1)),
            ("origin", format!("https://127.0.0.1:{port}")),
            ("origin", "null".to_owned()),
            ("sec-fetch-site", "cross-site".to_owned()),
            ("sec-fetch-site", "same-site".to_owned()),
        ];
        for path in CLOSED.into_iter().chain(["/login.js", "/login"]) {
            for (name, value) in &elsewhere {
                let request = site.get(path).bearer_auth(&site.token).header(*name, value);
                assert_eq!(status(request).await, StatusCode::FORBIDDEN, "{path} {name}: {value}");
            }
        }
        let login = site.http.post(site.url("/login")).header("origin", "http://evil.example");
        assert_eq!(status(login).await, StatusCode::FORBIDDEN);
        assert_eq!(site.ran.load(Ordering::SeqCst), 0);
        for own in [format!("http://127.0.0.1:{port}"), format!("http://localhost:{port}")] {
            let host = own.strip_prefix("http://").unwrap();
            let request = site.get("/mcp").header("host", host).header("origin", &own);
            assert_eq!(status(request.bearer_auth(&site.token)).await, StatusCode::OK);
        }
        site.close().await;
    });
}

#[test]
fn a_browser_gets_a_cookie_for_the_token() {
    alone(async {
        let site = Site::open().await;
        let port = site.address.port();
        let asking = send(site.get("/")).await.text().await.unwrap();
        assert!(asking.contains("/login.js") && !asking.contains("/app.js"), "{asking}");
        for open in ["/login.js", "/style.css", "/icon.svg"] {
            assert_eq!(status(site.get(open)).await, StatusCode::OK, "{open}");
        }

        assert_eq!(site.log_in("wrong").await.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(site.log_in(&"x".repeat(100_000)).await.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let login = || site.http.post(site.url("/login"));
        let form = login().header("content-type", "text/plain").body("{}");
        assert_eq!(status(form).await, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        let json = login().header("content-type", "application/json").body("{\"token\": 1}");
        assert_eq!(status(json).await, StatusCode::BAD_REQUEST);

        let entered = site.log_in(&site.token).await;
        assert_eq!(entered.status(), StatusCode::NO_CONTENT);
        let cookie = entered.headers()["set-cookie"].to_str().unwrap().to_owned();
        assert!(cookie.starts_with(&format!("dsh-{port}=")), "{cookie}");
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
        assert!(!cookie.contains(&site.token), "the token is not in the browser's store");
        let pair = cookie.split(';').next().unwrap();
        let page = send(site.get("/").header("cookie", pair)).await;
        assert!(page.text().await.unwrap().contains("/app.js"));
        for closed in ["/mcp", "/app.js", "/xterm.mjs"] {
            assert_eq!(status(site.get(closed)).await, StatusCode::UNAUTHORIZED);
            assert_eq!(status(site.get(closed).header("cookie", pair)).await, StatusCode::OK);
        }
        site.close().await;
    });
}

#[test]
fn every_answer_says_what_a_browser_may_do_with_it() {
    alone(async {
        let site = Site::open().await;
        for path in ["/", "/login.js", "/app.js", "/nothing"] {
            let answer = send(site.get(path)).await;
            let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
            let policy = header("content-security-policy");
            assert!(policy.starts_with("default-src 'none'; script-src 'self'; "), "{policy}");
            assert!(!policy.contains("unsafe"), "{policy}");
            assert_eq!(header("x-content-type-options"), "nosniff");
            assert_eq!(header("referrer-policy"), "no-referrer");
            assert_eq!(header("cache-control"), "no-store");
        }
        site.close().await;
    });
}

#[test]
fn what_is_no_request_harms_nobody() {
    alone(async {
        let site = Site::open().await;
        let port = site.address.port();
        for (text, begins) in [
            ("GET / HTTP/1.1\r\n\r\n".to_owned(), "HTTP/1.1 403"),
            (
                format!("GET / HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nhost: a\r\n\r\n"),
                "HTTP/1.1 403",
            ),
            (format!("GET http://a/ HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n"), "HTTP/1.1 403"),
            ("\0\0\0\0\r\n\r\n".to_owned(), "HTTP/1.1 400"),
            (format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(1 << 20)), "HTTP/1.1 431"),
        ] {
            let mut stream = TcpStream::connect(site.address).await.unwrap();
            // It may be refused before all of it was written.
            stream.write_all(text.as_bytes()).await.ok();
            let mut answer = [0; 12];
            match guarded("an answer", stream.read_exact(&mut answer)).await {
                Ok(_) => assert_eq!(String::from_utf8_lossy(&answer), begins),
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
            }
        }
        // One that begins and does not go on, and one that is kept open, end with the server.
        let mut begun = TcpStream::connect(site.address).await.unwrap();
        begun.write_all(b"GET / HT").await.unwrap();
        assert_eq!(site.fetch("/mcp").await.status(), StatusCode::OK);
        site.close().await;
        let mut rest = Vec::new();
        guarded("the end", begun.read_to_end(&mut rest)).await.ok();
        assert_eq!(rest, b"");
    });
}

#[test]
fn tls_with_a_certificate_of_ones_own() {
    alone(async {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let token = "a-token-of-one's-own";
        std::fs::write(folder.path().join("token"), token).unwrap();
        let config = format!(
            ", tls: {{ certificate: '{}', key: '{}' }}, tokenFile: '{}'",
            certificate.display(),
            key.display(),
            folder.path().join("token").display()
        );
        let trusted = Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
        let http = || Client::builder().tls_certs_only([trusted]);
        let site = Site::open_with(&config, http).await;
        assert_eq!(site.token, "", "one from a file is not told");
        let request = site.get("/mcp").bearer_auth(token);
        assert_eq!(status(request).await, StatusCode::OK);
        assert_eq!(status(site.get("/mcp")).await, StatusCode::UNAUTHORIZED);
        let entered = site.log_in(token).await;
        let cookie = entered.headers()["set-cookie"].to_str().unwrap();
        assert!(cookie.ends_with("; SameSite=Strict; Secure"), "{cookie}");
        // Who speaks no TLS is not answered, and nobody else is harmed.
        let mut plain = TcpStream::connect(site.address).await.unwrap();
        plain.write_all(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        guarded("the end", plain.read_to_end(&mut answer)).await.ok();
        assert!(!answer.starts_with(b"HTTP"));
        assert_eq!(status(site.get("/mcp").bearer_auth(token)).await, StatusCode::OK);
        site.close().await;
    });
}
