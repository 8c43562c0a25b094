//! What a verdict of one cycle was worth, and sums over many.
//!
//! Pure. The truth comes from the program itself: when it went to wait, and what it had printed.

use std::collections::BTreeMap;

use serde::Deserialize;
use terminal::WaitReason;

/// What the program says about one of its waits.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Truth {
    /// The number it had read before.
    pub(crate) after: u64,
    /// All that it printed since.
    pub(crate) printed: String,
    /// When it went to wait, in nanoseconds of `CLOCK_MONOTONIC`.
    pub(crate) at_ns: u64,
}

/// What a send said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Why it ended.
    pub(crate) reason: WaitReason,
    /// The wire's name of what that rests on.
    pub(crate) evidence: String,
    /// All that was shown.
    pub(crate) viewport: String,
    /// When it settled, in nanoseconds of `CLOCK_MONOTONIC`.
    pub(crate) at_ns: u64,
}

/// What one cycle showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cycle {
    /// The wait was found, so many nanoseconds after it began.
    Found {
        /// After the program said that it goes to wait.
        latency_ns: u64,
    },
    /// The verdict came before the wait.
    Premature,
    /// The send did not end as a wait.
    NotFound,
    /// The wait was found, and what was shown is not what was printed.
    Lost,
}

/// Holds `answer` to the line `typed` against the truth, which is none when the program had not
/// gone to wait.
pub(crate) fn judge(typed: &str, echo: bool, answer: &Answer, truth: Option<&Truth>) -> Cycle {
    if answer.reason != WaitReason::StdinRead {
        return Cycle::NotFound;
    }
    let Some(latency_ns) = truth.and_then(|it| answer.at_ns.checked_sub(it.at_ns)) else {
        return Cycle::Premature;
    };
    let printed = truth.map_or("", |it| &it.printed).replace("\r\n", "\n");
    let shown = if echo { format!("{typed}\n{printed}") } else { printed };
    if answer.viewport == shown { Cycle::Found { latency_ns } } else { Cycle::Lost }
}

/// Sums over cycles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// How many there were.
    pub(crate) cycles: usize,
    /// Verdicts before the wait.
    pub(crate) premature: usize,
    /// Waits that were not found.
    pub(crate) not_found: usize,
    /// Cycles whose output was not complete.
    pub(crate) lost: usize,
    /// How often each evidence was given.
    pub(crate) evidence: BTreeMap<String, usize>,
    latencies_ns: Vec<u64>,
}

impl Figures {
    /// Counts one cycle.
    pub(crate) fn add(&mut self, cycle: &Cycle, evidence: &str) {
        self.cycles += 1;
        match cycle {
            Cycle::Found { latency_ns } => {
                self.latencies_ns.push(*latency_ns);
                *self.evidence.entry(evidence.to_owned()).or_default() += 1;
            }
            Cycle::Premature => self.premature += 1,
            Cycle::NotFound => self.not_found += 1,
            Cycle::Lost => self.lost += 1,
        }
    }

    /// Adds what another one counted.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.cycles += other.cycles;
        self.premature += other.premature;
        self.not_found += other.not_found;
        self.lost += other.lost;
        self.latencies_ns.extend(&other.latencies_ns);
        for (evidence, count) in &other.evidence {
            *self.evidence.entry(evidence.clone()).or_default() += count;
        }
    }

    /// Cycles that went wrong.
    pub(crate) const fn wrong(&self) -> usize {
        self.premature + self.not_found + self.lost
    }

    /// The latency in milliseconds that so many of 1,000 waits were found within; not a number
    /// where none was found.
    pub(crate) fn within(&self, of_1000: usize) -> f64 {
        let mut sorted = self.latencies_ns.clone();
        sorted.sort_unstable();
        let last = sorted.len().saturating_sub(1);
        let at = sorted.get((sorted.len() * of_1000 / 1000).min(last));
        #[expect(clippy::cast_precision_loss, reason = "nanoseconds of minutes are exact")]
        at.map_or(f64::NAN, |it| *it as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth(printed: &str) -> Truth {
        Truth { after: 1, printed: printed.to_owned(), at_ns: 1_000 }
    }

    fn answer(viewport: &str) -> Answer {
        Answer {
            reason: WaitReason::StdinRead,
            evidence: "exact".to_owned(),
            viewport: viewport.to_owned(),
            at_ns: 3_000,
        }
    }

    #[test]
    fn a_verdict_counts_from_the_wait_on() {
        let said = truth("a\r\ndone 1> ");
        let right = Cycle::Found { latency_ns: 2_000 };
        assert_eq!(judge("1", true, &answer("1\na\ndone 1> "), Some(&said)), right);
        assert_eq!(judge("1", false, &answer("a\ndone 1> "), Some(&said)), right);
        assert_eq!(judge("1", true, &answer("1\na\ndone 1> "), None), Cycle::Premature);
        let late = Truth { at_ns: 3_001, ..said.clone() };
        assert_eq!(judge("1", true, &answer("1\na\ndone 1> "), Some(&late)), Cycle::Premature);
        for shown in ["1\ndone 1> ", "1\na\ndone 1>", "a\ndone 1> ", ""] {
            assert_eq!(judge("1", true, &answer(shown), Some(&said)), Cycle::Lost, "{shown:?}");
        }
        let idle = Answer { reason: WaitReason::InferredIdle, ..answer("1\na\ndone 1> ") };
        assert_eq!(judge("1", true, &idle, Some(&said)), Cycle::NotFound);
    }

    #[test]
    fn figures_add_up() {
        let mut figures = Figures::default();
        for latency_ns in (1..=100).map(|it| it * 1_000_000) {
            figures.add(&Cycle::Found { latency_ns }, "exact");
        }
        let mut other = Figures::default();
        other.add(&Cycle::Premature, "settled");
        other.add(&Cycle::NotFound, "silence");
        other.add(&Cycle::Lost, "exact");
        figures.merge(&other);
        assert_eq!((figures.cycles, figures.wrong()), (103, 3));
        assert_eq!(figures.evidence.get("exact"), Some(&100));
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(figures.within(500), 51.0));
        assert!(near(figures.within(1000), 100.0));
        assert!(Figures::default().within(500).is_nan());
    }

    #[test]
    fn the_program_tells_the_truth_in_json() {
        let line = r#"{"after": 3, "printed": "x\r\n", "at_ns": 12}"#;
        let said: Truth = serde_json::from_str(line).unwrap();
        assert_eq!(said, Truth { after: 3, printed: "x\r\n".to_owned(), at_ns: 12 });
    }
}
