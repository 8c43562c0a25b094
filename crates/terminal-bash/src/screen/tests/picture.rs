//! What whoever joins is shown: a picture, and what follows it.

use alacritty_terminal::{
    event::VoidListener,
    grid::Dimensions,
    index::{Column, Line},
    term::{Config, Term},
    vte::ansi::Processor,
};
use proptest::prelude::*;
use terminal::{ScreenModes, ScreenSnapshot};

use super::super::{Screen, ScreenConfig};
use super::{
    CONFIG, config, fed,
    properties::{PIECES, size, stream},
    recorded::{RECORDINGS, Recording},
};
use crate::stream::Filter;

/// What those who watch get of `bytes`, which follow what `screen` has got.
fn following(screen: &Screen, bytes: &[u8]) -> Vec<u8> {
    let (mut filter, mut out) = (Filter::default(), Vec::new());
    filter.feed(&screen.unfinished(), &mut |_| {});
    filter.feed(bytes, &mut |piece| out.extend_from_slice(piece));
    out
}

/// What matters of a screen to a person.
fn seen(screen: &Screen) -> ScreenSnapshot {
    let shown = screen.shown();
    let ScreenModes { cursor_keys, keypad, .. } = shown.modes;
    let modes = ScreenModes { cursor_keys, keypad, ..ScreenModes::default() };
    // Of half a wide character in reverse nothing can be painted.
    ScreenSnapshot { title: String::new(), modes, highlights: Vec::new(), ..shown }
}

/// Another terminal, as a person's.
struct Other {
    term: Term<VoidListener>,
    parser: Processor,
}

struct Size(usize, usize);

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        self.0
    }

    fn screen_lines(&self) -> usize {
        self.0
    }

    fn columns(&self) -> usize {
        self.1
    }
}

impl Other {
    fn new(config: ScreenConfig) -> Self {
        let size = Size(usize::from(config.rows), usize::from(config.cols));
        Self { term: Term::new(Config::default(), &size, VoidListener), parser: Processor::new() }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.parser.advance(&mut self.term, bytes);
    }

    fn rows(&self) -> Vec<String> {
        let grid = self.term.grid();
        let row = |line: Line| {
            let cells = (0..grid.columns()).map(|it| grid[line][Column(it)].c);
            cells.collect::<String>().trim_end().to_owned()
        };
        (0..grid.screen_lines()).map(|it| row(Line(i32::try_from(it).unwrap()))).collect()
    }
}

/// Streams for one of the two screens. Left out is of what a terminal does not tell: the character that
/// is repeated next, and marks without a character; of the alternate screen halves of wide characters,
/// character set, tab stops and the origin. A cursor that was put outside of the margins while rows are
/// counted from them cannot be reached.
fn drawn((alternate, origin): (bool, bool)) -> impl Strategy<Value = Vec<u8>> {
    let mixed = |piece: &&[u8]| {
        let has = |part: &[u8]| piece.windows(part.len()).any(|it| it == part);
        let left_out: &[&[u8]] = if alternate {
            &[
                "日".as_bytes(),
                "👩".as_bytes(),
                b"\x0e",
                b"\x1bH",
                b"\x1b[3g",
                b"\x1b[Z",
                b"\xbd\xa0",
                b"49l",
                b"47l",
            ]
        } else {
            &[b"49h", b"47h"]
        };
        let elsewhere: &[&[u8]] =
            if origin && !alternate { &[b"\x1b8", b"\x1b[u"] } else { &[b"?6h"] };
        let mut left_out = left_out.iter().chain(elsewhere);
        // A lone `H` may come behind a lone escape.
        let alone = [&b"H"[..], "\u{200d}".as_bytes()].contains(piece);
        !(left_out.any(|it| has(it)) || piece.ends_with(b"b") || alone)
    };
    let pieces: Vec<&[u8]> = PIECES.iter().copied().filter(mixed).collect();
    let enter: &[u8] = if alternate { b"text\x1b[2;2H\x1b[1m\x1b[?1049h" } else { b"" };
    prop::collection::vec(prop::sample::select(pieces), 0..120)
        .prop_map(move |pieces| [enter, &pieces.concat()].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn whoever_joins_anywhere_sees_what_there_is(
        config in size(),
        stream in any::<(bool, bool)>().prop_flat_map(drawn),
        cut in any::<usize>(),
    ) {
        let (before, after) = stream.split_at(cut % (stream.len() + 1));
        let (mut session, mut events) = fed(config, before);
        let (mut there, _) = fed(config, &session.picture(200, 64 << 10));
        prop_assert_eq!(
            seen(&there),
            seen(&session),
            "by the picture alone of {}",
            before.escape_ascii()
        );
        let follows = following(&session, after);
        session.feed(after, &mut events);
        there.feed(&follows, &mut events);
        prop_assert_eq!(
            seen(&there),
            seen(&session),
            "{} | {}",
            before.escape_ascii(),
            after.escape_ascii()
        );
    }

    #[test]
    fn what_watchers_get_is_whole_text_without_strings(stream in stream(), cut in any::<usize>()) {
        let (before, after) = stream.split_at(cut % (stream.len() + 1));
        let (session, _) = fed(CONFIG, before);
        let text = String::from_utf8(following(&session, after)).expect("it is UTF-8");
        for begin in ["\x1b]", "\x1bP", "\x1b_", "\x1b^", "\x1bX"] {
            prop_assert!(!text.contains(begin), "{:?}", text);
        }
        let c1 = text.chars().find(|it| ('\u{80}'..='\u{9f}').contains(it));
        prop_assert_eq!(c1, None);
    }
}

#[test]
fn another_terminal_that_joins_shows_what_one_shows_that_was_there_from_the_beginning() {
    for Recording { name, rows, columns, bytes, .. } in RECORDINGS {
        let config = config(*rows, *columns);
        for part in 1..20 {
            let (before, after) = bytes.split_at(bytes.len() * part / 20);
            let (session, _) = fed(config, before);
            let mut first = Other::new(config);
            first.feed(&following(&Screen::new(config), before));
            let mut joined = Other::new(config);
            joined.feed(&session.picture(200, 64 << 10));
            assert_eq!(joined.rows(), first.rows(), "{name}, joined after {part} parts of 20");
            let follows = following(&session, after);
            first.feed(&follows);
            joined.feed(&follows);
            assert_eq!(joined.rows(), first.rows(), "{name}, after all, joined at {part}");
        }
    }
}

#[test]
fn a_picture_has_the_colours_of_the_full_screen_and_what_scrolled_out() {
    let (session, _) =
        fed(config(3, 20), b"one\r\ntwo\r\nthree\r\nfour\r\n\x1b[?1049h\x1b[H\x1b[1;38;5;9mred");
    let picture = String::from_utf8(session.picture(200, 64 << 10)).unwrap();
    assert!(picture.contains("one\r\ntwo\r\n"), "{picture:?}");
    assert!(picture.contains("\x1b[0;1;38;5;9mred"), "{picture:?}");
    let newest = String::from_utf8(session.picture(1, 64 << 10)).unwrap();
    assert!(newest.contains("two\r\n") && !newest.contains("one"), "{newest:?}");
    let bytes = String::from_utf8(session.picture(200, 5)).unwrap();
    assert!(bytes.contains("two") && !bytes.contains("one"), "{bytes:?}");
}

#[test]
fn a_picture_has_what_is_shown_in_reverse() {
    let (session, _) = fed(config(3, 20), "a \x1b[7m日b\x1b[27m c\r\n\x1b[7mall".as_bytes());
    let (there, _) = fed(config(3, 20), &session.picture(200, 64 << 10));
    assert_eq!(there.shown().highlights, session.shown().highlights);
    assert_eq!(session.shown().highlights.len(), 2);
}
