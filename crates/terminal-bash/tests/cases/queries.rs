//! What programs ask of the terminal: replied to while they wait for it, and never left for the
//! next command.

use terminal::{StateKind, WaitReason};

use crate::shell::{Shell, assert_prompt, assert_waits, bench, shell};

/// Every question that is answered, as a shell's `printf` writes it.
const ALL: &str = r"\033[5n\033[6n\033[?6n\033[c\033Z\033[>c\033[>q\033[?7$p\033[?2004$p\033[?u\033[18t\033]10;?\007\033]11;?\033\\\033]12;?\007\033]4;9;?\007";

/// Asks in raw mode, each question after the reply to the last one, and writes down the replies.
const ASKS: &str = r#"
import os, sys, termios, tty
questions = [b"\33[5n", b"\33[6n", b"\33[?6n", b"\33[c", b"\33Z", b"\33[>c", b"\33[?7$p", b"\33[?u",
             b"\33[18t", b"\33]10;?\7", b"\33]4;9;?\7", b"\33[>q"]
ends = [b"n", b"R", b"R", b"c", b"c", b"c", b"y", b"u", b"t", b"\7", b"\7", b"\\"]
saved = termios.tcgetattr(0)
tty.setraw(0)
with open(sys.argv[1], "wb") as replies:
    for question, end in zip(questions, ends):
        for piece in ([question] if len(sys.argv) < 3 else [question[i:i + 1] for i in range(len(question))]):
            os.write(1, piece)
        reply = b""
        while not reply.endswith(end):
            reply += os.read(0, 1)
        replies.write(reply + b"\n")
termios.tcsetattr(0, termios.TCSADRAIN, saved)
"#;

const DUMB: &str = "{ idleSilenceMs: 300, timeoutMs: 20000, term: dumb }";

/// The next command arrives whole, and nothing else was typed.
async fn assert_intact(shell: &Shell<'_>) {
    let outcome = shell.send("echo in''tact").await;
    assert_prompt(&outcome, Some(0));
    assert_eq!(outcome.viewport, "echo in''tact\nintact\ndsh> ");
}

/// B8
#[test]
fn a_program_that_asks_and_waits_is_answered() {
    shell(async |shell| {
        std::fs::write(shell.path("asks.py"), ASKS).unwrap();
        for pieces in ["", " pieces"] {
            assert_prompt(
                &shell.send(&format!("clear; python3 asks.py replies{pieces}")).await,
                Some(0),
            );
            let replies = std::fs::read_to_string(shell.path("replies")).unwrap();
            let version = format!("\u{1b}P>|dsh({})\u{1b}\\", env!("CARGO_PKG_VERSION"));
            let expected = [
                "\u{1b}[0n",
                "\u{1b}[1;1R",
                "\u{1b}[?1;1R",
                "\u{1b}[?62;22c",
                "\u{1b}[?62;22c",
                "\u{1b}[>1;10;0c",
                "\u{1b}[?7;1$y",
                "\u{1b}[?0u",
                "\u{1b}[8;40;160t",
                "\u{1b}]10;rgb:e5e5/e5e5/e5e5\u{7}",
                "\u{1b}]4;9;rgb:ffff/0000/0000\u{7}",
                &version,
            ];
            assert_eq!(replies.lines().collect::<Vec<_>>(), expected);
            assert_intact(shell).await;
        }
    });
}

/// The ways in which shell scripts ask: by `read` itself, before it, and in a script of its own.
#[test]
fn a_shell_that_reads_the_reply_is_answered() {
    for config in ["{}", DUMB] {
        bench(config, async |bench| {
            let shell = bench.open().await;
            let ask = r"IFS=';' read -sdR -p $'\e[6n' row column; echo ${row#*[}-$column";
            std::fs::write(shell.path("ask.sh"), ask).unwrap();
            let before = r"printf 'ab\e[6n'; read -sdR reply; echo; echo ${reply#*[}";
            shell.send("printf '\\e[H\\e[2J'").await;
            let own = shell.send(ask).await;
            assert_prompt(&own, Some(0));
            assert!(own.viewport.ends_with("\n2-1\ndsh> "), "{own:?}");
            let script = shell.send("bash ask.sh").await;
            assert_prompt(&script, Some(0));
            assert!(script.viewport.ends_with("\n4-1\ndsh> "), "{script:?}");
            let before = shell.send(before).await;
            assert_prompt(&before, Some(0));
            assert!(before.viewport.ends_with("\n6;3\ndsh> "), "{before:?}");
            assert_intact(&shell).await;
        });
    }
}

/// Questions that nobody waits for in raw mode are output like any other.
#[test]
fn questions_in_a_file_leave_the_next_command_intact() {
    for config in ["{}", DUMB] {
        bench(config, async |bench| {
            let shell = bench.open().await;
            shell
                .send(&format!("printf '{ALL}' > all; for i in {{1..50}}; do cat all; done > many"))
                .await;
            for _ in 0..10 {
                for command in [
                    "cat all",
                    "cat many",
                    "cat all; sleep .01",
                    "cat all all; echo; false | cat many",
                    "(cat all)",
                    "bash -c 'cat all'",
                    "python3 -c 'import os; os.system(\"cat all\")'",
                    "for i in 1 2 3; do cat all; done",
                ] {
                    assert_eq!(shell.send(command).await.wait_reason, WaitReason::StdinRead);
                    assert_intact(&shell).await;
                }
            }
            // In the answer to a question, and in pieces.
            assert_waits(&shell.send("read -p \"$(cat all)? \" x").await, StateKind::Line);
            assert_prompt(&shell.send("yes").await, Some(0));
            assert_eq!(shell.run("echo $x", 0).await, "yes\n");
            assert_waits(&shell.send("cat all -").await, StateKind::Line);
            assert_eq!(shell.send("line").await.viewport, "line\nline\n");
            assert_prompt(&shell.type_only("\u{4}").await, Some(0));
            let pieces =
                "while IFS= read -rn1 -d '' c; do printf %s \"$c\"; sleep .001; done < all";
            shell.send(pieces).await;
            assert_intact(&shell).await;
        });
    }
}

/// While the shell is at its prompt, whoever asks.
#[test]
fn a_background_job_that_asks_leaves_the_next_command_intact() {
    for config in ["{}", DUMB] {
        bench(config, async |bench| {
            let shell = bench.open().await;
            shell.send(&format!("printf '{ALL}' > all; mkfifo go")).await;
            for round in 0..10 {
                shell.send("(read x < go; cat all; echo > done) &").await;
                std::fs::write(shell.path("go"), "\n").unwrap();
                let done = shell.path("done");
                testkit::wait::wait_until("the job", || done.exists()).await;
                std::fs::remove_file(done).unwrap();
                let outcome = shell.send(&format!("echo in''tact {round}")).await;
                assert_prompt(&outcome, Some(0));
                assert!(outcome.viewport.contains(&format!("\nintact {round}\n")), "{outcome:?}");
            }
        });
    }
}

#[test]
fn a_prompt_that_asks_leaves_the_next_command_intact() {
    for config in ["{}", DUMB] {
        bench(config, async |bench| {
            let shell = bench.open().await;
            shell
                .send(&format!("printf '{ALL}' > all; PROMPT_COMMAND=\"cat all; $PROMPT_COMMAND\""))
                .await;
            for _ in 0..10 {
                assert_intact(&shell).await;
            }
        });
    }
}

/// Whether before a reply could be typed, or with the reply unread.
#[test]
fn a_program_that_ends_before_it_reads_leaves_the_next_command_intact() {
    let ends = format!(
        "import os, select, sys, tty
tty.setraw(0)
os.write(1, os.popen(r\"printf '{ALL}'\").read().encode())
if len(sys.argv) > 1:
    select.select([0], [], [])
"
    );
    for config in ["{}", DUMB] {
        bench(config, async |bench| {
            let shell = bench.open().await;
            std::fs::write(shell.path("ends.py"), &ends).unwrap();
            for _ in 0..10 {
                for how in ["", " reply"] {
                    let outcome = shell.send(&format!("python3 ends.py{how}; stty sane")).await;
                    assert_eq!(outcome.wait_reason, WaitReason::StdinRead, "{outcome:#?}");
                    let outcome = shell.send("echo in''tact").await;
                    assert_prompt(&outcome, Some(0));
                    // The line was wiped first, which a dumb terminal does by blanks.
                    let lines: Vec<&str> = outcome.viewport.lines().rev().collect();
                    assert!(lines[2].trim_end().ends_with("echo in''tact"), "{outcome:?}");
                    assert_eq!(lines[..2], ["dsh> ", "intact"], "{outcome:?}");
                }
            }
        });
    }
}

/// A reply that its program has not read is dropped before the next send; input of a send is not.
#[test]
fn an_unread_reply_does_not_come_before_the_next_send() {
    let script = r#"
import array, fcntl, os, select, termios, time, tty
def waiting():
    held = array.array("i", [0])
    fcntl.ioctl(0, termios.FIONREAD, held)
    return held[0]
tty.setraw(0)
os.write(1, b"\33[6n")
select.select([0], [], [])
open("replied", "w").close()
while waiting() != len(b"key"):
    time.sleep(.005)
print(repr(os.read(0, 100)), end="\r\n", flush=True)
"#;
    bench("{ timeoutMs: 700 }", async |bench| {
        let shell = bench.open().await;
        std::fs::write(shell.path("late.py"), script).unwrap();
        let command = "python3 late.py; stty sane";
        let waiting = shell.send(command).await;
        assert_eq!(waiting.wait_reason, WaitReason::Timeout);
        let replied = shell.path("replied");
        testkit::wait::wait_until("the reply", || replied.exists()).await;
        let mut read = shell.type_only("key").await.viewport;
        while !read.ends_with("dsh> ") {
            read.push_str(&shell.type_only("").await.viewport);
        }
        assert!(read.contains("b'key'"), "{read:?}");
        assert_intact(&shell).await;
    });
}
