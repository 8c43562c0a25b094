//! The end of a session: whatever was started from it is gone, nothing else is touched.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command, time::Duration};

use subprocess::Depth;
use support::{Session, guarded, lives, sh, until, with_argument};

/// Longer than any test: a close that waits for it hangs.
const NEVER: Duration = Duration::from_hours(1);

/// A duration for `sleep` that no other process of the machine has.
fn unique(index: usize) -> String {
    support::unique(index, std::process::id())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_way_out_of_a_session_outlives_it() {
    let escapes = [
        "sleep N &",
        "sleep N & disown",
        "nohup sleep N >/dev/null 2>&1 &",
        "setsid sleep N &",
        "setsid -f sleep N",
        "(setsid sh -c 'sleep N & exit' &)",
        "env -i setsid -f sleep N",
        "env -i setsid sh -c '(sleep N &) & exit' </dev/null >/dev/null 2>&1",
        "bash -c 'trap \"\" TERM HUP INT; sleep N; :' &",
        "bash -c 'trap \"\" TERM HUP INT; while :; do sleep N; done' & disown",
        "sleep N & until [ $(cat /proc/$!/comm) = sleep ]; do :; done; kill -STOP $!",
        "setsid -f bash -c 'trap \"\" TERM HUP; kill -STOP $$; sleep N; :'",
        "python3 -c 'import os,sys,time; os.fork() and sys.exit(); os.setsid(); \
         os.fork() and os._exit(0); os.closerange(0, 100); os.execvp(\"sleep\", [\"sleep\", \"N\"])'",
    ];
    for leader_ends_first in [false, true] {
        let mut session = Session::shell().await;
        let base = if leader_ends_first { 100 } else { 0 };
        for (index, escape) in escapes.iter().enumerate() {
            session.command(&escape.replace('N', &unique(base + index))).await;
        }
        for (index, escape) in escapes.iter().enumerate() {
            // The one that stops itself has its number in its script only.
            let argument = unique(base + index);
            if !escape.contains("kill -STOP $$") {
                until(escape, || !with_argument(&argument).is_empty()).await;
            }
        }
        if leader_ends_first {
            session.type_line("exit");
            session.until("exit").await;
            // Stopped jobs: bash wants to be asked twice.
            session.type_line("exit");
            session.until_exit().await;
        }
        let pid = session.process.pid();
        let grace = Duration::from_millis(300);
        guarded("close", session.process.terminate(grace, &mut session.output)).await.unwrap();
        for (index, escape) in escapes.iter().enumerate() {
            let left = with_argument(&unique(base + index));
            assert!(!left.iter().any(|&it| lives(it)), "{escape}: {left:?}");
        }
        assert_eq!(support::members_of_session(pid), Vec::<i32>::new());
        session.close().await;
    }
}

#[test]
#[ignore = "needs root"]
fn an_ordinary_user_lets_no_way_out_either() {
    let (_kept, folder) = support::temp();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    // Where the tests were built another user may not come.
    let tests = folder.join("tests");
    fs::copy(std::env::current_exe().unwrap(), &tests).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"])
        .arg(&tests)
        .args(["--exact", "no_way_out_of_a_session_outlives_it", "--nocapture"])
        .current_dir("/")
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && report.contains("1 passed"), "{report}\n{errors}");
}

/// Each of its processes lives for a moment, in a session of its own, and starts the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_goes_on_as_ever_new_processes_is_met() {
    let (_kept, folder) = support::temp();
    let comet = folder.join("comet");
    let script = "import os,time\nopen('begun','w')\nwhile not time.sleep(PAUSE):\n \
                  if os.fork(): os._exit(0)\n os.setsid()\n";
    for (round, pause) in ["0.02", "0.002", "0"].iter().enumerate() {
        fs::write(&comet, script.replace("PAUSE", pause)).unwrap();
        let mut session = Session::shell().await;
        let argument = unique(300 + round);
        let line = format!(
            "cd {}; env -i setsid -f python3 comet {argument} </dev/null >/dev/null 2>&1",
            folder.display()
        );
        session.command(&line).await;
        until("it flies", || folder.join("begun").exists()).await;
        fs::remove_file(folder.join("begun")).unwrap();
        let grace = Duration::from_millis(100);
        guarded("close", session.process.terminate(grace, &mut session.output)).await.unwrap();
        for _ in 0..20 {
            assert_eq!(with_argument(&argument), Vec::<i32>::new(), "a pause of {pause} s");
        }
        session.close().await;
    }
}

/// Each of its processes lives for less time than it takes to read what it is. A close that has not met
/// it says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs cc"]
async fn one_whose_lives_are_shorter_than_a_look_is_met() {
    let (_kept, folder) = support::temp();
    let comet = folder.join("comet");
    let source =
        "#include <unistd.h>\nint main(void) { for (;;) { if (fork() > 0) _exit(0); setsid(); } }";
    fs::write(folder.join("comet.c"), source).unwrap();
    let made = Command::new("cc").arg("-o").args([&comet, &folder.join("comet.c")]).status();
    assert!(made.unwrap().success());
    for round in 0..3 {
        let mut session = Session::shell().await;
        let argument = unique(400 + round);
        let line =
            format!("env -i setsid -f {} {argument} </dev/null >/dev/null 2>&1", comet.display());
        session.command(&line).await;
        let grace = Duration::from_millis(100);
        while let Err(error) =
            guarded("close", session.process.terminate(grace, &mut session.output)).await
        {
            assert!(!error.survivors.is_empty());
        }
        for _ in 0..20 {
            assert_eq!(with_argument(&argument), Vec::<i32>::new());
        }
        session.close().await;
    }
}

#[tokio::test]
async fn nothing_is_waited_for_but_the_ends() {
    for setup in ["true", "sleep 1000 &", "setsid -f sleep 1000"] {
        let mut session = Session::shell().await;
        session.command(setup).await;
        let pid = session.process.pid();
        guarded(setup, session.process.terminate(NEVER, &mut session.output)).await.unwrap();
        support::assert_gone(pid);
        // Nothing is left to do.
        guarded(setup, session.process.terminate(NEVER, &mut session.output)).await.unwrap();
        session.close().await;
    }
}

#[tokio::test]
async fn the_exit_is_still_told_after_the_end() {
    let mut session = Session::shell().await;
    session.process.terminate(NEVER, &mut session.output).await.unwrap();
    let status = session.until_exit().await;
    assert_eq!(status, subprocess::ExitStatus::Signal("SIGHUP".to_owned()));
    session.close().await;
}

#[tokio::test]
async fn last_words_are_read() {
    let script = "trap 'head -c 200000 /dev/zero | tr \"\\0\" x; echo LAST; exit 0' TERM; \
        trap '' HUP; echo READY; while :; do sleep 0.05; done";
    let mut session = Session::start(sh(script)).await;
    session.until("READY").await;
    session.output.clear();
    guarded("close", session.process.terminate(NEVER, &mut session.output)).await.unwrap();
    assert!(session.text().contains("LAST"));
    assert!(support::count(&session.output, b'x') >= 200_000);
    session.close().await;
}

#[tokio::test]
async fn endless_output_ends_and_is_bounded() {
    let script = "trap '' TERM HUP; yes";
    let mut session = Session::start(sh(script)).await;
    session.until("y").await;
    session.output.clear();
    let grace = Duration::from_millis(200);
    guarded("close", session.process.terminate(grace, &mut session.output)).await.unwrap();
    assert!(session.output.len() <= 4 * 1024 * 1024);
    session.close().await;
}

#[tokio::test]
async fn closing_one_session_leaves_the_other_alone() {
    let mut a = Session::shell().await;
    let mut b = Session::shell().await;
    for (session, index) in [(&mut a, 200), (&mut b, 201)] {
        session.command(&format!("setsid -f sleep {}", unique(index))).await;
    }
    let terminals = |pid: i32| -> Vec<_> {
        let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        let mut targets: Vec<_> = entries.filter_map(|it| fs::read_link(it.path()).ok()).collect();
        targets.sort();
        targets.dedup();
        targets
    };
    let (of_a, of_b) = (terminals(a.process.pid()), terminals(b.process.pid()));
    assert_eq!((of_a.len(), of_b.len()), (1, 1), "{of_a:?} {of_b:?}");
    assert_ne!(of_a, of_b);
    until("both sleep", || !with_argument(&unique(200)).is_empty()).await;
    until("both sleep", || !with_argument(&unique(201)).is_empty()).await;

    a.close().await;
    assert_eq!(with_argument(&unique(200)), Vec::<i32>::new());
    assert_eq!(with_argument(&unique(201)).len(), 1);
    assert_eq!(b.command("echo still").await, "still\r\ndsh> ");
    b.close().await;
    assert_eq!(with_argument(&unique(201)), Vec::<i32>::new());
}

#[tokio::test]
async fn children_of_the_host_are_not_touched() {
    let mut dead = Command::new("/bin/sh").args(["-c", "exit 5"]).spawn().unwrap();
    let mut alive = Command::new("/bin/sleep").arg("1000").spawn().unwrap();
    let pid = dead.id();
    until("it ends", || !lives(pid.cast_signed())).await;
    let mut session = Session::shell().await;
    session.command("(sleep 0.01 &)").await;
    session.close().await;
    assert_eq!(dead.wait().unwrap().code(), Some(5));
    assert!(alive.try_wait().unwrap().is_none());
    alive.kill().unwrap();
    alive.wait().unwrap();
}

#[tokio::test]
async fn dropping_kills() {
    let mut session = Session::shell().await;
    session.command(&format!("setsid -f sleep {}", unique(300))).await;
    session.command(&format!("sleep {} &", unique(301))).await;
    until("both sleep", || !with_argument(&unique(300)).is_empty()).await;
    until("both sleep", || !with_argument(&unique(301)).is_empty()).await;
    let pid = session.process.pid();
    drop(session);
    until("all are gone", || {
        !lives(pid) && [300, 301].iter().all(|&it| with_argument(&unique(it)).is_empty())
    })
    .await;
}

#[tokio::test]
async fn a_blind_host_ends_sessions_all_the_same() {
    use subprocess::TerminalHost as _;
    let mut process = subprocess::LocalHost::blind().spawn(support::bash()).await.unwrap();
    let mut output = Vec::new();
    process.write(format!("setsid -f sleep {}\r", unique(400)).as_bytes());
    guarded("it starts", async {
        while with_argument(&unique(400)).is_empty() {
            let soon = Some(std::time::Instant::now() + Duration::from_millis(5));
            process.next(soon, &mut output).await;
        }
    })
    .await;
    guarded("close", process.terminate(NEVER, &mut output)).await.unwrap();
    assert_eq!(with_argument(&unique(400)), Vec::<i32>::new());
}

/// A program that takes a while to end after TERM, and then says so in a file. It ignores nothing.
fn tidy(directory: &Path, name: &str) -> String {
    let file = directory.join(name);
    let script = directory.join(format!("{name}.py"));
    let text = "import os, signal, sys, time\n\
        def end(*_):\n\
        \x20   time.sleep(0.3)\n\
        \x20   open(sys.argv[1], 'w').write('complete')\n\
        \x20   os._exit(0)\n\
        signal.signal(signal.SIGTERM, end)\n\
        open(sys.argv[1] + '.ready', 'w').close()\n\
        while True: time.sleep(1000)\n";
    fs::write(&script, text).unwrap();
    format!("python3 {} {}", script.display(), file.display())
}

/// Closes the session once all `names` are ready, and asserts that each could end in its own way.
async fn assert_all_end_in_their_own_way(mut session: Session, directory: &Path, names: &[&str]) {
    let ready = |it: &&str| directory.join(format!("{it}.ready")).exists();
    guarded("they are ready", async {
        while !names.iter().all(ready) {
            let soon = Some(std::time::Instant::now() + Duration::from_millis(5));
            session.process.next(soon, &mut session.output).await;
        }
    })
    .await;
    session.close().await;
    for name in names {
        let written = fs::read_to_string(directory.join(name)).unwrap_or_default();
        assert_eq!(written, "complete", "{name} was cut off");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_gives_every_program_its_grace() {
    let (_directory, path) = support::temp();
    let mut session = Session::shell().await;
    session.command(&format!("{} &", tidy(&path, "behind"))).await;
    session.command(&format!("{} & disown", tidy(&path, "disowned"))).await;
    session.command(&format!("setsid -f {}", tidy(&path, "away"))).await;
    session.type_line(&tidy(&path, "front"));
    let names = ["behind", "disowned", "away", "front"];
    assert_all_end_in_their_own_way(session, &path, &names).await;
}

#[tokio::test]
async fn a_shell_within_the_shell_cuts_nobody_off() {
    let (_directory, path) = support::temp();
    let mut session = Session::shell().await;
    session.command("bash --noprofile --norc -i").await;
    session.command(&format!("{} &", tidy(&path, "behind"))).await;
    session.type_line(&tidy(&path, "front"));
    assert_all_end_in_their_own_way(session, &path, &["behind", "front"]).await;
}

#[tokio::test]
async fn a_program_that_took_the_shells_place_has_its_grace() {
    let (_directory, path) = support::temp();
    let mut session = Session::shell().await;
    session.type_line(&format!("exec {}", tidy(&path, "leader")));
    assert_all_end_in_their_own_way(session, &path, &["leader"]).await;
}

/// Closes with a grace that nothing may wait for.
async fn assert_closes_without_the_grace(mut session: Session, what: &str) {
    let pid = session.process.pid();
    guarded(what, session.process.terminate(NEVER, &mut session.output)).await.unwrap();
    support::assert_gone(pid);
    assert_eq!(support::members_of_session(pid), Vec::<i32>::new(), "{what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shells_within_the_shell_are_not_waited_for() {
    let mut session = Session::shell().await;
    for _ in 0..3 {
        session.command("bash --noprofile --norc -i").await;
    }
    assert_closes_without_the_grace(session, "at their prompts").await;

    let mut session = Session::shell().await;
    session.command("bash --noprofile --norc -i").await;
    session.type_line("sleep 1000");
    session
        .until_evidence(Depth::Full, "sleeps", |it| support::processes_of(it, "sleep").count() == 1)
        .await;
    assert_closes_without_the_grace(session, "with a program in front").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_that_goes_on_starting_programs_ends() {
    for script in [
        "while :; do sleep 1000; done",
        "while :; do sleep 0.01; done",
        "trap 'sleep 1000' EXIT; sleep 1000",
        "sleep 1000; sleep 1001; sleep 1002; sleep 1003",
        "f() { sleep 1000; f; }; f & wait; f",
    ] {
        let mut session = Session::shell().await;
        session.type_line(script);
        let in_front = |it: &subprocess::Evidence| support::processes_of(it, "sleep").count() > 0;
        if !script.starts_with("f()") {
            session.until_evidence(Depth::Full, script, in_front).await;
        }
        let pid = session.process.pid();
        let grace = Duration::from_millis(500);
        guarded(script, session.process.terminate(grace, &mut session.output)).await.unwrap();
        support::assert_gone(pid);
        assert_eq!(support::members_of_session(pid), Vec::<i32>::new(), "{script}");
        session.close().await;
    }
}

#[tokio::test]
async fn nothing_typed_ahead_starts_during_a_close() {
    let (_directory, path) = support::temp();
    let mut session = Session::shell().await;
    session.type_line("sleep 1000");
    session
        .until_evidence(Depth::Full, "sleeps", |it| support::processes_of(it, "sleep").count() == 1)
        .await;
    session.type_line(&format!("touch {}", path.join("late").display()));
    session.until_evidence(Depth::Full, "waits", |it| it.unread_input == Some(true)).await;
    session.close().await;
    assert!(!path.join("late").exists());
}
