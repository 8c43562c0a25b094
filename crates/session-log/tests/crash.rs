//! What a log holds when its host is killed or its disk is full. The host is a copy of this test.

#![expect(clippy::unwrap_used, reason = "a fixture that cannot be built is a failed test")]

use std::{
    env,
    fmt::Write as _,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use agents::{Agent, AgentRegistry, AgentSpec};
use dsh_core::Scope;
use session_log::{Event, EventLog as _, FileLog, read_log};

const HOME: &str = "SESSION_LOG_TEST_HOME";
const LIMIT: &str = "SESSION_LOG_TEST_LIMIT";

fn agent(scope: &Scope) -> Arc<Agent> {
    let spec = AgentSpec { id: Some("main".into()), workspace_root: "/w".into() };
    AgentRegistry::new(scope.clone()).create(spec).unwrap()
}

fn log_file(home: &Path) -> PathBuf {
    FileLog::new(home.into()).folder(&agent(&Scope::root("test"))).join("session.jsonl.zstd")
}

/// Text that does not compress well.
fn noise(seed: u64, words: usize) -> String {
    let mut state = seed;
    (0..words).fold(String::new(), |mut text, _| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        write!(text, "{state:016x}").unwrap();
        text
    })
}

/// The sequence numbers of a log that has no damage anywhere.
fn sequence(file: &Path) -> Vec<u64> {
    read_log(file).unwrap()[1..].iter().map(|line| line["seq"].as_u64().unwrap()).collect()
}

/// Not a test of its own: what the tests below start.
#[test]
fn host() {
    let Some(home) = env::var_os(HOME) else { return };
    let scope = Scope::root("host");
    let (agent, log) = (agent(&scope), FileLog::new(home.into()));
    if env::var_os(LIMIT).is_some() {
        let mut appended = 0;
        while log.append(&agent, Event::notice(&noise(appended, 100))).is_ok() {
            appended += 1;
        }
        for _ in 0..3 {
            appended += u64::from(log.append(&agent, Event::notice("small")).is_ok());
        }
        println!("\nappended {appended}");
        return;
    }
    std::thread::scope(|threads| {
        for number in 0..3 {
            let (log, agent) = (&log, &agent);
            threads.spawn(move || {
                for round in 0.. {
                    log.append(agent, Event::notice(&noise(number + round, 50))).unwrap();
                    println!("\nappended {round}");
                }
            });
        }
    });
}

#[test]
fn a_killed_host_loses_no_finished_event() {
    let home = tempfile::tempdir().unwrap();
    let mut host = Command::new(env::current_exe().unwrap())
        .args(["--exact", "host", "--nocapture"])
        .env(HOME, home.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(host.stdout.take().unwrap());
    let mut lines = output.lines().map_while(Result::ok);
    let finished = lines.by_ref().filter(|line| line.starts_with("appended")).take(200).count();
    host.kill().unwrap();
    host.wait().unwrap();
    // What the host could still say before it died.
    let finished = finished + lines.filter(|line| line.starts_with("appended")).count();
    let sequence = sequence(&log_file(home.path()));
    assert_eq!(sequence, (1..=sequence.len() as u64).collect::<Vec<_>>());
    assert!(sequence.len() >= finished, "{} of {finished} events are left", sequence.len());
}

#[test]
fn a_full_disk_leaves_whole_frames() {
    let home = tempfile::tempdir().unwrap();
    // The limit cuts a write short before the next one fails.
    let script = r#"ulimit -f 8; trap "" XFSZ; exec "$0" --exact host --nocapture"#;
    let output = Command::new("bash")
        .args(["-c", script])
        .arg(env::current_exe().unwrap())
        .env(HOME, home.path())
        .env(LIMIT, "1")
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let appended = output.lines().find_map(|line| line.strip_prefix("appended ")).unwrap();
    let appended: u64 = appended.parse().unwrap();
    assert!(appended > 3, "{output}");
    let file = log_file(home.path());
    assert_eq!(sequence(&file), (1..=appended).collect::<Vec<_>>());
    // A strict decoder finds no cut either.
    zstd::decode_all(std::fs::File::open(file).unwrap()).unwrap();
}
