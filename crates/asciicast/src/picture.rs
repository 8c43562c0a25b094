//! What was shown at one moment of a recording, as SVG.
//!
//! Alacritty's terminal makes cells of the output; their text, with the colours written as escape
//! sequences again, is drawn by `anstyle-svg`.

use std::{fmt::Write as _, time::Duration};

use alacritty_terminal::{
    event::VoidListener,
    grid::Dimensions,
    index::{Column, Line},
    term::{
        Config, Term,
        cell::{Cell, Flags},
    },
    vte::ansi::{Color as CellColor, NamedColor, Processor, StdSyncHandler},
};
use anstyle::{Ansi256Color, AnsiColor, Color, Effects, RgbColor, Style};

use crate::{EventKind, Recording};

/// Width of a column at the size of the font.
const COLUMN_PX: f64 = 8.4;
/// Most rows and columns that are drawn.
const MOST: u16 = 1000;

/// Draws what was shown `at` this time since the beginning, what happened just then included.
pub fn picture(recording: &Recording, at: Duration) -> String {
    let (mut columns, mut rows) = size(recording.header.columns, recording.header.rows);
    let config = Config { scrolling_history: 0, ..Config::default() };
    let mut term = Term::new(config, &Size { rows, columns }, VoidListener);
    let mut parser: Processor<StdSyncHandler> = Processor::new();
    for event in recording.events.iter().take_while(|event| event.at <= at) {
        match &event.kind {
            EventKind::Output(text) => parser.advance(&mut term, text.as_bytes()),
            EventKind::Resize { columns: to_columns, rows: to_rows } => {
                (columns, rows) = size(*to_columns, *to_rows);
                term.resize(Size { rows, columns });
            }
            _ => {}
        }
    }
    // What a program wanted to be shown at once is shown, though it is not whole.
    parser.stop_sync(&mut term);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few thousand")]
    let width = (f64::from(columns) * COLUMN_PX).ceil() as usize;
    anstyle_svg::Term::new().min_width_px(width).render_svg(&styled(&term, rows, columns))
}

fn size(columns: u16, rows: u16) -> (u16, u16) {
    (columns.clamp(2, MOST), rows.clamp(1, MOST))
}

/// The rows with their colours, as escape sequences.
fn styled(term: &Term<VoidListener>, rows: u16, columns: u16) -> String {
    let mut text = String::new();
    for row in 0..i32::from(rows) {
        let cells = &term.grid()[Line(row)];
        let cells = (0..usize::from(columns)).map(|column| &cells[Column(column)]);
        let mut cells: Vec<&Cell> = cells.filter(|it| !it.flags.intersects(SPACERS)).collect();
        while cells.last().is_some_and(|it| is_blank(it)) {
            cells.pop();
        }
        if row > 0 {
            text.push('\n');
        }
        for run in cells.chunk_by(|one, other| style(one) == style(other)) {
            let style = run.first().map(|it| style(it)).unwrap_or_default();
            write!(text, "{style}").ok();
            for cell in run {
                let hidden = cell.flags.contains(Flags::HIDDEN) || cell.c == '\t';
                text.push(if hidden { ' ' } else { cell.c });
                text.extend(cell.zerowidth().into_iter().flatten());
            }
            write!(text, "{style:#}").ok();
        }
    }
    text
}

/// Cells that only make room for a wide character.
const SPACERS: Flags = Flags::WIDE_CHAR_SPACER.union(Flags::LEADING_WIDE_CHAR_SPACER);

fn is_blank(cell: &Cell) -> bool {
    cell.c == ' ' && style(cell) == Style::new()
}

fn style(cell: &Cell) -> Style {
    let flags = cell.flags;
    let effects = [
        (Flags::BOLD, Effects::BOLD),
        (Flags::DIM, Effects::DIMMED),
        (Flags::ITALIC, Effects::ITALIC),
        (Flags::INVERSE, Effects::INVERT),
        (Flags::STRIKEOUT, Effects::STRIKETHROUGH),
        (Flags::UNDERLINE, Effects::UNDERLINE),
        (Flags::DOUBLE_UNDERLINE, Effects::DOUBLE_UNDERLINE),
        (Flags::UNDERCURL, Effects::CURLY_UNDERLINE),
        (Flags::DOTTED_UNDERLINE, Effects::DOTTED_UNDERLINE),
        (Flags::DASHED_UNDERLINE, Effects::DASHED_UNDERLINE),
    ];
    let effects = effects.iter().filter(|(flag, _)| flags.contains(*flag));
    let effects = effects.fold(Effects::new(), |all, (_, effect)| all | *effect);
    Style::new().fg_color(colour(cell.fg)).bg_color(colour(cell.bg)).effects(effects)
}

/// None for the terminal's own.
fn colour(colour: CellColor) -> Option<Color> {
    match colour {
        CellColor::Spec(rgb) => Some(RgbColor(rgb.r, rgb.g, rgb.b).into()),
        CellColor::Indexed(index) => Some(Ansi256Color(index).into()),
        CellColor::Named(named) => named_colour(named).map(Color::from),
    }
}

fn named_colour(named: NamedColor) -> Option<AnsiColor> {
    Some(match named {
        NamedColor::Black | NamedColor::DimBlack => AnsiColor::Black,
        NamedColor::Red | NamedColor::DimRed => AnsiColor::Red,
        NamedColor::Green | NamedColor::DimGreen => AnsiColor::Green,
        NamedColor::Yellow | NamedColor::DimYellow => AnsiColor::Yellow,
        NamedColor::Blue | NamedColor::DimBlue => AnsiColor::Blue,
        NamedColor::Magenta | NamedColor::DimMagenta => AnsiColor::Magenta,
        NamedColor::Cyan | NamedColor::DimCyan => AnsiColor::Cyan,
        NamedColor::White | NamedColor::DimWhite => AnsiColor::White,
        NamedColor::BrightBlack => AnsiColor::BrightBlack,
        NamedColor::BrightRed => AnsiColor::BrightRed,
        NamedColor::BrightGreen => AnsiColor::BrightGreen,
        NamedColor::BrightYellow => AnsiColor::BrightYellow,
        NamedColor::BrightBlue => AnsiColor::BrightBlue,
        NamedColor::BrightMagenta => AnsiColor::BrightMagenta,
        NamedColor::BrightCyan => AnsiColor::BrightCyan,
        NamedColor::BrightWhite => AnsiColor::BrightWhite,
        NamedColor::Foreground
        | NamedColor::Background
        | NamedColor::Cursor
        | NamedColor::BrightForeground
        | NamedColor::DimForeground => return None,
    })
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
