//! The plugin row: it provides the service, and collects orphans while it runs.
#![cfg(target_os = "linux")]

mod support;

use std::process::Command;

use dsh_core::{App, Composition, Plan, PluginEntry, Vocabulary};
use subprocess::Subprocess;
use support::{bash, children, guarded};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orphans_are_collected_and_other_children_are_not() {
    let (_kept, home) = support::temp();
    let text = format!("- name: subprocess\n  config: {{ home: {} }}\n", home.display());
    let composition = Composition::parse("test", &text, &Vocabulary::default()).unwrap();
    let app =
        App::start(Plan::resolve(&composition, &PluginEntry::linked()).unwrap()).await.unwrap();
    let host = app.service::<Subprocess>().unwrap();
    let mut own = Command::new("/bin/sh").args(["-c", "exit 5"]).spawn().unwrap();

    let mut process = host.spawn(bash()).await.unwrap();
    let leader = process.pid();
    let mut output = Vec::new();
    for _ in 0..20 {
        process.write(b"(setsid -f sleep 0.01)\r");
    }
    process.write(b"echo END\r");
    guarded("the commands end", async {
        while !String::from_utf8_lossy(&output).contains("\nEND") {
            process.next(None, &mut output).await;
        }
    })
    .await;
    let own_pid = own.id().cast_signed();
    guarded("orphans are collected", async {
        let expected = |it: &i32| *it == leader || *it == own_pid;
        while !children().iter().all(expected) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(own.wait().unwrap().code(), Some(5));

    // A leader that ended is kept for whoever asks.
    process.write(b"exit 6\r");
    guarded("it exits", async {
        while process.next(None, &mut output).await
            != subprocess::Event::Exited(subprocess::ExitStatus::Code(6))
        {}
    })
    .await;
    process.terminate(std::time::Duration::from_secs(3), &mut output).await.unwrap();
    drop(process);
    let records = || std::fs::read_dir(home.join("hosts")).unwrap().count();
    assert_eq!(records(), 1);
    app.dispose().await.unwrap();
    assert_eq!(records(), 0);
    assert_eq!(children(), Vec::<i32>::new());
}
