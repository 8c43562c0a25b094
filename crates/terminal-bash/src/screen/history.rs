//! The lines that left the window: one stream of bytes, bounded by lines and by bytes.
//!
//! The stream is the text with a newline after each finished line, in chunks that are dropped as a whole once the front
//! has passed them. Offsets into it are absolute, counted since the session began, and so are line numbers: each chunk
//! knows the number of its first line, everything else is found by looking for newlines.
//!
//! Guarantees: text in the stream never changes; appending costs what the text costs, dropping too; at most one chunk
//! more than the bound is allocated at either end.

use super::row::Row;
use std::collections::VecDeque;

/// Bytes of a chunk.
const CHUNK: usize = 64 * 1024;
/// A finished line up to this length is dropped whole, a longer one loses its front bit by bit.
const WHOLE: usize = 64 * 1024;

#[derive(Debug)]
struct Chunk {
    /// Stream offset of its first byte.
    start: u64,
    /// Newlines in the stream before it.
    lines: u64,
    bytes: Vec<u8>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct History {
    chunks: VecDeque<Chunk>,
    spare: Option<Vec<u8>>,
    /// Stream offsets of the text that is kept.
    head: u64,
    tail: u64,
    /// Number of the line at `head`.
    first_line: u64,
    /// Bytes of that line that were dropped.
    front_cut: u64,
    /// Finished lines since the beginning.
    closed: u64,
    /// The text after the last newline goes on in the window's first row.
    open: bool,
    max_lines: u64,
    max_bytes: u64,
}

impl History {
    pub(super) fn new(max_lines: usize, max_bytes: usize) -> Self {
        Self {
            chunks: VecDeque::new(),
            spare: None,
            head: 0,
            tail: 0,
            first_line: 0,
            front_cut: 0,
            closed: 0,
            open: false,
            max_lines: max_lines as u64,
            max_bytes: max_bytes as u64,
        }
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

    /// Takes the row that leaves the window at its top.
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
        self.trim(self.max_lines, self.max_bytes);
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
                    let bytes = self
                        .spare
                        .take()
                        .unwrap_or_else(|| Vec::with_capacity(if first { 0 } else { CHUNK }));
                    self.chunks.push_back(Chunk { start: self.tail, lines: self.closed, bytes });
                    continue;
                }
            };
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK - chunk.bytes.len()));
            chunk.bytes.extend_from_slice(now);
            self.tail += now.len() as u64;
            bytes = later;
        }
    }

    /// Drops the oldest text until at most `max_lines` finished lines and `max_bytes` bytes are kept.
    pub(super) fn trim(&mut self, max_lines: u64, max_bytes: u64) {
        if self.closed - self.first_line <= max_lines && self.tail - self.head <= max_bytes {
            return;
        }
        while self.closed - self.first_line > max_lines {
            let Some(newline) = self.find_newline(self.head) else { break };
            self.drop_line(newline);
        }
        while self.tail - self.head > max_bytes {
            let excess = self.tail - self.head - max_bytes;
            if self.first_line == self.closed {
                self.cut(excess);
            } else {
                match self.find_newline(self.head) {
                    Some(newline) if newline - self.head <= WHOLE as u64 => self.drop_line(newline),
                    _ => self.cut(excess.min(WHOLE as u64)),
                }
            }
        }
        while let Some(chunk) = self.chunks.front()
            && chunk.start + chunk.bytes.len() as u64 <= self.head
        {
            if let Some(mut chunk) = self.chunks.pop_front()
                && chunk.bytes.capacity() >= CHUNK
            {
                chunk.bytes.clear();
                self.spare = Some(chunk.bytes);
            }
        }
    }

    fn drop_line(&mut self, newline: u64) {
        self.head = newline + 1;
        self.first_line += 1;
        self.front_cut = 0;
    }

    /// Drops `count` bytes of the first line, and the rest of a character that is cut.
    fn cut(&mut self, count: u64) {
        let from = self.head;
        self.head += count;
        while self.byte(self.head).is_some_and(|byte| (0x80..0xc0).contains(&byte)) {
            self.head += 1;
        }
        self.front_cut += self.head - from;
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
        let (mut index, mut offset) = self.locate(from)?;
        while let Some(chunk) = self.chunks.get(index) {
            if let Some(rest) = chunk.bytes.get(offset..)
                && let Some(found) = memchr::memchr(b'\n', rest)
            {
                return Some(chunk.start + (offset + found) as u64);
            }
            index += 1;
            offset = 0;
        }
        None
    }

    /// Stream offset where line `number` begins, as far as it is kept; `first_line() ≤ number ≤ closed()`.
    pub(super) fn line_start(&self, number: u64) -> u64 {
        if number <= self.first_line {
            return self.head;
        }
        // The line follows the newline of the line before it.
        let before = number - 1;
        let after = self.chunks.partition_point(|chunk| chunk.lines <= before);
        let Some(chunk) = after.checked_sub(1).and_then(|index| self.chunks.get(index)) else {
            return self.head;
        };
        let Ok(skip) = usize::try_from(before - chunk.lines) else { return self.tail };
        memchr::memchr_iter(b'\n', &chunk.bytes)
            .nth(skip)
            .map_or(self.tail, |at| chunk.start + at as u64 + 1)
    }

    /// Number of the line that the byte at `at` belongs to (a newline belongs to the line it ends).
    pub(super) fn line_at(&self, at: u64) -> u64 {
        match self.locate(at) {
            Some((index, offset)) if at < self.tail => {
                let chunk = &self.chunks[index];
                let before = &chunk.bytes[..offset.min(chunk.bytes.len())];
                chunk.lines + memchr::memchr_iter(b'\n', before).count() as u64
            }
            _ => self.closed,
        }
    }

    /// Appends the stream's bytes from `from` to `to`.
    pub(super) fn copy(&self, from: u64, to: u64, out: &mut Vec<u8>) {
        let Some((index, _)) = self.locate(from) else { return };
        for chunk in self.chunks.iter().skip(index) {
            if chunk.start >= to {
                break;
            }
            let len = chunk.bytes.len() as u64;
            let begin = from.saturating_sub(chunk.start).min(len);
            let end = (to - chunk.start).min(len);
            if let (Ok(begin), Ok(end)) = (usize::try_from(begin), usize::try_from(end)) {
                out.extend_from_slice(&chunk.bytes[begin..end]);
            }
        }
    }
}
