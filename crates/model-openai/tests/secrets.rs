//! The key is in no error, no event and no log, not even where a server repeats it.

mod support;

use std::{
    io::Write,
    sync::{Arc, Mutex},
};

use dsh_core::lock;
use serde_json::json;

use support::{KEY, ask, config};
use testkit::chat::{Answer, End, Server, finish, refusal, status, stream, text};

/// A log that can be read.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_key_is_nowhere_but_in_the_header() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    // One thread runs all of this test.
    let _guard = tracing::subscriber::set_default(subscriber);

    let echo = format!("bad key {KEY} sent as Bearer {KEY}");
    let mut told = Vec::new();
    for answer in [
        stream(&[text("hello"), finish("stop")]),
        refusal("401 Unauthorized", &echo, "invalid_api_key"),
        status("500 Internal Server Error", &echo),
        status("200 OK", &echo),
        status("418 I'm a teapot", json!({ "detail": [echo] }).to_string()),
        stream(&[json!({ "error": { "message": echo } })]),
        Answer::Plain {
            status: "302 Found",
            headers: format!("location: https://elsewhere.example/?key={KEY}\r\n"),
            body: String::new(),
        },
        Answer::Close,
        Answer::Events { pieces: vec![b"data: {".to_vec()], end: End::Cut },
    ] {
        let server = Server::play([answer]).await;
        let mut config = config(server.address);
        config.max_retries = dsh_core::SafeInteger::of::<0>();
        told.push(format!("{:?}", ask(&config).await));
        assert!(server.requests()[0].head.contains(KEY), "it was sent");
    }
    let told = told.join("\n");
    assert!(!told.contains(KEY), "{told}");
    assert!(told.contains("bad key [key] sent as Bearer [key]"), "{told}");
    let log = String::from_utf8(lock(&log.0).clone()).unwrap();
    assert!(log.contains("127.0.0.1"), "the log was read: {log}");
    assert!(!log.contains(KEY), "{log}");
}
