//! What a full-screen program draws: cells, for as long as the alternate screen is shown.
//!
//! The main text has a line model of its own; here every cell counts, so a whole terminal keeps
//! them, behind [`FullScreen`].
//!
//! Guarantees expected of an implementation: no input panics or makes it grow beyond what its size
//! allows; what is asked for outside the window is empty.

mod alacritty;
mod paint;

pub(super) use alacritty::AlacrittyScreen;

/// One cell of the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// What is written in it, combining marks included; a blank when nothing is. Empty in the
    /// second column of a wide character.
    pub text: String,
    /// It is shown with foreground and background exchanged: by most programs, what is selected.
    pub reverse: bool,
    /// It is shown bold.
    pub bold: bool,
    /// It is shown underlined.
    pub underline: bool,
}

/// Where the cursor is, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Row of the window.
    pub row: usize,
    /// Column; the number of columns after the last one was written.
    pub column: usize,
    /// The program lets it be seen.
    pub visible: bool,
}

/// A grid of cells that understands a terminal's controls.
pub trait FullScreen: std::fmt::Debug {
    /// Applies whole characters, controls and sequences, and no string sequences.
    fn feed(&mut self, bytes: &[u8]);

    /// Changes the size; what no longer fits is lost.
    fn resize(&mut self, rows: u16, columns: u16);

    /// Where the cursor is.
    fn cursor(&self) -> Cursor;

    /// The cells of a row, from the left.
    fn row(&self, row: usize) -> Vec<Cell>;

    /// The text of `row` ran over its end into the next one.
    fn runs_over(&self, row: usize) -> bool;

    /// The text of a row, without the blanks at its end.
    fn text(&self, row: usize) -> String {
        let text: String = self.row(row).into_iter().map(|cell| cell.text).collect();
        text.trim_end().to_owned()
    }

    /// What of a row is shown in reverse: runs of neighbouring cells, each with the column of its
    /// first one.
    fn reversed(&self, row: usize) -> Vec<(usize, String)> {
        let cells = self.row(row).into_iter();
        runs(cells.map(|cell| cell.reverse.then_some(cell.text)))
    }

    /// Writes the sequences and the text that paint it on another terminal's fresh alternate screen, with
    /// these margins, counted from 1, where a program set some.
    fn paint(&self, margins: Option<(u16, u16)>, out: &mut Vec<u8>);

    /// Text of the cursor's row, with the rows it continues, up to the cursor; at most the last
    /// `max` characters.
    fn cursor_line(&self, max: usize) -> String {
        let Cursor { row, column, .. } = self.cursor();
        let mut first = row;
        while first > 0 && self.runs_over(first - 1) {
            first -= 1;
        }
        let mut text = String::new();
        for above in first..row {
            text.extend(self.row(above).into_iter().map(|cell| cell.text));
        }
        text.extend(self.row(row).into_iter().take(column).map(|cell| cell.text));
        let skip = text.chars().count().saturating_sub(max);
        text.chars().skip(skip).collect()
    }
}

/// Neighbouring ones that are there, each run with the place of its first one.
fn runs(cells: impl Iterator<Item = Option<String>>) -> Vec<(usize, String)> {
    let mut runs: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (column, cell) in cells.enumerate() {
        let goes_on = open;
        open = cell.is_some();
        match (cell, runs.last_mut()) {
            (Some(text), Some((_, run))) if goes_on => run.push_str(&text),
            (Some(text), _) => runs.push((column, text)),
            (None, _) => {}
        }
    }
    runs
}
