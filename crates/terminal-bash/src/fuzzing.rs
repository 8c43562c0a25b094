//! What fuzzing plays, and a test with the inputs that are kept in the folder of this module: any
//! bytes, in any reads, with any size of the window and any bounds.
//!
//! `fuzz/` has the two targets. What they find becomes a test of the screen, and an input here.
#![expect(clippy::unwrap_used, reason = "to fail is what it is for")]

use std::path::Path;

use terminal::{ReadPage, ReadRequest, SearchPage, SearchRequest};

use crate::{
    retained::{Retained, newlines},
    screen::{Chunk, Position, Screen, ScreenConfig, ScreenEvent},
    search,
    transcript::Transcript,
};

const ALL: usize = usize::MAX;
/// Two chunks of memory and more.
const FLOOD: usize = 150_000;
/// Characters that are enough in any case: a few bytes can repeat one thousands of times.
const MOST: u64 = 1_000_000;
/// Sizes that the window has, at most, while text flows through it.
const SIZES: usize = 50;

fn config([rows, cols, lines, bytes]: [u8; 4]) -> ScreenConfig {
    ScreenConfig {
        rows: u16::from(rows % 50 + 1),
        cols: u16::from(cols % 170 + 2),
        max_lines: usize::from(lines) + 1,
        max_bytes: usize::from(bytes) * 16 + 1,
    }
}

/// Rows and columns.
fn size(of: u8) -> (u16, u16) {
    let of = u16::from(of);
    (of % 31 + 1, (of * 7) % 90 + 2)
}

/// Nothing exceeds its bounds, and the text does not depend on the reads.
///
/// # Panics
///
/// When that is not so.
pub fn screen(input: &[u8]) {
    let Some(([rows, cols, lines, bytes, read, size], stream)) = input.split_first_chunk() else {
        return;
    };
    let config = config([*rows, *cols, *lines, *bytes]);
    let read = usize::from(*read).max(1);
    bounds(config, stream, read, *size);
    reads(ScreenConfig { max_lines: 100_000, max_bytes: 1 << 24, ..config }, stream, read);
}

/// Both bounds hold after every read and every change of size.
fn bounds(config: ScreenConfig, stream: &[u8], read: usize, other: u8) {
    let mut screen = Screen::new(config);
    screen.keep_dropped();
    let mut events = Vec::new();
    let mut positions = vec![Position::default()];
    for (n, part) in stream.chunks(read).enumerate() {
        screen.feed(part, &mut events);
        if n % 3 == 1 {
            let (rows, cols) = size(other);
            screen.resize(rows, cols);
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
fn follows(dropped: &[Chunk], screen: &Screen) {
    let rest = screen.snapshot(true);
    let chunks: Vec<_> = dropped.iter().chain(&rest.chunks).collect();
    for pair in chunks.windows(2) {
        assert_eq!(pair[0].start + pair[0].bytes.len() as u64, pair[1].start);
        assert_eq!(pair[0].line + newlines(&pair[0].bytes), pair[1].line);
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

/// All text of a session without the session: screen, transcript, pages and searches, put together
/// as the session's task does it.
struct Text {
    screen: Screen,
    transcript: Transcript,
    max: usize,
}

impl Text {
    /// An empty one, with at most `limit` bytes in a file below `home`, and `max` bytes in an answer.
    /// Needs a tokio runtime.
    fn new(config: ScreenConfig, home: &Path, limit: u64, max: usize) -> Self {
        let mut screen = Screen::new(config);
        screen.keep_dropped();
        Self { screen, transcript: Transcript::new(&Ok(home.to_owned()), limit), max }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.screen.feed(bytes, &mut Vec::new());
        self.keep_dropped();
    }

    fn resize(&mut self, (rows, cols): (u16, u16)) {
        self.screen.resize(rows, cols);
        self.keep_dropped();
    }

    fn keep_dropped(&mut self) {
        for chunk in self.screen.take_dropped() {
            self.transcript.push(chunk);
        }
    }

    fn retained(&self) -> Retained {
        let archive = self.transcript.archive();
        let behind = archive.goes_on_in_memory();
        Retained::new(Some(archive), self.screen.snapshot(behind), self.max)
    }

    fn page(&self, request: ReadRequest) -> ReadPage {
        self.retained().page(request)
    }

    fn search(&self, request: &SearchRequest) -> SearchPage {
        let regex = search::compile(request).unwrap();
        search::search(&mut self.retained(), &regex, request)
    }
}

/// Over and over until most of the text has left memory: each line that is read by its number, or
/// found, is one that was shown.
///
/// # Panics
///
/// When that is not so.
pub fn text(input: &[u8]) {
    let Some(([rows, cols, lines, bytes, at, other], stream)) = input.split_first_chunk() else {
        return;
    };
    if stream.is_empty() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let entered = runtime.enter();
    let home = tempfile::tempdir().unwrap();
    let config = config([*rows, *cols, *lines, *bytes]);
    let mut whole = Screen::new(ScreenConfig { max_lines: ALL, max_bytes: ALL, ..config });
    let mut text = Text::new(config, home.path(), u64::MAX, ALL);
    let mut scant = Text::new(config, home.path(), 100_000, 500);
    let times = FLOOD / stream.len();
    let every = times.div_ceil(SIZES);
    let (one, another) = ((config.rows, config.cols), size(*other));
    for n in 0.. {
        let last = n == times || whole.printed() > MOST;
        if *other > 0 && (n % every == 0 || last) {
            let to = if n / every % 2 == 1 && !last { one } else { another };
            whole.resize(to.0, to.1);
            text.resize(to);
            scant.resize(to);
        }
        if last {
            break;
        }
        whole.feed(stream, &mut Vec::new());
        text.feed(stream);
        scant.feed(stream);
    }
    let shown = whole.page(0, u64::MAX, ALL);
    let lines: Vec<&str> = match shown.total_lines {
        0 => Vec::new(),
        _ => shown.text.split('\n').collect(),
    };
    let at = usize::from(*at) * 7919;
    all_of_it(&text, &shown.text, &lines, at);
    some_of_it(&scant, &lines, at);
    runtime.block_on(async {
        text.transcript.close().await;
        scant.transcript.close().await;
    });
    drop(entered);
}

/// Every line can be read and found, unless the disk was too slow for them.
fn all_of_it(text: &Text, shown: &str, lines: &[&str], at: usize) {
    let all = text.page(ReadRequest::newest(0, u64::MAX));
    if all.lost.is_some() {
        return;
    }
    assert_eq!(all.first_line, Some(0));
    assert_eq!((all.total_lines, all.truncated), (lines.len() as u64, false));
    assert!(all.text == shown);
    if lines.is_empty() {
        return;
    }
    let from = at % lines.len();
    let to = lines.len().min(from + 3);
    let page = text.page(ReadRequest::from_line(from as u64, 3));
    assert_eq!((page.first_line, page.truncated), (Some(from as u64), false));
    assert_eq!(page.text, lines[from..to].join("\n"));
    let wanted = lines[from].chars().find(char::is_ascii_alphanumeric).unwrap_or('q');
    let request = SearchRequest { max_matches: u64::MAX, ..SearchRequest::new(wanted) };
    let found: Vec<u64> = text.search(&request).matches.iter().map(|it| it.line).collect();
    let with = |line: &usize| lines[*line].contains(wanted);
    let expected: Vec<u64> = (0..lines.len()).rev().filter(with).map(|line| line as u64).collect();
    assert_eq!(found, expected);
}

/// What can be read is there within its bounds.
fn some_of_it(scant: &Text, lines: &[&str], at: usize) {
    let page = scant.page(ReadRequest::from_line((at % (lines.len() + 2)) as u64, 50));
    assert!(page.text.len() <= 500);
    let begin = usize::try_from(page.first_line.unwrap()).unwrap();
    for (line, shown) in page.text.split('\n').zip(lines.iter().skip(begin)) {
        assert!(shown.contains(line), "{line:?} in {shown:?}");
    }
    let found = scant.search(&SearchRequest { context: 2, ..SearchRequest::new(".") });
    assert!(found.matches.len() <= 20);
    for it in found.matches {
        let shown = lines[usize::try_from(it.line).unwrap()];
        assert!(shown.contains(it.text.trim_matches('…')), "{:?} in {shown:?}", it.text);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    /// Plays every input of a folder; the name of one that fails is the last that is printed.
    fn play(folder: &str, target: fn(&[u8])) {
        let folder = format!("{}/src/fuzzing/{folder}", env!("CARGO_MANIFEST_DIR"));
        let mut played = 0;
        for input in fs::read_dir(folder).unwrap() {
            let path = input.unwrap().path();
            println!("{}", path.display());
            target(&fs::read(path).unwrap());
            played += 1;
        }
        assert!(played > 10, "{played} inputs");
    }

    #[test]
    fn inputs_of_the_screen() {
        play("screen", super::screen);
    }

    #[test]
    fn inputs_of_the_text() {
        play("text", super::text);
    }
}
