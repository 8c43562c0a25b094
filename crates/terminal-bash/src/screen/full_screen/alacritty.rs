//! [`FullScreen`] by Alacritty's terminal.

use alacritty_terminal::{
    event::VoidListener,
    grid::Dimensions,
    index::{Column, Line},
    term::{
        Config, Term, TermMode,
        cell::{Cell as TermCell, Flags},
    },
    vte::ansi::{Processor, Timeout},
};
use unicode_width::UnicodeWidthChar as _;

use super::{Cell, Cursor, FullScreen, paint, runs};

/// Combining marks that one cell keeps.
const MARKS: usize = 8;

/// A terminal without scrollback.
pub(in crate::screen) struct AlacrittyScreen {
    term: Term<VoidListener>,
    parser: Processor<Immediately>,
}

impl AlacrittyScreen {
    /// An empty window.
    pub(in crate::screen) fn new(rows: u16, columns: u16) -> Self {
        let config = Config { scrolling_history: 0, ..Config::default() };
        let mut screen = Self {
            term: Term::new(config, &Size { rows, columns }, VoidListener),
            parser: Processor::new(),
        };
        // On its own alternate screen it neither keeps what scrolls out nor breaks lines anew.
        screen.parser.advance(&mut screen.term, b"\x1b[?1049h");
        screen
    }

    fn mark(&mut self, mark: char) {
        let cursor = &self.term.grid().cursor;
        let before = usize::from(!cursor.input_needs_wrap);
        let row = &self.term.grid()[cursor.point.line];
        let mut column = cursor.point.column.0.saturating_sub(before);
        if row[Column(column)].flags.contains(Flags::WIDE_CHAR_SPACER) {
            column = column.saturating_sub(1);
        }
        if row[Column(column)].zerowidth().is_none_or(|marks| marks.len() < MARKS) {
            self.parser.advance(&mut self.term, mark.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

impl std::fmt::Debug for AlacrittyScreen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AlacrittyScreen").finish_non_exhaustive()
    }
}

impl FullScreen for AlacrittyScreen {
    fn feed(&mut self, bytes: &[u8]) {
        // Marks can be piled on one cell without end.
        if let Ok(text) = std::str::from_utf8(bytes)
            && !text.is_ascii()
        {
            let mut plain = 0;
            for (at, c) in text.char_indices().filter(|(_, c)| c.width() == Some(0)) {
                self.parser.advance(&mut self.term, &bytes[plain..at]);
                self.mark(c);
                plain = at + c.len_utf8();
            }
            self.parser.advance(&mut self.term, &bytes[plain..]);
        } else {
            self.parser.advance(&mut self.term, bytes);
        }
    }

    fn resize(&mut self, rows: u16, columns: u16) {
        self.term.resize(Size { rows, columns });
    }

    fn cursor(&self) -> Cursor {
        let cursor = &self.term.grid().cursor;
        Cursor {
            row: usize::try_from(cursor.point.line.0).unwrap_or(0),
            column: cursor.point.column.0 + usize::from(cursor.input_needs_wrap),
            visible: self.term.mode().contains(TermMode::SHOW_CURSOR),
        }
    }

    fn row(&self, row: usize) -> Vec<Cell> {
        let cells = self.cells(row).map(|cell| Cell {
            text: written(cell).collect(),
            reverse: cell.flags.contains(Flags::INVERSE),
            bold: cell.flags.contains(Flags::BOLD),
            underline: cell.flags.intersects(Flags::ALL_UNDERLINES),
        });
        cells.collect()
    }

    fn text(&self, row: usize) -> String {
        let mut text = String::with_capacity(self.term.columns());
        text.extend(self.cells(row).flat_map(written));
        text.truncate(text.trim_end().len());
        text
    }

    fn reversed(&self, row: usize) -> Vec<(usize, String)> {
        let cells = self.cells(row);
        let text = |cell: &TermCell| written(cell).collect();
        runs(cells.map(|it| it.flags.contains(Flags::INVERSE).then(|| text(it))))
    }

    fn paint(&self, margins: Option<(u16, u16)>, out: &mut Vec<u8>) {
        paint::paint(&self.term, margins, out);
    }

    fn runs_over(&self, row: usize) -> bool {
        let Some(line) = self.line(row) else { return false };
        self.term.grid()[line][self.term.last_column()].flags.contains(Flags::WRAPLINE)
    }
}

/// What is written in a cell; nothing in one that only makes room for a wide character.
pub(super) fn written(cell: &TermCell) -> impl Iterator<Item = char> {
    let spacer = Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER;
    // A tab that was jumped over is kept as such, and seen as a blank.
    let character = if cell.c == '\t' { ' ' } else { cell.c };
    let marks = cell.zerowidth().into_iter().flatten().copied();
    let is_text = !cell.flags.intersects(spacer);
    is_text.then_some(character).into_iter().chain(marks.filter(move |_| is_text))
}

impl AlacrittyScreen {
    /// The cells of a row, from the left.
    fn cells(&self, row: usize) -> impl Iterator<Item = &TermCell> {
        let cells = self.line(row).map(|line| &self.term.grid()[line]);
        cells
            .into_iter()
            .flat_map(|cells| (0..self.term.columns()).map(move |column| &cells[Column(column)]))
    }

    fn line(&self, row: usize) -> Option<Line> {
        (row < self.term.screen_lines()).then(|| Line(i32::try_from(row).unwrap_or(0)))
    }
}

struct Size {
    rows: u16,
    columns: u16,
}

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        usize::from(self.rows)
    }

    fn screen_lines(&self) -> usize {
        usize::from(self.rows)
    }

    fn columns(&self) -> usize {
        usize::from(self.columns)
    }
}

/// Synchronised updates are shown as they come: there is no clock to end one that is never ended.
#[derive(Debug, Default)]
struct Immediately;

impl Timeout for Immediately {
    fn set_timeout(&mut self, _: std::time::Duration) {}

    fn clear_timeout(&mut self) {}

    fn pending_timeout(&self) -> bool {
        false
    }
}
