//! What a terminal shows at one moment, as plain data. Rows and columns are counted from 0.

/// The visible window of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScreenSnapshot {
    /// The text of every row, from the top, without the blanks at its end.
    pub rows: Vec<String>,
    /// Columns of the window.
    pub columns: u16,
    /// Where the cursor is.
    pub cursor: ScreenCursor,
    /// What the program calls its window; empty when it never said.
    pub title: String,
    /// The alternate screen is shown: a full-screen program draws it.
    pub alternate: bool,
    /// What the program asked of keys and mouse.
    pub modes: ScreenModes,
    /// What is shown with foreground and background exchanged, from the top: by most programs, what
    /// is selected. Empty where the backend cannot tell.
    pub highlights: Vec<Highlight>,
}

/// Where the cursor is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScreenCursor {
    /// Row of the window.
    pub row: u16,
    /// Column of the window.
    pub column: u16,
    /// The program lets it be seen.
    pub visible: bool,
}

/// Which reports of the mouse a program asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MouseReports {
    /// None: the mouse is the terminal's own.
    #[default]
    Off,
    /// Presses alone (mode 9).
    Presses,
    /// Presses and releases, perhaps also moves (modes 1000, 1002, 1003).
    Buttons,
}

/// What a program asked of keys and mouse.
#[expect(clippy::struct_excessive_bools, reason = "independent modes of a terminal")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScreenModes {
    /// Cursor keys send application sequences (DECCKM).
    pub cursor_keys: bool,
    /// The keypad sends application sequences (DECKPAM).
    pub keypad: bool,
    /// Pastes are bracketed (mode 2004).
    pub bracketed_paste: bool,
    /// Reports of the mouse.
    pub mouse: MouseReports,
    /// They are written in decimal (mode 1006), so that every cell can be told.
    pub mouse_decimal: bool,
}

/// Neighbouring cells of one row that are shown in reverse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Highlight {
    /// Row of the window.
    pub row: u16,
    /// Column of the first cell.
    pub column: u16,
    /// What is written there.
    pub text: String,
}

impl ScreenSnapshot {
    /// Tells one content from another: rows, size, cursor, title, buffer and highlights. The same on
    /// every machine and in every run.
    pub fn hash(&self) -> u64 {
        let ScreenCursor { row, column, visible } = self.cursor;
        let mut hash = Fnv::default();
        for text in &self.rows {
            hash.text(text);
        }
        hash.number(self.columns);
        hash.number(row);
        hash.number(column);
        hash.number(u16::from(visible) + 2 * u16::from(self.alternate));
        hash.text(&self.title);
        for Highlight { row, column, text } in &self.highlights {
            hash.number(*row);
            hash.number(*column);
            hash.text(text);
        }
        hash.0
    }

    /// A hash of each row, its highlights included.
    pub fn row_hashes(&self) -> Vec<u64> {
        let rows = self.rows.iter().zip(0_u16..);
        rows.map(|(text, row)| {
            let mut hash = Fnv::default();
            hash.text(text);
            for it in self.highlights.iter().filter(|it| it.row == row) {
                hash.number(it.column);
                hash.text(&it.text);
            }
            hash.0
        })
        .collect()
    }

    /// The rows down to the last one with text, joined by newlines.
    pub fn text(&self) -> String {
        let used = self.rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
        self.rows[..used].join("\n")
    }
}

/// The hash of Fowler, Noll and Vo, variant 1a: small, and the same everywhere.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }

    /// The end is marked by a byte that no UTF-8 text has.
    fn text(&mut self, text: &str) {
        text.bytes().chain([0xff]).for_each(|byte| self.byte(byte));
    }

    fn number(&mut self, number: u16) {
        number.to_le_bytes().into_iter().for_each(|byte| self.byte(byte));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rows: &[&str]) -> ScreenSnapshot {
        ScreenSnapshot {
            rows: rows.iter().map(|it| (*it).to_owned()).collect(),
            columns: 80,
            ..ScreenSnapshot::default()
        }
    }

    #[test]
    fn the_hash_is_of_what_is_shown() {
        let one = shown(&["ab", "c", ""]);
        assert_eq!(one.hash(), 0x7774_2827_218e_a26f, "it is stable");
        let cursor = ScreenCursor { row: 1, ..ScreenCursor::default() };
        let highlights = vec![Highlight { row: 0, column: 0, text: "a".to_owned() }];
        for other in [
            shown(&["a", "bc", ""]),
            shown(&["ab", "c"]),
            ScreenSnapshot { columns: 81, ..one.clone() },
            ScreenSnapshot { cursor, ..one.clone() },
            ScreenSnapshot { alternate: true, ..one.clone() },
            ScreenSnapshot { title: "t".to_owned(), ..one.clone() },
            ScreenSnapshot { highlights, ..one.clone() },
        ] {
            assert_ne!(other.hash(), one.hash(), "{other:?}");
        }
        let modes = ScreenModes { cursor_keys: true, ..ScreenModes::default() };
        assert_eq!(ScreenSnapshot { modes, ..one.clone() }.hash(), one.hash());
    }

    #[test]
    fn a_row_changes_with_its_text_and_its_highlights_alone() {
        let one = shown(&["ab", "c"]);
        let mut two = shown(&["ab", "d"]);
        assert_eq!(one.row_hashes()[0], two.row_hashes()[0]);
        assert_ne!(one.row_hashes()[1], two.row_hashes()[1]);
        two.highlights = vec![Highlight { row: 0, column: 1, text: "b".to_owned() }];
        assert_ne!(one.row_hashes()[0], two.row_hashes()[0]);
        assert_eq!(shown(&["a", "", "b", ""]).text(), "a\n\nb");
    }
}
