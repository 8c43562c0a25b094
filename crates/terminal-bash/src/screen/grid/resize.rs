//! Changing the window's size.
//!
//! Guarantees: logical lines keep their text, and the cursor its place in it.

use super::{Grid, Saved};
use crate::screen::row::{self, Row};
use std::collections::VecDeque;

impl Grid {
    /// Changes the size; logical lines are broken into rows anew, and what no longer fits leaves at
    /// the top.
    pub(in crate::screen) fn resize(&mut self, rows: u16, columns: u16) {
        let (rows, columns) = (usize::from(rows), usize::from(columns));
        if (rows, columns) == (self.rows, self.columns) {
            return;
        }
        if columns != self.columns {
            self.reflow(columns);
        }
        while self.lines.len() > self.row + 1 && self.lines.back().is_some_and(Row::is_empty) {
            self.lines.pop_back();
        }
        for _ in rows..self.lines.len() {
            if let Some(line) = self.lines.pop_front() {
                self.history.append(&line);
                self.row = self.row.saturating_sub(1);
            }
        }
        self.rows = rows;
        self.columns = columns;
        self.top = 0;
        self.bottom = rows - 1;
        self.saved = Saved::default();
        self.turned = None;
        self.column = self.column.min(columns);
        self.go(self.row);
    }

    fn reflow(&mut self, columns: usize) {
        let mut lines = VecDeque::with_capacity(self.lines.len());
        let mut cursor = (0, 0);
        let mut at = 0;
        while at < self.lines.len() {
            // One logical line, and the cursor's place in it.
            let (mut raw, mut cells, mut place) = (Vec::new(), 0, None);
            loop {
                let line = &self.lines[at];
                if at == self.row {
                    place = Some(cells + self.column);
                }
                raw.extend_from_slice(line.raw());
                cells += line.cells();
                at += 1;
                if !line.wrapped || at == self.lines.len() {
                    break;
                }
            }
            let first = lines.len();
            let mut reached = 0;
            for (raw, cells) in split_rows(&raw, columns) {
                if let Some(place) = place
                    && place >= reached
                {
                    cursor = (lines.len(), (place - reached).min(columns));
                }
                reached += cells;
                lines.push_back(Row::from_raw(raw, cells, true));
            }
            if lines.len() == first {
                cursor = place.map_or(cursor, |place| (first, place.min(columns)));
                lines.push_back(Row::default());
            }
            if let Some(last) = lines.back_mut() {
                last.wrapped = false;
            }
        }
        self.lines = lines;
        (self.row, self.column) = cursor;
    }
}

/// Cuts the text of a logical line into rows of at most `columns` columns: (text, columns).
fn split_rows(raw: &[u8], columns: usize) -> Vec<(&[u8], usize)> {
    let text = std::str::from_utf8(raw).unwrap_or_default();
    let mut rows = Vec::new();
    let (mut start, mut cells) = (0, 0);
    for (at, c) in text.char_indices() {
        let width = row::width(c);
        if cells + width > columns {
            rows.push((&raw[start..at], cells));
            (start, cells) = (at, 0);
        }
        cells += width;
    }
    if start < raw.len() {
        rows.push((&raw[start..], cells));
    }
    rows
}
