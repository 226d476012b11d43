//! The plan: a pure function from the workers and the present plan to the next plan.

use std::collections::{BTreeMap, HashMap};

use crate::balance::{Candidate, Item, target};

/// A worker, as the plan sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedWorker {
    /// How much it takes in proportion to the other workers. At least 1.
    pub capacity: u32,
    /// The zone that it is in, if it names one.
    pub zone: Option<String>,
    /// True if it should own nothing.
    pub drained: bool,
}

impl Default for PlannedWorker {
    /// A worker of capacity 1, in no zone, that is not drained.
    fn default() -> PlannedWorker {
        PlannedWorker {
            capacity: 1,
            zone: None,
            drained: false,
        }
    }
}

/// A partition, as the plan sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedPartition {
    /// Its share of the load. At least 1.
    pub weight: u32,
    /// The zone whose workers it prefers, if it names one.
    pub zone: Option<String>,
    /// The one worker that it goes to, if that worker is there and not drained.
    pub worker: Option<String>,
}

impl Default for PlannedPartition {
    /// A partition of weight 1 that prefers no zone and no worker.
    fn default() -> PlannedPartition {
        PlannedPartition {
            weight: 1,
            zone: None,
            worker: None,
        }
    }
}

/// Which worker should own each partition. A partition without an entry has no worker.
pub type Plan = BTreeMap<String, String>;

/// The next plan, from the present one. The same input gives the same plan.
///
/// | law | |
/// |---|---|
/// | complete | each partition has a worker, if any worker is not drained |
/// | sticky | the next plan of a plan is that plan |
/// | balanced | no worker has more than the least loaded worker and a [tolerance](crate::docs::balance), if one of its partitions is taken away. The load is the weight in proportion to the capacity. With equal weights, equal capacities and no zones, the numbers of partitions differ by at most one |
/// | fewest moves | in that case, no balanced plan moves fewer partitions |
///
/// A partition goes to the worker that it names, if that worker is there and not drained. Otherwise
/// it goes to a worker of the zone that it prefers, if any worker there is not drained.
/// If all workers are drained, each keeps its partitions, and the others have no worker.
/// Partitions of `present` that are not in `partitions` are left out. A capacity or a weight of 0
/// counts as 1.
///
/// It does not find the fewest moves, or the best balance, for unequal weights: see
/// [`docs::balance`](crate::docs::balance).
///
/// A program that carries out a part of the moves, and then plans again, should begin with the
/// heaviest partitions. The next plan then continues this one.
///
/// ```
/// use zookeeper_recipes_assignment::{Plan, PlannedPartition, PlannedWorker, plan};
///
/// let partitions = ["a", "b", "c"].map(|it| (it.to_owned(), PlannedPartition::default()));
/// let workers = ["one", "two"].map(|it| (it.to_owned(), PlannedWorker::default()));
/// let all_on_one = ["a", "b", "c"].map(|it| (it.to_owned(), "one".to_owned()));
///
/// let next = plan(&partitions.into(), &workers.into(), &all_on_one.into());
/// assert_eq!(next.values().filter(|worker| *worker == "one").count(), 2);
/// ```
pub fn plan(
    partitions: &BTreeMap<String, PlannedPartition>,
    workers: &BTreeMap<String, PlannedWorker>,
    present: &Plan,
) -> Plan {
    let numbers = Numbers::new(workers.keys().map(String::as_str));
    let mut zones = Numbers::default();
    let candidates: Vec<Candidate> = workers
        .values()
        .map(|worker| worker.candidate(&mut zones))
        .collect();
    let items = partitions.iter().zip(0..).map(|((name, partition), rank)| {
        let at = present.get(name).and_then(|worker| numbers.get(worker));
        let pin = partition.worker.as_deref().and_then(|it| numbers.get(it));
        partition.item(&mut zones, pin, at, rank)
    });
    let items: Vec<Item> = items.collect();
    let target = target(&candidates, &items, false);
    let names: Vec<&String> = workers.keys().collect();
    let planned = partitions.keys().zip(target.places);
    planned
        .filter_map(|(name, place)| Some((name.clone(), names[place? as usize].clone())))
        .collect()
}

impl PlannedWorker {
    pub(crate) fn candidate<'a>(&'a self, zones: &mut Numbers<'a>) -> Candidate {
        Candidate {
            capacity: self.capacity.max(1),
            zone: self.zone.as_deref().map(|zone| zones.add(zone)),
            takes: !self.drained,
            keeps: !self.drained,
        }
    }
}

impl PlannedPartition {
    pub(crate) fn item<'a>(
        &'a self,
        zones: &mut Numbers<'a>,
        pin: Option<u32>,
        at: Option<u32>,
        rank: u64,
    ) -> Item {
        Item {
            weight: self.weight.max(1),
            zone: self.zone.as_deref().map(|zone| zones.add(zone)),
            pin,
            at,
            rank,
        }
    }
}

/// A number for each name.
#[derive(Debug, Default)]
pub(crate) struct Numbers<'a>(HashMap<&'a str, u32>);

impl<'a> Numbers<'a> {
    /// Numbers in the order of the names.
    pub(crate) fn new(names: impl IntoIterator<Item = &'a str>) -> Numbers<'a> {
        Numbers(names.into_iter().zip(0..).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<u32> {
        self.0.get(name).copied()
    }

    /// The number of the name, which is a new one if the name is new.
    pub(crate) fn add(&mut self, name: &'a str) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(name).or_insert(next)
    }
}
