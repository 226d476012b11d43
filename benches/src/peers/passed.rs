//! What has passed on the wire.

use zookeeper_recipes_benches::wire::Traffic;

use crate::peer::Peer;
use crate::row::Row;

/// The traffic between a library and the server, for one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    pub(crate) row: Row,
    pub(crate) peer: Peer,
    pub(crate) traffic: Traffic,
    /// The turns that the traffic was for.
    pub(crate) turns: u64,
}

impl Passed {
    /// The share of one turn in a count.
    pub(crate) fn for_a_turn(&self, count: u64) -> f64 {
        count as f64 / self.turns as f64
    }
}
