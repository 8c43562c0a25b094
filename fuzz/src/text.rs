//! Any bytes, over and over until most of the text has left memory, with any size of the window and
//! any bounds: each line that is read by its number, or found, is one that was shown.
//!
//! `cargo run --release --bin text -- corpus-text -max_total_time=600 -max_len=4096`, in this folder.
#![no_main]

use libfuzzer_sys::fuzz_target;
use terminal::{ReadRequest, SearchRequest};
use terminal_bash::{
    fuzzing::Text,
    screen::{Screen, ScreenConfig},
};

/// Two chunks of memory and more.
const FLOOD: usize = 150_000;
const ALL: usize = usize::MAX;

fuzz_target!(|input: &[u8]| {
    let Some(([rows, cols, lines, bytes, at], stream)) = input.split_first_chunk() else {
        return;
    };
    if stream.is_empty() {
        return;
    }
    let config = ScreenConfig {
        rows: u16::from(*rows % 50 + 1),
        cols: u16::from(*cols % 170 + 2),
        max_lines: usize::from(*lines) + 1,
        max_bytes: usize::from(*bytes) * 16 + 1,
    };
    let at = u64::from(*at) * 7919;
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
});
