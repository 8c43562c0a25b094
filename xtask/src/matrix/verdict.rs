//! What a send ended with, held against what is right: faults, and cells of the confusion matrix.
//!
//! Pure. A verdict is premature when it comes before the known busy time has passed, or before a
//! text that the program prints first is there.

use std::fmt;

use serde::{Deserialize, Serialize};
use terminal::{Busy, Evidence, LastCommand, SendState, StateKind, WaitReason};

use super::scenario::{Step, Term};

/// What a send ended with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Observation {
    /// Why it ended.
    pub(crate) reason: WaitReason,
    /// What the session does.
    pub(crate) state: Option<SendState>,
    /// The shell command that ended.
    pub(crate) last_command: Option<LastCommand>,
    /// From the write to the settlement, in microseconds.
    pub(crate) took_us: u64,
    /// Whether it was still waiting when the step cancelled it.
    pub(crate) interrupted: bool,
    /// All that was shown.
    pub(crate) viewport: String,
}

/// What was wrong with a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    BeforeTime { reason: WaitReason, at_ms: u64, known_ms: u64 },
    BeforeText { reason: WaitReason, text: String },
    BeforeScreen { reason: WaitReason },
    FalseProof,
    NotFound { reason: WaitReason },
    WrongKind { kind: Option<StateKind> },
    WeakEvidence { evidence: Option<Evidence>, needed: Evidence },
    WrongBusy { busy: Option<Busy> },
    WrongExit { exit: Option<i32> },
    TooLate { at_ms: u64, latest_ms: u64 },
}

impl Fault {
    /// Whether something was called ready while the program worked.
    pub(crate) const fn is_premature(&self) -> bool {
        matches!(
            self,
            Self::BeforeTime { .. }
                | Self::BeforeText { .. }
                | Self::BeforeScreen { .. }
                | Self::FalseProof
        )
    }

    /// Whether what follows in the scenario would be typed into something unknown.
    pub(crate) const fn ends_scenario(&self) -> bool {
        self.is_premature() || matches!(self, Self::NotFound { .. })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeforeTime { reason, at_ms, known_ms } => {
                write!(f, "premature: {} at {at_ms} ms, busy for {known_ms} ms", reason.as_str())
            }
            Self::BeforeText { reason, text } => {
                write!(f, "premature: {} without {text:?}", reason.as_str())
            }
            Self::BeforeScreen { reason } => {
                write!(f, "premature: {} without the alternate screen", reason.as_str())
            }
            Self::FalseProof => f.write_str("a proof where none is possible"),
            Self::NotFound { reason } => write!(f, "not found: ended as {}", reason.as_str()),
            Self::WrongKind { kind } => write!(f, "the kind is {}", name_of(kind.as_ref())),
            Self::WeakEvidence { evidence, needed } => write!(
                f,
                "the evidence is {}, at least {} is needed",
                name_of(evidence.as_ref()),
                name_of(Some(needed))
            ),
            Self::WrongBusy { busy } => write!(f, "busy is {}", name_of(busy.as_ref())),
            Self::WrongExit { exit: Some(exit) } => write!(f, "the exit status is {exit}"),
            Self::WrongExit { exit: None } => f.write_str("the exit status is unknown"),
            Self::TooLate { at_ms, latest_ms } => {
                write!(f, "too late: at {at_ms} ms, at most {latest_ms} ms are right")
            }
        }
    }
}

/// The wire's name of a value.
pub(crate) fn name_of<T: Serialize>(value: Option<&T>) -> String {
    let name = value.map(|it| serde_json::to_value(it).unwrap_or_default());
    name.and_then(|it| it.as_str().map(str::to_owned)).unwrap_or_else(|| "unknown".to_owned())
}

/// What the program was doing, as far as the scenario knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Truth {
    /// It works: nothing may end the send.
    Works,
    /// It waits for the terminal.
    Waits,
    /// It waits, and nothing that can be seen tells.
    Hidden,
    /// It is quiet without waiting for the terminal, such as a server.
    Quiet,
    /// The session has ended.
    Ended,
    /// More than one answer is right.
    Open,
}

impl Truth {
    /// Every one, in the order of the table.
    pub(crate) const ALL: [Self; 6] =
        [Self::Works, Self::Waits, Self::Hidden, Self::Quiet, Self::Ended, Self::Open];

    /// The row's title.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Waits => "waits for the terminal",
            Self::Hidden => "waits, and nothing shows it",
            Self::Quiet => "serves, off the terminal",
            Self::Ended => "has ended",
            Self::Open => "several answers are right",
        }
    }
}

/// How a phase ended: with a reason, or not at all.
pub(crate) type Settled = Option<WaitReason>;

/// What is said about one send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Everything wrong; empty when it went as expected.
    pub(crate) faults: Vec<Fault>,
    /// One cell of the confusion matrix for each phase that was seen.
    pub(crate) cells: Vec<(Truth, Settled)>,
}

/// Holds `seen` against `step`.
pub(crate) fn judge(step: &Step, term: Term, seen: &Observation) -> Verdict {
    let mut verdict = Verdict::default();
    let at_ms = seen.took_us / 1000;
    let works_for = step.min_ms.or(step.interrupt_ms);
    if let Some(known_ms) = works_for {
        let early = if step.interrupt_ms.is_some() { !seen.interrupted } else { at_ms < known_ms };
        verdict.cells.push((Truth::Works, early.then_some(seen.reason)));
        if early {
            verdict.faults.push(Fault::BeforeTime { reason: seen.reason, at_ms, known_ms });
            return verdict;
        }
    }
    let waits = seen.reason == WaitReason::StdinRead;
    if step.impossible.is_some() && waits {
        verdict.cells.push((Truth::Hidden, Some(seen.reason)));
        verdict.faults.push(Fault::FalseProof);
        return verdict;
    }
    if !step.allows(seen.reason) {
        verdict.cells.push((truth(step), Some(seen.reason)));
        verdict.faults.push(Fault::NotFound { reason: seen.reason });
        return verdict;
    }
    if let Some(fault) = not_shown(step, seen) {
        let truth = if waits { Truth::Works } else { truth(step) };
        verdict.cells.push((truth, Some(seen.reason)));
        verdict.faults.push(fault);
        return verdict;
    }
    verdict.cells.push((truth(step), Some(seen.reason)));
    details(step, term, seen, &mut verdict.faults);
    if let Some(latest_ms) = step.max_ms.filter(|&it| at_ms > it) {
        verdict.faults.push(Fault::TooLate { at_ms, latest_ms });
    }
    verdict
}

fn details(step: &Step, term: Term, seen: &Observation, faults: &mut Vec<Fault>) {
    let kind = seen.state.as_ref().map(|it| it.kind);
    let evidence = seen.state.as_ref().map(|it| it.evidence);
    let busy = seen.state.as_ref().and_then(|it| it.busy);
    let meant = match seen.reason {
        WaitReason::StdinRead => {
            let meant = |it: StateKind| step.expect.as_slice().iter().any(|e| e.is_kind(it, term));
            kind.is_some_and(meant)
        }
        WaitReason::InferredIdle => step.kind.is_none() || kind == step.kind,
        _ => true,
    };
    if !meant {
        faults.push(Fault::WrongKind { kind });
    }
    if let Some(needed) = step.evidence
        && matches!(seen.reason, WaitReason::StdinRead | WaitReason::InferredIdle)
        && evidence.is_none_or(|it| strength(it) > strength(needed))
    {
        faults.push(Fault::WeakEvidence { evidence, needed });
    }
    if let Some(right) = &step.busy
        && seen.reason != WaitReason::StdinRead
        && !busy.is_some_and(|it| right.as_slice().contains(&it))
    {
        faults.push(Fault::WrongBusy { busy });
    }
    if let Some(right) = step.exit {
        let exit = seen.last_command.as_ref().and_then(|it| it.exit_code);
        if exit != Some(right) {
            faults.push(Fault::WrongExit { exit });
        }
    }
}

fn truth(step: &Step) -> Truth {
    if step.impossible.is_some() {
        return Truth::Hidden;
    }
    let mut reasons: Vec<_> = step.expect.as_slice().iter().map(|it| it.reason()).collect();
    reasons.dedup();
    match reasons[..] {
        [WaitReason::StdinRead] => Truth::Waits,
        [WaitReason::InferredIdle] => Truth::Quiet,
        [WaitReason::SessionExit] => Truth::Ended,
        _ => Truth::Open,
    }
}

/// The first thing that must be seen and is not.
fn not_shown(step: &Step, seen: &Observation) -> Option<Fault> {
    let reason = seen.reason;
    if let Some(text) = missing_text(step, &seen.viewport) {
        return Some(Fault::BeforeText { reason, text: text.to_owned() });
    }
    let full = seen.state.as_ref().is_some_and(|it| it.alternate_screen);
    (step.full_screen && !full).then_some(Fault::BeforeScreen { reason })
}

/// The first text that is not where it must be.
fn missing_text<'a>(step: &'a Step, viewport: &str) -> Option<&'a str> {
    let mut rest = viewport;
    for text in step.shows.as_slice() {
        let Some(at) = rest.find(text.as_str()) else { return Some(text) };
        rest = &rest[at + text.len()..];
    }
    step.ends.as_deref().filter(|text| !viewport.trim_end().ends_with(text.trim_end()))
}

/// Smaller is stronger.
const fn strength(evidence: Evidence) -> u8 {
    match evidence {
        Evidence::Exact => 0,
        Evidence::Known | Evidence::EditorMode => 1,
        Evidence::Settled | Evidence::Relay => 2,
        Evidence::OpaqueRead => 3,
        Evidence::PromptText => 4,
        Evidence::Silence => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::scenario::{Expected, OneOrMore};

    fn step() -> Step {
        Step {
            send: Some("x".to_owned()),
            raw: None,
            pause_ms: 0,
            repeat: 1,
            expect: OneOrMore::One(Expected::Line),
            evidence: Some(Evidence::Exact),
            kind: None,
            busy: None,
            shows: OneOrMore::More(vec!["one".to_owned(), "two".to_owned()]),
            ends: Some("> ".to_owned()),
            full_screen: false,
            min_ms: Some(100),
            max_ms: Some(500),
            interrupt_ms: None,
            impossible: None,
            exit: None,
        }
    }

    fn seen() -> Observation {
        Observation {
            reason: WaitReason::StdinRead,
            state: Some(SendState {
                kind: StateKind::Line,
                evidence: Evidence::Exact,
                echo: true,
                alternate_screen: false,
                foreground: None,
                busy: None,
                output_complete: true,
            }),
            last_command: None,
            took_us: 150_000,
            interrupted: false,
            viewport: "one\ntwo\n> ".to_owned(),
        }
    }

    fn check(
        step: impl FnOnce(&mut Step),
        seen: impl FnOnce(&mut Observation),
        cells: &[(Truth, Settled)],
        fault: &str,
    ) {
        let (mut this, mut that) = (self::step(), self::seen());
        step(&mut this);
        seen(&mut that);
        let verdict = judge(&this, Term::Xterm, &that);
        let faults: Vec<_> = verdict.faults.iter().map(Fault::to_string).collect();
        assert_eq!(faults.join("; "), fault);
        assert_eq!(verdict.cells, cells);
    }

    fn state(seen: &mut Observation) -> &mut SendState {
        seen.state.as_mut().unwrap()
    }

    const WORKED: (Truth, Settled) = (Truth::Works, None);
    const FOUND: (Truth, Settled) = (Truth::Waits, Some(WaitReason::StdinRead));

    #[test]
    fn what_is_right_has_no_fault() {
        check(|_| {}, |_| {}, &[WORKED, FOUND], "");
        check(|it| it.min_ms = None, |_| {}, &[FOUND], "");
        check(
            |it| it.evidence = None,
            |it| state(it).evidence = Evidence::Settled,
            &[WORKED, FOUND],
            "",
        );
        check(|it| it.ends = Some(">".to_owned()), |_| {}, &[WORKED, FOUND], "");
    }

    #[test]
    fn a_verdict_before_the_known_time_is_premature_whatever_its_reason() {
        for reason in [WaitReason::StdinRead, WaitReason::InferredIdle, WaitReason::Timeout] {
            check(
                |it| {
                    let all = vec![Expected::Line, Expected::Idle, Expected::Timeout];
                    it.expect = OneOrMore::More(all);
                },
                |it| (it.took_us, it.reason) = (99_999, reason),
                &[(Truth::Works, Some(reason))],
                &format!("premature: {} at 99 ms, busy for 100 ms", reason.as_str()),
            );
        }
    }

    #[test]
    fn a_wait_without_its_text_is_premature() {
        let cells = [WORKED, (Truth::Works, Some(WaitReason::StdinRead))];
        for (viewport, text) in
            [("two\none\n> ", "two"), ("one\n> ", "two"), ("one\ntwo\n", "> "), ("", "one")]
        {
            let fault = format!("premature: stdin_read without {text:?}");
            check(|_| {}, |it| it.viewport = viewport.to_owned(), &cells, &fault);
        }
    }

    #[test]
    fn a_full_screen_program_must_have_drawn() {
        let full = |it: &mut Step| it.full_screen = true;
        check(full, |it| state(it).alternate_screen = true, &[WORKED, FOUND], "");
        let cells = [WORKED, (Truth::Works, Some(WaitReason::StdinRead))];
        check(full, |_| {}, &cells, "premature: stdin_read without the alternate screen");
    }

    #[test]
    fn what_must_go_on_must_have_been_interrupted() {
        let endless = |it: &mut Step| (it.min_ms, it.interrupt_ms) = (None, Some(9000));
        check(endless, |it| it.interrupted = true, &[WORKED, FOUND], "");
        let early = "premature: stdin_read at 150 ms, busy for 9000 ms";
        check(endless, |_| {}, &[(Truth::Works, Some(WaitReason::StdinRead))], early);
    }

    #[test]
    fn an_end_without_a_wait_is_a_wait_not_found() {
        let cell = (Truth::Waits, Some(WaitReason::InferredIdle));
        let idle = |it: &mut Observation| it.reason = WaitReason::InferredIdle;
        check(|_| {}, idle, &[WORKED, cell], "not found: ended as inferred_idle");
    }

    #[test]
    fn the_impossible_is_never_proven() {
        let hidden = |it: &mut Step| {
            it.impossible = Some("inside ssh".to_owned());
            it.expect = OneOrMore::One(Expected::Idle);
            it.evidence = None;
        };
        let idle = |it: &mut Observation| it.reason = WaitReason::InferredIdle;
        check(hidden, idle, &[WORKED, (Truth::Hidden, Some(WaitReason::InferredIdle))], "");
        let cell = (Truth::Hidden, Some(WaitReason::StdinRead));
        check(hidden, |_| {}, &[WORKED, cell], "a proof where none is possible");
    }

    #[test]
    fn details_are_held_against_the_step() {
        let cells = [WORKED, FOUND];
        check(|_| {}, |it| state(it).kind = StateKind::Raw, &cells, "the kind is raw");
        check(
            |_| {},
            |it| it.state = None,
            &cells,
            "the kind is unknown; the evidence is unknown, at least exact is needed",
        );
        check(
            |_| {},
            |it| state(it).evidence = Evidence::EditorMode,
            &cells,
            "the evidence is editor_mode, at least exact is needed",
        );
        check(
            |_| {},
            |it| it.took_us = 501_000,
            &cells,
            "too late: at 501 ms, at most 500 ms are right",
        );
        check(|it| it.exit = Some(3), |_| {}, &cells, "the exit status is unknown");
    }

    #[test]
    fn a_server_is_quiet_for_a_reason() {
        let server = |it: &mut Step| {
            it.expect = OneOrMore::One(Expected::Idle);
            it.busy = Some(OneOrMore::One(Busy::Network));
            (it.evidence, it.min_ms) = (None, None);
        };
        let quiet = |it: &mut Observation| it.reason = WaitReason::InferredIdle;
        let cells = [(Truth::Quiet, Some(WaitReason::InferredIdle))];
        check(server, quiet, &cells, "busy is unknown");
        let network = |it: &mut Observation| {
            quiet(it);
            state(it).busy = Some(Busy::Network);
        };
        check(server, network, &cells, "");
    }

    #[test]
    fn an_idle_rests_on_what_is_meant() {
        let far = |it: &mut Step| {
            it.expect = OneOrMore::One(Expected::Idle);
            it.kind = Some(StateKind::Relay);
            (it.evidence, it.min_ms) = (Some(Evidence::PromptText), None);
        };
        let idle = |it: &mut Observation| {
            it.reason = WaitReason::InferredIdle;
            (state(it).kind, state(it).evidence) = (StateKind::Relay, Evidence::PromptText);
        };
        let cells = [(Truth::Quiet, Some(WaitReason::InferredIdle))];
        check(far, idle, &cells, "");
        let silent = |it: &mut Observation| {
            idle(it);
            state(it).evidence = Evidence::Silence;
        };
        let weak = "the evidence is silence, at least prompt_text is needed";
        check(far, silent, &cells, weak);
        let near = |it: &mut Observation| {
            idle(it);
            state(it).kind = StateKind::Running;
        };
        check(far, near, &cells, "the kind is running");
    }

    #[test]
    fn evidence_has_an_order() {
        use Evidence::{EditorMode, Exact, Known, OpaqueRead, PromptText, Relay, Settled, Silence};
        let all = [Exact, Known, EditorMode, Settled, Relay, OpaqueRead, PromptText, Silence];
        assert!(all.is_sorted_by_key(|it| strength(*it)));
    }
}
