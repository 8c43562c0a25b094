//! The window: rows, cursor, margins, and what terminal operations do to them.
//!
//! Rows are joined to logical lines by their `wrapped` flag: it is set when text ran over the right
//! margin, and reset when the last column is written again or erased, or a line feed goes on to an
//! empty row. A line editor whose text fills a row exactly leaves a blank in the next one, only to
//! see the cursor there; that blank is no continuation when the editor turns back up and ends the
//! line from above ([`Grid::up`], [`Grid::index`]), or ends it in front of the blank
//! ([`Grid::end_edit`]). A line feed onto a blank means nothing by itself: that is how the editor
//! goes down to a blank that was typed. A row that leaves the window at the top goes to the [`History`].
//!
//! Choices where terminals differ: clearing the window (`CSI 2 J`, or `CSI H` and `CSI J`) moves
//! its text to the history, so that nothing shown is lost; erasing to the end of a line right after
//! its last column was written erases nothing, so that coloured output that ends at the margin is
//! kept whole; the scrollback is never cleared.
//!
//! Guarantees: the row of the cursor exists; every operation takes time bounded by the size of the
//! window.

mod bulk;
mod edit;
mod paint;
mod repair;
mod resize;

pub(super) use edit::Part;

use super::history::{Chunk, History};
use super::row::{self, Row};
use std::collections::VecDeque;

const TAB: usize = 8;

/// What `DECSC` keeps.
#[derive(Debug, Clone, Copy, Default)]
struct Saved {
    row: usize,
    column: usize,
    origin: bool,
    graphics: [bool; 2],
    shift: usize,
}

/// Modes that a program sets and resets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Modes {
    /// Text runs over the right margin into the next row.
    pub(super) autowrap: bool,
    /// Writing moves what is there to the right.
    pub(super) insert: bool,
    /// Rows are counted from the top margin, and moves stay inside the margins.
    pub(super) origin: bool,
}

impl Default for Modes {
    fn default() -> Self {
        Self { autowrap: true, insert: false, origin: false }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Grid {
    history: History,
    lines: VecDeque<Row>,
    rows: usize,
    columns: usize,
    row: usize,
    /// Equals `columns` after the last column was written: the next character goes to the next row.
    column: usize,
    /// Scroll region, inclusive.
    top: usize,
    bottom: usize,
    saved: Saved,
    pub(super) modes: Modes,
    /// What is written is shown in reverse.
    pub(super) reverse: bool,
    /// Which of G0 and G1 is the line drawing set.
    graphics: [bool; 2],
    shift: usize,
    last: char,
    /// Tab stops by column, once a program has set its own.
    stops: Option<Vec<bool>>,
    /// The cursor was put into the upper left corner, and did not get there by smaller moves.
    homed: bool,
    /// The row into which the cursor went up from the beginning of a row of nothing but blanks, as
    /// long as it stays at the beginning.
    turned: Option<usize>,
}

impl Grid {
    /// An empty window whose history keeps at most `max_lines` and `max_bytes`.
    pub(super) fn new(rows: u16, columns: u16, max_lines: usize, max_bytes: usize) -> Self {
        let (rows, columns) = (usize::from(rows), usize::from(columns));
        Self {
            history: History::new(max_lines, max_bytes),
            lines: VecDeque::from([Row::default()]),
            rows,
            columns,
            row: 0,
            column: 0,
            top: 0,
            bottom: rows - 1,
            saved: Saved::default(),
            modes: Modes::default(),
            reverse: false,
            graphics: [false; 2],
            shift: 0,
            last: ' ',
            stops: None,
            homed: false,
            turned: None,
        }
    }

    pub(super) fn history(&self) -> &History {
        &self.history
    }

    pub(super) fn keep_dropped(&mut self) {
        self.history.keep_dropped();
    }

    pub(super) fn take_dropped(&mut self) -> Vec<Chunk> {
        self.history.take_dropped()
    }

    /// The rows that count: up to the cursor or the last one with text, whichever is lower.
    pub(super) fn text_rows(&self) -> impl Iterator<Item = &Row> {
        let last = self.lines.iter().rposition(|row| !row.is_empty()).unwrap_or(0);
        self.lines.iter().take(last.max(self.row) + 1)
    }

    /// The rows that were used so far, from the top.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.lines.iter()
    }

    /// Makes the bounds hold for history and window together.
    pub(super) fn enforce_bounds(&mut self) {
        let (mut lines, mut bytes) = (0, 0);
        let (mut begins, mut empty) = (true, true);
        for row in self.text_rows() {
            if begins {
                empty = lines > 0 || !self.history.is_open();
                lines += 1;
                bytes += 1;
            }
            empty &= row.is_empty();
            bytes += row.len() as u64;
            begins = !row.wrapped;
        }
        // An empty last line is not counted.
        lines -= u64::from(empty);
        let max_lines = self.history.max_lines().saturating_sub(lines);
        let max_bytes = self.history.max_bytes().saturating_sub(bytes);
        self.history.trim(max_lines, max_bytes);
    }

    pub(super) fn cursor_row(&self) -> usize {
        self.row
    }

    pub(super) fn cursor_column(&self) -> usize {
        self.column.min(self.columns - 1)
    }

    /// Text of the logical line up to the cursor, the last `max` characters of it that are in the
    /// window.
    pub(super) fn cursor_line(&self, max: usize) -> String {
        let mut first = self.row;
        let mut cells = self.column;
        while first > 0 && cells < max && self.lines[first - 1].wrapped {
            first -= 1;
            cells += self.lines[first].cells();
        }
        let mut text = Vec::new();
        for row in self.lines.range(first..self.row) {
            row.append_to(&mut text);
        }
        self.lines[self.row].append_before(self.column, &mut text);
        let text = String::from_utf8_lossy(&text);
        let skip = text.chars().count().saturating_sub(max);
        text.chars().skip(skip).collect()
    }

    /// Is the line drawing set active?
    pub(super) fn draws_lines(&self) -> bool {
        self.graphics[self.shift]
    }

    /// Writes printable ASCII.
    pub(super) fn put_ascii(&mut self, mut run: &[u8]) {
        let Some(&last) = run.last() else { return };
        self.last = char::from(last);
        while !run.is_empty() {
            if self.column >= self.columns {
                if self.modes.autowrap {
                    self.wrap();
                } else {
                    self.column = self.columns - 1;
                    run = &run[run.len() - 1..];
                }
            }
            let (now, later) = run.split_at(run.len().min(self.columns - self.column));
            let line = &mut self.lines[self.row];
            if self.modes.insert {
                line.insert_gaps(self.column, now.len(), self.columns);
            }
            line.write_ascii(self.column, now);
            line.mark(self.column..self.column + now.len(), self.reverse);
            self.column += now.len();
            if self.column == self.columns {
                line.wrapped = false;
            }
            run = later;
        }
    }

    /// Appends as much of `text` as fits behind the written part of the cursor's row, up to the
    /// first character that is no cell of its own; returns bytes and characters. It may take
    /// nothing, also where [`Grid::put_char`] could.
    pub(super) fn append_text(&mut self, text: &str) -> (usize, u64) {
        let line = &mut self.lines[self.row];
        if self.column < line.cells() || self.modes.insert || self.graphics[self.shift] {
            return (0, 0);
        }
        let (mut bytes, mut characters, mut column) = (0, 0, self.column);
        for c in text.chars() {
            let width = row::width(c);
            if width == 0 || column + width > self.columns {
                break;
            }
            column += width;
            bytes += c.len_utf8();
            characters += 1;
            self.last = c;
        }
        if bytes > 0 {
            line.append(self.column, &text[..bytes], column - self.column);
            line.mark(self.column..column, self.reverse);
            self.column = column;
            line.wrapped &= column < self.columns;
        }
        (bytes, characters)
    }

    /// Writes one character of any width.
    pub(super) fn put_char(&mut self, c: char) {
        let width = row::width(c);
        if width == 0 {
            self.lines[self.row].combine(self.column, c);
            return;
        }
        self.last = c;
        if self.column + width > self.columns {
            if self.modes.autowrap {
                // A wide character that does not fit leaves the last column empty.
                let (column, columns) = (self.column, self.columns);
                self.lines[self.row].erase(column, columns);
                self.wrap();
            } else {
                self.column = self.columns - width;
            }
        }
        let line = &mut self.lines[self.row];
        if self.modes.insert {
            line.insert_gaps(self.column, width, self.columns);
        }
        line.write_char(self.column, c, width);
        line.mark(self.column..self.column + width, self.reverse);
        self.column += width;
        if self.column == self.columns {
            line.wrapped = false;
        }
    }

    /// Writes the last character `count` times more, at most a window full of it; returns how
    /// often.
    pub(super) fn repeat(&mut self, count: usize) -> usize {
        let count = count.min(self.rows * self.columns);
        for _ in 0..count {
            self.put_char(self.last);
        }
        count
    }

    fn wrap(&mut self) {
        self.column = 0;
        if self.row == self.bottom {
            self.lines[self.row].wrapped = true;
            self.scroll(1);
        } else if self.row + 1 < self.rows {
            self.lines[self.row].wrapped = true;
            self.go(self.row + 1);
        }
    }

    /// Puts the cursor into `row`, which exists afterwards.
    fn go(&mut self, row: usize) {
        self.row = row.min(self.rows - 1);
        while self.lines.len() <= self.row {
            self.lines.push_back(Row::default());
        }
    }

    pub(super) fn carriage_return(&mut self) {
        self.homed = false;
        if self.column > 0 {
            self.turned = None;
        }
        self.column = 0;
    }

    /// Down one row, scrolling at the bottom margin.
    pub(super) fn index(&mut self) {
        let turned = self.turned.take() == Some(self.row) && self.column == 0;
        if self.row == self.bottom {
            self.scroll_up(1);
        } else if self.row + 1 < self.rows {
            self.go(self.row + 1);
            if self.lines[self.row].is_empty() {
                self.part_before(self.row);
            } else if turned {
                self.end_edit();
            }
        }
    }

    /// The line that was edited ends: nothing but blanks in the cursor's row, before which the
    /// cursor is, is no part of it.
    pub(super) fn end_edit(&mut self) {
        let continues = match self.row.checked_sub(1) {
            None => self.history.is_open(),
            Some(above) => self.lines[above].wrapped,
        };
        let line = &mut self.lines[self.row];
        if continues && self.column == 0 && line.is_blank() {
            line.clear();
            self.part_before(self.row);
        }
    }

    /// Up one row, scrolling at the top margin.
    pub(super) fn reverse_index(&mut self) {
        if self.row == self.top {
            self.insert_rows(self.top, 1);
        } else {
            self.row = self.row.saturating_sub(1);
        }
    }

    pub(super) fn backspace(&mut self) {
        self.homed = false;
        self.turned = None;
        self.column = self.cursor_column().saturating_sub(1);
    }

    /// To the next tab stop; at the margin it stays where it is.
    pub(super) fn tab(&mut self, count: usize) {
        for _ in 0..count.min(self.columns) {
            if self.column < self.columns {
                let stop = (self.column + 1..self.columns).find(|column| self.is_stop(*column));
                self.column = stop.unwrap_or(self.columns - 1);
            }
        }
    }

    pub(super) fn back_tab(&mut self, count: usize) {
        let mut column = self.cursor_column();
        for _ in 0..count.min(self.columns) {
            column = (0..column).rev().find(|column| self.is_stop(*column)).unwrap_or(0);
        }
        self.column = column;
        self.turned = None;
    }

    fn is_stop(&self, column: usize) -> bool {
        match &self.stops {
            Some(stops) => stops.get(column).copied().unwrap_or(false),
            None => column.is_multiple_of(TAB),
        }
    }

    /// Sets a tab stop at the cursor.
    pub(super) fn set_tab_stop(&mut self) {
        self.change_stop(true);
    }

    /// Clears the tab stop at the cursor.
    pub(super) fn clear_tab_stop(&mut self) {
        self.change_stop(false);
    }

    fn change_stop(&mut self, set: bool) {
        let column = self.cursor_column();
        let columns = self.columns;
        let stops = self
            .stops
            .get_or_insert_with(|| (0..columns).map(|it| it.is_multiple_of(TAB)).collect());
        // The window may have been narrower when the first one was set.
        stops.resize(stops.len().max(columns), false);
        stops[column] = set;
    }

    /// Clears every tab stop.
    pub(super) fn clear_tab_stops(&mut self) {
        self.stops = Some(vec![false; self.columns]);
    }

    /// Sets a tab stop at every eighth column, as at the beginning.
    pub(super) fn reset_tab_stops(&mut self) {
        self.stops = None;
    }

    pub(super) fn up(&mut self, count: usize) {
        self.homed = false;
        let limit = if self.row >= self.top { self.top } else { 0 };
        let from_blank = self.column == 0 && self.lines[self.row].is_blank();
        self.row = self.row.saturating_sub(count).max(limit);
        self.turned = from_blank.then_some(self.row);
        self.column = self.cursor_column();
    }

    pub(super) fn down(&mut self, count: usize) {
        let limit = if self.row <= self.bottom { self.bottom } else { self.rows - 1 };
        self.go(self.row.saturating_add(count).min(limit));
        self.column = self.cursor_column();
    }

    pub(super) fn left(&mut self, count: usize) {
        self.homed = false;
        self.turned = None;
        self.column = self.cursor_column().saturating_sub(count);
    }

    pub(super) fn right(&mut self, count: usize) {
        self.column = self.cursor_column().saturating_add(count).min(self.columns - 1);
    }

    /// To a row and a column, as [`Grid::move_to_row`] and [`Grid::move_to_column`].
    pub(super) fn move_to(&mut self, row: usize, column: usize) {
        self.move_to_row(row);
        self.move_to_column(column);
        self.homed = true;
    }

    /// To a column, from 0.
    pub(super) fn move_to_column(&mut self, column: usize) {
        self.homed = false;
        self.turned = None;
        self.column = column.min(self.columns - 1);
    }

    /// To a row, from 0; counted from the top margin in origin mode.
    pub(super) fn move_to_row(&mut self, row: usize) {
        if self.modes.origin {
            self.go(self.top.saturating_add(row).min(self.bottom));
        } else {
            self.go(row);
        }
        self.column = self.cursor_column();
    }

    pub(super) fn home(&mut self) {
        self.move_to_row(0);
        self.turned = None;
        self.column = 0;
    }

    pub(super) fn save_cursor(&mut self) {
        let Self { row, column, modes: Modes { origin, .. }, graphics, shift, .. } = *self;
        self.saved = Saved { row, column, origin, graphics, shift };
    }

    pub(super) fn restore_cursor(&mut self) {
        let Saved { row, column, origin, graphics, shift } = self.saved;
        self.go(row);
        self.turned = None;
        self.column = column.min(self.columns);
        self.modes.origin = origin;
        self.graphics = graphics;
        self.shift = shift;
    }

    pub(super) fn select_charset(&mut self, slot: usize, line_drawing: bool) {
        if let Some(graphics) = self.graphics.get_mut(slot) {
            *graphics = line_drawing;
        }
    }

    pub(super) fn shift(&mut self, slot: usize) {
        self.shift = slot.min(1);
    }

    /// Modes, margins and character sets as at the beginning; text and cursor stay.
    pub(super) fn soft_reset(&mut self) {
        self.top = 0;
        self.bottom = self.rows - 1;
        self.saved = Saved::default();
        self.modes = Modes::default();
        self.graphics = [false; 2];
        self.shift = 0;
    }
}
