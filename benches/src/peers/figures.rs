//! The figures, round by round.

use std::collections::BTreeMap;

use crate::peer::Peer;
use crate::row::Row;
use zookeeper_recipes_benches::median;

/// The figures of each peer for each row: one for each round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    rounds: BTreeMap<(Row, Peer), Vec<f64>>,
}

impl Figures {
    pub(crate) fn add(&mut self, row: Row, peer: Peer, figure: f64) {
        self.rounds.entry((row, peer)).or_default().push(figure);
    }

    pub(crate) fn rounds(&self, row: Row, peer: Peer) -> &[f64] {
        self.rounds.get(&(row, peer)).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn median(&self, row: Row, peer: Peer) -> Option<f64> {
        median(self.rounds(row, peer).iter().copied())
    }

    /// How many times better ours is than the other library: the median of the ratios in each round.
    pub(crate) fn ratio(&self, row: Row, other: Peer) -> Option<f64> {
        let ours = self.rounds(row, Peer::Ours);
        let others = self.rounds(row, other);
        let ratios = ours.iter().zip(others);
        median(ratios.map(|(ours, other)| row.ratio(*ours, *other)))
    }
}
