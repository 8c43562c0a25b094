//! One row of the window: text addressed by columns.
//!
//! A row stores the UTF-8 text itself, not cells: appending is a copy, and a row costs what its
//! text costs. A cell that was never written, or was erased, is a NUL byte (NUL is a control
//! character, so it can't be text). Of attributes it knows what is shown in reverse, which few rows
//! have anything of.
//!
//! Guarantees: a row never ends in such a gap; its text is valid UTF-8; marks that combine with a
//! cell are bounded.

use std::ops::Range;

use unicode_width::UnicodeWidthChar;

use super::reverse::Reversed;

/// The cell nothing was written to.
const GAP: u8 = 0;

/// One row of the window.
#[derive(Debug, Default, Clone)]
pub(super) struct Row {
    text: Vec<u8>,
    /// Columns that `text` covers.
    cells: usize,
    /// Some character is not one byte in one column, so that columns are found by walking.
    uneven: bool,
    /// The terminal went on in the next row because this one was full: both are one logical line.
    pub(super) wrapped: bool,
    /// None for nothing.
    reversed: Option<Box<Reversed>>,
}

/// Columns of a character: 0 for marks that combine with the one before.
#[inline]
pub(super) fn width(c: char) -> usize {
    match c {
        // What most text is made of, without a look at the tables: Latin, Greek and Cyrillic,
        // punctuation, box drawing; kana, Chinese characters, Hangul.
        '\0'
        | ' '..='~'
        | '\u{ae}'..'\u{300}'
        | '\u{370}'..'\u{483}'
        | '\u{2010}'..'\u{2028}'
        | '\u{2500}'..'\u{25a0}' => 1,
        '\u{3041}'..'\u{3097}'
        | '\u{30a0}'..'\u{3100}'
        | '\u{4e00}'..'\u{a000}'
        | '\u{ac00}'..'\u{d7a4}' => 2,
        _ => looked_up(c),
    }
}

#[cold]
fn looked_up(c: char) -> usize {
    c.width().unwrap_or(0).min(2)
}

impl Row {
    /// Forgets everything but the allocation.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.cells = 0;
        self.uneven = false;
        self.wrapped = false;
        self.reversed = None;
    }

    /// Nothing is written in it.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Nothing but blanks is to be seen in it, and it does not run over.
    pub(super) fn is_blank(&self) -> bool {
        !self.wrapped && self.text.iter().all(|byte| matches!(*byte, GAP | b' '))
    }

    /// Columns up to the last written one.
    pub(super) fn cells(&self) -> usize {
        self.cells
    }

    /// Bytes of its text.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// The text with gaps as NUL bytes.
    pub(super) fn raw(&self) -> &[u8] {
        &self.text
    }

    /// A row made of `raw` text.
    pub(super) fn from_raw(raw: &[u8], cells: usize, wrapped: bool) -> Self {
        Self { text: raw.to_vec(), cells, uneven: !raw.is_ascii(), wrapped, reversed: None }
    }

    /// Appends the text, gaps as spaces.
    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        append_text(&self.text, out);
    }

    /// Appends the text of the columns before `column`.
    pub(super) fn append_before(&self, column: usize, out: &mut Vec<u8>) {
        let end = self.boundary(column).0;
        append_text(&self.text[..end], out);
    }

    /// Says of columns that were written whether they are shown in reverse.
    #[inline]
    pub(super) fn mark(&mut self, written: Range<usize>, reverse: bool) {
        if reverse || self.reversed.is_some() {
            self.change_reversed(|it| it.write(written, reverse));
        }
    }

    /// The columns that are shown in reverse, from the left.
    pub(super) fn reversed(&self) -> impl Iterator<Item = Range<usize>> {
        self.reversed.iter().flat_map(|it| it.spans())
    }

    /// Appends the text of `columns`.
    pub(super) fn append_columns(&self, columns: Range<usize>, out: &mut Vec<u8>) {
        let (from, to) = (self.boundary(columns.start).0, self.boundary(columns.end).0);
        append_text(&self.text[from..to], out);
    }

    /// Writes printable ASCII at `column`.
    pub(super) fn write_ascii(&mut self, column: usize, run: &[u8]) {
        if column >= self.cells {
            self.pad(column);
            self.text.extend_from_slice(run);
            self.cells += run.len();
        } else if self.uneven {
            self.replace(column, run.len(), run);
        } else {
            let (over, beyond) = run.split_at(run.len().min(self.cells - column));
            self.text[column..column + over.len()].copy_from_slice(over);
            self.text.extend_from_slice(beyond);
            self.cells += beyond.len();
        }
    }

    /// Writes `text` of `columns` columns at `column`, which is not before the end of what is
    /// written.
    pub(super) fn append(&mut self, column: usize, text: &str, columns: usize) {
        self.pad(column);
        self.text.extend_from_slice(text.as_bytes());
        self.cells += columns;
        self.uneven |= !text.is_ascii();
    }

    /// Writes one character of `columns` ≥ 1 columns at `column`.
    pub(super) fn write_char(&mut self, column: usize, c: char, columns: usize) {
        let mut buffer = [0; 4];
        let bytes = c.encode_utf8(&mut buffer).as_bytes();
        if column >= self.cells {
            self.pad(column);
            self.text.extend_from_slice(bytes);
            self.cells += columns;
        } else {
            self.replace(column, columns, bytes);
        }
        self.uneven |= !c.is_ascii();
    }

    /// Adds a combining mark to the cell that ends at `column`; without such a cell the mark is
    /// lost.
    pub(super) fn combine(&mut self, column: usize, c: char) {
        // Marks can be piled without end on one cell: a row holds at most so many bytes.
        if column == 0 || column > self.cells || self.text.len() >= 16 * self.cells + 64 {
            return;
        }
        let mut buffer = [0; 4];
        let bytes = c.encode_utf8(&mut buffer).as_bytes();
        if column == self.cells {
            self.text.extend_from_slice(bytes);
        } else {
            let at = self.boundary(column).0;
            self.text.splice(at..at, bytes.iter().copied());
        }
        self.uneven = true;
    }

    /// Erases the columns `from..to`.
    pub(super) fn erase(&mut self, from: usize, to: usize) {
        if from >= self.cells || from >= to {
            return;
        }
        self.mark(from..to, false);
        if to >= self.cells {
            let at = self.split(from);
            self.truncate(at, from);
        } else {
            let begin = self.split(from);
            let end = self.split(to);
            self.text.splice(begin..end, std::iter::repeat_n(GAP, to - from));
        }
    }

    /// Inserts `count` gaps at `column`; what moves beyond `limit` columns is lost.
    pub(super) fn insert_gaps(&mut self, column: usize, count: usize, limit: usize) {
        if column >= self.cells {
            return;
        }
        let count = count.min(limit - column.min(limit));
        if self.reversed.is_some() {
            self.change_reversed(|it| it.insert(column, count, limit));
        }
        let at = self.split(column);
        self.text.splice(at..at, std::iter::repeat_n(GAP, count));
        self.cells += count;
        if self.cells > limit {
            let at = self.split(limit);
            self.truncate(at, limit);
        }
    }

    /// Removes `count` columns at `column`; the rest moves left.
    pub(super) fn delete(&mut self, column: usize, count: usize) {
        if column >= self.cells {
            return;
        }
        let end = self.cells.min(column.saturating_add(count));
        if self.reversed.is_some() {
            self.change_reversed(|it| it.delete(column..end));
        }
        let from = self.split(column);
        let to = self.split(end);
        self.text.drain(from..to);
        self.cells -= end - column;
        self.trim();
    }

    #[cold]
    fn change_reversed(&mut self, change: impl FnOnce(&mut Reversed)) {
        let mut reversed = self.reversed.take().unwrap_or_default();
        change(&mut reversed);
        self.reversed = (!reversed.is_empty()).then_some(reversed);
    }

    fn pad(&mut self, column: usize) {
        self.text.resize(self.text.len() + (column - self.cells), GAP);
        self.cells = column;
    }

    fn replace(&mut self, column: usize, columns: usize, with: &[u8]) {
        let from = self.split(column);
        let end = column + columns;
        let to = if end >= self.cells { self.text.len() } else { self.split(end) };
        self.text.splice(from..to, with.iter().copied());
        self.cells = self.cells.max(end);
    }

    fn truncate(&mut self, at: usize, cells: usize) {
        self.text.truncate(at);
        self.cells = cells;
        self.trim();
    }

    fn trim(&mut self) {
        while self.text.last() == Some(&GAP) {
            self.text.pop();
            self.cells -= 1;
        }
        self.uneven &= !self.text.is_empty();
    }

    /// Byte offset of `column`. A wide character across it becomes two gaps, as on a terminal.
    fn split(&mut self, column: usize) -> usize {
        let (at, inside) = self.boundary(column);
        match inside {
            None => at,
            Some(end) => {
                self.text.splice(at..end, [GAP, GAP]);
                at + 1
            }
        }
    }

    /// Byte offset of `column`; when a wide character lies across it, the offset of that character
    /// and its end.
    fn boundary(&self, column: usize) -> (usize, Option<usize>) {
        if !self.uneven {
            return (column.min(self.text.len()), None);
        }
        let text = std::str::from_utf8(&self.text).unwrap_or_default();
        let mut cells =
            text.char_indices().map(|(at, c)| (at, width(c))).filter(|(_, w)| *w > 0).peekable();
        let mut reached = 0;
        while let Some((at, columns)) = cells.next() {
            if reached >= column {
                return (at, None);
            }
            reached += columns;
            if reached > column {
                return (at, Some(cells.peek().map_or(self.text.len(), |(next, _)| *next)));
            }
        }
        (self.text.len(), None)
    }
}

/// Appends `raw` with gaps as spaces.
fn append_text(raw: &[u8], out: &mut Vec<u8>) {
    let from = out.len();
    out.extend_from_slice(raw);
    if memchr::memchr(GAP, raw).is_some() {
        for byte in &mut out[from..] {
            if *byte == GAP {
                *byte = b' ';
            }
        }
    }
}
