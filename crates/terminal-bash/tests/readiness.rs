//! The judge on tables of evidence, and the exchange on sequences of them. No terminal, no clock.

use std::time::Duration;

use subprocess::{Descriptor, Evidence, Modes, Multiplexer, ProcessFacts, Scan, ThreadFacts, Wait};
use terminal::{Busy, Evidence as Strength, StateKind, WaitReason};
use terminal_bash::readiness::{
    Exchange, InputFacts, Judge, Judgement, Limits, Prompt, ScreenFacts, Step, Verdict,
    judge::Context,
};

const SHELL: i32 = 100;
const COOKED: Modes = Modes { canonical: true, echo: true, signals: true, read_timeout_ms: None };
const SILENT: Modes = Modes { canonical: true, echo: false, signals: true, read_timeout_ms: None };
const RAW: Modes = Modes { canonical: false, echo: false, signals: true, read_timeout_ms: None };
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
        unread_output: false,
    }
}

/// Everything that a soft verdict may need besides.
fn acted() -> Context {
    Context {
        screen: ScreenFacts {
            acted_upon: true,
            text_before_cursor: true,
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
        (vec![select(&[], Some(4_000))], Some(8)),
        (vec![select(&[Descriptor::EventFd], None), Wait::Other("futex")], Some(8)),
        // A helper's read, alone and beside a thread that works.
        (vec![Wait::Other("futex"), READ], Some(100)),
        (vec![Wait::Running, READ], None),
        // A relay speaks for another terminal.
        (vec![select(&[Descriptor::PtyMaster], None)], None),
    ] {
        let look = evidence(RAW, vec![process(200, "app", &waits)]);
        assert_eq!(settles(&look, acted()), expected, "{waits:?}");
        assert_eq!(settles(&look, Context::default()), None, "not acted upon: {waits:?}");
    }
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
    assert!(run.looks < 500, "looks grow rare: {}", run.looks);
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
