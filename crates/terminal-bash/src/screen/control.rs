//! What controls and sequences do to the screen.
//!
//! Everything that is not named here (cursor shapes, …) has no effect on text and is ignored.
//! Colours and modes of keys and mouse are only remembered, for [`ScreenState::repair`]; of attributes
//! the text keeps what is shown in reverse.

use super::full_screen::{AlacrittyScreen, FullScreen};
use super::grid::Part;
use super::pen::Pen;
use super::{Colour, InputModes, Query, ScreenEvent, ScreenState};
use terminal::MouseReports;

impl ScreenState {
    /// Printable ASCII.
    pub(super) fn print_ascii(&mut self, run: &[u8]) {
        self.printed += run.len() as u64;
        if let Some(screen) = &mut self.alternate {
            return screen.feed(run);
        }
        let grid = &mut self.main;
        grid.reverse = self.pen.reverse();
        if grid.draws_lines() {
            for &byte in run {
                grid.put_char(line_drawing(byte));
            }
        } else {
            grid.put_ascii(run);
        }
    }

    /// As much of `text`, which has no C0 controls, as can be written at once; returns its bytes.
    pub(super) fn print_text(&mut self, text: &str) -> usize {
        let (bytes, characters) = if let Some(screen) = &mut self.alternate {
            let end = text.find(char::is_control).unwrap_or(text.len());
            screen.feed(&text.as_bytes()[..end]);
            (end, text[..end].chars().count() as u64)
        } else {
            self.main.reverse = self.pen.reverse();
            self.main.append_text(text)
        };
        self.printed += characters;
        bytes
    }

    /// Is the alternate screen shown?
    pub(super) fn draws_cells(&self) -> bool {
        self.alternate.is_some()
    }

    /// Could [`ScreenState::pass_lines`] take lines now?
    pub(super) fn passes_lines(&self) -> bool {
        self.alternate.is_none() && self.main.passes_lines()
    }

    /// As many lines as can bypass the window from the beginning of `block`, which is text, CR and
    /// LF, and is written to its end; returns their bytes.
    pub(super) fn pass_lines(&mut self, block: &[u8]) -> usize {
        let passed = self.main.pass_lines(block);
        self.printed += passed.characters;
        self.line_feeds += passed.lines;
        passed.bytes
    }

    /// One printable character.
    pub(super) fn print_char(&mut self, c: char) {
        self.printed += 1;
        if let Some(screen) = &mut self.alternate {
            return screen.feed(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        let grid = &mut self.main;
        grid.reverse = self.pen.reverse();
        match u8::try_from(c) {
            Ok(byte) if grid.draws_lines() => grid.put_char(line_drawing(byte)),
            _ => grid.put_char(c),
        }
    }

    /// A C0 control other than `ESC`.
    pub(super) fn control(&mut self, byte: u8) {
        let feeds = matches!(byte, b'\n' | 0x0b | 0x0c);
        self.line_feeds += u64::from(feeds);
        if let Some(screen) = &mut self.alternate {
            return screen.feed(&[byte]);
        }
        let grid = &mut self.main;
        match byte {
            0x08 => grid.backspace(),
            b'\t' => grid.tab(1),
            _ if feeds => grid.index(),
            b'\r' => grid.carriage_return(),
            0x0e => grid.shift(1),
            0x0f => grid.shift(0),
            _ => {}
        }
    }

    /// Colours and attributes, by the parameters as they are written.
    pub(super) fn set_pen(&mut self, parameters: &[u8]) {
        self.pen.apply_text(parameters);
    }

    fn save_pen(&mut self) {
        self.saved_pens[usize::from(self.alternate.is_some())] = self.pen;
    }

    fn restore_pen(&mut self) {
        self.pen = self.saved_pens[usize::from(self.alternate.is_some())];
    }

    /// `ESC` and a final byte, but for those that need events.
    pub(super) fn escape(&mut self, byte: u8) {
        match byte {
            b'7' => self.save_pen(),
            b'8' => self.restore_pen(),
            b'=' => self.input.keypad = true,
            b'>' => self.input.keypad = false,
            b'E' => self.line_feeds += 1,
            _ => {}
        }
        if let Some(screen) = &mut self.alternate {
            return screen.feed(&[0x1b, byte]);
        }
        let grid = &mut self.main;
        match byte {
            b'7' => grid.save_cursor(),
            b'8' => grid.restore_cursor(),
            b'D' => grid.index(),
            b'E' => {
                grid.carriage_return();
                grid.index();
            }
            b'H' => grid.set_tab_stop(),
            b'M' => grid.reverse_index(),
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
        self.pen = Pen::default();
        self.main.soft_reset();
        self.main.reset_tab_stops();
        self.main.clear_window();
        self.main.home();
    }

    pub(super) fn query(&self, query: Query, events: &mut Vec<ScreenEvent>) {
        events.push(ScreenEvent::Query { query, printed: self.printed });
    }

    /// A whole and properly terminated `OSC`; `bell` tells by which of its two ends.
    pub(super) fn operating_system_command(
        &mut self,
        payload: &[u8],
        bell: bool,
        events: &mut Vec<ScreenEvent>,
    ) {
        if let Some(mark) = payload.strip_prefix(b"133;") {
            let payload = String::from_utf8_lossy(mark).into_owned();
            events.push(ScreenEvent::Osc133 { payload, printed: self.printed });
        } else if let Some(title) =
            payload.strip_prefix(b"0;").or_else(|| payload.strip_prefix(b"2;"))
        {
            self.title = String::from_utf8_lossy(title).into_owned();
        } else if let Some(of) = Colour::asked(payload) {
            self.query(Query::Colour { of, bell }, events);
        }
    }

    fn set_bracketed_paste(&mut self, on: bool, events: &mut Vec<ScreenEvent>) {
        self.bracketed_paste = on;
        if !on {
            // A line editor takes it back when a line was entered.
            if let Some(grid) = self.main_mut() {
                grid.end_edit();
            }
        }
        events.push(ScreenEvent::BracketedPaste { on, printed: self.printed });
    }

    fn enter_alternate(&mut self, events: &mut Vec<ScreenEvent>) {
        if self.alternate.is_none() {
            let mut screen = AlacrittyScreen::new(self.config.rows, self.config.cols);
            // The cursor stays where it was.
            let (row, column) = (self.main.cursor_row() + 1, self.main.cursor_column() + 1);
            screen.feed(format!("\x1b[{row};{column}H").as_bytes());
            self.alternate = Some(Box::new(screen));
            self.alternate_margins = None;
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
        let InputModes { cursor_keys, keypad, mouse, cursor_hidden, .. } =
            std::mem::take(&mut self.input);
        let input = [
            (cursor_keys, "reset the cursor keys"),
            (keypad, "reset the keypad"),
            (mouse != MouseReports::Off, "turned mouse reports off"),
            (cursor_hidden, "showed the cursor again"),
            (std::mem::take(&mut self.pen) != Pen::default(), "reset the colours"),
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
            9 | 1000..=1003 => self.input.set_mouse(mode, on),
            1006 => self.input.mouse_decimal = on,
            25 => self.input.cursor_hidden = !on,
            66 => self.input.keypad = on,
            40 => self.input.column_switch = on,
            3 if self.input.column_switch => {
                // The number of columns stays, but what else the switch does is done.
                if let Some(grid) = self.main_mut() {
                    grid.set_margins(0, usize::MAX);
                    grid.clear_window();
                    grid.home();
                }
            }
            6 => {
                if let Some(screen) = &mut self.alternate {
                    // The grid does so only when it is set.
                    screen.feed(b"\x1b[H");
                } else {
                    self.main.modes.origin = on;
                    self.main.home();
                }
            }
            7 => {
                if let Some(grid) = self.main_mut() {
                    grid.modes.autowrap = on;
                }
            }
            47 | 1047 | 1049 if on => {
                if mode == 1049 {
                    self.save_pen();
                    self.main.save_cursor();
                }
                self.enter_alternate(events);
            }
            47 | 1047 | 1049 => {
                let shown = self.alternate.is_some();
                self.leave_alternate(events);
                if mode == 1049 && shown {
                    self.restore_pen();
                    self.main.restore_cursor();
                }
            }
            1048 => self.escape(if on { b'7' } else { b'8' }),
            2004 => self.set_bracketed_paste(on, events),
            _ => {}
        }
    }

    fn private_mode(&self, mode: u16) -> Option<bool> {
        match mode {
            6 | 7 if self.alternate.is_some() => None,
            6 => Some(self.main.modes.origin),
            7 => Some(self.main.modes.autowrap),
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
        if ignore {
            return;
        }
        if let Some(screen) = &mut self.screen.alternate {
            return screen.feed(&[&[0x1b], intermediates, &[byte]].concat());
        }
        let grid = &mut self.screen.main;
        match intermediates {
            b"(" => grid.select_charset(0, byte == b'0'),
            b")" => grid.select_charset(1, byte == b'0'),
            b"#" if byte == b'8' => grid.alignment_test(),
            _ => {}
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
        if let Some(screen) = &mut self.screen.alternate {
            screen.feed(&sequence(parameters, intermediates, action));
        }
        match intermediates {
            [] => self.sequence(parameters, action),
            b"?" => self.private(parameters, action),
            b">" if action == 'c' => self.screen.query(Query::SecondaryAttributes, self.events),
            b">" if action == 'q' => self.screen.query(Query::Version, self.events),
            b"!" if action == 'p' => {
                if let Some(grid) = self.screen.main_mut() {
                    grid.soft_reset();
                }
                self.screen.input.cursor_keys = false;
                self.screen.input.keypad = false;
                self.screen.input.cursor_hidden = false;
                self.screen.pen = Pen::default();
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
        match action {
            'c' if first == 0 => return self.screen.query(Query::PrimaryAttributes, self.events),
            'n' => return self.report(first, false),
            't' if first == 18 => {
                let (rows, columns) = (self.screen.config.rows, self.screen.config.cols);
                return self.screen.query(Query::WindowSize { rows, columns }, self.events);
            }
            'm' => {
                let codes =
                    parameters.iter().map(|it| (it.first().copied().unwrap_or(0), it.len() > 1));
                self.screen.pen.apply(codes);
            }
            's' => self.screen.save_pen(),
            'u' => self.screen.restore_pen(),
            'r' if self.screen.alternate.is_some() => {
                let last = match parameter(parameters, 1) {
                    0 => self.screen.config.rows,
                    last => last,
                };
                if first.max(1) < last {
                    self.screen.alternate_margins = Some((first.max(1), last));
                }
            }
            'b' if self.screen.alternate.is_some() => {
                self.screen.printed += u64::from(first.max(1));
            }
            _ => {}
        }
        let reverse = self.screen.pen.reverse();
        let Some(grid) = self.screen.main_mut() else { return };
        // An absent count is one; an absent coordinate is the first.
        let count = usize::from(first.max(1));
        let from_zero = |index| usize::from(parameter(parameters, index).max(1) - 1);
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
                grid.reverse = reverse;
                let printed = grid.repeat(count);
                self.screen.printed += printed as u64;
            }
            'd' => grid.move_to_row(from_zero(0)),
            'g' => match first {
                0 => grid.clear_tab_stop(),
                3 => grid.clear_tab_stops(),
                _ => {}
            },
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
            'J' | 'K' => {
                if let Some(part) = part(parameter(parameters, 0))
                    && let Some(grid) = self.screen.main_mut()
                {
                    if action == 'J' { grid.erase_window(part) } else { grid.erase_line(part) }
                }
            }
            'W' if parameter(parameters, 0) == 5 => {
                if let Some(grid) = self.screen.main_mut() {
                    grid.reset_tab_stops();
                }
            }
            'n' => self.report(parameter(parameters, 0), true),
            'u' => self.screen.query(Query::KeyboardFlags, self.events),
            _ => {}
        }
    }

    fn report(&mut self, what: u16, private: bool) {
        let (row, column) = self.screen.cursor();
        let from_one = |at: usize| u16::try_from(at + 1).unwrap_or(u16::MAX);
        let query = match what {
            5 if !private => Query::Status,
            6 => Query::CursorPosition { row: from_one(row), column: from_one(column), private },
            _ => return,
        };
        self.screen.query(query, self.events);
    }
}

/// The sequence as it came, its numbers bounded.
fn sequence(parameters: &vte::Params, intermediates: &[u8], action: char) -> Vec<u8> {
    // Nothing needs more, and repeating what does costs as much as the number says.
    const MOST: u16 = 9999;
    let private = intermediates.iter().filter(|byte| (0x3c..=0x3f).contains(*byte));
    let mut bytes: Vec<u8> = b"\x1b[".iter().chain(private).copied().collect();
    for (index, values) in parameters.iter().enumerate() {
        if index > 0 {
            bytes.push(b';');
        }
        let values: Vec<String> = values.iter().map(|value| value.min(&MOST).to_string()).collect();
        bytes.extend(values.join(":").as_bytes());
    }
    bytes.extend(intermediates.iter().filter(|byte| (0x20..=0x2f).contains(*byte)));
    bytes.extend(action.encode_utf8(&mut [0; 4]).as_bytes());
    bytes
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
