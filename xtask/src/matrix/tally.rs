//! The confusion matrix: what programs did, and how sends ended meanwhile.
//!
//! Pure.

use std::{collections::BTreeMap, fmt};

use terminal::WaitReason;

use super::verdict::{Settled, Truth};

/// Columns, in the order of the table; none is a send that went on.
const COLUMNS: [Settled; 5] = [
    None,
    Some(WaitReason::StdinRead),
    Some(WaitReason::InferredIdle),
    Some(WaitReason::Timeout),
    Some(WaitReason::SessionExit),
];

/// Counts of cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    counts: BTreeMap<(Truth, usize), usize>,
}

impl Tally {
    /// Counts one phase.
    pub(crate) fn add(&mut self, (truth, settled): (Truth, Settled)) {
        let column = COLUMNS.iter().position(|it| *it == settled).unwrap_or_default();
        *self.counts.entry((truth, column)).or_default() += 1;
    }

    /// How often a phase ended so.
    pub(crate) fn count(&self, truth: Truth, settled: Settled) -> usize {
        let column = COLUMNS.iter().position(|it| *it == settled).unwrap_or_default();
        self.counts.get(&(truth, column)).copied().unwrap_or_default()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles = COLUMNS.map(|it| it.map_or("went on", WaitReason::as_str));
        writeln!(f, "| the program … | {} |", titles.join(" | "))?;
        writeln!(f, "|---|{}", "---|".repeat(titles.len()))?;
        for truth in Truth::ALL {
            let counts = COLUMNS.map(|it| match self.count(truth, it) {
                0 => "·".to_owned(),
                count => count.to_string(),
            });
            writeln!(f, "| {} | {} |", truth.title(), counts.join(" | "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stand_in_their_cells() {
        let mut tally = Tally::default();
        tally.add((Truth::Works, None));
        tally.add((Truth::Works, None));
        tally.add((Truth::Works, Some(WaitReason::StdinRead)));
        tally.add((Truth::Hidden, Some(WaitReason::InferredIdle)));
        assert_eq!(tally.count(Truth::Works, None), 2);
        assert_eq!(tally.count(Truth::Waits, None), 0);
        assert_eq!(
            tally.to_string().lines().collect::<Vec<_>>()[..5],
            [
                "| the program … | went on | stdin_read | inferred_idle | timeout | session_exit |",
                "|---|---|---|---|---|---|",
                "| works | 2 | 1 | · | · | · |",
                "| waits for the terminal | · | · | · | · | · |",
                "| waits, and nothing shows it | · | · | 1 | · | · |",
            ]
        );
    }
}
