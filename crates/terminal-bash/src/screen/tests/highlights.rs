//! What is shown in reverse, on both screens alike: the grid of the alternate one was not written here.

use terminal::Highlight;

use super::super::Screen;
use super::{config, fed};

fn highlights(screen: &Screen) -> Vec<(u16, u16, String)> {
    let shown = screen.shown().highlights.into_iter();
    shown.map(|Highlight { row, column, text }| (row, column, text)).collect()
}

#[test]
fn what_is_selected_is_told_on_both_screens() {
    type Spans = &'static [(u16, u16, &'static str)];
    let table: &[(&str, &str, Spans)] = &[
        ("a menu", "one\r\n\x1b[7mtwo  \x1b[m\r\nthree", &[(1, 0, "two  ")]),
        ("a run of text", "\x1b[7mab\x1b[27mcd\x1b[7mef", &[(0, 0, "ab"), (0, 4, "ef")]),
        ("two writes of one run", "\x1b[7mab\x1b[1mcd\x1b[22me", &[(0, 0, "abcde")]),
        ("among colours", "\x1b[1;31;7;44mab\x1b[39mc\x1b[0md", &[(0, 0, "abc")]),
        ("a colour's number", "\x1b[38;5;7mab", &[]),
        ("over a row's end", "\x1b[7m12345678901", &[(0, 0, "1234567890"), (1, 0, "1")]),
        ("moved", "\x1b[7mone\x1b[m\r\ntwo\x1b[H\x1b[mone\r\n\x1b[7mtwo", &[(1, 0, "two")]),
        ("written over in part", "\x1b[7mabcdef\x1b[m\x1b[1;3Hxy", &[(0, 0, "ab"), (0, 4, "ef")]),
        ("reversed in part", "abcdef\x1b[1;3H\x1b[7mxy", &[(0, 2, "xy")]),
        ("erased behind", "\x1b[7mabcdef\x1b[1;3H\x1b[m\x1b[K", &[(0, 0, "ab")]),
        ("erased before", "\x1b[7mabcdef\x1b[1;3H\x1b[m\x1b[1K", &[(0, 3, "def")]),
        ("erased between", "\x1b[7mabcdef\x1b[1;3H\x1b[m\x1b[2X", &[(0, 0, "ab"), (0, 4, "ef")]),
        ("erased in reverse", "\x1b[7mabc\x1b[K\x1b[2;1H\x1b[2K", &[(0, 0, "abc")]),
        ("an erased line", "\x1b[7mabc\x1b[2K", &[]),
        ("an erased window", "\x1b[7mabc\x1b[2Jd", &[(0, 3, "d")]),
        ("inserted", "\x1b[7mabcdef\x1b[1;3H\x1b[m\x1b[2@", &[(0, 0, "ab"), (0, 4, "cdef")]),
        ("pushed out", "abc\x1b[7mdefghij\x1b[1;3H\x1b[m\x1b[5@", &[(0, 8, "de")]),
        ("inserted as text", "\x1b[7mabcd\x1b[1;3H\x1b[m\x1b[4hx", &[(0, 0, "ab"), (0, 3, "cd")]),
        ("deleted", "ab\x1b[7mcdef\x1b[mgh\x1b[1;2H\x1b[3P", &[(0, 1, "ef")]),
        ("joined by deletion", "\x1b[7mab\x1b[mcd\x1b[7mef\x1b[1;3H\x1b[2P", &[(0, 0, "abef")]),
        ("wide", "a\x1b[7m日本\x1b[mb", &[(0, 1, "日本")]),
        ("combining", "\x1b[7me\u{301}f\x1b[mg", &[(0, 0, "e\u{301}f")]),
        ("repeated", "\x1b[7ma\x1b[3b\x1b[mb", &[(0, 0, "aaaa")]),
        ("drawn with lines", "\x1b(0\x1b[7mqq\x1b(B\x1b[mq", &[(0, 0, "──")]),
        ("scrolled", "\x1b[4;1H\x1b[7mabc\x1b[m\r\n\n", &[(1, 0, "abc")]),
        ("a row put in", "\x1b[7mabc\x1b[H\x1b[L", &[(1, 0, "abc")]),
        ("a row taken out", "x\r\n\x1b[7mabc\x1b[H\x1b[M", &[(0, 0, "abc")]),
        ("saved and restored", "\x1b[7m\x1b7\x1b[m\x1b8ab", &[(0, 0, "ab")]),
    ];
    for (name, stream, expected) in table {
        let expected: Vec<_> = expected.iter().map(|it| (it.0, it.1, it.2.to_owned())).collect();
        for begin in ["", "\x1b[?1049h"] {
            let stream = format!("{begin}\x1b[H{stream}");
            let (screen, _) = fed(config(4, 10), stream.as_bytes());
            assert_eq!(highlights(&screen), expected, "{name}, {begin:?}");
        }
    }
}

#[test]
fn what_is_selected_is_no_more_when_it_has_left_the_window() {
    let (screen, _) = fed(config(3, 10), b"\x1b[7mone\x1b[m\r\n2\r\n3\r\n4");
    assert_eq!(highlights(&screen), []);
    let (screen, _) = fed(config(3, 10), b"\x1b[7mone\x1b[m\x1b[2J\x1b[Htwo");
    assert_eq!(highlights(&screen), []);
}

#[test]
fn a_soft_reset_ends_it() {
    let (screen, _) = fed(config(3, 10), b"\x1b[7ma\x1b[!pb");
    assert_eq!(highlights(&screen), [(0, 0, "a".to_owned())]);
}

#[test]
fn a_change_of_the_size_keeps_what_is_selected() {
    let (mut screen, _) = fed(config(4, 10), b"first\r\n123456\x1b[7m7890ab\x1b[mc\r\nlast");
    assert_eq!(highlights(&screen), [(1, 6, "7890".to_owned()), (2, 0, "ab".to_owned())]);
    screen.resize(4, 8);
    assert_eq!(highlights(&screen), [(1, 6, "78".to_owned()), (2, 0, "90ab".to_owned())]);
    screen.resize(4, 20);
    assert_eq!(highlights(&screen), [(1, 6, "7890ab".to_owned())]);
}
