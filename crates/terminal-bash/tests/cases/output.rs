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

use terminal::{ReadRequest, SearchRequest, WaitReason, WindowSize};

use crate::shell::{assert_prompt, bench, shell};

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
        let operation = shell
            .start("printf '\\xe4'; touch half; read x; printf '\\xbd\\xa0\\n'", true)
            .unwrap();
        assert_eq!(operation.done().await.unwrap().wait_reason, WaitReason::StdinRead);
        shell.read(0, 10).await;
        let rest = shell.send("").await;
        assert_prompt(&rest, Some(0));
        let page = shell.read(0, 500).await;
        // The Enter that was echoed stands between the two halves.
        assert!(page.text.contains('\u{fffd}') || page.text.contains('你'), "{}", page.text);
        assert_eq!(shell.run("printf '\\xe4'; sleep .3; printf '\\xbd\\xa0\\n'", 0).await, "你\n");
    });
}

/// C6
#[test]
fn noise_is_survived() {
    shell(async |shell| {
        let outcome = shell.send("head -c 4096 /dev/urandom | tr -d '\\005\\033\\220-\\237'").await;
        assert_eq!(outcome.wait_reason, WaitReason::StdinRead);
        assert_eq!(shell.send("").await.wait_reason, WaitReason::StdinRead);
        assert_eq!(shell.run("printf '\\xc4\\xe3\\n'", 0).await, "\u{fffd}\u{fffd}\n");
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
        let first = shell.send("mkfifo gate; (read x < gate; echo LATE) &").await;
        assert_eq!(first.wait_reason, WaitReason::StdinRead);
        assert!(!first.viewport.contains("LATE\n"), "{first:?}");
        let next = shell.send("echo > gate; wait").await;
        assert_eq!(next.wait_reason, WaitReason::StdinRead);
        assert!(next.viewport.contains("LATE\n"), "{next:?}");
        assert!(shell.read(0, 500).await.text.contains("LATE\n"));
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
        let long = shell.send("head -c 8M /dev/zero | base64 -w0; echo END").await;
        assert!(long.viewport.contains("END\n"), "the end of an endless line is there");
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

/// C3: what is printed without end costs no memory, keeps nobody waiting, and is accounted for.
#[test]
fn endless_output_costs_nothing_but_itself() {
    bench("{ idleSilenceMs: 300, timeoutMs: 60000 }", async |bench| {
        let (shell, other) = (bench.open().await, bench.open().await);
        assert_prompt(&shell.send("seq 1 100000").await, Some(0));
        let before = resident();
        for flood in ["timeout 2 yes", "timeout 2 cat /dev/urandom | base64 -w0"] {
            let operation = shell.start(flood, true).unwrap();
            while !operation.is_settled() {
                assert_prompt(&other.send("true").await, Some(0));
                let grown = resident().saturating_sub(before);
                assert!(grown < 64 << 20, "{flood}: grown by {grown} bytes");
            }
            let outcome = operation.done().await.unwrap();
            assert_eq!(outcome.wait_reason, WaitReason::StdinRead, "{outcome:?}");
            let missing = outcome.missing.unwrap();
            assert!(outcome.truncated && missing.bytes > 1 << 20, "{missing:?}");
            shell.run("echo next", 0).await;
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
            // What the noise asked of the terminal may have been typed as an answer: that line goes.
            shell.send("").await;
            let next = shell.send("echo visible").await;
            assert!(next.viewport.contains("\nvisible\n"), "seed {seed}: {next:?}");
        }
    });
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
            shell.run("echo next", 0).await;
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
