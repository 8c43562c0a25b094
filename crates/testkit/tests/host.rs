//! The host boots with the base layer and a private home, and the scripted plugin is configured
//! like any other.

use dsh_core::Cancel;
use serde_json::json;
use terminal::{SpawnRequest, Terminals};
use testkit::{Script, TestHost};

#[tokio::test]
async fn the_scripted_backend_is_a_plugin() {
    let script = Script::new();
    let name = script.name();
    let host = TestHost::boot(&format!(
        "- name: '@deepseek-ai/dsh-terminal'\n\
         - name: terminal-scripted\n  config: {{ backendType: shell, script: {name} }}\n"
    ))
    .await;
    let terminals = host.service::<Terminals>();
    assert_eq!(terminals.list_backends(), ["shell"]);
    let agent = host.agent("a");
    let request = SpawnRequest { kind: "shell".to_owned(), ..SpawnRequest::default() };
    terminals.spawn(&agent, request, &Cancel::new()).await.unwrap();
    assert_eq!(script.requests()[0].owner.workspace_root(), host.workspace());
    host.dispose().await.unwrap();
    assert_eq!(script.lines().last().map(String::as_str), Some("closed pty-1"));
}

#[tokio::test]
async fn what_does_not_fit_is_an_error_with_its_line() {
    let Err(error) = TestHost::try_boot("- name: terminal\n- name: terminal-scriptd\n").await
    else {
        panic!("it boots");
    };
    let error = error.to_string();
    assert!(error.contains("terminal-scripted") && error.contains('2'), "{error}");
}

#[tokio::test]
async fn calls_go_through_the_pipeline() {
    let host = TestHost::boot(&Script::new().composition()).await;
    let agent = host.agent("a");
    let result = host.call(&agent, "no_such_tool", json!({})).await;
    assert!(result.is_error());
    assert!(result.text().contains("no_such_tool"), "{}", result.text());
    host.dispose().await.unwrap();
}
