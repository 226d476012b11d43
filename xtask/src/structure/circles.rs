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

#[cfg(test)]
mod tests {
    use super::*;

    fn circles_of(arrows: &[(u8, u8)]) -> Vec<Vec<u8>> {
        let mut graph: BTreeMap<u8, BTreeSet<u8>> = BTreeMap::new();
        for &(from, to) in arrows {
            graph.entry(from).or_default().insert(to);
        }
        let circles = circles(&graph).into_iter();
        circles.map(|circle| circle.into_iter().collect()).collect()
    }

    #[test]
    fn arrows_one_way_are_no_circle() {
        assert!(circles_of(&[(1, 2), (1, 3), (2, 3), (3, 4)]).is_empty());
    }

    #[test]
    fn each_circle_is_found_once_and_without_its_neighbours() {
        let arrows = [
            (0, 1),
            (1, 2),
            (2, 3),
            (3, 1),
            (3, 4),
            (4, 5),
            (5, 4),
            (5, 6),
        ];
        assert_eq!(circles_of(&arrows), [vec![1, 2, 3], vec![4, 5]]);
    }
}
