//! Small streams and the text they show.

use super::super::row::width;
use super::super::{Colour, Query, ScreenEvent};
use super::{CONFIG, config, fed, shown, text};

/// Streams on a window of the default size.
#[test]
fn streams_show_what_a_person_would_see() {
    let table: &[(&str, &[u8], &str)] = &[
        ("a bare prompt keeps its space", b"dsh> ", "dsh> "),
        ("CRLF is one newline", b"a\r\nb\r\n", "a\nb"),
        ("LF goes down in the same column", b"a\nb", "a\n b"),
        ("blank lines count", b"a\r\n\r\n\r\nb", "a\n\n\nb"),
        ("CR rewrites", b"one\rtwo", "two"),
        ("a shorter text leaves the old tail", b"three\rab", "abree"),
        ("several CRs", b"a\r\r\r\nb", "a\nb"),
        ("backspace moves only", b"abc\x08", "abc"),
        ("backspace and overwrite", b"abc\x08\x08\x08xyz", "xyz"),
        ("the kernel's erase", b"ab\x08 \x08c", "ac"),
        ("backspace stops at the margin", b"a\x08\x08\x08b", "b"),
        ("tabs", b"a\tb\tc", "a       b       c"),
        ("a tab at the end shows nothing", b"a\t", "a"),
        ("a tab does not erase", b"abcdefghij\r\tX", "abcdefghXj"),
        ("erase to the end", b"dsh> foo\r\x1b[5C\x1b[K", "dsh> "),
        ("erase to the beginning", b"abcdef\x1b[3D\x1b[1K", "    ef"),
        ("erase the line", b"abc\x1b[2Kx", "   x"),
        ("erase all that is there", b"abc\x1b[1K", ""),
        ("erase columns", b"abcdef\r\x1b[C\x1b[3X", "a   ef"),
        ("delete characters", b"abcdef\r\x1b[C\x1b[2P", "adef"),
        ("insert characters", b"abcd\r\x1b[C\x1b[2@XY", "aXYbcd"),
        ("insert mode", b"abcd\r\x1b[4hXY\x1b[4l", "XYabcd"),
        ("repeat", b"-\x1b[9b", "----------"),
        ("up and rewrite", b"one\r\ntwo\r\nthree\x1b[2A\rONE", "ONE\ntwo\nthree"),
        ("up, erase below", b"one\r\ntwo\r\nthree\x1b[1A\r\x1b[J", "one"),
        ("absolute position", b"\x1b[2;3Hx\x1b[1;1Ha", "a\n  x"),
        ("column and row", b"abc\x1b[2Gx\x1b[3dy", "axc\n\n  y"),
        ("next line, previous line", b"a\x1b[Eb\x1b[Fc", "c\nb"),
        ("insert a line", b"a\r\nb\x1b[Lx", "a\nx\nb"),
        ("delete a line", b"a\r\nb\r\nc\x1b[1A\x1b[M", "a\nc"),
        ("save and restore", b"ab\x1b7cd\x1b8X", "abXd"),
        ("save and restore, other spelling", b"ab\x1b[scd\x1b[uX", "abXd"),
        ("reverse index", b"a\r\nb\x1bMc", "ac\nb"),
        ("index and next line", b"a\x1bDb\x1bEc", "a\n b\nc"),
        ("clearing keeps what was shown", b"one\r\ntwo\x1b[H\x1b[2J\x1b[3Jnew", "one\ntwo\nnew"),
        ("clearing from the corner", b"one\x1b[H\x1b[Jnew", "one\nnew"),
        ("clearing an empty window", b"\x1b[H\x1b[2J\x1b[H\x1b[2Jnew", "new"),
        ("a full reset", b"one\x1b[4h\x1bcnew", "one\nnew"),
        ("colours", b"\x1b[1;31mred\x1b[0m \x1b[38;5;4mblue\x1b[m\x1b[38:2::1:2:3m!", "red blue!"),
        ("unknown sequences", b"a\x1b[?25l\x1b[5 q\x1b[>4;2m\x1b[22;0;0t\x1b=\x1b>\x1b%Gz", "az"),
        ("controls inside a sequence", b"ab\x1b[\r1Cx", "ax"),
        ("a cancelled sequence", b"a\x1b[12\x18b", "ab"),
        ("an escape restarts a sequence", b"abc\x1b[1\x1b[2Dx", "axc"),
        ("bell, NUL and DEL", b"a\x07\x00\x7fz", "az"),
        ("line drawing", b"\x1b(0lqk\x1b(B\r\n\x0e|\x0f", "\u{250c}\u{2500}\u{2510}\n|"),
        ("line drawing, shifted", b"\x1b)0a\x0exqx\x0fz", "a\u{2502}\u{2500}\u{2502}z"),
        ("other charsets", b"\x1b(A\x1b)B\x1b*0\x1b+0az", "az"),
        ("wide characters", "日本語\rab".as_bytes(), "ab本語"),
        ("half a wide character", "日本\r\u{1b}[Cx".as_bytes(), " x本"),
        ("combining marks", "e\u{301}x\u{200d}".as_bytes(), "e\u{301}x\u{200d}"),
        ("a mark on an earlier cell", "ab\u{8}\u{301}".as_bytes(), "a\u{301}b"),
        ("a mark without a cell", "\u{feff}\u{301}a".as_bytes(), "a"),
        ("rewriting a cell with a mark", "e\u{301}x\rab".as_bytes(), "ab"),
        ("malformed UTF-8", b"a\xc4\xe3z", "a\u{fffd}\u{fffd}z"),
        ("a cut character", b"a\xe4\xbd\r\nz", "a\u{fffd}\nz"),
        ("an overlong form", b"\xc0\xafz", "\u{fffd}\u{fffd}z"),
        ("raw bytes of the upper half", b"a\x80\x9b31mz", "a\u{fffd}\u{fffd}31mz"),
        (
            "moves beyond every edge",
            b"\x1b[999A\x1b[999Da\x1b[999C\x1b[999Bb\x1b[Hc",
            &right_corner(),
        ),
    ];
    for (name, bytes, expected) in table {
        assert_eq!(shown(CONFIG, bytes), *expected, "{name}");
    }
}

fn right_corner() -> String {
    format!("c{}{}b", "\n".repeat(39), " ".repeat(159))
}

/// No string sequence and no C1 control leaves a trace between `a` and `z`.
#[test]
fn string_sequences_are_invisible() {
    let long = "x".repeat(100_000);
    let bodies =
        ["", "0;title", "8;;http://example.org", "133;A", "é✜日", "a\nb\tc\r", "1\u{80}2", &long];
    let introducers = [
        "\x1b]", "\x1bP", "\x1bX", "\x1b^", "\x1b_", "\u{90}", "\u{98}", "\u{9d}", "\u{9e}",
        "\u{9f}",
    ];
    let terminators = ["\x07", "\x1b\\", "\u{9c}", "\x18", "\x1a", "\x1b[0m"];
    for introducer in introducers {
        for body in bodies {
            for terminator in terminators {
                let stream = format!("a{introducer}{body}{terminator}z");
                assert_eq!(shown(CONFIG, &stream), "az", "{:?}", &stream[..stream.len().min(60)]);
            }
        }
    }
    for c1 in ('\u{80}'..='\u{9f}')
        .filter(|c| !"\u{84}\u{85}\u{8d}\u{90}\u{98}\u{9b}\u{9d}\u{9e}\u{9f}".contains(*c))
    {
        assert_eq!(shown(CONFIG, format!("a{c1}z")), "az", "{c1:?}");
    }
    assert_eq!(shown(CONFIG, "a\u{9b}31mz"), "az");
    assert_eq!(shown(CONFIG, "a\u{85}z"), "a\nz");
    assert_eq!(shown(CONFIG, "a\x1bPtmux;\x1b\x1b]52;c;eA==\x07\x1b\\z"), "az");
}

#[test]
fn progress_is_one_line() {
    let frames =
        |count: u32| (1..=count).map(|n| format!("\rprogress {n}%")).collect::<Vec<_>>().concat();
    assert_eq!(shown(CONFIG, frames(200)), "progress 200%");
    let (screen, _) = fed(CONFIG, frames(10_000).as_bytes());
    assert_eq!(text(&screen), "progress 10000%");
    assert_eq!(screen.page(0, 1, 100).total_lines, 1);
}

#[test]
fn a_listing_of_numbers() {
    let stream = (1..=100).map(|n| format!("{n}\r\n")).collect::<Vec<_>>().concat();
    let (screen, _) = fed(CONFIG, format!("seq 100\r\n{stream}dsh> ").as_bytes());
    let expected = (1..=100).map(|n| format!("{n}\n")).collect::<Vec<_>>().concat();
    assert_eq!(text(&screen), format!("seq 100\n{expected}dsh> "));
    assert_eq!(screen.page(0, 1, 100).total_lines, 102);
    assert_eq!(screen.line_feeds(), 101);
}

#[test]
fn rows_that_ran_over_are_one_line() {
    let long: String = ('a'..='z').cycle().take(1000).collect();
    for (rows, cols) in [(40, 160), (40, 80), (3, 80), (1, 7), (2, 2), (40, 4096)] {
        let config = config(rows, cols);
        assert_eq!(
            shown(config, format!("{long}\r\n{long}")),
            format!("{long}\n{long}"),
            "{rows}x{cols}"
        );
        let wide = "日本語".repeat(100);
        assert_eq!(
            shown(config, format!("x{wide}\r\nend")),
            format!("x{wide}\nend"),
            "{rows}x{cols}"
        );
    }
}

#[test]
fn the_right_margin() {
    let table: &[(&str, &str, &str)] = &[
        ("a full row and CRLF: no blank line", "1234567890\r\nab", "1234567890\nab"),
        ("a full row waits", "1234567890\rX", "X234567890"),
        ("a full row and one more", "1234567890a", "1234567890a"),
        ("backspace from the waiting column", "1234567890\x08X", "12345678X0"),
        (
            "erasing at the waiting column erases nothing",
            "1234567890\x1b[K\r\nab",
            "1234567890\nab",
        ),
        ("coloured output at the margin", "1234567890\x1b[m\x1b[Kab", "1234567890ab"),
        ("a wide character does not fit", "123456789日", "123456789日"),
        ("no autowrap", "\x1b[?7l1234567890abc", "123456789c"),
        ("no autowrap, wide", "\x1b[?7l1234567890日", "12345678日"),
        ("up into the first row of a long line", "1234567890abc\x1b[A\rX", "X234567890abc"),
        (
            "a second row that was erased",
            "1234567890abc\r\x1b[K\x1b[A\x1b[9C0\r\n\r\nx",
            "1234567890\n\nx",
        ),
        (
            "the last column rewritten ends the line",
            "1234567890abc\x1b[A\x1b[10GX\r\nab",
            "123456789X\nabc",
        ),
        ("a mark at the waiting column", "1234567890\u{301}a", "1234567890\u{301}a"),
        ("tab at the margin", "12345678\tX\tY", "12345678 XY"),
    ];
    for (name, stream, expected) in table {
        assert_eq!(shown(config(5, 10), stream), *expected, "{name}");
    }
}

#[test]
fn scrolling_and_regions() {
    let table: &[(&str, &str, &str)] = &[
        ("scrolling keeps everything", "1\r\n2\r\n3\r\n4\r\n5", "1\n2\n3\n4\n5"),
        ("up reaches the window only", "1\r\n2\r\n3\r\n4\x1b[9A\rX", "1\nX\n3\n4"),
        (
            "a status row at the bottom",
            "\x1b[1;2r\x1b[3;1Hbar\x1b[1;1H1\r\n2\r\n3\r\n4",
            "1\n2\n3\n4\nbar",
        ),
        ("a region in the middle forgets", "T\x1b[2;3r\x1b[2;1H1\r\n2\r\n3", "T\n2\n3"),
        ("scroll up", "1\r\n2\r\n3\x1b[2SX", "1\n2\n3\n\n X"),
        ("scroll down", "1\r\n2\r\n3\x1b[T", "\n1\n2"),
        ("reverse index at the top", "1\r\n2\r\n3\x1b[H\x1bMX", "X\n1\n2"),
        ("insert pushes out", "1\r\n2\r\n3\x1b[1;1H\x1b[LX", "X\n1\n2"),
        ("long lines in a region", "\x1b[1;2r12345678901234567890ab", "12345678901234567890ab"),
        ("origin mode", "\x1b[2;3r\x1b[?6h\x1b[1;1HX", "\nX"),
        ("a bad region is ignored", "\x1b[3;1r1\r\n2\r\n3\r\n4", "1\n2\n3\n4"),
    ];
    for (name, stream, expected) in table {
        assert_eq!(shown(config(3, 10), stream), *expected, "{name}");
    }
    let lines = (1..=5000).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat();
    assert_eq!(shown(CONFIG, lines.replace('\n', "\r\n")), lines.trim_end());
}

#[test]
fn tab_stops_are_the_program_s() {
    let table = [
        ("set", "\x1b[4G\x1bH\r\tX", "   X"),
        ("cleared at the cursor", "\x1b[9G\x1b[g\r\tX", "                X"),
        ("all cleared", "\x1b[3g\r\tX", "                   X"),
        ("all cleared, then set", "\x1b[3g\x1b[3G\x1bH\r\tX", "  X"),
        ("back to one", "\x1b[4G\x1bH\x1b[7G\x1b[ZX", "   X"),
        ("put back", "\x1b[3g\x1b[?5W\r\tX", "        X"),
        ("put back by a reset", "\x1b[3g\x1bc\tX", "        X"),
    ];
    for (name, stream, expected) in table {
        assert_eq!(shown(config(3, 20), stream), expected, "{name}");
    }
}

#[test]
fn an_alignment_test_fills_the_window_and_loses_nothing() {
    let expected = "one\ntwo\nXEEE\nEEEE";
    assert_eq!(shown(config(2, 4), "one\r\ntwo\x1b[1;2r\x1b#8X"), expected);
}

#[test]
fn the_alternate_screen_is_kept_apart() {
    for mode in ["1049", "1047", "47"] {
        let stream = format!("one\r\ntwo\x1b[?{mode}h\x1b[H\x1b[2Jdrawn\r\n\n\n\x1b[?{mode}l!\r\n");
        let (screen, events) = fed(CONFIG, stream.as_bytes());
        assert_eq!(text(&screen), "one\ntwo!");
        assert_eq!(screen.printed(), 12);
        assert_eq!(
            events,
            [
                ScreenEvent::AlternateScreen { on: true, printed: 6 },
                ScreenEvent::AlternateScreen { on: false, printed: 11 }
            ]
        );
    }
    let (screen, _) = fed(CONFIG, b"one\x1b[?1049h\x1b[3;5Habc");
    assert!(screen.alternate());
    assert_eq!(
        (screen.cursor_row(), screen.cursor_column(), screen.cursor_line()),
        (2, 7, "    abc".to_owned())
    );
    assert_eq!(text(&screen), "one");
}

#[test]
fn events_carry_their_place_in_the_text() {
    let stream = "\x1b]133;C;nonce\x07ab\x1b[?2004h\x1b]133;D;3\x1b\\é\x1b]133;A\u{9c}\x1b[?2004l\x1b]0;133;x\x07";
    let (screen, events) = fed(CONFIG, stream.as_bytes());
    let mark =
        |payload: &str, printed| ScreenEvent::Osc133 { payload: payload.to_owned(), printed };
    assert_eq!(
        events,
        [
            mark("C;nonce", 0),
            ScreenEvent::BracketedPaste { on: true, printed: 2 },
            mark("D;3", 2),
            mark("A", 3),
            ScreenEvent::BracketedPaste { on: false, printed: 3 },
        ]
    );
    assert_eq!(text(&screen), "abé");
    assert!(!screen.bracketed_paste());
}

#[test]
fn only_whole_and_bounded_marks_are_events() {
    for stream in [
        "\x1b]133;A",
        "\x1b]133;A\x18",
        "\x1b]133;A\x1b[m",
        "\x1b]133",
        &format!("\x1b]133;{}\x07", "x".repeat(4096)),
    ] {
        assert_eq!(fed(CONFIG, stream.as_bytes()).1, [], "{:?}", &stream[..8]);
    }
}

#[test]
fn questions_are_events() {
    let table = [
        ("\x1b[5n", Query::Status),
        ("\r\nab\x1b[6n", Query::CursorPosition { row: 2, column: 3, private: false }),
        ("\x1b[?6n", Query::CursorPosition { row: 1, column: 1, private: true }),
        ("\x1b[c", Query::PrimaryAttributes),
        ("\x1b[0c", Query::PrimaryAttributes),
        ("\x1bZ", Query::PrimaryAttributes),
        ("\x1b[>c", Query::SecondaryAttributes),
        ("\x1b[>0q", Query::Version),
        ("\x1b[?2004$p", Query::PrivateMode { mode: 2004, set: Some(false) }),
        ("\x1b[?2026$p", Query::PrivateMode { mode: 2026, set: None }),
        ("\x1b[?u", Query::KeyboardFlags),
        ("\x1b[18t", Query::WindowSize { rows: 40, columns: 160 }),
        ("\x1b]10;?\x07", Query::Colour { of: Colour::Foreground, bell: true }),
        ("\x1b]11;?\x1b\\", Query::Colour { of: Colour::Background, bell: false }),
        ("\x1b]12;?\x1b\\", Query::Colour { of: Colour::Cursor, bell: false }),
        ("\x1b]4;201;?\x07", Query::Colour { of: Colour::Palette(201), bell: true }),
    ];
    for (stream, query) in table {
        let events = fed(CONFIG, stream.as_bytes()).1;
        assert!(
            matches!(&events[..], [ScreenEvent::Query { query: found, .. }] if *found == query),
            "{stream:?} {events:?}"
        );
    }
}

#[test]
fn the_cursor_line() {
    let line = |stream: &str| fed(config(5, 10), stream.as_bytes()).0.cursor_line();
    assert_eq!(line("one\r\nPassword: "), "Password: ");
    assert_eq!(line("1234567890abc"), "1234567890abc");
    assert_eq!(line("abc\x1b[2D"), "a");
    assert_eq!(line("abc\x1b[5C"), "abc");
    assert_eq!(fed(CONFIG, "é".repeat(1000).as_bytes()).0.cursor_line(), "é".repeat(400));
}

#[test]
fn widths_are_those_of_the_tables() {
    for c in ('\u{1}'..=char::MAX).filter(|c| !c.is_control()) {
        assert_eq!(
            width(c),
            unicode_width::UnicodeWidthChar::width(c).unwrap_or(0).min(2),
            "{c:?}"
        );
    }
}
