//! Many plain lines at once: those that would only pass through the window go straight to the
//! history.
//!
//! Guarantees: text, cursor and window end up as if each character had been written by itself,
//! provided the caller goes on with the rest of the block it announced.

use super::Grid;
use crate::screen::row;

/// What [`Grid::pass_lines`] took.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::screen) struct Passed {
    pub(in crate::screen) bytes: usize,
    pub(in crate::screen) characters: u64,
    pub(in crate::screen) lines: u64,
}

impl Grid {
    /// Would each line that is written now scroll the whole window by one row and do nothing else?
    pub(in crate::screen) fn passes_lines(&self) -> bool {
        self.column == 0
            && self.row + 1 == self.rows
            && self.top == 0
            && self.bottom == self.row
            && self.modes.autowrap
            && !self.modes.insert
            && !self.draws_lines()
            && self.lines[self.row].is_empty()
    }

    /// Takes lines from the beginning of `block`, which is text, CR and LF without C1 controls, and
    /// of which the caller writes the rest. It leaves enough lines to fill the window, and takes nothing
    /// unless that saves work.
    pub(in crate::screen) fn pass_lines(&mut self, block: &[u8]) -> Passed {
        let mut passed = Passed::default();
        let mut ends = memchr::memrchr_iter(b'\n', block);
        // The window is empty after this, so that what is left must fill it: one row more than
        // lines.
        let Some(last) = ends.nth(self.rows - 1) else { return passed };
        if ends.nth(self.rows).is_none() {
            return passed;
        }
        for (index, line) in self.lines.iter_mut().enumerate() {
            if index < self.row {
                self.history.append(line);
            }
            line.clear();
        }
        self.row = 0;
        self.turned = None;
        let mut rest = &block[..=last];
        while let Some(end) = memchr::memchr2(b'\r', b'\n', rest)
            && rest[end..].starts_with(b"\r\n")
        {
            let line = &rest[..end];
            let Some((characters, last)) = plain(line) else { break };
            self.history.append_line(line);
            self.last = last.unwrap_or(self.last);
            passed.characters += characters;
            passed.lines += 1;
            rest = &rest[end + 2..];
        }
        passed.bytes = last + 1 - rest.len();
        passed
    }
}

/// How many characters a line has, and the last one; none unless each has cells of its own.
fn plain(line: &[u8]) -> Option<(u64, Option<char>)> {
    if line.is_ascii() {
        return Some((line.len() as u64, line.last().map(|byte| char::from(*byte))));
    }
    let (mut characters, mut last) = (0, None);
    for c in std::str::from_utf8(line).ok()?.chars() {
        if row::width(c) == 0 {
            return None;
        }
        characters += 1;
        last = Some(c);
    }
    Some((characters, last))
}
