//! The model texts as a whole, and what their bound may never do.

use terminal::{
    Evidence, Foreground, LastCommand, SendState, SessionStatus, StateKind, WaitReason,
};
use tool_screen::{
    text,
    value::{
        Cursor, FoundLine, Highlighted, KeysValue, LinesValue, ScreenValue, SearchValue, ShownRow,
        Size, WaitEnded, WaitValue,
    },
};

const WIDE: usize = 262_144;

fn screen(rows: &[(u16, &str)], changes_only: bool) -> ScreenValue {
    ScreenValue {
        hash: "00c0ffee00c0ffee".to_owned(),
        changes_only,
        rows: rows
            .iter()
            .map(|(row, text)| ShownRow { row: *row, text: (*text).to_owned() })
            .collect(),
        size: Size { rows: 24, columns: 80 },
        cursor: Cursor { row: 2, column: 7, visible: true },
        title: String::new(),
        alternate_screen: true,
        modes: Vec::new(),
        highlights: Vec::new(),
    }
}

fn keys(screen: Option<ScreenValue>, output: Option<&str>) -> KeysValue {
    KeysValue {
        screen,
        output: output.map(str::to_owned),
        wait_reason: WaitReason::StdinRead,
        session_status: SessionStatus::Running,
        truncated: false,
        unpressed: 0,
        last_command: None,
        state: None,
        highlights: Vec::new(),
        limit: None,
        repaired: Vec::new(),
    }
}

fn wait(ended: WaitEnded, matched: Option<&str>, output: &str) -> WaitValue {
    WaitValue {
        ended,
        matched: matched.map(str::to_owned),
        output: output.to_owned(),
        truncated: false,
        session_status: SessionStatus::Running,
        last_command: None,
        state: None,
        limit: None,
    }
}

fn found(lines: &[(u64, &str, bool)]) -> SearchValue {
    let line =
        |it: &(u64, &str, bool)| FoundLine { line: it.0, text: it.1.to_owned(), matches: it.2 };
    SearchValue {
        lines: lines.iter().map(line).collect(),
        matches: lines.iter().filter(|it| it.2).count() as u64,
        next: None,
        total_lines: 340,
        truncated: false,
    }
}

fn tui() -> SendState {
    SendState {
        kind: StateKind::Tui,
        evidence: Evidence::Known,
        echo: true,
        alternate_screen: true,
        foreground: Some(Foreground { pid: 7, command: "vim".to_owned() }),
        busy: None,
        output_complete: true,
    }
}

#[test]
fn whole_texts() {
    let mut menu = screen(&[(1, "Pick one"), (3, "> apple"), (9, "3/3")], false);
    menu.title = "menu\u{7}".to_owned();
    menu.modes = vec!["cursor keys".to_owned(), "mouse".to_owned()];
    menu.cursor.visible = false;
    menu.highlights =
        (1..=10).map(|row| Highlighted { row, column: 1, text: "> apple   ".to_owned() }).collect();
    let mut pressed = keys(Some(screen(&[(2, "new"), (3, "")], true)), None);
    pressed.state = Some(tui());
    let mut left = keys(None, Some("dsh> "));
    left.last_command = Some(LastCommand { exit_code: Some(0), duration_ms: 5, cwd: None });
    left.repaired = vec!["restored the echo".to_owned()];
    let mut menu_in_line = keys(None, Some("> banana\n  cherry"));
    menu_in_line.highlights =
        vec![Highlighted { row: 3, column: 1, text: "> banana  ".to_owned() }];
    let mut killed = keys(None, Some("dsh> "));
    killed.wait_reason = WaitReason::SessionExit;
    killed.limit = Some("memory 512 MiB".to_owned());
    killed.session_status =
        SessionStatus::Exited { exit_code: None, signal: Some("SIGKILL".to_owned()) };
    let mut ended = wait(WaitEnded::Exit, None, "");
    ended.limit.clone_from(&killed.limit);
    ended.session_status.clone_from(&killed.session_status);
    let mut stuck = keys(None, Some(""));
    stuck.wait_reason = WaitReason::Timeout;
    stuck.unpressed = 2;
    let mut more = found(&[(7, "before", false), (8, "found", true), (30, "found too", true)]);
    more.next = Some(7);
    more.truncated = true;
    let page = LinesValue {
        text: "one\n\nthree".to_owned(),
        first_line: 98,
        count: 3,
        total_lines: 340,
        truncated: false,
    };
    let texts = [
        ("a screen", text::screen(&menu, WIDE)),
        ("an empty screen", text::screen(&screen(&[], false), WIDE)),
        ("nothing has changed", text::screen(&screen(&[], true), WIDE)),
        ("keys in a full-screen program", text::keys(&pressed, WIDE)),
        ("keys that left it", text::keys(&left, WIDE)),
        ("keys that nobody took", text::keys(&stuck, WIDE)),
        ("keys in a menu among the output", text::keys(&menu_in_line, WIDE)),
        ("keys in a session that met its limit", text::keys(&killed, WIDE)),
        ("a wait in a session that met its limit", text::wait(&ended, WIDE)),
        ("output", text::wait(&wait(WaitEnded::Output, Some("READY\u{1b}"), "1\nREADY\n"), WIDE)),
        ("a prompt", text::wait(&wait(WaitEnded::Prompt, None, ""), WIDE)),
        ("in vain", text::wait(&wait(WaitEnded::Timeout, None, "still\n"), WIDE)),
        ("matches", text::search(&found(&[(8, "one", true), (30, "two", true)]), WIDE)),
        ("matches and what is around", text::search(&more, WIDE)),
        ("no match", text::search(&found(&[]), WIDE)),
        ("lines", text::lines(&page, WIDE)),
        (
            "no lines",
            text::lines(&LinesValue { text: String::new(), count: 0, ..page.clone() }, WIDE),
        ),
    ];
    let texts = texts.map(|(name, text)| format!("=== {name}\n{text}"));
    insta::assert_snapshot!(texts.join("\n\n"));
}

#[test]
fn under_a_bound_the_body_goes_first() {
    let rows: Vec<(u16, String)> = (1..=24).map(|row| (row, "é".repeat(60))).collect();
    let rows: Vec<(u16, &str)> = rows.iter().map(|(row, text)| (*row, text.as_str())).collect();
    let mut value = keys(Some(screen(&rows, false)), None);
    value.state = Some(tui());
    let whole = text::keys(&value, WIDE);
    for cap in 64..whole.len() {
        let text = text::keys(&value, cap);
        assert!(text.len() <= cap, "{cap}: {text}");
        assert!(text.ends_with("[output truncated]"), "{cap}: {text}");
        if cap > 400 {
            assert!(text.starts_with("  1|é"), "{cap}: {text}");
            assert!(text.contains("\n[session: running]\n"), "{cap}: {text}");
        }
    }
    let output = wait(WaitEnded::Silence, None, &"0123456789\n".repeat(100));
    let text = text::wait(&output, 300);
    let end = "9\n[waited: nothing was shown for so long]\n[session: running]\n[output truncated]";
    assert!(text.len() <= 300 && text.ends_with(end), "{text}");
}
