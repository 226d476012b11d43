//! The balance: which worker each partition should be with, and the moves that lead there.
//!
//! Workers and partitions are numbers here. [`plan`](fn@crate::plan) and the leader give them names.
//! The page [`docs::balance`](crate::docs::balance) argues why the moves converge.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// The number of a worker.
pub(crate) type Place = u32;

/// A worker, as the balance sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// At least 1.
    pub(crate) capacity: u32,
    pub(crate) zone: Option<u32>,
    /// True if it may get partitions.
    pub(crate) takes: bool,
    /// True if partitions may stay with it.
    pub(crate) keeps: bool,
}

/// A partition, as the balance sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// At least 1.
    pub(crate) weight: u32,
    /// The zone that it prefers.
    pub(crate) zone: Option<u32>,
    /// The worker that it is pinned to.
    pub(crate) pin: Option<Place>,
    /// The worker that it is with.
    pub(crate) at: Option<Place>,
    /// Of partitions of one weight and one worker, the one with the largest rank moves first.
    pub(crate) rank: u64,
}

/// Where each partition should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// The worker of each partition.
    pub(crate) places: Vec<Option<Place>>,
    /// The partitions that get another worker, in the order in which they should.
    pub(crate) steps: Vec<u32>,
}

/// Which workers a partition may go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// To one worker.
    Pinned(Place),
    /// To those of a zone.
    Zone(u32),
    /// To all.
    Free,
}

/// The load of a worker in proportion to its capacity, as a fixed-point number.
type Level = u128;

const ONE: Level = 1 << 32;

/// The tolerance is at most this part of the mean load.
const PART_OF_MEAN: Level = 8;

/// Computes the target. `frozen`: no partition leaves a worker that is there.
pub(crate) fn target(workers: &[Candidate], items: &[Item], frozen: bool) -> Target {
    let mut balance = Balance::new(workers, items);
    if !workers.iter().any(|worker| worker.takes) {
        return balance.target;
    }
    let mut order = balance.place_what_stays(frozen);
    order.sort_unstable_by_key(|(kind, number)| {
        let item = &items[*number as usize];
        (*kind, Reverse(item.weight), Reverse(item.rank), *number)
    });
    for kind in order.chunk_by(|left, right| left.0 == right.0) {
        match kind[0].0 {
            Kind::Pinned(place) => kind.iter().for_each(|it| balance.put(it.1, place)),
            Kind::Zone(_) | Kind::Free => balance.even_out(kind),
        }
    }
    balance.target
}

struct Balance<'a> {
    workers: &'a [Candidate],
    items: &'a [Item],
    /// The load of each worker: of the kinds that were evened out, and of this one.
    loads: Vec<u64>,
    target: Target,
}

impl<'a> Balance<'a> {
    fn new(workers: &'a [Candidate], items: &'a [Item]) -> Balance<'a> {
        let at = |item: &Item| item.at.filter(|at| (*at as usize) < workers.len());
        Balance {
            workers,
            items,
            loads: vec![0; workers.len()],
            target: Target {
                places: items.iter().map(at).collect(),
                steps: Vec::new(),
            },
        }
    }

    fn kind(&self, item: &Item, zones: &BTreeSet<u32>) -> Kind {
        let takes = |place: &Place| self.workers.get(*place as usize).is_some_and(|it| it.takes);
        match (item.pin.filter(takes), item.zone) {
            (Some(place), _) => Kind::Pinned(place),
            (None, Some(zone)) if zones.contains(&zone) => Kind::Zone(zone),
            _ => Kind::Free,
        }
    }

    /// Counts the partitions that stay whatever the balance is. Returns the others, with their kinds.
    fn place_what_stays(&mut self, frozen: bool) -> Vec<(Kind, u32)> {
        let takers = self.workers.iter().filter(|worker| worker.takes);
        let zones: BTreeSet<u32> = takers.filter_map(|worker| worker.zone).collect();
        let mut others = Vec::with_capacity(self.items.len());
        for (number, item) in self.items.iter().enumerate() {
            let kind = self.kind(item, &zones);
            let at = self.target.places[number];
            let stays = at.is_some_and(|at| {
                let worker = &self.workers[at as usize];
                frozen || kind == Kind::Pinned(at) || (worker.keeps && !worker.takes)
            });
            match at {
                Some(at) if stays => self.loads[at as usize] += u64::from(item.weight),
                _ => others.push((kind, number as u32)),
            }
        }
        others
    }

    /// True if partitions of this kind may go to the worker.
    fn may_go(&self, place: Place, kind: Kind) -> bool {
        let worker = &self.workers[place as usize];
        worker.takes
            && match kind {
                Kind::Pinned(pin) => place == pin,
                Kind::Zone(zone) => worker.zone == Some(zone),
                Kind::Free => true,
            }
    }

    /// Moves a partition to a worker.
    fn put(&mut self, number: u32, to: Place) {
        self.loads[to as usize] += u64::from(self.items[number as usize].weight);
        self.target.places[number as usize] = Some(to);
        self.target.steps.push(number);
    }

    /// The level of a worker without this weight.
    fn level(&self, place: Place, without: u32) -> Level {
        let load = self.loads[place as usize].saturating_sub(u64::from(without));
        Level::from(load) * ONE / Level::from(self.workers[place as usize].capacity)
    }

    /// Evens out the partitions of one kind: each that has no worker gets one, and then the others
    /// move, the heaviest first. Each goes to the worker with the lowest level.
    fn even_out(&mut self, kind: &[(Kind, u32)]) {
        let is_taker = |place: &Place| self.may_go(*place, kind[0].0);
        let takers: Vec<Place> = (0..self.workers.len() as Place).filter(is_taker).collect();
        let mut total: u64 = takers.iter().map(|place| self.loads[*place as usize]).sum();
        let home = |(kind, number): &(Kind, u32)| {
            let at = self.target.places[*number as usize];
            (*number, at.filter(|at| self.may_go(*at, *kind)))
        };
        let placed: Vec<(u32, Option<Place>)> = kind.iter().map(home).collect();
        let items = self.items;
        let weight = |number: u32| items[number as usize].weight;
        for (number, home) in &placed {
            total += u64::from(weight(*number));
            if let Some(home) = home {
                self.loads[*home as usize] += u64::from(weight(*number));
            }
        }
        let tolerance = self.tolerance(kind[0].1, &takers, total);
        let mut levels = Levels::new(self, &takers);
        let mut class: Vec<(Place, u32)> = Vec::new();
        for of_weight in placed.chunk_by(|left, right| weight(left.0) == weight(right.0)) {
            class.clear();
            for (number, home) in of_weight {
                match home {
                    Some(home) => class.push((*home, *number)),
                    None => self.put_lowest(*number, &mut levels),
                }
            }
            let weight = weight(of_weight[0].0);
            self.even_out_class(weight, &mut class, tolerance, &mut levels);
        }
    }

    /// Moves partitions of one weight from the worker whose level is the highest without one of
    /// them, until that is no more than the lowest level and the tolerance.
    fn even_out_class(
        &mut self,
        weight: u32,
        class: &mut [(Place, u32)],
        tolerance: Level,
        levels: &mut Levels,
    ) {
        if class.is_empty() {
            return;
        }
        // The partitions of a worker stay in their order.
        class.sort_by_key(|(home, _)| *home);
        let mut highest: BinaryHeap<(Level, Reverse<Place>, usize)> = BinaryHeap::new();
        let mut begin = 0;
        for of_one in class.chunk_by(|left, right| left.0 == right.0) {
            let home = of_one[0].0;
            highest.push((self.level(home, weight), Reverse(home), begin));
            begin += of_one.len();
        }
        while let Some((level, Reverse(home), index)) = highest.pop() {
            if level <= levels.lowest_level().saturating_add(tolerance) {
                return;
            }
            let before = self.level(home, 0);
            self.loads[home as usize] -= u64::from(weight);
            levels.change(home, self.workers, before, self.level(home, 0));
            self.put_lowest(class[index].1, levels);
            if class.get(index + 1).is_some_and(|next| next.0 == home) {
                highest.push((self.level(home, weight), Reverse(home), index + 1));
            }
        }
    }

    fn put_lowest(&mut self, number: u32, levels: &mut Levels) {
        let Some(place) = levels.lowest() else {
            return;
        };
        let before = self.level(place, 0);
        self.put(number, place);
        levels.change(place, self.workers, before, self.level(place, 0));
    }

    /// How much higher than the lowest level a worker may be without one of its partitions.
    ///
    /// It depends on the input only, and not on where the partitions are.
    fn tolerance(&self, heaviest: u32, takers: &[Place], total: u64) -> Level {
        let capacity = |place: &Place| self.workers[*place as usize].capacity;
        let largest = takers.iter().map(capacity).max().unwrap_or(1);
        let all: u64 = takers.iter().map(|it| u64::from(capacity(it))).sum();
        let heaviest = Level::from(self.items[heaviest as usize].weight) * ONE;
        let mean = Level::from(total) * ONE / Level::from(all.max(1));
        (heaviest / 2 / Level::from(largest)).min(mean / PART_OF_MEAN)
    }
}

/// The workers in the order of their levels. Of equal ones, the largest is the first.
struct Levels(BTreeSet<(Level, Reverse<u32>, Place)>);

impl Levels {
    fn new(balance: &Balance<'_>, takers: &[Place]) -> Levels {
        let key = |place: &Place| key(balance.workers, *place, balance.level(*place, 0));
        Levels(takers.iter().map(key).collect())
    }

    fn lowest(&self) -> Option<Place> {
        self.0.first().map(|(.., place)| *place)
    }

    fn lowest_level(&self) -> Level {
        self.0.first().map_or(Level::MAX, |(level, ..)| *level)
    }

    fn change(&mut self, place: Place, workers: &[Candidate], before: Level, after: Level) {
        self.0.remove(&key(workers, place, before));
        self.0.insert(key(workers, place, after));
    }
}

fn key(workers: &[Candidate], place: Place, level: Level) -> (Level, Reverse<u32>, Place) {
    (level, Reverse(workers[place as usize].capacity), place)
}

#[cfg(test)]
#[path = "../tests/unit/balance.rs"]
mod tests;
