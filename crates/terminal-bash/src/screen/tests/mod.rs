//! Tests of the screen: tables of small streams, properties, recorded sessions.

mod full_screen;
mod highlights;
mod picture;
mod properties;
mod reading;
mod recorded;
mod repair;
mod tables;
mod tmux;
mod vttest;
mod xterm;

use super::{Screen, ScreenConfig, ScreenEvent};

/// A window of the default size.
const CONFIG: ScreenConfig =
    ScreenConfig { rows: 40, cols: 160, max_lines: 10_000, max_bytes: 4 << 20 };

fn config(rows: u16, cols: u16) -> ScreenConfig {
    ScreenConfig { rows, cols, ..CONFIG }
}

fn fed(config: ScreenConfig, bytes: &[u8]) -> (Screen, Vec<ScreenEvent>) {
    let mut screen = Screen::new(config);
    let mut events = Vec::new();
    screen.feed(bytes, &mut events);
    (screen, events)
}

/// All lines that can be read.
fn text(screen: &Screen) -> String {
    screen.page(0, u64::MAX, usize::MAX).text
}

/// The lines that `bytes` show.
fn shown(config: ScreenConfig, bytes: impl AsRef<[u8]>) -> String {
    text(&fed(config, bytes.as_ref()).0)
}
