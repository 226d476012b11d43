//! What a run draws of its partitions and workers, beside their faults.

use std::collections::BTreeMap;

use fastrand::Rng;
use zookeeper_recipes_assignment::{Partitions, PlannedPartition, PlannedWorker};

/// The names of the partitions.
pub(crate) const PARTITIONS: [&str; 5] = ["p0", "p1", "p2", "p3", "p4"];

const ZONES: [&str; 2] = ["east", "west"];

/// What a worker does not do while it hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hang {
    /// It takes no partition.
    TakesNone,
    /// It gives no partition.
    GivesNone,
    /// Its work blocks its thread, and the other threads of its process run.
    Blocks,
}

/// The partitions, the workers, and the orders that are in force once all is quiet.
#[derive(Clone, Debug)]
pub(crate) struct Traits {
    /// A pin is the worker of a partition.
    pub(crate) partitions: BTreeMap<String, PlannedPartition>,
    pub(crate) workers: BTreeMap<String, PlannedWorker>,
    /// The worker that hangs, until the judge has seen that it stops no other.
    pub(crate) hangs: Option<(String, Hang)>,
}

impl Traits {
    /// The first of the workers is neither drained nor hangs: another one dies while all is quiet.
    pub(crate) fn draw(workers: &[String], rng: &mut Rng) -> Traits {
        let (has_weights, has_zones, has_capacities) = (rng.bool(), rng.u8(..3) == 0, rng.bool());
        let zone = |rng: &mut Rng| match has_zones && rng.bool() {
            true => Some(ZONES[rng.usize(..ZONES.len())].to_owned()),
            false => None,
        };
        let mut partition = |name: &str| {
            let about = PlannedPartition {
                weight: if has_weights { rng.u32(1..=7) } else { 1 },
                zone: zone(rng),
                worker: match rng.u8(..6) {
                    0 => rng.choice(workers).cloned(),
                    _ => None,
                },
            };
            (name.to_owned(), about)
        };
        let partitions = PARTITIONS.iter().map(|it| partition(it)).collect();
        let worker = |name: &String| {
            let about = PlannedWorker {
                capacity: if has_capacities { rng.u32(1..=3) } else { 1 },
                zone: zone(rng),
                drained: false,
            };
            (name.clone(), about)
        };
        let mut traits = Traits {
            partitions,
            workers: workers.iter().map(worker).collect(),
            hangs: None,
        };
        // If the worker that dies were the last one that takes partitions, nobody could own them.
        let others = &workers[1..];
        if workers.len() > 2 && rng.u8(..4) == 0 {
            let drained = rng.choice(others).and_then(|it| traits.workers.get_mut(it));
            if let Some(drained) = drained {
                drained.drained = true;
            }
        }
        if rng.u8(..3) == 0 {
            let hang = [Hang::TakesNone, Hang::GivesNone, Hang::Blocks][rng.usize(..3)];
            traits.hangs = rng.choice(others).map(|it| (it.clone(), hang));
        }
        traits
    }

    /// All partitions, as they are recorded.
    pub(crate) fn recorded(&self) -> Partitions {
        let all = Partitions::named(self.partitions.keys());
        self.partitions.iter().fold(all, |all, (name, about)| {
            let all = all.weight(name, about.weight);
            match &about.zone {
                Some(zone) => all.zone(name, zone),
                None => all,
            }
        })
    }

    pub(crate) fn hang(&self, worker: &str) -> Option<Hang> {
        let hangs = self.hangs.as_ref().filter(|(hangs, _)| hangs == worker);
        hangs.map(|(_, hang)| *hang)
    }
}
