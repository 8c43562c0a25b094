//! The screen: bytes a terminal program wrote → the logical lines a person would have seen.
//!
//! It owns the text of one session: the visible window, the lines that scrolled out of it, and what
//! is known of the terminal's modes. It is pure: no operating system, no clock, no task.
//!
//! Guarantees:
//! - Text, events and counters never depend on how the bytes were cut into calls of
//!   [`Screen::feed`] (only how early the oldest line is dropped at a bound does).
//! - No input panics, and none makes it grow beyond the bounds of [`ScreenConfig`] and the size of
//!   the window.
//! - Lines have absolute numbers, counted from 0 since the session began.
//! - The main text is untouched by what is drawn on the alternate screen, which a grid of cells
//!   keeps ([`FullScreen`]).

mod control;
mod full_screen;
mod grid;
mod history;
mod parser;
mod pen;
mod picture;
mod position;
mod reverse;
mod row;
mod shown;
mod view;

#[cfg(test)]
mod tests;

use std::sync::OnceLock;

pub use full_screen::{Cell, Cursor, FullScreen};
use grid::Grid;
pub use history::Chunk;
use parser::Decoder;
use pen::Pen;
pub use position::{Position, Slice};
use terminal::MouseReports;
pub use view::{Page, Snapshot};

/// Size and bounds of a [`Screen`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenConfig {
    /// Rows of the window; at least 1, more than 1,000 are taken as 1,000.
    pub rows: u16,
    /// Columns of the window; at least 2 (the widest character), more than 4,096 are taken as
    /// 4,096.
    pub cols: u16,
    /// Logical lines that can be read, the unfinished one included.
    pub max_lines: usize,
    /// UTF-8 bytes that can be read, newlines included.
    pub max_bytes: usize,
}

/// What the stream said besides text, in the order of the stream.
///
/// `printed` is [`Screen::printed`] at that point of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScreenEvent {
    /// A properly terminated `OSC 133 ; payload`. Payloads longer than 2,048 bytes are no marks and
    /// are ignored.
    Osc133 {
        /// What follows `133;`, malformed UTF-8 replaced.
        payload: String,
        /// Characters printed before it.
        printed: u64,
    },
    /// Mode 2004 was set or reset; reported each time, also without a change.
    BracketedPaste {
        /// Set?
        on: bool,
        /// Characters printed before it.
        printed: u64,
    },
    /// The alternate screen was entered or left; reported on a change only.
    AlternateScreen {
        /// Entered?
        on: bool,
        /// Characters printed before it.
        printed: u64,
    },
    /// The program asked the terminal something that a terminal answers.
    Query {
        /// What it asked.
        query: Query,
        /// Characters printed before it.
        printed: u64,
    },
}

/// A question to the terminal. Nothing in it repeats received text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// `CSI 5 n`: are you well?
    Status,
    /// `CSI 6 n` or, with `private`, `CSI ? 6 n`: where is the cursor? Both are counted from 1.
    CursorPosition {
        /// Row of the cursor in the window.
        row: u16,
        /// Column of the cursor.
        column: u16,
        /// Asked with `?`, answered with `?`.
        private: bool,
    },
    /// `CSI c` or `ESC Z`: which terminal are you?
    PrimaryAttributes,
    /// `CSI > c`.
    SecondaryAttributes,
    /// `CSI > q`: name and version.
    Version,
    /// `CSI ? mode $ p`: is this private mode set?
    PrivateMode {
        /// Number of the mode.
        mode: u16,
        /// Set or reset, for modes that are known here.
        set: Option<bool>,
    },
    /// `CSI ? u`: flags of the keyboard protocol.
    KeyboardFlags,
    /// `CSI 18 t`: size of the window.
    WindowSize {
        /// Rows.
        rows: u16,
        /// Columns.
        columns: u16,
    },
    /// `OSC 4 ; n ; ?` and the like: what does this colour look like?
    Colour {
        /// Which.
        of: Colour,
        /// The question ended in `BEL`, so the reply does.
        bell: bool,
    },
}

/// A colour that a program may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// `OSC 4`, one of 256.
    Palette(u8),
    /// `OSC 10`.
    Foreground,
    /// `OSC 11`.
    Background,
    /// `OSC 12`.
    Cursor,
}

impl Colour {
    /// The colour that an `OSC` with this payload asks for.
    fn asked(payload: &[u8]) -> Option<Self> {
        match payload {
            b"10;?" => Some(Self::Foreground),
            b"11;?" => Some(Self::Background),
            b"12;?" => Some(Self::Cursor),
            _ => {
                let index = payload.strip_prefix(b"4;")?.strip_suffix(b";?")?;
                std::str::from_utf8(index).ok()?.parse().ok().map(Self::Palette)
            }
        }
    }
}

/// The screen of one session.
#[derive(Debug)]
pub struct Screen {
    decoder: Decoder,
    state: ScreenState,
    /// Where the text ends, once somebody has asked since it changed last.
    end: OnceLock<Position>,
}

/// Everything but the decoder, so that both can be borrowed at once.
#[derive(Debug)]
struct ScreenState {
    config: ScreenConfig,
    main: Grid,
    /// Present while the alternate screen is shown.
    alternate: Option<Box<dyn FullScreen + Send + Sync>>,
    /// What the program calls its window.
    title: String,
    printed: u64,
    line_feeds: u64,
    bracketed_paste: bool,
    input: InputModes,
    pen: Pen,
    /// What it was when the cursor was saved, on the main screen and on the alternate one.
    saved_pens: [Pen; 2],
    /// Scroll region of the alternate screen, as it was asked for.
    alternate_margins: Option<(u16, u16)>,
}

/// What programs asked of keys, mouse and cursor; it does not change what is shown.
#[expect(clippy::struct_excessive_bools, reason = "independent modes of a terminal")]
#[derive(Debug, Default)]
struct InputModes {
    cursor_keys: bool,
    keypad: bool,
    mouse: MouseReports,
    mouse_decimal: bool,
    cursor_hidden: bool,
    /// A program may switch between 80 and 132 columns (mode 40), which clears the window.
    column_switch: bool,
}

impl Screen {
    /// An empty screen; allocates nothing worth mentioning until text arrives.
    pub fn new(config: ScreenConfig) -> Self {
        let config = ScreenConfig {
            rows: config.rows.clamp(1, 1000),
            cols: config.cols.clamp(2, 4096),
            max_lines: config.max_lines.max(1),
            max_bytes: config.max_bytes.max(1),
        };
        Self {
            decoder: Decoder::default(),
            state: ScreenState {
                config,
                main: Grid::new(config.rows, config.cols, config.max_lines, config.max_bytes),
                alternate: None,
                title: String::new(),
                printed: 0,
                line_feeds: 0,
                bracketed_paste: false,
                input: InputModes::default(),
                pen: Pen::default(),
                saved_pens: [Pen::default(); 2],
                alternate_margins: None,
            },
            end: OnceLock::new(),
        }
    }

    /// Applies `bytes` and appends what they said besides text to `events`.
    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<ScreenEvent>) {
        self.end.take();
        self.decoder.feed(bytes, &mut self.state, events);
        self.state.main.enforce_bounds();
    }

    /// The character or sequence that is not finished at the end of what was fed, in short; of a string
    /// sequence only that it is one.
    pub fn unfinished(&self) -> Vec<u8> {
        self.decoder.unfinished()
    }

    /// Rows and columns of the window.
    pub fn size(&self) -> (u16, u16) {
        (self.state.config.rows, self.state.config.cols)
    }

    /// Printable characters so far, those of the alternate screen included.
    pub fn printed(&self) -> u64 {
        self.state.printed
    }

    /// Line feeds so far, those of the alternate screen included.
    pub fn line_feeds(&self) -> u64 {
        self.state.line_feeds
    }

    /// Where the text ends now: the start of the next viewport.
    pub fn end(&self) -> Position {
        self.end.get_or_init(|| position::end(&self.state.main)).clone()
    }

    /// What was shown since `from`, which then moves to the end.
    ///
    /// Deltas of output that only appends concatenate to what [`Screen::since`] gives for the first
    /// position. A line that was rewritten after part of it was delivered is given again whole, on
    /// a line of its own. At most `max_bytes` bytes, the newest.
    pub fn delta(&self, from: &mut Position, max_bytes: usize) -> Slice {
        position::delta(&self.state.main, from, max_bytes)
    }

    /// Everything shown since `from`, at most `max_bytes` bytes, the newest.
    ///
    /// It starts where the delivered text ended, in the middle of a line if need be. Delivered
    /// lines that were rewritten since are given again, whole.
    pub fn since(&self, from: &Position, max_bytes: usize) -> Slice {
        position::since(&self.state.main, from, max_bytes)
    }

    /// [`Screen::since`] and [`Screen::end`] at once.
    pub fn since_to_end(&self, from: &Position, max_bytes: usize) -> (Slice, Position) {
        let (slice, end) = position::since_to_end(&self.state.main, from, max_bytes);
        (slice, self.end.get_or_init(|| end).clone())
    }

    /// `count` lines, of which the newest has `offset` newer lines after it; oldest first, joined
    /// by newlines.
    pub fn page(&self, offset: u64, count: u64, max_bytes: usize) -> Page {
        view::page(&self.state.main, offset, count, max_bytes)
    }

    /// From now on the text that the bounds drop waits for [`Screen::take_dropped`].
    pub fn keep_dropped(&mut self) {
        self.state.main.keep_dropped();
    }

    /// The text that was dropped since the last call: what follows the last chunk is the beginning
    /// of [`Screen::snapshot`]. Without [`Screen::keep_dropped`] always nothing.
    pub fn take_dropped(&mut self) -> Vec<Chunk> {
        self.state.main.take_dropped()
    }

    /// Number of the oldest line that [`Screen::snapshot`] has behind what was dropped.
    pub fn oldest_line(&self) -> u64 {
        self.state.main.history().oldest_line()
    }

    /// All text that can be read; with `behind_dropped` also what the bounds hide already but was
    /// not handed on by [`Screen::take_dropped`].
    pub fn snapshot(&self, behind_dropped: bool) -> Snapshot {
        view::snapshot(&self.state.main, behind_dropped)
    }

    /// Is the alternate screen shown?
    pub fn alternate(&self) -> bool {
        self.state.alternate.is_some()
    }

    /// The alternate screen, while it is shown.
    pub fn full_screen(&self) -> Option<&dyn FullScreen> {
        self.state.alternate.as_deref().map(|screen| screen as &dyn FullScreen)
    }

    /// What the program calls its window; empty when it never said.
    pub fn title(&self) -> &str {
        &self.state.title
    }

    /// Did the program ask for bracketed paste?
    pub fn bracketed_paste(&self) -> bool {
        self.state.bracketed_paste
    }

    /// Column of the cursor on the screen that is shown, from 0.
    pub fn cursor_column(&self) -> usize {
        self.state.cursor().1
    }

    /// Row of the cursor in the window that is shown, from 0.
    pub fn cursor_row(&self) -> usize {
        self.state.cursor().0
    }

    /// Row and column of the cursor in the window that is shown, from 0.
    pub fn cursor_position(&self) -> (usize, usize) {
        self.state.cursor()
    }

    /// Text of the cursor's logical line up to the cursor, at most its last 400 characters.
    pub fn cursor_line(&self) -> String {
        match &self.state.alternate {
            Some(screen) => screen.cursor_line(400),
            None => self.state.main.cursor_line(400),
        }
    }

    /// Puts right what a program that ended badly left behind, as a person would with `reset`, and
    /// says in short words what that was; nothing when nothing differs from a fresh terminal.
    ///
    /// It leaves the alternate screen and resets character sets, scroll region, origin and insert
    /// mode, autowrap, the modes of cursor keys and keypad, mouse reports, colours, and the cursor
    /// that is not shown. Text and bracketed
    /// paste stay. It is meant for the moment after a shell has shown its prompt: when that was
    /// drawn on the alternate screen (or, by a mode that moves the cursor, amid older text), the
    /// cursor's line up to the cursor is shown again below all text, and the cursor is behind it.
    /// What it does is no part of the stream: it gives no events and counts nothing.
    pub fn repair(&mut self) -> Vec<&'static str> {
        self.end.take();
        self.state.repair()
    }

    /// Changes the size of the window. Logical lines keep their text and their numbers.
    pub fn resize(&mut self, rows: u16, cols: u16) {
        self.end.take();
        let (rows, cols) = (rows.clamp(1, 1000), cols.clamp(2, 4096));
        self.state.config.rows = rows;
        self.state.config.cols = cols;
        self.state.main.resize(rows, cols);
        if let Some(alternate) = &mut self.state.alternate {
            alternate.resize(rows, cols);
            self.state.alternate_margins = None;
        }
        self.state.main.enforce_bounds();
    }
}

impl ScreenState {
    /// The main text, while it is shown.
    fn main_mut(&mut self) -> Option<&mut Grid> {
        self.alternate.is_none().then_some(&mut self.main)
    }

    /// Row and column of the cursor in the window that is shown.
    fn cursor(&self) -> (usize, usize) {
        match &self.alternate {
            Some(screen) => {
                let full_screen::Cursor { row, column, .. } = screen.cursor();
                (row, column.min(usize::from(self.config.cols) - 1))
            }
            None => (self.main.cursor_row(), self.main.cursor_column()),
        }
    }
}
