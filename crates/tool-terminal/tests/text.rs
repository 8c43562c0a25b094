//! The model texts as a whole, and what their bound may never do.

use proptest::prelude::*;
use terminal::{
    Busy, Evidence, Foreground, InputReceipt, LastCommand, Missing, ReadPage, SendState,
    SessionStatus, StateKind, WaitReason,
};
use tool_terminal::{
    text::{self, Keep, TRUNCATED},
    value::{ListedSession, OpenValue, SendValue},
};

const WIDE: usize = 262_144;

fn send(viewport: &str) -> SendValue {
    SendValue::Foreground {
        viewport: viewport.to_owned(),
        wait_reason: WaitReason::StdinRead,
        session_status: SessionStatus::Running,
        truncated: false,
        last_command: None,
        state: None,
        input: None,
        limit: None,
        repaired: Vec::new(),
        left: Vec::new(),
    }
}

fn full(viewport: &str, exit: Option<i32>, it: SendState, reason: WaitReason) -> SendValue {
    SendValue::Foreground {
        viewport: viewport.to_owned(),
        wait_reason: reason,
        session_status: SessionStatus::Running,
        truncated: false,
        last_command: Some(LastCommand { exit_code: exit, duration_ms: 3, cwd: None }),
        state: Some(it),
        input: None,
        limit: None,
        repaired: Vec::new(),
        left: Vec::new(),
    }
}

fn state(kind: StateKind) -> SendState {
    SendState {
        kind,
        evidence: Evidence::Exact,
        echo: true,
        alternate_screen: false,
        foreground: Some(Foreground { pid: 7, command: "vim".to_owned() }),
        busy: None,
        output_complete: true,
    }
}

fn open(name: Option<&str>, motd: &str) -> OpenValue {
    OpenValue { session: listed("pty-1", name, SessionStatus::Running), motd: motd.to_owned() }
}

fn page(text: &str, truncated: bool) -> ReadPage {
    ReadPage {
        text: text.to_owned(),
        total_lines: 340,
        line_begin: 0,
        line_end: 12,
        truncated,
        first_line: None,
        lost: None,
    }
}

fn listed(id: &str, name: Option<&str>, status: SessionStatus) -> ListedSession {
    ListedSession {
        session_id: id.to_owned(),
        name: name.map(str::to_owned),
        kind: "shell".to_owned(),
        pid: Some(4711),
        status,
    }
}

#[test]
fn what_is_missing_is_told() {
    let told =
        |lines, readable| text::missing(Missing { lines, bytes: 1234, readable, offset: 77 });
    assert_eq!(told(0, 0), "[1234 bytes of this line come before this and are not shown]");
    assert_eq!(
        told(1, 1),
        "[1 line comes before this, 1234 bytes, not shown; terminal_read with offset 77 has it]"
    );
    assert_eq!(
        told(9, 9),
        "[9 lines come before this, 1234 bytes, not shown; terminal_read with offset 77 has them]"
    );
    assert_eq!(
        told(9, 4),
        "[9 lines come before this, 1234 bytes, not shown; terminal_read with offset 77 has the \
         newest 4 of them]"
    );
    assert_eq!(
        told(9, 0),
        "[9 lines come before this, 1234 bytes, not shown and can no longer be read]"
    );
}

#[test]
fn whole_texts() {
    let ended = SessionStatus::Exited { exit_code: Some(3), signal: None };
    let killed = SessionStatus::Exited { exit_code: None, signal: Some("SIGKILL".to_owned()) };
    let mut over = send("bye\n");
    if let SendValue::Foreground { wait_reason, session_status, truncated, .. } = &mut over {
        *wait_reason = WaitReason::SessionExit;
        *session_status = killed.clone();
        *truncated = true;
    }
    let mut busy = state(StateKind::Running);
    busy.busy = Some(Busy::Sleeping);
    let texts = [
        ("open", text::open(&open(Some("main"), "dsh> "), WIDE)),
        ("open without a name or output", text::open(&open(None, ""), WIDE)),
        ("send", text::send(&send("echo hi\nhi\ndsh> "), WIDE)),
        ("send without output", text::send(&send(""), WIDE)),
        ("send, newlines at the end", text::send(&send("a\n\n\n"), WIDE)),
        ("send, everything", text::send(&full("x", Some(3), busy, WaitReason::Timeout), WIDE)),
        (
            "send, status unknown",
            text::send(&full("x", None, state(StateKind::Prompt), WaitReason::StdinRead), WIDE),
        ),
        ("send, session over", text::send(&over, WIDE)),
        (
            "background",
            text::send(&SendValue::Background { job_id: "pty-send-1".to_owned() }, WIDE),
        ),
        ("read", text::read(&page("a\nb\n", false), WIDE)),
        ("read nothing, truncated", text::read(&page("", true), WIDE)),
        ("list none", text::list(&[], WIDE)),
        (
            "list",
            text::list(
                &[
                    listed("pty-1", Some("main"), SessionStatus::Running),
                    listed("pty-2", None, ended),
                    listed("pty-3", Some("a\nb"), killed),
                ],
                WIDE,
            ),
        ),
    ];
    let shown: Vec<String> =
        texts.iter().map(|(what, text)| format!("== {what}\n{text}")).collect();
    insta::assert_snapshot!(shown.join("\n\n"));
}

#[test]
fn state_lines() {
    use StateKind::*;
    let cases: [(&str, WaitReason, SendState); 20] = {
        let is = WaitReason::StdinRead;
        let idle = WaitReason::InferredIdle;
        let with = |kind, change: fn(&mut SendState)| {
            let mut it = state(kind);
            change(&mut it);
            it
        };
        [
            ("", is, state(Prompt)),
            ("", is, with(Prompt, |it| it.evidence = Evidence::Known)),
            ("", is, state(Exited)),
            ("[state: waiting for input (vim)]", is, state(Line)),
            ("[state: waiting for input (vim)]", is, state(LineEditor)),
            ("[state: waiting for input (vim)]", is, state(Raw)),
            ("[state: waiting for input]", is, with(Raw, |it| it.foreground = None)),
            (
                "[state: waiting for input (vim), likely]",
                is,
                with(Raw, |it| it.evidence = Evidence::Settled),
            ),
            (
                "[state: waiting for input (vim)]",
                idle,
                with(Raw, |it| it.evidence = Evidence::PromptText),
            ),
            ("[state: waiting for input, echo off]", is, state(Password)),
            ("[state: waiting for input, echo off]", is, with(Line, |it| it.echo = false)),
            (
                "[state: waiting for input, echo off, likely]",
                is,
                with(Password, |it| it.evidence = Evidence::Known),
            ),
            ("[state: unfinished input, the shell waits for more]", is, state(Continuation)),
            ("[state: full screen (vim)]", is, state(Tui)),
            ("[state: full screen (vim)]", is, with(Raw, |it| it.alternate_screen = true)),
            ("[state: still running (vim)]", idle, state(Running)),
            (
                "[state: still running (vim, waiting_child)]",
                idle,
                with(Running, |it| it.busy = Some(Busy::WaitingChild)),
            ),
            ("[state: inside vim, not visible]", idle, state(Relay)),
            ("[state: stopped (vim)]", idle, with(Running, |it| it.busy = Some(Busy::Stopped))),
            (
                "[state: still running (a\\nb)]",
                idle,
                with(Running, |it| {
                    it.foreground = Some(Foreground { pid: 1, command: "a\nb".to_owned() });
                }),
            ),
        ]
    };
    for (line, reason, it) in cases {
        let text = text::send(&full("x", Some(0), it.clone(), reason), WIDE);
        let state = if line.is_empty() { String::new() } else { format!("\n{line}") };
        let drawn = "[full screen (vim): what follows is its screen, not output]\n";
        let head = if it.alternate_screen { drawn } else { "" };
        let reason = reason.as_str();
        let expected = format!("{head}x\n[exit: 0]{state}\n[wait: {reason}]\n[session: running]");
        assert_eq!(text, expected, "{it:?}");
    }
}

#[test]
fn what_gives_way_and_in_which_order() {
    let value = full(
        "0123456789012345678901234567890123456789",
        Some(3),
        state(StateKind::Raw),
        WaitReason::StdinRead,
    );
    let whole = text::send(&value, WIDE);
    assert_eq!(text::send(&value, whole.len()), whole);

    let exit = "[exit: 3]";
    let state = "[state: waiting for input (vim)]";
    let wait = "[wait: stdin_read]";
    let stays = format!("[session: running]\n{TRUNCATED}");
    for (cap, expected) in [
        (105, format!("56789\n{exit}\n{state}\n{wait}\n{stays}")),
        (101, format!("9\n{exit}\n{state}\n{wait}\n{stays}")),
        (100, format!("{exit}\n{state}\n{wait}\n{stays}")),
        (99, format!("{exit}\n{state}\n{wait}\n{stays}")),
        (98, format!("{exit}\n{wait}\n{stays}")),
        (66, format!("{exit}\n{wait}\n{stays}")),
        (65, format!("{wait}\n{stays}")),
        (56, format!("{wait}\n{stays}")),
        (55, stays.clone()),
        (37, stays.clone()),
        (30, format!("[session: r\n{TRUNCATED}")),
    ] {
        assert_eq!(text::send(&value, cap), expected, "at {cap}");
    }
}

#[test]
fn what_a_session_left_is_named() {
    let with = |count: i32| {
        let mut value = send("$ exit 7\nexit\n");
        let SendValue::Foreground { left, .. } = &mut value else { return String::new() };
        *left = (1..=count).map(|pid| Foreground { pid, command: "sleep".to_owned() }).collect();
        let said = text::send(&value, 1000);
        said.lines().nth(2).unwrap_or_default().to_owned()
    };
    assert_eq!(with(0), "[wait: stdin_read]");
    assert_eq!(with(1), "(Still running: sleep (pid 1). terminal_close ends it.)");
    assert_eq!(
        with(7),
        "(Still running: sleep (pid 1), sleep (pid 2), sleep (pid 3), sleep (pid 4), sleep (pid 5) and \
         2 more. terminal_close ends them.)"
    );
}

#[test]
fn what_was_repaired_is_told_below_the_output() {
    const NOTE: &str = "(The terminal was repaired: restored line mode, restored the echo.)";
    const END: &str = "[wait: stdin_read]\n[session: running]";
    let with = |text: &str| {
        let mut value = send(text);
        let SendValue::Foreground { repaired, .. } = &mut value else { return value };
        *repaired = vec!["restored line mode".to_owned(), "restored the echo".to_owned()];
        value
    };
    let body = "0123456789".repeat(5);
    let printed = with(&format!("{body}\ndsh> \n"));
    assert_eq!(text::send(&printed, WIDE), format!("{body}\ndsh> \n{NOTE}\n{END}"));
    assert_eq!(text::send(&with(""), WIDE), format!("{NOTE}\n{END}"));
    // It outlives the output.
    let cut = format!("9\ndsh> \n{NOTE}\n{END}\n{TRUNCATED}");
    assert_eq!(text::send(&printed, cut.len()), cut);
}

#[test]
fn what_was_not_typed_is_told_below_the_output() {
    for (lines, note) in [
        (0, ""),
        (
            1,
            "\n(1 line was not typed, since a program had taken the whole screen by then; it is dropped.)",
        ),
        (
            2,
            "\n(2 lines were not typed, since a program had taken the whole screen by then; they are dropped.)",
        ),
    ] {
        let mut value = send("rows");
        if let SendValue::Foreground { input, .. } = &mut value {
            *input = Some(InputReceipt { accepted: 5, unread: Some(0), untyped: lines });
        }
        let text = format!("rows{note}\n[wait: stdin_read]\n[session: running]");
        assert_eq!(text::send(&value, WIDE), text);
    }
}

#[test]
fn the_limit_that_ended_a_session_stands_before_the_wait() {
    let mut value = full("grows", Some(3), state(StateKind::Raw), WaitReason::SessionExit);
    if let SendValue::Foreground { limit, session_status, .. } = &mut value {
        *limit = Some("memory 512 MiB".to_owned());
        *session_status =
            SessionStatus::Exited { exit_code: None, signal: Some("SIGKILL".to_owned()) };
    }
    let end = "[wait: session_exit]\n[session: exited code=null signal=SIGKILL]";
    let limit = "[limit: memory 512 MiB]";
    let whole = text::send(&value, WIDE);
    assert_eq!(
        whole,
        format!("grows\n[exit: 3]\n[state: waiting for input (vim)]\n{limit}\n{end}")
    );
    // It gives way after the state and before the exit.
    let without_state = format!("[exit: 3]\n{limit}\n{end}\n{TRUNCATED}");
    assert_eq!(text::send(&value, without_state.len()), without_state);
    let without_limit = format!("[exit: 3]\n{end}\n{TRUNCATED}");
    assert_eq!(text::send(&value, without_state.len() - 1), without_limit);
}

#[test]
fn a_placeholder_is_not_missed() {
    let text = text::read(&page("", false), 30);
    assert_eq!(text, "[lines: 0-12 of 340]");
}

#[test]
fn a_list_loses_its_last_lines() {
    let sessions = [
        listed("pty-1", Some("main"), SessionStatus::Running),
        listed("pty-2", None, SessionStatus::Running),
    ];
    assert_eq!(
        text::list(&sessions, 64),
        format!("pty-1 (main) [shell] running pid=4711\n{TRUNCATED}")
    );
    let long = "n".repeat(300);
    let sessions = [listed("pty-1", Some(&long), SessionStatus::Running)];
    let text = text::list(&sessions, 64);
    assert!(text.starts_with("pty-1 (nnn"), "{text}");
    assert!(text.ends_with(TRUNCATED) && text.len() == 64, "{text}");
}

#[test]
fn an_acknowledgement_keeps_its_id_at_the_smallest_bound() {
    let long = "n".repeat(300);
    let mut value = open(Some(&long), &"x".repeat(300));
    value.session.session_id = "pty-1234567890".to_owned();
    let opened = text::open(&value, 64);
    assert!(opened.starts_with("started terminal session pty-1234567890 (n"), "{opened}");
    assert!(opened.len() <= 64 && opened.ends_with(TRUNCATED), "{opened}");
    let job = SendValue::Background { job_id: "pty-send-1234567890".to_owned() };
    assert_eq!(text::send(&job, 64), "started background job pty-send-1234567890");
}

#[test]
fn titles() {
    let long = "x".repeat(300);
    let cut = format!("{}…", "x".repeat(197));
    for (typed, title) in [
        ("", "(send input)"),
        ("ls -l", "ls -l"),
        ("a\nb\t\u{3}\u{1b}[31m", "a\\nb\\t\\x03\\x1b[31m"),
        ("\u{9b}31m", "\\x9b31m"),
        (long.as_str(), cut.as_str()),
    ] {
        assert_eq!(text::title(typed), title);
    }
    assert_eq!(text::unseen_title(8), "(8 bytes, echo off)");
}

proptest! {
    #[test]
    fn no_send_exceeds_its_bound(
        viewport in "[a-zé漢🦀\\n]{0,300}",
        command in "[a-zé🦀]{0,15}",
        cap in 64_usize..400,
    ) {
        let mut it = state(StateKind::Raw);
        it.foreground = Some(Foreground { pid: 1, command });
        let value = full(&viewport, Some(130), it, WaitReason::InferredIdle);
        let whole = text::send(&value, WIDE);
        let text = text::send(&value, cap);
        prop_assert!(text.len() <= cap);
        prop_assert!(text.contains("[session: running]"));
        prop_assert_eq!(text == whole, whole.len() <= cap);
        // Without a viewport there is a placeholder, which is not missed.
        let lost = whole.strip_prefix("(no new output)\n").unwrap_or(&whole).len() > cap;
        prop_assert_eq!(text.ends_with(TRUNCATED), lost);
        // The body is the end of the viewport.
        let body = text.split("[exit:").next().unwrap_or_default().trim_end_matches('\n');
        if text.contains("[exit:") && !viewport.is_empty() {
            prop_assert!(viewport.trim_end_matches('\n').ends_with(body));
        }
    }

    #[test]
    fn nothing_else_exceeds_it_either(
        body in "[a-zé漢🦀\\n]{0,300}",
        name in "[a-zé🦀]{1,90}",
        cap in 64_usize..400,
    ) {
        let opened = text::open(&open(Some(&name), &body), cap);
        prop_assert!(opened.len() <= cap && opened.starts_with("started terminal session pty-1"));
        let read = text::read(&page(&body, true), cap);
        prop_assert!(read.len() <= cap && read.contains("[lines: 0-12 of 340]\n[output truncated]"));
        let sessions: Vec<_> =
            (1..9).map(|n| listed(&format!("pty-{n}"), Some(&name), SessionStatus::Running)).collect();
        let list = text::list(&sessions, cap);
        prop_assert!(list.len() <= cap && list.starts_with("pty-1 ("));
        prop_assert!(text::title(&body).len() <= 200);
    }

    #[test]
    fn a_finished_text_is_cut_at_one_end(text in "[a-zé漢🦀\\n]{0,300}", cap in 64_usize..400) {
        for keep in [Keep::Head, Keep::Tail] {
            let bounded = text::bound(keep, &text, cap);
            prop_assert!(bounded.len() <= cap);
            prop_assert_eq!(bounded == text, text.len() <= cap);
            prop_assert_eq!(text::bound(keep, &bounded, cap), bounded.clone());
        }
    }
}

#[test]
fn a_program_that_has_not_read_its_input_is_said_to_have_not() {
    let mut it = state(StateKind::Running);
    it.busy = Some(Busy::UnreadInput);
    let value = full("x", None, it, WaitReason::Timeout);
    assert_eq!(
        text::send(&value, WIDE),
        "x\n[exit: unknown]\n[state: still running (vim, unread_input)]\n[wait: timeout]\n[session: running]"
    );
}
