//! Positions, deltas, pages and bounds.

use super::super::{Position, Screen, ScreenConfig, Slice};
use super::{CONFIG, config, fed, text};

const ALL: usize = usize::MAX;

fn feed(screen: &mut Screen, bytes: impl AsRef<[u8]>) {
    screen.feed(bytes.as_ref(), &mut Vec::new());
}

fn bounded(max_lines: usize, max_bytes: usize) -> ScreenConfig {
    ScreenConfig { rows: 3, cols: 10, max_lines, max_bytes }
}

fn numbers(from: u32, to: u32) -> String {
    (from..=to).map(|n| format!("{n}\r\n")).collect::<Vec<_>>().concat()
}

#[test]
fn a_viewport_starts_where_the_delivered_text_ended() {
    let (mut screen, _) = fed(CONFIG, b"welcome\r\ndsh> ");
    let start = screen.end();
    assert_eq!(start.line(), 1);
    assert_eq!(screen.since(&start, ALL).text, "");
    feed(&mut screen, "echo hi\r\nhi\r\ndsh> ");
    let slice = screen.since(&start, ALL);
    assert_eq!(slice.text, "echo hi\nhi\ndsh> ");
    assert_eq!(
        (slice.truncated, slice.first_line, slice.cut_lines, slice.cut_bytes),
        (false, 1, 0, 0)
    );
    assert_eq!(screen.since(&Position::default(), ALL).text, "welcome\ndsh> echo hi\nhi\ndsh> ");
}

#[test]
fn the_end_is_found_anew_after_every_change() {
    let changes: [fn(&mut Screen); 4] = [
        |screen| feed(screen, "\r\nthree"),
        |screen| screen.resize(2, 7),
        |screen| feed(screen, "\x1b[?1049h\x1b[2Jprompt> "),
        |screen| assert!(!screen.repair().is_empty()),
    ];
    for last in 1..=changes.len() {
        let [mut asked, mut unasked] = [(); 2].map(|()| fed(CONFIG, b"one\r\ntwo").0);
        for change in &changes[..last] {
            asked.end();
            change(&mut asked);
            change(&mut unasked);
        }
        assert_eq!(format!("{:?}", asked.end()), format!("{:?}", unasked.end()), "{last} changes");
    }
}

#[test]
fn a_prompt_that_is_drawn_again_alike_was_not_rewritten() {
    let (mut screen, _) = fed(CONFIG, b"dsh> ");
    let start = screen.end();
    feed(&mut screen, "\r\x1b[Kdsh> ls\r\n");
    assert_eq!(screen.since(&start, ALL).text, "ls\n");
}

/// Streams in parts, and the delta after each part.
#[test]
fn deltas() {
    type Part = (&'static str, &'static str);
    let table: &[(&str, &[Part])] = &[
        (
            "appending",
            &[("ab", "ab"), ("c\r", "c"), ("\nd", "\nd"), ("", ""), ("\r\n", "\n"), ("e", "e")],
        ),
        ("a cut character", &[("a\u{fffd}", "a\u{fffd}"), ("é", "é")]),
        (
            "rewriting",
            &[("10%", "10%"), ("\r20%", "\n20%"), ("\r30%\r\n", "\n30%\n"), ("ok", "ok")],
        ),
        ("rewriting alike", &[("10%", "10%"), ("\r10%", ""), ("!", "!")]),
        ("rewriting with more after it", &[("10%", "10%"), ("\r20%\r\ndone\r\n", "\n20%\ndone\n")]),
        ("erased", &[("10%", "10%"), ("\r\x1b[K", ""), ("done\r\n", "\ndone\n")]),
        (
            "erased, then a new line",
            &[("10%\r\n", "10%\n"), ("20%", "20%"), ("\r\x1b[K\r\nx", "\n\nx")],
        ),
        (
            "several bars",
            &[
                ("a 1\r\nb 1\r\nc 1", "a 1\nb 1\nc 1"),
                ("\x1b[2A\ra 2\x1b[2B", "\na 2\nc 1"),
                ("\x1b[1A\rb 2\x1b[1B\rc 2", "\nb 2\nc 2"),
                ("\r\nend\r\n", "\nend\n"),
            ],
        ),
        (
            "lines that are erased from below",
            &[
                ("a\r\nb\r\nc", "a\nb\nc"),
                ("\x1b[2A\r\x1b[J", ""),
                ("done\r\n", "\ndone\n"),
                ("x", "x"),
            ],
        ),
        (
            "back to an earlier line, which is continued",
            &[("a\r\nb", "a\nb"), ("\r\x1b[K\x1b[A\x1b[C", ""), ("!", "\na!"), ("!", "!")],
        ),
        ("clearing", &[("a\r\nb", "a\nb"), ("\x1b[H\x1b[2J", "\n"), ("c", "c")]),
        ("room for a menu", &[("p> \r\n\r\n\x1b[2A\x1b[3C", "p> "), ("x", "x")]),
        ("a tab, then text", &[("a\t", "a"), ("b", "       b")]),
        (
            "a long line",
            &[("12345678901234567890", "12345678901234567890"), ("ab", "ab"), ("\r\nc", "\nc")],
        ),
        (
            "the second row of a long line",
            &[("1234567890ab", "1234567890ab"), ("\rxy", "\n1234567890xy")],
        ),
    ];
    for (name, parts) in table {
        let mut screen = Screen::new(config(5, 10));
        let mut position = Position::default();
        for (bytes, expected) in *parts {
            feed(&mut screen, bytes);
            assert_eq!(screen.delta(&mut position, ALL).text, *expected, "{name}: {bytes:?}");
        }
    }
}

#[test]
fn rewritten_lines_above_the_start_are_in_the_viewport() {
    let (mut screen, _) = fed(CONFIG, b"one\r\ntwo\r\ndsh> ");
    let start = screen.end();
    feed(&mut screen, "tput cuu 3\r\n\x1b[3A\rONE\x1b[3B\r\ndsh> ");
    assert_eq!(screen.since(&start, ALL).text, "ONE\ndsh> tput cuu 3\n\ndsh> ");
}

#[test]
fn what_is_cut_is_the_oldest_and_is_told() {
    let (mut screen, _) = fed(CONFIG, b"dsh> ");
    let start = screen.end();
    feed(&mut screen, numbers(1, 1000));
    let slice = screen.since(&start, 20);
    assert_eq!(slice.text, "96\n997\n998\n999\n1000\n");
    assert!(slice.truncated);
    let whole = screen.since(&start, ALL);
    assert_eq!((whole.truncated, whole.cut_bytes), (false, 0));
    assert_eq!(slice.cut_bytes, (whole.text.len() - slice.text.len()) as u64);
    assert_eq!(slice.cut_lines, 995);

    // Between characters.
    let (screen, _) = fed(CONFIG, "日本語".as_bytes());
    for (max, expected) in [(9, "日本語"), (8, "本語"), (6, "本語"), (5, "語"), (2, ""), (0, "")]
    {
        let slice = screen.since(&Position::default(), max);
        assert_eq!((slice.text.as_str(), slice.truncated), (expected, max < 9));
        let page = screen.page(0, 1, max);
        assert_eq!((page.text.as_str(), page.truncated), (expected, max < 9));
    }
}

#[test]
fn dropped_lines_truncate_what_lost_them_and_nothing_else() {
    let (mut screen, _) = fed(bounded(100, 1 << 20), numbers(1, 500).as_bytes());
    let start = screen.end();
    feed(&mut screen, "dsh> echo hi\r\nhi\r\ndsh> ");
    assert_eq!(
        screen.since(&start, ALL),
        Slice {
            text: "dsh> echo hi\nhi\ndsh> ".into(),
            truncated: false,
            first_line: 500,
            cut_lines: 0,
            cut_bytes: 0,
            lines_end: 503,
        }
    );
    assert!(!screen.page(0, 100, ALL).truncated);
    assert!(screen.page(0, 101, ALL).truncated);
    feed(&mut screen, numbers(1, 500));
    let slice = screen.since(&start, ALL);
    assert!(slice.truncated);
    assert_eq!(slice.text.lines().next(), Some("401"));
    assert_eq!((slice.first_line, slice.cut_lines), (902, 402));
    assert_eq!(slice.text.lines().count(), 100);
}

#[test]
fn an_endless_line_stays_and_loses_its_front() {
    let mut screen = Screen::new(bounded(100, 1000));
    let start = screen.end();
    let mut whole = String::new();
    for n in 0..1000 {
        let piece = format!("{n},é");
        whole += &piece;
        feed(&mut screen, &piece);
        let page = screen.page(0, 1, ALL);
        assert!(page.text.len() <= 1000);
        assert!(whole.ends_with(&page.text));
        assert_eq!(page.truncated, page.text.len() < whole.len());
        assert_eq!((page.total_lines, page.first_line), (1, 0));
    }
    assert!(screen.page(0, 1, ALL).text.len() > 990);
    assert!(screen.since(&start, ALL).truncated);
    let end = screen.end();
    feed(&mut screen, "more\r\nEND");
    assert_eq!(screen.since(&end, ALL).text, "more\nEND");
    assert!(!screen.since(&end, ALL).truncated);
    assert!(text(&screen).ends_with("999,émore\nEND"));
}

#[test]
fn a_long_finished_line_is_not_dropped_as_a_whole() {
    let config = ScreenConfig { max_bytes: 200_000, ..CONFIG };
    let (screen, _) = fed(config, format!("{}\r\nEND\r\ndsh> ", "x".repeat(1_000_000)).as_bytes());
    let all = text(&screen);
    assert!(all.len() <= 200_000 && all.len() > 190_000, "{}", all.len());
    assert!(all.ends_with("x\nEND\ndsh> "));
}

#[test]
fn pages() {
    let (screen, _) = fed(config(3, 10), format!("{}dsh> ", numbers(1, 20)).as_bytes());
    let page = |offset, count, max| {
        let page = screen.page(offset, count, max);
        (page.text, page.line_begin, page.line_end, page.first_line, page.truncated)
    };
    assert_eq!(screen.page(0, 500, ALL).total_lines, 21);
    assert_eq!(page(0, 1, ALL), ("dsh> ".into(), 0, 1, 20, false));
    assert_eq!(page(0, 3, ALL), ("19\n20\ndsh> ".into(), 0, 3, 18, false));
    assert_eq!(page(18, 500, ALL), ("1\n2\n3".into(), 18, 21, 0, false));
    assert_eq!(page(20, 1, ALL), ("1".into(), 20, 21, 0, false));
    assert_eq!(page(21, 1, ALL), (String::new(), 21, 21, 0, false));
    assert_eq!(page(999, u64::MAX, ALL), (String::new(), 999, 999, 0, false));
    // A page that is cut has whole lines, and `line_end` is where the next one goes on.
    assert_eq!(page(1, 10, 6), ("19\n20".into(), 1, 3, 18, true));
    assert_eq!(page(3, 10, 5), ("17\n18".into(), 3, 5, 16, true));
    assert_eq!(page(0, 10, 3), ("h> ".into(), 0, 1, 20, true));
}

#[test]
fn an_empty_last_line_is_no_line() {
    for (stream, lines) in
        [("", 0), ("a", 1), ("a\r\n", 1), ("a\r\n\r\n", 2), ("\r\n", 1), ("a\r\nb\x1b[A", 2)]
    {
        let (screen, _) = fed(CONFIG, stream.as_bytes());
        assert_eq!(screen.page(0, 500, ALL).total_lines, lines, "{stream:?}");
    }
}

#[test]
fn resizing_keeps_lines_and_positions() {
    let long: String = ('a'..='z').cycle().take(95).collect();
    let (mut screen, _) = fed(config(5, 10), format!("one\r\n{long}\r\ndsh> ").as_bytes());
    let start = screen.end();
    let before = text(&screen);
    for (rows, cols) in [(5, 20), (2, 7), (40, 160), (1, 2), (10, 10)] {
        screen.resize(rows, cols);
        assert_eq!(text(&screen), before, "{rows}x{cols}");
    }
    feed(&mut screen, "echo\r\nx");
    assert_eq!(screen.since(&start, ALL).text, "echo\nx");
    assert_eq!(text(&screen), format!("{before}echo\nx"));
}

#[test]
fn an_idle_screen_is_small() {
    let (screen, _) = fed(CONFIG, b"\x1b]133;A\x07dsh> \x1b]133;B\x07");
    assert!(size_of::<Screen>() < 2048, "{}", size_of::<Screen>());
    assert_eq!(text(&screen), "dsh> ");
}

#[test]
fn bounds_beyond_all_numbers_drop_nothing() {
    let (screen, _) = fed(bounded(ALL, ALL), numbers(1, 1000).as_bytes());
    assert_eq!(text(&screen).lines().count(), 1000);
}

#[test]
fn an_endless_line_gives_way_piece_by_piece_and_ends_like_any_other() {
    let mut screen = Screen::new(bounded(100, 100_000));
    for _ in 0..100 {
        feed(&mut screen, "x".repeat(3_000));
        assert!(text(&screen).len() <= 100_000);
    }
    feed(&mut screen, format!("\r\n{}", numbers(1, 5)));
    let shown = text(&screen);
    assert!(shown.ends_with("xxx\n1\n2\n3\n4\n5") && shown.len() > 99_000, "{}", shown.len());
    feed(&mut screen, numbers(6, 120));
    assert_eq!(text(&screen).lines().next(), Some("21"));
    assert_eq!(screen.page(0, 1, ALL).total_lines, 100);
}
