//! Any bytes, in any reads, with any size of the window and any bounds: nothing panics, nothing
//! exceeds its bounds, the text does not depend on the reads, and what is read by number or searched
//! for, in memory or in the file behind it, is what was shown.
//!
//! `cargo run --release -- corpus -max_total_time=600 -max_len=4096`, in this folder. What it finds
//! becomes a test of the screen.
#![no_main]

use libfuzzer_sys::fuzz_target;
use terminal::{ReadRequest, SearchRequest};
use terminal_bash::{
    fuzzing::Text,
    screen::{Position, Screen, ScreenConfig, ScreenEvent},
};

/// So much is shown that most of it leaves memory.
const FLOOD: usize = 300_000;
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
    // It costs as much as hundreds of the others.
    if *size % 16 == 0 && !stream.is_empty() {
        floods(config, stream, u64::from(*lines) * 7919);
    }
});

/// Each line of a flood can be read by its number and is found, wherever it is.
fn floods(config: ScreenConfig, stream: &[u8], at: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let entered = runtime.enter();
    let home = std::env::temp_dir().join("fuzzed-transcripts");
    let mut whole = Screen::new(ScreenConfig { max_lines: ALL, max_bytes: ALL, ..config });
    let mut text = Text::new(config, &home, u64::MAX, ALL);
    let mut scant = Text::new(config, &home, 100_000, 500);
    for _ in 0..FLOOD / stream.len() {
        whole.feed(stream, &mut Vec::new());
        text.feed(stream);
        scant.feed(stream);
    }
    let shown = whole.page(0, u64::MAX, ALL);
    let lines: Vec<&str> = match shown.total_lines {
        0 => Vec::new(),
        _ => shown.text.split('\n').collect(),
    };
    let all = text.page(ReadRequest::newest(0, u64::MAX));
    if all.first_line == Some(0) && !lines.is_empty() {
        assert_eq!((all.total_lines, all.truncated), (lines.len() as u64, false));
        assert!(all.text == shown.text);
        let from = at as usize % lines.len();
        let to = lines.len().min(from + 3);
        let page = text.page(ReadRequest::from_line(from as u64, 3));
        assert_eq!((page.first_line, page.truncated), (Some(from as u64), false));
        assert_eq!(page.text, lines[from..to].join("\n"));
        let wanted = lines[from].chars().find(char::is_ascii_alphanumeric).unwrap_or('q');
        let request = SearchRequest { max_matches: u64::MAX, ..SearchRequest::new(wanted) };
        let found = text.search(&request).unwrap();
        let found: Vec<u64> = found.matches.iter().map(|it| it.line).collect();
        let with = |line: &usize| lines[*line].contains(wanted);
        let expected: Vec<u64> =
            (0..lines.len()).rev().filter(with).map(|line| line as u64).collect();
        assert_eq!(found, expected);
    }
    let page = scant.page(ReadRequest::from_line(at % (lines.len() as u64 + 2), 50));
    assert!(page.text.len() <= 500);
    let begin = page.first_line.unwrap() as usize;
    for (line, shown) in page.text.split('\n').zip(lines.iter().skip(begin)) {
        assert!(shown.contains(line), "{line:?} in {shown:?}");
    }
    let found = scant.search(&SearchRequest { context: 2, ..SearchRequest::new(".") }).unwrap();
    assert!(found.matches.len() <= 20);
    for it in found.matches {
        let shown = lines[it.line as usize];
        assert!(shown.contains(it.text.trim_matches('…')), "{:?} in {shown:?}", it.text);
    }
    runtime.block_on(async {
        text.close().await;
        scant.close().await;
    });
    drop(entered);
}

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
