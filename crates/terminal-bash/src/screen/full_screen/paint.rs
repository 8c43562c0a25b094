//! Alacritty's terminal as bytes that paint it on another one.

use alacritty_terminal::{
    event::EventListener,
    grid::{Cursor, Dimensions as _},
    index::{Column, Line},
    term::{
        Term, TermMode,
        cell::{Cell, Flags},
    },
    vte::ansi::{CharsetIndex, Color, NamedColor, StandardCharset},
};

use super::alacritty::written;
use crate::screen::picture::move_to;

/// Attributes and the codes that set them.
const ATTRIBUTES: [(Flags, u8); 7] = [
    (Flags::BOLD, 1),
    (Flags::DIM, 2),
    (Flags::ITALIC, 3),
    (Flags::ALL_UNDERLINES, 4),
    (Flags::INVERSE, 7),
    (Flags::HIDDEN, 8),
    (Flags::STRIKEOUT, 9),
];

/// See [`super::FullScreen::paint`].
pub(super) fn paint<T: EventListener>(
    term: &Term<T>,
    margins: Option<(u16, u16)>,
    out: &mut Vec<u8>,
) {
    out.extend(b"\x1b[0m\x1b[r\x1b[?6l\x1b[4l\x1b[?7h\x1b(B\x1b)B\x0f\x1b[H\x1b[2J");
    for row in 0..term.screen_lines() {
        paint_row(term, row, out);
    }
    let grid = term.grid();
    if grid.saved_cursor != Cursor::default() {
        put(term, &grid.saved_cursor, 0, out);
        out.extend(b"\x1b7\x1b(B\x1b)B");
    }
    let mode = term.mode();
    let mut top = 0;
    if let Some((first, last)) = margins {
        out.extend(format!("\x1b[{first};{last}r").into_bytes());
        if mode.contains(TermMode::ORIGIN) {
            top = usize::from(first - 1);
        }
    }
    if mode.contains(TermMode::ORIGIN) {
        out.extend(b"\x1b[?6h");
    }
    put(term, &grid.cursor, top, out);
    if mode.contains(TermMode::INSERT) {
        out.extend(b"\x1b[4h");
    }
    if !mode.contains(TermMode::LINE_WRAP) {
        out.extend(b"\x1b[?7l");
    }
}

fn paint_row<T>(term: &Term<T>, row: usize, out: &mut Vec<u8>) {
    let cells = cells(term, row);
    let Some(last) = cells.iter().rposition(|cell| !is_blank(cell)) else { return };
    move_to(row, 0, out);
    let mut pen = String::new();
    for cell in &cells[..=last] {
        paint_cell(cell, &mut pen, out);
    }
    out.extend(b"\x1b[0m");
}

/// Writes a cell in its colours, unless `pen` says that they are set.
fn paint_cell(cell: &Cell, pen: &mut String, out: &mut Vec<u8>) {
    let sequence = pen_of(cell);
    if *pen != sequence {
        out.extend(sequence.as_bytes());
        *pen = sequence;
    }
    let mut buffer = [0; 4];
    for c in written(cell) {
        out.extend(c.encode_utf8(&mut buffer).as_bytes());
    }
}

/// Puts the cursor there, with its pen and character sets; rows are counted from `top`.
fn put<T>(term: &Term<T>, cursor: &Cursor<Cell>, top: usize, out: &mut Vec<u8>) {
    let row = usize::try_from(cursor.point.line.0).unwrap_or(0);
    let mut column = cursor.point.column.0;
    let cells = cells(term, row);
    let behind = cursor.input_needs_wrap && column + 1 == cells.len();
    if behind {
        // What was written last is written again.
        let spacer = cells.last().is_some_and(|it| it.flags.contains(Flags::WIDE_CHAR_SPACER));
        column -= usize::from(spacer && column > 0);
    }
    move_to(row.saturating_sub(top), column, out);
    if behind && let Some(cell) = cells.get(column) {
        paint_cell(cell, &mut String::new(), out);
    }
    for (index, slot) in [(CharsetIndex::G0, b'('), (CharsetIndex::G1, b')')] {
        if cursor.charsets[index] == StandardCharset::SpecialCharacterAndLineDrawing {
            out.extend([0x1b, slot, b'0']);
        }
    }
    out.extend(pen_of(&cursor.template).into_bytes());
}

fn cells<T>(term: &Term<T>, row: usize) -> Vec<&Cell> {
    let Ok(line) = i32::try_from(row) else { return Vec::new() };
    let cells = &term.grid()[Line(line)];
    (0..term.columns()).map(|column| &cells[Column(column)]).collect()
}

/// Nothing is to be seen in it.
fn is_blank(cell: &Cell) -> bool {
    let plain = cell.bg == Color::Named(NamedColor::Background)
        && !ATTRIBUTES.iter().any(|(flag, _)| cell.flags.intersects(*flag));
    plain && written(cell).all(|it| it == ' ')
}

/// The sequence that sets the colours and attributes of a cell.
fn pen_of(cell: &Cell) -> String {
    let attributes = ATTRIBUTES.iter().filter(|(flag, _)| cell.flags.intersects(*flag));
    let mut codes: Vec<String> = std::iter::once("0".to_owned())
        .chain(attributes.map(|(_, code)| code.to_string()))
        .collect();
    codes.extend(colour(cell.fg, 0));
    codes.extend(colour(cell.bg, 10));
    format!("\x1b[{}m", codes.join(";"))
}

/// The codes of a colour; for a background each is greater by `more`.
fn colour(colour: Color, more: u8) -> Option<String> {
    match colour {
        Color::Named(name) => match u8::try_from(name as usize) {
            Ok(bright @ 8..=15) => Some((90 - 8 + bright + more).to_string()),
            Ok(plain @ 0..=7) => Some((30 + plain + more).to_string()),
            // The default one.
            _ => None,
        },
        Color::Indexed(index) => Some(format!("{};5;{index}", 38 + more)),
        Color::Spec(rgb) => Some(format!("{};2;{};{};{}", 38 + more, rgb.r, rgb.g, rgb.b)),
    }
}
