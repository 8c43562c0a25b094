//! Who waits is not in the terminal's own foreground group: behind a relay, in another session.

use terminal::{Busy, Evidence, StateKind, TerminalError, WaitReason};

use crate::shell::{assert_behind, assert_prompt, shell};

/// A6: the relay reads the outer terminal all the time.
#[test]
fn a_relay_is_not_ready_before_what_it_relays() {
    shell(async |shell| {
        let line = "script -qc 'sleep 1; touch slept; echo X' /dev/null";
        assert!(shell.run(line, 0).await.contains("X\n"));
        assert!(shell.path("slept").exists());
        // The relay runs $SHELL, which a host may have or not.
        let line = "SHELL=/bin/bash script -qc 'read x; sleep .6; echo got $x' /dev/null";
        let asked = shell.send(line).await;
        assert_behind(&asked, StateKind::Line, "bash");
        let answered = shell.send("abc").await;
        assert_prompt(&answered, Some(0));
        assert!(answered.viewport.contains("got abc"), "{answered:#?}");
    });
}

#[test]
fn a_shell_behind_a_relay_is_found_at_each_prompt() {
    shell(async |shell| {
        let inner = shell.send("script -qc 'bash --norc -i' /dev/null").await;
        assert_behind(&inner, StateKind::LineEditor, "bash");
        for n in 0..10 {
            let outcome = shell.send(&format!("echo {n}; sleep .0{n}; touch done{n}")).await;
            assert_behind(&outcome, StateKind::LineEditor, "bash");
            assert!(shell.path(&format!("done{n}")).exists());
            assert_eq!(outcome.last_command, None, "another shell's");
        }
        let secret = shell.send("read -s x").await;
        assert_behind(&secret, StateKind::Password, "bash");
        assert!(!secret.state.unwrap().echo);
        shell.send("hunter2").await;
        // One more terminal further in.
        let deeper = shell.send("script -qc 'exec cat' /dev/null").await;
        assert_behind(&deeper, StateKind::Line, "cat");
        assert_behind(&shell.type_only("\u{4}").await, StateKind::LineEditor, "bash");
        assert_prompt(&shell.send("exit 4").await, Some(0));
    });
}

/// A relay of our own: it hands bytes on after a pause, in which it waits for both sides again.
const RELAY: &str = "import os, pty, select, sys, time, tty
pid, inner = pty.fork()
if pid == 0: os.execvp('cat', ['cat'])
tty.setraw(0)
while True:
    ready = select.select([0, inner], [], [])[0]
    if inner in ready:
        try: data = os.read(inner, 99)
        except OSError: break
        time.sleep(.3); os.write(1, data)
    if 0 in ready: os.write(inner, os.read(0, 99))
os.system('stty sane')
";

#[test]
fn what_a_relay_says_while_it_works_is_no_evidence() {
    shell(async |shell| {
        std::fs::write(shell.path("relay.py"), RELAY).unwrap();
        let line = "python3 relay.py";
        assert_behind(&shell.send(line).await, StateKind::Line, "cat");
        for word in ["one", "two"] {
            let outcome = shell.send(word).await;
            assert_behind(&outcome, StateKind::Line, "cat");
            // The echo, and what `cat` wrote.
            assert_eq!(outcome.viewport.matches(word).count(), 2, "{outcome:#?}");
        }
        assert_prompt(&shell.type_only("\u{4}").await, Some(0));
    });
}

/// A client like those in Go: one thread reads the terminal, another one the connection, which prints
/// what comes and is busy for a moment. Nobody can see the far side; it works for ever.
const CLIENT: &str = "
import ctypes, fcntl, os, select, socket, sys, termios, threading, time, tty
ctypes.CDLL(None).prctl(15, b'docker')
here, there = socket.socketpair()
def far():
    while (got := there.recv(99)):
        for n in range(20): there.send(got + b'> '); time.sleep(.005)
def near():
    while True:
        select.select([here], [], [])
        os.write(1, here.recv(999))
        until = time.monotonic() + .002
        while time.monotonic() < until: pass
for it in far, near: threading.Thread(target=it, daemon=True).start()
modes = termios.tcgetattr(0)
if sys.argv[1] == 'raw': tty.setraw(0)
os.write(1, b'$ ')
while (got := os.read(0, 99)) and b'q' not in got: here.send(got.strip())
termios.tcsetattr(0, termios.TCSANOW, modes)
os._exit(3)
";

#[test]
fn a_client_that_reads_in_one_thread_and_prints_in_another_proves_nothing() {
    shell(async |shell| {
        std::fs::write(shell.path("client.py"), CLIENT).unwrap();
        for mode in ["raw", "cooked"] {
            let mut outcome = shell.send(&format!("python3 client.py {mode}")).await;
            for word in ["one", "two", "three"] {
                let state = outcome.state.as_ref().unwrap();
                let proven = outcome.wait_reason == WaitReason::StdinRead;
                assert!(!proven || state.evidence == Evidence::Relay, "{word}: {outcome:#?}");
                assert_eq!(state.foreground.as_ref().unwrap().command, "docker", "{outcome:#?}");
                outcome = shell.send(word).await;
            }
            assert_prompt(&shell.send("q").await, Some(3));
        }
    });
}

/// B1: the terminal behind the relay keeps 4,095 bytes of a line, whatever the one before it takes.
#[test]
fn a_line_that_a_terminal_behind_a_relay_would_cut_is_refused() {
    let refused = |bytes| Err(TerminalError::LineTooLong { bytes, limit: 4_095 });
    shell(async |shell| {
        let read = async || std::fs::read_to_string(shell.path("f")).unwrap();
        let line = "script -qc 'head -n1 > f' /dev/null";
        assert_behind(&shell.send(line).await, StateKind::Line, "head");
        let long = shell.start(&"x".repeat(10_000), true).unwrap().done().await;
        assert_eq!(long, refused(10_000));
        assert_prompt(&shell.send("short").await, Some(0));
        assert_eq!(read().await, "short\n");
        // What was typed before counts.
        assert_behind(&shell.send(line).await, StateKind::Line, "head");
        let piece = shell.type_only(&"x".repeat(4_000)).await;
        assert_eq!(piece.input.map(|it| (it.accepted, it.unread)), Some((4_000, Some(4_000))));
        let rest = shell.start(&"y".repeat(96), true).unwrap().done().await;
        assert_eq!(rest, refused(4_096));
        assert_prompt(&shell.send(&"y".repeat(95)).await, Some(0));
        assert_eq!(read().await.len(), 4_096);
        // In a text of several lines, and while nobody reads.
        let text = format!("script -qc 'sleep .5; head -n1 > f' /dev/null\n{}", "x".repeat(9_999));
        let later = shell.start(&text, true).unwrap().done().await.unwrap_err();
        assert_eq!(later.code(), "LINE_TOO_LONG");
        assert!(later.to_string().contains("the 46 bytes before it were typed"), "{later}");
        assert_prompt(&shell.send("short").await, Some(0));
        assert_eq!(read().await, "short\n");
        // A line editor takes any length, behind a relay too.
        let inner = shell.send("script -qc 'bash --norc -i' /dev/null").await;
        assert_behind(&inner, StateKind::LineEditor, "bash");
        let counted = shell.send(&format!("echo {} | wc -c", "x".repeat(9_999))).await;
        assert!(counted.viewport.contains("\n10000\n"), "{counted:#?}");
        assert_prompt(&shell.send("exit").await, Some(0));

        std::fs::write(shell.path("relay.py"), RELAY).unwrap();
        assert_behind(&shell.send("python3 relay.py").await, StateKind::Line, "cat");
        let long = shell.start(&"x".repeat(4_096), true).unwrap().done().await;
        assert_eq!(long, refused(4_096));
        assert_prompt(&shell.type_only("\u{4}").await, Some(0));
    });
}

#[test]
fn a_reader_in_a_session_of_its_own_is_found() {
    shell(async |shell| {
        let waiting = shell.send("setsid -w cat").await;
        assert_eq!(waiting.wait_reason, WaitReason::StdinRead, "{waiting:#?}");
        assert_eq!(waiting.state.unwrap().foreground.unwrap().command, "cat");
        let echoed = shell.send("hello").await;
        assert_eq!(echoed.viewport, "hello\nhello\n");
        assert_prompt(&shell.type_only("\u{4}").await, Some(0));
        // It waits before it reads.
        let slept = shell.send("setsid -w bash -c 'sleep .7; touch slept; read x; sleep .5'").await;
        assert_eq!(slept.wait_reason, WaitReason::StdinRead, "{slept:#?}");
        assert!(shell.path("slept").exists());
        assert_prompt(&shell.send("").await, Some(0));
    });
}

/// What a program that waits for others waits for is what it is busy with.
#[test]
fn who_waits_for_others_is_as_busy_as_they_are() {
    let server = "python3 -c 'import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); \
                  s.listen(); s.accept()'";
    shell(async |shell| {
        let server = format!("{server} ");
        for (line, busy) in [
            (format!("setsid -w {server}"), Busy::Network),
            (format!("cat <({server})"), Busy::Network),
        ] {
            let idle = shell.send(&line).await;
            assert_eq!(idle.wait_reason, WaitReason::InferredIdle, "{line}: {idle:#?}");
            assert_eq!(idle.state.unwrap().busy, Some(busy), "{line}");
            shell.signal(terminal::Signal::Kill).await.unwrap();
            shell.type_only("").await;
        }
        // A child that works elsewhere is no silence.
        shell.run("setsid -w bash -c 'sleep .8; touch far'", 0).await;
        assert!(shell.path("far").exists());
    });
}

/// The other end of a FIFO, and a lock.
#[test]
fn files_that_others_keep_busy_are_no_silence() {
    shell(async |shell| {
        shell.run("mkfifo f; (sleep .8; echo X > f) &", 0).await;
        assert!(shell.run("cat f", 0).await.contains("X\n"));
        shell.run("flock l sleep .8 &", 0).await;
        shell.run("flock l touch locked", 0).await;
        assert!(shell.path("locked").exists());
    });
}
