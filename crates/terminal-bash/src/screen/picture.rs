//! The screen as bytes that paint it on another terminal of its size.
//!
//! Guarantee: what follows in the stream does there what it does here: cursor, margins, character sets,
//! tab stops and the modes that matter for drawing are set, those of the mouse and of pastes are not.
//! Of colours the main screen keeps none.

use super::Screen;

impl Screen {
    /// Paints what is shown, below at most so many `lines` and `bytes` of what has scrolled out of the
    /// window.
    pub fn picture(&self, lines: u64, bytes: u64) -> Vec<u8> {
        let state = &self.state;
        let mut out = b"\x1bc".to_vec();
        let saved = state.saved_pens[0];
        // On the alternate screen the pen is that one's.
        let pen = if state.alternate.is_some() { saved } else { state.pen };
        state.main.paint_history(lines, bytes, &mut out);
        state.main.paint(&saved.sequence(), &pen.sequence(), &mut out);
        if let Some(alternate) = &state.alternate {
            // Nearly always it was entered by the sequence that saves the cursor, too.
            let enter = if state.main.is_where_saved() { "\x1b[?1049h" } else { "\x1b[?47h" };
            out.extend(enter.as_bytes());
            alternate.paint(state.alternate_margins, &mut out);
        }
        let input = &state.input;
        for (differs, sequence) in [
            (input.cursor_keys, "\x1b[?1h"),
            (input.keypad, "\x1b="),
            (!self.cursor().visible, "\x1b[?25l"),
        ] {
            if differs {
                out.extend(sequence.as_bytes());
            }
        }
        out
    }
}

/// Puts the cursor to a row and a column, from 0.
pub(super) fn move_to(row: usize, column: usize, out: &mut Vec<u8>) {
    out.extend(format!("\x1b[{};{}H", row + 1, column + 1).into_bytes());
}
