//! Circles in a graph.

use std::collections::{BTreeMap, BTreeSet};

/// All circles: groups of nodes each of which leads to all others of its group.
pub(crate) fn circles<N: Copy + Ord>(arrows: &BTreeMap<N, BTreeSet<N>>) -> Vec<BTreeSet<N>> {
    let reached: BTreeMap<N, BTreeSet<N>> = arrows
        .keys()
        .map(|&node| (node, reached_from(node, arrows)))
        .collect();
    let leads = |from: &N, to: &N| reached.get(from).is_some_and(|nodes| nodes.contains(to));
    let mut circles: BTreeSet<BTreeSet<N>> = BTreeSet::new();
    for (node, nodes) in &reached {
        let circle: BTreeSet<N> = nodes
            .iter()
            .filter(|other| leads(other, node))
            .copied()
            .collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

fn reached_from<N: Copy + Ord>(node: N, arrows: &BTreeMap<N, BTreeSet<N>>) -> BTreeSet<N> {
    let mut reached = BTreeSet::new();
    let mut ahead = vec![node];
    while let Some(node) = ahead.pop() {
        for &next in arrows.get(&node).into_iter().flatten() {
            if reached.insert(next) {
                ahead.push(next);
            }
        }
    }
    reached
}
