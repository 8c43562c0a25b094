//! Starting, failing to start, and disposing.

use std::sync::atomic::Ordering::SeqCst;

use dsh_core::{App, Scope, app::StartError};

use crate::plugins::{Applause, Show, Voices, plan, take_log};

async fn fails(yaml: &str) -> StartError {
    match App::start(plan(yaml)).await {
        Err(error) => error,
        Ok(_) => panic!("must not start: {yaml}"),
    }
}

#[tokio::test]
async fn rows_stop_in_reverse_and_contributions_vanish() {
    let yaml =
        "- name: concert\n- name: voice\n  id: alto\n- name: voice\n  id: bass\n- name: voices\n";
    let app = App::start(plan(yaml)).await.unwrap();
    let voices = app.service::<Voices>().unwrap();
    assert_eq!(voices.names(), ["alto", "bass"]);

    // An owner's scope ends while the application keeps running.
    let owner = app.scope().child("agent-1").unwrap();
    voices.contribute(&owner, "aria", "o sole".to_owned()).unwrap();
    assert_eq!(owner.pending(), ["voice `aria`"]);
    assert_eq!(
        voices.contribute(&owner, "bass", String::new()).err().unwrap().to_string(),
        "voice `bass` is already registered"
    );
    owner.dispose().await.unwrap();
    assert_eq!(voices.names(), ["alto", "bass"]);
    assert_eq!(
        voices.contribute(&owner, "late", String::new()).err().unwrap().to_string(),
        "scope `agent-1` is closed"
    );

    app.dispose().await.unwrap();
    assert!(voices.names().is_empty());
    assert!(app.service::<Voices>().is_none());
    assert_eq!(
        take_log(),
        [
            "start voices",
            "start concert",
            "start alto",
            "start bass",
            "stop bass",
            "stop alto",
            "stop concert",
            "stop voices",
        ]
    );
}

#[tokio::test]
async fn registries_keep_the_order_of_registration() {
    let app = App::start(plan("- name: voices\n")).await.unwrap();
    let voices = app.service::<Voices>().unwrap();
    for name in ["c", "a", "b"] {
        voices.contribute(app.scope(), name, name.to_uppercase()).unwrap();
    }
    let again = voices.contribute(app.scope(), "d", "D".to_owned()).unwrap();
    again.undo().await.unwrap();
    voices.contribute(app.scope(), "d", "D2".to_owned()).unwrap();
    again.undo().await.unwrap();
    assert_eq!(voices.names(), ["c", "a", "b", "d"]);
    assert_eq!(voices.values(), ["C", "A", "B", "D2"]);
    assert_eq!((voices.get("a").as_deref(), voices.get("x")), (Some("A"), None));
    app.dispose().await.unwrap();
}

#[tokio::test]
async fn an_optional_service_is_looked_up_at_each_call() {
    let yaml = "- name: voices\n- name: voice\n- name: concert\n  config: { encore: true }\n";
    let app = App::start(plan(yaml)).await.unwrap();
    assert_eq!((app.service::<Show>().unwrap())(), "la: silence encore");
    app.dispose().await.unwrap();

    let app = App::start(plan(&format!("{yaml}- name: audience\n"))).await.unwrap();
    let (show, applause) = (app.service::<Show>().unwrap(), app.service::<Applause>().unwrap());
    assert_eq!(show(), "la: applause 0 encore");
    applause.store(7, SeqCst);
    assert_eq!(show(), "la: applause 7 encore");
    app.dispose().await.unwrap();
    assert_eq!(show(), ": silence encore");
}

#[tokio::test]
async fn a_failed_start_undoes_what_had_started() {
    for (kind, cause) in [
        ("error", "no disk"),
        ("panic", "panicked: bug in setup"),
        (
            "undeclared",
            "plugin `trouble` used service `voices` without declaring it in `Inject` (declared: applause)",
        ),
    ] {
        let yaml = format!(
            "- name: voices\n- name: trouble\n  config: {{ kind: {kind} }}\n- name: audience\n  id: late\n  disabled: true\n"
        );
        let error = fails(&yaml).await;
        assert!(error.rollback.is_none());
        assert_eq!(error.to_string(), format!("dsh.yml:2: row `trouble` failed to start: {cause}"));
        assert_eq!(take_log(), ["start voices", "start trouble", "stop trouble", "stop voices"]);
    }
}

#[tokio::test]
async fn checks_run_after_every_contribution_and_all_are_reported() {
    // `concert` starts before the row with the voice, and still finds the voice in its check.
    let app = App::start(plan("- name: voices\n- name: concert\n- name: voice\n")).await.unwrap();
    app.dispose().await.unwrap();
    take_log();

    let error = fails(
        "- name: voices\n- name: concert\n- name: trouble\n  config: { kind: check }\n- name: trouble\n  id: t2\n  config: { kind: check-panic }\n",
    )
    .await;
    assert_eq!(
        error.to_string(),
        "dsh.yml:2: row `concert` failed to start: no voice is registered
dsh.yml:3: row `trouble` failed to start: not ready
dsh.yml:5: row `t2` failed to start: panicked: bug in check"
    );
    assert_eq!(take_log().last().unwrap(), "stop voices");
}

#[tokio::test]
async fn a_rollback_that_is_incomplete_is_reported_too_and_can_be_tried_again() {
    let plan = plan(
        "- name: voices\n- name: trouble\n  id: stubborn\n  config: { kind: cleanup }\n- name: trouble\n  config: { kind: error }\n",
    );
    let root = Scope::root("app");
    let Err(error) = App::start_in(root.clone(), plan).await else { panic!("must fail") };
    assert_eq!(
        error.to_string(),
        "dsh.yml:5: row `trouble` failed to start: no disk
and what had been started could not all be undone: 1 cleanup(s) failed in scope `app`
  stubborn: 1 cleanup(s) failed in scope `stubborn`
    stubborn: pid 7 is still there"
    );
    assert_eq!(take_log().last().unwrap(), "stop voices");
    root.dispose().await.unwrap();
    assert_eq!(take_log(), ["attempt 2"]);
    assert!(root.pending().is_empty());
}

#[tokio::test]
async fn a_failed_disposal_goes_on_and_is_tried_again_for_what_is_left() {
    let yaml = "- name: voices\n- name: trouble\n  config: { kind: cleanup }\n- name: voice\n";
    let app = App::start(plan(yaml)).await.unwrap();
    take_log();
    let error = app.dispose().await.unwrap_err();
    assert_eq!(error.failures.len(), 1);
    assert_eq!(take_log(), ["stop voice", "attempt 1", "stop trouble", "stop voices"]);
    assert_eq!(app.scope().pending(), ["trouble"]);
    app.dispose().await.unwrap();
    assert_eq!(take_log(), ["attempt 2"]);
    assert!(app.scope().pending().is_empty());
    app.dispose().await.unwrap();
}

#[tokio::test]
async fn a_start_that_nobody_waits_for_any_more_can_be_undone() {
    let root = Scope::root("app");
    let yaml = "- name: voices\n- name: trouble\n  config: { kind: hang }\n- name: voice\n";
    let mut start = Box::pin(App::start_in(root.clone(), plan(yaml)));
    assert!(futures_util::poll!(&mut start).is_pending());
    drop(start);
    root.dispose().await.unwrap();
    assert_eq!(take_log(), ["start voices", "start trouble", "stop trouble", "stop voices"]);

    let Err(error) = App::start_in(root, plan("- name: voices\n")).await else { panic!("closed") };
    assert_eq!(error.to_string(), "dsh.yml:1: row `voices` failed to start: scope `app` is closed");
}
