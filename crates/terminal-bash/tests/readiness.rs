//! The judge on tables of evidence, and the exchange on sequences of them. No terminal, no clock.

use std::time::Duration;

use proptest::prelude::*;
use subprocess::{
    Depth, Descriptor, Enter, Evidence, InnerTerminal, Modes, Multiplexer, ProcessFacts, Scan,
    ThreadFacts, Wait,
};
use terminal::{Busy, Evidence as Strength, StateKind, WaitReason};
use terminal_bash::readiness::{
    Exchange, InputFacts, Judge, Judgement, Limits, Prompt, ScreenFacts, Shape, Step, Verdict,
    judge::Context,
};

const SHELL: i32 = 100;
const COOKED: Modes = Modes {
    canonical: true,
    echo: true,
    signals: true,
    enter: Enter::EndsLine,
    newline: true,
    read_timeout_ms: None,
};
const SILENT: Modes = Modes { echo: false, ..COOKED };
const RAW: Modes = Modes { canonical: false, ..SILENT };
const READ: Wait = Wait::TerminalRead { fd: 0 };

fn select(others: &[Descriptor], timeout_ms: Option<u64>) -> Wait {
    Wait::Multiplexed { call: Multiplexer::Select, fd: 0, others: others.to_vec(), timeout_ms }
}

fn input(on: &[Descriptor]) -> Wait {
    Wait::OtherInput { on: on.to_vec(), timeout_ms: None }
}

fn process(pid: i32, command: &str, waits: &[Wait]) -> ProcessFacts {
    let threads =
        (pid..).zip(waits).map(|(tid, wait)| ThreadFacts { tid, wait: wait.clone() }).collect();
    ProcessFacts {
        pid,
        parent: SHELL,
        command: command.to_owned(),
        thread_count: waits.len().try_into().unwrap_or(u32::MAX),
        cpu_ns: Some(0),
        threads,
    }
}

fn evidence(modes: Modes, processes: Vec<ProcessFacts>) -> Evidence {
    Evidence {
        unwritten: 0,
        unread_input: Some(false),
        foreground: processes.first().map(|it| it.pid),
        blocked_reader: Some(false),
        modes: Some(modes),
        scan: Scan::Full,
        processes,
        outside: Vec::new(),
        awaited: Vec::new(),
        inner: Vec::new(),
        unread_output: false,
    }
}

/// Everything that a soft verdict may need besides.
fn acted() -> Context {
    Context {
        screen: ScreenFacts {
            acted_upon: true,
            text_before_cursor: true,
            printed: 1,
            ..ScreenFacts::default()
        },
        ..Context::default()
    }
}

fn judge(evidence: &Evidence, context: Context) -> Judgement {
    Judge::new(SHELL).judge(evidence, &context)
}

fn ready(kind: StateKind, evidence: Strength) -> Verdict {
    Verdict::Ready { kind, evidence }
}

#[test]
fn a_wait_for_nothing_but_the_terminal_is_exact() {
    let exact = |kind| ready(kind, Strength::Exact);
    let wake_ups = [Descriptor::OwnPipe, Descriptor::EventFd, Descriptor::SignalFd];
    for (modes, waits, expected) in [
        (COOKED, vec![READ], exact(StateKind::Line)),
        (RAW, vec![READ], exact(StateKind::Raw)),
        (SILENT, vec![READ], exact(StateKind::Password)),
        (RAW, vec![select(&[], None)], exact(StateKind::Raw)),
        (RAW, vec![select(&wake_ups, None)], exact(StateKind::Raw)),
        // The main thread of several.
        (COOKED, vec![READ, Wait::Other("futex")], exact(StateKind::Line)),
        (RAW, vec![select(&[], None), Wait::Other("futex")], exact(StateKind::Raw)),
    ] {
        let look = evidence(modes, vec![process(200, "cat", &waits)]);
        assert_eq!(judge(&look, Context::default()).verdict, expected, "{waits:?}");
    }
}

#[test]
fn what_is_not_exact_settles_or_proves_nothing() {
    let settles = |look: &Evidence, context: Context| match judge(look, context).verdict {
        Verdict::Settling { window, evidence: Strength::Settled, .. } => {
            Some(u64::try_from(window.as_millis()).unwrap())
        }
        _ => None,
    };
    for (waits, expected) in [
        (vec![select(&[Descriptor::Socket], None)], Some(8)),
        (vec![select(&[], Some(100))], Some(120)),
        (vec![select(&[], Some(500))], Some(520)),
        (vec![select(&[], Some(1_000))], Some(1_020)),
        (vec![select(&[], Some(1_001))], Some(8)),
        (vec![select(&[], Some(4_000))], Some(8)),
        (vec![select(&[Descriptor::EventFd], None), Wait::Other("futex")], Some(8)),
        // A helper's read, alone and beside a thread that works.
        (vec![Wait::Other("futex"), READ], Some(100)),
        (vec![Wait::Running, READ], None),
        (vec![Wait::Uninterruptible, select(&[], Some(100))], None),
        (vec![Wait::Child, READ], None),
        // A relay speaks for another terminal.
        (vec![select(&[Descriptor::PtyMaster], None)], None),
    ] {
        let look = evidence(RAW, vec![process(200, "app", &waits)]);
        assert_eq!(settles(&look, acted()), expected, "{waits:?}");
        assert_eq!(settles(&look, Context::default()), None, "not acted upon: {waits:?}");
    }
}

#[test]
fn who_waits_for_a_child_beside_its_reader_is_ready_in_its_editor_alone() {
    let look = evidence(RAW, vec![process(200, "jshell", &[Wait::Child, READ])]);
    let with = |bracketed_paste| {
        let screen = ScreenFacts { bracketed_paste, ..acted().screen };
        Context { screen, ..acted() }
    };
    let mut judge = Judge::new(SHELL);
    let verdict = |judge: &mut Judge, open| judge.judge(&look, &with(open)).verdict;
    let settles = |it| matches!(it, Verdict::Settling { kind: StateKind::LineEditor, .. });
    assert_eq!(verdict(&mut judge, false), Verdict::Not { relay: false });
    assert!(settles(verdict(&mut judge, true)));
    judge.accepted();
    assert_eq!(verdict(&mut judge, false), Verdict::Not { relay: false }, "it has closed");
}

const TIMED: Modes = Modes { read_timeout_ms: Some(200), ..RAW };

fn child_of(parent: i32, pid: i32, command: &str, wait: Wait) -> ProcessFacts {
    ProcessFacts { parent, ..process(pid, command, &[wait]) }
}

#[test]
fn a_read_that_ends_by_itself_is_a_pulse() {
    let look = evidence(TIMED, vec![process(200, "game", &[READ])]);
    let verdict = judge(&look, acted()).verdict;
    let window = match verdict {
        Verdict::Settling { window, .. } => window,
        other => panic!("{other:?}"),
    };
    assert_eq!(window, millis(220));
}

#[test]
fn whoever_relays_proves_nothing_whoever_reads_for_it() {
    use Descriptor::{EventFd, OtherTerminal, PtyMaster, Socket};
    let relay = Verdict::Not { relay: true };
    let exact = |kind| ready(kind, Strength::Exact);
    for (modes, group, expected) in [
        // In another thread.
        (COOKED, vec![process(200, "script", &[READ, input(&[PtyMaster])])], &relay),
        (RAW, vec![process(200, "script", &[select(&[], None), input(&[PtyMaster])])], &relay),
        (RAW, vec![process(200, "script", &[READ, select(&[PtyMaster], None)])], &relay),
        // In another process.
        (
            RAW,
            vec![
                process(200, "script", &[input(&[PtyMaster])]),
                child_of(200, 201, "script", READ),
            ],
            &relay,
        ),
        // On another machine.
        (RAW, vec![process(200, "docker", &[READ, input(&[EventFd, Socket])])], &relay),
        (RAW, vec![process(200, "kubectl", &[input(&[Socket]), READ])], &relay),
        (COOKED, vec![process(200, "ssh", &[select(&[Socket], None)])], &relay),
        (SILENT, vec![process(200, "ssh", &[select(&[Socket], None)])], &relay),
        (RAW, vec![process(200, "oc", &[select(&[Socket], None)])], &relay),
        (RAW, vec![process(200, "busybox", &[select(&[Socket], None)])], &relay),
        // Its other thread is between two waits: it prints, or hands on what it got.
        (RAW, vec![process(200, "docker", &[READ, Wait::Running])], &relay),
        (RAW, vec![process(200, "kubectl", &[READ, Wait::Other("futex")])], &relay),
        (COOKED, vec![process(200, "docker", &[READ, Wait::Running])], &relay),
        (RAW, vec![process(200, "session-manager", &[READ, Wait::Running])], &relay),
        // Over a serial line.
        (RAW, vec![process(200, "picocom", &[select(&[OtherTerminal], None)])], &relay),
        // One reads here, another one over there.
        (
            RAW,
            vec![process(200, "rlogin", &[READ]), child_of(200, 201, "rlogin", input(&[Socket]))],
            &relay,
        ),
        // Not a relay, as far as is known.
        (SILENT, vec![process(200, "ssh", &[READ])], &exact(StateKind::Password)),
        (SILENT, vec![process(200, "docker", &[READ, Wait::Running])], &exact(StateKind::Password)),
        (
            SILENT,
            vec![process(200, "ssh", &[READ]), child_of(200, 201, "ssh", input(&[Socket]))],
            &exact(StateKind::Password),
        ),
        (RAW, vec![process(200, "busybox", &[select(&[], None)])], &exact(StateKind::Raw)),
        (COOKED, vec![process(200, "app", &[READ, input(&[Socket])])], &exact(StateKind::Line)),
        (
            COOKED,
            vec![process(200, "ssh", &[input(&[Socket])]), process(201, "cat", &[READ])],
            &exact(StateKind::Line),
        ),
    ] {
        let it = judge(&evidence(modes, group.clone()), acted()).verdict;
        assert_eq!(it, *expected, "{group:?}");
    }
    // The editor of the other side has opened.
    for member in [
        process(200, "docker", &[READ, input(&[Socket])]),
        process(200, "kubectl", &[READ, Wait::Running]),
        process(200, "oc", &[select(&[Socket], None)]),
        process(200, "picocom", &[select(&[OtherTerminal], None)]),
    ] {
        let look = evidence(RAW, vec![member]);
        let screen = ScreenFacts { bracketed_paste: true, editor_opened: true, ..acted().screen };
        let verdict = judge(&look, Context { screen, ..acted() }).verdict;
        let settles = matches!(verdict, Verdict::Settling { evidence: Strength::Relay, .. });
        assert!(settles, "{look:?}: {verdict:?}");
    }
}

/// A thread leaves its wait for the other side whenever it prints, and that is when a look is due.
#[test]
fn whoever_was_seen_to_relay_is_a_relay() {
    use Descriptor::{PtyMaster, Socket};
    let far = Verdict::Not { relay: true };
    let exact = |kind| ready(kind, Strength::Exact);
    for (modes, before, now, expected) in [
        (
            RAW,
            vec![process(200, "socat", &[select(&[Socket], None)])],
            vec![process(200, "socat", &[select(&[], None)])],
            Some(&far),
        ),
        (
            RAW,
            vec![process(200, "busybox", &[select(&[Socket], None)])],
            vec![process(200, "busybox", &[select(&[], None)])],
            Some(&far),
        ),
        (
            RAW,
            vec![process(200, "rlogin", &[READ]), child_of(200, 201, "rlogin", input(&[Socket]))],
            vec![process(200, "rlogin", &[READ]), child_of(200, 201, "rlogin", Wait::Running)],
            Some(&far),
        ),
        // A client that asks its user itself.
        (
            SILENT,
            vec![process(200, "ssh", &[input(&[Socket])])],
            vec![process(200, "ssh", &[READ])],
            Some(&exact(StateKind::Password)),
        ),
        (
            COOKED,
            vec![process(200, "ssh", &[input(&[Socket])])],
            vec![process(200, "ssh", &[READ])],
            Some(&exact(StateKind::Line)),
        ),
        // What is behind it is here, so the wait may settle, but is no proof.
        (
            RAW,
            vec![process(200, "relay", &[READ, input(&[PtyMaster])])],
            vec![process(200, "relay", &[READ, Wait::Running])],
            Some(&Verdict::Not { relay: false }),
        ),
        (
            RAW,
            vec![process(200, "relay", &[READ, input(&[PtyMaster])])],
            vec![process(200, "relay", &[READ, Wait::Other("futex")])],
            None,
        ),
        (
            RAW,
            vec![
                process(200, "script", &[input(&[PtyMaster])]),
                child_of(200, 201, "script", READ),
            ],
            vec![process(200, "script", &[Wait::Running]), child_of(200, 201, "script", READ)],
            None,
        ),
        // Its only thread has come back from there.
        (
            RAW,
            vec![process(200, "python3", &[select(&[PtyMaster], None)])],
            vec![process(200, "python3", &[select(&[], None)])],
            Some(&exact(StateKind::Raw)),
        ),
        // Another program under its number.
        (
            RAW,
            vec![process(200, "relay", &[READ, input(&[PtyMaster])])],
            vec![process(200, "app", &[READ, Wait::Running])],
            Some(&exact(StateKind::Raw)),
        ),
    ] {
        let mut judge = Judge::new(SHELL);
        judge.judge(&evidence(modes, before), &acted());
        judge.typed();
        let it = judge.judge(&evidence(modes, now.clone()), &acted()).verdict;
        let settles = matches!(it, Verdict::Settling { evidence: Strength::Settled, .. });
        assert!(expected.map_or(settles, |expected| it == *expected), "{now:?}: {it:?}");
    }
    // Also behind another terminal.
    let behind = |waits: &[Wait]| Evidence {
        inner: vec![inner(RAW, vec![process(300, "docker", waits)])],
        ..evidence(RAW, vec![process(200, "script", &[select(&[PtyMaster], None)])])
    };
    let it = judge(&behind(&[READ, Wait::Running]), acted()).verdict;
    assert_eq!(it, far);
}

/// A wake-up of its own may come from a child that works.
#[test]
fn a_child_that_works_belies_a_wait_for_more_than_the_terminal() {
    let own = || select(&[Descriptor::OwnPipe], None);
    let not = Verdict::Not { relay: false };
    let raw = ready(StateKind::Raw, Strength::Exact);
    let group = |waiter: Wait, parent: i32, child: Wait| {
        vec![process(200, "app", &[waiter]), child_of(parent, 201, "worker", child)]
    };
    for (group, expected) in [
        (group(own(), 200, Wait::Running), &not),
        (group(own(), 200, Wait::Sleeping), &not),
        (group(own(), 200, Wait::Writing(Descriptor::Pipe)), &not),
        (group(select(&[Descriptor::Socket], None), 200, Wait::Running), &not),
        (group(select(&[], Some(100)), 200, Wait::Sleeping), &not),
        // A grandchild.
        (
            vec![
                process(200, "app", &[own()]),
                child_of(200, 201, "sh", Wait::Child),
                child_of(201, 202, "cc1", Wait::Running),
            ],
            &not,
        ),
        // A servant that waits itself, a sibling, and waits for the terminal alone.
        (group(own(), 200, input(&[Descriptor::Pipe])), &raw),
        (group(own(), SHELL, Wait::Running), &raw),
        (group(READ, 200, Wait::Running), &raw),
        (group(select(&[], None), 200, Wait::Running), &raw),
    ] {
        let it = judge(&evidence(RAW, group.clone()), acted()).verdict;
        assert_eq!(it, *expected, "{group:?}");
    }
}

#[test]
fn a_known_prompt_is_one_whatever_a_child_does() {
    let node = || process(200, "node", &[select(&[Descriptor::Socket], None)]);
    let prompt = evidence(RAW, vec![node()]);
    let sleeps = evidence(RAW, vec![node(), child_of(200, 201, "sleep", Wait::Sleeping)]);
    let known = ready(StateKind::Raw, Strength::Known);
    let settles = |it: &Judgement| it.verdict == known;
    let mut judge = Judge::new(SHELL);
    judge.judge(&prompt, &acted());
    judge.accepted();
    judge.typed();
    let echoed = Context { screen: ScreenFacts { acted_upon: false, ..acted().screen }, ..acted() };
    assert!(!settles(&judge.judge(&sleeps, &echoed)), "not acted upon");
    let spinner =
        Context { screen: ScreenFacts { line_end: ['.', '.'], ..acted().screen }, ..acted() };
    assert!(!settles(&judge.judge(&sleeps, &spinner)));
    assert!(settles(&judge.judge(&sleeps, &acted())));
}

/// Rule *known*, and what it takes to be stored, accepted and dropped.
#[test]
fn a_wait_like_one_that_proved_right_is_believed_at_once() {
    use Descriptor::Socket;
    let known =
        |it: &Judgement| matches!(it.verdict, Verdict::Ready { evidence: Strength::Known, .. });
    let with = |change: fn(&mut ScreenFacts)| {
        let mut context = acted();
        change(&mut context.screen);
        context
    };
    let pulse = |ms| evidence(RAW, vec![process(200, "repl", &[select(&[Socket], Some(ms))])]);
    let relied_upon = || {
        let mut judge = Judge::new(SHELL);
        assert!(!known(&judge.judge(&pulse(100), &acted())), "not the first time");
        judge.accepted();
        judge
    };
    let mut judge = relied_upon();
    judge.typed();
    assert!(known(&judge.judge(&pulse(100), &acted())));
    for (what, look, context) in [
        ("another pulse", pulse(90), acted()),
        ("another line end", pulse(100), with(|it| it.line_end = ['.', '.'])),
        ("at a line's start", pulse(100), with(|it| it.text_before_cursor = false)),
        ("other modes", evidence(COOKED, pulse(100).processes), acted()),
        ("an editor", pulse(100), with(|it| it.bracketed_paste = true)),
        ("a full screen", pulse(100), with(|it| it.alternate = true)),
        ("not acted upon", pulse(100), with(|it| it.acted_upon = false)),
        (
            "another thread runs",
            evidence(
                RAW,
                vec![process(200, "repl", &[select(&[Socket], Some(100)), Wait::Running])],
            ),
            acted(),
        ),
        (
            "another program",
            evidence(RAW, vec![process(200, "top", &[select(&[Socket], Some(100))])]),
            acted(),
        ),
    ] {
        let mut judge = relied_upon();
        judge.typed();
        assert!(!known(&judge.judge(&look, &context)), "{what}");
    }

    // On a full screen a short wait may be one for the rest of a key, and another thread may have yet
    // to act upon it, unless it waits for a signal first.
    for (waits, believed) in [
        (vec![select(&[], Some(70))], false),
        (vec![select(&[], Some(3_000))], true),
        (vec![select(&[], Some(3_000)), Wait::Signal], true),
        (vec![select(&[], Some(70)), Wait::Signal], false),
        (vec![select(&[], Some(3_000)), Wait::Other("futex")], false),
        (vec![Wait::Other("futex"), select(&[], Some(3_000)), Wait::Signal], false),
    ] {
        for text_before_cursor in [false, true] {
            let look = evidence(RAW, vec![process(200, "tui", &waits)]);
            let mut full = with(|it| it.alternate = true);
            full.screen.text_before_cursor = text_before_cursor;
            let mut judge = Judge::new(SHELL);
            judge.judge(&look, &full);
            judge.accepted();
            judge.typed();
            assert_eq!(known(&judge.judge(&look, &full)), believed, "{waits:?}");
        }
    }

    // Output or work after the verdict belies it.
    let mut judge = relied_upon();
    judge.disturbed();
    assert!(!known(&judge.judge(&pulse(100), &acted())), "it printed");
    for (cpu_ns, age, believed) in
        [(90_000_000, 1_000, false), (1_000_000, 1_000, true), (90_000_000, 60_000, true)]
    {
        let mut judge = relied_upon();
        assert!(judge.may_be_refuted());
        let mut later = pulse(100);
        later.processes[0].cpu_ns = Some(cpu_ns);
        judge.recheck(&later, millis(age));
        assert_eq!(known(&judge.judge(&pulse(100), &acted())), believed, "{cpu_ns} ns in {age} ms");
    }
    // Not before the next line: then it is an answer.
    let mut judge = relied_upon();
    judge.typed();
    judge.disturbed();
    assert!(known(&judge.judge(&pulse(100), &acted())));

    // At a line's start only who waits for nothing else, in its only thread.
    let start = with(|it| it.text_before_cursor = false);
    for (waits, believed) in [
        (vec![select(&[], Some(100))], true),
        (vec![select(&[Socket], Some(100))], false),
        (vec![select(&[], Some(100)), Wait::Other("futex")], false),
        (vec![select(&[], Some(100)), Wait::Signal], true),
    ] {
        let look = evidence(RAW, vec![process(200, "repl", &waits)]);
        let mut judge = Judge::new(SHELL);
        judge.judge(&look, &start);
        judge.accepted();
        judge.typed();
        assert_eq!(known(&judge.judge(&look, &start)), believed, "{waits:?}");
    }
}

/// A virtual machine's poller waits for the terminal for the whole life of the process.
#[test]
fn a_poller_in_a_thread_of_its_own_settles_for_long() {
    use Descriptor::{Socket, TimerFd};
    let waits = [Wait::Other("futex"), select(&[TimerFd, Socket], None)];
    let look = evidence(COOKED, vec![process(200, "vm", &waits)]);
    let window = |text, printed| {
        let screen = ScreenFacts { text_before_cursor: text, printed, ..acted().screen };
        match judge(&look, Context { screen, ..acted() }).verdict {
            Verdict::Settling { window, .. } => window,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((window(true, 1), window(false, 1)), (millis(100), millis(250)));
    assert_eq!(window(true, 0), millis(250), "the text is not its own");
    // So does any program that has printed nothing yet.
    let look = evidence(RAW, vec![process(200, "app", &[select(&[Socket], None)])]);
    let screen = ScreenFacts { printed: 0, ..acted().screen };
    let verdict = judge(&look, Context { screen, ..acted() }).verdict;
    assert!(matches!(verdict, Verdict::Settling { window, .. } if window == millis(250)));
}

fn inner(modes: Modes, processes: Vec<ProcessFacts>) -> InnerTerminal {
    InnerTerminal {
        relay: 200,
        unread_input: Some(false),
        blocked_reader: Some(false),
        modes: Some(modes),
        processes,
        inner: Vec::new(),
        unread_output: Some(false),
    }
}

#[test]
fn a_relay_is_as_ready_as_all_that_is_behind_it() {
    let script = || process(200, "script", &[select(&[Descriptor::PtyMaster], None)]);
    let reads = || inner(COOKED, vec![process(300, "cat", &[READ])]);
    let secret = || inner(SILENT, vec![process(300, "cat", &[READ])]);
    let sleeps = || inner(COOKED, vec![process(301, "sleep", &[Wait::Sleeping])]);
    let node = || inner(RAW, vec![process(302, "node", &[select(&[Descriptor::Socket], None)])]);
    let nested = |behind| InnerTerminal {
        inner: vec![behind],
        ..inner(RAW, vec![process(303, "tmux", &[select(&[Descriptor::PtyMaster], None)])])
    };
    let after = |kind, ms: u64| Some((kind, millis(ms)));
    let (busy, unseen) = (Verdict::Not { relay: false }, Verdict::Not { relay: true });
    for (behind, expected, otherwise) in [
        (vec![reads()], after(StateKind::Line, 2), None),
        (vec![secret()], after(StateKind::Password, 2), None),
        (vec![nested(reads())], after(StateKind::Line, 2), None),
        (vec![node()], after(StateKind::Raw, 8), None),
        (vec![reads(), node()], after(StateKind::Raw, 8), None),
        (vec![reads(), sleeps()], None, Some(&busy)),
        (vec![nested(sleeps())], None, Some(&busy)),
        (vec![InnerTerminal { unread_input: Some(true), ..reads() }], None, Some(&busy)),
        (vec![], None, Some(&unseen)),
        (vec![InnerTerminal { unread_output: Some(true), ..reads() }], None, Some(&busy)),
        (vec![InnerTerminal { modes: None, ..reads() }], None, Some(&unseen)),
        (vec![InnerTerminal { unread_input: None, ..reads() }], None, Some(&unseen)),
        (vec![inner(RAW, vec![])], None, Some(&unseen)),
    ] {
        let mut look = evidence(RAW, vec![script()]);
        look.inner.clone_from(&behind);
        let mut judge = Judge::new(SHELL);
        // Seen before, and something was printed since.
        judge.judge(&look, &Context::default());
        let judgement = judge.judge(&look, &acted());
        match (&judgement.verdict, expected) {
            (Verdict::Settling { kind, evidence: Strength::Relay, window, .. }, Some(expected)) => {
                assert_eq!((*kind, *window), expected, "{behind:?}");
                assert_ne!(judgement.foreground.unwrap().command, "script");
            }
            (verdict, _) => assert_eq!(Some(verdict), otherwise, "{behind:?}"),
        }
    }
    // Silence does not make idle who is seen to be busy behind the relay.
    let mut look = evidence(RAW, vec![script()]);
    look.inner = vec![sleeps()];
    let judgement = judge(&look, acted());
    assert_eq!((judgement.busy, judgement.visibly_busy), (Some(Busy::Sleeping), true));
    assert_eq!(judgement.foreground.unwrap().command, "sleep");
}

#[test]
fn behind_a_remote_relay_nothing_is_known_but_what_it_shows() {
    let ssh = evidence(RAW, vec![process(200, "ssh", &[select(&[Descriptor::Socket], None)])]);
    let mut judge = Judge::new(SHELL);
    let unseen = Verdict::Not { relay: true };
    assert_eq!(judge.judge(&ssh, &acted()).verdict, unseen);
    let screen = ScreenFacts { editor_opened: true, bracketed_paste: true, ..acted().screen };
    let opened = Context { screen, ..acted() };
    let settles = |it: &Judgement| match it.verdict {
        Verdict::Settling { evidence: Strength::Relay, window, .. } => Some(window),
        _ => None,
    };
    assert_eq!(settles(&judge.judge(&ssh, &opened)), Some(millis(5)));
    judge.accepted();
    judge.typed();
    let screen = ScreenFacts { editor_opened: false, ..screen };
    assert_eq!(settles(&judge.judge(&ssh, &Context { screen, ..acted() })), Some(millis(30)));
    let echoed = ScreenFacts { acted_upon: false, ..screen };
    assert_eq!(judge.judge(&ssh, &Context { screen: echoed, ..acted() }).verdict, unseen);
    let at_start = ScreenFacts { text_before_cursor: false, ..screen };
    assert_eq!(judge.judge(&ssh, &Context { screen: at_start, ..acted() }).verdict, unseen);
}

#[test]
fn a_reader_outside_the_group_counts_while_nobody_in_it_works() {
    let outsider = || vec![process(300, "cat", &[READ])];
    for (member, counts) in [
        (process(200, "su", &[Wait::Child]), true),
        (process(200, "gpg", &[input(&[Descriptor::Socket])]), true),
        (process(200, "su", &[Wait::Opaque]), true),
        (process(200, "sleep", &[Wait::Sleeping]), false),
        (process(200, "cc1", &[Wait::Running]), false),
    ] {
        let mut look = evidence(COOKED, vec![member.clone()]);
        look.outside = outsider();
        let it = judge(&look, Context::default());
        assert_eq!(
            it.verdict == ready(StateKind::Line, Strength::Exact),
            counts,
            "{member:?}: {it:?}"
        );
    }
}

#[test]
fn a_password_is_asked_for_by_who_waits_without_end_and_does_nothing_else() {
    let at_once = ready(StateKind::Password, Strength::EditorMode);
    for (waits, expected) in [
        (vec![select(&[Descriptor::Socket], None)], Some(&at_once)),
        (vec![select(&[], Some(50))], None),
        (vec![Wait::Other("futex"), READ], None),
    ] {
        let verdict = judge(&evidence(SILENT, vec![process(200, "app", &waits)]), acted()).verdict;
        match expected {
            Some(expected) => assert_eq!(verdict, *expected, "{waits:?}"),
            None => assert!(
                matches!(verdict, Verdict::Settling { kind: StateKind::Password, .. }),
                "{waits:?}: {verdict:?}"
            ),
        }
    }
    let works = [Wait::Running, select(&[Descriptor::Socket], None)];
    for modes in [SILENT, RAW] {
        let screen = ScreenFacts { bracketed_paste: true, editor_opened: true, ..acted().screen };
        let look = evidence(modes, vec![process(200, "app", &works)]);
        let verdict = judge(&look, Context { screen, ..acted() }).verdict;
        assert_eq!(verdict, Verdict::Not { relay: false }, "{modes:?}");
    }
}

#[test]
fn who_was_ready_behind_its_prompt_is_not_ready_before_it_is_shown() {
    let waits = |timeout| {
        evidence(RAW, vec![process(200, "node", &[select(&[Descriptor::Socket], timeout)])])
    };
    let at_start =
        Context { screen: ScreenFacts { text_before_cursor: false, ..acted().screen }, ..acted() };
    let not = Verdict::Not { relay: false };
    let known = ready(StateKind::Raw, Strength::Known);
    let settles =
        |it: &Judgement| matches!(it.verdict, Verdict::Settling { .. }) || it.verdict == known;
    let mut judge = Judge::new(SHELL);
    assert!(settles(&judge.judge(&waits(None), &acted())));
    // Nobody relied on that.
    assert!(settles(&judge.judge(&waits(None), &at_start)));
    judge.judge(&waits(None), &acted());
    judge.accepted();
    assert_eq!(judge.judge(&waits(Some(5_000)), &at_start).verdict, not);
    assert!(settles(&judge.judge(&waits(None), &acted())), "its prompt is back");
    assert!(settles(&judge.judge(&waits(None), &at_start)), "others may have written after it");
    judge.typed();
    let elsewhere =
        Context { screen: ScreenFacts { line_end: ['.', '.'], ..acted().screen }, ..acted() };
    assert!(settles(&judge.judge(&waits(None), &elsewhere)));
    assert_eq!(judge.judge(&waits(None), &at_start).verdict, not, "another text is no prompt");
    let full_screen =
        Context { screen: ScreenFacts { alternate: true, ..at_start.screen }, ..at_start };
    assert!(settles(&judge.judge(&waits(None), &full_screen)));
    // What is on the screen while there is output to be read is the prompt from before the line.
    judge.typed();
    let stale = Evidence { unread_output: true, ..waits(None) };
    judge.judge(&stale, &acted());
    assert_eq!(judge.judge(&waits(None), &at_start).verdict, not, "its prompt was an old one");
    judge.judge(&waits(None), &acted());
    assert!(settles(&judge.judge(&waits(None), &at_start)));
    // A wait for the terminal alone.
    let alone = evidence(RAW, vec![process(200, "node", &[select(&[], Some(100))])]);
    assert!(settles(&judge.judge(&alone, &at_start)));
    // It prompted by a plain read before.
    let mut judge_of_tclsh = Judge::new(SHELL);
    let prompt = evidence(COOKED, vec![process(200, "tclsh", &[READ, Wait::Other("futex")])]);
    judge_of_tclsh.judge(&prompt, &acted());
    judge_of_tclsh.accepted();
    let event_loop =
        evidence(COOKED, vec![process(200, "tclsh", &[Wait::Other("futex"), select(&[], None)])]);
    assert_eq!(judge_of_tclsh.judge(&event_loop, &at_start).verdict, not);
    // Another program has taken its place.
    let other = evidence(RAW, vec![process(200, "top", &[select(&[Descriptor::Socket], None)])]);
    assert!(settles(&judge.judge(&other, &at_start)));
}

#[test]
fn a_thread_that_outlived_the_main_one_speaks_for_its_process() {
    let look = evidence(COOKED, vec![process(200, "app", &[Wait::Zombie, READ])]);
    assert_eq!(judge(&look, Context::default()).verdict, ready(StateKind::Line, Strength::Exact));
}

#[test]
fn an_editor_that_opened_since_the_write_is_ready() {
    let look = evidence(RAW, vec![process(200, "python3", &[select(&[], Some(100))])]);
    let opened = ScreenFacts { bracketed_paste: true, editor_opened: true, ..acted().screen };
    let context = Context { screen: opened, ..acted() };
    assert_eq!(judge(&look, context).verdict, ready(StateKind::LineEditor, Strength::EditorMode));
    // Switched on before the write, it says nothing.
    let stale = ScreenFacts { editor_opened: false, ..opened };
    let verdict = judge(&look, Context { screen: stale, ..acted() }).verdict;
    assert!(matches!(verdict, Verdict::Settling { .. }), "{verdict:?}");
}

#[test]
fn a_line_editor_that_is_closed_does_not_read_its_next_line() {
    let look =
        evidence(RAW, vec![process(200, "node", &[select(&[Descriptor::EventFd], Some(9_000))])]);
    let mut judge = Judge::new(SHELL);
    let open = ScreenFacts { bracketed_paste: true, ..acted().screen };
    judge.judge(&look, &Context { screen: open, ..acted() });
    assert_eq!(judge.judge(&look, &acted()).verdict, Verdict::Not { relay: false });
}

#[test]
fn the_shells_own_prompt_needs_its_mark_its_group_and_its_editor() {
    let shell = |modes| evidence(modes, vec![process(SHELL, "bash", &[select(&[], None)])]);
    let marked = |prompt| Context { prompt, ..Context::default() };
    for (modes, prompt, kind) in [
        (RAW, Some(Prompt::Primary), StateKind::Prompt),
        (RAW, Some(Prompt::Continuation), StateKind::Continuation),
        (RAW, None, StateKind::Raw),
        // A forged mark before a `read` of the shell.
        (COOKED, Some(Prompt::Primary), StateKind::Line),
    ] {
        assert_eq!(judge(&shell(modes), marked(prompt)).verdict, ready(kind, Strength::Exact));
    }
    let other = evidence(RAW, vec![process(200, "bash", &[select(&[], None)])]);
    assert_eq!(
        judge(&other, marked(Some(Prompt::Primary))).verdict,
        ready(StateKind::Raw, Strength::Exact)
    );
}

#[test]
fn nothing_is_ready_before_the_input_was_taken() {
    let waiting = evidence(COOKED, vec![process(200, "cat", &[READ])]);
    let unread = Evidence { unread_input: Some(true), ..waiting.clone() };
    assert_eq!(judge(&unread, acted()).verdict, Verdict::Unread);
    let unwritten = Evidence { unwritten: 1, ..waiting.clone() };
    assert_eq!(judge(&unwritten, acted()).verdict, Verdict::Unread);
    // Where the fence does not work, nobody knows.
    let unfenced = Evidence { unread_input: None, ..waiting.clone() };
    assert_eq!(judge(&unfenced, acted()).verdict, Verdict::Not { relay: false });
    let unfinished = Context { unfinished: true, ..acted() };
    assert_eq!(judge(&waiting, unfinished).verdict, Verdict::Unfinished);
    let raw = evidence(RAW, vec![process(200, "vim", &[READ])]);
    assert_eq!(judge(&raw, unfinished).verdict, ready(StateKind::Raw, Strength::Exact));
}

#[test]
fn what_the_foreground_does_instead() {
    use Descriptor::{EventFd, Pipe, Socket, TimerFd};
    let group = |members: &[(&str, Wait)]| {
        let members = (200..).zip(members);
        members
            .map(|(pid, (name, wait))| process(pid * 10, name, std::slice::from_ref(wait)))
            .collect()
    };
    for (members, busy, visibly_busy, named) in [
        (vec![("sleep", Wait::Sleeping)], Some(Busy::Sleeping), true, "sleep"),
        (vec![("make", Wait::Child), ("cc1", Wait::Running)], Some(Busy::Running), true, "cc1"),
        // A reader of a pipe says what its writer says.
        (
            vec![("bash", Wait::Sleeping), ("cat", input(&[Pipe]))],
            Some(Busy::Sleeping),
            true,
            "bash",
        ),
        (vec![("nc", input(&[Socket])), ("cat", input(&[Pipe]))], Some(Busy::Network), false, "nc"),
        (vec![("cat", input(&[Pipe]))], Some(Busy::Pipe), true, "cat"),
        (vec![("sh", Wait::Child)], Some(Busy::WaitingChild), true, "sh"),
        (
            vec![("sh", Wait::Child), ("httpd", input(&[Socket]))],
            Some(Busy::Network),
            false,
            "httpd",
        ),
        (vec![("vim", Wait::Stopped)], Some(Busy::Stopped), false, "vim"),
        (vec![("sudo", Wait::Opaque)], Some(Busy::Opaque), false, "sudo"),
        (vec![("app", Wait::Other("futex"))], None, false, "app"),
        (vec![("app", input(&[TimerFd]))], Some(Busy::Sleeping), true, "app"),
        (vec![("app", input(&[EventFd]))], None, false, "app"),
        (vec![("yes", Wait::Writing(Pipe))], Some(Busy::Running), true, "yes"),
        (vec![("flock", Wait::Lock)], Some(Busy::Sleeping), true, "flock"),
        // Its child says nothing.
        (vec![("sh", Wait::Child), ("app", Wait::Other("futex"))], None, false, "app"),
        (vec![("tee", Wait::Zombie), ("cat", input(&[Pipe]))], Some(Busy::Pipe), true, "cat"),
    ] {
        let it = judge(&evidence(COOKED, group(&members)), acted());
        let command = it.foreground.map(|it| it.command);
        assert_eq!(
            (it.verdict, it.busy, it.visibly_busy, command.as_deref()),
            (Verdict::Not { relay: false }, busy, visibly_busy, Some(named)),
            "{members:?}"
        );
    }
}

/// Whom a member waits for outside its group.
#[test]
fn who_is_waited_for_elsewhere_speaks_for_who_waits() {
    let server = || vec![process(300, "httpd", &[input(&[Descriptor::Socket])])];
    for (member, busy) in [
        (process(200, "setsid", &[Wait::Child]), Some(Busy::Network)),
        (process(200, "cat", &[input(&[Descriptor::Pipe])]), Some(Busy::Network)),
        (process(200, "make", &[Wait::Running]), Some(Busy::Running)),
        (process(200, "app", &[Wait::Other("futex")]), None),
    ] {
        let mut look = evidence(COOKED, vec![member.clone()]);
        look.awaited = server();
        assert_eq!(judge(&look, acted()).busy, busy, "{member:?}");
    }
}

/// What the terminal tells of a foreground that may not be looked at.
#[test]
fn an_unseen_foreground_is_ready_by_what_the_terminal_shows() {
    use Scan::{Blind, Full};
    let opened = |it: &mut ScreenFacts| (it.bracketed_paste, it.editor_opened) = (true, true);
    let nothing = |_: &mut ScreenFacts| {};
    let plain: (fn(&mut ScreenFacts), Option<Prompt>) = (nothing, None);
    let editor: (fn(&mut ScreenFacts), Option<Prompt>) = (opened, None);
    let marked: (fn(&mut ScreenFacts), Option<Prompt>) = (nothing, Some(Prompt::Primary));
    let settles = |evidence, ms| Some((evidence, millis(ms)));
    for (scan, modes, reader, (change, prompt), expected) in [
        (Full, COOKED, Some(true), plain, settles(Strength::OpaqueRead, 1)),
        (Full, COOKED, Some(false), plain, None),
        (Full, RAW, Some(false), editor, settles(Strength::EditorMode, 5)),
        (Full, COOKED, Some(false), editor, None),
        (Full, SILENT, None, plain, settles(Strength::Settled, 40)),
        // Nobody reads: echo was switched off for something else.
        (Full, SILENT, Some(false), plain, None),
        // The shell is in front only of those who cannot be seen.
        (Full, RAW, Some(false), marked, None),
        (Blind, RAW, Some(false), marked, settles(Strength::Settled, 2)),
        (Blind, COOKED, Some(false), marked, None),
        (Blind, RAW, None, editor, settles(Strength::EditorMode, 10)),
        (Blind, COOKED, Some(true), plain, settles(Strength::OpaqueRead, 1)),
        (Blind, COOKED, None, plain, None),
        (Blind, RAW, None, plain, None),
    ] {
        let group = match scan {
            Blind => Vec::new(),
            _ => vec![process(200, "sudo", &[Wait::Opaque])],
        };
        let mut look = Evidence { scan, blocked_reader: reader, ..evidence(modes, group) };
        look.foreground = Some(if prompt.is_some() { SHELL } else { 200 });
        let mut context = Context { prompt, ..acted() };
        change(&mut context.screen);
        let found = match judge(&look, context).verdict {
            Verdict::Settling { evidence, window, .. } => Some((evidence, window)),
            Verdict::Not { relay: false } => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expected, "{scan:?} {modes:?} {reader:?} {prompt:?}");
    }
}

/// Its mark is as good as without a process table, as long as nobody else is there.
#[test]
fn a_shell_that_may_not_be_looked_into_is_at_the_prompt_that_it_marks() {
    let shell = || process(SHELL, "bash", &[Wait::Opaque]);
    let beside = |wait| process(201, "app", &[wait]);
    let primary = Some(Prompt::Primary);
    for (modes, group, prompt, expected) in [
        (RAW, vec![shell()], primary, Some(StateKind::Prompt)),
        (RAW, vec![shell()], Some(Prompt::Continuation), Some(StateKind::Continuation)),
        (RAW, vec![shell()], None, None),
        (COOKED, vec![shell()], primary, None),
        (RAW, vec![shell(), beside(Wait::Sleeping)], primary, None),
        (RAW, vec![shell(), beside(Wait::Opaque)], primary, None),
        (RAW, vec![process(200, "bash", &[Wait::Opaque])], primary, None),
    ] {
        let look = evidence(modes, group);
        let context = Context { prompt, ..acted() };
        let found = match judge(&look, context).verdict {
            Verdict::Settling { kind, evidence: Strength::Settled, window, .. } => {
                assert_eq!(window, millis(2));
                Some(kind)
            }
            Verdict::Not { relay: false } => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expected, "{look:?}");
    }
}

#[test]
fn a_blocked_reader_that_cannot_be_looked_at() {
    let password = |running: bool| {
        let mut group = vec![process(200, "sudo", &[Wait::Opaque])];
        if running {
            group.push(process(201, "cc1", &[Wait::Running]));
        }
        Evidence { blocked_reader: Some(true), ..evidence(SILENT, group) }
    };
    let verdict = judge(&password(false), acted()).verdict;
    assert!(
        matches!(
            verdict,
            Verdict::Settling { kind: StateKind::Password, evidence: Strength::OpaqueRead, .. }
        ),
        "{verdict:?}"
    );
    assert_eq!(judge(&password(true), acted()).verdict, Verdict::Not { relay: false });
    // Nobody can be looked at.
    let blind =
        Evidence { scan: Scan::Blind, blocked_reader: Some(true), ..evidence(COOKED, Vec::new()) };
    assert!(matches!(judge(&blind, acted()).verdict, Verdict::Settling { .. }));
}

// ---- properties ---------------------------------------------------------------------------

fn any_wait() -> impl Strategy<Value = Wait> {
    let descriptor = prop_oneof![
        Just(Descriptor::OwnPipe),
        Just(Descriptor::Socket),
        Just(Descriptor::EventFd),
        Just(Descriptor::PtyMaster),
        Just(Descriptor::Pipe),
        Just(Descriptor::Hidden),
    ];
    let others = prop::collection::vec(descriptor, 0..3);
    let timeout = prop_oneof![Just(None), (0..9_000u64).prop_map(Some)];
    prop_oneof![
        Just(READ),
        (others.clone(), timeout.clone()).prop_map(|(others, timeout)| select(&others, timeout)),
        (others, timeout).prop_map(|(on, timeout_ms)| Wait::OtherInput { on, timeout_ms }),
        Just(Wait::Running),
        Just(Wait::Sleeping),
        Just(Wait::Child),
        Just(Wait::Stopped),
        Just(Wait::Opaque),
        Just(Wait::Other("futex")),
    ]
}

prop_compose! {
    fn any_group(first: i32)(members in prop::collection::vec(
        (any::<bool>(), prop::collection::vec(any_wait(), 1..4)), 0..4)) -> Vec<ProcessFacts> {
        let named = |ssh| if ssh { "ssh" } else { "app" };
        (0..).map(|it| first + it * 10).zip(&members)
            .map(|(pid, (ssh, waits))| process(pid, named(*ssh), waits)).collect()
    }
}

prop_compose! {
    fn any_look()(group in prop_oneof![any_group(200), any_group(SHELL)],
                  modes in prop_oneof![Just(COOKED), Just(SILENT), Just(RAW)],
                  reader in any::<Option<bool>>(), unread in any::<Option<bool>>(),
                  unwritten in 0..2usize, outside in any_group(500), blind in any::<bool>())
        -> Evidence {
        let scan = if blind { Scan::Blind } else { Scan::Full };
        let group = if blind { Vec::new() } else { group };
        Evidence { unwritten, unread_input: unread, blocked_reader: reader, scan, outside,
                   ..evidence(modes, group) }
    }
}

prop_compose! {
    fn any_context()(alternate in any::<bool>(), bracketed_paste in any::<bool>(),
                     opened in any::<bool>(), text in any::<bool>(), acted_upon in any::<bool>(),
                     marked in any::<bool>(), unfinished in any::<bool>()) -> Context {
        let screen = ScreenFacts { alternate, bracketed_paste, acted_upon,
            editor_opened: bracketed_paste && opened, text_before_cursor: text, printed: 1,
            ..ScreenFacts::default() };
        Context { screen, prompt: marked.then_some(Prompt::Primary), unfinished, far: None }
    }
}

fn waits_for(process: &ProcessFacts, what: &Descriptor) -> bool {
    process.threads.iter().any(|it| match &it.wait {
        Wait::Multiplexed { others: on, .. } | Wait::OtherInput { on, .. } => on.contains(what),
        _ => false,
    })
}

proptest! {
    /// Whatever is seen: a proof needs the fences, a wait for the terminal and nothing but it, and
    /// is never one behind a relay, nor is a claim for a far side; nothing is ready that nobody waits for.
    #[test]
    fn a_proof_needs_all_of_its_grounds(look in any_look(), context in any_context()) {
        let judged = judge(&look, context);
        let (strength, claims) = match &judged.verdict {
            Verdict::Ready { evidence, .. } | Verdict::Settling { evidence, .. } => (Some(*evidence), true),
            _ => (None, false),
        };
        if look.unwritten > 0 || look.unread_input != Some(false) {
            prop_assert!(!claims, "{:?}", judged.verdict);
        }
        let all: Vec<&Wait> = look.processes.iter().chain(&look.outside)
            .flat_map(|it| &it.threads).map(|it| &it.wait).collect();
        let waits = all.iter().any(|it| matches!(it, Wait::TerminalRead { .. } | Wait::Multiplexed { .. }));
        if !waits && claims {
            let hidden = look.scan == Scan::Blind || all.contains(&&Wait::Opaque);
            prop_assert!(hidden && strength != Some(Strength::Exact), "{:?}", judged.verdict);
        }
        let relays = all.iter().any(|it| match it {
            Wait::Multiplexed { others: on, .. } | Wait::OtherInput { on, .. } =>
                on.contains(&Descriptor::PtyMaster),
            _ => false,
        });
        let modes = look.modes.unwrap();
        let at_prompt = look.foreground == Some(SHELL) && context.prompt.is_some() && !modes.canonical;
        let is_shell = |it: &ProcessFacts| at_prompt && it.pid == SHELL;
        if strength == Some(Strength::Exact) {
            let proves = |process: &ProcessFacts, thread: &ThreadFacts| {
                let main = thread.tid == process.pid || process.thread_count == 1;
                match &thread.wait {
                    Wait::TerminalRead { .. } => main,
                    Wait::Multiplexed { others, timeout_ms: None, .. } => is_shell(process)
                        || (main && others.iter().all(|it| matches!(it, Descriptor::OwnPipe | Descriptor::EventFd))),
                    _ => false,
                }
            };
            prop_assert!(look.processes.iter().chain(&look.outside)
                .any(|process| process.threads.iter().any(|it| proves(process, it))), "{:?}", judged.verdict);
            prop_assert!(at_prompt || !look.processes.iter().any(|it| waits_for(it, &Descriptor::PtyMaster)),
                "{:?}", judged.verdict);
        }
        let pid = judged.foreground.as_ref().map(|it| it.pid);
        let speaker = look.processes.iter().chain(&look.outside).find(|it| Some(it.pid) == pid);
        if let Some(ssh) = speaker.filter(|it| claims && it.command == "ssh" && !is_shell(it)) {
            let reads = |it: &ThreadFacts| matches!(it.wait, Wait::TerminalRead { .. } | Wait::Multiplexed { .. });
            let asks = modes.canonical && !modes.echo;
            if ssh.threads.iter().any(reads)
                && (waits_for(ssh, &Descriptor::Socket) || (ssh.thread_count > 1 && !asks)) {
                prop_assert_eq!(strength, Some(Strength::Relay), "{:?}", judged.verdict);
            }
        }
        if relays && look.outside.is_empty() && !at_prompt {
            // Nobody can be seen behind it.
            prop_assert!(!waits || !claims, "{:?}", judged.verdict);
        }
        if context.unfinished && look.modes.is_some_and(|it| it.canonical) {
            prop_assert!(!claims);
        }
        if claims {
            prop_assert!(!judged.visibly_busy || !waits);
        }
    }

    /// Whatever happens, an exchange ends, within its bound and one gap.
    #[test]
    fn an_exchange_always_ends(looks in prop::collection::vec(any_look(), 1..20),
                               context in any_context(), unfinished in any::<bool>()) {
        let mut run = Run::new(LIMITS, InputFacts { unfinished });
        let mut turn = 0;
        let settled = run.until(millis(31_000), context, |_| {
            turn += 1;
            looks[turn % looks.len()].clone()
        });
        let (reason, strength, _) = settled.expect("it ends");
        if reason == WaitReason::InferredIdle {
            prop_assert!(matches!(strength, Strength::Silence | Strength::PromptText));
        }
    }
}

// ---- the exchange over time ---------------------------------------------------------------

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const LIMITS: Limits = Limits {
    longest_gap: Duration::from_millis(50),
    idle_silence: Duration::from_secs(3),
    handoff_grace: Duration::from_millis(500),
    timeout: Some(Duration::from_secs(30)),
};

/// Follows an exchange through a script of what each look sees, until it settles or `until`.
struct Run {
    exchange: Exchange,
    judge: Judge,
    now: Duration,
    looks: usize,
}

impl Run {
    fn new(limits: Limits, input: InputFacts) -> Self {
        let exchange = Exchange::begin(Duration::ZERO, limits, input);
        Self { exchange, judge: Judge::new(SHELL), now: Duration::ZERO, looks: 0 }
    }

    /// What it settles with, and when; none if it has not by `until`.
    fn until(
        &mut self,
        until: Duration,
        context: Context,
        mut see: impl FnMut(Duration) -> Evidence,
    ) -> Option<(WaitReason, Strength, Duration)> {
        let mut step = self.exchange.step(self.now);
        while self.now < until {
            step = match step {
                Step::Wait(moment) => {
                    assert!(moment > self.now, "a wait makes progress");
                    self.now = moment;
                    self.exchange.step(self.now)
                }
                Step::Look(_) | Step::LastLook => {
                    self.looks += 1;
                    self.now += Duration::from_micros(20);
                    self.exchange.look(self.now, &see(self.now), &context, &mut self.judge)
                }
                Step::Settled(it) => return Some((it.reason, it.evidence, self.now)),
            };
        }
        None
    }
}

#[test]
fn a_busy_program_is_never_idle_and_its_prompt_is_found_soon() {
    let mut run = Run::new(LIMITS, InputFacts::default());
    let sleep = evidence(COOKED, vec![process(200, "sleep", &[Wait::Sleeping])]);
    let prompt = evidence(COOKED, vec![process(200, "cat", &[READ])]);
    let see = |now| if now < millis(20_000) { sleep.clone() } else { prompt.clone() };
    let (reason, strength, at) = run.until(millis(25_000), acted(), see).unwrap();
    assert_eq!((reason, strength), (WaitReason::StdinRead, Strength::Exact));
    assert!(at <= millis(20_051), "{at:?}");
    assert!(run.looks < 3_000, "looks grow rare: {}", run.looks);

    // Of many who wait, each is looked at less often.
    let mut run = Run::new(LIMITS, InputFacts::default());
    run.exchange.waits_among(100);
    let (_, strength, at) = run.until(millis(25_000), acted(), see).unwrap();
    assert_eq!(strength, Strength::Exact);
    assert!(at <= millis(20_051), "{at:?}");
    assert!(run.looks < 1_000, "looks grow rare: {}", run.looks);
}

#[test]
fn silence_makes_idle_only_who_is_not_seen_to_work() {
    let server = evidence(COOKED, vec![process(200, "httpd", &[input(&[Descriptor::Socket])])]);
    let mut run = Run::new(LIMITS, InputFacts::default());
    let (reason, strength, at) = run.until(millis(9_000), acted(), |_| server.clone()).unwrap();
    assert_eq!((reason, strength), (WaitReason::InferredIdle, Strength::Silence));
    assert!(at >= millis(3_000) && at < millis(3_100), "{at:?}");

    // The same with work in it.
    let working = |now: Duration| {
        let mut busy = server.clone();
        busy.processes[0].cpu_ns = Some(u64::try_from(now.as_nanos() / 10).unwrap());
        busy
    };
    let mut run = Run::new(LIMITS, InputFacts::default());
    let (reason, _, at) = run.until(millis(31_000), acted(), working).unwrap();
    assert_eq!((reason, at), (WaitReason::Timeout, millis(30_000)));
}

/// What cannot be seen is idle sooner behind what looks like a prompt, and never proven by it.
#[test]
fn a_prompt_that_cannot_be_seen_behind_is_inferred() {
    let sudo = evidence(RAW, vec![process(200, "sudo", &[Wait::Opaque])]);
    let ssh = evidence(RAW, vec![process(200, "ssh", &[select(&[Descriptor::Socket], None)])]);
    let sleep = evidence(RAW, vec![process(200, "app", &[Wait::Other("futex")])]);
    let screen = ScreenFacts { prompt_shaped: true, line: 7, ..acted().screen };
    let shaped = Context { screen, ..acted() };
    let settled = |look: &Evidence, context: Context, judge: &mut Judge| {
        let mut run = Run::new(LIMITS, InputFacts::default());
        run.judge = judge.clone();
        let settled = run.until(millis(9_000), context, |_| look.clone()).unwrap();
        *judge = run.judge;
        settled
    };
    for look in [&sudo, &ssh] {
        let mut judge = Judge::new(SHELL);
        let (reason, strength, at) = settled(look, shaped, &mut judge);
        assert_eq!((reason, strength), (WaitReason::InferredIdle, Strength::PromptText));
        assert!(at >= millis(400) && at < millis(510), "{at:?}");
        // The same line again, and another one.
        let (_, strength, at) = settled(look, shaped, &mut judge);
        assert!(at >= millis(40) && at < millis(60), "{at:?} {strength:?}");
        let other = Context { screen: ScreenFacts { line: 8, ..screen }, ..shaped };
        assert!(settled(look, other, &mut judge).2 >= millis(400));
        let echoed = Context { screen: ScreenFacts { acted_upon: false, ..screen }, ..shaped };
        let (_, strength, at) = settled(look, echoed, &mut Judge::new(SHELL));
        assert!(strength == Strength::Silence && at >= millis(3_000), "{at:?}");
    }
    let (_, strength, at) = settled(&sleep, shaped, &mut Judge::new(SHELL));
    assert!(strength == Strength::Silence && at >= millis(3_000), "what is seen needs no guess");
    let full = Context { screen: ScreenFacts { alternate: true, ..acted().screen }, ..acted() };
    let (reason, _, at) = settled(&sudo, full, &mut Judge::new(SHELL));
    assert!(reason == WaitReason::InferredIdle && at < millis(400), "{at:?}");
}

/// A group of processes on its way out is seen doing nothing for a moment.
#[test]
fn a_moment_in_which_nothing_is_seen_makes_nobody_idle() {
    let sleep = evidence(COOKED, vec![process(200, "sleep", &[Wait::Sleeping])]);
    let gone = evidence(COOKED, vec![process(200, "tee", &[Wait::Zombie])]);
    let prompt = evidence(COOKED, vec![process(SHELL, "bash", &[READ])]);
    let see = |now| match now {
        it if it < millis(5_000) => sleep.clone(),
        it if it < millis(5_200) => gone.clone(),
        _ => prompt.clone(),
    };
    let mut run = Run::new(LIMITS, InputFacts::default());
    let (reason, ..) = run.until(millis(9_000), acted(), see).unwrap();
    assert_eq!(reason, WaitReason::StdinRead);
}

#[test]
fn output_puts_a_verdict_off_and_unread_output_is_read_first() {
    let mut run = Run::new(LIMITS, InputFacts::default());
    let waiting = evidence(COOKED, vec![process(200, "cat", &[READ])]);
    let mut looks = 0;
    let see = |_| {
        looks += 1;
        Evidence { unread_output: looks == 1, ..waiting.clone() }
    };
    let (reason, ..) = run.until(millis(1_000), acted(), see).unwrap();
    assert_eq!(reason, WaitReason::StdinRead);
    assert_eq!(looks, 2);
}

#[test]
fn who_runs_beside_a_reader_has_a_moment_to_print() {
    let look = |grep: Wait| {
        evidence(COOKED, vec![process(200, "cat", &[READ]), process(201, "grep", &[grep])])
    };
    let settled_at = |runs_until: Duration| {
        let mut run = Run::new(LIMITS, InputFacts::default());
        let see =
            |now| look(if now < runs_until { Wait::Running } else { input(&[Descriptor::Pipe]) });
        let (reason, strength, at) = run.until(millis(1_000), acted(), see).unwrap();
        assert_eq!((reason, strength), (WaitReason::StdinRead, Strength::Exact));
        at
    };
    assert!(settled_at(Duration::ZERO) < millis(1));
    assert!((millis(5)..millis(8)).contains(&settled_at(millis(5))));
    assert!(settled_at(millis(1_000)) < millis(20), "it may run for ever");
}

#[test]
fn a_soft_verdict_needs_stillness() {
    let still = evidence(RAW, vec![process(200, "node", &[select(&[Descriptor::Socket], None)])]);
    let mut run = Run::new(LIMITS, InputFacts::default());
    let (reason, strength, at) = run.until(millis(500), acted(), |_| still.clone()).unwrap();
    assert_eq!((reason, strength), (WaitReason::StdinRead, Strength::Settled));
    assert!(at >= millis(8) && at < millis(20), "{at:?}");

    // Work in the window, and a waiter that is another one each time.
    let works = |now: Duration| {
        let mut it = still.clone();
        it.processes[0].cpu_ns = Some(u64::try_from(now.as_nanos()).unwrap());
        it
    };
    assert_eq!(Run::new(LIMITS, InputFacts::default()).until(millis(500), acted(), works), None);
    let mut pid = 200;
    let changes = |_| {
        pid += 1;
        evidence(RAW, vec![process(pid, "node", &[select(&[Descriptor::Socket], None)])])
    };
    assert_eq!(Run::new(LIMITS, InputFacts::default()).until(millis(500), acted(), changes), None);
}

/// A glance would not see everybody who may move.
#[test]
fn while_a_verdict_settles_every_look_is_at_everybody() {
    let still = evidence(RAW, vec![process(200, "node", &[select(&[Descriptor::Socket], None)])]);
    let mut exchange = Exchange::begin(Duration::ZERO, LIMITS, InputFacts::default());
    exchange.look(millis(1), &still, &acted(), &mut Judge::new(SHELL));
    exchange.asked(millis(2));
    assert_eq!(exchange.step(millis(2) + Duration::from_micros(100)), Step::Look(Depth::Full));
}

/// Follows an exchange in which every look can be as fast as the exchange asks for.
fn looks_until(
    exchange: &mut Exchange,
    mut see: impl FnMut(Depth, Duration) -> Evidence,
) -> (Vec<Depth>, Duration, WaitReason) {
    let (mut judge, mut now, mut looks) = (Judge::new(SHELL), Duration::ZERO, Vec::new());
    let mut step = exchange.step(now);
    loop {
        step = match step {
            Step::Wait(moment) => {
                now = moment;
                exchange.step(now)
            }
            Step::Look(depth) => {
                looks.push(depth);
                now += Duration::from_micros(20);
                exchange.look(now, &see(depth, now), &acted(), &mut judge)
            }
            Step::LastLook => exchange.look(now, &see(Depth::Full, now), &acted(), &mut judge),
            Step::Settled(it) => return (looks, now, it.reason),
        };
    }
}

fn at_depth(depth: Depth, evidence: Evidence) -> Evidence {
    Evidence { scan: if depth == Depth::Fast { Scan::Fast } else { Scan::Full }, ..evidence }
}

#[test]
fn an_exact_wait_costs_one_look_at_everybody() {
    let prompt = evidence(COOKED, vec![process(200, "python3", &[READ])]);
    let mut exchange = Exchange::begin(Duration::ZERO, LIMITS, InputFacts::default());
    let (looks, ..) = looks_until(&mut exchange, |depth, _| at_depth(depth, prompt.clone()));
    assert_eq!(looks, [Depth::Fast, Depth::Full]);

    // The others belie it.
    let relay =
        evidence(COOKED, vec![process(200, "relay", &[READ, input(&[Descriptor::PtyMaster])])]);
    let mut exchange = Exchange::begin(Duration::ZERO, LIMITS, InputFacts::default());
    let (_, _, reason) = looks_until(&mut exchange, |depth, _| match depth {
        Depth::Fast => at_depth(depth, prompt.clone()),
        Depth::Full => relay.clone(),
    });
    assert_eq!(reason, WaitReason::InferredIdle);
}

#[test]
fn the_shells_own_prompt_is_believed_at_a_glance() {
    let shell = evidence(RAW, vec![process(SHELL, "bash", &[select(&[], None)])]);
    let mut exchange = Exchange::begin(Duration::ZERO, LIMITS, InputFacts::default());
    let now = millis(1);
    let context = Context { prompt: Some(Prompt::Primary), ..acted() };
    let glance = at_depth(Depth::Fast, shell);
    let step = exchange.look(now, &glance, &context, &mut Judge::new(SHELL));
    assert!(matches!(step, Step::Settled(_)), "{step:?}");
}

/// Nobody is seen in a glance while input is unread.
#[test]
fn who_was_not_looked_at_is_not_idle() {
    let unread = |mut it: Evidence| {
        it.unread_input = Some(true);
        it
    };
    let sleep = unread(evidence(COOKED, vec![process(200, "sleep", &[Wait::Sleeping])]));
    let nobody = at_depth(Depth::Fast, unread(evidence(COOKED, Vec::new())));
    let mut exchange = Exchange::begin(Duration::ZERO, LIMITS, InputFacts::default());
    let mut judge = Judge::new(SHELL);
    exchange.look(millis(1), &sleep, &acted(), &mut judge);
    let step = exchange.look(millis(4_000), &nobody, &acted(), &mut judge);
    assert_eq!(step, Step::Look(Depth::Full));
    let step = exchange.look(millis(4_000), &sleep, &acted(), &mut judge);
    assert!(matches!(step, Step::Wait(_)), "{step:?}");
}

#[test]
fn input_that_is_taken_is_not_silence() {
    let quiet = |unwritten| Evidence {
        unwritten,
        ..evidence(COOKED, vec![process(200, "app", &[Wait::Other("futex")])])
    };
    let mut judge = Judge::new(SHELL);
    let mut exchange = Exchange::begin(Duration::ZERO, LIMITS, InputFacts::default());
    exchange.look(millis(1), &quiet(9_000), &acted(), &mut judge);
    let step = exchange.look(millis(3_500), &quiet(4_000), &acted(), &mut judge);
    assert!(!matches!(step, Step::Settled(_)), "{step:?}");
    exchange.stirred(millis(6_000));
    let step = exchange.look(millis(6_700), &quiet(4_000), &acted(), &mut judge);
    assert!(!matches!(step, Step::Settled(_)), "{step:?}");
    let step = exchange.look(millis(9_100), &quiet(4_000), &acted(), &mut judge);
    assert!(matches!(step, Step::Settled(_)), "{step:?}");
}

#[test]
fn what_may_be_a_prompt_is_looked_at_sooner_than_an_echo() {
    let look_after = |shape| {
        let mut exchange = Exchange::begin(Duration::ZERO, LIMITS, InputFacts::default());
        exchange.typed(millis(10), InputFacts::default());
        exchange.output(millis(10), 4, shape);
        match exchange.step(millis(10)) {
            Step::Wait(until) => until.saturating_sub(millis(10)),
            Step::Look(_) => Duration::ZERO,
            other => panic!("{other:?}"),
        }
    };
    let [prompt, line] = [Shape::Prompt, Shape::Line].map(look_after);
    let [echo, answer] = [Shape::Echo, Shape::Answer].map(look_after);
    assert!(prompt.is_zero() && !line.is_zero() && line < echo, "{line:?}, {echo:?}");
    // Behind the line end that an editor shows comes the answer.
    assert!(answer == echo && !echo.is_zero(), "{answer:?}, {echo:?}");
}

#[test]
fn output_that_shows_nothing_puts_nothing_off() {
    let still = evidence(RAW, vec![process(200, "node", &[select(&[Descriptor::Socket], None)])]);
    let context =
        Context { screen: ScreenFacts { text_before_cursor: false, ..acted().screen }, ..acted() };
    let settled_at = |visible: bool| {
        let mut exchange = Exchange::begin(Duration::ZERO, LIMITS, InputFacts::default());
        let mut judge = Judge::new(SHELL);
        (1..200).map(|tick| millis(tick * 20)).find(|&now| {
            if visible {
                exchange.output(now, 4, Shape::Line);
            } else {
                exchange.invisible_output(now);
            }
            let step = exchange.look(now, &still, &context, &mut judge);
            matches!(step, Step::Settled(it) if it.reason == WaitReason::StdinRead)
        })
    };
    assert_eq!(settled_at(true), None);
    assert!(settled_at(false).is_some_and(|at| at <= millis(300)));
}

#[test]
fn an_unfinished_line_that_nobody_takes_is_not_called_consumed() {
    let waiting = evidence(COOKED, vec![process(200, "cat", &[READ])]);
    let mut run = Run::new(LIMITS, InputFacts { unfinished: true });
    let context = Context { unfinished: true, ..acted() };
    let (reason, _, at) = run.until(millis(2_000), context, |_| waiting.clone()).unwrap();
    assert_eq!(reason, WaitReason::InferredIdle);
    assert!(at >= millis(500) && at < millis(600), "{at:?}");
}

#[test]
fn without_a_bound_a_background_send_waits_for_the_busy_for_ever() {
    let limits = Limits { timeout: None, ..LIMITS };
    let sleep = evidence(COOKED, vec![process(200, "sleep", &[Wait::Sleeping])]);
    let mut run = Run::new(limits, InputFacts::default());
    assert_eq!(run.until(Duration::from_hours(1), acted(), |_| sleep.clone()), None);
}
