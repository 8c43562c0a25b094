//! How a text reaches those whom the plain way would not do: pastes, keys, blocks, megabytes.
//!
//! | case | test |
//! |---|---|
//! | B1 long line | `input::text_arrives_as_sent_or_not_at_all`, `input::a_later_line_that_would_be_cut_is_not_typed`, `a_line_that_gets_too_long_piece_by_piece_is_refused`, `relays::a_line_that_a_terminal_behind_a_relay_would_cut_is_refused`, `pitfalls::a_line_that_enter_does_not_end_is_unfinished` |
//! | B2 long line while a program runs | `a_long_line_is_refused_while_a_program_holds_the_terminal_and_taken_at_the_prompt` |
//! | B3 late reader | `a_late_reader_of_keys_gets_every_byte` |
//! | B4 megabyte | `a_here_document_of_a_megabyte_arrives_whole`, `many_lines_reach_the_one_reader_they_are_for` |
//! | B5 tab | `input::a_tab_in_a_line_is_a_tab`, `a_tab_at_a_continuation_prompt_is_a_tab` |
//! | B6 `!` | `input::text_arrives_as_sent_or_not_at_all` |
//! | B7 block | `a_line_editor_of_a_library_gets_a_block_as_it_is`, `an_editor_that_indents_gets_a_block_as_it_is`, `the_prompt_of_python_3_13_gets_a_block_as_it_is` |
//! | B8 question | `queries::a_program_that_asks_and_waits_is_answered` |
//! | B9 burst | `enter_submits_where_keys_that_come_together_are_a_paste`, `enter_comes_to_a_program_that_never_rests` |
//! | B10 two senders | `input::two_senders_never_mix` |
//! | B11 raw and killed | `mend::the_line_is_itself_again_at_the_prompt`, `output::the_screen_is_itself_again_at_the_prompt` |
//! | B12 ignored SIGINT | `an_interrupt_works_under_a_host_that_ignores_it` |
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fmt::Write as _;

use terminal::{Busy, SendOutcome, StateKind, TerminalError, WaitReason};
use testkit::wait::{shown, wait_until};

use crate::shell::{Shell, assert_prompt, assert_waits, bench, shell};

/// An editor of blocks with pastes, as Python's own prompt is since 3.13.
const EDITOR: &str = include_str!("victims/editor.py");

/// Long enough for a slow machine, and a bound that a wait for nobody reaches soon.
const PATIENT: &str = "{ idleSilenceMs: 300, timeoutMs: 29000 }";
const HASTY: &str = "{ idleSilenceMs: 300, timeoutMs: 400 }";

/// With pastes, and without.
const TERMS: [&str; 2] = ["xterm-256color", "dumb"];

/// Starts a python script of this text, with a file to report to as its argument.
async fn victim(shell: &Shell<'_>, script: &str) -> SendOutcome {
    std::fs::write(shell.path("victim.py"), script).unwrap();
    shell.send("python3 victim.py report").await
}

fn report(shell: &Shell<'_>) -> String {
    std::fs::read_to_string(shell.path("report")).unwrap_or_default()
}

/// Waits until a script has set the terminal: it makes its report then. A slow machine needs longer
/// for that than a short bound.
async fn until_set(shell: &Shell<'_>) {
    wait_until("the terminal is set", || shell.path("report").exists()).await;
}

/// Waits out what a send with a short bound has left running.
pub(crate) async fn until_prompt(shell: &Shell<'_>) {
    loop {
        let outcome = shell.type_only("").await;
        if outcome.state.is_some_and(|it| it.kind == StateKind::Prompt) {
            return;
        }
    }
}

/// B7: the block is indented as it was sent, a blank line in it does not end it.
#[test]
fn an_editor_that_indents_gets_a_block_as_it_is() {
    shell(async |shell| {
        assert_eq!(victim(shell, EDITOR).await.wait_reason, WaitReason::StdinRead);
        let block =
            "def f(x):\n    if x:\n        return 'yes'\n\n    else:\n        return 'no'\n";
        let outcome = shell.send(&format!("{block}\nprint(f(0), f(1))")).await;
        assert_eq!(outcome.wait_reason, WaitReason::StdinRead, "{outcome:#?}");
        assert!(outcome.viewport.ends_with("\nno yes\n>>> "), "{outcome:#?}");
        assert_eq!(outcome.input.unwrap().accepted, block.len() as u64 + 19);

        // A line for whoever is started by the one before it is still a line of its own.
        let outcome = shell.send("x = input()\nhello\nif x:\n    print(x + '!')\n").await;
        assert!(outcome.viewport.ends_with("\nhello!\n>>> "), "{outcome:#?}");
        // A tab is text there, too.
        let outcome = shell.send("print('a\tb'.split())").await;
        assert!(outcome.viewport.contains("['a', 'b']"), "{outcome:#?}");
        assert_prompt(&shell.type_only("\u{4}").await, Some(0));
    });
}

/// The same with Python's ordinary prompt, which readline reads line by line.
#[test]
fn a_line_editor_of_a_library_gets_a_block_as_it_is() {
    const BLOCK: &str = "def f(x):
    for n in x:
        if n > 1:
            return 'big'
        else:
            continue
    return 'small'

print(f([0, 1]), f([0, 2]))";
    for term in TERMS {
        bench(
            &format!("{{ idleSilenceMs: 300, timeoutMs: 20000, term: {term} }}"),
            async |bench| {
                let shell = bench.open().await;
                let started = shell.send("PYTHON_BASIC_REPL=1 python3 -q").await;
                assert!(started.viewport.ends_with(">>> "), "{started:#?}");
                for block in [BLOCK.to_owned(), BLOCK.replace("    ", "\t")] {
                    let outcome = shell.send(&block).await;
                    assert_eq!(outcome.wait_reason, WaitReason::StdinRead, "{term}: {outcome:#?}");
                    assert!(
                        outcome.viewport.ends_with("\nsmall big\n>>> "),
                        "{term}: {outcome:#?}"
                    );
                    assert_eq!(outcome.input.unwrap().accepted, block.len() as u64 + 1);
                }
                assert_prompt(&shell.type_only("\u{4}").await, Some(0));
            },
        );
    }
}

/// The same with the real one.
#[test]
#[ignore = "needs Python 3.13"]
fn the_prompt_of_python_3_13_gets_a_block_as_it_is() {
    shell(async |shell| {
        let python = std::env::var("PYTHON_3_13").unwrap_or_else(|_| "python3.13".to_owned());
        let started = shell.send(&format!("'{python}' -q")).await;
        assert!(started.viewport.ends_with(">>> "), "{started:#?}");
        let block =
            "def f(x):\n    if x:\n        return 'yes'\n\n    else:\n        return 'no'\n";
        let outcome = shell.send(&format!("{block}\nprint(f(0), f(1))")).await;
        assert!(outcome.viewport.contains("\nno yes\n"), "{outcome:#?}");
        let outcome = shell.send(&format!("class A:\n\n{}", "    def f(self): return 42\n")).await;
        assert_eq!(outcome.wait_reason, WaitReason::StdinRead, "{outcome:#?}");
        let outcome = shell.send("x = input()\nhello\nif x:\n    print(x + '!', A().f())\n").await;
        assert!(outcome.viewport.contains("\nhello! 42\n"), "{outcome:#?}");
        for n in 0..20 {
            let outcome = shell.send(&format!("print({n} + 2)")).await;
            assert!(outcome.viewport.contains(&format!("\n{}\n", n + 2)), "{outcome:#?}");
        }
        assert_prompt(&shell.send("exit()").await, Some(0));
    });
}

/// What would end a paste early is typed as keys, and nothing of it is pasted.
#[test]
fn no_text_breaks_out_of_a_paste() {
    shell(async |shell| {
        victim(shell, EDITOR).await;
        let evil = "print('a')\u{1b}[201~x";
        shell.type_only(evil).await;
        shell.send(evil).await;
        let seen = report(shell);
        let keys = seen.lines().filter(|it| it.starts_with("key ")).count();
        assert_eq!(keys, 2 * evil.len() + 1, "{seen}");
        assert!(!seen.contains("paste"), "{seen}");
        shell.signal(terminal::Signal::Kill).await.unwrap();
        until_prompt(shell).await;
    });
}

/// B9: with a burst that ends when nothing more comes for a while, and with a clock.
#[test]
fn enter_submits_where_keys_that_come_together_are_a_paste() {
    const BURST: &str = "
import os, select, sys, tty
tty.setraw(0)
os.write(1, b'ready> ')
text = b''
while True:
    got = os.read(0, 4096)
    while select.select([0], [], [], .05)[0]:
        got += os.read(0, 4096)
    if got == b'\\r': break
    text += got
open(sys.argv[1], 'wb').write(text)
";
    const CLOCK: &str = "
import os, sys, time, tty
tty.setraw(0)
os.write(1, b'ready> ')
text, last = b'', 0
while True:
    got, now = os.read(0, 4096), time.monotonic()
    if got == b'\\r' and now - last > .05: break
    text, last = text + got, now
open(sys.argv[1], 'wb').write(text)
";
    /// It takes pastes, and what follows one closely for a part of it.
    const PASTES: &str = "
import os, select, sys, time, tty
tty.setraw(0)
os.write(1, b'\\33[?2004hready> ')
text, pasted = b'', 0
while True:
    while not select.select([0], [], [], .2)[0]: pass
    got, now = os.read(0, 4096), time.monotonic()
    if got == b'\\r' and now - pasted > .05: break
    text += got
    if b'\\33[201~' in got: pasted = now
os.write(1, b'\\33[?2004l')
text = text.replace(b'\\33[200~', b'').replace(b'\\33[201~', b'')
open(sys.argv[1], 'wb').write(text)
";
    // One that is polled for, and one that is read.
    let read = PASTES.replace("    while not select.select([0], [], [], .2)[0]: pass\n", "");
    assert_ne!(read, PASTES);
    shell(async |shell| {
        for script in [PASTES, &read] {
            assert_eq!(victim(shell, script).await.wait_reason, WaitReason::StdinRead);
            assert_prompt(&shell.send("a text of some length").await, Some(0));
            assert_eq!(report(shell), "a text of some length");
        }
        for script in [BURST, CLOCK] {
            assert_waits(&victim(shell, script).await, StateKind::Raw);
            assert_prompt(&shell.send("a text of some length").await, Some(0));
            assert_eq!(report(shell), "a text of some length");
        }
    });
}

/// A program that draws for ever comes to no rest: its Enter comes all the same.
#[test]
fn enter_comes_to_a_program_that_never_rests() {
    const SPINNER: &str = "
import os, select, sys, tty
tty.setraw(0)
text, n = b'', 0
while not text.endswith(b'\\r'):
    if select.select([0], [], [], .005)[0]: text += os.read(0, 4096)
    n += 1
    os.write(1, b'\\r%d ' % n)
open(sys.argv[1], 'wb').write(text)
";
    bench("{ idleSilenceMs: 300, timeoutMs: 3000 }", async |bench| {
        let shell = bench.open().await;
        assert_eq!(victim(&shell, SPINNER).await.wait_reason, WaitReason::Timeout);
        assert_prompt(&shell.send("stop").await, Some(0));
        assert_eq!(report(&shell), "stop\r");
    });
}

/// B2
#[test]
fn a_long_line_is_refused_while_a_program_holds_the_terminal_and_taken_at_the_prompt() {
    bench(HASTY, async |bench| {
        let shell = bench.open().await;
        let long = format!("echo {} | wc -c; touch x", "a".repeat(6_000));
        assert_eq!(shell.send("sleep 4").await.wait_reason, WaitReason::Timeout);
        let refused = shell.start(&long, true).unwrap().done().await.unwrap_err();
        assert_eq!(refused.code(), "LINE_TOO_LONG");
        assert!(refused.to_string().contains("nothing was typed"), "{refused}");
        until_prompt(&shell).await;
        assert!(!shell.path("x").exists());
        let outcome = shell.send(&long).await;
        assert!(outcome.viewport.contains("\n6001\n"), "{outcome:#?}");
        assert!(shell.path("x").exists());
    });
    shell(async |shell| {
        let outcome = shell.send(&format!("sleep 1\necho {} | wc -c", "a".repeat(6_000))).await;
        assert!(outcome.viewport.contains("\n6001\n"), "{outcome:#?}");
    });
}

/// B1: a line may come in pieces.
#[test]
fn a_line_that_gets_too_long_piece_by_piece_is_refused() {
    shell(async |shell| {
        assert_waits(&shell.send("head -n1 > f").await, StateKind::Line);
        let piece = shell.type_only(&"x".repeat(4_000)).await;
        assert_eq!(piece.input.map(|it| (it.accepted, it.unread)), Some((4_000, Some(4_000))));
        let refused = shell.start(&"y".repeat(96), true).unwrap().done().await;
        assert_eq!(refused, Err(TerminalError::LineTooLong { bytes: 4_096, limit: 4_095 }));
        assert_prompt(&shell.send(&"y".repeat(95)).await, Some(0));
        assert_eq!(std::fs::metadata(shell.path("f")).unwrap().len(), 4_096);
    });
}

/// B3, in one line and in many.
#[test]
fn a_late_reader_of_keys_gets_every_byte() {
    const READER: &str = "
import os, sys, time, tty
tty.setraw(0)
open(sys.argv[1], 'w').close()
os.write(1, b'ready')
time.sleep(1)
got = b''
while len(got) < 65536: got += os.read(0, 4096)
open(sys.argv[1], 'wb').write(got)
";
    bench("{ idleSilenceMs: 3000, timeoutMs: 25000 }", async |bench| {
        let shell = bench.open().await;
        let line: String = ('!'..='~').cycle().take(65_535).collect();
        let lines: String = (0..4_096).fold(String::new(), |mut all, n| {
            writeln!(all, "{n:015}").unwrap();
            all
        });
        for text in [line + "\t", lines] {
            assert_eq!(text.len(), 65_536);
            std::fs::write(shell.path("victim.py"), READER).unwrap();
            let started = shell.start("python3 victim.py report", true).unwrap();
            shown(&*started, "\nready").await;
            // It sleeps, so this send goes on; what is sent next is what it reads late.
            assert!(matches!(shell.start(&text, false), Err(TerminalError::SendActive { .. })));
            assert_eq!(started.done().await.unwrap().wait_reason, WaitReason::StdinRead);
            assert_prompt(&shell.type_only(&text).await, Some(0));
            assert!(report(&shell) == text, "what was read is not what was sent");
        }
    });
    // While it sleeps.
    bench(HASTY, async |bench| {
        let shell = bench.open().await;
        let text: String = ('!'..='~').cycle().take(65_536).collect();
        let script = READER.replace("sleep(1)", "sleep(3)");
        assert_eq!(victim(&shell, &script).await.wait_reason, WaitReason::Timeout);
        until_set(&shell).await;
        let held = shell.type_only(&text).await;
        let receipt = held.input.unwrap();
        assert!(receipt.accepted < 65_536, "a terminal does not hold that much");
        assert_eq!(receipt.unread, None, "nobody can tell how much more there is");
        assert_eq!(held.state.unwrap().busy, Some(Busy::UnreadInput));
        until_prompt(&shell).await;
        assert!(report(&shell) == text, "what was read is not what was sent");
    });
}

/// B4, and another session meanwhile.
#[test]
fn a_here_document_of_a_megabyte_arrives_whole() {
    bench(PATIENT, async |bench| {
        let (shell, other) = (bench.open().await, bench.open().await);
        let body = (0..20_000).fold(String::new(), |mut all, n| {
            writeln!(all, "\t{n:06}: {} $HOME `date` \\ !!", "x".repeat(n % 60)).unwrap();
            all
        });
        assert!(body.len() > 1_000_000);
        let text = format!("cat > f <<'END'\n{body}END\necho after; (exit 4)");
        let typing = shell.start(&text, true).unwrap();
        let mut answers = 0;
        while !typing.is_settled() {
            assert_eq!(other.run("echo alive", 0).await, "alive\n");
            answers += 1;
        }
        assert!(answers >= 20, "{answers} answers: the host did little else meanwhile");
        let outcome = typing.done().await.unwrap();
        assert_prompt(&outcome, Some(4));
        assert_eq!(outcome.input.map(|it| it.accepted), Some(text.len() as u64 + 1));
        assert!(std::fs::read_to_string(shell.path("f")).unwrap() == body);
    });
}

/// B4 for a reader that is not the shell: every line waits for it, so that another one, who reads
/// without echo and drops what was typed before, gets its own.
#[test]
fn many_lines_reach_the_one_reader_they_are_for() {
    const READER: &str = "
import getpass, sys
with open(sys.argv[1], 'w') as report:
    for _ in range(1000):
        print(input(), file=report)
    print(getpass.getpass(''), input(), file=report)
";
    bench(PATIENT, async |bench| {
        let shell = bench.open().await;
        let lines: String = (0..1000).fold(String::new(), |mut all, n| {
            writeln!(all, "{n:06} {}", "x".repeat(n % 60)).unwrap();
            all
        });
        assert_waits(&shell.send("cat > f").await, StateKind::Line);
        let outcome = shell.type_only(&format!("{lines}\u{4}")).await;
        assert_prompt(&outcome, Some(0));
        assert!(std::fs::read_to_string(shell.path("f")).unwrap() == lines);

        assert_waits(&victim(&shell, READER).await, StateKind::Line);
        let outcome = shell.send(&format!("{lines}hunter2\nlast\necho after")).await;
        assert_prompt(&outcome, Some(0));
        assert!(outcome.viewport.ends_with("\nafter\ndsh> "), "{outcome:#?}");
        assert!(!outcome.viewport.contains("hunter2"), "a secret was shown");
        assert!(report(&shell) == format!("{lines}hunter2 last\n"));
    });
}

/// B5 in a here-document that goes on in a later send, also where nobody takes pastes.
#[test]
fn a_tab_at_a_continuation_prompt_is_a_tab() {
    for term in TERMS {
        bench(
            &format!("{{ idleSilenceMs: 300, timeoutMs: 20000, term: {term} }}"),
            async |bench| {
                let shell = bench.open().await;
                assert_waits(&shell.send("cat > h <<E\n\tone").await, StateKind::Continuation);
                assert_prompt(&shell.send("\ttwo\nE").await, Some(0));
                assert_eq!(std::fs::read_to_string(shell.path("h")).unwrap(), "\tone\n\ttwo\n");
            },
        );
    }
}

/// What stands behind a here-document is not part of its paste.
#[test]
fn lines_after_a_here_document_go_to_whoever_waits_for_them() {
    shell(async |shell| {
        let text = "cat > f <<A; read x; cat > g <<-'B'\none\nA\n\ttwo\n\tB\nvalue\necho \"<$x>\"";
        let outcome = shell.send(text).await;
        assert_prompt(&outcome, Some(0));
        assert!(outcome.viewport.ends_with("\n<value>\ndsh> "), "{outcome:#?}");
        assert_eq!(std::fs::read_to_string(shell.path("f")).unwrap(), "one\n");
        assert_eq!(std::fs::read_to_string(shell.path("g")).unwrap(), "two\n");
        // One that ends in a later send.
        shell.send("cat > h <<E\nfirst").await;
        assert_prompt(&shell.send("second\nE").await, Some(0));
        assert_eq!(std::fs::read_to_string(shell.path("h")).unwrap(), "first\nsecond\n");
        // In the middle of a command.
        let text = "for i in 1 2; do\ncat <<E\nnumber $i\nE\nread y\ndone\na\nb\necho $y";
        let outcome = shell.send(text).await;
        assert_prompt(&outcome, Some(0));
        assert!(outcome.viewport.ends_with("\nb\ndsh> "), "{outcome:#?}");
        assert!(outcome.viewport.contains("\nnumber 2\n"), "{outcome:#?}");
    });
}

/// What nobody has read yet is told, and read by whoever comes.
#[test]
fn a_receipt_tells_what_is_still_unread() {
    bench(HASTY, async |bench| {
        let shell = bench.open().await;
        let read = shell.send("true").await;
        assert_eq!(read.input.map(|it| (it.accepted, it.unread)), Some((5, Some(0))));
        assert_eq!(shell.send("sleep 3; read x").await.wait_reason, WaitReason::Timeout);
        let early = shell.send("ahead").await;
        assert_eq!(early.wait_reason, WaitReason::Timeout);
        assert_eq!(early.input.map(|it| (it.accepted, it.unread)), Some((6, Some(6))));
        assert_eq!(early.state.unwrap().busy, Some(Busy::UnreadInput));
        until_prompt(&shell).await;
        assert_eq!(shell.run("echo \"<$x>\"", 0).await, "<ahead>\n");
    });
}

/// What was typed while a program was stopped is there when it goes on.
#[test]
fn a_stopped_program_reads_later() {
    bench(HASTY, async |bench| {
        let shell = bench.open().await;
        let stopped =
            "sh -c 'sh -c \"echo \\$\\$ > pid; kill -STOP \\$\\$\"; read x; echo \"got <$x>\"'";
        shell.send(stopped).await;
        let early = shell.send("hello").await;
        assert_ne!(early.wait_reason, WaitReason::StdinRead, "{early:#?}");
        assert_eq!(early.input.map(|it| (it.accepted, it.unread)), Some((6, Some(6))));
        let pid = || std::fs::read_to_string(shell.path("pid")).unwrap_or_default();
        wait_until("it has told who it is", || pid().ends_with('\n')).await;
        let pid = pid();
        let go_on = format!("kill -CONT {}", pid.trim());
        assert!(
            std::process::Command::new("bash").args(["-c", &go_on]).status().unwrap().success()
        );
        wait_until("it has read", || {
            std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_err()
        })
        .await;
        until_prompt(&shell).await;
        assert!(shell.read(0, 10).await.text.contains("got <hello>"));
    });
}

/// What the terminal did not take yet goes with what is cancelled.
#[test]
fn a_cancellation_takes_queued_input_along() {
    const DEAF: &str = "
import os, sys, time, tty
tty.setraw(0)
open(sys.argv[1], 'w').close()
time.sleep(100)
";
    bench(HASTY, async |bench| {
        let shell = bench.open().await;
        victim(&shell, DEAF).await;
        until_set(&shell).await;
        let text = "touch ran\r".repeat(10_000);
        let queued = shell.start(&text, false).unwrap();
        assert!(queued.cancel("changed my mind"));
        let ended = queued.done().await.unwrap();
        assert_prompt(&ended, Some(130));
        assert!(ended.input.unwrap().accepted < text.len() as u64, "{:?}", ended.input);
        assert_prompt(&shell.send("true").await, Some(0));
        assert!(!shell.path("ran").exists());
    });
}

/// B12
#[test]
fn an_interrupt_works_under_a_host_that_ignores_it() {
    const INSIDE: &str = "TEST_WITH_SIGINT_IGNORED";
    const NAME: &str = "typing::an_interrupt_works_under_a_host_that_ignores_it";
    if std::env::var_os(INSIDE).is_none() {
        let output = std::process::Command::new("/bin/bash")
            .args(["-c", "trap '' INT; exec \"$0\" --exact \"$1\""])
            .arg(std::env::current_exe().unwrap())
            .arg(NAME)
            .env(INSIDE, "1")
            .output()
            .unwrap();
        let report = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && report.contains("1 passed"), "{report}");
        return;
    }
    shell(async |shell| {
        let sleeping = shell.start("sleep 60", true).unwrap();
        shell.in_front("sleep").await;
        shell.signal(terminal::Signal::Interrupt).await.unwrap();
        assert_prompt(&sleeping.done().await.unwrap(), Some(130));
    });
}
