//! Changing the window's size.
//!
//! Guarantees: logical lines keep their text, and the cursor and the saved cursor their places in
//! it.

use super::Grid;
use crate::screen::row::{self, Row};
use std::collections::VecDeque;

/// Row and column.
type Place = (usize, usize);

impl Grid {
    /// Changes the size; logical lines are broken into rows anew, and what no longer fits leaves at
    /// the top.
    pub(in crate::screen) fn resize(&mut self, rows: u16, columns: u16) {
        let (rows, columns) = (usize::from(rows), usize::from(columns));
        if (rows, columns) == (self.rows, self.columns) {
            return;
        }
        if columns != self.columns {
            let cursors = [(self.row, self.column), (self.saved.row, self.saved.column)];
            let [cursor, saved] = self.reflow(columns, cursors);
            (self.row, self.column) = cursor;
            (self.saved.row, self.saved.column) = saved;
        }
        while self.lines.len() > self.row + 1 && self.lines.back().is_some_and(Row::is_empty) {
            self.lines.pop_back();
        }
        for _ in rows..self.lines.len() {
            if let Some(line) = self.lines.pop_front() {
                self.history.append(&line);
                self.row = self.row.saturating_sub(1);
                self.saved.row = self.saved.row.saturating_sub(1);
            }
        }
        self.rows = rows;
        self.columns = columns;
        self.top = 0;
        self.bottom = rows - 1;
        self.turned = None;
        self.column = self.column.min(columns);
        self.saved.row = self.saved.row.min(rows - 1);
        self.go(self.row);
    }

    /// Breaks the lines anew; returns where `places` are now.
    fn reflow<const N: usize>(&mut self, columns: usize, places: [Place; N]) -> [Place; N] {
        let mut lines = VecDeque::with_capacity(self.lines.len());
        // One below the last row stays below it.
        let below = self.lines.len();
        let mut moved = places;
        let mut at = 0;
        while at < self.lines.len() {
            // One logical line, and the places in it, counted in cells from its beginning.
            let (mut raw, mut cells, mut within) = (Vec::new(), 0, [None; N]);
            let mut reversed = Vec::new();
            loop {
                let line = &self.lines[at];
                for (place, within) in places.iter().zip(&mut within) {
                    if place.0 == at {
                        *within = Some(cells + place.1);
                    }
                }
                raw.extend_from_slice(line.raw());
                reversed.extend(line.reversed().map(|it| it.start + cells..it.end + cells));
                cells += line.cells();
                at += 1;
                if !line.wrapped || at == self.lines.len() {
                    break;
                }
            }
            let first = lines.len();
            let mut reached = 0;
            for (raw, cells) in split_rows(&raw, columns) {
                for (moved, within) in moved.iter_mut().zip(within) {
                    if let Some(within) = within
                        && within >= reached
                    {
                        *moved = (lines.len(), (within - reached).min(columns));
                    }
                }
                let mut row = Row::from_raw(raw, cells, true);
                for span in &reversed {
                    let within = |at: usize| at.clamp(reached, reached + cells) - reached;
                    row.mark(within(span.start)..within(span.end), true);
                }
                reached += cells;
                lines.push_back(row);
            }
            if lines.len() == first {
                for (moved, within) in moved.iter_mut().zip(within) {
                    *moved = within.map_or(*moved, |within| (first, within.min(columns)));
                }
                lines.push_back(Row::default());
            }
            if let Some(last) = lines.back_mut() {
                last.wrapped = false;
            }
        }
        for (moved, place) in moved.iter_mut().zip(places) {
            if let Some(further) = place.0.checked_sub(below) {
                *moved = (lines.len() + further, place.1.min(columns));
            }
        }
        self.lines = lines;
        moved
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
