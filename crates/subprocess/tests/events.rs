//! Bytes in both directions, the exit, the end of output, the deadline.
#![cfg(target_os = "linux")]

mod support;

use std::time::{Duration, Instant};

use subprocess::{Depth, Event, ExitStatus};
use support::{Session, guarded, python, sh, spec};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_answers_and_ends() {
    let mut session = Session::shell().await;
    assert_eq!(session.command("echo $((6*7))").await, "42\r\ndsh> ");
    session.type_line("exit 7");
    assert_eq!(session.until_exit().await, ExitStatus::Code(7));
    session.close().await;
}

#[tokio::test]
async fn exit_statuses_are_true() {
    let killed = ExitStatus::Signal("SIGKILL".to_owned());
    for (line, status) in [
        ("exit 7", ExitStatus::Code(7)),
        ("exec true", ExitStatus::Code(0)),
        ("set -e; false", ExitStatus::Code(1)),
        ("kill -9 $$", killed),
    ] {
        let mut session = Session::shell().await;
        session.type_line(line);
        assert_eq!(session.until_exit().await, status, "{line}");
        assert_eq!(session.process.cwd(), None);
        session.close().await;
    }
}

#[tokio::test]
async fn the_exit_is_told_while_others_hold_the_terminal() {
    let mut session = Session::shell().await;
    session.type_line("sleep 1000 & exit 7");
    assert_eq!(session.until_exit().await, ExitStatus::Code(7));
    // Nothing more is told, although the terminal is still open.
    let now = Some(Instant::now());
    assert_eq!(session.process.next(now, &mut session.output).await, Event::Deadline);
    session.close().await;
}

#[tokio::test]
async fn the_exit_is_told_while_output_never_ends() {
    let mut session = Session::shell().await;
    session.type_line("yes & sleep 0.1; exit 3");
    while session.exit.is_none() {
        session.output.clear();
        session.event().await;
    }
    while !session.ended {
        session.output.clear();
        session.event().await;
    }
    assert_eq!(session.exit, Some(ExitStatus::Code(3)));
    session.close().await;
}

#[tokio::test]
async fn what_is_printed_as_the_last_act_is_complete() {
    for _ in 0..20 {
        let mut session = Session::start(sh("head -c 65536 /dev/zero | tr '\\0' x; exit 4")).await;
        assert_eq!(session.until_exit().await, ExitStatus::Code(4));
        assert_eq!(support::count(&session.output, b'x'), 65536);
        session.close().await;
    }
}

#[tokio::test]
async fn a_late_raw_reader_gets_every_byte() {
    let script = "stty raw -echo; echo READY; sleep 0.3; head -c 200000 | cksum; echo END";
    let mut session = Session::start(sh(script)).await;
    session.until("READY").await;
    let bytes: Vec<u8> = (0..200_000u32).map(|it| (it % 251) as u8).collect();
    session.process.write(&bytes);
    let waiting = session.process.unwritten();
    assert!(0 < waiting && waiting < bytes.len(), "the terminal took {waiting} bytes less");
    while !session.text().contains("END") {
        session.event().await;
    }
    assert_eq!(session.process.unwritten(), 0);
    assert_eq!(session.text().trim(), format!("{} 200000\nEND", cksum(&bytes)));
    session.close().await;
}

#[tokio::test]
async fn the_echo_of_much_input_stops_nobody() {
    let script = "stty raw echo; echo READY; sleep 0.2; head -c 200000 | wc -c; echo END";
    let mut session = Session::start(sh(script)).await;
    session.until("READY").await;
    session.process.write(&vec![b'e'; 200_000]);
    let text = session.until("END").await;
    assert!(text.contains("200000"), "{text:?}");
    session.close().await;
}

#[tokio::test]
async fn a_long_canonical_line_is_cut_by_the_kernel_and_not_by_us() {
    let script = "stty -echo; echo READY; sleep 0.2; head -n1 | wc -c; echo END";
    let mut session = Session::start(sh(script)).await;
    session.until("READY").await;
    session.process.write(&[b'x'; 10_000]);
    session.process.write(b"\r");
    assert_eq!(session.process.unwritten(), 0, "the terminal says it took all");
    let text = session.until("END").await;
    assert!(text.contains("4096"), "{text:?}");
    session.close().await;
}

#[tokio::test]
async fn queued_input_can_be_forgotten() {
    let mut session = Session::start(sh("stty raw -echo; echo READY; sleep 1000")).await;
    session.until("READY").await;
    session.process.write(&vec![b'x'; 300_000]);
    let queued = session.process.unwritten();
    assert!(queued > 200_000);
    assert_eq!(session.process.probe(Depth::Fast).await.unwritten, queued);
    // The kernel hands on what it has taken a little later.
    support::until("it is full, and there is more behind", || {
        session.process.unread_bytes().is_none()
    })
    .await;
    assert!(session.process.flush_input() > queued as u64);
    assert_eq!((session.process.unwritten(), session.process.unread_bytes()), (0, Some(0)));
    assert_eq!(session.process.probe(Depth::Full).await.unread_input, Some(false));
    assert_eq!(session.process.flush_input(), 0);
    session.close().await;
}

#[tokio::test]
async fn what_was_set_can_be_restored() {
    use subprocess::LineSetting::{Echo, Enter, Lines, Output, Signals};
    let script = "stty raw -echo -ixon; echo READY; read -r x; stty -a; echo END";
    let mut session = Session::start(sh(script)).await;
    session.until("READY").await;
    let changed = session.process.changed_settings();
    assert_eq!(changed, [Lines, Echo, Signals, Enter, Output]);
    assert_eq!(session.process.restore_settings(), changed);
    assert_eq!(session.process.changed_settings(), []);
    assert_eq!(session.process.restore_settings(), []);
    session.process.write(b"\n");
    let told = session.until("END").await;
    for word in [" icanon", " echo ", "isig", "icrnl", "opost", "onlcr", "-ixon"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    session.close().await;
}

#[tokio::test]
async fn a_process_tells_what_it_has_loaded() {
    let mut session = Session::start(spec("/bin/cat", &[])).await;
    let pid = session.process.pid();
    session.process.write(b"up\n");
    session.until("up\r\nup").await;
    assert_eq!(session.process.has_loaded(pid, "libc."), Some(true));
    assert_eq!(session.process.has_loaded(pid, "libreadline."), Some(false));
    assert_eq!(session.process.has_loaded(0, "libc."), None, "nobody");
    session.close().await;
}

#[tokio::test]
async fn a_line_typed_ahead_can_be_forgotten() {
    let (_directory, path) = support::temp();
    let mut session = Session::shell().await;
    session.type_line("sleep 1000");
    session
        .until_evidence(Depth::Full, "sleeps", |it| support::processes_of(it, "sleep").count() == 1)
        .await;
    let line = format!("touch {}", path.join("ahead").display());
    session.type_line(&line);
    // The second line has no end yet: the terminal does not tell of it, and forgets it all the same.
    session.process.write(b"echo half of a ");
    assert_eq!(session.process.flush_input(), line.len() as u64 + 1);
    session.process.signal_foreground("SIGINT", true).unwrap();
    session.until("dsh> ").await;
    assert_eq!(session.command("echo next").await, "next\r\ndsh> ");
    assert!(!path.join("ahead").exists());
    session.close().await;
}

#[tokio::test]
async fn input_for_a_terminal_that_is_gone_is_not_lost_silently() {
    let mut session = Session::start(sh("exit")).await;
    session.until_exit().await;
    session.process.write(b"never read");
    session.process.write(b" either");
    assert_eq!(session.process.unwritten(), 17);
    assert_eq!(session.process.probe(Depth::Full).await.unwritten, 17);
    assert_eq!(session.process.flush_input(), 17);
    assert_eq!(session.process.unwritten(), 0);
    session.close().await;
}

#[tokio::test]
async fn a_read_of_the_terminal_is_activity() {
    let script = "stty -echo; echo READY; sleep 1; cat >/dev/null";
    let mut session = Session::start(sh(script)).await;
    session.until("READY").await;
    session.process.write(b"line\r");
    // Found unread, so that its reading is worth an event.
    assert_eq!(session.process.probe(Depth::Full).await.unread_input, Some(true));
    while session.event().await != Event::Activity {}
    session.close().await;
}

#[tokio::test]
async fn deadlines_are_met_in_silence_and_in_noise() {
    let mut quiet = Session::start(sh("sleep 1000")).await;
    for micros in [0, 50, 3000] {
        let at = Instant::now() + Duration::from_micros(micros);
        assert_eq!(
            guarded("deadline", quiet.process.next(Some(at), &mut quiet.output)).await,
            Event::Deadline
        );
        assert!(Instant::now() >= at);
    }
    // A deadline given up for a later one does not come.
    let near = Some(Instant::now() + Duration::from_millis(5));
    let far = Instant::now() + Duration::from_millis(20);
    tokio::select! {
        biased;
        event = quiet.process.next(near, &mut quiet.output) => panic!("{event:?}"),
        () = std::future::ready(()) => {}
    }
    assert_eq!(quiet.process.next(Some(far), &mut quiet.output).await, Event::Deadline);
    assert!(Instant::now() >= far);
    quiet.close().await;

    let mut noisy = Session::start(sh("yes")).await;
    noisy.until("y").await;
    let past = Some(Instant::now());
    assert_eq!(noisy.process.next(past, &mut noisy.output).await, Event::Deadline);
    // Met once, the same deadline does not hide what else happens.
    let next = guarded("output", async {
        loop {
            match noisy.process.next(past, &mut noisy.output).await {
                Event::Deadline => {}
                other => return other,
            }
        }
    });
    assert_eq!(next.await, Event::Output);
    noisy.close().await;
}

#[tokio::test]
async fn giving_up_a_wait_loses_nothing() {
    let mut session = Session::start(sh("seq 1 30000; echo END")).await;
    let mut ended = false;
    while !ended {
        tokio::select! {
            biased;
            event = session.process.next(None, &mut session.output) => {
                ended = event == Event::OutputEnd;
            }
            () = tokio::task::yield_now() => {}
        }
    }
    let numbers: Vec<_> = (1..=30000).map(|it| it.to_string()).collect();
    assert_eq!(session.text(), numbers.join("\r\n") + "\r\nEND\r\n");
    session.close().await;
}

#[tokio::test]
async fn output_can_be_taken_without_waiting() {
    let mut session = Session::start(sh("cat")).await;
    session.until_evidence(Depth::Full, "reads", |it| it.blocked_reader == Some(true)).await;
    session.output.clear();
    assert!(!session.process.drain(&mut session.output));
    session.process.write(b"x");
    assert!(session.process.probe(Depth::Fast).await.unread_output, "the echo is there");
    assert!(session.process.drain(&mut session.output));
    assert_eq!(session.output, b"x");
    assert!(!session.process.probe(Depth::Fast).await.unread_output);
    session.close().await;
}

#[tokio::test]
async fn the_terminal_changes_its_size() {
    let mut session = Session::shell().await;
    assert_eq!(session.command("stty size").await, "40 160\r\ndsh> ");
    let size = subprocess::TerminalSize {
        rows: std::num::NonZeroU16::new(50).unwrap(),
        cols: std::num::NonZeroU16::new(100).unwrap(),
    };
    session.process.resize(size).unwrap();
    assert_eq!(session.command("stty size").await, "50 100\r\ndsh> ");
    session.close().await;
}

#[tokio::test]
async fn the_leader_tells_its_directory() {
    let (_directory, path) = support::temp();
    let mut session = Session::shell().await;
    session.command(&format!("cd {}", path.display())).await;
    assert_eq!(session.process.cwd(), Some(path.canonicalize().unwrap()));
    session.close().await;
}

#[tokio::test]
async fn signals_reach_the_foreground_group_only() {
    let mut session = Session::shell().await;
    session.type_line("sleep 1000");
    let evidence = session
        .until_evidence(Depth::Full, "sleeps", |it| support::processes_of(it, "sleep").count() == 1)
        .await;
    let group = session.process.signal_foreground("SIGINT", false).unwrap();
    assert_eq!(Some(group), evidence.foreground);
    assert_ne!(group, session.process.pid());
    session.until("dsh> ").await;
    assert_eq!(session.command("echo $?").await, "130\r\ndsh> ");
    let error = session.process.signal_foreground("SIGKILL", true).unwrap_err();
    assert!(matches!(error, subprocess::SignalError::Leader), "{error}");
    let error = session.process.signal_foreground("SIGNONE", false).unwrap_err();
    assert!(error.to_string().contains("SIGNONE"), "{error}");

    session.type_line("exit");
    session.until_exit().await;
    let error = session.process.signal_foreground("SIGINT", false).unwrap_err();
    assert!(matches!(error, subprocess::SignalError::NoForegroundGroup), "{error}");
    session.close().await;
}

#[tokio::test]
async fn a_raw_program_is_interrupted_by_a_real_signal() {
    let script = "import os, tty, signal, sys, time\n\
        signal.signal(signal.SIGINT, lambda *_: (os.write(1, b'INT'), sys.exit(5)))\n\
        tty.setraw(0); print('READY', flush=True); time.sleep(1000)";
    let mut session = Session::start(python(script)).await;
    session.until("READY").await;
    session.process.signal_foreground("SIGINT", false).unwrap();
    session.until("INT").await;
    assert_eq!(session.until_exit().await, ExitStatus::Code(5));
    session.close().await;
}

/// The checksum of `cksum(1)`: the bytes, then their number's significant bytes, lowest first.
fn cksum(bytes: &[u8]) -> u32 {
    let number = bytes.len().to_le_bytes();
    let length = number.iter().rposition(|&it| it != 0).map_or(0, |it| it + 1);
    !bytes.iter().chain(&number[..length]).fold(0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte) << 24, |crc, _| {
            (crc << 1) ^ if crc >> 31 == 1 { 0x04c1_1db7 } else { 0 }
        })
    })
}
