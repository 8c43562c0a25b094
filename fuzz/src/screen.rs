//! Any bytes, in any reads, with any size of the window and any bounds: nothing panics, nothing
//! exceeds its bounds, and the text does not depend on the reads.
//!
//! `cargo run --release --bin screen -- corpus -max_total_time=600 -max_len=4096`, in this folder.
//! What it finds becomes a test of the screen.
#![no_main]

use libfuzzer_sys::fuzz_target;
use terminal_bash::screen::{Position, Screen, ScreenConfig, ScreenEvent};

const ALL: usize = usize::MAX;

fuzz_target!(|input: &[u8]| {
    let Some(([rows, cols, lines, bytes, read, size], stream)) = input.split_first_chunk() else {
        return;
    };
    let config = ScreenConfig {
        rows: u16::from(*rows % 50 + 1),
        cols: u16::from(*cols % 170 + 2),
        max_lines: usize::from(*lines) + 1,
        max_bytes: usize::from(*bytes) * 16 + 1,
    };
    let read = usize::from(*read).max(1);
    bounds(config, stream, read, u16::from(*size));
    reads(ScreenConfig { max_lines: 100_000, max_bytes: 1 << 24, ..config }, stream, read);
});

/// Both bounds hold after every read and every change of size.
fn bounds(config: ScreenConfig, stream: &[u8], read: usize, size: u16) {
    let mut screen = Screen::new(config);
    screen.keep_dropped();
    let mut events = Vec::new();
    let mut positions = vec![Position::default()];
    for (n, part) in stream.chunks(read).enumerate() {
        screen.feed(part, &mut events);
        if n % 3 == 1 {
            screen.resize(size % 31 + 1, (size * 7) % 90 + 2);
        }
        let page = screen.page(0, u64::MAX, ALL);
        assert!(page.text.len() <= config.max_bytes);
        assert!(page.total_lines <= config.max_lines as u64);
        assert!(screen.page(1, 3, 40).text.len() <= 40);
        for position in &mut positions {
            assert!(screen.since(position, 100).text.len() <= 100);
            screen.delta(position, ALL);
            assert_eq!(screen.delta(position, ALL).text, "");
        }
        if n % 8 == 0 {
            positions.push(screen.end());
        }
        follows(&screen.take_dropped(), &screen);
    }
    screen.repair();
    assert!(screen.repair().is_empty());
}

/// What was dropped is followed by what is left, without a gap.
fn follows(dropped: &[terminal_bash::screen::Chunk], screen: &Screen) {
    let rest = screen.snapshot(true);
    let chunks: Vec<_> = dropped.iter().chain(&rest.chunks).collect();
    for pair in chunks.windows(2) {
        let newlines = pair[0].bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        assert_eq!(pair[0].start + pair[0].bytes.len() as u64, pair[1].start);
        assert_eq!(pair[0].line + newlines, pair[1].line);
    }
}

/// Text, events and cursor are those of a single read.
fn reads(config: ScreenConfig, stream: &[u8], read: usize) {
    let (mut whole, mut parts) = (Screen::new(config), Screen::new(config));
    let (mut expected, mut events): (Vec<ScreenEvent>, Vec<ScreenEvent>) = Default::default();
    whole.feed(stream, &mut expected);
    for part in stream.chunks(read) {
        parts.feed(part, &mut events);
    }
    assert_eq!(events, expected);
    assert_eq!(parts.page(0, u64::MAX, ALL), whole.page(0, u64::MAX, ALL));
    assert_eq!(parts.cursor_position(), whole.cursor_position());
    assert_eq!(parts.printed(), whole.printed());
    assert_eq!(parts.title(), whole.title());
    let drawn = |screen: &Screen| {
        let full = screen.full_screen()?;
        Some((0..usize::from(config.rows)).map(|row| full.row(row)).collect::<Vec<_>>())
    };
    assert_eq!(drawn(&parts), drawn(&whole));
}
