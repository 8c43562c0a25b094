//! Watching a session and taking it over; what a page can send that harms nobody.

mod support;

use serde_json::{Value, json};
use support::{Site, code, opened, page::Page, session_of, typed};
use testkit::alone;
use tokio_tungstenite::tungstenite::{Message, protocol::frame::coding::CloseCode};

#[test]
fn a_person_takes_over_types_and_gives_back() {
    alone(async {
        let site = Site::open().await;
        let (agent, id) = opened(&site, "main").await;
        let (mut page, mut other) = (Page::open(&site).await, Page::open(&site).await);
        page.watch(&id).await;
        other.watch(&id).await;
        page.sees("dsh> ").await;

        // Nothing is typed, signalled or given back by who has not taken over.
        for request in ["type", "secret", "signal", "give"] {
            let mut frame = json!({ "type": request, "session": id });
            if request == "signal" {
                frame["signal"] = json!("SIGINT");
            } else if request != "give" {
                frame["text"] = json!("touch typed\r");
            }
            other.send(frame).await;
            let refused = other.frame("error").await;
            assert_eq!((&refused["of"], code(&refused)), (&json!(request), "NO_LEASE"));
        }
        page.send(json!({ "type": "take", "session": id })).await;
        let mut lease = page.frame("lease").await;
        while lease["mine"] == false {
            lease = page.frame("lease").await;
        }
        other.send(json!({ "type": "take", "session": id })).await;
        assert_eq!(code(&other.frame("error").await), "LEASE_HELD");
        while !other.world["agents"][0]["sessions"][0]["lease"].as_bool().unwrap_or_default() {
            other.frame("world").await;
        }
        let refused = typed(&site, &agent, &id, "touch agent").await;
        assert!(refused.contains("a person has taken over"), "{refused}");

        page.send(json!({ "type": "type", "session": id, "text": "echo by-$((40+2))\r" })).await;
        page.sees("by-42").await;
        other.sees("by-42").await;
        page.send(json!({ "type": "give", "session": id })).await;
        loop {
            let lease = page.frame("lease").await;
            if lease["held"] == false {
                break;
            }
        }
        let sent = typed(&site, &agent, &id, "echo mine").await;
        assert!(sent.contains("mine\ndsh> "), "{sent}");
        let notices: Vec<String> = agent.inbox().drain().into_iter().map(|it| it.text).collect();
        assert!(notices.join("\n").contains("echo by-"), "{notices:?}");
        assert!(!site.host.workspace().join("typed").exists());

        // A lease ends with its page.
        other.send(json!({ "type": "take", "session": id })).await;
        page.world_with(|it| session_of(it, "main")["lease"] == true).await;
        drop(other);
        page.world_with(|it| session_of(it, "main")["lease"] == false).await;
        let sent = typed(&site, &agent, &id, "echo again").await;
        assert!(sent.contains("again\ndsh> "), "{sent}");
        site.close().await;
    });
}

#[test]
fn a_secret_is_told_to_nobody() {
    alone(async {
        let site = Site::open().await;
        let (agent, id) = opened(&site, "main").await;
        let mut page = Page::open(&site).await;
        page.watch(&id).await;
        page.send(json!({ "type": "cards", "agent": "main" })).await;
        page.frame("cards").await;
        typed(&site, &agent, &id, "read -s -p 'Password: ' x && echo got ${#x}").await;
        page.sees("Password: ").await;
        page.send(json!({ "type": "take", "session": id })).await;
        page.send(json!({ "type": "secret", "session": id, "text": "hunter2-hush" })).await;
        page.sees("got 12").await;
        page.send(json!({ "type": "give", "session": id })).await;
        page.world_with(|it| session_of(it, "main")["lease"] == false).await;
        let sent = typed(&site, &agent, &id, "echo on").await;
        let notices: Vec<String> = agent.inbox().drain().into_iter().map(|it| it.text).collect();
        assert!(notices.join("\n").contains("12 bytes"), "{notices:?}");
        let list: Value =
            serde_json::from_str(&site.fetch("/runs").await.text().await.unwrap()).unwrap();
        let run = list[0]["id"].as_str().unwrap();
        let cards = site.fetch(&format!("/runs/{run}")).await.text().await.unwrap();
        for told in [sent, notices.join("\n"), page.world.to_string(), page.shown.clone(), cards] {
            assert!(!told.contains("hunter2"), "{told}");
        }
        site.close().await;
    });
}

#[test]
fn what_is_no_request_ends_its_page_alone() {
    alone(async {
        let site = Site::open().await;
        let (agent, id) = opened(&site, "main").await;
        let mut good = Page::open(&site).await;
        good.watch(&id).await;
        let huge = json!({ "type": "type", "session": id, "text": "x".repeat(70_000) }).to_string();
        for (frame, code, reason) in [
            (Message::text("hello"), CloseCode::Policy, "must be a JSON object"),
            (Message::text("[1]"), CloseCode::Policy, "must be a JSON object"),
            (Message::text("{\"type\":\"watch\"}"), CloseCode::Policy, "lacks a field"),
            (Message::binary(vec![0; 9]), CloseCode::Policy, "must be text"),
            (Message::text(huge), CloseCode::Size, "64 KiB"),
        ] {
            let mut page = Page::open(&site).await;
            page.send_raw(frame.clone()).await;
            let closed = page.closed().await.unwrap_or_else(|| panic!("no reason for {frame:?}"));
            assert_eq!(closed.code, code, "{closed:?}");
            assert!(closed.reason.contains(reason), "{closed:?}");
        }
        for (request, refused) in [
            (json!({ "type": "shout", "at": "<b>" }), "UNKNOWN_REQUEST"),
            (json!({ "type": "watch", "session": "pty-99" }), "NO_SESSION"),
            (json!({ "type": "watch", "session": "../../etc/passwd" }), "NO_SESSION"),
            (json!({ "type": "take", "session": "" }), "NO_SESSION"),
            (json!({ "type": "cards", "agent": "nobody" }), "NO_AGENT"),
            (json!({ "type": "kill", "agent": "nobody", "job": "pty-send-1" }), "NO_AGENT"),
            (json!({ "type": "kill", "agent": "main", "job": "pty-send-9" }), "UNKNOWN_JOB"),
        ] {
            good.send(request.clone()).await;
            let error = good.frame("error").await;
            assert_eq!((code(&error), &error["of"]), (refused, &request["type"]));
        }
        let sent = typed(&site, &agent, &id, "echo unharmed").await;
        assert!(sent.contains("unharmed\ndsh> "), "{sent}");
        good.sees("unharmed").await;
        site.close().await;
    });
}

#[test]
fn a_hundred_pages_that_read_nothing_slow_nobody() {
    alone(async {
        let site = Site::open().await;
        let (agent, id) = opened(&site, "main").await;
        let mut slow = Vec::new();
        for _ in 0..100 {
            let mut page = Page::open(&site).await;
            page.send(json!({ "type": "watch", "session": id })).await;
            slow.push(page);
        }
        let mut reader = Page::open(&site).await;
        reader.watch(&id).await;
        let sent = typed(&site, &agent, &id, "seq 100000; echo do''ne").await;
        assert!(sent.contains("99999\n100000\ndone\ndsh> "), "all of it is there");
        reader.sees("done").await;
        // Whoever reads again sees how it is now.
        let mut late = slow.pop().unwrap();
        late.sees("done").await;
        site.close().await;
    });
}

#[test]
fn pages_hear_of_the_end() {
    alone(async {
        let site = Site::open().await;
        let (agent, id) = opened(&site, "main").await;
        let mut page = Page::open(&site).await;
        page.watch(&id).await;
        typed(&site, &agent, &id, "exit 4").await;
        let ended = page.frame("ended").await;
        assert_eq!(ended["reason"], "its shell ended with status 4");
        site.stop();
        let closed = page.closed().await.unwrap();
        assert_eq!((closed.code, &*closed.reason), (CloseCode::Away, "the server ends"));
        site.close().await;
    });
}
