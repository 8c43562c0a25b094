//! Who gets a reply, and who does not.

use subprocess::{Enter, Modes, Multiplexer, ThreadFacts};

use super::*;

const RAW: Modes = Modes { canonical: false, echo: false, signals: false, ..COOKED };
const COOKED: Modes = Modes {
    canonical: true,
    echo: true,
    signals: true,
    enter: Enter::EndsLine,
    newline: true,
    read_timeout_ms: None,
};
const READ: Wait = Wait::TerminalRead { fd: 0 };

fn select(others: Vec<Descriptor>) -> Wait {
    Wait::Multiplexed { call: Multiplexer::Select, fd: 0, others, timeout_ms: None }
}

/// A look at a foreground of one thread each.
fn look(modes: Modes, processes: &[(&str, Wait)]) -> Evidence {
    let facts = |(pid, (command, wait)): (i32, &(&str, Wait))| ProcessFacts {
        pid,
        parent: 1,
        command: (*command).to_owned(),
        thread_count: 1,
        cpu_ns: None,
        threads: vec![ThreadFacts { tid: pid, wait: wait.clone() }],
    };
    Evidence {
        unwritten: 0,
        unread_input: Some(false),
        foreground: Some(100),
        blocked_reader: None,
        modes: Some(modes),
        scan: Scan::Full,
        processes: (100..).zip(processes).map(facts).collect(),
        outside: Vec::new(),
        awaited: Vec::new(),
        inner: Vec::new(),
        unread_output: false,
    }
}

/// Asked behind seven characters, in raw mode or not.
fn asked(raw: bool) -> Answers {
    let mut answers = Answers::default();
    answers.ask(Query::Status, 7, raw, Moment::ZERO);
    answers
}

const STILL: Facts =
    Facts { at_prompt: false, bracketed_paste: false, alternate: false, printed: 7 };
const WENT_ON: Facts = Facts { printed: 8, ..STILL };
const FULL_SCREEN: Facts = Facts { alternate: true, ..WENT_ON };

#[test]
fn a_reply_is_for_who_waits_in_raw_mode() {
    let program = |wait| look(RAW, &[("vim", wait)]);
    for (what, raw, evidence, facts, answered) in [
        ("it reads", true, program(READ), STILL, true),
        ("it waits for several", true, program(select(vec![])), WENT_ON, true),
        ("it computes", true, program(Wait::Running), STILL, false),
        ("it sleeps", true, program(Wait::Sleeping), STILL, false),
        ("it reads lines", false, look(COOKED, &[("cat", READ)]), STILL, false),
        ("asked while lines were read", false, program(READ), STILL, true),
        ("and gone on since", false, program(READ), WENT_ON, false),
        ("a full screen", false, program(READ), FULL_SCREEN, true),
        (
            "input is unread",
            true,
            Evidence { unread_input: Some(true), ..program(READ) },
            STILL,
            false,
        ),
        ("no fence", true, Evidence { unread_input: None, ..program(READ) }, STILL, false),
        ("output is unread", true, Evidence { unread_output: true, ..program(READ) }, STILL, false),
        ("no modes", true, Evidence { modes: None, ..program(READ) }, STILL, false),
    ] {
        let replies = asked(raw).replies(&evidence, &facts);
        assert_eq!(!replies.is_empty(), answered, "{what}");
    }
}

#[test]
fn a_line_editor_of_a_shell_gets_none() {
    let prompt = Facts { at_prompt: true, ..STILL };
    let editor = Facts { bracketed_paste: true, ..STILL };
    for (what, evidence, facts, answered) in [
        ("bash's read", look(RAW, &[("bash", READ)]), STILL, true),
        ("bash's editor", look(RAW, &[("bash", select(vec![]))]), STILL, false),
        ("bash at its prompt", look(RAW, &[("bash", READ)]), prompt, false),
        ("bash edits", look(RAW, &[("bash", READ)]), editor, false),
        ("zsh's read", look(RAW, &[("zsh", READ)]), STILL, true),
        ("zsh edits", look(RAW, &[("zsh", READ)]), editor, false),
        ("zsh showed a prompt", look(RAW, &[("zsh", READ)]), WENT_ON, false),
        (
            "a program of a script",
            look(RAW, &[("bash", Wait::Child), ("fzf", READ)]),
            WENT_ON,
            true,
        ),
        ("fish asks itself", look(RAW, &[("fish", select(vec![]))]), prompt, true),
    ] {
        let replies = asked(true).replies(&evidence, &facts);
        assert_eq!(!replies.is_empty(), answered, "{what}");
    }
}

#[test]
fn what_cannot_be_seen_gets_one_only_if_it_is_sure() {
    let inner = vec![Descriptor::PtyMaster];
    let unseen = |command, scan| Evidence {
        blocked_reader: Some(true),
        scan,
        ..look(RAW, &[(command, Wait::Opaque)])
    };
    for (what, evidence, facts, answered) in [
        ("a relay", look(RAW, &[("script", select(inner.clone()))]), STILL, false),
        ("a full screen behind it", look(RAW, &[("script", select(inner))]), FULL_SCREEN, true),
        ("a remote shell", look(RAW, &[("ssh", select(vec![Descriptor::Socket]))]), STILL, false),
        ("of another user", unseen("fzf", Scan::Full), WENT_ON, true),
        ("a shell of another user", unseen("bash", Scan::Full), WENT_ON, false),
        ("nothing can be seen", unseen("fzf", Scan::Blind), STILL, true),
        ("not even a reader", look(RAW, &[("fzf", Wait::Opaque)]), STILL, false),
    ] {
        let replies = asked(true).replies(&evidence, &facts);
        assert_eq!(!replies.is_empty(), answered, "{what}");
    }
}

#[test]
fn questions_are_bounded_in_number_and_time() {
    let waiting = look(RAW, &[("vim", READ)]);
    let mut answers = Answers::default();
    for _ in 0..1_000 {
        answers.ask(Query::Status, 7, true, Moment::ZERO);
    }
    assert_eq!(answers.replies(&waiting, &STILL), b"\x1b[0n".repeat(MOST_KEPT));
    assert!(!answers.are_wanted(Moment::ZERO), "each is replied to once");
    answers.ask(Query::Status, 7, true, Moment::ZERO);
    assert!(answers.are_wanted(KEPT));
    assert!(!answers.are_wanted(KEPT + GAPS.0));
    answers.ask(Query::Status, 7, true, Moment::ZERO);
    answers.prompted();
    assert_eq!(answers.replies(&waiting, &STILL), b"");
}

#[test]
fn unread_replies_are_told_from_other_input() {
    let waiting = look(RAW, &[("vim", READ)]);
    let mut answers = asked(true);
    answers.replies(&waiting, &STILL);
    assert!(answers.only_replies());
    answers.typed();
    assert!(!answers.only_replies(), "a send's text is never dropped");
    answers.looked(&look(COOKED, &[]));
    assert!(answers.replies && answers.text, "a line may be unfinished");
    answers.looked(&waiting);
    assert!(!answers.replies && !answers.text, "all was read");
    answers.ask(Query::Status, 7, true, Moment::ZERO);
    answers.replies(&waiting, &STILL);
    answers.prompted();
    assert!(answers.take_stray(), "whoever asked may not have read the reply");
    assert!(!answers.take_stray());
}
