//! Reading: positions, pages, and the text between a position and the end.
//!
//! History and window are read as one stream: the history's bytes, then the window's rows with a newline after each
//! logical line. Offsets into it are absolute, as the history's are.
//!
//! Guarantees: nothing that is read is longer than asked for; text is cut between characters, from the front; reading
//! costs what the window and the result cost, not what the history holds.

use super::grid::Grid;
use super::history::History;
use std::hash::{DefaultHasher, Hasher};

/// What was delivered of one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    len: usize,
    hash: u64,
}

impl Mark {
    fn of(bytes: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        Self { len: bytes.len(), hash: hasher.finish() }
    }
}

/// How far a reader has come in the text: opaque, and valid for the life of the screen it was taken from.
///
/// It is the number of a line and how much of it was delivered, with fingerprints of the delivered lines that could
/// still be rewritten (those in the window). The default is the beginning of the session.
#[derive(Debug, Clone)]
pub struct Position {
    /// Number of the line in the window's first row at that time.
    line: u64,
    /// Bytes of that line that had left the window already, and so can't change.
    from: u64,
    /// The window's lines; the last one is where the text ended.
    marks: Vec<Mark>,
    /// The delivered text does not end in a newline.
    inside: bool,
    /// The line's text was not delivered last, so that it can't be continued.
    apart: bool,
    /// Offset in the stream, exact as long as nothing is rewritten.
    stream: u64,
}

impl Default for Position {
    fn default() -> Self {
        Self {
            line: 0,
            from: 0,
            marks: vec![Mark::of(b"")],
            inside: false,
            apart: false,
            stream: 0,
        }
    }
}

impl Position {
    /// Absolute number of the line it is in, counted from 0 since the session began.
    pub fn line(&self) -> u64 {
        self.line + (self.marks.len() as u64).saturating_sub(1)
    }
}

/// Text from a position to the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slice {
    /// The text; lines are separated by one newline.
    pub text: String,
    /// Something of what was shown since the position is missing, always from the front.
    pub truncated: bool,
    /// Absolute number of the line `text` begins in.
    pub first_line: u64,
    /// Lines missing from the front; one that is there in part is not counted.
    pub cut_lines: u64,
    /// UTF-8 bytes missing from the front; an estimate when lines were rewritten meanwhile.
    pub cut_bytes: u64,
}

/// A page of lines, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The lines, joined by newlines.
    pub text: String,
    /// Lines that can be read now. An empty last line, where the next output goes, is not counted.
    pub total_lines: u64,
    /// First line of the page, newest-relative, inclusive.
    pub line_begin: u64,
    /// End of the page, newest-relative, exclusive. A page that was cut has whole lines only, except when its newest
    /// line alone is too long, and this is the offset where the next one goes on.
    pub line_end: u64,
    /// Something of this page is missing: it was cut to the bound, or it reaches back to lines that were dropped.
    pub truncated: bool,
    /// Absolute number of the oldest line of the page.
    pub first_line: u64,
}

/// The whole text as one stream.
struct View<'a> {
    history: &'a History,
    /// The window's text.
    window: Vec<u8>,
    /// Where the window's logical lines begin in `window`; never empty.
    starts: Vec<usize>,
    /// Offset of the oldest text that may be read, its line, and how much of that line is missing.
    head: u64,
    first_line: u64,
    front_cut: u64,
}

impl<'a> View<'a> {
    fn new(grid: &'a Grid) -> Self {
        let history = grid.history();
        let mut window = Vec::new();
        let mut starts = vec![0];
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
    fn end(&self) -> u64 {
        self.history.tail() + self.window.len() as u64
    }

    /// Number of the last line.
    fn last_line(&self) -> u64 {
        self.history.closed() + self.starts.len() as u64 - 1
    }

    /// End of the lines that are counted: all but an empty last one.
    fn lines_end(&self) -> u64 {
        self.last_line() + u64::from(self.line_start(self.last_line()) < self.end())
    }

    /// Offset in `window` of a stream offset at or behind the history's tail.
    fn window_offset(&self, at: u64) -> Option<usize> {
        usize::try_from(at.checked_sub(self.history.tail())?).ok()
    }

    /// Offset where line `number` begins, as far as it can be read.
    fn line_start(&self, number: u64) -> u64 {
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
    fn line_stop(&self, at: u64) -> u64 {
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
    fn line_at(&self, at: u64) -> u64 {
        match self.window_offset(at) {
            None => self.history.line_at(at),
            Some(offset) => {
                let before = self.starts.partition_point(|start| *start <= offset);
                self.history.closed() + (before as u64).saturating_sub(1)
            }
        }
    }

    fn bytes(&self, from: u64, to: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let tail = self.history.tail();
        if from < tail {
            self.history.copy(from, to.min(tail), &mut out);
        }
        if let Some(to) = self.window_offset(to) {
            let from = self.window_offset(from).unwrap_or(0);
            out.extend_from_slice(&self.window[from.min(to)..to]);
        }
        out
    }

    /// The next offset at or after `at` that does not cut a character.
    fn align(&self, at: u64) -> u64 {
        let next = self.bytes(at, self.end().min(at + 4));
        at + next.iter().take_while(|byte| (0x80..0xc0).contains(*byte)).count() as u64
    }

    fn text(&self, from: u64, to: u64) -> String {
        into_text(self.bytes(from, to))
    }
}

fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The position at the end of the text.
pub(super) fn end(grid: &Grid) -> Position {
    let view = View::new(grid);
    let inside = view.line_start(view.last_line()) < view.end();
    position(&view, inside, false)
}

fn position(view: &View<'_>, inside: bool, apart: bool) -> Position {
    let history = view.history;
    let line = history.closed();
    let mut from = history.tail() - history.line_start(line);
    if line == history.first_line() {
        from += history.front_cut();
    }
    let ends = view.starts.iter().skip(1).map(|start| start - 1).chain([view.window.len()]);
    let marks = view.starts.iter().zip(ends);
    let marks = marks.map(|(start, end)| Mark::of(&view.window[*start..end])).collect();
    Position { line, from, marks, inside, apart, stream: view.end() }
}

/// Everything since `from`.
pub(super) fn since(grid: &Grid, from: &Position, max_bytes: usize) -> Slice {
    read(&View::new(grid), from, max_bytes, false).0
}

/// The same for a reader that has the text before; moves `from` to the end.
pub(super) fn delta(grid: &Grid, from: &mut Position, max_bytes: usize) -> Slice {
    let view = View::new(grid);
    let (slice, anew) = read(&view, from, max_bytes, true);
    *from = if slice.text.is_empty() {
        position(&view, from.inside, anew || from.apart)
    } else {
        position(&view, !slice.text.ends_with('\n'), false)
    };
    slice
}

/// The text after a position, and whether it does not simply continue what was delivered.
fn read(view: &View<'_>, from: &Position, max_bytes: usize, appending: bool) -> (Slice, bool) {
    let mut again = rewritten_lines(view, from);
    let Resume { mut start, mut anew, dropped } = resume(view, from);
    if !again.is_empty() {
        // Other lines follow the delivered part of the position's line: give that one whole after them.
        let line = from.line().min(view.last_line());
        again.retain(|(number, _)| *number < line);
        start = view.line_start(line);
        anew = true;
    }
    let rest = view.end() - start;
    let new_line = appending && from.inside && anew && (rest > 0 || !again.is_empty());
    let budget = max_bytes.saturating_sub(usize::from(new_line)) as u64;

    let kept = if rest > budget { view.align(view.end() - budget) } else { start };
    let mut room = budget - (view.end() - kept);
    let cost = |line: &(u64, Vec<u8>)| line.1.len() as u64 + 1;
    let fitting = again.iter().rev().take_while(|line| {
        let fits = kept == start && cost(line) <= room;
        room -= if fits { cost(line) } else { 0 };
        fits
    });
    let again_cut = again.len() - fitting.count();

    let mut bytes = Vec::new();
    if new_line && max_bytes > 0 {
        bytes.push(b'\n');
    }
    for (_, line) in &again[again_cut..] {
        bytes.extend_from_slice(line);
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(&view.bytes(kept, view.end()));
    let truncated = dropped || again_cut > 0 || kept > start;
    let first_line = again.get(again_cut).map_or_else(|| view.line_at(kept), |(number, _)| *number);
    let missing = |there: u64, since: u64| if truncated { there.saturating_sub(since) } else { 0 };
    let slice = Slice {
        text: into_text(bytes),
        truncated,
        first_line,
        cut_lines: missing(first_line, from.line()),
        cut_bytes: missing(kept, from.stream),
    };
    (slice, anew)
}

/// Where reading goes on after a position.
struct Resume {
    /// Offset in the stream.
    start: u64,
    /// What follows does not continue what was delivered: text was rewritten, erased or dropped.
    anew: bool,
    /// Text that was not delivered can no longer be read.
    dropped: bool,
}

/// Delivered lines above the position's own that have another text now: (number, text). Erased ones are left out.
fn rewritten_lines(view: &View<'_>, from: &Position) -> Vec<(u64, Vec<u8>)> {
    let mut found = Vec::new();
    let Some((_, above)) = from.marks.split_last() else { return found };
    let mut start = None;
    for (number, mark) in (from.line..).zip(above) {
        if number > view.last_line() {
            break;
        }
        if number < view.first_line {
            continue;
        }
        let begin = start.unwrap_or_else(|| view.line_start(number));
        let stop = view.line_stop(begin);
        start = Some(stop + 1);
        // Only the part that was in the window then can have changed.
        let mut skip = if number == from.line { from.from } else { 0 };
        if number == view.first_line {
            if view.front_cut > skip {
                continue;
            }
            skip -= view.front_cut;
        }
        let changeable = (begin + skip).min(stop);
        let same = stop - changeable == mark.len as u64
            && Mark::of(&view.bytes(changeable, stop)) == *mark;
        if !same && stop > begin {
            found.push((number, view.bytes(begin, stop)));
        }
    }
    found
}

fn resume(view: &View<'_>, from: &Position) -> Resume {
    let line = from.line();
    if line > view.last_line() {
        return Resume { start: view.end(), anew: true, dropped: false };
    }
    if line < view.first_line {
        return Resume { start: view.head, anew: true, dropped: true };
    }
    let mark = from.marks.last().copied().unwrap_or_else(|| Mark::of(b""));
    let begin = view.line_start(line);
    let fixed = if from.marks.len() > 1 { 0 } else { from.from };
    let cut = if line == view.first_line { view.front_cut } else { 0 };
    if cut > fixed {
        // Part of what would have to be compared is gone.
        let delivered = fixed + mark.len as u64;
        return match delivered.checked_sub(cut) {
            Some(there) => {
                let start = view.align((begin + there).min(view.end()));
                Resume { start, anew: false, dropped: false }
            }
            None => Resume { start: begin, anew: true, dropped: true },
        };
    }
    let changeable = begin + fixed - cut;
    let goes_on = changeable + mark.len as u64;
    let same =
        goes_on <= view.line_stop(begin) && Mark::of(&view.bytes(changeable, goes_on)) == mark;
    if same && (!from.apart || goes_on == view.end()) {
        Resume { start: goes_on, anew: false, dropped: false }
    } else {
        Resume { start: begin, anew: true, dropped: cut > 0 }
    }
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
