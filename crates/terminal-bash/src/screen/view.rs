//! The whole text as one stream, and pages of it.
//!
//! History and window are read as one: the history's bytes, then the window's rows with a newline
//! after each logical line. Offsets into it are absolute, as the history's are.
//!
//! Guarantees: nothing that is read is longer than asked for; text is cut between characters, from
//! the front; reading costs what the window and the result cost, not what the history holds.

use std::borrow::Cow;

use super::grid::Grid;
use super::history::{Chunk, History};

/// A page of lines, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The lines, joined by newlines.
    pub text: String,
    /// Lines that can be read now. An empty last line, where the next output goes, is not counted.
    pub total_lines: u64,
    /// First line of the page, newest-relative, inclusive.
    pub line_begin: u64,
    /// End of the page, newest-relative, exclusive. A page that was cut has whole lines only,
    /// except when its newest line alone is too long, and this is the offset where the next one
    /// goes on.
    pub line_end: u64,
    /// Something of this page is missing: it was cut to the bound, or it reaches back to lines that
    /// were dropped.
    pub truncated: bool,
    /// Absolute number of the oldest line of the page.
    pub first_line: u64,
}

/// A copy of the text.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The text in runs that follow each other. A newline ends each line but the last.
    pub chunks: Vec<Chunk>,
    /// One more than the number of the newest line that counts: an empty last one does not.
    pub lines_end: u64,
}

/// See [`super::Screen::snapshot`].
pub(super) fn snapshot(grid: &Grid, behind_dropped: bool) -> Snapshot {
    let mut view = View::new(grid);
    let history = view.history;
    let from = if behind_dropped { history.oldest() } else { view.head };
    let mut chunks: Vec<Chunk> = history.chunks_from(from).collect();
    if !behind_dropped && let Some(first) = chunks.first_mut() {
        first.whole = view.front_cut == 0;
    }
    // What the bounds hide is there, though it were all of the last line.
    let goes_on = view.starts.len() == 1 && history.is_open();
    let begun = goes_on || view.starts.last().is_some_and(|start| *start < view.window.len());
    let lines_end =
        if behind_dropped { view.last_line() + u64::from(begun) } else { view.lines_end() };
    let start = from.max(history.tail());
    let window = std::mem::take(&mut view.window);
    let hidden = usize::try_from(start - history.tail()).unwrap_or(usize::MAX).min(window.len());
    chunks.push(Chunk {
        start,
        line: history.closed() + memchr::memchr_iter(b'\n', &window[..hidden]).count() as u64,
        whole: match chunks.last() {
            Some(before) if hidden == 0 => before.bytes.last() == Some(&b'\n'),
            None if behind_dropped => !history.is_open(),
            _ => view.front_cut == 0,
        },
        bytes: window[hidden..].to_vec(),
    });
    Snapshot { chunks, lines_end }
}

/// The whole text as one stream.
pub(super) struct View<'a> {
    pub(super) history: &'a History,
    /// The window's text.
    pub(super) window: Vec<u8>,
    /// Where the window's logical lines begin in `window`; never empty.
    pub(super) starts: Vec<usize>,
    /// Offset of the oldest text that may be read, its line, and how much of that line is missing.
    pub(super) head: u64,
    pub(super) first_line: u64,
    pub(super) front_cut: u64,
}

impl<'a> View<'a> {
    pub(super) fn new(grid: &'a Grid) -> Self {
        let history = grid.history();
        let (rows, bytes) =
            grid.text_rows().fold((0, 0), |(n, bytes), row| (n + 1, bytes + row.len()));
        let mut window = Vec::with_capacity(bytes + rows);
        let mut starts = Vec::with_capacity(rows);
        starts.push(0);
        let mut wrapped = true;
        for row in grid.text_rows() {
            if !wrapped {
                window.push(b'\n');
                starts.push(window.len());
            }
            row.append_to(&mut window);
            wrapped = row.wrapped;
        }
        let mut view = Self {
            history,
            window,
            starts,
            head: history.head(),
            first_line: history.first_line(),
            front_cut: history.front_cut(),
        };
        view.hide();
        view
    }

    /// Applies the bounds to a window that exceeds them by itself.
    fn hide(&mut self) {
        let first = self.lines_end().saturating_sub(self.history.max_lines());
        if first > self.first_line {
            self.head = self.line_start(first);
            self.first_line = first;
            self.front_cut = 0;
        }
        if self.end() - self.head > self.history.max_bytes() {
            let head = self.align(self.end() - self.history.max_bytes());
            let line = self.line_at(head);
            let (known, cut) = (self.first_line, self.front_cut);
            self.front_cut = head - self.line_start(line) + if line == known { cut } else { 0 };
            self.first_line = line;
            self.head = head;
        }
    }

    /// Offset of the end of the text.
    pub(super) fn end(&self) -> u64 {
        self.history.tail() + self.window.len() as u64
    }

    /// Number of the last line.
    pub(super) fn last_line(&self) -> u64 {
        self.history.closed() + self.starts.len() as u64 - 1
    }

    /// End of the lines that are counted: all but an empty last one.
    pub(super) fn lines_end(&self) -> u64 {
        self.last_line() + u64::from(self.line_start(self.last_line()) < self.end())
    }

    /// Offset in `window` of a stream offset at or behind the history's tail.
    fn window_offset(&self, at: u64) -> Option<usize> {
        usize::try_from(at.checked_sub(self.history.tail())?).ok()
    }

    /// Offset where line `number` begins, as far as it can be read.
    pub(super) fn line_start(&self, number: u64) -> u64 {
        match number
            .checked_sub(self.history.closed())
            .and_then(|index| usize::try_from(index).ok())
        {
            Some(index) if index > 0 => {
                let start = self.starts.get(index).copied().unwrap_or(self.window.len());
                self.history.tail() + start as u64
            }
            _ => self.history.line_start(number),
        }
        .max(self.head)
    }

    /// Offset of the first newline at or after `at`, or the end.
    pub(super) fn line_stop(&self, at: u64) -> u64 {
        if at < self.history.tail()
            && let Some(found) = self.history.find_newline(at)
        {
            return found;
        }
        let from = self.window_offset(at).unwrap_or(0).min(self.window.len());
        let found = memchr::memchr(b'\n', &self.window[from..])
            .map_or(self.window.len(), |found| from + found);
        self.history.tail() + found as u64
    }

    /// Number of the line that the byte at `at` belongs to.
    pub(super) fn line_at(&self, at: u64) -> u64 {
        match self.window_offset(at) {
            None => self.history.line_at(at),
            Some(offset) => {
                let before = self.starts.partition_point(|start| *start <= offset);
                self.history.closed() + (before as u64).saturating_sub(1)
            }
        }
    }

    pub(super) fn bytes(&self, from: u64, to: u64) -> Cow<'_, [u8]> {
        let tail = self.history.tail();
        if from >= tail
            && let Some((from, to)) = self.window_offset(from).zip(self.window_offset(to))
        {
            return Cow::Borrowed(&self.window[from.min(to)..to]);
        }
        let mut out = Vec::new();
        if from < tail {
            self.history.copy(from, to.min(tail), &mut out);
        }
        if let Some(to) = self.window_offset(to) {
            let from = self.window_offset(from).unwrap_or(0);
            out.extend_from_slice(&self.window[from.min(to)..to]);
        }
        Cow::Owned(out)
    }

    /// The next offset at or after `at` that does not cut a character.
    pub(super) fn align(&self, at: u64) -> u64 {
        let next = self.bytes(at, self.end().min(at + 4));
        at + next.iter().take_while(|byte| (0x80..0xc0).contains(*byte)).count() as u64
    }

    pub(super) fn text(&self, from: u64, to: u64) -> String {
        into_text(self.bytes(from, to).into_owned())
    }
}

pub(super) fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// See [`super::Screen::page`].
pub(super) fn page(grid: &Grid, offset: u64, count: u64, max_bytes: usize) -> Page {
    let view = View::new(grid);
    let end_line = view.lines_end();
    let total = end_line - view.first_line.min(end_line);
    let reach = offset.saturating_add(count);
    // Lines that were dropped are older than all that can be read.
    let dropped =
        reach > total && offset < total.saturating_add(view.first_line) && view.first_line > 0;
    if offset >= total {
        return Page {
            text: String::new(),
            total_lines: total,
            line_begin: offset,
            line_end: offset,
            truncated: dropped,
            first_line: end_line.saturating_sub(offset),
        };
    }
    let newest = end_line - offset;
    let mut oldest = end_line - reach.min(total);
    let mut truncated = dropped || (oldest == view.first_line && view.front_cut > 0);
    let mut start = view.line_start(oldest);
    let stop = if newest > view.last_line() { view.end() } else { view.line_start(newest) - 1 };
    if stop - start > max_bytes as u64 {
        truncated = true;
        let cut = stop - max_bytes as u64;
        // Whole lines if at least one fits.
        let boundary = view.line_stop(cut - 1);
        start = if boundary < stop { boundary + 1 } else { view.align(cut).min(stop) };
        oldest = view.line_at(start).min(newest - 1);
    }
    Page {
        text: view.text(start, stop),
        total_lines: total,
        line_begin: offset,
        line_end: end_line - oldest,
        truncated,
        first_line: oldest,
    }
}
