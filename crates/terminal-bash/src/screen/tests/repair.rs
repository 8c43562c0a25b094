//! What programs that ended badly leave behind, and what a line editor leaves at a full row.

use super::super::Position;
use super::{config, fed, shown, text};

#[test]
fn what_was_left_behind_is_put_right() {
    let table: &[(&str, &str, &[&str], &str)] = &[
        ("nothing", "one\r\ndsh> ", &[], "one\ndsh> ls"),
        ("bracketed paste", "\x1b[?2004hdsh> ", &[], "dsh> ls"),
        (
            "the alternate screen",
            "one\r\n\x1b[?1049hdrawn\r\ndsh> ",
            &["left the alternate screen"],
            "one\ndsh> ls",
        ),
        (
            "the alternate screen, on an unfinished line",
            "one\x1b[?1049h\x1b[2J\x1b[4;1Hdsh> ",
            &["left the alternate screen"],
            "one\ndsh> ls",
        ),
        (
            "the alternate screen, with text below the cursor",
            "1\r\n2\r\n3\x1b[1;1H\x1b[?1049h\x1b[2Jdsh> ",
            &["left the alternate screen"],
            "1\n2\n3\ndsh> ls",
        ),
        (
            "the alternate screen, behind a full window",
            "1\r\n2\r\n3\r\n4\r\n5\x1b[?47h\rdsh> ",
            &["left the alternate screen"],
            "1\n2\n3\n4\n5\ndsh> ls",
        ),
        (
            "the alternate screen, with a prompt that ran over",
            "1\r\n\x1b[?1049h\x1b[2J\x1b[H123456789日dsh> ",
            &["left the alternate screen"],
            "1\n123456789日dsh> ls",
        ),
        ("the character set", "\x1b(0\r\n> ", &["reset the character set"], "\n> ls"),
        ("a shift", "\x1b)0\x0e\r\n> ", &["reset the character set"], "\n> ls"),
        (
            "the scroll region",
            "1\r\n2\r\n\x1b[1;2rdsh> ",
            &["reset the scroll region"],
            "dsh> \n2\ndsh> ls",
        ),
        (
            "origin mode",
            "1\r\n2\r\n3\r\n\x1b[?6hdsh> ",
            &["reset origin mode"],
            "dsh> \n2\n3\ndsh> ls",
        ),
        ("insert mode", "\x1b[4hdsh> ", &["left insert mode"], "dsh> ls"),
        ("no autowrap", "\x1b[?7ldsh> ", &["turned line wrapping on"], "dsh> ls"),
        ("keys", "\x1b[?1h\x1b=dsh> ", &["reset the cursor keys", "reset the keypad"], "dsh> ls"),
        ("keys that were put back", "\x1b[?1h\x1b=\x1b[?1l\x1b>dsh> ", &[], "dsh> ls"),
        ("the mouse", "\x1b[?1002h\x1b[?1006hdsh> ", &["turned mouse reports off"], "dsh> ls"),
        ("the colours", "\x1b[1;31mred\r\ndsh> ", &["reset the colours"], "red\ndsh> ls"),
        ("the colours, put back", "\x1b[1;31mred\x1b[22;39m\r\ndsh> ", &[], "red\ndsh> ls"),
        ("the colours, restored", "\x1b7\x1b[7mred\x1b8\x1b[Kdsh> ", &[], "dsh> ls"),
        ("the colours of a full screen", "\x1b[?1049h\x1b[31mred\x1b[?1049ldsh> ", &[], "dsh> ls"),
        ("the cursor", "\x1b[?25ldsh> ", &["showed the cursor again"], "dsh> ls"),
        ("the mouse, put back", "\x1b[?1000h\x1b[?1000ldsh> ", &[], "dsh> ls"),
    ];
    for (name, stream, words, expected) in table {
        let (mut screen, _) = fed(config(5, 10), stream.as_bytes());
        let (printed, paste) = (screen.printed(), screen.bracketed_paste());
        assert_eq!(screen.repair(), *words, "{name}");
        assert_eq!(screen.repair(), [""; 0], "{name}, again");
        assert_eq!((screen.printed(), screen.bracketed_paste()), (printed, paste), "{name}");
        screen.feed(b"ls", &mut Vec::new());
        assert_eq!(text(&screen), *expected, "{name}");
    }
}

#[test]
fn after_a_repair_text_is_plain() {
    let bad = "one\r\n\x1b7\x1b(0\x1b7\x1b[2;3r\x1b[?6h\x1b[4h\x1b[?7l\x1b[?1049hdsh> ";
    let (mut screen, _) = fed(config(5, 10), bad.as_bytes());
    let from = screen.end();
    assert_eq!(screen.repair().len(), 6);
    assert_eq!(screen.cursor_line(), "dsh> ");
    screen.feed(b"echo lqk\r\nlqk\r\n1\r\n2\r\n3\r\n4\r\n5\r\n6\x1b8", &mut Vec::new());
    screen.feed(b"q", &mut Vec::new());
    assert!(
        screen
            .since(&Position::default(), usize::MAX)
            .text
            .starts_with("one\ndsh> echo lqk\nlqk\n1\n")
    );
    assert!(!text(&screen).contains('─'), "{}", text(&screen));
    assert!(!screen.since(&from, usize::MAX).text.is_empty());
}

#[test]
fn the_blank_behind_a_full_row() {
    let full = format!("echo {}", "字".repeat(10));
    let typed = "echo aaaaaaaaaaaaaaaaaaaa ";
    let table = [
        ("ended from above", format!("{full} \r\x1b[A\r\nout\r\n> "), format!("{full}\nout\n> ")),
        (
            "ended from above, no output",
            format!("{full} \r\x1b[A\r\n\x1b[?2004l\r\r\n> "),
            format!("{full}\n\n> "),
        ),
        (
            "ended in front of the blank",
            format!("{full} \r\x1b[A\x1b[5C\r\n\r\x1b[?2004l\rout"),
            format!("{full}\nout"),
        ),
        (
            "a blank that was typed",
            format!("{typed}\x1b[A\x1b[4C\r\n\r\x1b[Cb\r\n\x1b[?2004l\rout"),
            format!("{typed}b\nout"),
        ),
        (
            "edited above, and on",
            format!("{full} \r\x1b[A\x1b[5C\r\n\rmore\r\n\x1b[?2004l\rout"),
            format!("{full}more\nout"),
        ),
    ];
    for (name, stream, expected) in table {
        for rows in [2, 5] {
            let stream = format!("\r\n\r\n\r\n\r\ndsh> {stream}");
            let expected = format!("\n\n\n\ndsh> {expected}");
            assert_eq!(shown(config(rows, 30), &stream), expected, "{name}, {rows} rows");
        }
    }
    let wide = "字".repeat(75);
    let stream = format!("dsh> echo {wide} \r\x1b[A\r\n\x1b[?2004l\r{wide}\r\ndsh> ");
    assert_eq!(shown(config(40, 160), stream), format!("dsh> echo {wide}\n{wide}\ndsh> "));
}
