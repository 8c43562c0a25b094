//! Recordings of sessions.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::PathBuf;

use asciicast::{EventKind, Recording};
use dsh_core::Cancel;
use terminal::{SpawnRequest, WindowSize};

use crate::shell::{Bench, assert_prompt, bench};

const CONFIG: &str = "{ record: true, recordMaxBytes: 4000, idleSilenceMs: 300 }";

/// The only recording there is.
fn recording(bench: &Bench) -> (PathBuf, Recording) {
    let folder = bench.host.home().join("recordings");
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    let [path] = files.as_slice() else { panic!("{files:?}") };
    let text = std::fs::read_to_string(path).unwrap();
    (path.clone(), Recording::parse(&text).unwrap())
}

#[test]
fn a_recording_has_what_was_shown_and_no_secret() {
    bench(CONFIG, async |bench| {
        let shell = bench.open().await;
        shell.run("printf '\\e[1mbold\\e[0m\\n'", 0).await;
        shell.send("read -s -p 'Password: ' x").await;
        assert_prompt(&shell.send("hunter2").await, Some(0));
        let size = WindowSize { rows: 20, columns: 100 };
        shell.terminals().resize(&bench.agent, &shell.id, size).await.unwrap();
        shell.send("exit 4").await;
        shell.close().await.unwrap();

        let (path, recording) = recording(bench);
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(name, format!("{}-pty-1.cast", bench.agent.id()));
        let (mut shown, mut typed) = (String::new(), String::new());
        for event in &recording.events {
            match &event.kind {
                EventKind::Output(text) => shown.push_str(text),
                EventKind::Input(text) => typed.push_str(text),
                _ => {}
            }
        }
        assert!(shown.contains("\u{1b}[1mbold\u{1b}[0m\r\n"), "{shown:?}");
        assert!(shown.contains("Password: ") && !shown.contains("133;"), "{shown:?}");
        assert!(typed.contains("read -s") && !typed.contains("hunter2"), "{typed:?}");
        let kinds: Vec<_> = recording.events.iter().map(|event| &event.kind).collect();
        assert!(kinds.contains(&&EventKind::Resize { columns: 100, rows: 20 }), "{kinds:?}");
        assert_eq!(kinds.last(), Some(&&EventKind::Exit("4".to_owned())));
    });
}

#[test]
fn a_recording_is_bounded_and_ends_with_its_session() {
    bench(CONFIG, async |bench| {
        let shell = bench.open().await;
        shell.run("seq 2000 | tail -n 1", 0).await;
        assert_prompt(&shell.send("seq 2000").await, Some(0));
        // Closed by the end of the host.
        bench.host.dispose_agent(&bench.agent).await.unwrap();
        let (path, recording) = recording(bench);
        assert!(path.metadata().unwrap().len() <= 4000);
        let last = recording.events.last().map(|event| &event.kind);
        assert!(matches!(last, Some(EventKind::Marker(_))), "{last:?}");
    });
}

/// An embedder's id may be anything but empty or of control characters.
#[test]
fn an_owners_id_leads_no_recording_out_of_its_folder() {
    bench(CONFIG, async |bench| {
        for owner in ["../../x", "/x/y", ".."] {
            let agent = bench.host.agent(owner);
            let request = SpawnRequest { kind: "shell".to_owned(), ..SpawnRequest::default() };
            bench.terminals().spawn(&agent, request, &Cancel::new()).await.unwrap();
            bench.host.dispose_agent(&agent).await.unwrap();
            let (path, _) = recording(bench);
            std::fs::remove_file(path).unwrap();
        }
    });
}

#[test]
fn a_session_that_shall_be_recorded_and_cannot_is_refused() {
    bench("{ record: true, recordFolder: /dev/null/casts }", async |bench| {
        let error = bench.try_open(SpawnRequest::default()).await.map(|_| ()).unwrap_err();
        assert_eq!(error.code(), "SHELL_START_FAILED");
        assert!(error.to_string().contains("cannot be recorded in /dev/null/casts"), "{error}");
    });
}
