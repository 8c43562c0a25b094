//! What controls and sequences do to the screen.
//!
//! Everything that is not named here (colours, cursor shapes, titles, …) has no effect on text
//! and is ignored. Modes of keys and mouse are only remembered, for [`ScreenState::repair`].

use super::grid::{Grid, Part};
use super::{InputModes, Query, ScreenEvent, ScreenState};

impl ScreenState {
    /// Printable ASCII.
    pub(super) fn print_ascii(&mut self, run: &[u8]) {
        self.printed += run.len() as u64;
        let grid = self.shown_mut();
        if grid.draws_lines() {
            for &byte in run {
                grid.put_char(line_drawing(byte));
            }
        } else {
            grid.put_ascii(run);
        }
    }

    /// As much of `text`, which has no C0 controls, as can be appended to the cursor's row at once;
    /// returns its bytes.
    pub(super) fn print_text(&mut self, text: &str) -> usize {
        let (bytes, characters) = self.shown_mut().append_text(text);
        self.printed += characters;
        bytes
    }

    /// Could [`ScreenState::pass_lines`] take lines now?
    pub(super) fn passes_lines(&self) -> bool {
        self.alternate.is_none() && self.main.passes_lines()
    }

    /// As many lines as can bypass the window from the beginning of `block`, which is printable
    /// ASCII, CR and LF, and is written to its end; returns their bytes.
    pub(super) fn pass_lines(&mut self, block: &[u8]) -> usize {
        let passed = self.main.pass_lines(block);
        self.printed += passed.characters;
        self.line_feeds += passed.lines;
        passed.bytes
    }

    /// One printable character.
    pub(super) fn print_char(&mut self, c: char) {
        self.printed += 1;
        let grid = self.shown_mut();
        match u8::try_from(c) {
            Ok(byte) if grid.draws_lines() => grid.put_char(line_drawing(byte)),
            _ => grid.put_char(c),
        }
    }

    /// A C0 control other than `ESC`.
    pub(super) fn control(&mut self, byte: u8) {
        match byte {
            0x08 => self.shown_mut().backspace(),
            b'\t' => self.shown_mut().tab(1),
            b'\n' | 0x0b | 0x0c => {
                self.line_feeds += 1;
                self.shown_mut().index();
            }
            b'\r' => self.shown_mut().carriage_return(),
            0x0e => self.shown_mut().shift(1),
            0x0f => self.shown_mut().shift(0),
            _ => {}
        }
    }

    /// `ESC` and a final byte, but for those that need events.
    pub(super) fn escape(&mut self, byte: u8) {
        let grid = self.shown_mut();
        match byte {
            b'7' => grid.save_cursor(),
            b'8' => grid.restore_cursor(),
            b'D' => grid.index(),
            b'E' => {
                self.line_feeds += 1;
                let grid = self.shown_mut();
                grid.carriage_return();
                grid.index();
            }
            b'M' => grid.reverse_index(),
            b'=' => self.input.keypad = true,
            b'>' => self.input.keypad = false,
            _ => {}
        }
    }

    /// `RIS`: everything as at the beginning, but the text that was shown stays in the history.
    pub(super) fn reset(&mut self, events: &mut Vec<ScreenEvent>) {
        self.leave_alternate(events);
        if self.bracketed_paste {
            self.set_bracketed_paste(false, events);
        }
        self.input = InputModes::default();
        self.main.soft_reset();
        self.main.clear_window();
        self.main.home();
    }

    pub(super) fn query(&self, query: Query, events: &mut Vec<ScreenEvent>) {
        events.push(ScreenEvent::Query { query, printed: self.printed });
    }

    /// A whole and properly terminated `OSC`.
    pub(super) fn operating_system_command(
        &mut self,
        payload: &[u8],
        events: &mut Vec<ScreenEvent>,
    ) {
        if let Some(mark) = payload.strip_prefix(b"133;") {
            let payload = String::from_utf8_lossy(mark).into_owned();
            events.push(ScreenEvent::Osc133 { payload, printed: self.printed });
        } else if payload == b"10;?" {
            self.query(Query::ForegroundColour, events);
        } else if payload == b"11;?" {
            self.query(Query::BackgroundColour, events);
        }
    }

    fn set_bracketed_paste(&mut self, on: bool, events: &mut Vec<ScreenEvent>) {
        self.bracketed_paste = on;
        if !on {
            // A line editor takes it back when a line was entered.
            self.shown_mut().end_edit();
        }
        events.push(ScreenEvent::BracketedPaste { on, printed: self.printed });
    }

    fn enter_alternate(&mut self, events: &mut Vec<ScreenEvent>) {
        if self.alternate.is_none() {
            let mut grid = Grid::new(self.config.rows, self.config.cols, 0, 0);
            // The cursor stays where it was; what is drawn is kept apart and has no history.
            grid.move_to_row(self.main.cursor_row());
            grid.move_to_column(self.main.cursor_column());
            self.alternate = Some(grid);
            events.push(ScreenEvent::AlternateScreen { on: true, printed: self.printed });
        }
    }

    fn leave_alternate(&mut self, events: &mut Vec<ScreenEvent>) {
        if self.alternate.take().is_some() {
            events.push(ScreenEvent::AlternateScreen { on: false, printed: self.printed });
        }
    }

    /// See [`super::Screen::repair`].
    pub(super) fn repair(&mut self) -> Vec<&'static str> {
        let mut done = Vec::new();
        let alternate = self.alternate.take();
        if alternate.is_some() {
            done.push("left the alternate screen");
        }
        let homed = self.main.repair(&mut done);
        let InputModes { cursor_keys, keypad, mouse } = std::mem::take(&mut self.input);
        let input = [
            (cursor_keys, "reset the cursor keys"),
            (keypad, "reset the keypad"),
            (mouse, "turned mouse reports off"),
        ];
        done.extend(input.iter().filter(|(differs, _)| *differs).map(|(_, words)| *words));
        if let Some(alternate) = alternate {
            self.main.show_below(&alternate.cursor_line(usize::MAX));
        } else if homed && self.main.has_text_below() {
            // Setting these modes put the cursor into the upper left corner, where what follows
            // would be written over what was shown.
            let line = self.main.cursor_line(usize::MAX);
            self.main.show_below(&line);
        }
        self.main.enforce_bounds();
        done
    }

    fn set_private_mode(&mut self, mode: u16, on: bool, events: &mut Vec<ScreenEvent>) {
        match mode {
            1 => self.input.cursor_keys = on,
            9 | 1000..=1003 => self.input.mouse = on,
            66 => self.input.keypad = on,
            6 => {
                let grid = self.shown_mut();
                grid.modes.origin = on;
                grid.home();
            }
            7 => self.shown_mut().modes.autowrap = on,
            47 | 1047 | 1049 if on => {
                if mode == 1049 {
                    self.main.save_cursor();
                }
                self.enter_alternate(events);
            }
            47 | 1047 | 1049 => {
                let shown = self.alternate.is_some();
                self.leave_alternate(events);
                if mode == 1049 && shown {
                    self.main.restore_cursor();
                }
            }
            1048 if on => self.shown_mut().save_cursor(),
            1048 => self.shown_mut().restore_cursor(),
            2004 => self.set_bracketed_paste(on, events),
            _ => {}
        }
    }

    fn private_mode(&self, mode: u16) -> Option<bool> {
        match mode {
            6 => Some(self.shown().modes.origin),
            7 => Some(self.shown().modes.autowrap),
            47 | 1047 | 1049 => Some(self.alternate.is_some()),
            2004 => Some(self.bracketed_paste),
            _ => None,
        }
    }
}

/// Receives the sequences vte took apart.
pub(super) struct Performer<'a> {
    pub(super) screen: &'a mut ScreenState,
    pub(super) events: &'a mut Vec<ScreenEvent>,
}

impl vte::Perform for Performer<'_> {
    fn execute(&mut self, byte: u8) {
        self.screen.control(byte);
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], ignore: bool, byte: u8) {
        let slot = match intermediates {
            b"(" => 0,
            b")" => 1,
            _ => return,
        };
        if !ignore {
            self.screen.shown_mut().select_charset(slot, byte == b'0');
        }
    }

    fn csi_dispatch(
        &mut self,
        parameters: &vte::Params,
        intermediates: &[u8],
        ignore: bool,
        action: char,
    ) {
        if ignore {
            return;
        }
        match intermediates {
            [] => self.sequence(parameters, action),
            b"?" => self.private(parameters, action),
            b">" if action == 'c' => self.screen.query(Query::SecondaryAttributes, self.events),
            b">" if action == 'q' => self.screen.query(Query::Version, self.events),
            b"!" if action == 'p' => {
                self.screen.shown_mut().soft_reset();
                self.screen.input.cursor_keys = false;
                self.screen.input.keypad = false;
            }
            b"?$" if action == 'p' => {
                let mode = parameter(parameters, 0);
                let set = self.screen.private_mode(mode);
                self.screen.query(Query::PrivateMode { mode, set }, self.events);
            }
            _ => {}
        }
    }
}

impl Performer<'_> {
    fn sequence(&mut self, parameters: &vte::Params, action: char) {
        let first = parameter(parameters, 0);
        // An absent count is one; an absent coordinate is the first.
        let count = usize::from(first.max(1));
        let from_zero = |index| usize::from(parameter(parameters, index).max(1) - 1);
        let grid = self.screen.shown_mut();
        match action {
            '@' => grid.insert_columns(count),
            'A' => grid.up(count),
            'B' | 'e' => grid.down(count),
            'C' | 'a' => grid.right(count),
            'D' => grid.left(count),
            'E' => {
                grid.down(count);
                grid.carriage_return();
            }
            'F' => {
                grid.up(count);
                grid.carriage_return();
            }
            'G' | '`' => grid.move_to_column(from_zero(0)),
            'H' | 'f' => grid.move_to(from_zero(0), from_zero(1)),
            'I' => grid.tab(count),
            'J' => {
                if let Some(part) = part(first) {
                    grid.erase_window(part);
                }
            }
            'K' => {
                if let Some(part) = part(first) {
                    grid.erase_line(part);
                }
            }
            'L' => grid.insert_at_cursor(count),
            'M' => grid.remove_at_cursor(count),
            'P' => grid.delete_columns(count),
            'S' => grid.scroll_up(count),
            'T' => grid.scroll_down(count),
            'X' => grid.erase_columns(count),
            'Z' => grid.back_tab(count),
            'b' => {
                let printed = grid.repeat(count);
                self.screen.printed += printed as u64;
            }
            'd' => grid.move_to_row(from_zero(0)),
            'h' | 'l' if parameters.iter().any(|parameter| parameter == [4]) => {
                grid.modes.insert = action == 'h';
            }
            'r' => {
                let bottom = match parameter(parameters, 1) {
                    0 => usize::MAX,
                    row => usize::from(row) - 1,
                };
                grid.set_margins(from_zero(0), bottom);
            }
            's' => grid.save_cursor(),
            'u' => grid.restore_cursor(),
            'c' if first == 0 => self.screen.query(Query::PrimaryAttributes, self.events),
            'n' => self.report(first, false),
            't' if first == 18 => {
                let (rows, columns) = (self.screen.config.rows, self.screen.config.cols);
                self.screen.query(Query::WindowSize { rows, columns }, self.events);
            }
            _ => {}
        }
    }

    fn private(&mut self, parameters: &vte::Params, action: char) {
        match action {
            'h' | 'l' => {
                for parameter in parameters {
                    if let [mode] = *parameter {
                        self.screen.set_private_mode(mode, action == 'h', self.events);
                    }
                }
            }
            'J' => {
                if let Some(part) = part(parameter(parameters, 0)) {
                    self.screen.shown_mut().erase_window(part);
                }
            }
            'K' => {
                if let Some(part) = part(parameter(parameters, 0)) {
                    self.screen.shown_mut().erase_line(part);
                }
            }
            'n' => self.report(parameter(parameters, 0), true),
            'u' => self.screen.query(Query::KeyboardFlags, self.events),
            _ => {}
        }
    }

    fn report(&mut self, what: u16, private: bool) {
        let grid = self.screen.shown();
        let from_one = |at: usize| u16::try_from(at + 1).unwrap_or(u16::MAX);
        let query = match what {
            5 if !private => Query::Status,
            6 => Query::CursorPosition {
                row: from_one(grid.cursor_row()),
                column: from_one(grid.cursor_column()),
                private,
            },
            _ => return,
        };
        self.screen.query(query, self.events);
    }
}

/// A parameter's value; absent is 0.
fn parameter(parameters: &vte::Params, index: usize) -> u16 {
    parameters.iter().nth(index).and_then(|values| values.first().copied()).unwrap_or(0)
}

/// Clearing the scrollback (3) is not done: what was shown stays readable.
fn part(parameter: u16) -> Option<Part> {
    match parameter {
        0 => Some(Part::After),
        1 => Some(Part::Before),
        2 => Some(Part::All),
        _ => None,
    }
}

/// The line drawing set of DEC's terminals.
fn line_drawing(byte: u8) -> char {
    const SET: [char; 31] = [
        '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─',
        '⎼', '⎽', '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
    ];
    byte.checked_sub(0x60)
        .and_then(|index| SET.get(usize::from(index)).copied())
        .unwrap_or(char::from(byte))
}
