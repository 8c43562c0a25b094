//! The alternate screen: cells, and a main text that knows nothing of it.

use super::super::{Cell, Cursor, Screen};
use super::{config, fed, text};

fn rows(screen: &Screen) -> Vec<String> {
    let full = screen.full_screen().unwrap();
    let rows: Vec<String> = (0..50).map(|row| full.text(row)).collect();
    let last = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
    rows[..last].to_vec()
}

#[test]
fn what_a_program_draws_is_cells() {
    let table: &[(&str, &str, &[&str])] = &[
        ("addressed", "\x1b[2;3Hab\x1b[1;1Hc", &["c", "  ab"]),
        ("it begins where the cursor was", "x", &["", "  x"]),
        ("erased in place", "\x1b[Hone\r\ntwo\x1b[2J\x1b[Hthree", &["three"]),
        ("a region", "\x1b[2;3r\x1b[3;1Ha\nb\nc\x1b[r\x1b[Htop", &["top", " b", "  c"]),
        ("rectangles of lines", "\x1b[H\x1b(0lqk\x1b(B|", &["┌─┐|"]),
        ("wide and combining", "\x1b[H日e\u{301}!", &["日e\u{301}!"]),
        ("repeated", "\x1b[Ha\x1b[3b", &["aaaa"]),
        ("tab stops", "\x1b[H\x1b[3G\x1bH\r\ta", &["  a"]),
        ("saved and restored", "\x1b[2;2H\x1b7\x1b[H\x1b8a", &["", " a"]),
        ("private save and restore", "\x1b[2;2H\x1b[?1048h\x1b[H\x1b[?1048la", &["", " a"]),
        ("titles and other strings", "\x1b[H\x1b]2;vi\x07a\x1bPq\x1b\\b\x1b]8;;x\x1b\\c", &["abc"]),
        ("synchronised", "\x1b[?2026h\x1b[Hab", &["ab"]),
        ("alignment", "\x1b[2;2H\x1b#8", &["EEEEEEEEEE"; 3]),
        ("entered again", "\x1b[Ha\x1b[?1049hb", &["ab"]),
        ("C1", "\u{9b}1;2Ha\u{85}b", &[" a", "b"]),
    ];
    for (name, stream, expected) in table {
        let stream = format!("1\r\n2 \x1b[?1049h{stream}");
        let (screen, _) = fed(config(3, 10), stream.as_bytes());
        assert_eq!(rows(&screen), *expected, "{name}");
        let mut bytes = Screen::new(config(3, 10));
        for byte in stream.as_bytes() {
            bytes.feed(&[*byte], &mut Vec::new());
        }
        assert_eq!(rows(&bytes), *expected, "{name}, byte by byte");
        assert_eq!(text(&bytes).trim_end(), "1\n2", "{name}");
    }
}

#[test]
fn cells_say_how_they_are_shown() {
    let stream = "\x1b[?1049h\x1b[Hab\x1b[7mcd\x1b[0;1me\x1b[0;4m日\x1b[m\x1b[?25l";
    let (screen, _) = fed(config(3, 10), stream.as_bytes());
    let full = screen.full_screen().unwrap();
    let row = full.row(0);
    assert_eq!(row.len(), 10);
    let spans = |of: fn(&Cell) -> bool| -> String {
        row.iter().filter(|cell| of(cell)).map(|cell| cell.text.as_str()).collect()
    };
    assert_eq!(spans(|cell| cell.reverse), "cd");
    assert_eq!(spans(|cell| cell.bold), "e");
    assert_eq!(spans(|cell| cell.underline), "日");
    assert_eq!((row[5].text.as_str(), row[6].text.as_str(), row[7].text.as_str()), ("日", "", " "));
    assert_eq!(full.cursor(), Cursor { row: 0, column: 7, visible: false });
    assert!(full.row(3).is_empty() && !full.runs_over(99) && full.text(99).is_empty());
}

#[test]
fn titles_are_kept_and_bounded() {
    let title = |stream: &str| fed(config(3, 10), stream.as_bytes()).0.title().to_owned();
    assert_eq!(title("\x1b]0;one\x07\x1b]2;two\x1b\\\x1b]1;icon\x07"), "two");
    assert_eq!(title(&format!("\x1b]2;{}\x07", "x".repeat(5000))), "");
    assert_eq!(title("\x1b]2;a\x07\x1b]2;\x07"), "");
}

#[test]
fn the_cursor_s_line_is_joined() {
    let (screen, _) = fed(config(3, 4), b"\x1b[?1049h\x1b[HPassword: ");
    assert_eq!(screen.cursor_line(), "Password: ");
    assert_eq!(screen.cursor_position(), (2, 2));
}

#[test]
fn a_resize_meanwhile_keeps_the_saved_cursor() {
    let (mut screen, events) = fed(config(4, 20), b"one\r\ntwo\x1b[?1049h\x1b[2J\x1b[4;9Hdrawn");
    assert_eq!(events.len(), 1);
    for (rows, cols) in [(3, 10), (10, 40), (1, 2), (4, 20)] {
        screen.resize(rows, cols);
    }
    screen.feed(b"\x1b[?1049l!", &mut Vec::new());
    assert_eq!(text(&screen), "one\ntwo!");
}

#[test]
fn a_resize_keeps_what_is_drawn() {
    let (mut screen, _) = fed(config(4, 20), b"\x1b[?1049h\x1b[1;1Hab\x1b[2;1Hcd\x1b[1;3H");
    screen.resize(6, 30);
    assert_eq!(rows(&screen), ["ab", "cd"]);
    screen.resize(3, 10);
    assert_eq!(rows(&screen), ["ab", "cd"]);
    screen.feed(b"\x1b[9;9HX", &mut Vec::new());
    assert_eq!(rows(&screen), ["ab", "cd", "        X"]);
}

#[test]
fn marks_do_not_pile_up_without_end() {
    let mut screen = Screen::new(config(3, 10));
    screen.feed(b"\x1b[?1049h\x1b[Ha", &mut Vec::new());
    for _ in 0..1000 {
        screen.feed("\u{301}\r\x1b[C".as_bytes(), &mut Vec::new());
    }
    assert_eq!(rows(&screen), [format!("a{}", "\u{301}".repeat(8))]);
}
