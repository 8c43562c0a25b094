//! Positions of readers, and the text between a position and the end.
//!
//! Guarantees: what was delivered and is unchanged is not given again; what was rewritten is given
//! whole; deltas of output that only appends concatenate to the text from the first position on.

use super::grid::Grid;
use super::view::{View, into_text};
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

/// How far a reader has come in the text: opaque, and valid for the life of the screen it was taken
/// from.
///
/// It is the number of a line and how much of it was delivered, with fingerprints of the delivered
/// lines that could still be rewritten (those in the window). The default is the beginning of the
/// session.
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
    /// Number of lines since the session began.
    pub lines_end: u64,
}

/// The position at the end of the text.
pub(super) fn end(grid: &Grid) -> Position {
    end_of(&View::new(grid))
}

fn end_of(view: &View<'_>) -> Position {
    let inside = view.line_start(view.last_line()) < view.end();
    position(view, inside, false)
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

/// The same, and the position at the end of it.
pub(super) fn since_to_end(grid: &Grid, from: &Position, max_bytes: usize) -> (Slice, Position) {
    let view = View::new(grid);
    (read(&view, from, max_bytes, false).0, end_of(&view))
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
        // Other lines follow the delivered part of the position's line: give that one whole after
        // them.
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
        lines_end: view.lines_end(),
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

/// Delivered lines above the position's own that have another text now: (number, text). Erased ones
/// are left out.
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
            found.push((number, view.bytes(begin, stop).into_owned()));
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
