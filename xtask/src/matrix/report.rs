//! What a run says: the table of all steps, the confusion matrix, the failures, what is missing.
//!
//! Pure but for [`write_page`]. Nothing of it names the machine beyond kernel and cores.

use std::{
    fmt::{self, Write as _},
    fs,
    path::Path,
};

use anyhow::Context as _;

use super::{
    player::Played,
    scenario::{Scenario, Step, Term},
    tally::Tally,
    verdict::{Fault, Truth, Verdict, judge, name_of},
};

const BEGIN: &str = "<!-- begin of the generated part: cargo xtask matrix --write -->";
const END: &str = "<!-- end of the generated part -->";

/// One scenario under one terminal, with what became of it.
pub(crate) struct Run {
    /// Its file's title.
    pub(crate) family: String,
    /// As played.
    pub(crate) scenario: Scenario,
    /// The session's terminal.
    pub(crate) term: Term,
    /// What happened.
    pub(crate) result: RunResult,
}

/// What became of a scenario.
pub(crate) enum RunResult {
    /// What was lacking.
    Missing(Vec<String>),
    /// Why it could not be played.
    Broken(String),
    /// A prefix of its steps.
    Played(Vec<Played>),
}

/// One send that was played, judged.
pub(crate) struct Judged<'a> {
    /// Of its step, counted from 1.
    pub(crate) number: usize,
    /// What was typed and is right.
    pub(crate) step: &'a Step,
    /// What happened.
    pub(crate) played: &'a Played,
    /// What is said about it.
    pub(crate) verdict: Verdict,
}

impl Run {
    /// The sends that were played.
    pub(crate) fn judged(&self) -> Vec<Judged<'_>> {
        let RunResult::Played(played) = &self.result else { return Vec::new() };
        let mut number = 0;
        let mut judged: Vec<Judged<'_>> = Vec::new();
        for (step, played) in self.scenario.sends().zip(played) {
            let verdict = match played {
                Played::Settled(seen) => judge(step, self.term, seen),
                Played::Failed(_) => Verdict::default(),
            };
            let again = judged.last().is_some_and(|it| std::ptr::eq(it.step, step));
            number += usize::from(!again);
            judged.push(Judged { number, step, played, verdict });
        }
        judged
    }

    /// Everything wrong with it, a line each.
    pub(crate) fn failures(&self) -> Vec<String> {
        let name = format!("{} ({})", self.scenario.name, self.term.as_str());
        let played = match &self.result {
            RunResult::Missing(_) => return Vec::new(),
            RunResult::Broken(why) => return vec![format!("{name}: {why}")],
            RunResult::Played(played) => played.len(),
        };
        let mut failures = Vec::new();
        for Judged { number, step, played, verdict } in self.judged() {
            let at = format!("{name}, step {number} {}", code(step));
            if let Played::Failed(error) = played {
                failures.push(format!("{at}: {error}"));
            }
            failures.extend(verdict.faults.iter().map(|fault| format!("{at}: {fault}")));
        }
        let rest = self.scenario.sends().count() - played;
        if rest > 0 {
            failures.push(format!("{name}: {rest} sends were not played"));
        }
        failures
    }
}

/// Sums over a whole run.
#[derive(Default)]
pub(crate) struct Summary {
    /// The confusion matrix.
    pub(crate) tally: Tally,
    /// Sends that were played; a step that repeats has several.
    pub(crate) sends: usize,
    /// Sends that gave a verdict before its time.
    pub(crate) premature: usize,
    /// Sends that ended as another reason than they should.
    pub(crate) not_found: usize,
    /// Everything wrong.
    pub(crate) failures: Vec<String>,
    /// Scenarios that were not played, and why.
    pub(crate) missing: Vec<String>,
}

impl Summary {
    /// Over all of `runs`.
    pub(crate) fn of(runs: &[Run]) -> Self {
        let mut sum = Self::default();
        for run in runs {
            for Judged { verdict, .. } in run.judged() {
                sum.sends += 1;
                let faults = &verdict.faults;
                sum.premature += usize::from(faults.iter().any(Fault::is_premature));
                sum.not_found +=
                    usize::from(faults.iter().any(|it| !it.is_premature() && it.ends_scenario()));
                for &cell in &verdict.cells {
                    sum.tally.add(cell);
                }
            }
            sum.failures.extend(run.failures());
            if let RunResult::Missing(what) = &run.result {
                sum.missing.push(format!("{}: {}", run.scenario.name, what.join(", ")));
            }
        }
        sum.missing.dedup();
        sum
    }

    /// The sums in words and tables.
    pub(crate) fn text(&self, runs: &[Run]) -> Result<String, fmt::Error> {
        let mut text = String::new();
        let played = runs.iter().filter(|run| matches!(run.result, RunResult::Played(_))).count();
        writeln!(
            text,
            "{played} scenarios, {} sends: {} premature, {} not found, {} failures, {} scenarios missing.\n",
            self.sends,
            self.premature,
            self.not_found,
            self.failures.len(),
            self.missing.len()
        )?;
        writeln!(text, "{}", self.tally)?;
        for (title, lines) in [("Failures", &self.failures), ("Missing", &self.missing)] {
            if !lines.is_empty() {
                writeln!(text, "{title}:\n")?;
                for line in lines {
                    writeln!(text, "- {line}")?;
                }
                text.push('\n');
            }
        }
        Ok(text)
    }
}

/// The table of all steps, a heading for each family.
pub(crate) fn table(runs: &[Run]) -> Result<String, fmt::Error> {
    let mut text = String::new();
    let mut family = "";
    for run in runs {
        if run.family != family {
            family = &run.family;
            write!(
                text,
                "\n### {family}\n\n| scenario | `TERM` | typed | verdict | evidence | foreground | ms | of it known busy |\n\
                 |---|---|---|---|---|---|---|---|\n"
            )?;
        }
        for step in run.judged().chunk_by(|one, next| one.number == next.number) {
            text.push_str(&row(run, step)?);
        }
    }
    Ok(text)
}

/// All sends of a step: what was worst, and how long half of them took.
fn row(run: &Run, sends: &[Judged<'_>]) -> Result<String, fmt::Error> {
    let took = |it: &Judged<'_>| match it.played {
        Played::Settled(seen) => seen.took_us,
        Played::Failed(_) => u64::MAX,
    };
    let worst = sends.iter().max_by_key(|it| (!it.verdict.faults.is_empty(), took(it)));
    let Some(judged) = worst else { return Ok(String::new()) };
    let first = judged.number == 1;
    let name = if first { run.scenario.name.as_str() } else { "" };
    let term = if first { run.term.as_str() } else { "" };
    let mut typed = code(judged.step);
    if sends.len() > 1 {
        write!(typed, " {} times", sends.len())?;
    }
    let Played::Settled(seen) = judged.played else {
        return Ok(format!("| {name} | {term} | {typed} | **failed** | | | | |\n"));
    };
    let state = seen.state.as_ref();
    let kind = state.map(|it| name_of(Some(&it.kind)));
    let mut verdict = seen.reason.as_str().to_owned();
    if let Some(kind) = kind {
        write!(verdict, ", {kind}")?;
    }
    if let Some(busy) = state.and_then(|it| it.busy) {
        write!(verdict, ", {}", busy.as_str())?;
    }
    if seen.interrupted {
        verdict.push_str(" after the interruption");
    }
    if !judged.verdict.faults.is_empty() {
        verdict = format!("**{verdict}**");
    }
    let evidence = state.map_or_else(String::new, |it| name_of(Some(&it.evidence)));
    let foreground =
        state.and_then(|it| it.foreground.as_ref()).map_or("", |it| it.command.as_str());
    let known = judged.step.min_ms.or(judged.step.interrupt_ms);
    let known = known.map_or_else(String::new, |it| it.to_string());
    #[expect(clippy::cast_precision_loss, reason = "microseconds of minutes are exact in an f64")]
    let ms = |us: u64| us as f64 / 1e3;
    let mut time = format!("{:.1}", ms(seen.took_us));
    if sends.len() > 1 {
        let mut all: Vec<u64> = sends.iter().map(took).collect();
        all.sort_unstable();
        let median = all.get(all.len() / 2).copied().unwrap_or_default();
        time = format!("median {:.1}, worst {time}", ms(median));
    }
    Ok(format!(
        "| {name} | {term} | {typed} | {verdict} | {evidence} | {foreground} | {time} | {known} |\n"
    ))
}

/// What is typed, as an inline code of a table's cell.
pub(crate) fn code(step: &Step) -> String {
    const LONGEST: usize = 48;
    let (text, submit) = step.input();
    let mut shown: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    // A bar would end the cell, a backtick the code.
    shown = shown.replace("\\'", "'").replace("\\\"", "\"").replace('|', "¦").replace('`', "´");
    if text.chars().count() > LONGEST {
        shown.push('…');
    }
    if submit { format!("`{shown}⏎`") } else { format!("`{shown}`") }
}

/// How often each phase that must be found was.
pub(crate) fn latencies(runs: &[Run]) -> String {
    let mut beyond: Vec<f64> = Vec::new();
    for run in runs {
        for judged in run.judged() {
            let Played::Settled(seen) = judged.played else { continue };
            let Some(known) = judged.step.min_ms else { continue };
            if judged.verdict.cells.iter().any(|(truth, _)| *truth == Truth::Waits) {
                #[expect(clippy::cast_precision_loss, reason = "times of minutes are exact")]
                beyond.push(seen.took_us as f64 / 1e3 - known as f64);
            }
        }
    }
    beyond.sort_by(f64::total_cmp);
    let at = |part: usize| beyond.get(beyond.len() * part / 100).copied().unwrap_or(f64::NAN);
    format!(
        "Beyond the known busy time, over {} steps: median {:.1} ms, 90 % within {:.1} ms, all within {:.1} ms \
         (the program's own start and output included).\n",
        beyond.len(),
        at(50),
        at(90),
        beyond.last().copied().unwrap_or(f64::NAN)
    )
}

/// Replaces the generated part of `page`.
pub(crate) fn write_page(page: &Path, generated: &str) -> anyhow::Result<()> {
    let text = fs::read_to_string(page).with_context(|| page.display().to_string())?;
    let text = replaced(&text, generated)
        .with_context(|| format!("{} has no lines `{BEGIN}` and `{END}`", page.display()))?;
    Ok(fs::write(page, text)?)
}

fn replaced(page: &str, generated: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", generated.trim()))
}

#[cfg(test)]
mod tests {
    use terminal::WaitReason;

    use super::*;
    use crate::matrix::{scenario::Family, verdict::Observation};

    fn seen(reason: WaitReason, viewport: &str) -> Played {
        Played::Settled(Box::new(Observation {
            reason,
            state: None,
            last_command: None,
            took_us: 1500,
            interrupted: false,
            viewport: viewport.to_owned(),
        }))
    }

    fn run(result: RunResult) -> Run {
        let text = "family: f\nscenarios:\n  - name: s\n    steps:\n      \
                    - { send: 'a | b', expect: [idle, exit], shows: c }\n      \
                    - { raw: \"\\x04\", expect: [idle, exit], shows: d }";
        let family: Family = text.parse().unwrap();
        let scenario = family.scenarios[0].clone();
        Run { family: family.title, scenario, term: Term::Dumb, result }
    }

    #[test]
    fn a_failure_names_its_step_and_what_was_not_played() {
        let played = vec![seen(WaitReason::StdinRead, "c")];
        let failures = run(RunResult::Played(played)).failures();
        assert_eq!(
            failures,
            [
                "s (dumb), step 1 `a ¦ b⏎`: not found: ended as stdin_read",
                "s (dumb): 1 sends were not played"
            ]
        );
    }

    #[test]
    fn a_refused_send_is_a_failure() {
        let played = vec![
            seen(WaitReason::InferredIdle, "c"),
            Played::Failed("the session has exited".to_owned()),
        ];
        let failures = run(RunResult::Played(played)).failures();
        assert_eq!(failures, ["s (dumb), step 2 `\\u{4}`: the session has exited"]);
    }

    #[test]
    fn sums_count_what_was_played_and_name_what_was_not() {
        let all = [
            run(RunResult::Played(vec![
                seen(WaitReason::InferredIdle, "c"),
                seen(WaitReason::StdinRead, "d"),
            ])),
            run(RunResult::Missing(vec!["program x".to_owned()])),
            run(RunResult::Broken("it crashed".to_owned())),
        ];
        let sum = Summary::of(&all);
        assert_eq!((sum.sends, sum.premature, sum.not_found), (2, 0, 1));
        assert_eq!(sum.missing, ["s: program x"]);
        assert_eq!(sum.failures.len(), 2, "{:?}", sum.failures);
        assert!(sum.failures[1].ends_with("it crashed"));
        assert!(
            sum.text(&all)
                .unwrap()
                .starts_with("1 scenarios, 2 sends: 0 premature, 1 not found, 2")
        );
    }

    #[test]
    fn rows_mark_what_failed() {
        let text = table(&[run(RunResult::Played(vec![
            seen(WaitReason::InferredIdle, "c"),
            seen(WaitReason::StdinRead, "d"),
        ]))])
        .unwrap();
        assert!(
            text.contains("| s | dumb | `a ¦ b⏎` | inferred_idle |  |  | 1.5 |  |\n"),
            "{text}"
        );
        assert!(text.contains("|  |  | `\\u{4}` | **stdin_read** |"), "{text}");
    }

    #[test]
    fn a_step_that_repeats_is_one_row_and_many_sends() {
        let text = "family: f\nscenarios:\n  - name: s\n    steps:\n      \
                    - { send: x, repeat: 3, expect: [idle, exit], shows: c }\n      \
                    - { send: y, expect: [idle, exit], shows: c }";
        let family: Family = text.parse().unwrap();
        let slow = |took| {
            let Played::Settled(mut seen) = seen(WaitReason::InferredIdle, "c") else {
                unreachable!("it settled")
            };
            seen.took_us = took;
            Played::Settled(seen)
        };
        let played = |times: &[u64]| Run {
            family: "f".to_owned(),
            scenario: family.scenarios[0].clone(),
            term: Term::Dumb,
            result: RunResult::Played(times.iter().copied().map(slow).collect()),
        };
        let whole = [played(&[2000, 9000, 3000, 1000])];
        let text = table(&whole).unwrap();
        assert!(text.contains("`x⏎` 3 times | inferred_idle |  |  | median 3.0, worst 9.0 |  |\n"));
        assert!(text.contains("`y⏎` | inferred_idle |  |  | 1.0 |  |\n"), "{text}");
        assert_eq!(Summary::of(&whole).sends, 4);
        assert_eq!(played(&[2000, 9000]).failures(), ["s (dumb): 2 sends were not played"]);
        let late = played(&[2000, 7_000_000, 3000, 1000]).failures();
        let right = "s (dumb), step 1 `x⏎`: too late: at 7000 ms, at most 6000 ms are right";
        assert_eq!(late, [right]);
    }

    #[test]
    fn only_the_generated_part_of_a_page_is_replaced() {
        let page = format!("# Title\n\n{BEGIN}\nold\n{END}\n\nmore\n");
        let expected = format!("# Title\n\n{BEGIN}\n\nnew\n\n{END}\n\nmore\n");
        assert_eq!(replaced(&page, "new\n").unwrap(), expected);
        assert_eq!(replaced(&expected, "new\n").unwrap(), expected);
        assert_eq!(replaced("# Title", "new"), None);
    }
}
