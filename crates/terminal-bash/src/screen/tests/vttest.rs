//! Pages of vttest, a program that shows what a terminal can do: recorded, for a comparison of what two
//! terminals show.
//!
//! Of its menus those are recorded that say something of text: cursor movements (1), screen features
//! (2), character sets (3), the reports' pages (6), insertions and deletions (8), and of the terminals
//! after the VT100 (11) erasing characters, the cursor movements of ISO 6429, renditions, repeating and
//! scrolling. Not these: characters of double size (4), which take no part in the text; the keyboard
//! (5), which no output shows; VT52 mode (7), which neither this screen nor those it is compared with
//! have; known bugs and self-tests (9, 10), which switch to 132 columns or say nothing of text; of
//! menu 11 protected areas, rectangles, soft fonts, printers, Tektronix graphics and colours behind
//! erased text. Which replies a program gets is the business of `answers`.

/// What vttest wrote.
const RECORDED: [(&str, &[u8]); 6] = [
    ("cursor movements", include_bytes!("recorded/vttest-1.pty")),
    ("screen features", include_bytes!("recorded/vttest-2.pty")),
    ("character sets", include_bytes!("recorded/vttest-3.pty")),
    ("reports", include_bytes!("recorded/vttest-6.pty")),
    ("insertions and deletions", include_bytes!("recorded/vttest-8.pty")),
    ("after the VT100", include_bytes!("recorded/vttest-11.pty")),
];

/// One page, in a window of 24 rows and 80 columns.
pub(super) struct Page {
    pub(super) name: &'static str,
    pub(super) number: usize,
    /// Everything that was written up to its end.
    pub(super) bytes: Vec<u8>,
    /// Of the alternate screen; else of the main one.
    pub(super) alternate: bool,
}

/// All pages, each on both screens, but for those of 132 columns, which no window here has.
pub(super) fn pages() -> Vec<Page> {
    let mut pages = Vec::new();
    for (alternate, begin) in [(false, ""), (true, "\x1b[?1049h")] {
        for (name, bytes) in RECORDED {
            for (number, end) in ends(bytes).into_iter().enumerate() {
                let bytes = [begin.as_bytes(), &bytes[..end]].concat();
                pages.push(Page { name, number, bytes, alternate });
            }
        }
    }
    pages
}

/// The lengths of `bytes` up to the end of each page.
fn ends(bytes: &[u8]) -> Vec<usize> {
    const PAGE: &[u8] = b"<RETURN>";
    const WIDE: &[u8] = b"\x1b[?3h";
    const NARROW: &[u8] = b"\x1b[?3l";
    let ends = bytes.windows(PAGE.len()).enumerate().filter(|(_, it)| *it == PAGE);
    let last = |of: &[u8], before: usize| {
        bytes[..before].windows(of.len()).rposition(|it| it == of).map_or(0, |at| at + 1)
    };
    ends.map(|(at, _)| at + PAGE.len()).filter(|at| last(WIDE, *at) <= last(NARROW, *at)).collect()
}

/// What is drawn with lines as the letters that were written.
pub(super) fn as_letters(text: &str) -> String {
    const SET: &str = "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·";
    let letter = |drawn: char| SET.chars().zip('`'..='~').find(|it| it.0 == drawn);
    text.chars().map(|it| letter(it).map_or(it, |it| it.1)).collect()
}

/// The rows without what is shown of bytes that are no UTF-8: others show nothing for them.
pub(super) fn as_utf8(rows: &[String]) -> String {
    rows.join("\n").replace(char::REPLACEMENT_CHARACTER, "")
}

/// Pages on which other terminals are known to differ: after a movement of the cursor nothing is repeated
/// by some, which vttest accepts as it does the other; and on the alternate screen the grid's moves up
/// leave the scroll region in origin mode, and its set of lines has a blank in the place of `_`.
pub(super) fn differs_by_right(theirs: &[String], alternate: bool) -> bool {
    let has = |text: &str| theirs.iter().any(|line| line.contains(text));
    has("Test Repeat (REP)")
        || alternate && has("scroll down region [12..13] size 2")
        || alternate && has("Selected as G0 (with SI)")
}
