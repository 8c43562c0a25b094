//! What programs leave behind that end badly: the terminal's modes, and the next prompt.

use terminal::StateKind;
use testkit::wait::shown;

use crate::shell::{Shell, assert_prompt, assert_waits, bench, shell};

/// What the line is set to, of what matters to programs.
async fn line(shell: &Shell<'_>) -> String {
    let all = shell.run("stty -a", 0).await;
    let words = all.split([' ', ';', '\n']);
    let matter = ["icanon", "echo", "isig", "icrnl", "opost", "onlcr", "iexten"];
    let kept = words.filter(|it| matter.contains(&it.trim_start_matches('-')));
    kept.collect::<Vec<_>>().join(" ")
}

/// B11
#[test]
fn the_line_is_itself_again_at_the_prompt() {
    shell(async |shell| {
        let sane = line(shell).await;
        assert!(!sane.contains('-'), "{sane}");
        for (mess, status, words) in [
            (
                "python3 -c 'import tty, os; tty.setraw(0); os._exit(3)'",
                3,
                &[
                    "restored line mode",
                    "restored the echo",
                    "restored the signal keys",
                    "restored the Enter key",
                    "restored line breaks",
                ][..],
            ),
            // A killed child of a script: the shell does not see that it was killed.
            (
                "bash -c 'python3 -c \"import os, tty; tty.setraw(0); os.kill(os.getpid(), 9)\"; exit 5'",
                5,
                &[
                    "restored line mode",
                    "restored the echo",
                    "restored the signal keys",
                    "restored the Enter key",
                    "restored line breaks",
                ],
            ),
            // Nothing of these can be seen at the prompt.
            (
                "python3 -c 'import os, time, tty; tty.setcbreak(0); time.sleep(.5); os._exit(1)'",
                1,
                &["restored line mode", "restored the echo"],
            ),
            // The shell does it itself.
            (
                "python3 -c 'import os, time, tty; tty.setcbreak(0); time.sleep(.5); os.kill(os.getpid(), 9)'",
                137,
                &["restored line mode", "restored the echo"],
            ),
        ] {
            let outcome = shell.send(mess).await;
            assert_prompt(&outcome, Some(status));
            assert_eq!(outcome.repaired, words, "{mess}");
            assert_eq!(shell.run("echo \"status $?\"", 0).await, format!("status {status}\n"));
            assert_eq!(line(shell).await, sane, "{mess}");
            let outcome = shell.send("true").await;
            assert_eq!(outcome.repaired, [""; 0], "once");
        }
        let history = shell.run("history", 0).await;
        assert!(history.contains("echo \"status") && !history.contains("builtin"), "{history}");
    });
}

/// One that nobody saw is found when the next command is not shown.
#[test]
fn an_echo_that_was_lost_unseen_is_found_by_its_lack() {
    shell(async |shell| {
        std::fs::write(shell.path("mess"), "stty -echo\n").unwrap();
        shell.send("sh ./mess").await;
        let unseen = shell.send("echo one").await;
        assert_prompt(&unseen, Some(0));
        if unseen.repaired.is_empty() {
            // It was seen at once.
            assert!(unseen.viewport.starts_with("echo one"), "{unseen:#?}");
        }
        assert_eq!(shell.run("echo two", 0).await, "two\n");
    });
}

#[test]
fn a_full_screen_program_that_is_killed_leaves_nothing() {
    const FULL_SCREEN: &str = "
import os, time, tty
tty.setraw(0)
os.write(1, b'begin\\r\\n\\x1b[?1049h\\x1b[?1000h\\x1b[?2004h\\x1b[?25lfull')
time.sleep(100)
";
    shell(async |shell| {
        let sane = line(shell).await;
        std::fs::write(shell.path("full.py"), FULL_SCREEN).unwrap();
        let full = shell.start("python3 full.py", true).unwrap();
        shown(&*full, "\nbegin").await;
        shell.signal(terminal::Signal::Kill).await.unwrap();
        let outcome = full.done().await.unwrap();
        assert_prompt(&outcome, Some(137));
        // The line's modes the shell may have put right before anybody saw them.
        for word in ["left the alternate screen", "turned mouse reports off"] {
            assert!(outcome.repaired.iter().any(|it| it == word), "{word}: {outcome:#?}");
        }
        assert_eq!(shell.run("echo visible", 0).await, "visible\n");
        assert_eq!(line(shell).await, sane);
    });
}

/// Whatever a program left of what is remembered for the next one.
#[test]
fn a_crash_leaves_no_mode_behind() {
    bench("{ term: dumb, idleSilenceMs: 300, timeoutMs: 20000 }", async |bench| {
        let shell = bench.open().await;
        for (left, words) in [
            (r"\e[1;31m", &["reset the colours"][..]),
            (r"\e[?25l", &["showed the cursor again"]),
            (r"\e[?2004h", &["turned bracketed paste off"]),
            (r"\e[5;9r\e[9;1H", &["reset the scroll region"]),
            (r"\e[?1003h\e[?1006h", &["turned mouse reports off"]),
            (
                r"\e[?1049h\e[?1h\e=",
                &["left the alternate screen", "reset the cursor keys", "reset the keypad"],
            ),
        ] {
            let outcome = shell.send(&format!("printf '{left}'; (exit 9)")).await;
            assert_prompt(&outcome, Some(9));
            assert_eq!(outcome.repaired, words, "{left}");
            assert_eq!(shell.send("true").await.repaired, [""; 0], "once");
        }
        assert_eq!(shell.run("echo whole", 0).await, "whole\n");
    });
}

/// What a user set is no damage, and nothing is put right under a program that runs.
#[test]
fn what_was_meant_is_left_alone() {
    shell(async |shell| {
        let outcome = shell.send("stty -echo; false").await;
        assert_eq!(outcome.last_command.unwrap().exit_code, Some(1));
        assert_eq!(outcome.repaired, [""; 0]);
        let outcome = shell.send("stty echo; stty -ixon").await;
        assert_eq!(outcome.repaired, [""; 0]);
        let raw = "python3 -c 'import os, sys, tty
tty.setraw(0); os.write(1, b\"ready \"); os.read(0, 9); os.system(\"stty -a > modes; stty sane\")'";
        let asked = shell.send(raw).await;
        assert_eq!(asked.state.unwrap().kind, StateKind::Raw);
        assert_prompt(&shell.type_only("x").await, Some(0));
        let modes = std::fs::read_to_string(shell.path("modes")).unwrap();
        assert!(modes.contains("-icanon") && modes.contains("-opost"), "{modes}");
    });
}

#[test]
fn a_strict_shell_is_mended_and_lives() {
    shell(async |shell| {
        let sane = line(shell).await;
        shell.run("set -euo pipefail; unset HISTCONTROL", 0).await;
        std::fs::write(shell.path("mess"), "stty raw -echo; exit 3\n").unwrap();
        let outcome = shell.send("sh ./mess || true").await;
        assert_prompt(&outcome, Some(0));
        assert!(outcome.repaired.contains(&"restored the echo".to_owned()), "{outcome:#?}");
        assert_eq!(line(shell).await, sane);
    });
}

/// The mending runs a line of its own, whose end used to be told as that of the next command.
#[test]
fn the_mending_is_no_command_of_the_next_send() {
    shell(async |shell| {
        let mess = "python3 -c 'import tty, os; tty.setraw(0); os._exit(3)'";
        assert_prompt(&shell.send(mess).await, Some(3));
        let next = shell.send("cat").await;
        assert_waits(&next, StateKind::Line);
        assert_eq!(next.last_command, None);
        assert_prompt(&shell.type_only("\u{4}").await, Some(0));
    });
}
