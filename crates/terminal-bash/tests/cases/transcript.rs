//! What was shown long ago: read by position and by number, and searched.

use terminal::{ReadRequest, SearchRequest, WaitReason, WindowSize};
use testkit::wait::shown;

use crate::shell::{assert_prompt, bench, shell};

/// C2: the reply is bounded, and every line of it can still be had.
#[test]
fn a_line_of_a_flood_is_read_by_position_and_found_by_search() {
    shell(async |shell| {
        let flood = shell.send("seq 1 200000").await;
        assert_prompt(&flood, Some(0));
        assert!(flood.truncated);
        let missing = flood.missing.unwrap();
        let shown = flood.viewport.matches('\n').count() as u64 + 1;
        assert_eq!(missing.lines + shown, 200_002);
        assert_eq!((missing.readable, missing.offset), (missing.lines, shown));
        let numbers: Vec<String> = (1..=200_000).map(|n| n.to_string()).collect();
        let all = format!("seq 1 200000\n{}\ndsh> ", numbers.join("\n"));
        assert!(all.ends_with(&flood.viewport));
        assert_eq!(missing.bytes, (all.len() - flood.viewport.len()) as u64);
        let last_missing = shell.read(missing.offset, 1).await;
        let first_shown: u64 = flood.viewport.lines().next().unwrap().parse().unwrap();
        assert_eq!(last_missing.text, (first_shown - 1).to_string());
        let page = shell.read(0, 1).await;
        assert_eq!((page.text.as_str(), page.total_lines), ("dsh> ", 200_002));
        let page = shell.read(200_000 - 123_456 + 1, 1).await;
        assert_eq!((page.text.as_str(), page.truncated), ("123456", false));
        let number = page.first_line.unwrap();
        let found = shell.search(SearchRequest::new("^123456$")).await;
        assert_eq!(found.matches.len(), 1);
        assert_eq!((found.matches[0].line, found.next), (number, None));

        // It keeps its number while output arrives, and its text.
        shell.run("seq 1 1000", 0).await;
        let page = shell.read_page(ReadRequest::from_line(number, 2)).await;
        assert_eq!((page.text.as_str(), page.first_line), ("123456\n123457", Some(number)));
        let request = SearchRequest { context: 1, ..SearchRequest::new("^1000$") };
        let found = shell.search(request).await;
        let lines: Vec<u64> = found.matches.iter().map(|it| it.line).collect();
        assert_eq!(lines, [200_001 + 1000, 1000]);
        assert_eq!(found.matches[1].before, ["999"]);
        assert_eq!(found.matches[1].after, ["1001"]);
    });
}

/// What is beyond the scrollback and has not reached the file yet is neither lost nor uncounted.
#[test]
fn lines_on_their_way_to_the_transcript_can_be_read() {
    bench("{ scrollbackLines: 100 }", async |bench| {
        let shell = bench.open().await;
        assert_prompt(&shell.send("seq 1 1000").await, Some(0));
        // The command's own line and the prompt are two more.
        let page = shell.read(0, 5).await;
        assert_eq!((page.total_lines, page.truncated), (1002, false));
        let old = shell.read(900, 3).await;
        assert_eq!((old.text.as_str(), old.truncated), ("99\n100\n101", false));
        assert_eq!((old.total_lines, old.line_begin, old.line_end), (1002, 900, 903));
        let same = shell.read_page(ReadRequest::from_line(old.first_line.unwrap(), 3)).await;
        assert_eq!(same, old);
        assert_eq!(shell.search(SearchRequest::new("^77$")).await.matches.len(), 1);
        assert!(bench.host.home().join("transcripts").symlink_metadata().is_err());
    });
}

#[test]
fn without_a_transcript_only_the_scrollback_is_kept() {
    bench("{ transcriptMaxBytes: 0, scrollbackLines: 100 }", async |bench| {
        let shell = bench.open().await;
        assert_prompt(&shell.send("seq 1 20000").await, Some(0));
        let page = shell.read(0, 1000).await;
        assert_eq!((page.total_lines, page.truncated), (100, true));
        assert_eq!(shell.search(SearchRequest::new("^123$")).await.matches, []);
        let page = shell.read_page(ReadRequest::from_line(5, 1)).await;
        assert_eq!((page.text.as_str(), page.truncated), ("", true));
        assert!(bench.host.home().join("transcripts").symlink_metadata().is_err());
    });
}

/// What is typed while the terminal does not show it is nowhere in what was shown.
#[test]
fn what_is_typed_unseen_is_not_kept() {
    shell(async |shell| {
        let asked = shell.send("read -rs secret; echo got ${#secret}").await;
        assert_eq!(asked.wait_reason, WaitReason::StdinRead);
        assert_prompt(&shell.send("hunter2-hunter2").await, Some(0));
        assert_prompt(&shell.send("seq 1 100000").await, Some(0));
        assert_eq!(shell.search(SearchRequest::new("hunter2")).await.matches, []);
        let found = shell.search(SearchRequest::new("^got 15$")).await;
        assert_eq!(found.matches.len(), 1);
    });
}

/// The last lines of a session that has ended stay readable until it is closed, and then nothing
/// of them is left.
#[test]
fn a_transcript_ends_with_its_session() {
    shell(async |shell| {
        let last = shell.send("seq 1 100000; exit 3").await;
        assert_eq!(last.wait_reason, WaitReason::SessionExit);
        let found = shell.search(SearchRequest::new("^777$")).await;
        assert_eq!(found.matches.len(), 1);
        let page = shell.read_page(ReadRequest::from_line(found.matches[0].line, 1)).await;
        assert_eq!(page.text, "777");
        let folder = shell.bench.host.home().join("transcripts");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "the file has no name");
        let held = || {
            let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
            let targets = descriptors.filter_map(|it| std::fs::read_link(it.ok()?.path()).ok());
            targets.filter(|it| it.starts_with(&folder)).count()
        };
        assert_eq!(held(), 1);
        shell.close().await.unwrap();
        assert_eq!(held(), 0);
    });
}

/// What a smaller window pushes out goes to the file at once, not with the next output: a program
/// that is silent may keep that from coming.
#[test]
fn what_a_smaller_window_pushes_out_can_be_read() {
    bench("{ rows: 1000, scrollbackLines: 100, timeoutMs: 20000 }", async |bench| {
        let shell = bench.open().await;
        let gate = shell.gate();
        let silent = shell.start("seq -f %0150g 1 5000; read x < gate", true).unwrap();
        shown(&*silent, "5000\n").await;
        let size = WindowSize { rows: 1, columns: 160 };
        shell.terminals().resize(&bench.agent, &shell.id, size).await.unwrap();
        let found = shell.search(SearchRequest::new("^0+3$")).await;
        assert_eq!(found.matches.len(), 1);
        gate.open().await;
        assert_eq!(silent.done().await.unwrap().wait_reason, WaitReason::StdinRead);
    });
}
