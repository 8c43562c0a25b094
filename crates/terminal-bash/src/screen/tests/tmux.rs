//! Recordings beside a terminal that nobody here wrote.
//!
//! What is compared is what both can tell: the lines, joined, without the blanks at their ends; of a
//! recording that shows a full screen, its rows just before it is left; and of the parts of vttest
//! that apply, the visible rows at each of its pages, on both screens.

use std::process::{Command, Output};

use super::super::Screen;
use super::recorded::{RECORDINGS, Recording, lines};
use super::vttest::{self, Page};
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
    let mut compared = 0;
    for recording in RECORDINGS {
        let Recording { name, rows, columns, .. } = *recording;
        for bytes in recording.full_screens() {
            let mut screen = Screen::new(config(rows, columns));
            screen.feed(bytes, &mut Vec::new());
            let shown = lines(&screen.shown().rows.join("\n"));
            let tmux = Tmux::show(bytes, rows, columns);
            assert_eq!(shown, tmux.lines(&[]), "{name}, {} bytes", bytes.len());
            compared += 1;
        }
    }
    assert!(compared > 12, "{compared}");
}

/// Pages on which the two are known to differ. On the first two vttest says itself what should be
/// seen, and tmux does not show it; it knows neither several tab stops at once (CHT) nor moves by
/// columns and rows (HPR, VPR); of the others see [`vttest::differs_by_right`].
fn differs_by_right(theirs: &[String], alternate: bool) -> bool {
    let has = |text: &str| theirs.iter().any(|line| line.contains(text));
    has("Test of autowrap, mixing control and print characters.")
        || has("Origin mode test. This line should be at the bottom of the screen.")
        || has("CHT with param == 1")
        || has("(HPR)")
        || has("(VPR)")
        || vttest::differs_by_right(theirs, alternate)
}

#[test]
#[ignore = "needs tmux"]
fn another_terminal_shows_the_same_pages_of_vttest() {
    let mut different = Vec::new();
    let pages = vttest::pages();
    for Page { name, number, bytes, alternate } in &pages {
        let mut screen = Screen::new(config(24, 80));
        screen.feed(bytes, &mut Vec::new());
        let shown = screen.shown();
        assert_eq!(shown.alternate, *alternate);
        let tmux = Tmux::show(bytes, 24, 80);
        // It captures what is drawn with lines as the letters that were written.
        let ours = lines(&vttest::as_letters(&vttest::as_utf8(&shown.rows)));
        let theirs = tmux.lines(&[]);
        if ours != theirs && !differs_by_right(&theirs, *alternate) {
            different.push(format!(
                "{name}, page {number}, alternate {alternate}:\n{ours:#?}\n{theirs:#?}"
            ));
        }
    }
    assert!(different.is_empty(), "{}: {}", different.len(), different.join("\n"));
    assert!(pages.len() > 80, "{}", pages.len());
}
