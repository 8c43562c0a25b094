//! Recorded output of real programs: bash's line editor, a pager, a program that redraws its lines.
//!
//! `NAME-COLUMNS.pty` is what the program wrote to its terminal, `NAME-COLUMNS.txt` the text a
//! person saw in the end. Another terminal's answer (tmux, `capture-pane -J`) was the same for each
//! when it was recorded, but for the end of `wide-80`, where it joined the output to the command.

use super::super::{Position, Screen};
use super::{config, text};

macro_rules! recordings {
    ($($name:literal, $rows:literal, $columns:literal;)*) => {
        [$((
            $name,
            config($rows, $columns),
            include_bytes!(concat!("recorded/", $name, "-", $columns, ".pty")).as_slice(),
            include_str!(concat!("recorded/", $name, "-", $columns, ".txt")),
        )),*]
    };
}

#[test]
fn recordings_show_what_a_person_saw() {
    let recordings = recordings![
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
    ];
    for (name, config, bytes, expected) in recordings {
        for read in [1, 7, 4096] {
            let mut screen = Screen::new(config);
            for part in bytes.chunks(read) {
                screen.feed(part, &mut Vec::new());
            }
            assert_eq!(
                text(&screen),
                expected,
                "{name}, {} columns, {read} bytes a read",
                config.cols
            );
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
