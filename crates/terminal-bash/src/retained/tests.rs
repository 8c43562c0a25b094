//! Screen, transcript and search together, against lists of lines.

use std::{fmt::Write as _, fs, os::unix::fs::PermissionsExt as _, path::Path};

use proptest::prelude::*;
use terminal::{ReadRequest, SearchMatch, SearchRequest};

use super::Retained;
use crate::{
    screen::{Screen, ScreenConfig},
    search,
    transcript::{Archive, Transcript},
};

const ALL: usize = usize::MAX;

/// A screen with a transcript behind it.
struct Session {
    screen: Screen,
    transcript: Transcript,
    max: usize,
}

impl Session {
    fn new(home: &Path, max_lines: usize, max_bytes: usize, limit: u64) -> Self {
        let mut screen = Screen::new(ScreenConfig { rows: 5, cols: 40, max_lines, max_bytes });
        screen.keep_dropped();
        let transcript = Transcript::new(&Ok(home.to_owned()), limit);
        Self { screen, transcript, max: ALL }
    }

    fn feed(&mut self, text: &str) {
        for part in text.as_bytes().chunks(16 * 1024) {
            self.screen.feed(part, &mut Vec::new());
            for chunk in self.screen.take_dropped() {
                self.transcript.push(chunk);
            }
        }
    }

    fn text(&self) -> Retained {
        let archive = self.transcript.archive();
        let behind = archive.goes_on_in_memory();
        Retained::new(Some(archive), self.screen.snapshot(behind), self.max)
    }

    fn find(&self, request: &SearchRequest) -> terminal::SearchPage {
        let regex = search::compile(request).unwrap();
        search::search(&mut self.text(), &regex, request)
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

/// `count` lines, numbered from 0.
fn numbered(count: u32) -> Vec<String> {
    (0..count).map(|n| format!("line {n} é日")).collect()
}

fn stream(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |mut all, line| {
        write!(all, "{line}\r\n").unwrap();
        all
    })
}

#[tokio::test]
async fn every_line_since_the_beginning_can_be_read_by_its_number() {
    let home = tempfile::tempdir().unwrap();
    let lines = numbered(50_000);
    let mut session = Session::new(home.path(), 1000, 1 << 20, 64 << 20);
    session.feed(&stream(&lines));
    for line in [0, 1, 999, 12_345, 38_999, 48_999, 49_000, 49_999] {
        let page = session.text().page(ReadRequest::from_line(line, 3));
        let end = lines.len().min(usize::try_from(line).unwrap() + 3);
        assert_eq!(page.text, lines[usize::try_from(line).unwrap()..end].join("\n"));
        assert_eq!((page.first_line, page.truncated), (Some(line), false));
        assert_eq!((page.total_lines, page.line_end), (50_000, 50_000 - line));
        let same = session.text().page(ReadRequest::newest(page.line_begin, 3.min(50_000 - line)));
        assert_eq!(same, page);
    }
    let whole = session.text().page(ReadRequest::newest(0, u64::MAX));
    assert!(whole.text == lines.join("\n") && !whole.truncated);
    let beyond = session.text().page(ReadRequest::newest(50_000, 10));
    assert_eq!((beyond.text.as_str(), beyond.line_begin, beyond.line_end), ("", 50_000, 50_000));
    let future = session.text().page(ReadRequest::from_line(50_000, 10));
    assert_eq!((future.text.as_str(), future.line_end, future.truncated), ("", 0, false));
    session.transcript.close().await;
}

#[tokio::test]
async fn a_line_counts_of_which_memory_holds_nothing() {
    let home = tempfile::tempdir().unwrap();
    let line = "日".repeat(100_000);
    let mut session = Session::new(home.path(), 1, 1, 64 << 20);
    session.feed(&line);
    let page = session.text().page(ReadRequest::newest(0, 10));
    assert_eq!((page.first_line, page.total_lines, page.truncated), (Some(0), 1, false));
    assert!(page.text == line);
    let found = session.find(&SearchRequest::new("日$"));
    assert_eq!(found.matches.len(), 1);
    session.transcript.close().await;
    // Nothing of it has left the window.
    let mut session = Session::new(home.path(), 1, 1, 64 << 20);
    session.feed("one\r\ntwo");
    let page = session.text().page(ReadRequest::newest(0, 10));
    assert_eq!((page.text.as_str(), page.total_lines, page.truncated), ("one\ntwo", 2, false));
}

#[tokio::test]
async fn pages_of_old_lines_are_cut_at_lines() {
    let home = tempfile::tempdir().unwrap();
    let lines = numbered(20_000);
    let mut session = Session::new(home.path(), 100, 1 << 20, 64 << 20);
    session.max = 100;
    session.feed(&stream(&lines));
    let page = session.text().page(ReadRequest::from_line(7000, 50));
    assert_eq!(page.text, lines[7000..7006].join("\n"));
    assert_eq!((page.first_line, page.truncated), (Some(7000), true));
    let page = session.text().page(ReadRequest::newest(10_000, 50));
    assert_eq!(page.text, lines[9994..10_000].join("\n"));
    assert_eq!((page.first_line, page.line_begin, page.line_end), (Some(9994), 10_000, 10_006));
    session.max = 7;
    let page = session.text().page(ReadRequest::from_line(7000, 50));
    assert_eq!((page.text.as_str(), page.line_end), ("line 70", 13_000));
    // The last of the seven bytes before the end is in the middle of a character.
    let page = session.text().page(ReadRequest::newest(10_000, 50));
    assert_eq!(page.text, "9 é日");
    session.transcript.close().await;
}

#[tokio::test]
async fn the_file_is_bounded_private_and_nameless() {
    let home = tempfile::tempdir().unwrap();
    let lines = numbered(100_000);
    let mut session = Session::new(home.path(), 1000, 1 << 20, 300_000);
    session.feed(&stream(&lines));
    // What waits is readable too: both before and after it was written.
    let mut seen = Vec::new();
    for written in [false, true] {
        if written {
            session.transcript.settle().await;
        }
        let whole = session.text().page(ReadRequest::newest(0, u64::MAX));
        let first = usize::try_from(whole.first_line.unwrap()).unwrap();
        let (begin, rest) = whole.text.split_once('\n').unwrap();
        assert!(lines[first].ends_with(begin), "{begin}");
        assert!(rest == lines[first + 1..].join("\n"));
        assert!(whole.truncated && whole.lost.is_none());
        assert!(first > 80_000 && first < 98_000, "{first}");
        seen.push(first);
    }
    assert_eq!(seen[0], seen[1]);
    let folder = home.path().join("transcripts");
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    let file = session.transcript.archive().metadata().unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    assert!(file.len() <= 300_000, "{}", file.len());
    session.transcript.close().await;
    assert!(session.transcript.archive().metadata().is_none());
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_costs_only_old_text_and_is_told() {
    let home = tempfile::NamedTempFile::new().unwrap();
    let lines = numbered(30_000);
    let mut session = Session::new(home.path(), 1000, 1 << 20, 64 << 20);
    session.feed(&stream(&lines));
    session.transcript.settle().await;
    let whole = session.text().page(ReadRequest::newest(0, u64::MAX));
    assert!(whole.truncated && lines.join("\n").ends_with(&whole.text));
    assert_eq!(whole.total_lines, 1000);
    let why = whole.lost.unwrap();
    assert!(why.contains("transcripts") && why.contains("Not a directory"), "{why}");
    let page = session.text().page(ReadRequest::newest(0, 10));
    assert!(page.lost.is_none() && !page.truncated);
    assert_eq!(session.find(&SearchRequest::new("line 5 ")).matches, []);
    session.transcript.close().await;
}

/// What waits for a disk that is too slow is bounded: older text is given up for newer text, which
/// goes on where memory begins.
#[tokio::test]
async fn a_disk_that_is_too_slow_costs_only_old_text_and_is_told() {
    let home = tempfile::tempdir().unwrap();
    let lines = numbered(400_000);
    let mut session = Session::new(home.path(), 1000, 1 << 20, 64 << 20);
    let held = Archive::hold();
    session.feed(&stream(&lines));
    let slow = session.text().page(ReadRequest::newest(0, u64::MAX));
    drop(held);
    session.transcript.settle().await;
    let written = session.text().page(ReadRequest::newest(0, u64::MAX));
    assert!(written == slow, "what waited is what is written");
    assert!(slow.truncated && slow.lost.as_deref().unwrap().contains("too slow"));
    let first = usize::try_from(slow.first_line.unwrap()).unwrap();
    assert!(first > 0 && first < lines.len() - 1000, "{first}");
    let (begin, rest) = slow.text.split_once('\n').unwrap();
    assert!(lines[first].ends_with(begin), "{begin}");
    assert!(rest == lines[first + 1..].join("\n"));
    assert_eq!(session.find(&SearchRequest::new("line 5 ")).matches, []);
    session.transcript.close().await;
}

#[tokio::test]
#[ignore = "needs root"]
async fn a_full_disk_costs_only_old_text_and_is_told() {
    let home = tempfile::tempdir().unwrap();
    let mount = |arguments: &[&str]| {
        let status = std::process::Command::new("mount").args(arguments).arg(home.path()).status();
        assert!(status.unwrap().success());
    };
    mount(&["-t", "tmpfs", "-o", "size=256k", "tmpfs"]);
    let lines = numbered(60_000);
    let mut session = Session::new(home.path(), 1000, 1 << 20, 64 << 20);
    session.feed(&stream(&lines));
    session.transcript.settle().await;
    let whole = session.text().page(ReadRequest::newest(0, u64::MAX));
    session.transcript.close().await;
    let unmounted = std::process::Command::new("umount").arg(home.path()).status();
    assert!(unmounted.unwrap().success(), "nothing holds the file after the close");
    assert!(whole.truncated && lines.join("\n").ends_with(&whole.text));
    assert!(whole.lost.unwrap().contains("No space left"));
}

#[tokio::test]
async fn searches_find_the_newest_first_with_what_is_around() {
    let home = tempfile::tempdir().unwrap();
    let lines = numbered(50_000);
    let mut session = Session::new(home.path(), 1000, 1 << 20, 64 << 20);
    session.feed(&stream(&lines));
    let request = SearchRequest { context: 2, ..SearchRequest::new("^line (12345|49999|0) é") };
    let found = session.find(&request);
    let expected = |line: usize| SearchMatch {
        line: line as u64,
        text: lines[line].clone(),
        before: lines[line.saturating_sub(2)..line].to_vec(),
        after: lines[line + 1..lines.len().min(line + 3)].to_vec(),
    };
    assert_eq!(found.matches, [expected(49_999), expected(12_345), expected(0)]);
    assert_eq!((found.next, found.total_lines, found.truncated), (None, 50_000, false));

    let mut all = Vec::new();
    let mut request = SearchRequest { max_matches: 7, ..SearchRequest::new("LINE .*77 é") };
    assert_eq!(session.find(&request).matches, []);
    request.ignore_case = true;
    loop {
        let found = session.find(&request);
        all.extend(found.matches.iter().map(|it| it.line));
        request.before = found.next;
        if found.next.is_none() {
            break;
        }
    }
    let expected: Vec<u64> = (0..50_000).rev().filter(|n| n % 100 == 77).collect();
    assert_eq!(all, expected);
    assert_eq!(session.find(&SearchRequest::new("no such line")).next, None);
    session.transcript.close().await;
}

#[tokio::test]
async fn a_search_is_bounded() {
    let home = tempfile::tempdir().unwrap();
    let mut session = Session::new(home.path(), 1000, 1 << 20, 64 << 20);
    session.max = 5000;
    let long = "x".repeat(300_000);
    session.feed(&format!("{long}needle{long}\r\nneedle é\r\nend\r\n"));
    let found = session.find(&SearchRequest { context: 1, ..SearchRequest::new("needle") });
    assert_eq!(found.matches.len(), 2);
    assert_eq!((found.matches[0].line, found.matches[0].text.as_str()), (1, "needle é"));
    assert_eq!(found.matches[0].after, ["end"]);
    let around = &found.matches[1].text;
    assert!(around.starts_with("…x") && around.contains("xneedlex") && around.ends_with("x…"));
    assert!(around.len() < 2100);
    assert!(found.matches.iter().flat_map(|it| &it.before).map(String::len).sum::<usize>() <= 5000);
    for pattern in ["(", "x{1000}{1000}{1000}", "\\"] {
        let error = search::compile(&SearchRequest::new(pattern)).unwrap_err();
        assert_eq!(error.code(), "INVALID_ARGS");
        assert!(error.to_string().contains("backslash"), "{error}");
    }
    session.transcript.close().await;
}

/// Pieces of text, so that lines of all lengths lie across the ends of chunks.
fn lines() -> impl Strategy<Value = Vec<String>> {
    let line = prop_oneof![
        6 => ("[a-c]{1,8}", 0usize..40).prop_map(|(text, times)| text.repeat(times)),
        2 => (0usize..40_000).prop_map(|length| "日".repeat(length / 3)),
        1 => Just("a".repeat(70_000)),
        2 => Just(String::new()),
    ];
    prop::collection::vec(line, 10..120)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 24, ..ProptestConfig::default() })]

    /// Whatever is in memory and whatever in the file, pages and searches are those of the lines.
    #[test]
    fn pages_and_searches_are_those_of_the_lines(
        lines in lines(),
        max_lines in 1usize..200,
        max_bytes in 1usize..100_000,
        asks in prop::collection::vec((any::<prop::sample::Index>(), 1u64..20), 8),
    ) {
        let runtime = runtime();
        let entered = runtime.enter();
        let home = tempfile::tempdir().unwrap();
        let mut session = Session::new(home.path(), max_lines, max_bytes, 64 << 20);
        session.feed(&stream(&lines));
        if session.transcript.archive().first().is_some() {
            let total = lines.len() as u64;
            for (at, count) in asks {
                let line = at.index(lines.len());
                let end = lines.len().min(line + usize::try_from(count).unwrap());
                let page = session.text().page(ReadRequest::from_line(line as u64, count));
                prop_assert!(page.text == lines[line..end].join("\n"));
                prop_assert_eq!(page.total_lines, total);
                let offset = total - end as u64;
                let back = session.text().page(ReadRequest::newest(offset, (end - line) as u64));
                prop_assert_eq!(back, page);
            }
            let request = SearchRequest { max_matches: u64::MAX, ..SearchRequest::new("^a.*b|^$|日$") };
            let found: Vec<u64> = session.find(&request).matches.iter().map(|it| it.line).collect();
            let regex = regex::Regex::new(&request.pattern).unwrap();
            let expected: Vec<u64> = (0..total)
                .rev()
                .filter(|line| regex.is_match(&lines[usize::try_from(*line).unwrap()]))
                .collect();
            prop_assert_eq!(found, expected);
        }
        runtime.block_on(session.transcript.close());
        drop(entered);
    }
}
