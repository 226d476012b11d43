//! The plan: a pure function from the workers and the present plan to the next plan.

use std::collections::{BTreeMap, BTreeSet};

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

/// Whether partitions may move away from workers that are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moves {
    /// Partitions move if that improves the balance.
    #[default]
    Allowed,
    /// Each partition stays with its worker, if that worker is there.
    Frozen,
}

/// The next plan, from the present one. The same input gives the same plan.
///
/// | law | |
/// |---|---|
/// | complete | each partition has a worker, if any worker is not drained |
/// | sticky | the next plan of a plan is that plan |
/// | balanced | no move of one partition to a worker that it may go to lowers the larger load of the two workers. The load is the weight in proportion to the capacity. With equal weights, equal capacities and no zones, the numbers of partitions differ by at most one |
/// | fewest moves | in that case, no balanced plan moves fewer partitions |
/// | frozen | no partition leaves a worker that is there |
///
/// A partition goes to the worker that it names, if that worker is there and not drained. Otherwise
/// it goes to a worker of the zone that it prefers, if any worker there is not drained.
/// If all workers are drained, each keeps its partitions, and the others have no worker.
/// Partitions of `present` that are not in `partitions` are left out. A capacity or a weight of 0
/// counts as 1.
///
/// It does not find the fewest moves, or the best balance, for unequal weights: that is a problem
/// for which no quick method is known.
///
/// ```
/// use zookeeper_recipes_assignment::{Moves, Plan, PlannedPartition, PlannedWorker, plan};
///
/// let partitions = ["a", "b", "c"].map(|it| (it.to_owned(), PlannedPartition::default()));
/// let workers = ["one", "two"].map(|it| (it.to_owned(), PlannedWorker::default()));
/// let all_on_one = ["a", "b", "c"].map(|it| (it.to_owned(), "one".to_owned()));
///
/// let next = plan(&partitions.into(), &workers.into(), &all_on_one.into(), Moves::Allowed);
/// assert_eq!(next.values().filter(|worker| *worker == "one").count(), 2);
/// ```
pub fn plan(
    partitions: &BTreeMap<String, PlannedPartition>,
    workers: &BTreeMap<String, PlannedWorker>,
    present: &Plan,
    moves: Moves,
) -> Plan {
    let mut loads = Loads::new(partitions, workers);
    let mut homeless: Vec<Item<'_>> = Vec::new();
    for (name, partition) in partitions {
        let item = (partition.weight.max(1), name.as_str());
        let worker = present.get(name);
        let place = worker.and_then(|worker| loads.place(worker));
        match place {
            Some(place) if loads.keeps(place, partition, moves) => loads.give(place, item),
            _ => homeless.push(item),
        }
    }
    // The heaviest first: the light ones then even out what is left.
    homeless.sort_by(|left, right| right.0.cmp(&left.0).then(left.1.cmp(right.1)));
    for item in homeless {
        if let Some(place) = loads.lightest_for(item) {
            loads.give(place, item);
        }
    }
    if moves == Moves::Allowed {
        while loads.improve() {}
    }
    loads.into_plan()
}

/// The weight of a partition, and its name.
type Item<'a> = (u32, &'a str);

struct Loads<'a> {
    partitions: &'a BTreeMap<String, PlannedPartition>,
    workers: Vec<Loaded<'a>>,
    places: BTreeMap<&'a str, usize>,
    /// The zones with a worker that is not drained.
    zones: BTreeSet<&'a str>,
    all_drained: bool,
}

struct Loaded<'a> {
    name: &'a str,
    worker: &'a PlannedWorker,
    load: u64,
    items: BTreeSet<Item<'a>>,
}

impl Loaded<'_> {
    fn capacity(&self) -> u64 {
        u64::from(self.worker.capacity.max(1))
    }

    /// Compares the load in proportion to the capacity, if this worker had `more`.
    fn with(&self, more: u32, other: &Loaded<'_>, other_more: u32) -> std::cmp::Ordering {
        let load = |it: &Loaded<'_>, more| u128::from(it.load + u64::from(more));
        let left = load(self, more) * u128::from(other.capacity());
        left.cmp(&(load(other, other_more) * u128::from(self.capacity())))
    }
}

impl<'a> Loads<'a> {
    fn new(
        partitions: &'a BTreeMap<String, PlannedPartition>,
        workers: &'a BTreeMap<String, PlannedWorker>,
    ) -> Loads<'a> {
        let names = workers.keys().enumerate();
        let undrained = || workers.values().filter(|worker| !worker.drained);
        Loads {
            partitions,
            places: names.map(|(place, name)| (name.as_str(), place)).collect(),
            zones: undrained().filter_map(|it| it.zone.as_deref()).collect(),
            all_drained: undrained().next().is_none(),
            workers: workers
                .iter()
                .map(|(name, worker)| Loaded {
                    name,
                    worker,
                    load: 0,
                    items: BTreeSet::new(),
                })
                .collect(),
        }
    }

    fn place(&self, worker: &str) -> Option<usize> {
        self.places.get(worker).copied()
    }

    /// True if the partition may go to this worker.
    fn may_go(&self, place: usize, partition: &PlannedPartition) -> bool {
        let named = partition.worker.as_deref().and_then(|it| self.place(it));
        if let Some(named) = named.filter(|it| !self.workers[*it].worker.drained) {
            return place == named;
        }
        let worker = self.workers[place].worker;
        let preferred = partition.zone.as_deref();
        let preferred = preferred.filter(|zone| self.zones.contains(zone));
        !worker.drained && preferred.is_none_or(|zone| worker.zone.as_deref() == Some(zone))
    }

    /// True if the partition stays with this worker, until the balance asks for a move.
    fn keeps(&self, place: usize, partition: &PlannedPartition, moves: Moves) -> bool {
        moves == Moves::Frozen || self.all_drained || self.may_go(place, partition)
    }

    fn give(&mut self, place: usize, item: Item<'a>) {
        self.workers[place].load += u64::from(item.0);
        self.workers[place].items.insert(item);
    }

    /// The worker with the smallest load once it has this partition. The first name, if several.
    fn lightest_for(&self, (weight, name): Item<'_>) -> Option<usize> {
        let partition = &self.partitions[name];
        let places = 0..self.workers.len();
        places
            .filter(|place| self.may_go(*place, partition))
            .min_by(|left, right| self.workers[*left].with(weight, &self.workers[*right], weight))
    }

    /// Moves one partition to a worker where it lowers the larger load of the two. False if there
    /// is no such partition.
    ///
    /// The larger of the two loads falls with each move, so the moves come to an end.
    fn improve(&mut self) -> bool {
        let mut order: Vec<usize> = (0..self.workers.len()).collect();
        order.sort_by(|left, right| {
            let (left, right) = (&self.workers[*left], &self.workers[*right]);
            left.with(0, right, 0).then(left.name.cmp(right.name))
        });
        for from in order.iter().rev() {
            for to in &order {
                if let Some(item) = self.movable(*from, *to) {
                    self.workers[*from].load -= u64::from(item.0);
                    self.workers[*from].items.remove(&item);
                    self.give(*to, item);
                    return true;
                }
            }
        }
        false
    }

    /// The heaviest partition whose move lowers the larger load of the two workers.
    fn movable(&self, from: usize, to: usize) -> Option<Item<'a>> {
        if from == to || self.workers[to].worker.drained {
            return None;
        }
        let (from, target) = (&self.workers[from], &self.workers[to]);
        let lightest = from.items.first()?;
        if !target.with(lightest.0, from, 0).is_lt() {
            return None;
        }
        let lowers = |item: &&Item<'a>| target.with(item.0, from, 0).is_lt();
        let may_go = |item: &&Item<'a>| self.may_go(to, &self.partitions[item.1]);
        let mut items = from.items.iter().rev().filter(lowers);
        items.find(may_go).copied()
    }

    fn into_plan(self) -> Plan {
        let workers = self.workers.into_iter();
        let owned = workers.flat_map(|worker| {
            let items = worker.items.into_iter();
            items.map(move |(_, name)| (name.to_owned(), worker.name.to_owned()))
        });
        owned.collect()
    }
}
