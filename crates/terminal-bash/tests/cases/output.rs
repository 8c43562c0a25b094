//! What a send and a read show.

use terminal::WaitReason;

use crate::shell::{assert_prompt, shell};

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
    crate::shell::bench("{}", async |bench| {
        for _ in 0..20 {
            let shell = bench.open().await;
            let last = shell
                .send(
                    "exec python3 -c \"import sys; sys.stdout.write('0123456789abcde\\n' * 4096)\"",
                )
                .await;
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
