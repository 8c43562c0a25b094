//! Recordings beside a terminal that nobody here wrote.
//!
//! What is compared is what both can tell: the lines, joined, without the blanks at their ends; of a
//! recording that shows a full screen, its rows just before it is left; and of the parts of vttest
//! that apply, the visible rows at each of its pages, on both screens.

use std::process::{Command, Output};

use super::super::Screen;
use super::recorded::{RECORDINGS, Recording};
use super::{config, text};

/// A tmux server of one's own, which ends with this.
struct Tmux {
    folder: tempfile::TempDir,
}

impl Tmux {
    /// Shows `bytes` in a window of this size and waits until all of it was taken.
    fn show(bytes: &[u8], rows: u16, columns: u16) -> Self {
        let tmux = Self { folder: tempfile::tempdir().unwrap() };
        let path = |name: &str| tmux.folder.path().join(name).display().to_string();
        let settings = "set -g history-limit 50000\nset -g status off\n";
        std::fs::write(path("settings"), settings).unwrap();
        std::fs::write(path("bytes"), bytes).unwrap();
        // The answer to the question comes when all before it was taken.
        let script = format!(
            "stty raw -echo; cat {}; printf '\\033[5n'; head -c 1 > /dev/null; \
             tmux -S {} wait-for -S shown; exec sleep 1000",
            path("bytes"),
            path("socket"),
        );
        let (rows, columns) = (rows.to_string(), columns.to_string());
        let settings = path("settings");
        let arguments =
            ["-f", &settings, "new-session", "-d", "-x", &columns, "-y", &rows, &script];
        tmux.run(&arguments);
        tmux.run(&["wait-for", "shown"]);
        tmux
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let socket = self.folder.path().join("socket");
        let mut command = Command::new("tmux");
        command.env("LC_ALL", "C.UTF-8").env_remove("TMUX").arg("-u").arg("-S").arg(socket);
        let output = command.args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output
    }

    fn lines(&self, arguments: &[&str]) -> Vec<String> {
        let output = self.run(&[&["capture-pane", "-p"], arguments].concat());
        lines(&String::from_utf8(output.stdout).unwrap())
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

/// Lines without the blanks at their ends, and without the empty ones at the end.
fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.split('\n').map(|line| line.trim_end().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

#[test]
#[ignore = "needs tmux"]
fn another_terminal_shows_the_same_lines() {
    // There tmux joins the output to the command: it forgets that the line was ended from above.
    for recording in RECORDINGS.iter().filter(|it| it.name != "wide" || it.columns != 80) {
        let Recording { name, rows, columns, bytes, .. } = *recording;
        let mut screen = Screen::new(config(rows, columns));
        screen.feed(bytes, &mut Vec::new());
        let tmux = Tmux::show(bytes, rows, columns);
        assert_eq!(lines(&text(&screen)), tmux.lines(&["-J", "-S", "-"]), "{name}-{columns}");
    }
}

#[test]
#[ignore = "needs tmux"]
fn another_terminal_shows_the_same_full_screen() {
    let leave = b"\x1b[?1049l";
    let mut compared = 0;
    for Recording { name, rows, columns, bytes, .. } in RECORDINGS {
        let Some(end) = bytes.windows(leave.len()).rposition(|it| it == leave) else { continue };
        // At several moments of the recording, each between two characters of it.
        for part in 1..=8 {
            let mut end = end * part / 8;
            while end > 0 && bytes[end] != 0x1b {
                end -= 1;
            }
            let mut screen = Screen::new(config(*rows, *columns));
            screen.feed(&bytes[..end], &mut Vec::new());
            let Some(full) = screen.full_screen() else { continue };
            let tmux = Tmux::show(&bytes[..end], *rows, *columns);
            let shown: Vec<String> = (0..usize::from(*rows)).map(|row| full.text(row)).collect();
            assert_eq!(lines(&shown.join("\n")), tmux.lines(&[]), "{name}, {end} bytes");
            compared += 1;
        }
    }
    assert!(compared > 12, "{compared}");
}

/// vttest's own menus: cursor movements, screen features, insertions and deletions.
const VTTEST: [(&str, &[u8]); 3] = [
    ("cursor movements", include_bytes!("recorded/vttest-1.pty")),
    ("screen features", include_bytes!("recorded/vttest-2.pty")),
    ("insertions and deletions", include_bytes!("recorded/vttest-8.pty")),
];

/// The lengths of `bytes` up to each of its pages, but for those of 132 columns, which no window
/// here has.
fn pages(bytes: &[u8]) -> Vec<usize> {
    const PAGE: &[u8] = b"<RETURN>";
    const WIDE: &[u8] = b"\x1b[?3h";
    const NARROW: &[u8] = b"\x1b[?3l";
    let ends = bytes.windows(PAGE.len()).enumerate().filter(|(_, it)| *it == PAGE);
    let last = |of: &[u8], before: usize| {
        bytes[..before].windows(of.len()).rposition(|it| it == of).map_or(0, |at| at + 1)
    };
    ends.map(|(at, _)| at + PAGE.len()).filter(|at| last(WIDE, *at) <= last(NARROW, *at)).collect()
}

/// Pages on which the two are known to differ: on the first two vttest says itself what should be
/// seen, and tmux does not show it; on the last one the grid's moves up leave the scroll region in
/// origin mode.
fn differs_by_right(theirs: &[String], alternate: bool) -> bool {
    let has = |text: &str| theirs.iter().any(|line| line.contains(text));
    has("Test of autowrap, mixing control and print characters.")
        || has("Origin mode test. This line should be at the bottom of the screen.")
        || alternate && has("scroll down region [12..13] size 2")
}

#[test]
#[ignore = "needs tmux"]
fn another_terminal_shows_the_same_pages_of_vttest() {
    let mut different = Vec::new();
    let mut compared = 0;
    for begin in ["", "\x1b[?1049h"] {
        for (name, bytes) in VTTEST {
            for (page, end) in pages(bytes).into_iter().enumerate() {
                let bytes = [begin.as_bytes(), &bytes[..end]].concat();
                let mut screen = Screen::new(config(24, 80));
                screen.feed(&bytes, &mut Vec::new());
                let shown = screen.shown();
                assert_eq!(shown.alternate, !begin.is_empty());
                let tmux = Tmux::show(&bytes, 24, 80);
                // It captures what is drawn with lines as the letters that were written.
                let ours = shown.rows.join("\n").replace('─', "q").replace('◆', "`");
                let (ours, theirs) = (lines(&ours), tmux.lines(&[]));
                if ours != theirs && !differs_by_right(&theirs, shown.alternate) {
                    different
                        .push(format!("{name}, page {page}, {begin:?}:\n{ours:#?}\n{theirs:#?}"));
                }
                compared += 1;
            }
        }
    }
    assert!(different.is_empty(), "{} of {compared}: {}", different.len(), different.join("\n"));
    assert!(compared > 40, "{compared}");
}
