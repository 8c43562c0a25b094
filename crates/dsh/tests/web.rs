//! `dsh web` as a program: where it listens, what it prints, how it ends.

mod support;

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::TcpListener,
};

use support::{Listening, dsh, kill};
use tempfile::TempDir;

#[test]
fn what_cannot_be_listened_on_is_refused() {
    let folder = TempDir::new().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    fs::write(folder.path().join("short"), "short\n").unwrap();
    for (arguments, says) in [
        (&["--listen", &address][..], "is in use by another program"),
        (&["--listen", "0.0.0.0:0"], "can be reached from other machines"),
        (&["--listen", "192.0.2.1:0", "--insecure-listen"], "cannot listen on 192.0.2.1:0"),
        (&["--listen", "example.org:80"], "is no address"),
        (&["--token-file", "none"], "cannot read the token file none"),
        (&["--token-file", "short"], "must hold one line of 16"),
        (&["--tls-cert", "a"], "--tls-key"),
        (&["--tls-cert", "a", "--tls-key", "b"], "cannot read the certificate a"),
    ] {
        let all: Vec<&str> = ["web", "--listen", "127.0.0.1:0"].into_iter().collect();
        let first = if arguments[0] == "--listen" { &all[..1] } else { &all[..] };
        let said = dsh(folder.path(), &[first, arguments].concat());
        let errors = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(says), "{arguments:?}: {errors}");
    }
    let shown = dsh(folder.path(), &["web", "--listen", "127.0.0.1:1", "--dump-config"]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("listen: 127.0.0.1:1"), "{text}");
}

#[tokio::test]
async fn it_prints_its_address_once_and_ends_in_order() {
    let mut host = Listening::start(&["web"], |it| {
        it.env("DSH_LOG", "trace");
    });
    let address = host.told("http://");
    let (address, token) = address.split_once("/#token=").unwrap();
    assert_eq!(token.len(), 64);
    let http = std::net::TcpStream::connect(address).unwrap();
    let request =
        format!("GET /runs HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\r\n");
    std::io::Write::write_all(&mut &http, request.as_bytes()).unwrap();
    let answer = BufReader::new(&http).lines().next().unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
    kill("TERM", host.child.id());
    assert!(!host.rest().iter().any(|it| it.contains(token)), "the token is in no log");
    assert_eq!(host.ended().await, Some(128 + 15));
}
