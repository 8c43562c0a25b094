//! Searching the text of a session: one regular expression, line by line, newest lines first.
//!
//! Guarantees: time grows with the text, whatever the pattern; a match never reaches over the end
//! of a line; what is returned is bounded.

use regex::bytes::{Regex, RegexBuilder};
use terminal::{SearchMatch, SearchPage, SearchRequest, TerminalError};

use crate::retained::{Gone, Retained, into_text, newlines};

/// Memory that a compiled pattern may take.
const PATTERN_BYTES: usize = 1 << 20;
/// Bytes of a line that are returned.
const LINE_BYTES: usize = 2048;
/// How many of them stand before the match, where the line is longer.
const LEAD: usize = 256;
/// Lines that are given before and after a match at most.
const MAX_CONTEXT: u64 = 100;

/// Compiles the pattern of a request.
pub(crate) fn compile(request: &SearchRequest) -> Result<Regex, TerminalError> {
    RegexBuilder::new(&request.pattern)
        .case_insensitive(request.ignore_case)
        .size_limit(PATTERN_BYTES)
        .dfa_size_limit(PATTERN_BYTES)
        .build()
        .map_err(|error| {
            TerminalError::InvalidArgs(format!(
                "the pattern {:?} cannot be searched for: {error}; to search for it literally, put \
                 a backslash before each of its special characters",
                request.pattern
            ))
        })
}

/// What is found so far.
struct Finder<'a> {
    regex: &'a Regex,
    before: u64,
    max_matches: usize,
    /// Number and text of each match.
    found: Vec<(u64, String)>,
    room: usize,
    /// The line before which another search goes on.
    stopped: Option<u64>,
}

impl Finder<'_> {
    /// Looks at a line; false when it was the last one.
    fn look(&mut self, number: u64, line: &[u8]) -> bool {
        if number >= self.before {
            return true;
        }
        let Some(found) = self.regex.find(line) else { return true };
        let text = excerpt(line, found.start());
        if text.len() > self.room && !self.found.is_empty() {
            self.stopped = Some(number + 1);
            return false;
        }
        self.room = self.room.saturating_sub(text.len());
        self.found.push((number, text));
        if self.found.len() == self.max_matches {
            self.stopped = Some(number);
            return false;
        }
        true
    }
}

/// Searches `text`.
pub(crate) fn search(text: &mut Retained, regex: &Regex, request: &SearchRequest) -> SearchPage {
    let mut finder = Finder {
        regex,
        before: request.before.unwrap_or(u64::MAX).min(text.lines_end),
        max_matches: usize::try_from(request.max_matches).unwrap_or(usize::MAX),
        found: Vec::new(),
        room: text.max,
        stopped: None,
    };
    if let Err(gone) = scan(text, &mut finder) {
        text.forget(gone);
    }
    let Finder { found, mut room, stopped, .. } = finder;
    let mut matches = Vec::with_capacity(found.len());
    for (line, matched) in found {
        let mut context = |from: u64, to: u64| {
            let mut lines = Vec::new();
            for number in from..to.min(text.lines_end) {
                let Ok(line) = text.line(number, LINE_BYTES.min(room)) else { break };
                room = room.saturating_sub(line.len() + 1);
                lines.push(line);
            }
            lines
        };
        let lines = request.context.min(MAX_CONTEXT);
        let before = context(line.saturating_sub(lines), line);
        let after = context(line + 1, line + 1 + lines);
        matches.push(SearchMatch { line, text: matched, before, after });
    }
    let (first, cut) = text.first_line();
    SearchPage {
        matches,
        next: stopped.filter(|line| *line > first),
        total_lines: text.lines_end.saturating_sub(first),
        truncated: first > 0 || cut,
    }
}

fn scan(text: &Retained, finder: &mut Finder<'_>) -> Result<(), Gone> {
    // The end of a line that begins in an older run, its last piece first.
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    let join = |head: &[u8], pieces: &mut Vec<Vec<u8>>| {
        let mut line = head.to_vec();
        pieces.drain(..).rev().for_each(|piece| line.extend(piece));
        line
    };
    for index in (0..text.runs()).rev() {
        if text.line_of(index) >= finder.before {
            continue;
        }
        let run = text.load(index)?;
        let mut number = run.line + newlines(&run.bytes);
        let mut end = run.bytes.len();
        for newline in memchr::memrchr_iter(b'\n', &run.bytes) {
            let line = &run.bytes[newline + 1..end];
            // What follows the last newline is a line only if it does not begin the next run.
            let begins_next =
                end == run.bytes.len() && pieces.is_empty() && index + 1 < text.runs();
            let goes_on = begins_next
                || if pieces.is_empty() {
                    finder.look(number, line)
                } else {
                    finder.look(number, &join(line, &mut pieces))
                };
            if !goes_on {
                return Ok(());
            }
            number -= 1;
            end = newline;
        }
        let rest = &run.bytes[..end];
        if run.whole || index == 0 {
            if !finder.look(number, &join(rest, &mut pieces)) {
                return Ok(());
            }
        } else {
            pieces.push(rest.to_vec());
        }
    }
    Ok(())
}

/// The line, or of a long one what is around `at`.
fn excerpt(line: &[u8], at: usize) -> String {
    if line.len() <= LINE_BYTES {
        return into_text(line.to_vec());
    }
    let from = at.saturating_sub(LEAD).min(line.len() - LINE_BYTES);
    let to = from + LINE_BYTES;
    let text = into_text(line[from..to].to_vec());
    let (before, after) = (if from > 0 { "…" } else { "" }, if to < line.len() { "…" } else { "" });
    format!("{before}{text}{after}")
}
