//! Recorded output of real programs: bash's line editor, a pager, programs that redraw their lines,
//! full-screen programs.
//!
//! `NAME-COLUMNS.pty` is what the program wrote to its terminal, `NAME-COLUMNS.txt` the text a
//! person saw in the end. `tmux.rs` and `xterm.rs` compare both with other terminals.

use super::super::{Position, Screen};
use super::{config, text};

/// What a program wrote, and the text it showed.
pub(super) struct Recording {
    pub(super) name: &'static str,
    pub(super) rows: u16,
    pub(super) columns: u16,
    pub(super) bytes: &'static [u8],
    text: &'static str,
}

macro_rules! recordings {
    ($($name:literal, $rows:literal, $columns:literal;)*) => {
        &[$(Recording {
            name: $name,
            rows: $rows,
            columns: $columns,
            bytes: include_bytes!(concat!("recorded/", $name, "-", $columns, ".pty")),
            text: include_str!(concat!("recorded/", $name, "-", $columns, ".txt")),
        }),*]
    };
}

pub(super) const RECORDINGS: &[Recording] = recordings![
    "typed", 40, 160;
    "typed", 24, 80;
    "edited", 40, 160;
    "edited", 24, 80;
    "wide", 40, 160;
    "wide", 24, 80;
    "fuzzed", 40, 160;
    "completed", 24, 80;
    "bars", 24, 80;
    "pager", 24, 80;
    "region", 24, 80;
    "git", 24, 80;
    "cargo", 24, 80;
    "apt", 24, 80;
    "pip", 24, 80;
    "npm", 24, 80;
    "layers", 24, 80;
    "man", 24, 80;
    "htop", 24, 80;
    "vim", 24, 80;
];

impl Recording {
    /// Several moments at which the recording shows a full screen: the bytes up to each of them, which
    /// end between two characters.
    pub(super) fn full_screens(&self) -> Vec<&'static [u8]> {
        const LEAVE: &[u8] = b"\x1b[?1049l";
        let left = self.bytes.windows(LEAVE.len()).rposition(|it| it == LEAVE).unwrap_or(0);
        let part = |eighths| {
            let before = &self.bytes[..left * eighths / 8];
            &before[..before.iter().rposition(|it| *it == 0x1b).unwrap_or(0)]
        };
        let shows = |bytes: &&[u8]| {
            let mut screen = Screen::new(config(self.rows, self.columns));
            screen.feed(bytes, &mut Vec::new());
            screen.alternate()
        };
        (1..=8).map(part).filter(shows).collect()
    }
}

/// Lines without the blanks at their ends, and without the empty ones at the end.
pub(super) fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.split('\n').map(|line| line.trim_end().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

#[test]
fn recordings_show_what_a_person_saw() {
    for Recording { name, rows, columns, bytes, text: expected } in RECORDINGS {
        for read in [1, 7, 4096] {
            let mut screen = Screen::new(config(*rows, *columns));
            for part in bytes.chunks(read) {
                screen.feed(part, &mut Vec::new());
            }
            assert_eq!(text(&screen), *expected, "{name}, {columns} columns, {read} bytes a read");
        }
    }
}

/// While a long command is edited, its line is always the last one and holds its beginning.
#[test]
fn an_edited_line_stays_one_line() {
    let bytes = include_bytes!("recorded/typed-80.pty");
    let mut screen = Screen::new(config(24, 80));
    let start = Position::default();
    for byte in bytes {
        screen.feed(&[*byte], &mut Vec::new());
        let shown = screen.since(&start, usize::MAX).text;
        assert!("dsh> echo '".starts_with(&shown) || shown.starts_with("dsh> echo '"), "{shown}");
    }
}
