//! The format of scenario files: what is typed into a program, and what must be seen.
//!
//! A file is a family, a scenario one session from its first prompt on, a step one send.
//! Reading a family accepts only steps that can fail for an early verdict: each names a text that
//! the verdict must not come before. A time is never needed for that, but sharpens it. A late
//! verdict fails too: a step that names no latest time gets one by what it does.

use std::{path::Path, str::FromStr};

use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Serialize};
use terminal::{Busy, Evidence, StateKind, WaitReason};

/// What a session's shell prompts with.
const PROMPT: &str = "dsh> ";

/// How long a program that is started at the session's prompt may take until it waits.
const START_MS: u64 = 1_500;

/// How long a program may take that waits and is told something, and so may an interruption.
const ANSWER_MS: u64 = 500;

/// How long an idle may take that nothing but silence speaks for, which is 3 s at least.
const SILENCE_MS: u64 = 6_000;

/// One file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Family {
    /// What the programs have in common.
    #[serde(rename = "family")]
    pub(crate) title: String,
    /// When the verdict of a step must have come that names no time of its own.
    #[serde(default)]
    pub(crate) max_ms: Option<u64>,
    /// In the order of the tables.
    pub(crate) scenarios: Vec<Scenario>,
}

/// One session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// Unique among all files.
    pub(crate) name: String,
    /// Programs that must be installed.
    #[serde(default)]
    pub(crate) needs: Vec<String>,
    /// What the run must provide.
    #[serde(default)]
    pub(crate) with: Vec<Provision>,
    /// Whether it is among those that guard main.
    #[serde(default)]
    pub(crate) ci: bool,
    /// Whether it guards main on a dumb terminal.
    #[serde(default)]
    pub(crate) ci_dumb: bool,
    /// Whether the host itself runs as an ordinary user, so that `su` and its like are opaque.
    #[serde(default)]
    pub(crate) ordinary_user: bool,
    /// The only values of `TERM` that the program works under; empty means all.
    #[serde(default)]
    pub(crate) terms: Vec<Term>,
    /// Absolute bound of each send, in milliseconds.
    #[serde(default = "default_timeout")]
    pub(crate) timeout_ms: u64,
    /// In order; each is played only if the one before went as expected.
    pub(crate) steps: Vec<Step>,
}

/// What a run can provide for a scenario, and takes away again at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Provision {
    /// Two users with passwords; the first may use `sudo`. Needs root.
    Users,
    /// An SSH server on loopback that the first user may log in to. Needs root.
    Sshd,
    /// A database server of `PostgreSQL` in a private folder. Needs root, for its own user.
    Postgres,
}

/// Values of `TERM` that the matrix is run under.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, Serialize, Deserialize,
)]
pub(crate) enum Term {
    /// A capable terminal.
    #[value(name = "xterm-256color")]
    #[serde(rename = "xterm-256color")]
    Xterm,
    /// One on which no line editor announces itself.
    #[value(name = "dumb")]
    #[serde(rename = "dumb")]
    Dumb,
}

impl Term {
    /// The variable's value.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Xterm => "xterm-256color",
            Self::Dumb => "dumb",
        }
    }
}

/// One send and what it must end with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// Text that is typed and followed by Enter.
    #[serde(default)]
    pub(crate) send: Option<String>,
    /// Text that is typed as it is.
    #[serde(default)]
    pub(crate) raw: Option<String>,
    /// How long nobody does anything before the send, in milliseconds.
    #[serde(default)]
    pub(crate) pause_ms: u64,
    /// How often the same is sent; each time must go right.
    #[serde(default = "once")]
    pub(crate) repeat: usize,
    /// What is right; of several any.
    pub(crate) expect: OneOrMore<Expected>,
    /// The weakest evidence that a proof, or an idle, may rest on.
    #[serde(default)]
    pub(crate) evidence: Option<Evidence>,
    /// The kind of an idle.
    #[serde(default)]
    pub(crate) kind: Option<StateKind>,
    /// What the foreground must be seen to do.
    #[serde(default)]
    pub(crate) busy: Option<OneOrMore<Busy>>,
    /// Texts that the viewport must contain, in this order.
    #[serde(default)]
    pub(crate) shows: OneOrMore<String>,
    /// Text at the end of the viewport.
    #[serde(default)]
    pub(crate) ends: Option<String>,
    /// The alternate screen must be shown; the viewport is then what is on it.
    #[serde(default)]
    pub(crate) full_screen: bool,
    /// How long the program is known to work, in milliseconds.
    #[serde(default)]
    pub(crate) min_ms: Option<u64>,
    /// When the verdict must have come, in milliseconds.
    #[serde(default)]
    pub(crate) max_ms: Option<u64>,
    /// Nothing may end the send for so many milliseconds; then it is cancelled.
    #[serde(default)]
    pub(crate) interrupt_ms: Option<u64>,
    /// Why no proof is possible although the program waits. The step must end with what it
    /// expects, and never as a proof.
    #[serde(default)]
    pub(crate) impossible: Option<String>,
    /// The exit status that is reported.
    #[serde(default)]
    pub(crate) exit: Option<i32>,
}

/// What a send may end as. The first eight are kinds of a proven or likely wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Expected {
    /// A wait of any kind.
    Ready,
    /// The session's own shell.
    Prompt,
    /// The session's own shell, in the middle of a command.
    Continuation,
    /// A reader of lines.
    Line,
    /// A program's own line editor.
    LineEditor,
    /// A reader of lines without echo.
    Password,
    /// A reader of keys.
    Raw,
    /// A full-screen program.
    Tui,
    /// Silence that proves nothing.
    Idle,
    /// The absolute bound.
    Timeout,
    /// The end of the session.
    Exit,
}

impl Expected {
    /// The reason that stands for it.
    pub(crate) const fn reason(self) -> WaitReason {
        match self {
            Self::Idle => WaitReason::InferredIdle,
            Self::Timeout => WaitReason::Timeout,
            Self::Exit => WaitReason::SessionExit,
            _ => WaitReason::StdinRead,
        }
    }

    /// Whether a wait of this kind is meant. Without bracketed paste and an alternate screen an
    /// editor cannot be told from any other reader of keys.
    pub(crate) fn is_kind(self, kind: StateKind, term: Term) -> bool {
        let keys = matches!(kind, StateKind::LineEditor | StateKind::Raw | StateKind::Tui);
        match self {
            Self::Ready => !matches!(kind, StateKind::Running | StateKind::Exited),
            Self::Prompt => kind == StateKind::Prompt,
            Self::Continuation => kind == StateKind::Continuation,
            Self::Line => kind == StateKind::Line,
            Self::Password => kind == StateKind::Password,
            Self::LineEditor | Self::Raw | Self::Tui if term == Term::Dumb => keys,
            Self::LineEditor => kind == StateKind::LineEditor,
            Self::Raw => kind == StateKind::Raw,
            Self::Tui => kind == StateKind::Tui,
            Self::Idle | Self::Timeout | Self::Exit => false,
        }
    }
}

/// A list that may be written as its only member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMore<T> {
    /// The only one.
    One(T),
    /// Any number.
    More(Vec<T>),
}

impl<T> OneOrMore<T> {
    /// All of them.
    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            Self::One(it) => std::slice::from_ref(it),
            Self::More(all) => all,
        }
    }

    /// The same, to change.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        match self {
            Self::One(it) => std::slice::from_mut(it),
            Self::More(all) => all,
        }
    }
}

impl<T> Default for OneOrMore<T> {
    fn default() -> Self {
        Self::More(Vec::new())
    }
}

const fn default_timeout() -> u64 {
    20_000
}

const fn once() -> usize {
    1
}

impl Scenario {
    /// Whether it works under `term`, and guards main there if that is asked for.
    pub(crate) fn is_for(&self, term: Term, guards: bool) -> bool {
        let works = self.terms.is_empty() || self.terms.contains(&term);
        let guard = match term {
            Term::Xterm => self.ci,
            Term::Dumb => self.ci_dumb,
        };
        works && (guard || !guards)
    }

    /// Each step as often as it is sent, in order.
    pub(crate) fn sends(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().flat_map(|step| std::iter::repeat_n(step, step.repeat))
    }
}

impl Step {
    /// What is typed, and whether Enter follows.
    pub(crate) fn input(&self) -> (&str, bool) {
        match (&self.send, &self.raw) {
            (Some(text), _) => (text, true),
            (None, raw) => (raw.as_deref().unwrap_or_default(), false),
        }
    }

    /// Whether anything may end it as a reason that is no wait.
    pub(crate) fn allows(&self, reason: WaitReason) -> bool {
        self.expect.as_slice().iter().any(|it| it.reason() == reason)
    }

    fn check(&self) -> anyhow::Result<()> {
        ensure!(
            self.send.is_some() != self.raw.is_some(),
            "give what is typed as `send` (Enter follows) or as `raw`, and not both"
        );
        ensure!(!self.expect.as_slice().is_empty(), "`expect` is empty: name what is right");
        let shows = self.shows.as_slice();
        ensure!(
            !shows.is_empty() || self.ends.is_some(),
            "give a text that must be seen, as `shows` or `ends`: without one an early verdict \
             passes, also where the alternate screen is shown before anything is on it"
        );
        ensure!(self.repeat > 0, "a step that is never played proves nothing");
        ensure!(
            shows.iter().chain(&self.ends).all(|text| !text.trim().is_empty()),
            "a text that must be seen is blank: every viewport would contain it"
        );
        let (typed, submit) = self.input();
        let echo = if submit { format!("{typed}\n") } else { typed.to_owned() };
        let typed = shows.iter().find(|text| echo.contains(text.as_str()));
        let typed =
            typed.or(self.ends.as_ref().filter(|it| echo.trim_end().ends_with(it.trim_end())));
        if let Some(text) = typed {
            bail!("{text:?} must be seen, and is typed: its echo would do");
        }
        if let (Some(min), Some(max)) = (self.min_ms, self.max_ms) {
            ensure!(min < max, "max_ms ({max}) must be greater than min_ms ({min})");
        }
        ensure!(
            self.min_ms.is_none() || self.interrupt_ms.is_none(),
            "min_ms and interrupt_ms exclude each other: the program works until it is interrupted"
        );
        if self.impossible.is_some() {
            ensure!(
                !self.allows(WaitReason::StdinRead),
                "a step that is impossible to prove must not expect a wait: expect `idle`"
            );
        }
        let idle = self.allows(WaitReason::InferredIdle);
        ensure!(
            self.evidence.is_none() || self.allows(WaitReason::StdinRead) || idle,
            "`evidence` is about waits and idles, and `expect` names none"
        );
        ensure!(self.kind.is_none() || idle, "`kind` is about idles, and `expect` names none");
        ensure!(
            self.evidence.is_some() || self.expect.as_slice() != [Expected::Idle],
            "say on what `evidence` the idle rests"
        );
        Ok(())
    }

    /// When the verdict must have come at the latest, where the step does not say.
    fn latest(&self, starts: bool, family: Option<u64>, timeout: u64) -> u64 {
        if self.allows(WaitReason::Timeout) {
            return timeout + ANSWER_MS;
        }
        if let Some(interrupted) = self.interrupt_ms {
            return interrupted + ANSWER_MS;
        }
        if let Some(works) = self.min_ms {
            return works + START_MS;
        }
        if self.allows(WaitReason::InferredIdle) {
            let sure = self.evidence.is_some_and(|it| it != Evidence::Silence);
            return if sure { START_MS } else { SILENCE_MS };
        }
        family.unwrap_or(if starts { START_MS } else { ANSWER_MS })
    }

    /// Moves the latest time away from what the program needs by itself, so many times as far.
    pub(crate) fn be_patient(&mut self, times: u64) {
        let works = self.min_ms.or(self.interrupt_ms).unwrap_or(0);
        if let Some(latest) = &mut self.max_ms {
            *latest = works + latest.saturating_sub(works).saturating_mul(times);
        }
    }
}

impl FromStr for Family {
    type Err = anyhow::Error;

    /// Parses and checks a file. A step that expects the shell's prompt and names no text gets the
    /// prompt's, and one without a latest time gets that of its kind.
    fn from_str(text: &str) -> anyhow::Result<Self> {
        let mut family: Self = serde_saphyr::from_str(text)?;
        for scenario in &mut family.scenarios {
            let mut at_prompt = true;
            for step in &mut scenario.steps {
                let latest = step.latest(at_prompt, family.max_ms, scenario.timeout_ms);
                step.max_ms.get_or_insert(latest);
                at_prompt = step.expect.as_slice() == [Expected::Prompt];
                if at_prompt && step.ends.is_none() {
                    step.ends = Some(PROMPT.to_owned());
                }
            }
        }
        for scenario in &family.scenarios {
            let name = &scenario.name;
            ensure!(!name.trim().is_empty(), "a scenario has no name");
            ensure!(!scenario.steps.is_empty(), "`{name}` has no steps");
            if scenario.ordinary_user {
                ensure!(
                    scenario.with.contains(&Provision::Users),
                    "`{name}` runs as an ordinary user: add `with: [users]`"
                );
            }
            for (guards, term) in [(scenario.ci, Term::Xterm), (scenario.ci_dumb, Term::Dumb)] {
                ensure!(
                    !guards || scenario.is_for(term, false),
                    "`{name}` cannot guard main under TERM={}: its `terms` lack that",
                    term.as_str()
                );
            }
            for (number, step) in scenario.steps.iter().enumerate() {
                step.check().with_context(|| format!("`{name}`, step {}", number + 1))?;
            }
        }
        Ok(family)
    }
}

/// Every family of `folder`, in the order of their file names.
pub(crate) fn load(folder: &Path) -> anyhow::Result<Vec<Family>> {
    let mut files = Vec::new();
    for entry in folder.read_dir().with_context(|| format!("no folder {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "yml") {
            files.push(path);
        }
    }
    files.sort();
    let mut families: Vec<Family> = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path)?;
        let family: Family = text.parse().with_context(|| path.display().to_string())?;
        for scenario in &family.scenarios {
            let mut all = families.iter().flat_map(|it| &it.scenarios).chain(&family.scenarios);
            if all.by_ref().filter(|it| it.name == scenario.name).count() > 1 {
                bail!("{}: two scenarios are named `{}`", path.display(), scenario.name);
            }
        }
        families.push(family);
    }
    Ok(families)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(steps: &str) -> anyhow::Result<Family> {
        let indented = steps.replace('\n', "\n      ");
        format!("family: f\nscenarios:\n  - name: s\n    steps:\n      {indented}").parse()
    }

    fn problem(steps: &str) -> String {
        format!("{:#}", one(steps).unwrap_err())
    }

    #[test]
    fn a_step_says_what_is_typed_and_what_is_right() {
        let family = one("- send: cat\n  expect: line\n  shows: hi\n\
                          - raw: \"\\x04\"\n  expect: prompt\n  min_ms: 5")
        .unwrap();
        let steps = &family.scenarios[0].steps;
        assert_eq!(steps[0].input(), ("cat", true));
        assert_eq!(steps[0].expect.as_slice(), [Expected::Line]);
        assert_eq!(steps[1].input(), ("\u{4}", false));
        assert_eq!(steps[1].ends.as_deref(), Some("dsh> "));
        assert!(steps[1].allows(WaitReason::StdinRead));
        assert!(!steps[1].allows(WaitReason::Timeout));
        assert_eq!(family.scenarios[0].timeout_ms, 20_000);
    }

    #[test]
    fn every_step_has_a_latest_time() {
        let latest = |steps: &str, family: &str| {
            let text = format!(
                "{family}family: f\nscenarios:\n  - name: s\n    timeout_ms: 9000\n    steps:\n      \
                 {}",
                steps.replace('\n', "\n      ")
            );
            let family: Family = text.parse().unwrap();
            family.scenarios[0].steps.iter().map(|it| it.max_ms.unwrap()).collect::<Vec<_>>()
        };
        let waits = "- { send: x, expect: line, shows: s }\n- { send: y, expect: prompt }\n\
                     - { send: x, expect: line, shows: s, max_ms: 7 }";
        assert_eq!(latest(waits, ""), [1500, 500, 7], "a start, an answer, what is said");
        assert_eq!(latest(waits, "max_ms: 100\n"), [100, 100, 7], "what the family says");
        let works = "- { send: x, expect: prompt, min_ms: 2000 }\n\
                     - { send: x, expect: prompt, interrupt_ms: 3000 }";
        assert_eq!(latest(works, "max_ms: 100\n"), [3500, 3500], "from the end of its work on");
        let idles = "- { send: x, expect: idle, evidence: silence, shows: s }\n\
                     - { send: x, expect: idle, evidence: prompt_text, shows: s }\n\
                     - { send: x, expect: [line, timeout], shows: s }";
        assert_eq!(latest(idles, ""), [6000, 1500, 9500]);
    }

    #[test]
    fn patience_is_with_us_and_not_with_the_program() {
        let steps = "- { send: x, expect: prompt, min_ms: 2000, max_ms: 2100 }\n\
                     - { send: x, expect: prompt, max_ms: 100 }";
        let mut family = one(steps).unwrap();
        let steps = &mut family.scenarios[0].steps;
        for step in &mut *steps {
            step.be_patient(3);
        }
        assert_eq!([steps[0].max_ms, steps[1].max_ms], [Some(2300), Some(300)]);
    }

    #[test]
    fn what_could_not_fail_is_refused() {
        let cases = [
            ("- send: x\n  expect: line", "must be seen"),
            ("- send: x\n  expect: line\n  shows: ' '", "blank"),
            ("- send: x\n  expect: line\n  shows: []", "must be seen"),
            ("- send: x\n  expect: tui\n  full_screen: true", "must be seen"),
            ("- send: x\n  expect: line\n  shows: s\n  repeat: 0", "never played"),
            ("- send: x\n  expect: idle\n  shows: s", "on what `evidence`"),
            ("- send: x\n  expect: line\n  shows: s\n  kind: relay", "about idles"),
            ("- send: echo hi\n  expect: line\n  shows: hi", "its echo"),
            ("- send: cat >\n  expect: line\n  ends: '> '", "its echo"),
            ("- send: x\n  raw: y\n  expect: line\n  shows: s", "not both"),
            ("- expect: line\n  shows: s", "what is typed"),
            ("- send: x\n  expect: []\n  shows: s", "`expect` is empty"),
            ("- send: x\n  expect: line\n  shows: s\n  min_ms: 5\n  max_ms: 5", "greater than"),
            ("- send: x\n  expect: line\n  shows: s\n  min_ms: 5\n  interrupt_ms: 9", "exclude"),
            ("- send: x\n  expect: [idle, line]\n  shows: s\n  impossible: y", "must not expect"),
            ("- send: x\n  expect: exit\n  shows: s\n  evidence: exact", "names none"),
            ("- send: x\n  expect: line\n  shows: s\n  sows: y", "sows"),
            ("- send: x\n  expect: sleepy\n  shows: s", "expect"),
        ];
        for (steps, needle) in cases {
            let problem = problem(steps);
            assert!(problem.contains(needle), "{steps}\ngave: {problem}");
        }
    }

    #[test]
    fn every_file_keeps_the_rules() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let families = load(&folder).unwrap();
        let scenarios: usize = families.iter().map(|it| it.scenarios.len()).sum();
        assert!(scenarios >= 100, "{scenarios} scenarios");
    }

    #[test]
    fn an_ordinary_user_needs_users() {
        let text = "family: f\nscenarios:\n  - name: s\n    ordinary_user: true\n    steps:\n      \
                    - { send: x, expect: line, shows: s }";
        assert!(text.parse::<Family>().unwrap_err().to_string().contains("with: [users]"));
    }

    #[test]
    fn a_guard_of_main_works_under_its_terminal() {
        let family = |fields: &str| {
            let steps = "steps: [{ send: x, expect: line, shows: s }]";
            let text = format!("family: f\nscenarios:\n- {{ name: s, {fields}{steps} }}");
            text.parse::<Family>()
        };
        let both = family("ci: true, ci_dumb: true, ").unwrap();
        let dumb = family("ci_dumb: true, terms: [dumb], ").unwrap();
        let none = family("").unwrap();
        let guards =
            |it: &Family| [Term::Xterm, Term::Dumb].map(|term| it.scenarios[0].is_for(term, true));
        assert_eq!(
            [guards(&both), guards(&dumb), guards(&none)],
            [[true; 2], [false, true], [false; 2]]
        );
        assert!(none.scenarios[0].is_for(Term::Dumb, false));
        let wrong = family("ci: true, terms: [dumb], ").unwrap_err().to_string();
        assert!(wrong.contains("TERM=xterm-256color"), "{wrong}");
    }

    #[test]
    fn kinds_of_key_readers_are_one_on_a_dumb_terminal() {
        for expected in [Expected::LineEditor, Expected::Raw, Expected::Tui] {
            assert!(expected.is_kind(StateKind::Raw, Term::Dumb));
            assert!(!expected.is_kind(StateKind::Line, Term::Dumb));
            assert!(!expected.is_kind(StateKind::Password, Term::Xterm));
        }
        assert!(!Expected::Tui.is_kind(StateKind::Raw, Term::Xterm));
        assert!(Expected::Ready.is_kind(StateKind::Relay, Term::Xterm));
        assert!(!Expected::Ready.is_kind(StateKind::Running, Term::Xterm));
    }
}
