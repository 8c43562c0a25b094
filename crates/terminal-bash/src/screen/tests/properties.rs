//! Properties that hold for every stream.

use super::super::row::Row;
use super::super::{Cell, Position, Screen, ScreenConfig, ScreenEvent};
use super::{CONFIG, text};
use proptest::prelude::*;

const ALL: usize = usize::MAX;

/// Pieces of which terminal output is made, whole and broken.
pub(super) const PIECES: &[&[u8]] = &[
    b"a",
    b"word ",
    b"0123456789",
    b" ",
    b"\r\n",
    b"\r\n",
    b"\n",
    b"\r",
    b"\x08",
    b"\t",
    b"\x07",
    b"\x00",
    b"\x7f",
    "é".as_bytes(),
    "日本".as_bytes(),
    "e\u{301}".as_bytes(),
    "\u{200d}".as_bytes(),
    "👩‍👩‍👧".as_bytes(),
    b"\xe4",
    b"\xbd\xa0",
    b"\xc2",
    b"\x9b",
    b"\x9c",
    b"\xff",
    b"\xf0\x9f",
    "\u{85}".as_bytes(),
    "\u{9b}2A".as_bytes(),
    b"\x1b",
    b"[",
    b"]",
    b"\\",
    b";",
    b"7",
    b"H",
    b"J",
    b"m",
    b"P",
    b"\x18",
    b"\x1b[A",
    b"\x1b[3A",
    b"\x1b[B",
    b"\x1b[C",
    b"\x1b[2D",
    b"\x1b[H",
    b"\x1b[3;4H",
    b"\x1b[99;99H",
    b"\x1b[5G",
    b"\x1b[K",
    b"\x1b[1K",
    b"\x1b[2K",
    b"\x1b[J",
    b"\x1b[1J",
    b"\x1b[2J",
    b"\x1b[3J",
    b"\x1b[X",
    b"\x1b[9X",
    b"\x1b[P",
    b"\x1b[4P",
    b"\x1b[@",
    b"\x1b[3@",
    b"\x1b[L",
    b"\x1b[M",
    b"\x1b[2S",
    b"\x1b[2T",
    b"\x1b[5b",
    b"\x1bM",
    b"\x1bD",
    b"\x1bE",
    b"\x1b7",
    b"\x1b8",
    b"\x1bc",
    b"\x1b[!p",
    b"\x1b[s",
    b"\x1b[u",
    b"\x1b[Z",
    b"\x1b[I",
    b"\x1b[2;3r",
    b"\x1b[r",
    b"\x1b[1;2r",
    b"\x1b[?6h",
    b"\x1b[?6l",
    b"\x1b[?7l",
    b"\x1b[?7h",
    b"\x1b[4h",
    b"\x1b[4l",
    b"\x1b[?1049h",
    b"\x1b[?1049h",
    b"\x1b#8",
    b"\x1bH",
    b"\x1b[3g",
    b"\x1b[7m",
    b"\x1b[65535b",
    b"\x1b[?2026h",
    b"\x1b[?1049l",
    b"\x1b[?47h",
    b"\x1b[?47l",
    b"\x1b[?2004h",
    b"\x1b[?2004l",
    b"\x1b(0",
    b"\x1b(B",
    b"\x0e",
    b"\x0f",
    b"\x1b[31m",
    b"\x1b[0;1;38;5;7m",
    b"\x1b[6n",
    b"\x1b[c",
    b"\x1b]133;A\x07",
    b"\x1b]133;D;1\x1b\\",
    b"\x1b]0;title\x07",
    b"\x1bPq",
    b"\x1b_x\x1b\\",
    b"\x1b^y\x9c",
];

pub(super) fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => prop::sample::select(PIECES).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 1..20),
    ];
    prop::collection::vec(piece, 0..120).prop_map(|pieces| pieces.concat())
}

/// Pieces of output that only appends.
const APPENDING: &[&[u8]] = &[
    b"a",
    b"word ",
    b"0123456789012345678901234567890",
    b"\r\n",
    b"\r\n",
    b"\x1b[1m",
    b"\x1b[0m\x1b[K",
    b"\xe6",
    "é日".as_bytes(),
    "\u{301}".as_bytes(),
    b"\x1b]133;A\x07",
    b"\x1b[?2004h",
];

fn appending() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::sample::select(APPENDING).prop_map(<[u8]>::to_vec), 0..150)
}

/// Without the empty lines at the end, which are counted only when something follows.
fn without_end(text: &str) -> String {
    text.trim_end_matches('\n').to_owned()
}

pub(super) fn size() -> impl Strategy<Value = ScreenConfig> {
    let size =
        prop_oneof![Just((1, 2)), Just((2, 3)), Just((4, 5)), Just((5, 12)), Just((40, 160))];
    size.prop_map(|(rows, cols)| ScreenConfig { rows, cols, ..CONFIG })
}

fn bounds() -> impl Strategy<Value = ScreenConfig> {
    (size(), 1usize..30, 1usize..200).prop_map(|(size, max_lines, max_bytes)| ScreenConfig {
        max_lines,
        max_bytes,
        ..size
    })
}

/// Feeds `stream` in parts that end at `cuts` (any numbers), calling `look` after each.
fn feed(
    screen: &mut Screen,
    stream: &[u8],
    cuts: &[usize],
    mut look: impl FnMut(&mut Screen),
) -> Vec<ScreenEvent> {
    let mut cuts: Vec<usize> =
        cuts.iter().map(|cut| cut % (stream.len() + 1)).chain([stream.len()]).collect();
    cuts.sort_unstable();
    let mut events = Vec::new();
    let mut from = 0;
    for cut in cuts {
        screen.feed(&stream[from..cut], &mut events);
        from = cut;
        look(screen);
    }
    events
}

/// Bytes of text in history and window.
fn kept_bytes(screen: &Screen) -> usize {
    let grid = &screen.state.main;
    let history = usize::try_from(grid.history().tail() - grid.history().head()).unwrap();
    history + grid.text_rows().map(Row::len).sum::<usize>()
}

/// Every cell of the alternate screen, while it is shown.
fn drawn(screen: &Screen) -> Option<Vec<Vec<Cell>>> {
    let full = screen.full_screen()?;
    Some((0..usize::from(screen.state.config.rows)).map(|row| full.row(row)).collect())
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(any::<usize>(), 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Text, events, counters and modes do not depend on how the bytes were cut.
    #[test]
    fn cuts_change_nothing(config in bounds(), stream in stream(), cuts in cuts()) {
        let config = ScreenConfig { max_bytes: 1 << 20, max_lines: 10_000, ..config };
        let (mut whole, mut parts, mut bytes) = (Screen::new(config), Screen::new(config), Screen::new(config));
        let expected = feed(&mut whole, &stream, &[], |_| {});
        let each: Vec<usize> = (0..stream.len()).collect();
        for (screen, cuts) in [(&mut parts, &cuts), (&mut bytes, &each)] {
            let events = feed(screen, &stream, cuts, |_| {});
            prop_assert_eq!(&events, &expected);
            prop_assert_eq!(screen.page(0, u64::MAX, ALL), whole.page(0, u64::MAX, ALL));
            prop_assert_eq!(screen.since(&Position::default(), ALL), whole.since(&Position::default(), ALL));
            prop_assert_eq!(screen.printed(), whole.printed());
            prop_assert_eq!(screen.line_feeds(), whole.line_feeds());
            prop_assert_eq!(screen.cursor_line(), whole.cursor_line());
            prop_assert_eq!(drawn(screen), drawn(&whole));
            prop_assert_eq!(screen.title(), whole.title());
            prop_assert_eq!((screen.cursor_row(), screen.cursor_column()), (whole.cursor_row(), whole.cursor_column()));
        }
    }

    /// A repair leaves nothing to repair, keeps what was shown, and holds the bounds.
    #[test]
    fn a_repair_loses_nothing(config in size(), stream in stream()) {
        let mut screen = Screen::new(config);
        feed(&mut screen, &stream, &[], |_| {});
        let (before, printed) = (text(&screen), screen.printed());
        let words = screen.repair();
        prop_assert!(text(&screen).starts_with(before.trim_end_matches('\n')));
        prop_assert!(!words.is_empty() || text(&screen) == before);
        prop_assert_eq!(screen.repair(), Vec::<&str>::new());
        prop_assert_eq!(screen.printed(), printed);
        prop_assert!(!screen.alternate());
    }

    /// Both bounds hold after every read, for everything that can be read.
    #[test]
    fn bounds_hold(config in bounds(), stream in stream(), cuts in cuts(), sizes in prop::collection::vec((1u16..50, 1u16..50), 3)) {
        let mut screen = Screen::new(config);
        let start = screen.end();
        let mut sizes = sizes.into_iter();
        feed(&mut screen, &stream, &cuts, |screen| {
            if let Some((rows, cols)) = sizes.next() {
                screen.resize(rows, cols);
            }
            let page = screen.page(0, u64::MAX, ALL);
            assert!(page.text.len() <= config.max_bytes, "{} bytes", page.text.len());
            assert!(page.total_lines <= config.max_lines as u64, "{} lines", page.total_lines);
            assert_eq!(page.text.split('\n').count() as u64, page.total_lines.max(1));
            assert!(screen.since(&start, ALL).text.len() <= config.max_bytes);
            assert!(kept_bytes(screen) <= config.max_bytes + 50 * 50 * 16);
        });
    }

    /// Deltas of output that only appends are the viewport, wherever it is cut.
    #[test]
    fn deltas_concatenate(config in size(), parts in appending(), every in 1usize..5) {
        let mut screen = Screen::new(config);
        let start = screen.end();
        let mut position = start.clone();
        let mut read = String::new();
        for (n, part) in parts.iter().enumerate() {
            screen.feed(part, &mut Vec::new());
            if n % every == 0 {
                let slice = screen.delta(&mut position, ALL);
                prop_assert!(!slice.truncated);
                read += &slice.text;
            }
        }
        read += &screen.delta(&mut position, ALL).text;
        prop_assert_eq!(&read, &screen.since(&start, ALL).text);
        prop_assert_eq!(without_end(&read), without_end(&text(&screen)));
        prop_assert_eq!(screen.delta(&mut position, ALL).text, "");
    }

    /// Positions of any age can be read at any time, within the bound asked for; the last delta
    /// leaves nothing.
    #[test]
    fn positions_stay_valid(config in bounds(), stream in stream(), cuts in cuts(), max in 0usize..100) {
        let mut screen = Screen::new(config);
        let mut positions = vec![Position::default()];
        feed(&mut screen, &stream, &cuts, |screen| {
            for position in &mut positions {
                let slice = screen.since(position, max);
                assert!(slice.text.len() <= max);
                assert!(slice.truncated || slice.text.len() <= screen.since(position, ALL).text.len());
            }
            let mut position = positions[0].clone();
            assert!(screen.delta(&mut position, max).text.len() <= max);
            assert_eq!(screen.delta(&mut position, ALL).text, "");
            assert_eq!(screen.since(&screen.end(), ALL).text, "");
            positions.push(screen.end());
        });
    }

    /// Pages side by side are the whole text.
    #[test]
    fn pages_join(config in bounds(), stream in stream(), count in 1u64..5) {
        let mut screen = Screen::new(config);
        feed(&mut screen, &stream, &[], |_| {});
        let whole = screen.page(0, u64::MAX, ALL);
        let mut pages = Vec::new();
        let mut offset = 0;
        while offset < whole.total_lines {
            let page = screen.page(offset, count, ALL);
            prop_assert_eq!(page.line_begin, offset);
            prop_assert_eq!(page.first_line, whole.first_line + whole.total_lines - page.line_end);
            offset = page.line_end;
            pages.push(page.text);
        }
        pages.reverse();
        prop_assert_eq!(pages.join("\n"), whole.text);
    }

    /// Lines that bypass the window leave everything as if they had not.
    #[test]
    fn long_blocks_of_lines_are_as_good_as_single_ones(
        config in size(),
        lines in prop::collection::vec(
            prop_oneof![4 => "[ -~]{0,30}", 2 => "[ -~é日\u{a0}]{0,30}", 1 => "[a-cé日\u{301}\u{200d}\u{85}\u{9b}]{0,9}", 3 => "([ -~]{0,4}|é|日|\x1b\\[(|0|1|7|27|31|38;5;12|4:3|7;0)m){0,9}"],
            20..200,
        ),
        rare in prop::collection::vec((any::<prop::sample::Index>(), stream()), 0..4),
    ) {
        let mut pieces: Vec<Vec<u8>> = lines.iter().map(|line| format!("{line}\r\n").into_bytes()).collect();
        for (at, piece) in rare {
            let at = at.index(pieces.len());
            pieces.insert(at, piece);
        }
        let stream = pieces.concat();
        let (mut whole, mut single) = (Screen::new(config), Screen::new(config));
        let events = feed(&mut whole, &stream, &[], |_| {});
        let mut expected = Vec::new();
        for byte in &stream {
            single.feed(&[*byte], &mut expected);
        }
        prop_assert_eq!(events, expected);
        prop_assert_eq!(whole.shown(), single.shown());
        // Afterwards too, when the window is written to again.
        for screen in [&mut whole, &mut single] {
            screen.feed(b"\x1b[3A\rX\x1b[b\x1b[K\x1b[99B", &mut Vec::new());
        }
        prop_assert_eq!(whole.page(0, u64::MAX, ALL), single.page(0, u64::MAX, ALL));
        prop_assert_eq!((whole.printed(), whole.line_feeds()), (single.printed(), single.line_feeds()));
        prop_assert_eq!(whole.cursor_row(), single.cursor_row());
        prop_assert_eq!(whole.shown(), single.shown());
        prop_assert_eq!(whole.repair(), single.repair());
    }

    /// Lines without cursor movement are shown as they were written, whatever the width of the
    /// window.
    #[test]
    fn plain_lines_are_shown_as_written(config in size(), lines in prop::collection::vec("[ -~é日🦀]{0,40}", 0..30)) {
        let mut screen = Screen::new(config);
        screen.feed(lines.join("\r\n").as_bytes(), &mut Vec::new());
        prop_assert_eq!(without_end(&text(&screen)), without_end(&lines.join("\n")));
    }
}
