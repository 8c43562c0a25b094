//! All text of a session that can still be read: the transcript, then memory.
//!
//! Guarantees: pages hold whole lines, except when one line alone is too long; nothing is longer
//! than asked for; text that cannot be read any more shortens the answer and is said to be missing.

#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::VecDeque, sync::Arc};

use terminal::{Lines, ReadPage, ReadRequest};

use crate::{
    screen::{Chunk, Snapshot},
    transcript::{Archive, Block},
};

/// A view of the text at one moment. Reading it may block.
pub(crate) struct Retained {
    archive: Option<Arc<Archive>>,
    /// What of it the transcript has.
    on_disk: VecDeque<Block>,
    in_memory: Vec<Chunk>,
    /// One more than the number of the newest line that counts.
    pub(crate) lines_end: u64,
    lost: Option<String>,
    /// Bytes that one answer has at most.
    pub(crate) max: usize,
}

/// The text up to the block of this number is gone.
pub(crate) struct Gone(usize);

/// A run of the text.
pub(crate) struct Run<'a> {
    /// Number of the line that it begins in.
    pub(crate) line: u64,
    /// It has the beginning of that line.
    pub(crate) whole: bool,
    pub(crate) bytes: Cow<'a, [u8]>,
}

impl Retained {
    /// `memory` follows what the archive has.
    pub(crate) fn new(archive: Option<Arc<Archive>>, memory: Snapshot, max: usize) -> Self {
        let (mut on_disk, lost) = archive.as_ref().map(|it| it.blocks()).unwrap_or_default();
        let begin = memory.chunks.first().map_or(0, |chunk| chunk.start);
        if on_disk.back().is_none_or(|last| last.start + last.bytes as u64 != begin) {
            on_disk.clear();
        }
        Self { archive, on_disk, in_memory: memory.chunks, lines_end: memory.lines_end, lost, max }
    }

    /// Runs of text; each follows the one before.
    pub(crate) fn runs(&self) -> usize {
        self.on_disk.len() + self.in_memory.len()
    }

    /// Offset of the first byte of a run, number of the line it begins in, whether it has that
    /// line's beginning.
    fn place(&self, run: usize) -> (u64, u64, bool) {
        match self.on_disk.get(run) {
            Some(Block { start, line, whole, .. }) => (*start, *line, *whole),
            None => self
                .in_memory
                .get(run - self.on_disk.len())
                .map_or((self.end(), self.lines_end, true), |it| (it.start, it.line, it.whole)),
        }
    }

    pub(crate) fn line_of(&self, run: usize) -> u64 {
        self.place(run).1
    }

    pub(crate) fn load(&self, run: usize) -> Result<Run<'_>, Gone> {
        let (_, line, whole) = self.place(run);
        if let (Some(block), Some(archive)) = (self.on_disk.get(run), &self.archive) {
            let bytes = Cow::Owned(archive.read(block).map_err(|_| Gone(run))?);
            return Ok(Run { line, whole, bytes });
        }
        let chunk = self.in_memory.get(run - self.on_disk.len());
        let bytes = Cow::Borrowed(chunk.map_or(&[][..], |chunk| &chunk.bytes));
        Ok(Run { line, whole, bytes })
    }

    /// Goes on without what is gone.
    pub(crate) fn forget(&mut self, Gone(run): Gone) {
        self.on_disk.drain(..(run + 1).min(self.on_disk.len()));
    }

    /// Number of the oldest line, and whether its beginning is missing.
    pub(crate) fn first_line(&self) -> (u64, bool) {
        let (_, line, whole) = self.place(0);
        (line, !whole)
    }

    fn end(&self) -> u64 {
        self.in_memory.last().map_or(0, |it| it.start + it.bytes.len() as u64)
    }

    /// A page.
    pub(crate) fn page(&mut self, request: ReadRequest) -> ReadPage {
        loop {
            match self.try_page(request, self.max) {
                Ok(page) => return page,
                Err(gone) => self.forget(gone),
            }
        }
    }

    fn try_page(&self, request: ReadRequest, max: usize) -> Result<ReadPage, Gone> {
        let (first, cut) = self.first_line();
        let end = self.lines_end.max(first);
        let (from, to) = match request.lines {
            Lines::Newest(offset) => {
                // Counted so that a page beyond the oldest line is seen to be one.
                let to = i128::from(end) - i128::from(offset);
                (to - i128::from(request.count), to)
            }
            Lines::From(line) => (i128::from(line), i128::from(line) + i128::from(request.count)),
        };
        let inside = |line: i128| u64::try_from(line.max(0)).unwrap_or(end).clamp(first, end);
        let (mut oldest, mut newest) = (inside(from), inside(to));
        let missing = from < i128::from(first) && to > 0 && first > 0;
        let mut truncated = missing || (oldest == first && cut && newest > oldest);
        let mut text = Vec::new();
        if newest > oldest {
            let start = self.offset(oldest)?;
            let stop = self.stop(newest)?;
            if stop - start <= max as u64 {
                text = self.bytes(start, stop)?;
            } else {
                truncated = true;
                match request.lines {
                    Lines::Newest(_) => {
                        text = newest_lines(self.bytes(stop - max as u64 - 1, stop)?);
                        oldest = newest - 1 - newlines(&text);
                    }
                    Lines::From(_) => {
                        text = oldest_lines(self.bytes(start, start + max as u64 + 1)?);
                        newest = oldest + 1 + newlines(&text);
                    }
                }
            }
        }
        let (line_begin, line_end) = match request.lines {
            Lines::Newest(offset) if oldest == newest => (offset, offset),
            _ => (end - newest, end - oldest),
        };
        Ok(ReadPage {
            text: into_text(text),
            total_lines: end - first,
            line_begin,
            line_end,
            truncated,
            first_line: Some(oldest),
            lost: self.lost.clone().filter(|_| missing),
        })
    }

    /// Offset where a line begins, as far as it can be read.
    fn offset(&self, line: u64) -> Result<u64, Gone> {
        // It follows the newline of the line before it, which is in the last run that begins at or
        // before that line.
        let run = (0..self.runs()).rev().find(|run| self.place(*run).1 < line).unwrap_or(0);
        let (start, begins_in, _) = self.place(run);
        let Some(before) = line.checked_sub(begins_in + 1) else { return Ok(start) };
        let text = self.load(run)?;
        let skip = usize::try_from(before).unwrap_or(usize::MAX);
        let newline = memchr::memchr_iter(b'\n', &text.bytes).nth(skip);
        Ok(newline.map_or(start + text.bytes.len() as u64, |at| start + at as u64 + 1))
    }

    /// Offset where the line before `line` ends.
    fn stop(&self, line: u64) -> Result<u64, Gone> {
        let last = self.runs().saturating_sub(1);
        let begins_in = self.place(last).1;
        if line > begins_in && line > begins_in + newlines(&self.load(last)?.bytes) {
            return Ok(self.end());
        }
        Ok(self.offset(line)?.saturating_sub(1))
    }

    fn bytes(&self, from: u64, to: u64) -> Result<Vec<u8>, Gone> {
        let mut out = Vec::new();
        for run in 0..self.runs() {
            let (start, ..) = self.place(run);
            if start >= to {
                break;
            }
            if run + 1 < self.runs() && self.place(run + 1).0 <= from {
                continue;
            }
            let text = self.load(run)?;
            let within = |at: u64| {
                usize::try_from(at.saturating_sub(start))
                    .unwrap_or(usize::MAX)
                    .min(text.bytes.len())
            };
            out.extend_from_slice(&text.bytes[within(from)..within(to)]);
        }
        Ok(out)
    }

    /// A line, or its first `max` bytes.
    pub(crate) fn line(&self, number: u64, max: usize) -> Result<String, Gone> {
        Ok(self.try_page(ReadRequest::from_line(number, 1), max)?.text)
    }
}

pub(crate) fn newlines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

/// All but the first byte, from the first whole line on; of a single line what is there of it.
fn newest_lines(mut text: Vec<u8>) -> Vec<u8> {
    let skip = match memchr::memchr(b'\n', &text) {
        Some(newline) => newline + 1,
        None => 1,
    };
    text.drain(..skip.min(text.len()));
    text
}

/// The whole lines of all but the last byte; of a single line what is there of it.
fn oldest_lines(mut text: Vec<u8>) -> Vec<u8> {
    let keep = memchr::memrchr(b'\n', &text).unwrap_or(text.len().saturating_sub(1));
    text.truncate(keep);
    text
}

/// Text whose first or last character may be cut: such a piece is left out.
pub(crate) fn into_text(mut bytes: Vec<u8>) -> String {
    let begin = bytes.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
    bytes.drain(..begin);
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
