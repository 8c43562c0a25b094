//! Start order from dependencies.
//!
//! Guarantees: a provider comes before every consumer that requires its service, and before one
//! that merely likes to have it unless that closes a cycle; among rows that are free to start, the
//! earlier one in the composition comes first.

use std::collections::BTreeSet;

/// Node `consumer` waits for node `provider`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) consumer: usize,
    pub(crate) provider: usize,
    pub(crate) service: &'static str,
    pub(crate) required: bool,
}

/// Nodes in start order, and cycles that share no node, each as the edges along it.
///
/// Members of a cycle are left out of the order.
pub(crate) fn order(nodes: usize, edges: &[Edge]) -> (Vec<usize>, Vec<Vec<Edge>>) {
    let mut kept: Vec<Edge> = edges.iter().copied().filter(|edge| edge.required).collect();
    for &edge in edges.iter().filter(|edge| !edge.required) {
        if !reaches(&kept, edge.provider, edge.consumer) {
            kept.push(edge);
        }
    }
    let mut waiting: BTreeSet<usize> = (0..nodes).collect();
    let (mut order, mut cycles) = (Vec::new(), Vec::new());
    while !waiting.is_empty() {
        let blocking = |node: usize| {
            let waiting = &waiting;
            kept.iter().find(move |it| it.consumer == node && waiting.contains(&it.provider))
        };
        if let Some(next) = waiting.iter().copied().find(|&node| blocking(node).is_none()) {
            waiting.remove(&next);
            order.push(next);
            continue;
        }
        // Every waiting node is blocked by another one: following blockers must come around.
        let mut path: Vec<Edge> = Vec::new();
        let mut at = waiting.first().copied();
        while let Some(edge) = at.and_then(blocking) {
            if let Some(entry) = path.iter().position(|it| it.consumer == edge.consumer) {
                path.drain(..entry);
                break;
            }
            path.push(*edge);
            at = Some(edge.provider);
        }
        for edge in &path {
            waiting.remove(&edge.consumer);
        }
        cycles.push(path);
    }
    (order, cycles)
}

/// Whether `from` waits for `to`, directly or through others.
fn reaches(edges: &[Edge], from: usize, to: usize) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        if node == to {
            return true;
        }
        let next = edges.iter().filter(|edge| edge.consumer == node).map(|edge| edge.provider);
        open.extend(next.filter(|provider| seen.insert(*provider)));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(consumer: usize, provider: usize, required: bool) -> Edge {
        Edge { consumer, provider, service: "x", required }
    }

    #[test]
    fn tables() {
        type Case = (&'static str, usize, Vec<Edge>, Vec<usize>, Vec<Vec<usize>>);
        let cases: Vec<Case> = vec![
            ("file order without edges", 3, vec![], vec![0, 1, 2], vec![]),
            ("provider first", 2, vec![edge(0, 1, true)], vec![1, 0], vec![]),
            ("optional provider first", 2, vec![edge(0, 1, false)], vec![1, 0], vec![]),
            (
                "an optional edge gives way",
                2,
                vec![edge(0, 1, false), edge(1, 0, true)],
                vec![0, 1],
                vec![],
            ),
            (
                "two optional edges against each other: the first stays",
                2,
                vec![edge(0, 1, false), edge(1, 0, false)],
                vec![1, 0],
                vec![],
            ),
            (
                "an optional edge outside of the cycle stays",
                3,
                vec![edge(0, 1, false), edge(1, 2, true), edge(2, 1, false)],
                vec![2, 1, 0],
                vec![],
            ),
            ("optional use of one's own service", 1, vec![edge(0, 0, false)], vec![0], vec![]),
            ("requiring one's own service", 1, vec![edge(0, 0, true)], vec![], vec![vec![0]]),
            (
                "two cycles, and one row that waits for a cycle",
                5,
                vec![
                    edge(0, 1, true),
                    edge(1, 2, true),
                    edge(2, 1, true),
                    edge(3, 4, true),
                    edge(4, 3, true),
                ],
                vec![0],
                vec![vec![1, 2], vec![3, 4]],
            ),
        ];
        for (name, nodes, edges, expected, cycles) in cases {
            let (order, found) = order(nodes, &edges);
            let found: Vec<Vec<usize>> =
                found.iter().map(|path| path.iter().map(|it| it.consumer).collect()).collect();
            assert_eq!((order, found), (expected, cycles), "{name}");
        }
    }
    proptest::proptest! {
        #[test]
        fn whatever_the_edges(
            nodes in 1_usize..8,
            raw in proptest::collection::vec((0_usize..8, 0_usize..8, proptest::bool::ANY), 0..16),
        ) {
            let edges: Vec<Edge> = raw
                .iter()
                .map(|(consumer, provider, required)| edge(consumer % nodes, provider % nodes, *required))
                .collect();
            let (order, cycles) = order(nodes, &edges);
            let at = |node: usize| order.iter().position(|it| *it == node);

            let mut all: Vec<usize> = order.clone();
            all.extend(cycles.iter().flatten().map(|it| it.consumer));
            all.sort_unstable();
            assert_eq!(all, (0..nodes).collect::<Vec<_>>(), "every node once");

            for cycle in &cycles {
                let next = cycle.iter().cycle().skip(1);
                for (link, next) in cycle.iter().zip(next) {
                    assert!(link.required && link.provider == next.consumer, "{cycle:?}");
                }
            }
            for edge in edges.iter().filter(|edge| edge.required) {
                if let (Some(consumer), Some(provider)) = (at(edge.consumer), at(edge.provider)) {
                    assert!(provider < consumer, "{edge:?} in {order:?}");
                }
            }
            // Without any cycle, optional edges count as much as required ones.
            let hard: Vec<Edge> = edges.iter().map(|it| Edge { required: true, ..*it }).collect();
            let (strict, cycles) = super::order(nodes, &hard);
            if cycles.is_empty() {
                assert_eq!(order, strict);
            }
        }
    }
}
