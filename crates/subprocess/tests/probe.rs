//! Evidence about real programs.
#![cfg(target_os = "linux")]

mod support;

use std::time::{Duration, Instant};

use subprocess::{
    Depth, Descriptor, Enter, Evidence, LocalHost, Modes, Multiplexer, Scan, TerminalHost as _,
    Wait,
};
use support::{Session, bash, guarded, processes_of, python, sh, threads_of};

const SHELL: Modes = Modes { canonical: false, echo: false, enter: Enter::Character, ..LINE };
const LINE: Modes = Modes {
    canonical: true,
    echo: true,
    signals: true,
    enter: Enter::EndsLine,
    newline: true,
    read_timeout_ms: None,
};

fn waits(evidence: &Evidence, command: &str, wait: &Wait) -> bool {
    threads_of(evidence, command).contains(&wait)
}

/// Waits until the program's thread waits as told, then ends the session.
async fn reaches(spec: subprocess::TerminalSpec, command: &str, wait: Wait) -> Evidence {
    let mut session = Session::start(spec).await;
    let what = format!("{command} {wait:?}");
    let evidence = session.until_evidence(Depth::Full, &what, |it| waits(it, command, &wait)).await;
    session.close().await;
    evidence
}

fn multiplexed(call: Multiplexer, fd: i32) -> Wait {
    Wait::Multiplexed { call, fd, others: vec![], timeout_ms: None }
}

#[tokio::test]
async fn a_shell_at_its_prompt() {
    let mut session = Session::shell().await;
    let pid = session.process.pid();
    let wait = multiplexed(Multiplexer::Select, 0);
    for (depth, scan, blocked_reader) in
        [(Depth::Fast, Scan::Fast, None), (Depth::Full, Scan::Full, Some(false))]
    {
        let evidence =
            session.until_evidence(depth, "at the prompt", |it| waits(it, "bash", &wait)).await;
        assert_eq!(evidence.foreground, Some(pid));
        assert_eq!(evidence.unread_input, Some(false));
        assert_eq!(evidence.blocked_reader, blocked_reader);
        assert_eq!(evidence.modes, Some(SHELL));
        assert_eq!(evidence.scan, scan);
        let shell = &evidence.processes[0];
        assert_eq!((shell.pid, shell.thread_count), (pid, 1));
        assert_eq!(shell.parent, std::process::id().cast_signed());
        assert_eq!(shell.cpu_ns.is_some(), depth == Depth::Full);
    }
    session.close().await;
}

#[tokio::test]
async fn a_reader_of_lines() {
    let mut session = Session::shell().await;
    session.type_line("cat");
    let read = Wait::TerminalRead { fd: 0 };
    // Who is blocked in a read is asked before the threads are looked at.
    let reads = |it: &Evidence| waits(it, "cat", &read) && it.blocked_reader == Some(true);
    let evidence = session.until_evidence(Depth::Full, "cat reads", reads).await;
    assert_eq!(evidence.modes, Some(LINE));
    assert_eq!(evidence.processes.len(), 1, "the shell is not in the foreground");
    let evidence = session.process.probe(Depth::Fast).await;
    assert_eq!(evidence.blocked_reader, None, "not asked at a glance");
    assert!(waits(&evidence, "cat", &read));
    session.close().await;
}

#[tokio::test]
async fn members_of_a_pipeline() {
    let mut session = Session::shell().await;
    session.type_line("cat | cat");
    let on_pipe = Wait::OtherInput { on: vec![Descriptor::Pipe], timeout_ms: None };
    session
        .until_evidence(Depth::Full, "both wait", |it| {
            waits(it, "cat", &Wait::TerminalRead { fd: 0 }) && waits(it, "cat", &on_pipe)
        })
        .await;
    session.close().await;
}

#[tokio::test]
async fn busy_programs() {
    reaches(support::spec("/bin/sleep", &["1000"]), "sleep", Wait::Sleeping).await;
    let evidence = reaches(sh("sleep 1000; :"), "bash", Wait::Child).await;
    assert_eq!(evidence.blocked_reader, Some(false));
    reaches(python("while True: pass"), "python", Wait::Running).await;
    reaches(python("import select; select.select([], [], [], 1000)"), "python", Wait::Sleeping)
        .await;
    for wait in ["pause()", "sigwait([signal.SIGUSR1])"] {
        let script = format!("import signal; signal.{wait}");
        reaches(python(&script), "python", Wait::Signal).await;
    }
    let timed = "import signal; signal.sigtimedwait([signal.SIGUSR1], 1000)";
    reaches(python(timed), "python", Wait::Other("rt_sigtimedwait")).await;
    reaches(sh("kill -STOP $$; read x"), "bash", Wait::Stopped).await;
    let lock = "import threading; l = threading.Lock(); l.acquire(); l.acquire()";
    reaches(python(lock), "python", Wait::Other("futex")).await;
}

#[tokio::test]
async fn the_terminal_under_other_numbers_and_names() {
    let read = |fd| Wait::TerminalRead { fd };
    reaches(python("import os; os.dup2(0, 7); os.close(0); os.read(7, 9)"), "python", read(7))
        .await;
    let tty = "import os; os.dup2(os.open('/dev/tty', os.O_RDWR), 9); os.read(9, 9)";
    reaches(python(tty), "python", read(9)).await;
    for (call, code) in [
        (Multiplexer::Select, "select.select([F], [], [])"),
        (Multiplexer::Poll, "p = select.poll(); p.register(F, select.POLLIN); p.poll()"),
        (Multiplexer::Epoll, "p = select.epoll(); p.register(F, select.EPOLLIN); p.poll()"),
    ] {
        for (name, fd) in [("os.dup(0)", 40), ("os.open('/dev/tty', os.O_RDWR)", 41)] {
            let code = code.replace('F', &fd.to_string());
            let script = format!("import os, select; os.dup2({name}, {fd}); os.close(0); {code}");
            reaches(python(&script), "python", multiplexed(call, fd)).await;
        }
    }
}

#[tokio::test]
async fn an_epoll_set_remembers_files_not_numbers() {
    // Registered under a number that leads elsewhere by now.
    let script = "import os, select\n\
        f = os.dup2(0, 30); p = select.epoll(); p.register(30, select.EPOLLIN)\n\
        os.dup2(os.open('/dev/null', 0), 30); p.poll()";
    reaches(python(script), "python", multiplexed(Multiplexer::Epoll, 30)).await;
    // One set inside another.
    let script = "import os, select\n\
        inner = select.epoll(); inner.register(0, select.EPOLLIN)\n\
        outer = select.epoll(); outer.register(inner.fileno(), select.EPOLLIN); outer.poll()";
    reaches(python(script), "python", multiplexed(Multiplexer::Epoll, 0)).await;
}

#[tokio::test]
async fn standard_input_that_is_not_the_terminal() {
    let on = |what| Wait::OtherInput { on: vec![what], timeout_ms: None };
    reaches(sh("exec < <(sleep 1000); read x"), "bash", on(Descriptor::Pipe)).await;
    let other = "import os, pty; m, s = pty.openpty(); os.dup2(s, 0); os.read(0, 9)";
    reaches(python(other), "python", on(Descriptor::OtherTerminal)).await;
    let accept =
        "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); s.accept()";
    reaches(python(accept), "python", on(Descriptor::Socket)).await;
}

#[tokio::test]
async fn files_that_others_keep_busy() {
    let (_directory, path) = support::temp();
    let file = path.display();
    let pipe = Wait::OtherInput { on: vec![Descriptor::Pipe], timeout_ms: None };
    reaches(sh(&format!("mkfifo {file}/f; exec cat {file}/f")), "cat", pipe).await;
    let lock = format!("exec 9> {file}/l; flock 9; exec 8> {file}/l; flock 8; :");
    reaches(sh(&lock), "flock", Wait::Lock).await;
    let lock = format!(
        "import fcntl, os; f = open('{file}/m', 'w'); fcntl.lockf(f, fcntl.LOCK_EX)\n\
         if os.fork(): os.wait()\n\
         else: fcntl.lockf(f, fcntl.LOCK_EX)"
    );
    reaches(python(&lock), "python", Wait::Lock).await;
}

/// Readers that never call `read`.
#[tokio::test]
async fn a_terminal_that_is_spliced() {
    let script = "import ctypes, os; r, w = os.pipe()\n\
        ctypes.CDLL(None).splice(0, None, w, None, 99, 0)";
    reaches(python(script), "python", Wait::TerminalRead { fd: 0 }).await;
}

/// A read, and a poll, that a program has handed to a ring. Where rings are forbidden, it sleeps.
#[tokio::test]
async fn a_terminal_behind_a_ring() {
    const READ: u8 = 22;
    const POLL: u8 = 6;
    for operation in [READ, POLL] {
        let script = format!(
            "import ctypes, mmap, os, struct, time\n\
             call = ctypes.CDLL(None, use_errno=True).syscall\n\
             params = ctypes.create_string_buffer(120)\n\
             ring = call(425, 4, params)\n\
             if ring < 0: time.sleep(1000)\n\
             fields = struct.unpack_from('30I', params)\n\
             size = fields[16] + fields[0] * 4\n\
             queue = mmap.mmap(ring, size, offset=0)\n\
             entries = mmap.mmap(ring, fields[0] * 64, offset=0x10000000)\n\
             target = ctypes.create_string_buffer(9)\n\
             struct.pack_into('=BBHiQQII', entries, 0, {operation}, 0, 0, 0, 0,\n\
             \x20   ctypes.addressof(target) if {operation} == 22 else 0, 9 if {operation} == 22 else 0,\n\
             \x20   0 if {operation} == 22 else 1)\n\
             struct.pack_into('I', queue, fields[16], 0)\n\
             struct.pack_into('I', queue, fields[11], 1)\n\
             call(426, ring, 1, 1, 1, None, 0)"
        );
        let mut session = Session::start(python(&script)).await;
        let ring = Wait::Multiplexed {
            call: Multiplexer::IoUring,
            fd: 0,
            others: vec![],
            timeout_ms: None,
        };
        let seen =
            |it: &Evidence| waits(it, "python", &ring) || waits(it, "python", &Wait::Sleeping);
        session.until_evidence(Depth::Full, "waits for the ring", seen).await;
        session.close().await;
    }
}

#[tokio::test]
async fn a_terminal_behind_a_relay() {
    for (inner, command, wait) in
        [("cat", "cat", Wait::TerminalRead { fd: 0 }), ("sleep 1000", "sleep", Wait::Sleeping)]
    {
        // The shell of `script` becomes the program.
        let line = format!("script -qc 'exec {inner}' /dev/null");
        let mut session = Session::start(sh(&line)).await;
        let is_there = |it: &Evidence| {
            let [inner] = &it.inner[..] else { return false };
            let found = inner.processes.iter().find(|it| it.command == command);
            found.is_some_and(|it| it.threads.iter().any(|it| it.wait == wait))
        };
        let evidence = session.until_evidence(Depth::Full, "the inner terminal", is_there).await;
        let inner = &evidence.inner[0];
        assert_eq!((inner.unread_input, inner.modes), (Some(false), Some(LINE)));
        assert!(evidence.processes.iter().any(|it| it.pid == inner.relay));
        let unchanged = |it: &Evidence| it.scan == Scan::Unchanged && is_there(it);
        session.until_evidence(Depth::Full, "a look that rests on the last", unchanged).await;
        if command == "cat" {
            assert_eq!(inner.blocked_reader, Some(true));
            // What is typed ahead of it stays there.
            session.type_line("one\rtwo");
            session.until("two").await;
            session.until_evidence(Depth::Full, "it reads again", is_there).await;
        }
        session.close().await;
    }
}

/// One terminal inside another, and one in a file system of its own that counts from the same numbers.
#[tokio::test]
async fn terminals_within_terminals() {
    let nested = "script -qc \"script -qc 'exec cat' /dev/null\" /dev/null";
    let mut session = Session::start(sh(nested)).await;
    let reads = |it: &subprocess::InnerTerminal| {
        it.processes
            .iter()
            .flat_map(|it| &it.threads)
            .any(|it| it.wait == Wait::TerminalRead { fd: 0 })
    };
    session
        .until_evidence(Depth::Full, "the innermost", |it| {
            it.inner.iter().flat_map(|it| &it.inner).any(reads)
        })
        .await;
    session.close().await;
}

#[tokio::test]
#[ignore = "needs root"]
async fn a_terminal_of_another_instance() {
    let own = "mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts && \
        mount --bind /dev/pts/ptmx /dev/ptmx && exec script -qc 'exec cat' /dev/null";
    let mut session =
        Session::start(support::spec("/usr/bin/unshare", &["-m", "sh", "-c", own])).await;
    session
        .until_evidence(Depth::Full, "the inner reader", |it| {
            let threads = it.inner.iter().flat_map(|it| &it.processes).flat_map(|it| &it.threads);
            threads.map(|it| &it.wait).any(|it| *it == Wait::TerminalRead { fd: 0 })
        })
        .await;
    session.close().await;
}

#[tokio::test]
async fn a_reader_of_another_session_is_found() {
    let mut session = Session::start(sh("setsid -w cat; :")).await;
    let read = Wait::TerminalRead { fd: 0 };
    let is_there = |it: &Evidence| {
        let found = it.outside.iter().find(|it| it.command == "cat");
        found.is_some_and(|it| it.threads.iter().any(|it| it.wait == read))
    };
    session.until_evidence(Depth::Full, "the reader", is_there).await;
    session
        .until_evidence(Depth::Full, "a look that rests on the last", |it| {
            it.scan == Scan::Unchanged && is_there(it)
        })
        .await;
    session.close().await;
    // In raw mode by a wait that the zero-byte read does not tell.
    let script = "import os, select, tty\n\
        if os.fork(): os.wait()\n\
        os.setsid(); tty.setraw(0); select.select([0], [], [])";
    let mut session = Session::start(python(script)).await;
    let select = multiplexed(Multiplexer::Select, 0);
    session
        .until_evidence(Depth::Full, "the waiter", |it| {
            it.outside.iter().flat_map(|it| &it.threads).any(|it| it.wait == select)
        })
        .await;
    session.close().await;
}

#[tokio::test]
async fn whom_the_foreground_waits_for() {
    let awaited = |it: &Evidence, command: &str, wait: &Wait| {
        let found = it.awaited.iter().find(|it| it.command == command);
        found.is_some_and(|it| it.threads.iter().any(|it| it.wait == *wait))
    };
    let mut session = Session::shell().await;
    for (line, command) in [
        // A child in a session of its own, and one further down.
        ("setsid -w sleep 1000", "sleep"),
        ("bash -c 'setsid -w bash -c \"sleep 1000; :\"; :'", "sleep"),
        // A writer in the shell's group.
        ("cat <(exec sleep 1000)", "sleep"),
    ] {
        session.type_line(line);
        session.until_evidence(Depth::Full, line, |it| awaited(it, command, &Wait::Sleeping)).await;
        session.process.signal_foreground("SIGKILL", true).unwrap();
        session.until("dsh> ").await;
    }
    session.close().await;
}

#[tokio::test]
async fn a_server() {
    let script = "import http.server as h; \
        h.ThreadingHTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler).serve_forever()";
    let wait = Wait::OtherInput { on: vec![Descriptor::Socket], timeout_ms: Some(500) };
    reaches(python(script), "python", wait).await;
}

#[tokio::test]
async fn what_else_a_program_waits_for() {
    for (setup, others) in [
        ("r, w = os.pipe()", Descriptor::OwnPipe),
        ("r, w = os.pipe(); r = os.dup2(r, 50); w = os.dup2(w, 60)", Descriptor::OwnPipe),
        ("a, b = socket.socketpair(); r = a.fileno()", Descriptor::Socket),
        ("r, s = os.openpty()", Descriptor::PtyMaster),
        ("s, r = os.openpty()", Descriptor::OtherTerminal),
        ("r = libc.eventfd(0, 0)", Descriptor::EventFd),
        ("r = libc.timerfd_create(1, 0)", Descriptor::TimerFd),
        ("r = libc.inotify_init1(0)", Descriptor::Inotify),
        ("r = libc.signalfd(-1, bytes(128), 0)", Descriptor::SignalFd),
    ] {
        let script = format!(
            "import ctypes, os, select, socket; libc = ctypes.CDLL(None); {setup}\n\
             select.select([0, r], [], [], 900)"
        );
        let wait = Wait::Multiplexed {
            call: Multiplexer::Select,
            fd: 0,
            others: vec![others],
            timeout_ms: Some(900_000),
        };
        reaches(python(&script), "python", wait).await;
    }
}

#[tokio::test]
async fn only_interest_in_input_counts() {
    // The terminal is there, but not to be read.
    let script = "import select; p = select.poll(); p.register(0, select.POLLERR); p.poll(900000)";
    reaches(python(script), "python", Wait::Sleeping).await;
    let script = "import os, select\n\
        r, w = os.pipe(); os.set_blocking(w, False)\n\
        try:\n\
        \x20 while True: os.write(w, bytes(4096))\n\
        except BlockingIOError: pass\n\
        p = select.poll(); p.register(w, select.POLLOUT); p.register(0, 0); p.poll()";
    reaches(python(script), "python", Wait::Writing(Descriptor::Pipe)).await;
}

#[tokio::test]
async fn a_wait_that_was_stopped_and_continued() {
    let script = "import select; p = select.poll(); p.register(0, select.POLLIN); p.poll(900000)";
    let mut session = Session::start(python(script)).await;
    let wait = Wait::Multiplexed {
        call: Multiplexer::Poll,
        fd: 0,
        others: vec![],
        timeout_ms: Some(900_000),
    };
    session.until_evidence(Depth::Full, "polls", |it| waits(it, "python", &wait)).await;
    session.process.signal_foreground("SIGSTOP", false).unwrap();
    session.until_evidence(Depth::Full, "stops", |it| waits(it, "python", &Wait::Stopped)).await;
    session.process.signal_foreground("SIGCONT", false).unwrap();
    session.until_evidence(Depth::Fast, "polls again", |it| waits(it, "python", &wait)).await;
    session.close().await;
}

#[tokio::test]
async fn a_helper_thread_reads() {
    let script = "import os, threading, time\n\
        threading.Thread(target=lambda: os.read(0, 9), daemon=True).start(); time.sleep(1000)";
    let mut session = Session::start(python(script)).await;
    let read = Wait::TerminalRead { fd: 0 };
    let evidence = session
        .until_evidence(Depth::Full, "both wait", |it| {
            waits(it, "python", &read) && waits(it, "python", &Wait::Sleeping)
        })
        .await;
    let process = &evidence.processes[0];
    assert_eq!((process.thread_count, process.threads.len()), (2, 2));
    // From now on the helper is what is looked at first.
    let evidence = session.process.probe(Depth::Fast).await;
    assert_eq!(evidence.scan, Scan::Fast);
    let [process] = &evidence.processes[..] else { panic!("{evidence:?}") };
    assert!(process.command.starts_with("python"));
    assert_ne!(process.threads[0].tid, process.pid);
    assert_eq!(process.threads[0].wait, read);
    session.close().await;
}

/// Descriptors and memory of such a process are reached through its threads only.
#[tokio::test]
async fn a_thread_outlives_the_main_one() {
    let script = "import ctypes, select, threading\n\
        threading.Thread(target=lambda: select.select([0], [], []), daemon=True).start()\n\
        ctypes.CDLL(None).pthread_exit(None)";
    let mut session = Session::start(python(script)).await;
    let select = Wait::Multiplexed {
        call: Multiplexer::Select,
        fd: 0,
        others: Vec::new(),
        timeout_ms: None,
    };
    session
        .until_evidence(Depth::Full, "the main thread is gone and the other waits", |it| {
            waits(it, "python", &Wait::Zombie) && waits(it, "python", &select)
        })
        .await;
    session.close().await;
}

#[tokio::test]
async fn a_read_that_ends_by_itself() {
    let script = "import os, termios, time, tty\n\
        tty.setcbreak(0); modes = termios.tcgetattr(0)\n\
        modes[6][termios.VMIN] = 0; modes[6][termios.VTIME] = 2\n\
        termios.tcsetattr(0, termios.TCSANOW, modes); time.sleep(1000)";
    let mut session = Session::start(python(script)).await;
    session
        .until_evidence(Depth::Full, "the mode is set", |it| {
            it.modes.is_some_and(|modes| modes.read_timeout_ms == Some(200))
        })
        .await;
    session.close().await;
}

#[tokio::test]
async fn a_full_terminal_stops_the_writer() {
    let mut session = Session::start(sh("stty -opost; exec head -c 10000000 /dev/zero")).await;
    // Without reading any of it.
    guarded("the writer waits", async {
        loop {
            let evidence = session.process.probe(Depth::Full).await;
            if waits(&evidence, "head", &Wait::Writing(Descriptor::Terminal)) {
                assert!(evidence.unread_output);
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    session.close().await;
}

#[tokio::test]
async fn input_nobody_has_read() {
    let mut session = Session::start(sh("echo READY; sleep 1000")).await;
    session.until("READY").await;
    session.process.write(b"part");
    assert_eq!(
        session.process.probe(Depth::Full).await.unread_input,
        Some(false),
        "no finished line"
    );
    assert_eq!(session.process.unread_bytes(), Some(0));
    session.process.write(b" of a line\r");
    assert_eq!(session.process.probe(Depth::Full).await.unread_input, Some(true));
    assert_eq!(session.process.unread_bytes(), Some(15));
    session.close().await;
}

#[tokio::test]
async fn what_did_not_run_is_not_looked_at_again() {
    let mut session = Session::shell().await;
    session.type_line("sleep 1000 | cat");
    let both = |it: &Evidence| {
        processes_of(it, "sleep").count() == 1
            && waits(it, "sleep", &Wait::Sleeping)
            && threads_of(it, "cat").iter().any(|it| matches!(it, Wait::OtherInput { .. }))
    };
    let evidence = session
        .until_evidence(Depth::Full, "unchanged", |it| it.scan == Scan::Unchanged && both(it))
        .await;
    assert_eq!(
        session.process.probe(Depth::Full).await,
        evidence,
        "a full look may rest on it too"
    );
    assert!(session.process.rests(), "so another look is not worth while");

    // Something of it runs: the answer is a new one, and the true one.
    session.process.signal_foreground("SIGSTOP", false).unwrap();
    let stopped = session
        .until_evidence(Depth::Full, "the shell has the terminal", |it| {
            it.foreground == Some(session_leader(it))
        })
        .await;
    assert_eq!(stopped.processes.len(), 1);
    assert!(!session.process.rests(), "the shell waits for the terminal");
    session.close().await;
}

/// Until somebody is born who may be in the foreground with it.
#[tokio::test]
async fn who_is_alone_is_looked_at_in_full_at_a_glance() {
    let script = "import os, time\nos.read(0, 9)\nif os.fork() == 0: time.sleep(1000)\n\
                  os.read(0, 9)";
    let mut session = Session::start(python(script)).await;
    let read = Wait::TerminalRead { fd: 0 };
    session.until_evidence(Depth::Full, "reading", |it| waits(it, "python", &read)).await;
    let glance = session.process.probe(Depth::Fast).await;
    assert_eq!((glance.scan, glance.processes.len()), (Scan::Full, 1), "{glance:?}");
    assert!(waits(&glance, "python", &read), "{glance:?}");

    session.type_line("x");
    let again = |it: &Evidence| it.unread_input == Some(false) && waits(it, "python", &read);
    let glance = session.until_evidence(Depth::Fast, "reading again", again).await;
    assert_eq!(glance.scan, Scan::Fast, "{glance:?}");
    let all = session.process.probe(Depth::Full).await;
    assert_eq!((all.scan, all.processes.len()), (Scan::Full, 2), "{all:?}");
    session.close().await;
}

/// The leader is the only process here whose parent is this test.
fn session_leader(evidence: &Evidence) -> i32 {
    let own = std::process::id().cast_signed();
    evidence.processes.iter().find(|it| it.parent == own).map_or(-1, |it| it.pid)
}

#[tokio::test]
async fn a_changed_wait_is_seen_through_the_gate() {
    let script = "import time, os\nfor _ in range(40): time.sleep(0.01)\nos.read(0, 9)";
    let mut session = Session::start(python(script)).await;
    let read = Wait::TerminalRead { fd: 0 };
    let end = Instant::now() + support::GUARD;
    loop {
        let evidence = session.process.probe(Depth::Full).await;
        // The reader test and the decoded wait never disagree in silence.
        if evidence.scan == Scan::Unchanged {
            assert_eq!(evidence.blocked_reader, Some(false), "{evidence:?}");
        }
        if waits(&evidence, "python", &read) {
            break;
        }
        assert!(Instant::now() < end, "{evidence:?}");
    }
    session.close().await;
}

#[tokio::test]
async fn a_group_whose_parents_are_gone_is_found() {
    // The reader's parent ends; it stays in the foreground group, adopted by the host.
    let script = "bash -c 'cat </dev/tty & exit'; sleep 1000; :";
    let mut session = Session::start(sh(script)).await;
    let read = Wait::TerminalRead { fd: 0 };
    session
        .until_evidence(Depth::Full, "the adopted reader", |it| {
            waits(it, "cat", &read) && waits(it, "sleep", &Wait::Sleeping)
        })
        .await;
    session.close().await;
}

#[tokio::test]
async fn a_blind_host_still_sees_the_terminal() {
    let mut process = LocalHost::blind().spawn(sh("exec cat")).await.unwrap();
    let mut output = Vec::new();
    guarded("cat reads", async {
        loop {
            let evidence = process.probe(Depth::Full).await;
            assert_eq!((evidence.scan, evidence.processes.len()), (Scan::Blind, 0));
            if evidence.blocked_reader == Some(true) {
                assert_eq!(evidence.modes, Some(LINE));
                assert!(evidence.foreground.is_some());
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    process.terminate(Duration::from_secs(3), &mut output).await.unwrap();
}

#[tokio::test]
async fn after_the_end_nothing_is_made_up() {
    let mut session = Session::start(bash()).await;
    session.type_line("exit");
    session.until_exit().await;
    let evidence = session.process.probe(Depth::Full).await;
    assert_eq!(evidence.foreground, None);
    assert_eq!(evidence.unread_input, None);
    assert_eq!(evidence.blocked_reader, None);
    assert_eq!(evidence.processes, vec![]);
    session.close().await;
}
