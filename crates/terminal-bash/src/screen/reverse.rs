//! Which columns of a row are shown in reverse.
//!
//! Guarantees: the spans are in order, are not empty, and do not touch each other, so there are never
//! more than half as many as the row has columns.

use std::ops::Range;

/// Columns of one row, none for most rows.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Reversed(Vec<Range<usize>>);

impl Reversed {
    /// Nothing is.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// From the left.
    pub(super) fn spans(&self) -> impl Iterator<Item = Range<usize>> {
        self.0.iter().cloned()
    }

    /// The columns `written` are written anew, in reverse or not.
    pub(super) fn write(&mut self, written: Range<usize>, reverse: bool) {
        if written.is_empty() {
            return;
        }
        self.change(|spans| {
            let mut kept: Vec<_> = spans
                .into_iter()
                .flat_map(|it| {
                    [it.start..it.end.min(written.start), it.start.max(written.end)..it.end]
                })
                .collect();
            if reverse {
                kept.push(written);
            }
            kept
        });
    }

    /// `count` columns that are not reversed come in at `column`; what moves beyond `limit` is lost.
    pub(super) fn insert(&mut self, column: usize, count: usize, limit: usize) {
        self.change(|spans| {
            let moved = |at: usize| at.saturating_add(count).min(limit);
            let parts = spans.into_iter().flat_map(|it| {
                let (before, behind) = (it.end.min(column), it.start.max(column));
                [it.start..before, moved(behind)..moved(it.end.max(behind))]
            });
            parts.collect()
        });
    }

    /// The columns `deleted` go, and what is behind them moves left.
    pub(super) fn delete(&mut self, deleted: Range<usize>) {
        self.change(|spans| {
            let moved = |at: usize| {
                if at < deleted.end { at.min(deleted.start) } else { at - deleted.len() }
            };
            spans.into_iter().map(|it| moved(it.start)..moved(it.end)).collect()
        });
    }

    /// Puts spans in order, joins those that touch and drops those that are empty.
    fn change(&mut self, change: impl FnOnce(Vec<Range<usize>>) -> Vec<Range<usize>>) {
        let mut spans = change(std::mem::take(&mut self.0));
        spans.retain(|it| !it.is_empty());
        spans.sort_unstable_by_key(|it| it.start);
        for span in spans {
            match self.0.last_mut() {
                Some(last) if last.end >= span.start => last.end = last.end.max(span.end),
                _ => self.0.push(span),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COLUMNS: usize = 12;

    #[derive(Debug, Clone)]
    enum Change {
        Write(Range<usize>, bool),
        Insert(usize, usize),
        Delete(Range<usize>),
    }

    fn range() -> impl Strategy<Value = Range<usize>> {
        (0..COLUMNS, 0..=COLUMNS).prop_map(|(from, len)| from..(from + len).min(COLUMNS))
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            (range(), any::<bool>()).prop_map(|(at, reverse)| Change::Write(at, reverse)),
            (0..COLUMNS, 0..=COLUMNS).prop_map(|(at, count)| Change::Insert(at, count)),
            range().prop_map(Change::Delete),
        ]
    }

    proptest! {
        #[test]
        fn they_are_what_a_row_of_flags_would_be(changes in prop::collection::vec(change(), 0..30)) {
            let (mut reversed, mut flags) = (Reversed::default(), vec![false; COLUMNS]);
            for change in changes {
                match change.clone() {
                    Change::Write(at, reverse) => {
                        reversed.write(at.clone(), reverse);
                        flags[at].fill(reverse);
                    }
                    Change::Insert(at, count) => {
                        reversed.insert(at, count, COLUMNS);
                        flags.splice(at..at, std::iter::repeat_n(false, count));
                    }
                    Change::Delete(at) => {
                        reversed.delete(at.clone());
                        flags.drain(at);
                    }
                }
                flags.resize(COLUMNS, false);
                let shown: Vec<bool> = (0..COLUMNS)
                    .map(|column| reversed.spans().any(|it| it.contains(&column)))
                    .collect();
                prop_assert_eq!(&shown, &flags, "{:?}", change);
                let spans: Vec<_> = reversed.spans().collect();
                prop_assert!(spans.iter().all(|it| !it.is_empty()));
                prop_assert!(spans.windows(2).all(|it| it[0].end < it[1].start));
            }
        }
    }
}
