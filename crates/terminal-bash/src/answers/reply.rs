//! What the terminal says of itself.
//!
//! Every reply is made of fixed text and of numbers that this crate holds itself: the cursor's
//! position, the size, an entry of a table. Nothing that was received is repeated, so a question
//! is no way to have anything typed that its author chose.

use std::io::Write as _;

use crate::screen::{Colour, Query};

/// Modes that are known by number; of others nothing is said.
const MODES: [u16; 20] = [
    1, 6, 7, 9, 12, 25, 47, 66, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1047, 1048, 1049, 2004,
    2026,
];

/// The sixteen named colours; the others are a cube and a ramp of greys.
const NAMED: [[u8; 3]; 16] = [
    [0, 0, 0],
    [205, 0, 0],
    [0, 205, 0],
    [205, 205, 0],
    [0, 0, 238],
    [205, 0, 205],
    [0, 205, 205],
    [229, 229, 229],
    [127, 127, 127],
    [255, 0, 0],
    [0, 255, 0],
    [255, 255, 0],
    [92, 92, 255],
    [255, 0, 255],
    [0, 255, 255],
    [255, 255, 255],
];
const FOREGROUND: [u8; 3] = NAMED[7];
const BACKGROUND: [u8; 3] = NAMED[0];

/// Appends the reply to `query`, if there is one.
pub(super) fn write(query: Query, out: &mut Vec<u8>) {
    let mut say = |text: std::fmt::Arguments<'_>| {
        // Writing to memory does not fail.
        out.write_fmt(text).ok();
    };
    match query {
        Query::Status => say(format_args!("\x1b[0n")),
        Query::CursorPosition { row, column, private } => {
            let mark = if private { "?" } else { "" };
            say(format_args!("\x1b[{mark}{row};{column}R"));
        }
        // A VT220 with colours.
        Query::PrimaryAttributes => say(format_args!("\x1b[?62;22c")),
        Query::SecondaryAttributes => say(format_args!("\x1b[>1;10;0c")),
        Query::Version => say(format_args!("\x1bP>|dsh({})\x1b\\", env!("CARGO_PKG_VERSION"))),
        Query::PrivateMode { mode, set } => {
            if let Some(known) = MODES.iter().find(|it| **it == mode) {
                let value = set.map_or(0, |set| if set { 1 } else { 2 });
                say(format_args!("\x1b[?{known};{value}$y"));
            }
        }
        Query::KeyboardFlags => say(format_args!("\x1b[?0u")),
        Query::WindowSize { rows, columns } => say(format_args!("\x1b[8;{rows};{columns}t")),
        Query::Colour { of, bell } => {
            let end = if bell { "\x07" } else { "\x1b\\" };
            let [red, green, blue] = shade(of);
            let rgb =
                format_args!("rgb:{red:02x}{red:02x}/{green:02x}{green:02x}/{blue:02x}{blue:02x}");
            match of {
                Colour::Palette(index) => say(format_args!("\x1b]4;{index};{rgb}{end}")),
                Colour::Foreground => say(format_args!("\x1b]10;{rgb}{end}")),
                Colour::Background => say(format_args!("\x1b]11;{rgb}{end}")),
                Colour::Cursor => say(format_args!("\x1b]12;{rgb}{end}")),
            }
        }
    }
}

fn shade(of: Colour) -> [u8; 3] {
    const FIRST_OF_CUBE: u8 = 16;
    const FIRST_OF_GREYS: u8 = 232;
    match of {
        Colour::Foreground | Colour::Cursor => FOREGROUND,
        Colour::Background => BACKGROUND,
        Colour::Palette(index @ FIRST_OF_GREYS..) => [8 + 10 * (index - FIRST_OF_GREYS); 3],
        Colour::Palette(index @ FIRST_OF_CUBE..) => {
            let at = index - FIRST_OF_CUBE;
            [at / 36, at / 6 % 6, at % 6].map(|step| if step == 0 { 0 } else { 55 + 40 * step })
        }
        Colour::Palette(index) => NAMED[usize::from(index)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(query: Query) -> String {
        let mut out = Vec::new();
        write(query, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn replies_are_the_ones_that_programs_know() {
        let colour = |of, bell| Query::Colour { of, bell };
        let position = |private| Query::CursorPosition { row: 3, column: 7, private };
        for (query, expected) in [
            (Query::Status, "\x1b[0n"),
            (position(false), "\x1b[3;7R"),
            (position(true), "\x1b[?3;7R"),
            (Query::PrimaryAttributes, "\x1b[?62;22c"),
            (Query::SecondaryAttributes, "\x1b[>1;10;0c"),
            (Query::Version, concat!("\x1bP>|dsh(", env!("CARGO_PKG_VERSION"), ")\x1b\\")),
            (Query::PrivateMode { mode: 2004, set: Some(true) }, "\x1b[?2004;1$y"),
            (Query::PrivateMode { mode: 7, set: Some(false) }, "\x1b[?7;2$y"),
            (Query::PrivateMode { mode: 2026, set: None }, "\x1b[?2026;0$y"),
            (Query::PrivateMode { mode: 31_337, set: None }, ""),
            (Query::KeyboardFlags, "\x1b[?0u"),
            (Query::WindowSize { rows: 40, columns: 160 }, "\x1b[8;40;160t"),
            (colour(Colour::Foreground, true), "\x1b]10;rgb:e5e5/e5e5/e5e5\x07"),
            (colour(Colour::Background, false), "\x1b]11;rgb:0000/0000/0000\x1b\\"),
            (colour(Colour::Cursor, false), "\x1b]12;rgb:e5e5/e5e5/e5e5\x1b\\"),
            (colour(Colour::Palette(9), false), "\x1b]4;9;rgb:ffff/0000/0000\x1b\\"),
            (colour(Colour::Palette(16), false), "\x1b]4;16;rgb:0000/0000/0000\x1b\\"),
            (colour(Colour::Palette(231), false), "\x1b]4;231;rgb:ffff/ffff/ffff\x1b\\"),
            (colour(Colour::Palette(255), true), "\x1b]4;255;rgb:eeee/eeee/eeee\x07"),
        ] {
            assert_eq!(reply(query), expected, "{query:?}");
        }
    }

    #[test]
    fn no_reply_holds_a_character_that_submits_or_signals() {
        for index in 0..=255 {
            let text = reply(Query::Colour { of: Colour::Palette(index), bell: false });
            assert!(!text.contains(['\r', '\n', '\u{3}', '\u{4}', '\u{1a}', '\u{1c}']), "{text:?}");
        }
    }
}
