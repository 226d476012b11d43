//! The targets: the ratios that must be reached.

use std::time::Duration;

use crate::figures::Figures;
use crate::peer::Peer;
use crate::plan::Plan;
use crate::row::Row;
use zookeeper_recipes_benches::Spread;

/// The least ratio of our figure to another library's, in one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Target {
    pub(crate) row: Row,
    pub(crate) peer: Peer,
    pub(crate) ratio: f64,
}

/// The greatest ratio of an uncontended turn's time to the time of its requests alone.
pub(crate) const OVER_RAW_REQUESTS: f64 = 1.05;

/// The target in each row.
const KAZOO: f64 = 4.0;

const CURATOR: [(Row, f64); 9] = [
    (Row::Lock, 1.1),
    (Row::Semaphore, 2.2),
    (Row::Contended2, 1.3),
    (Row::Contended10, 1.9),
    (Row::Contended100, 2.2),
    (Row::Readers, 2.0),
    (Row::Many, 1.35),
    (Row::Tasks, 2.5),
    (Row::Mutex, 50.0),
];

/// Over a network whose round trip is 2 ms.
const CURATOR_OVER_A_NETWORK: [(Row, f64); 7] = [
    (Row::Lock, 1.45),
    (Row::Fresh, 1.45),
    (Row::Semaphore, 3.0),
    (Row::Try, 4.0),
    (Row::Contended2, 1.4),
    (Row::Contended10, 2.0),
    (Row::Contended100, 2.0),
];

impl Target {
    /// The targets of this plan. Those over a network are for one server and a round trip of 2 ms.
    pub(crate) fn of(plan: &Plan) -> Vec<Target> {
        let of = |peer| move |(row, ratio)| Target { row, peer, ratio };
        let curator = of(Peer::Curator);
        if plan.round_trip == Duration::from_millis(2) && plan.servers == 1 {
            return CURATOR_OVER_A_NETWORK.into_iter().map(curator).collect();
        }
        if !plan.is_near() {
            return Vec::new();
        }
        let kazoo = Row::all().iter().map(|row| (*row, KAZOO));
        let curator = CURATOR.into_iter().map(curator);
        curator.chain(kazoo.map(of(Peer::Kazoo))).collect()
    }

    /// The measured ratio, and whether it reaches the target.
    pub(crate) fn judge(self, figures: &Figures) -> Option<(Spread, bool)> {
        let measured = figures.ratio(self.row, self.peer)?;
        Some((measured, measured.median >= self.ratio))
    }
}
