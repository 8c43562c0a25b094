//! The grid as bytes that paint it on another terminal of its size, from a fresh one.

use super::{Grid, Saved};
use crate::screen::{
    picture::move_to,
    row::{self, Row},
};

impl Grid {
    /// Paints the newest of what has scrolled out of the window, at most so many `lines` and `bytes`, and
    /// lets it scroll out.
    pub(in crate::screen) fn paint_history(&self, lines: u64, bytes: u64, out: &mut Vec<u8>) {
        let history = &self.history;
        let first = history.line_start(history.closed().saturating_sub(lines));
        let from = first.max(history.head()).max(history.tail().saturating_sub(bytes));
        let mut text = Vec::new();
        history.copy(from, history.tail(), &mut text);
        // Bounds may have cut a character.
        let text = String::from_utf8_lossy(&text);
        let text = text.trim_start_matches(char::REPLACEMENT_CHARACTER);
        let text = text.strip_suffix('\n').unwrap_or(text);
        if text.is_empty() {
            return;
        }
        let mut painted = 0;
        for line in text.split('\n') {
            let mut column = 0;
            let mut buffer = [0; 4];
            for c in line.chars().filter(|it| !it.is_control()) {
                let width = row::width(c);
                if column + width > self.columns {
                    out.extend(b"\r\n");
                    painted += 1;
                    column = 0;
                }
                column += width;
                out.extend(c.encode_utf8(&mut buffer).as_bytes());
            }
            out.extend(b"\r\n");
            painted += 1;
        }
        move_to(self.rows - 1, 0, out);
        out.extend(std::iter::repeat_n(b'\n', painted.min(self.rows - 1)));
    }

    /// Paints the window, and sets what decides where what follows is drawn. `saved_pen` and `pen` are
    /// the sequences for the pen that was saved with the cursor, and for the one that is set.
    pub(in crate::screen) fn paint(&self, saved_pen: &str, pen: &str, out: &mut Vec<u8>) {
        for (at, row) in self.lines.iter().enumerate().filter(|(_, row)| !row.is_empty()) {
            move_to(at, 0, out);
            paint_columns(row, 0, row.cells(), out);
        }
        if let Some(stops) = &self.stops {
            out.extend(b"\x1b[3g");
            for column in (0..self.columns).filter(|at| stops.get(*at).copied().unwrap_or(false)) {
                move_to(0, column, out);
                out.extend(b"\x1bH");
            }
        }
        let Saved { row, column, origin, graphics, shift } = self.saved;
        if origin {
            // Without margins every row is counted from the top.
            out.extend(b"\x1b[?6h");
        }
        self.park(row, column, 0, out);
        charsets(graphics, shift, out);
        out.extend(saved_pen.as_bytes());
        out.extend(b"\x1b7\x1b[0m\x1b[?6l");
        charsets([false; 2], 0, out);

        out.extend(format!("\x1b[{};{}r", self.top + 1, self.bottom + 1).into_bytes());
        let mut top = 0;
        if self.modes.origin {
            out.extend(b"\x1b[?6h");
            top = self.top;
        }
        self.park(self.row, self.column, top, out);
        charsets(self.graphics, self.shift, out);
        if self.modes.insert {
            out.extend(b"\x1b[4h");
        }
        if !self.modes.autowrap {
            out.extend(b"\x1b[?7l");
        }
        out.extend(pen.as_bytes());
    }

    /// The saved cursor is where the cursor is.
    pub(in crate::screen) fn is_where_saved(&self) -> bool {
        (self.saved.row, self.saved.column) == (self.row, self.column)
    }

    /// Puts the cursor to a row, which is counted from `top`, and a column; behind the last one by writing
    /// that again.
    fn park(&self, row: usize, column: usize, top: usize, out: &mut Vec<u8>) {
        // One above the top cannot be reached.
        let from_top = row.saturating_sub(top);
        if column < self.columns || row < top {
            return move_to(from_top, column, out);
        }
        let last = self.columns - 1;
        let mut text = Vec::new();
        let line = self.lines.get(row).filter(|it| it.cells() == self.columns);
        if let Some(line) = line {
            line.append_columns(last..self.columns, &mut text);
        }
        let first = String::from_utf8_lossy(&text).chars().next();
        let wide = first.is_some_and(|it| row::width(it) == 2);
        let column = last - usize::from(wide);
        move_to(from_top, column, out);
        match line {
            Some(line) => paint_columns(line, column, self.columns, out),
            None => out.push(b' '),
        }
    }
}

/// Writes columns of a row, in reverse what is.
fn paint_columns(row: &Row, from: usize, to: usize, out: &mut Vec<u8>) {
    let mut at = from;
    for span in row.reversed() {
        let span = span.start.max(at)..span.end.min(to);
        if span.is_empty() {
            continue;
        }
        row.append_columns(at..span.start, out);
        out.extend(b"\x1b[7m");
        row.append_columns(span.clone(), out);
        out.extend(b"\x1b[27m");
        at = span.end;
    }
    row.append_columns(at..to, out);
}

/// Which of G0 and G1 is the line drawing set, and which of them is used.
fn charsets(graphics: [bool; 2], shift: usize, out: &mut Vec<u8>) {
    for (slot, drawing) in [b'(', b')'].into_iter().zip(graphics) {
        out.extend([0x1b, slot, if drawing { b'0' } else { b'B' }]);
    }
    out.push(if shift == 1 { 0x0e } else { 0x0f });
}
