//! The visible window as it is at one moment, of either screen.
//!
//! Guarantee: it costs what the window costs, whatever the history holds.

use terminal::{Highlight, MouseReports, ScreenCursor, ScreenModes, ScreenSnapshot};

use super::{Screen, full_screen::Cursor, view::into_text};

impl Screen {
    /// What is shown now.
    pub fn shown(&self) -> ScreenSnapshot {
        let state = &self.state;
        let rows = usize::from(state.config.rows);
        let mut shown = ScreenSnapshot {
            rows: Vec::with_capacity(rows),
            columns: state.config.cols,
            cursor: self.cursor(),
            title: state.title.clone(),
            alternate: self.alternate(),
            modes: self.modes(),
            highlights: Vec::new(),
        };
        let Some(full) = &state.alternate else {
            for (at, row) in state.main.rows().enumerate() {
                let mut text = Vec::new();
                row.append_to(&mut text);
                shown.rows.push(without_end(into_text(text)));
                for span in row.reversed() {
                    let mut text = Vec::new();
                    row.append_columns(span.clone(), &mut text);
                    shown.highlights.push(highlight(at, span.start, into_text(text)));
                }
            }
            shown.rows.resize(rows, String::new());
            return shown;
        };
        for row in 0..rows {
            shown.rows.push(full.text(row));
            let reversed = full.reversed(row).into_iter();
            shown.highlights.extend(reversed.map(|(column, text)| highlight(row, column, text)));
        }
        shown
    }

    /// What the program asked of keys and mouse.
    pub fn modes(&self) -> ScreenModes {
        let input = &self.state.input;
        ScreenModes {
            cursor_keys: input.cursor_keys,
            keypad: input.keypad,
            bracketed_paste: self.state.bracketed_paste,
            mouse: input.mouse,
            mouse_decimal: input.mouse_decimal,
        }
    }

    pub(super) fn cursor(&self) -> ScreenCursor {
        let (row, column) = self.state.cursor();
        let visible = match &self.state.alternate {
            Some(full) => {
                let Cursor { visible, .. } = full.cursor();
                visible
            }
            None => true,
        };
        ScreenCursor {
            row: number(row),
            column: number(column),
            visible: visible && !self.state.input.cursor_hidden,
        }
    }
}

impl super::InputModes {
    /// Sets or resets what a mouse mode asks for.
    pub(super) fn set_mouse(&mut self, mode: u16, on: bool) {
        self.mouse = match (on, mode) {
            (false, _) => MouseReports::Off,
            (true, 9) => MouseReports::Presses,
            (true, _) => MouseReports::Buttons,
        };
    }
}

fn highlight(row: usize, column: usize, text: String) -> Highlight {
    Highlight { row: number(row), column: number(column), text }
}

/// A row without the blanks at its end.
fn without_end(mut row: String) -> String {
    row.truncate(row.trim_end().len());
    row
}

/// No window has more rows or columns.
fn number(at: usize) -> u16 {
    u16::try_from(at).unwrap_or(u16::MAX)
}
