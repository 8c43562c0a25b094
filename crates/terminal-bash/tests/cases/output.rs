//! What a send and a read show.
//!
//! | case | test |
//! |---|---|
//! | C1 progress bar | `a_progress_bar_is_one_line` |
//! | C2 flood | `a_flood_is_bounded_and_says_so`, `transcript::a_line_of_a_flood_is_read_by_position_and_found_by_search` |
//! | C3 endless output | `endless_output_costs_nothing_but_itself` |
//! | C4 endless line | `a_flood_is_bounded_and_says_so`; its speed: `cargo xtask bench --parts output` |
//! | C5 cut character | `a_character_cut_in_two_is_one` |
//! | C6 noise | `noise_is_survived`, `any_bytes_are_survived`, `what_never_ends_is_survived` |
//! | C7 sequences | `only_what_is_text_is_shown` |
//! | C8 long lines | `long_lines_are_whole` |
//! | C9 lines | `lines_are_lines` |
//! | C10 last act | `the_last_act_of_a_session_is_complete` |
//! | C11 late output | `later_output_belongs_to_the_next_send` |
//! | C12 timeout | `a_wait_that_timed_out_has_what_was_printed` |

use terminal::{ReadRequest, SearchRequest, SendOutcome, Signal, WaitReason, WindowSize};

use testkit::wait::{guarded, wait_until};

use crate::shell::{Shell, assert_prompt, bench, shell};

/// C1
#[test]
fn a_progress_bar_is_one_line() {
    shell(async |shell| {
        let command = "for n in {1..200}; do printf '\\rprogress %d%%' $n; done; echo";
        assert_eq!(shell.run(command, 0).await, "progress 200%\n");
    });
}

/// C5
#[test]
fn a_character_cut_in_two_is_one() {
    shell(async |shell| {
        let gate = shell.gate();
        let command = "printf '\\xe4'; touch half; read x < gate; printf '\\xbd\\xa0\\n'";
        let operation = shell.start(command, true).unwrap();
        wait_until("half of it is printed", || shell.path("half").exists()).await;
        let page = shell.read(0, 500).await;
        assert!(page.text.ends_with(&format!("dsh> {command}")), "{}", page.text);
        gate.open().await;
        let outcome = operation.done().await.unwrap();
        assert_prompt(&outcome, Some(0));
        assert_eq!(outcome.viewport, format!("{command}\n你\ndsh> "));
        assert_eq!(shell.run("printf '\\xe4'; sleep .3; printf '\\xbd\\xa0\\n'", 0).await, "你\n");
    });
}

/// C6
#[test]
fn noise_is_survived() {
    shell(async |shell| {
        let outcome = shell.send("head -c 4096 /dev/urandom").await;
        assert_eq!(outcome.wait_reason, WaitReason::StdinRead, "{outcome:?}");
        assert_visible(shell, &outcome).await;
        assert_eq!(shell.run("printf '\\xc4\\xe3'", 0).await, "\u{fffd}\u{fffd}");
    });
}

/// C9
#[test]
fn lines_are_lines() {
    shell(async |shell| {
        let lines: Vec<String> = (1..=100).map(|n| n.to_string()).collect();
        let expected = lines.join("\n") + "\n";
        assert_eq!(shell.run("seq 100", 0).await, expected);
        let page = shell.read(1, 3).await;
        assert_eq!(page.text, "98\n99\n100");
        assert_eq!((page.line_begin, page.line_end, page.truncated), (1, 4, false));
    });
}

/// C11
#[test]
fn later_output_belongs_to_the_next_send() {
    shell(async |shell| {
        let gate = shell.gate();
        let first = shell.send("(read x < gate; echo LATE) &").await;
        assert_eq!(first.wait_reason, WaitReason::StdinRead);
        assert!(!first.viewport.contains("LATE\n"), "{first:?}");
        gate.open().await;
        guarded("it is read", async {
            while !shell.read(0, 1).await.text.ends_with("LATE") {
                tokio::task::yield_now().await;
            }
        })
        .await;
        let next = shell.send("echo next").await;
        assert_eq!(next.wait_reason, WaitReason::StdinRead);
        assert!(next.viewport.starts_with("LATE\n"), "{next:?}");
        assert_eq!(next.viewport.matches("LATE\n").count(), 1, "{next:?}");
    });
}

/// C10
#[test]
fn the_last_act_of_a_session_is_complete() {
    bench("{}", async |bench| {
        for _ in 0..100 {
            let shell = bench.open().await;
            std::fs::write(shell.path("lines"), "0123456789abcde\n".repeat(4096)).unwrap();
            let last = shell.send("exec cat lines").await;
            assert_eq!(last.wait_reason, WaitReason::SessionExit);
            assert_eq!(last.viewport.matches("0123456789abcde\n").count(), 4096);
            shell.close().await.unwrap();
        }
    });
}

/// C2, C4: far more than is kept, and the reply says so.
#[test]
fn a_flood_is_bounded_and_says_so() {
    shell(async |shell| {
        let flood = shell.send("seq 1 200000").await;
        assert_prompt(&flood, Some(0));
        assert!(flood.truncated && flood.viewport.len() <= 262_144);
        assert!(flood.viewport.ends_with("\n200000\ndsh> "));
        let small = shell.send("echo hi").await;
        assert_eq!((small.truncated, small.viewport.as_str()), (false, "echo hi\nhi\ndsh> "));
        let command = "head -c 8M /dev/zero | base64 -w0; echo END";
        let long = shell.send(command).await;
        assert_prompt(&long, Some(0));
        // Of three zeros that four letters stand for the last one is missing.
        assert!(long.truncated && long.viewport.ends_with("AAA=END\ndsh> "));
        let encoded = (8_usize << 20).div_ceil(3) * 4;
        let shown = command.len() + "\n".len() + encoded + "END\ndsh> ".len();
        assert_eq!(long.viewport.len(), 262_144);
        assert_eq!(long.missing.unwrap().bytes, shown as u64 - 262_144);
    });
}

/// B11, as far as the screen goes: a full-screen program that was killed leaves its screen behind.
#[test]
fn the_screen_is_itself_again_at_the_prompt() {
    shell(async |shell| {
        for (mess, word) in [
            ("printf '\\033[?1049h'", "left the alternate screen"),
            ("printf '\\033(0'", "reset the character set"),
        ] {
            let outcome = shell.send(mess).await;
            assert_eq!(outcome.repaired, [word], "{outcome:?}");
            assert_eq!(shell.run("echo visible", 0).await, "visible\n");
        }
    });
}

/// C3: what is said to be readable is there, whole: the store's own bounds cut lines anywhere.
#[test]
fn the_oldest_line_that_is_said_to_be_readable_is_whole() {
    for bytes in [1_048_576, 0] {
        let row = format!(
            "{{ maxReadBytes: 2000, scrollbackMaxBytes: 1000000, scrollbackLines: 1000000, transcriptMaxBytes: {bytes} }}"
        );
        bench(&row, async |bench| {
            let shell = bench.open().await;
            for lines in [1_000_000, 1_030_001, 1_060_003] {
                let outcome = shell.send(&format!("yes abcd | head -n {lines}")).await;
                let missing = outcome.missing.unwrap();
                assert!(0 < missing.readable && missing.readable < missing.lines, "{missing:?}");
                let at = |line: u64| shell.read(missing.offset + line, 1);
                let oldest = at(missing.readable - 1).await;
                assert_eq!((oldest.text.as_str(), oldest.truncated), ("abcd", false));
            }
        });
    }
}

/// C3: what is printed without end costs no memory, keeps nobody waiting, and is accounted for.
#[test]
fn endless_output_costs_nothing_but_itself() {
    bench("{ idleSilenceMs: 300, timeoutMs: 60000, transcriptMaxBytes: 1048576 }", async |bench| {
        let (shell, other) = (bench.open().await, bench.open().await);
        assert_prompt(&shell.send("seq 1 100000").await, Some(0));
        let before = resident();
        for flood in ["cat /dev/urandom | base64 -w0", "yes"] {
            let operation = shell.start(flood, true).unwrap();
            let mut follower = operation.subscribe();
            let (mut answers, mut shown) = (0, 0);
            while answers < 20 || shown < 2 << 20 {
                assert_prompt(&other.send("true").await, Some(0));
                answers += 1;
                shown += follower.next().await.expect("it has no end").text.len();
                let grown = resident().saturating_sub(before);
                assert!(grown < 64 << 20, "{flood}: grown by {grown} bytes");
            }
            drop(follower);
            shell.signal(Signal::Interrupt).await.unwrap();
            let outcome = operation.done().await.unwrap();
            assert_prompt(&outcome, Some(130));
            let missing = outcome.missing.unwrap();
            assert!(outcome.truncated && missing.bytes > 1 << 20, "{missing:?}");
            if flood == "yes" {
                assert!(0 < missing.readable && missing.readable < missing.lines, "{missing:?}");
                let oldest = shell.read(missing.offset + missing.readable - 1, 1).await;
                assert_eq!((oldest.text.as_str(), oldest.truncated), ("y", false));
                let gone = shell.read(missing.offset + missing.readable, 1).await;
                assert_eq!((gone.text.as_str(), gone.truncated), ("", true));
            }
            assert_eq!(shell.run("echo next", 0).await, "next\n");
        }
    });
}

/// Bytes of memory that this process has.
#[expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let resident: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
    resident * 4096
}

/// C6: whatever was printed, the next command works and is visible.
#[test]
fn any_bytes_are_survived() {
    shell(async |shell| {
        for seed in 0..20 {
            let noise = format!(
                "python3 -c 'import random,sys; r=random.Random({seed}); \
                 sys.stdout.buffer.write(r.randbytes(4096))'"
            );
            let outcome = shell.send(&noise).await;
            assert_eq!(outcome.wait_reason, WaitReason::StdinRead, "seed {seed}: {outcome:?}");
            assert_visible(shell, &outcome).await;
        }
    });
}

/// The next command is what was typed, and nothing else: no answer to what noise may have asked.
/// Noise may have left the cursor amid older text, as a person would see it.
async fn assert_visible(shell: &Shell<'_>, noise: &SendOutcome) {
    let command = "echo visible | tee seen";
    let next = shell.send(command).await;
    let seen = std::fs::read_to_string(shell.path("seen")).unwrap_or_default();
    assert_eq!(seen, "visible\n", "{next:?} after {noise:?}");
    std::fs::remove_file(shell.path("seen")).ok();
    let (before, after) = next.viewport.split_once(command).unwrap_or_default();
    assert!(before.is_empty() || before.ends_with("dsh> "), "{next:?} after {noise:?}");
    assert!(after.contains("visible"), "{next:?} after {noise:?}");
}

/// C7
#[test]
fn only_what_is_text_is_shown() {
    shell(async |shell| {
        let shown = [
            r"a\016\017\033(0\033(Bz",
            r"a\033Pq#0;2;0;0;0~-\033\\z",
            r"a\033_hidden\033\\z",
            r"a\033]0;title\007z",
            r"a\033]0;title\033\\z",
            r"a\302\220hidden\302\234z",
            r"\033[31ma\033[0m\033[?25lz\033[?25h",
            r"xx\b\baz",
        ];
        for bytes in shown {
            assert_eq!(shell.run(&format!("printf '{bytes}\\n'"), 0).await, "az\n", "{bytes}");
        }
        assert_eq!(shell.run(r"printf 'abc\b\b\bxyz\n'", 0).await, "xyz\n");
    });
}

/// C8: what ran over the margin is one line, typed or printed.
#[test]
fn long_lines_are_whole() {
    for cols in [80, 160] {
        bench(&format!("{{ cols: {cols} }}"), async |bench| {
            let shell = bench.open().await;
            let word = "0123456789".repeat(29);
            let command = format!("echo {word}");
            assert_eq!(shell.run(&command, 0).await, format!("{word}\n"));
            let line: String = ('a'..='z').cycle().take(500).collect();
            std::fs::write(shell.path("file"), format!("{line}rest\n")).unwrap();
            assert_eq!(shell.run("cut -c1-500 file", 0).await, format!("{line}\n"));
        });
    }
}

/// C12
#[test]
fn a_wait_that_timed_out_has_what_was_printed() {
    bench("{ timeoutMs: 1500 }", async |bench| {
        let shell = bench.open().await;
        let outcome = shell.send("mkfifo gate; echo before; read x < gate; echo after").await;
        assert_eq!(outcome.wait_reason, WaitReason::Timeout);
        assert!(outcome.viewport.ends_with("\nbefore\n"), "{outcome:?}");
        std::fs::write(shell.path("gate"), "\n").unwrap();
        let rest = shell.start("", false).unwrap().done().await.unwrap();
        assert_prompt(&rest, Some(0));
        assert!(rest.viewport.ends_with("after\ndsh> "), "{rest:?}");
    });
}

/// Sequences and lines without end: nothing grows, nothing stalls, the next command works.
#[test]
fn what_never_ends_is_survived() {
    bench("{ idleSilenceMs: 300, timeoutMs: 120000 }", async |bench| {
        let shell = bench.open().await;
        shell.send("head -c 1M /dev/zero").await;
        let before = resident();
        let endless = [
            (r"", r"\0"),
            (r"\33]0;", r"x"),
            (r"\33P", r"x"),
            (r"\33[", r"1;"),
            (r"\33_", r"x"),
            (r"\33X", r"x"),
            (r"\33^", r"x"),
            (r"\33", r"#"),
            (r"\33[", r"!"),
            (r"", r"\377"),
            (r"a", r"\314\201"),
        ];
        for (begin, filler) in endless {
            let command = format!(
                "python3 -c \"import sys; w = sys.stdout.buffer.write; w(b'{begin}'); \
                 [w(b'{filler}' * 65536) for _ in range(64)]; w(b'\\30\\n')\""
            );
            let outcome = shell.send(&command).await;
            assert_eq!(outcome.wait_reason, WaitReason::StdinRead, "{command}: {outcome:?}");
            let grown = resident().saturating_sub(before);
            assert!(grown < 32 << 20, "{command}: grown by {grown} bytes");
            assert_eq!(shell.run("echo next", 0).await, "next\n", "{command}");
        }
    });
}

/// A terminal whose size changes without end: from outside while a program prints, and from inside.
#[test]
fn a_storm_of_sizes_is_survived() {
    shell(async |shell| {
        let resize = async |rows, columns| {
            let size = WindowSize { rows, columns };
            shell.terminals().resize(&shell.bench.agent, &shell.id, size).await.unwrap();
        };
        let printing = shell.start("seq 1 200000", true).unwrap();
        let mut sizes = (1..=60).zip(10..=200).cycle();
        while !printing.is_settled() {
            let (rows, columns) = sizes.next().unwrap();
            resize(61 - rows, columns).await;
            resize(rows, 211 - columns).await;
        }
        resize(40, 160).await;
        assert_prompt(&printing.done().await.unwrap(), Some(0));
        shell.send("").await;
        let found = shell.search(SearchRequest::new("^123456$")).await;
        assert_eq!(found.matches.len(), 1);
        let page = shell.read_page(ReadRequest::from_line(found.matches[0].line, 3)).await;
        assert_eq!(page.text, "123456\n123457\n123458");

        let storm = "for n in {1..60}; do stty rows $((RANDOM % 60 + 1)) cols $((RANDOM % 200 + 2)); \
                     seq -s ' ' 1 $n; done > storm; stty rows 40 cols 160";
        assert_prompt(&shell.send(storm).await, Some(0));
        assert_eq!(shell.run("stty size", 0).await, "40 160\n");
        assert_eq!(shell.run("echo next", 0).await, "next\n");
    });
}
