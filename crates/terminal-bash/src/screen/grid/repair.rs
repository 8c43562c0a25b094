//! What a program that ended badly left behind, put right.
//!
//! Guarantees: no text that is shown is changed or lost.

use super::{Grid, Modes};

impl Grid {
    /// Resets modes, margins and character sets, and appends what differed to `done`. Was it
    /// something that moves the cursor to the corner when it is set?
    pub(in crate::screen) fn repair(&mut self, done: &mut Vec<&'static str>) -> bool {
        let region = (self.top, self.bottom) != (0, self.rows - 1);
        let Modes { autowrap, insert, origin } = self.modes;
        let differs = [
            (self.graphics != [false; 2] || self.shift != 0, "reset the character set"),
            (region, "reset the scroll region"),
            (origin, "reset origin mode"),
            (insert, "left insert mode"),
            (!autowrap, "turned line wrapping on"),
        ];
        done.extend(differs.iter().filter(|(differs, _)| *differs).map(|(_, words)| *words));
        let saved = self.saved;
        self.soft_reset();
        // Where the cursor was saved is no fault; coming back must not bring one back.
        self.saved.row = saved.row;
        self.saved.column = saved.column;
        region || origin
    }

    /// Is anything written in the rows below the cursor's?
    pub(in crate::screen) fn has_text_below(&self) -> bool {
        self.lines.range(self.row + 1..).any(|row| !row.is_empty())
    }

    /// Writes `text` on a line of its own, which is the last one.
    pub(in crate::screen) fn show_below(&mut self, text: &str) {
        if let Some(last) = self.lines.iter().rposition(|row| !row.is_empty())
            && last >= self.row
        {
            self.go(last);
            self.carriage_return();
            self.index();
        }
        self.part_before(self.row);
        self.carriage_return();
        for c in text.chars() {
            self.put_char(c);
        }
    }
}
