//! The log as a reader of its files sees it.

#![expect(clippy::unwrap_used, reason = "a fixture that cannot be built is a failed test")]

use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use agents::{Agent, AgentRegistry, AgentSpec};
use dsh_core::Scope;
use serde_json::{Value, json};
use session_log::{Event, EventLog as _, FileLog, LoggedCall, LoggedResult, read_log};

struct Fixture {
    home: tempfile::TempDir,
    scope: Scope,
    agents: AgentRegistry,
    log: FileLog,
}

fn fixture() -> Fixture {
    let home = tempfile::tempdir().unwrap();
    let scope = Scope::root("test");
    let agents = AgentRegistry::new(scope.clone());
    let log = FileLog::new(home.path().join("dsh"));
    Fixture { home, scope, agents, log }
}

impl Fixture {
    fn agent(&self, id: &str) -> Arc<Agent> {
        let spec = AgentSpec { id: Some(id.to_owned()), workspace_root: "/home/u/p".into() };
        self.agents.create(spec).unwrap()
    }

    fn file(&self, agent: &Agent) -> PathBuf {
        self.log.folder(agent).join("session.jsonl.zstd")
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Type and `seq` of each line.
fn outline(lines: &[Value]) -> Vec<(&str, u64)> {
    lines
        .iter()
        .map(|line| (line["type"].as_str().unwrap(), line["seq"].as_u64().unwrap_or(0)))
        .collect()
}

#[tokio::test]
async fn a_session_is_a_header_events_and_an_end() {
    let it = fixture();
    let agent = it.agent("main");
    let file = it.file(&agent);
    assert!(!it.home.path().join("dsh").exists(), "nothing before the first event");

    it.log.append(&agent, Event::user_message("hi")).unwrap();
    let calls = [LoggedCall { call_id: "c1".into(), name: "t".into(), arguments: json!({}) }];
    it.log.append(&agent, Event::assistant_message("", &calls)).unwrap();
    it.log.append(&agent, Event::tool_call("c1", "t", &json!({ "a": 1 }))).unwrap();
    let result = LoggedResult {
        call_id: "c1",
        name: "t",
        arguments: None,
        is_error: false,
        content: json!([{ "type": "text", "text": "ok" }]),
        value: Some(json!(7)),
        error: None,
    };
    it.log.append(&agent, Event::tool_result(result)).unwrap();
    it.log.append(&agent, Event::notice("done")).unwrap();
    it.agents.dispose(&agent).await.unwrap();

    let lines = read_log(&file).unwrap();
    assert_eq!(
        outline(&lines),
        [
            ("session", 0),
            ("user/message", 1),
            ("assistant/message", 2),
            ("tool/call", 3),
            ("tool/result", 4),
            ("notice", 5),
            ("agent/end", 6),
        ]
    );
    let header: Vec<&String> = lines[0].as_object().unwrap().keys().collect();
    assert_eq!(header, ["type", "version", "id", "createdAt", "cwd"]);
    assert_eq!(lines[0]["id"], "main");
    assert_eq!(lines[0]["version"], 1);
    assert_eq!(lines[0]["cwd"], "/home/u/p");
    assert!(lines[0]["createdAt"].is_u64() && lines[1]["time"].is_u64());
    let event: Vec<&String> = lines[1].as_object().unwrap().keys().collect();
    assert_eq!(event, ["seq", "time", "type", "data"]);
    assert_eq!(
        lines[2]["data"]["toolCalls"],
        json!([{ "callId": "c1", "name": "t", "arguments": {} }])
    );
    assert_eq!(lines[3]["data"], json!({ "callId": "c1", "name": "t", "arguments": { "a": 1 } }));
    assert_eq!(
        lines[4]["data"],
        json!({
            "callId": "c1",
            "name": "t",
            "isError": false,
            "content": [{ "type": "text", "text": "ok" }],
            "value": 7,
        })
    );

    assert_eq!(mode(&file), 0o600);
    let mut folder = file.parent().unwrap();
    while folder != it.home.path() {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
        folder = folder.parent().unwrap();
    }
    assert!(file.to_str().unwrap().ends_with("/main/session.jsonl.zstd"));
    it.scope.dispose().await.unwrap();
}

#[tokio::test]
async fn the_file_is_whole_after_every_append_and_a_cut_costs_one_event() {
    let it = fixture();
    let agent = it.agent("main");
    let file = it.file(&agent);
    let mut ends = Vec::new();
    for number in 0..20_u64 {
        let text = "x".repeat(usize::try_from(number).unwrap() * 5000);
        it.log.append(&agent, Event::user_message(&text)).unwrap();
        let bytes = fs::read(&file).unwrap();
        // A strict decoder accepts every state of the file.
        let text = String::from_utf8(zstd::decode_all(bytes.as_slice()).unwrap()).unwrap();
        assert!(text.ends_with('\n'));
        assert_eq!(text.lines().count() as u64, number + 2);
        ends.push(bytes.len());
    }
    // A crash while an event is written leaves a prefix of its frame.
    let whole = fs::read(&file).unwrap();
    let cut_file = it.home.path().join("cut");
    let (before, end) = (ends[18], ends[19]);
    let lines = read_log(&file).unwrap();
    for cut in before..end {
        fs::write(&cut_file, &whole[..cut]).unwrap();
        let left = read_log(&cut_file).unwrap();
        // Where only the checksum is cut, the last event is there too.
        assert!((20..=21).contains(&left.len()), "cut at {cut} of {before}..{end}");
        assert_eq!(left, lines[..left.len()]);
    }
    // A wrong checksum is not taken for a crash.
    let mut damaged = whole.clone();
    damaged[ends[3] - 1] ^= 0xff;
    fs::write(&cut_file, &damaged).unwrap();
    let error = read_log(&cut_file).unwrap_err();
    assert_eq!(error.path, cut_file);
    it.scope.dispose().await.unwrap();
}

#[tokio::test]
async fn the_same_id_again_gets_a_file_of_its_own() {
    let it = fixture();
    for expected in ["session.jsonl.zstd", "session-2.jsonl.zstd", "session-3.jsonl.zstd"] {
        let agent = it.agent("main");
        it.log.append(&agent, Event::user_message(expected)).unwrap();
        it.agents.dispose(&agent).await.unwrap();
        let lines = read_log(&it.log.folder(&agent).join(expected)).unwrap();
        assert_eq!(outline(&lines), [("session", 0), ("user/message", 1), ("agent/end", 2)]);
        assert_eq!(lines[1]["data"]["content"], expected);
    }
    it.scope.dispose().await.unwrap();
}

#[tokio::test]
async fn an_ended_agent_cannot_be_logged() {
    let it = fixture();
    let (silent, loud) = (it.agent("silent"), it.agent("loud"));
    it.log.append(&loud, Event::notice("x")).unwrap();
    it.scope.dispose().await.unwrap();
    for agent in [&silent, &loud] {
        let error = it.log.append(agent, Event::notice("late")).unwrap_err();
        assert!(error.to_string().contains("has ended"), "{error}");
    }
    assert!(!it.log.folder(&silent).exists());
    let lines = read_log(&it.file(&loud)).unwrap();
    assert_eq!(outline(&lines), [("session", 0), ("notice", 1), ("agent/end", 2)]);
}

#[tokio::test]
async fn a_failing_log_names_its_path_and_can_recover() {
    let it = fixture();
    let agent = it.agent("main");
    // A file where the folder of all logs belongs.
    let blocker = it.home.path().join("dsh");
    fs::write(&blocker, "").unwrap();
    let error = it.log.append(&agent, Event::notice("lost")).unwrap_err();
    assert_eq!(error.path, it.log.folder(&agent));
    fs::remove_file(&blocker).unwrap();
    it.log.append(&agent, Event::notice("kept")).unwrap();
    it.agents.dispose(&agent).await.unwrap();
    let lines = read_log(&it.file(&agent)).unwrap();
    assert_eq!(outline(&lines), [("session", 0), ("notice", 1), ("agent/end", 2)]);
    it.scope.dispose().await.unwrap();
}

#[tokio::test]
async fn concurrent_events_keep_one_sequence_and_taps_see_the_same_lines() {
    let it = fixture();
    let agent = it.agent("main");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let instance = agent.instance();
    let plugin = it.scope.child("plugin").unwrap();
    it.log
        .tap(
            &plugin,
            Arc::new(move |whose, line: &str| {
                assert_eq!(whose, instance);
                sink.lock().unwrap().push(serde_json::from_str::<Value>(line).unwrap());
            }),
        )
        .unwrap();
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                for _ in 0..25 {
                    it.log.append(&agent, Event::notice("n")).unwrap();
                }
            });
        }
    });
    it.agents.dispose(&agent).await.unwrap();
    let lines = read_log(&it.file(&agent)).unwrap();
    let sequence: Vec<u64> = outline(&lines).into_iter().map(|(_, seq)| seq).collect();
    assert_eq!(sequence, (0..=101).collect::<Vec<_>>());
    assert_eq!(*seen.lock().unwrap(), lines);

    plugin.dispose().await.unwrap();
    let next = it.agent("main");
    it.log.append(&next, Event::notice("unseen")).unwrap();
    assert_eq!(seen.lock().unwrap().len(), lines.len());
    it.scope.dispose().await.unwrap();
}

#[test]
fn a_file_that_is_no_log_is_an_error() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    assert_eq!(read_log(file.path()).unwrap(), Vec::<Value>::new());
    file.write_all(b"no zstd here").unwrap();
    read_log(file.path()).unwrap_err();
    read_log(Path::new("/nonexistent/session.jsonl.zstd")).unwrap_err();
}

#[tokio::test]
async fn logs_are_found_by_the_id_of_their_agent() {
    let home = tempfile::tempdir().unwrap();
    let scope = Scope::root("test");
    let agents = AgentRegistry::new(scope.clone());
    let log = FileLog::new(home.path().into());
    assert_eq!(log.find("main").unwrap(), [""; 0].map(std::path::PathBuf::from));
    let mut written = Vec::new();
    for (root, times) in [("/a", 3), ("/b", 1)] {
        for number in 1..=times {
            let spec = AgentSpec { id: Some("main".into()), workspace_root: root.into() };
            let agent = agents.create(spec).unwrap();
            log.append(&agent, Event::notice("hi")).unwrap();
            let name = if number == 1 { String::new() } else { format!("-{number}") };
            written.push(log.folder(&agent).join(format!("session{name}.jsonl.zstd")));
            agents.dispose(&agent).await.unwrap();
        }
    }
    std::fs::write(written[0].with_file_name("session-x.jsonl.zstd"), "").unwrap();
    std::fs::write(home.path().join("sessions/file"), "").unwrap();
    assert_eq!(log.find("main").unwrap(), written);
    assert_eq!(log.find("../main").unwrap().len(), 0);
    scope.dispose().await.unwrap();
}

#[tokio::test]
async fn runs_are_listed_and_found_by_their_ids_alone() {
    let Fixture { home, agents, log, .. } = fixture();
    assert_eq!(log.runs(9).unwrap(), []);
    for (id, root, calls) in [("a", "/a", 2), ("b", "/a", 0), ("a", "/b", 1)] {
        let spec = AgentSpec { id: Some(id.into()), workspace_root: root.into() };
        let agent = agents.create(spec).unwrap();
        log.append(&agent, Event::notice("hi")).unwrap();
        for call in 0..calls {
            log.append(&agent, Event::tool_call(&call.to_string(), "t", &json!({}))).unwrap();
        }
        agents.dispose(&agent).await.unwrap();
    }
    let damaged = home.path().join("dsh/sessions/w/c");
    fs::create_dir_all(&damaged).unwrap();
    fs::write(damaged.join("session.jsonl.zstd"), "no log").unwrap();
    let runs = log.runs(9).unwrap();
    let mut told: Vec<_> = runs.iter().map(|it| (it.agent.as_str(), it.calls)).collect();
    told.sort_unstable();
    assert_eq!(told, [("a", 1), ("a", 2), ("b", 0)]);
    for run in &runs {
        let found = log.find_run(&run.id).unwrap().unwrap();
        let lines = read_log(&found).unwrap();
        assert_eq!(lines[0]["id"], *run.agent);
        assert_eq!(lines[0]["createdAt"], run.created_at);
    }
    assert!(log.runs(0).unwrap().is_empty() && log.runs(2).unwrap().len() <= 2);
    for unknown in ["", "a", "../w/c", "session.jsonl.zstd"] {
        assert_eq!(log.find_run(unknown).unwrap(), None);
    }
}
