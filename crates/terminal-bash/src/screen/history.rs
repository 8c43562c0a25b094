//! The lines that left the window: one stream of bytes, bounded by lines and by bytes.
//!
//! The stream is the text with a newline after each finished line, in chunks that are dropped as a
//! whole once the front has passed them, and then handed on if somebody wants them. Offsets into it are absolute, counted since the session
//! began, and so are line numbers: each chunk knows the number of its first line, everything else
//! is found by looking for newlines.
//!
//! Guarantees: text in the stream never changes; appending costs what the text costs, dropping too;
//! at most one chunk more than the bound is allocated at either end.

use super::row::Row;
use std::collections::VecDeque;

/// Bytes of a chunk.
const CHUNK: usize = 64 * 1024;
/// A finished line up to this length is dropped whole, a longer one loses its front bit by bit.
const WHOLE: u64 = 64 * 1024;
/// How far the bounds may be exceeded between two calls of [`History::trim`], so that dropping is
/// rare.
const SLACK_LINES: u64 = 256;
const SLACK_BYTES: u64 = 16 * 1024;

/// A run of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Stream offset of its first byte.
    pub start: u64,
    /// Number of the line that its first byte belongs to: the newlines in the stream before it.
    pub line: u64,
    /// The beginning of that line is the chunk's.
    pub whole: bool,
    /// The text. A character may be cut at either end.
    pub bytes: Vec<u8>,
}

impl Chunk {
    /// What of it lies between two stream offsets, and where that begins.
    fn part(&self, from: u64, to: u64) -> (u64, &[u8]) {
        let within = |at: u64| {
            let offset = usize::try_from(at.saturating_sub(self.start)).unwrap_or(usize::MAX);
            offset.min(self.bytes.len())
        };
        let (begin, end) = (within(from), within(to));
        (self.start + begin as u64, &self.bytes[begin.min(end)..end])
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct History {
    chunks: VecDeque<Chunk>,
    spare: Option<Vec<u8>>,
    /// Chunks that were dropped, if they are wanted.
    dropped: Option<Vec<Chunk>>,
    /// Stream offsets of the text that is kept.
    head: u64,
    tail: u64,
    /// Number of the line at `head`.
    first_line: u64,
    /// Bytes of that line that were dropped.
    front_cut: u64,
    /// From `head` up to here no newline is to be looked for again: of an endless line each piece
    /// that is dropped would else cost a look at all that comes next.
    searched: u64,
    /// Finished lines since the beginning.
    closed: u64,
    /// The text after the last newline goes on in the window's first row.
    open: bool,
    max_lines: u64,
    max_bytes: u64,
}

impl History {
    /// An empty history.
    pub(super) fn new(max_lines: usize, max_bytes: usize) -> Self {
        Self {
            chunks: VecDeque::new(),
            spare: None,
            dropped: None,
            head: 0,
            tail: 0,
            first_line: 0,
            front_cut: 0,
            searched: 0,
            closed: 0,
            open: false,
            max_lines: max_lines as u64,
            max_bytes: max_bytes as u64,
        }
    }

    /// From now on chunks that are dropped wait to be taken.
    pub(super) fn keep_dropped(&mut self) {
        self.dropped.get_or_insert_default();
    }

    /// The chunks that were dropped since the last call, oldest first.
    pub(super) fn take_dropped(&mut self) -> Vec<Chunk> {
        self.dropped.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What is there between `from` and the end, in chunks; `from` may lie before the kept text,
    /// down to the beginning of the first chunk.
    pub(super) fn chunks_from(&self, from: u64) -> impl Iterator<Item = Chunk> {
        self.chunks.iter().filter_map(move |chunk| {
            let (start, bytes) = chunk.part(from, self.tail);
            let before = usize::try_from(start - chunk.start).unwrap_or(usize::MAX);
            let before = chunk.bytes.get(..before).unwrap_or_default();
            (!bytes.is_empty()).then(|| Chunk {
                start,
                line: chunk.line + memchr::memchr_iter(b'\n', before).count() as u64,
                whole: before.last().map_or(chunk.whole, |last| *last == b'\n'),
                bytes: bytes.to_vec(),
            })
        })
    }

    /// Stream offset of the oldest byte that is still in memory.
    pub(super) fn oldest(&self) -> u64 {
        self.chunks.front().map_or(self.tail, |chunk| chunk.start)
    }

    /// Number of the line that the oldest byte in memory belongs to.
    pub(super) fn oldest_line(&self) -> u64 {
        self.chunks.front().map_or(self.closed, |chunk| chunk.line)
    }

    pub(super) fn head(&self) -> u64 {
        self.head
    }

    pub(super) fn tail(&self) -> u64 {
        self.tail
    }

    pub(super) fn first_line(&self) -> u64 {
        self.first_line
    }

    pub(super) fn front_cut(&self) -> u64 {
        self.front_cut
    }

    /// Number of the line in the window's first row.
    pub(super) fn closed(&self) -> u64 {
        self.closed
    }

    /// The window's first row goes on with a line that begins here.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    pub(super) fn max_lines(&self) -> u64 {
        self.max_lines
    }

    pub(super) fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Takes the row that leaves the window at its top. The bounds are exceeded by a little until
    /// [`History::trim`].
    pub(super) fn append(&mut self, row: &Row) {
        let newline = usize::from(!row.wrapped);
        match self.chunks.back_mut() {
            // The common case: it fits into the chunk.
            Some(chunk) if chunk.bytes.len() + row.len() + newline <= CHUNK => {
                row.append_to(&mut chunk.bytes);
                chunk.bytes.extend_from_slice(&b"\n"[..newline]);
                self.tail += (row.len() + newline) as u64;
                self.closed += newline as u64;
                self.open = row.wrapped;
            }
            _ => {
                let mut text = Vec::with_capacity(row.len());
                row.append_to(&mut text);
                self.push(&text);
                self.open = true;
                if !row.wrapped {
                    self.close();
                }
            }
        }
        self.trim_rarely();
    }

    /// Takes a finished line.
    pub(super) fn append_line(&mut self, line: &[u8]) {
        match self.chunks.back_mut() {
            Some(chunk) if chunk.bytes.len() + line.len() < CHUNK => {
                chunk.bytes.extend_from_slice(line);
                chunk.bytes.push(b'\n');
                self.tail += line.len() as u64 + 1;
                self.closed += 1;
                self.open = false;
            }
            _ => {
                self.push(line);
                self.open = true;
                self.close();
            }
        }
        self.trim_rarely();
    }

    fn trim_rarely(&mut self) {
        if self.closed - self.first_line > self.max_lines.saturating_add(SLACK_LINES)
            || self.tail - self.head > self.max_bytes.saturating_add(SLACK_BYTES)
        {
            self.trim(self.max_lines, self.max_bytes);
        }
    }

    /// Ends the line that went on in the window, because its continuation is gone.
    pub(super) fn close(&mut self) {
        if self.open {
            self.push(b"\n");
            self.closed += 1;
            self.open = false;
        }
    }

    fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let chunk = match self.chunks.back_mut() {
                Some(chunk) if chunk.bytes.len() < CHUNK => chunk,
                last => {
                    // The first chunk grows with its text, so that an idle session stays small.
                    let first = last.is_none();
                    let whole = match last {
                        Some(chunk) => chunk.bytes.last() == Some(&b'\n'),
                        // All of the text was dropped: of the line that goes on, too?
                        None => self.front_cut == 0,
                    };
                    let bytes = self
                        .spare
                        .take()
                        .unwrap_or_else(|| Vec::with_capacity(if first { 0 } else { CHUNK }));
                    self.chunks.push_back(Chunk {
                        start: self.tail,
                        line: self.closed,
                        whole,
                        bytes,
                    });
                    continue;
                }
            };
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK - chunk.bytes.len()));
            chunk.bytes.extend_from_slice(now);
            self.tail += now.len() as u64;
            bytes = later;
        }
    }

    /// Drops the oldest text until at most `max_lines` finished lines and `max_bytes` bytes are
    /// kept.
    pub(super) fn trim(&mut self, max_lines: u64, max_bytes: u64) {
        let lines = (self.closed - self.first_line).saturating_sub(max_lines);
        if lines > 0 {
            let skip = usize::try_from(lines - 1).unwrap_or(usize::MAX);
            let newline = self.newlines(self.head, self.tail).nth(skip);
            if let Some(newline) = newline {
                self.drop_lines(lines, newline);
            }
        }
        let bytes = (self.tail - self.head).saturating_sub(max_bytes);
        if bytes > 0 {
            self.drop_bytes(bytes);
        }
        while let Some(chunk) = self.chunks.front()
            && chunk.start + chunk.bytes.len() as u64 <= self.head
        {
            let Some(mut chunk) = self.chunks.pop_front() else { break };
            if let Some(dropped) = &mut self.dropped {
                dropped.push(chunk);
            } else if chunk.bytes.capacity() >= CHUNK {
                chunk.bytes.clear();
                self.spare = Some(chunk.bytes);
            }
        }
    }

    /// Drops the `count` lines up to `newline`.
    fn drop_lines(&mut self, count: u64, newline: u64) {
        self.head = newline + 1;
        self.first_line += count;
        self.front_cut = 0;
    }

    /// Drops at least `count` bytes: whole lines, but of a long or unfinished one only what must
    /// go.
    fn drop_bytes(&mut self, count: u64) {
        let mut target = self.head + count;
        let (mut lines, mut begin, mut end) = (0, self.head, None);
        // A newline farther away does not matter: its line is a long one.
        let limit = (target + WHOLE).min(self.tail);
        for newline in self.newlines(self.head.max(self.searched), limit) {
            if newline + 1 >= target {
                end = Some(newline);
                break;
            }
            lines += 1;
            begin = newline + 1;
        }
        if let Some(newline) = end
            && newline - begin <= WHOLE
        {
            self.drop_lines(lines + 1, newline);
            return;
        }
        self.searched = end.unwrap_or(limit);
        while self.byte(target).is_some_and(|byte| (0x80..0xc0).contains(&byte)) {
            target += 1;
        }
        if lines > 0 {
            self.front_cut = 0;
        }
        self.first_line += lines;
        self.front_cut += target - begin;
        self.head = target;
    }

    /// Stream offsets of the newlines from `from` to `to`, exclusive.
    fn newlines(&self, from: u64, to: u64) -> impl Iterator<Item = u64> {
        let first = self.locate(from).map_or(self.chunks.len(), |(index, _)| index);
        let chunks = self.chunks.range(first..).take_while(move |chunk| chunk.start < to);
        chunks.flat_map(move |chunk| {
            let (begin, part) = chunk.part(from, to);
            memchr::memchr_iter(b'\n', part).map(move |at| begin + at as u64)
        })
    }

    /// The chunk of a stream offset, and the offset in it.
    fn locate(&self, at: u64) -> Option<(usize, usize)> {
        // The front is asked for most, when lines are dropped.
        let index = match self.chunks.get(1) {
            Some(second) if second.start <= at => {
                self.chunks.partition_point(|chunk| chunk.start <= at) - 1
            }
            _ => 0,
        };
        let offset = at.checked_sub(self.chunks.get(index)?.start)?;
        Some((index, usize::try_from(offset).ok()?))
    }

    fn byte(&self, at: u64) -> Option<u8> {
        let (index, offset) = self.locate(at)?;
        self.chunks[index].bytes.get(offset).copied()
    }

    /// Stream offset of the first newline at or after `from`.
    pub(super) fn find_newline(&self, from: u64) -> Option<u64> {
        self.newlines(from, self.tail).next()
    }

    /// Stream offset where line `number` begins, as far as it is kept; `first_line() ≤ number ≤
    /// closed()`.
    pub(super) fn line_start(&self, number: u64) -> u64 {
        if number <= self.first_line {
            return self.head;
        }
        // The line follows the newline of the line before it.
        let before = number - 1;
        let after = self.chunks.partition_point(|chunk| chunk.line <= before);
        let Some(chunk) = after.checked_sub(1).and_then(|index| self.chunks.get(index)) else {
            return self.head;
        };
        let beyond = self.chunks.get(after).map_or(self.closed, |next| next.line);
        let ahead = before - chunk.line;
        let Some(behind) = beyond.checked_sub(number) else { return self.tail };
        // From the nearer end: what is asked for most are the newest lines.
        let mut newlines = memchr::memchr_iter(b'\n', &chunk.bytes);
        let at = if behind < ahead {
            newlines.nth_back(usize::try_from(behind).unwrap_or(usize::MAX))
        } else {
            newlines.nth(usize::try_from(ahead).unwrap_or(usize::MAX))
        };
        at.map_or(self.tail, |at| chunk.start + at as u64 + 1)
    }

    /// Number of the line that the byte at `at` belongs to (a newline belongs to the line it ends).
    pub(super) fn line_at(&self, at: u64) -> u64 {
        match self.locate(at) {
            Some((index, offset)) if at < self.tail => {
                let chunk = &self.chunks[index];
                let before = &chunk.bytes[..offset.min(chunk.bytes.len())];
                chunk.line + memchr::memchr_iter(b'\n', before).count() as u64
            }
            _ => self.closed,
        }
    }

    /// Appends the stream's bytes from `from` to `to`.
    pub(super) fn copy(&self, from: u64, to: u64, out: &mut Vec<u8>) {
        let Some((index, _)) = self.locate(from) else { return };
        for chunk in self.chunks.range(index..).take_while(|chunk| chunk.start < to) {
            out.extend_from_slice(chunk.part(from, to).1);
        }
    }
}
