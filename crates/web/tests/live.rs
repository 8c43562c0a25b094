//! What a page is told, and what it can ask for.

mod support;

use serde_json::{Value, json};
use support::{Site, code, opened, page::Page, session_of, typed};
use testkit::alone;
use tokio_tungstenite::tungstenite::http::StatusCode;

#[test]
fn a_page_without_the_token_or_from_elsewhere_is_refused() {
    alone(async {
        let site = Site::open().await;
        let bearer = format!("Bearer {}", site.token);
        let port = site.address.port();
        let (own, other) =
            (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{}", port ^ 1));
        for (headers, status) in [
            (&[][..], StatusCode::UNAUTHORIZED),
            (&[("authorization", "Bearer 0")], StatusCode::UNAUTHORIZED),
            (&[("origin", &*own)], StatusCode::UNAUTHORIZED),
            (&[("authorization", &*bearer), ("origin", &*other)], StatusCode::FORBIDDEN),
            (&[("authorization", &*bearer), ("origin", "null")], StatusCode::FORBIDDEN),
            (&[("authorization", &*bearer), ("host", "evil.example")], StatusCode::FORBIDDEN),
        ] {
            let refused = Page::try_open(&site, headers).await.err();
            assert_eq!(refused, Some(status), "{headers:?}");
        }
        let mut page = Page::try_open(&site, &[("authorization", &bearer), ("origin", &own)])
            .await
            .ok()
            .unwrap();
        let hello = page.frame("hello").await;
        assert_eq!(hello["host"]["pid"], std::process::id());
        assert_eq!(page.frame("world").await["agents"], json!([]));
        site.close().await;
    });
}

#[test]
fn the_world_and_the_cards_follow_what_happens() {
    alone(async {
        let site = Site::open().await;
        let mut page = Page::open(&site).await;
        let (agent, id) = opened(&site, "main").await;
        page.world_with(|it| session_of(it, "main")["id"] == *id).await;
        page.send(json!({ "type": "cards", "agent": "main" })).await;
        let cards = page.frame("cards").await;
        assert_eq!(cards["cards"][0]["card"]["tool"], "terminal_open");

        typed(&site, &agent, &id, "(exit 3)").await;
        let begun = page.frame("card").await;
        assert_eq!(begun["agent"], "main");
        let card =
            if begun["card"]["state"] == "running" { page.frame("card").await } else { begun };
        let told = json!([
            card["card"]["kind"],
            card["card"]["state"],
            card["card"]["title"],
            card["card"]["description"],
            card["card"]["exitStatus"]
        ]);
        assert_eq!(told, json!(["terminal", "done", "(exit 3)", format!("Terminal {id}"), 3]));
        let world = page
            .world_with(|it| session_of(it, "main")["lastCommands"][0]["exitStatus"] == 3)
            .await;
        let session = session_of(&world, "main");
        assert_eq!(session["lastCommands"][0]["text"], "(exit 3)");
        assert_eq!(session["status"], json!({ "kind": "running" }));
        assert_eq!((&session["lease"], session.get("live")), (&json!(false), None));

        site.host.dispose_agent(&agent).await.unwrap();
        page.world_with(|it| it["agents"] == json!([])).await;
        page.send(json!({ "type": "cards", "agent": "main" })).await;
        assert_eq!(code(&page.frame("error").await), "NO_AGENT");
        site.close().await;
    });
}

#[test]
fn a_job_is_ended_and_its_owner_told() {
    alone(async {
        let site = Site::open().await;
        let (agent, id) = opened(&site, "main").await;
        let other = site.host.agent("other");
        let mut page = Page::open(&site).await;
        let background =
            json!({ "sessionId": id, "text": "sleep 1000", "run_in_background": true });
        site.host.call(&agent, "terminal_send", background).await;
        let world = page.world_with(|it| it["agents"][0]["jobs"][0]["status"] == "running").await;
        let job = world["agents"][0]["jobs"][0]["id"].as_str().unwrap().to_owned();
        page.send(json!({ "type": "kill", "agent": "other", "job": job })).await;
        assert_eq!(code(&page.frame("error").await), "UNKNOWN_JOB", "it is of another agent");
        page.send(json!({ "type": "kill", "agent": "main", "job": job })).await;
        page.world_with(|it| it["agents"][0]["jobs"][0]["status"] == "killed").await;
        let notices: Vec<String> = agent.inbox().drain().into_iter().map(|it| it.text).collect();
        assert!(
            notices[0].starts_with("[a person asked for the end of background job"),
            "{notices:?}"
        );
        drop(other);
        site.close().await;
    });
}

#[test]
fn runs_of_the_past_are_found_by_their_ids_alone() {
    alone(async {
        let site = Site::open().await;
        let (agent, id) = opened(&site, "main").await;
        typed(&site, &agent, &id, "echo '<img src=x>'").await;
        site.host.dispose_agent(&agent).await.unwrap();
        let list: Value =
            serde_json::from_str(&site.fetch("/runs").await.text().await.unwrap()).unwrap();
        assert_eq!((&list[0]["agent"], &list[0]["calls"]), (&json!("main"), &json!(2)));
        let run = list[0]["id"].as_str().unwrap();
        let answer = site.fetch(&format!("/runs/{run}")).await;
        assert_eq!(answer.headers()["content-type"], "application/json");
        let shown: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        assert_eq!(shown["id"], *run);
        assert_eq!(shown["cards"][1]["card"]["title"], "echo '<img src=x>'");
        assert_eq!(shown["cards"][1]["card"]["exitStatus"], 0);
        for unknown in ["main", "0", "..%2F..%2Fetc%2Fpasswd", "%00", "....", "session.jsonl.zstd"]
        {
            let answer = site.fetch(&format!("/runs/{unknown}")).await;
            assert_eq!(answer.status().as_u16(), 404, "{unknown}");
        }
        site.close().await;
    });
}
