//! What is typed, by whom, and how it is interrupted.

use terminal::{Signal, StateKind, TerminalError, WaitReason};
use testkit::wait::shown;

use crate::shell::{assert_prompt, assert_waits, bench, shell};

/// B10
#[test]
fn two_senders_never_mix() {
    shell(async |shell| {
        let sender = async |name: &str| {
            let (mut done, mut busy) = (0, 0);
            while done < 50 {
                match shell.start(&format!("echo {name}-{done}"), true) {
                    Ok(operation) => {
                        let outcome = operation.done().await.unwrap();
                        let expected = format!("echo {name}-{done}\n{name}-{done}\ndsh> ");
                        assert_eq!(outcome.viewport, expected);
                        done += 1;
                    }
                    Err(TerminalError::SendActive { .. }) => {
                        busy += 1;
                        tokio::task::yield_now().await;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            busy
        };
        let busy = tokio::join!(
            sender("a"),
            sender("b"),
            sender("c"),
            sender("d"),
            sender("e"),
            sender("f"),
            sender("g"),
            sender("h"),
        );
        assert!(busy.0 + busy.7 > 0, "they did meet");
    });
}

/// B6, B1, B2
#[test]
fn text_arrives_as_sent_or_not_at_all() {
    shell(async |shell| {
        assert_eq!(shell.run("echo \"hello world!x\"", 0).await, "hello world!x\n");
        assert_waits(&shell.send("head -n1 > f").await, StateKind::Line);
        let refused = shell.start(&"x".repeat(10_000), true).unwrap().done().await;
        assert_eq!(refused, Err(TerminalError::LineTooLong { bytes: 10_000, limit: 4_095 }));
        assert_prompt(&shell.send("short").await, Some(0));
        assert_eq!(std::fs::read_to_string(shell.path("f")).unwrap(), "short\n");
        let long = format!("echo {} | wc -c", "x".repeat(10_000));
        let counted = shell.send(&long).await;
        assert!(counted.viewport.ends_with("\n10001\ndsh> "), "a line editor takes any length");
    });
}

#[test]
fn too_much_text_is_refused_whole() {
    bench("{ maxInputBytes: 100 }", async |bench| {
        let shell = bench.open().await;
        let refused = shell.start(&"x".repeat(101), true).map(|_| ());
        assert_eq!(refused, Err(TerminalError::InputTooLarge { bytes: 101, limit: 100 }));
        assert_prompt(&shell.send("true").await, Some(0));
    });
}

/// D9: a foreground command, and a program in raw mode that would read `^C` as a byte.
#[test]
fn an_interrupt_is_a_signal() {
    shell(async |shell| {
        let sleeping = shell.start("sleep 100", true).unwrap();
        shell.in_front("sleep").await;
        let group = shell.signal(Signal::Interrupt).await.unwrap();
        assert!(group > 0);
        assert_prompt(&sleeping.done().await.unwrap(), Some(130));

        let raw = "python3 -c 'import tty, time; tty.setraw(0); print(\"raw\", flush=True); time.sleep(100)'";
        let raw = shell.start(raw, true).unwrap();
        // Behind the echo, in which the word stands too.
        shown(&*raw, "\nraw").await;
        assert!(raw.cancel("the user pressed stop"));
        let ended = raw.done().await.unwrap();
        assert_eq!(ended.wait_reason, WaitReason::StdinRead, "{ended:#?}");
        assert!(!raw.cancel("again"), "it has settled");
        assert_eq!(ended.last_command.unwrap().exit_code, Some(130));
        shell.send("stty sane").await;
        assert_eq!(shell.run("echo alive", 0).await, "alive\n");
    });
}

#[test]
fn a_signal_goes_to_the_foreground_and_never_kills_the_shell() {
    shell(async |shell| {
        assert_eq!(shell.signal(Signal::Kill).await, Err(TerminalError::ShellKillRefused));
        let sleeping = shell.start("sleep 100", true).unwrap();
        shell.in_front("sleep").await;
        shell.signal(Signal::Kill).await.unwrap();
        let killed = sleeping.done().await.unwrap();
        assert_eq!(killed.last_command.unwrap().exit_code, Some(137));
    });
}

/// A cancelled send keeps the session's one slot until it is really over.
#[test]
fn a_cancelled_send_is_over_only_when_the_program_is() {
    shell(async |shell| {
        let script = "import signal
signal.signal(signal.SIGINT, lambda *_: print('ca' 'ught', flush=True))
print('de' 'af', flush=True)
print(open('gate').read())
";
        std::fs::write(shell.path("stubborn.py"), script).unwrap();
        let stubborn = shell.start("mkfifo gate; python3 stubborn.py", true).unwrap();
        shown(&*stubborn, "deaf\n").await;
        stubborn.cancel("enough");
        shown(&*stubborn, "caught\n").await;
        assert!(matches!(shell.start("true", true), Err(TerminalError::SendActive { .. })));
        std::fs::write(shell.path("gate"), "heard").unwrap();
        let outcome = stubborn.done().await.unwrap();
        assert_prompt(&outcome, Some(0));
        assert!(outcome.viewport.ends_with("\nheard\ndsh> "), "{outcome:?}");
    });
}

/// Each line waits for its reader: what is typed ahead of a reader in line mode would reach it in
/// one piece.
#[test]
fn lines_go_to_whoever_waits_for_them() {
    shell(async |shell| {
        let outcome = shell.send("read a\nvalue\nread b\nv2\necho $a-$b; (exit 6)").await;
        assert_prompt(&outcome, Some(6));
        assert!(outcome.viewport.ends_with("\nvalue-v2\ndsh> "), "{outcome:?}");

        let outcome = shell.send("head -n1\nfirst\necho second").await;
        assert_prompt(&outcome, Some(0));
        assert!(outcome.viewport.contains("\nsecond\ndsh> "), "{outcome:?}");

        // An end of file is one for whoever reads then.
        let outcome = shell.send("cat > c\nline1\nline2\n\u{4}cat c; echo $?").await;
        assert_prompt(&outcome, Some(0));
        let script = "import time\nfor i in range(3): time.sleep(.2); input()\n";
        let text = format!("python3 -q\n{script}\n1\n2\n3\nprint('all')\nexit()");
        let outcome = shell.send(&text).await;
        assert_prompt(&outcome, Some(0));
        assert!(outcome.viewport.contains("\nall\n"), "{outcome:?}");
    });
}

/// B1 in a text of several lines: what was typed is said.
#[test]
fn a_later_line_that_would_be_cut_is_not_typed() {
    shell(async |shell| {
        let text = format!("head -n1 > f\n{}\necho after", "a".repeat(10_000));
        let refused = shell.start(&text, true).unwrap().done().await.unwrap_err();
        assert_eq!(refused.code(), "LINE_TOO_LONG");
        assert!(refused.to_string().contains("the 13 bytes before it were typed"), "{refused}");
        assert_prompt(&shell.send("short").await, Some(0));
        assert_eq!(std::fs::read_to_string(shell.path("f")).unwrap(), "short\n");
    });
}

/// B5
#[test]
fn a_tab_in_a_line_is_a_tab() {
    shell(async |shell| {
        assert_prompt(&shell.send("cat > mk <<E\nall:\n\techo hi\nE").await, Some(0));
        assert_eq!(std::fs::read_to_string(shell.path("mk")).unwrap(), "all:\n\techo hi\n");
        assert_prompt(&shell.send("printf 'a\tb' > t").await, Some(0));
        assert_eq!(std::fs::read_to_string(shell.path("t")).unwrap(), "a\tb");
    });
}

/// What was typed ahead goes with what is cancelled, as with the interrupt key.
#[test]
fn a_cancellation_takes_the_rest_of_the_text_along() {
    shell(async |shell| {
        for cancel in [true, false] {
            let waiting = shell.start("sleep 100\ntouch ran", true).unwrap();
            shell.in_front("sleep").await;
            if cancel {
                assert!(waiting.cancel("stop"));
            } else {
                shell.signal(Signal::Interrupt).await.unwrap();
            }
            assert_prompt(&waiting.done().await.unwrap(), Some(130));
            assert_prompt(&shell.send("true").await, Some(0));
            assert!(!shell.path("ran").exists());
        }
    });
}

/// A cancellation that comes while the shell is starting the command meets the shell's fork, which
/// lets the signal go.
#[test]
fn a_cancellation_meets_a_command_that_is_being_started() {
    shell(async |shell| {
        for _ in 0..30 {
            let sleeping = shell.start("echo started; sleep 100", true).unwrap();
            shown(&*sleeping, "\nstarted").await;
            assert!(sleeping.cancel("changed my mind"));
            let ended = sleeping.done().await.unwrap();
            assert_eq!(ended.wait_reason, WaitReason::StdinRead, "{ended:#?}");
            assert_eq!(ended.state.unwrap().kind, StateKind::Prompt);
        }
    });
}
