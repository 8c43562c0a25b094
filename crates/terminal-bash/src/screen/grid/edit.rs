//! Scrolling, inserting and removing rows, erasing.
//!
//! Guarantees: a row's `wrapped` flag never joins it with a row that is not its continuation any
//! more.

use super::Grid;
use crate::screen::row::Row;

/// Which part of a line or of the window is erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::screen) enum Part {
    /// From the cursor to the end.
    After,
    /// From the beginning to the cursor, included.
    Before,
    /// All of it.
    All,
}

impl Grid {
    /// Sets the scroll region (from 0, inclusive); a region of less than two rows is ignored.
    pub(in crate::screen) fn set_margins(&mut self, top: usize, bottom: usize) {
        let bottom = bottom.min(self.rows - 1);
        if top < bottom {
            self.top = top;
            self.bottom = bottom;
            self.home();
        }
    }

    /// Moves the region's text up; what leaves the window at its top goes to the history.
    pub(in crate::screen) fn scroll_up(&mut self, count: usize) {
        self.part_before(self.bottom + 1);
        self.scroll(count);
    }

    pub(super) fn scroll(&mut self, count: usize) {
        if self.top > 0 {
            self.remove_rows(self.top, count);
            return;
        }
        let last = self.bottom + 1 == self.rows;
        for _ in 0..count.min(self.bottom + 1) {
            let Some(mut line) = self.lines.pop_front() else { break };
            self.history.append(&line);
            line.clear();
            if last || self.lines.len() <= self.bottom {
                self.lines.push_back(line);
            } else {
                self.lines.insert(self.bottom, line);
            }
        }
        self.go(self.row);
    }

    pub(in crate::screen) fn scroll_down(&mut self, count: usize) {
        self.insert_rows(self.top, count);
    }

    /// `IL`: at the cursor, inside the region.
    pub(in crate::screen) fn insert_at_cursor(&mut self, count: usize) {
        if (self.top..=self.bottom).contains(&self.row) {
            self.insert_rows(self.row, count);
            self.column = 0;
        }
    }

    /// `DL`: at the cursor, inside the region.
    pub(in crate::screen) fn remove_at_cursor(&mut self, count: usize) {
        if (self.top..=self.bottom).contains(&self.row) {
            self.part_before(self.bottom + 1);
            self.remove_rows(self.row, count);
            self.column = 0;
        }
    }

    /// Empty rows at `at`; the region's last rows are lost.
    pub(super) fn insert_rows(&mut self, at: usize, count: usize) {
        self.part_before(at);
        for _ in 0..count.min(self.bottom + 1 - at) {
            if self.lines.len() > self.bottom {
                self.lines.remove(self.bottom);
            }
            if at <= self.lines.len() {
                self.lines.insert(at, Row::default());
            }
        }
        self.part_before(self.bottom + 1);
        self.go(self.row);
    }

    /// Removes rows at `at`; empty ones come in at the region's bottom.
    fn remove_rows(&mut self, at: usize, count: usize) {
        self.part_before(at);
        for _ in 0..count.min(self.bottom + 1 - at) {
            if self.lines.remove(at).is_some() && self.lines.len() >= self.bottom {
                self.lines.insert(self.bottom, Row::default());
            }
        }
        self.go(self.row);
    }

    /// What is above `row` no longer runs over into it.
    pub(super) fn part_before(&mut self, row: usize) {
        match row.checked_sub(1) {
            None => self.history.close(),
            Some(above) => {
                if let Some(line) = self.lines.get_mut(above) {
                    line.wrapped = false;
                }
            }
        }
    }

    pub(in crate::screen) fn erase_line(&mut self, part: Part) {
        let columns = self.columns;
        let cursor = self.cursor_column();
        let column = self.column;
        let line = &mut self.lines[self.row];
        match part {
            Part::After if column >= columns => {}
            Part::After => {
                line.erase(column, columns);
                line.wrapped = false;
            }
            Part::Before => line.erase(0, cursor + 1),
            Part::All => line.clear(),
        }
    }

    pub(in crate::screen) fn erase_window(&mut self, part: Part) {
        match part {
            Part::After if self.homed && self.row == 0 && self.column == 0 => self.clear_window(),
            Part::After => {
                self.erase_line(Part::After);
                self.lines.truncate(self.row + 1);
                if self.column < self.columns {
                    self.lines[self.row].wrapped = false;
                }
            }
            Part::Before => {
                if self.row > 0 {
                    self.history.close();
                }
                for line in self.lines.range_mut(..self.row) {
                    line.clear();
                }
                self.erase_line(Part::Before);
            }
            Part::All => self.clear_window(),
        }
    }

    /// Empties the window; its text goes to the history. The cursor stays.
    pub(in crate::screen) fn clear_window(&mut self) {
        let written = self.lines.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
        for line in self.lines.drain(..).take(written) {
            self.history.append(&line);
        }
        self.history.close();
        self.go(self.row);
    }

    /// `DECALN`: a window full of `E`, without margins. What was shown goes to the history.
    pub(in crate::screen) fn alignment_test(&mut self) {
        self.clear_window();
        self.top = 0;
        self.bottom = self.rows - 1;
        self.modes.origin = false;
        let full = vec![b'E'; self.columns];
        for row in 0..self.rows {
            self.go(row);
            self.lines[row].write_ascii(0, &full);
        }
        self.home();
    }

    pub(in crate::screen) fn erase_columns(&mut self, count: usize) {
        if self.column < self.columns {
            let end = self.column.saturating_add(count).min(self.columns);
            let line = &mut self.lines[self.row];
            line.erase(self.column, end);
            if end == self.columns {
                line.wrapped = false;
            }
        }
    }

    pub(in crate::screen) fn insert_columns(&mut self, count: usize) {
        let column = self.cursor_column();
        self.lines[self.row].insert_gaps(column, count.min(self.columns), self.columns);
        self.column = column;
    }

    pub(in crate::screen) fn delete_columns(&mut self, count: usize) {
        let column = self.cursor_column();
        self.lines[self.row].delete(column, count);
        self.column = column;
    }
}
